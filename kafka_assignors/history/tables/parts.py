"""The files of an archive in parts, which tasks read themselves, with Arrow.

That 1,000,000 records of 7 KB are read by Spark, in the JVM, and handed on to Python took 22 s of CPU; this
way it takes 6 s.
"""

from __future__ import annotations

import posixpath
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow.parquet as pq
from pyarrow import fs

from kafka_assignors.history.schemas import ARCHIVE
from kafka_assignors.history.tables.files import open_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_LARGEST: Final = 128 * 2**20
_SMALLEST: Final = 2**20
"""Bytes of files that a task reads."""
_OPENING: Final = 2**20
"""What it costs to open a file, in bytes that could be read: as with Spark, which counts more."""
_TASKS_EACH: Final = 2
"""Tasks one after another, so that one that takes longer than others is made up for."""
_ROWS_AT_ONCE: Final = 64
"""A batch of them takes no more than 64 times the largest record, which brokers hold below 1 MB or so."""


class Part(NamedTuple):
    """Row groups of a file.

    Attributes:
        path: The file, as its file system names it.
        first: The first row group.
        after: The one after the last; None for all that there are.
    """

    path: str
    first: int = 0
    after: int | None = None


def parts_of(folder: str, tasks: int) -> list[list[Part]]:
    """The Parquet files in a folder and below it, for as many tasks as make for even work.

    Args:
        folder: The folder, as a path or URI.
        tasks: How many run at the same time.

    Returns:
        What each task reads. Files come in the order of their names, numbers in them as numbers, so that the
        batches of a capture follow one another as the records did.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    filesystem, path = open_folder(folder)
    files = sorted(
        (
            info
            for info in filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            if info.type == fs.FileType.File and _is_data(info.base_name)
        ),
        key=lambda info: _natural(info.path),
    )
    share = sum(info.size + _OPENING for info in files) // max(1, _TASKS_EACH * tasks)
    largest = min(_LARGEST, max(_SMALLEST, share))
    parts: list[list[Part]] = []
    taken = largest + 1
    for info in files:
        for part, size in _pieces(filesystem, info, largest):
            if taken + size + _OPENING > largest:
                parts.append([])
                taken = 0
            parts[-1].append(part)
            taken += size + _OPENING
    return parts


def _is_data(name: str) -> bool:
    return name.endswith(".parquet") and not name.startswith(("_", "."))


def _natural(path: str) -> list[tuple[int, str]]:
    """`batch=9` before `batch=10`."""
    return [(int(digits), "") if digits else (-1, text) for text, digits in re.findall(r"(\D+)|(\d+)", path)]


def _pieces(filesystem: Any, info: Any, largest: int) -> Iterable[tuple[Part, int]]:
    """A file, or its row groups if it is too large for one task."""
    if info.size <= largest:
        return [(Part(info.path), info.size)]
    metadata = pq.read_metadata(info.path, filesystem=filesystem)
    return [
        (Part(info.path, number, number + 1), info.size // metadata.num_row_groups)
        for number in range(metadata.num_row_groups)
    ]


def read_parts(folder: str, parts: Sequence[Part]) -> Iterator[Any]:
    """The rows of some parts, in batches of schema ARCHIVE or one that can be cast to it.

    Args:
        folder: The folder that `parts_of` was given.
        parts: Some of what it returned.
    """
    filesystem, _ = open_folder(folder)
    for path, first, after in parts:
        with (
            filesystem.open_input_file(path) as source,
            pq.ParquetFile(source, coerce_int96_timestamp_unit="us") as file,
        ):
            groups = range(first, file.num_row_groups if after is None else after)
            yield from file.iter_batches(
                _ROWS_AT_ONCE, row_groups=[*groups], columns=ARCHIVE.names, use_threads=False
            )


def records_of(archive: str) -> str:
    """The folder of an archive's records."""
    return posixpath.join(archive, "records")
