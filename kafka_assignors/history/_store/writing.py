"""Parquet files that Spark's tasks write themselves, with Arrow, into the tables' own folders.

A file is nobody's until a table's log names it: a task that failed leaves files that are cleaned up later.
Through Spark's own writer, which takes rows one by one, the assignments of 1,000,000 records alone took 75 s
of CPU.
"""

from __future__ import annotations

import pickle
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_assignors.history import _limits as limits
from kafka_assignors.history._store.location import StoreError, asking
from kafka_assignors.history._store.log import DataFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyspark.sql import DataFrame

    from kafka_assignors.history._store.location import Location

    Task = Callable[[Iterator[Any], "TaskFiles | None"], Iterable[Any]]

_FIND_BY: Final = ("group", "partition", "offset", "time", "timestamp", "generation", "type")
"""Columns whose least and greatest values are written for each row group, so that readers can skip it. Those
of numbers and times are in the table's log for each file, too.
"""
TASK_FILE: Final = r"part-(\d{5}-)?[0-9a-f]{32}\.parquet"
"""Expression for what tasks call the files of tables."""


def units(batches: Iterable[Any], size: int) -> Iterator[Any]:
    """Put small batches together and cut large ones up, to some of about so many bytes each."""
    waiting: list[Any] = []
    waits = 0
    for batch in batches:
        rows = max(1, batch.num_rows * size // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, rows):
            part = batch.slice(start, rows)
            waiting.append(part)
            waits += part.nbytes
            if waits >= size:
                yield _combined(waiting)
                waiting, waits = [], 0
    if waiting:
        yield _combined(waiting)


def _combined(batches: list[Any]) -> Any:
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


class TaskFiles:
    """Writes one file for each folder that gets rows, while it is entered; `name` is nobody else's.

    Large batches are row groups as they are. Rows of small ones are collected first, so that row groups are
    not too small. zstd takes a third more CPU for all the writing than snappy, and half the room.
    """

    def __init__(self, where: Location, name: str, *, compression: str = "snappy") -> None:
        self._where = where
        self._name = name
        self._compression = compression
        self._open: dict[str, _OpenFile] = {}
        self._waiting: dict[str, list[Any]] = {}
        self.written: dict[str, DataFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            if error is None:
                self._end()
        except BaseException as failed:
            error = failed
            raise
        finally:
            if error is not None:
                self._discard(error)

    def _end(self) -> None:
        for table in [*self._waiting]:
            self._write_waiting(table)
        for table, one in self._open.items():
            with asking(f"write {self._where / one.path}"):
                self.written[table] = one.end()

    def _discard(self, error: BaseException) -> None:
        if isinstance(error, StoreError) and self._where.local is None:
            return  # it was asked for long enough, and what it has is nobody's
        with ExitStack() as stack:
            stack.callback(self._where.remove, [one.path for one in self._open.values()])
            for one in self._open.values():
                stack.callback(one.sink.close)

    def write(self, table: str, schema: Any, batch: Any) -> None:
        """Add rows to a table; strings of the batch can be dictionary-encoded."""
        if batch.nbytes >= limits.LARGE_BATCH:
            self._write_waiting(table)
            self.write_group(table, batch)
        elif batch.num_rows:
            waiting = self._waiting.setdefault(table, [])
            waiting.append(batch.cast(schema))
            rows, size = sum(one.num_rows for one in waiting), sum(one.nbytes for one in waiting)
            if rows >= limits.LEAST_ROWS or size >= limits.MOST_WAITING:
                self._write_waiting(table)

    def _write_waiting(self, table: str) -> None:
        if waiting := self._waiting.pop(table, []):
            self.write_group(table, _combined(waiting))

    def write_group(self, table: str, batch: Any) -> None:
        """Add a row group to the file of a table."""
        path = f"{table}/{self._name}.parquet".removeprefix("/")
        with asking(f"write {self._where / path}"):
            if table not in self._open:
                self._open[table] = _OpenFile(self._where, path, batch.schema, self._compression)
            self._open[table].write(batch)


class _OpenFile:
    """A file that is being written."""

    def __init__(self, where: Location, path: str, schema: Any, compression: str) -> None:
        self.path = path
        self._rows = 0
        self._metadata: list[Any] = []
        if where.local is not None:
            (where.local / path).parent.mkdir(parents=True, exist_ok=True)
        self.sink = where.files().open_output_stream(path)
        try:
            self._writer = pq.ParquetWriter(  # writes the file's first bytes
                self.sink,
                schema,
                compression=compression,
                # Of numbers a dictionary takes more time than it saves room; of dictionary-encoded strings no
                # reader needs to know.
                use_dictionary=[path for field in schema for path in _text_columns(field)],
                write_statistics=[name for name in _FIND_BY if name in schema.names],
                store_schema=False,
                metadata_collector=self._metadata,
            )
        except BaseException:
            where.remove([path])
            raise

    def write(self, batch: Any) -> None:
        if batch.schema != self._writer.schema:
            batch = batch.cast(self._writer.schema)
        self._rows += batch.num_rows
        self._writer.write_batch(batch, row_group_size=batch.num_rows)

    def end(self) -> DataFile:
        self._writer.close()
        least: dict[str, Any] = {}
        greatest: dict[str, Any] = {}
        (metadata,) = self._metadata
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            for column in map(group.column, range(group.num_columns)):
                name, found = column.path_in_schema, column.statistics
                if found is not None and found.has_min_max and not isinstance(found.min, (str, bytes)):
                    least[name] = min(found.min, least.get(name, found.min))
                    greatest[name] = max(found.max, greatest.get(name, found.max))
        size = self.sink.tell()
        self.sink.close()
        folders = self.path.split("/")[:-1]
        values = dict(folder.split("=", 1) for folder in folders if "=" in folder)
        return DataFile(self.path, size, self._rows, values, least, greatest)


def _text_columns(field: Any) -> list[str]:
    """The column in Parquet that a field's strings are in, if it has any."""
    is_list = pa.types.is_list(field.type)
    kind = field.type.value_type if is_list else field.type
    if not pa.types.is_string(kind) and not pa.types.is_dictionary(kind):
        return []
    return [f"{field.name}.list.{field.type.value_field.name}" if is_list else field.name]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What tasks found.

    Attributes:
        rows: Their rows; those of a group are one task's, and in order.
        files: By table, the files that they wrote, relative to the place of all.
    """

    rows: list[Any]
    files: Mapping[str, list[DataFile]] = field(default_factory=dict)


def run_task(batches: Iterator[Any], task: Task, files: TaskFiles | None) -> Outcome:
    """Do a task, whose files count if it ends."""
    if files is None:
        return Outcome(rows=[*task(batches, None)])
    with files:
        rows = [*task(batches, files)]
    return Outcome(rows=rows, files={table: [file] for table, file in files.written.items()})


def run_tasks(
    rows: DataFrame, task: Task, files: Callable[[str], TaskFiles] | None, prefix: str = ""
) -> Outcome:
    """Have Spark do tasks, each with files of the name that `files` gets, if any are to be written."""
    found: dict[str, list[DataFile]] = {}
    returned: list[Any] = []
    run = partial(_run, task=task, files=files, prefix=prefix)
    for (pickled,) in rows.mapInArrow(run, "outcome binary").collect():
        done: Outcome = pickle.loads(pickled)  # noqa: S301 - `_run` made it
        returned += done.rows
        for table, some in done.files.items():
            found.setdefault(table, []).extend(some)
    return Outcome(rows=returned, files=found)


def _run(
    batches: Iterator[Any], *, task: Task, files: Callable[[str], TaskFiles] | None, prefix: str
) -> Iterator[Any]:
    from pyspark import TaskContext  # noqa: PLC0415 - tables are written without, too

    context = TaskContext.get()
    number = 0 if context is None else context.partitionId()
    # Attempts of one task can run at the same time.
    name = f"{prefix}part-{number:05d}-{uuid4().hex}"
    done = run_task(batches, task, None if files is None else files(name))
    yield pa.RecordBatch.from_pydict({"outcome": [pickle.dumps(done)]})
