"""Where tasks get the records of an archive from: rows of Spark's, or files that they read themselves.

That 1,000,000 records of 7 KB are read by Spark, in the JVM, and handed on to Python took 22 s of CPU; this
way it takes 6 s.
"""

from __future__ import annotations

import json
import posixpath
import re
import zlib
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from kafka_assignors.history._exchange import passed_over
from kafka_assignors.history._folders import open_folder
from kafka_assignors.history._schemas import ARCHIVE

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    Read = Callable[[Iterator[Any]], Iterator[Any]]

_LARGEST: Final = 128 * 2**20
_SMALLEST: Final = 2 * 2**20
"""Bytes of files that a task reads, what opening them costs among it."""
_OPENING: Final = 2**20
"""What it costs to open a file, in bytes that could be read: as with Spark, which counts more."""
_TASKS_EACH: Final = 2
"""Tasks one after another, so that one that takes longer than others is made up for."""
_ROWS_AT_ONCE: Final = 64
"""A batch of them takes no more than 64 times the largest record, which brokers hold below 1 MB or so."""


class Source(NamedTuple):
    """Records for tasks.

    Attributes:
        rows: What Spark hands to the tasks.
        read: Makes batches in schema ARCHIVE of batches of these.
    """

    rows: DataFrame
    read: Read


def source_of_rows(rows: DataFrame) -> Source:
    """Rows with the columns of schema ARCHIVE, which Spark reads."""
    return Source(rows.select(ARCHIVE.names), _as_archived)


def source_of_archive(spark: SparkSession, archive: str) -> Source:
    """The files of an archive, which the tasks read.

    Raises:
        FileNotFoundError: It has no folder of records.
    """
    folder = records_of(archive)
    parts = parts_of(folder, spark.sparkContext.defaultParallelism, without=passed_over(archive))
    numbers = spark.range(0, len(parts), 1, max(1, len(parts)))
    # Each task gets all of them, and unpacks its own: of 100,000 files together they are 1.4 MB.
    packed = [zlib.compress(json.dumps(some).encode(), 1) for some in parts]
    return Source(numbers, partial(_read_numbered, folder=folder, packed=packed))


def _as_archived(batches: Iterator[Any]) -> Iterator[Any]:
    return (in_schema(batch, ARCHIVE) for batch in batches)


def in_schema(batch: Any, schema: Any) -> Any:
    """A batch from Spark in a schema of ours: its times have the session's zone, its fields any order."""
    arrays = [batch[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _read_numbered(batches: Iterator[Any], *, folder: str, packed: Sequence[bytes]) -> Iterator[Any]:
    for batch in batches:
        for number in batch["id"].to_pylist():
            parts = json.loads(zlib.decompress(packed[number]))
            yield from read_parts(folder, [Part(*part) for part in parts])


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


def parts_of(folder: str, tasks: int, *, without: Collection[str] = ()) -> list[list[Part]]:
    """Share out the Parquet files in a folder and below it.

    Args:
        folder: The folder, as a path or URI.
        tasks: How many run at the same time.
        without: Batches that are left out.

    Returns:
        What each task reads. Files come in the order of their names, numbers in them as numbers, so that the
        batches of a capture follow one another as the records did.

    Raises:
        FileNotFoundError: There is no such folder.
    """
    filesystem, path = open_folder(folder)
    without_batches = {f"batch={name}" for name in without}
    files = sorted(
        (
            info
            for info in filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            if info.type == fs.FileType.File
            and _is_data(names := posixpath.relpath(info.path, path).split("/"))
            and without_batches.isdisjoint(names)
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


def _is_data(names: Sequence[str]) -> bool:
    """Whether a file with these names on its path is one that Spark would read."""
    hidden = (name.startswith(".") or (name.startswith("_") and "=" not in name) for name in names)
    return names[-1].endswith(".parquet") and not any(hidden)


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
    """The rows of some parts, in batches of schema ARCHIVE.

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
            yield from _as_archived(
                file.iter_batches(
                    _ROWS_AT_ONCE, row_groups=[*groups], columns=ARCHIVE.names, use_threads=False
                )
            )


def records_of(archive: str) -> str:
    """The folder of an archive's records."""
    return posixpath.join(archive, "records")
