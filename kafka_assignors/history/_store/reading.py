"""Rows of a table's files, which tasks read themselves, with Arrow.

Spark's own reader needs a jar for each kind of store, lists the files again, and passes rows through the JVM:
1,000,000 records of 7 kB took 22 s of CPU, and not 6.
"""

import errno
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_assignors._common.times import FIRST_MS, LAST_MS
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._arrow import strings
from kafka_assignors.history._schemas import TIME
from kafka_assignors.history._store.location import Location, StoreError, reason_of
from kafka_assignors.history._store.log import DataFile, Log, NoTableError

Split = Callable[[int], "Source"]
"""Shares rows out among so many tasks at the same time."""

_TIMES: Final = (1000 * FIRST_MS, 1000 * LAST_MS + 999)
_COUNTED: Final = ("count", "partition", "offset", "partitions")
"""Columns of numbers that are not negative."""


class DamagedFileError(StoreError):
    """A file of a table is not there, or is no Parquet file any more; the message names it."""


class CleanedUpError(StoreError):
    """A file of the version that is read was deleted, as a newer one does without it: nothing is damaged."""


class Source(NamedTuple):
    """Rows that tasks read themselves: each task its shares, by `read`."""

    shares: Sequence[Any]
    read: Callable[[Any], Iterator[Any]]

    def batches(self) -> Iterator[Any]:
        """All rows, in this process."""
        return chain.from_iterable(map(self.read, self.shares))


def through(split: Split, change: Callable[[Iterator[Any]], Iterator[Any]]) -> Split:
    """The same rows, changed by the tasks as they read them."""

    def changed(tasks: int) -> Source:
        source = split(tasks)
        return Source(source.shares, lambda share: change(source.read(share)))

    return changed


class Part(NamedTuple):
    """A share of a file's row groups; all of them by default."""

    file: DataFile
    share: int = 0
    shares: int = 1


def source_of_files(
    tasks: int,
    *,
    where: Location,
    files: Iterable[DataFile],
    schema: pa.Schema,
    skip_bad: bool = False,
) -> Source:
    """Rows of files for so many tasks at the same time; see `read_parts`."""
    return Source(parts_of(files, tasks), lambda parts: read_parts(where, parts, schema, skip_bad=skip_bad))


def parts_of(files: Iterable[DataFile], tasks: int) -> list[list[Part]]:
    """What each of so many tasks reads: files in the order of their names, as the batches of a capture were.

    A large file is shared out by its row groups: a day of a maintained archive is one file.
    """
    ordered = sorted(files, key=lambda file: file.path)
    share = sum(file.size + limits.OPENING for file in ordered) // max(1, limits.TASKS_A_CORE * tasks)
    largest = min(limits.LARGEST_SHARE, max(limits.SMALLEST_SHARE, share))
    parts: list[list[Part]] = []
    taken = largest + 1
    for file in ordered:
        shares = max(1, -(-file.size // largest))
        for number in range(shares):
            cost = file.size // shares + limits.OPENING
            if taken + cost > largest:
                parts.append([])
                taken = 0
            # Tasks have no use for its statistics, which each would be sent.
            parts[-1].append(Part(file._replace(least={}, greatest={}), number, shares))
            taken += cost
    return parts


def read_parts(
    where: Location, parts: Iterable[Part], schema: pa.Schema, *, skip_bad: bool = False
) -> Iterator[Any]:
    """The rows of some parts of a table's files, in batches; bad ones to the first row that cannot be read.

    Files that were deleted meanwhile are not passed over (CleanedUpError): their rows are in newer ones.
    """
    for part in parts:
        try:
            yield from _read_part(where, part, schema)
        except DamagedFileError:
            if not skip_bad:
                raise


def find_damaged(where: Location, files: Iterable[DataFile], schema: pa.Schema) -> list[DataFile]:
    """Read files to their end, in this process: those that cannot be read."""
    damaged = []
    for file in files:
        try:
            deque(_read_part(where, Part(file), schema), maxlen=0)
        except DamagedFileError:
            damaged.append(file)
    return damaged


def _read_part(where: Location, part: Part, schema: pa.Schema) -> Iterator[Any]:
    path, values = part.file.path, part.file.values
    inside = [name for name in schema.names if name not in values]
    try:
        opened = where.files().open_input_file(path)
        with pq.ParquetFile(opened, coerce_int96_timestamp_unit="us") as file:
            there = [name for name in inside if name in file.schema_arrow.names]
            if lacks := [name for name in inside if name not in there and not schema.field(name).nullable]:
                raise pa.ArrowInvalid(f"it has no column {', '.join(lacks)}")
            count, shares = file.num_row_groups, part.shares
            groups = [*range(count * part.share // shares, count * (part.share + 1) // shares)]
            if any(file.metadata.row_group(one).total_byte_size > limits.LARGEST_GROUP for one in groups):
                raise pa.ArrowInvalid(f"a row group takes more than {limits.LARGEST_GROUP:,} bytes")
            for batch in file.iter_batches(
                limits.ROWS_AT_ONCE, row_groups=groups, columns=there, use_threads=False
            ):
                yield _completed(batch, values, schema)
    except (OSError, pa.ArrowException) as error:
        raise _wrong(where, path, error) from error


def _completed(batch: Any, values: Mapping[str, str], schema: pa.Schema) -> Any:
    """With the columns that are not in the file: of the table's partition, or null."""
    arrays = []
    for field in schema:
        if field.name in values:
            array = pa.repeat(strings([values[field.name]])[0], batch.num_rows)
        elif field.name in batch.schema.names:
            array = batch[field.name]
        else:
            array = pa.nulls(batch.num_rows)
        arrays.append(_checked(field, array.cast(field.type)))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _checked(field: Any, array: Any) -> Any:
    """A column without what no writer of these tables writes: a file may be of others, or damaged."""
    if array.null_count and not field.nullable:
        raise pa.ArrowInvalid(f"{field.name} is null")
    is_time = field.type == TIME
    if is_time or (field.name in _COUNTED and pa.types.is_integer(field.type)):
        least, greatest = _TIMES if is_time else (0, 2**63 - 1)
        for number in pc.min_max(array.cast(pa.int64())).as_py().values():
            if number is not None and not least <= number <= greatest:
                raise pa.ArrowInvalid(f"{field.name} is {number}")
    return array


def _wrong(where: Location, path: str, error: Exception) -> StoreError:
    """What is wrong with a file, or with its store: that is no reason to leave the file out."""
    if isinstance(error, StoreError):
        return error
    if isinstance(error, OSError) and error.errno not in {None, errno.ENOENT}:
        return StoreError(f"cannot read {where / path}: {reason_of(error)}")
    newest: list[DataFile] | None = None
    if isinstance(error, FileNotFoundError):
        with suppress(NoTableError):
            newest = Log(where).files()
    if newest is not None and all(file.path != path for file in newest):
        return CleanedUpError(
            f"cannot read {where / path}: a clean-up has deleted it since this began, as newer versions do"
            " without it: run this again. If it takes longer than replaced files stay, give history maintain"
            " a longer --retention"
        )
    return DamagedFileError(
        f"cannot read {where / path} ({str(error).splitlines()[0]}): put it back from a backup, or leave it"
        " out with --skip-bad (capture and import need it)"
    )
