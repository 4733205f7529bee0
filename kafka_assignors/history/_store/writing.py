"""Parquet files that tasks write themselves, with Arrow. They are nobody's until a table's log names them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Self
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_assignors.history import _limits as limits
from kafka_assignors.history._store.location import Location, StoreError, asking
from kafka_assignors.history._store.log import DataFile

MakeFiles = Callable[[str], "TaskFiles"]
"""Opens a task's files, given a name that is nobody else's."""
Task = Callable[[Iterator[Any], "TaskFiles | None"], Iterable[Any]]
"""What is done with batches of rows: it gives what it finds, and may write files."""

_FIND_BY: Final = ("group", "partition", "offset", "time", "timestamp", "generation", "type")
"""Columns whose least and greatest values are in the files, and of numbers and times in the log, too."""
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
                yield combined(waiting)
                waiting, waits = [], 0
    if waiting:
        yield combined(waiting)


def combined(batches: list[Any]) -> Any:
    """Batches as one."""
    if len(batches) == 1:
        return batches[0]
    (batch,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return batch


class TaskFiles:
    """Writes one file for each folder that gets rows, while it is entered; its name is nobody else's.

    Large batches are row groups as they are, rows of small ones are collected first. Compressed by zstd,
    records take a tenth more CPU than by snappy, and little more than half the room.
    """

    def __init__(self, where: Location, name: str, *, prefix: str = "") -> None:
        self._where = where
        self._name = f"{prefix}{name}"
        self._open: dict[str, _OpenFile] = {}
        self._waiting: dict[str, list[Any]] = {}
        self._sizes: dict[str, int] = {}
        self.written: dict[str, DataFile] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self._discard(error)
            return
        try:
            for table in [*self._waiting]:
                self._write_waiting(table)
            for table, one in self._open.items():
                with asking(f"write {self._where / one.path}"):
                    self.written[table] = one.end()
        except BaseException as failed:
            self._discard(failed)
            raise

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
            # Arrow takes some kB for a row, too.
            self._sizes[table] = self._sizes.get(table, 0) + max(batch.nbytes, 4096)
            if self._sizes[table] >= limits.MOST_WAITING:
                self._write_waiting(table)

    def _write_waiting(self, table: str) -> None:
        self._sizes.pop(table, None)
        if waiting := self._waiting.pop(table, []):
            self.write_group(table, combined(waiting))

    def write_group(self, table: str, batch: Any) -> None:
        """Add a row group to the file of a table."""
        path = f"{table}/{self._name}.parquet".removeprefix("/")
        with asking(f"write {self._where / path}"):
            if table not in self._open:
                self._open[table] = _OpenFile(self._where, path)
            self._open[table].write(batch)


class _OpenFile:
    def __init__(self, where: Location, path: str) -> None:
        self.path = path
        self._writer: Any = None
        self._metadata: list[Any] = []
        if where.local is not None:
            (where.local / path).parent.mkdir(parents=True, exist_ok=True)
        self.sink = where.files().open_output_stream(path)

    def write(self, batch: Any) -> None:
        if self._writer is None:
            self._writer = pq.ParquetWriter(
                self.sink,
                batch.schema,
                compression="zstd",
                write_statistics=[name for name in _FIND_BY if name in batch.schema.names],
                store_schema=False,  # of dictionary-encoded strings no reader needs to know
                metadata_collector=self._metadata,
            )
        if batch.schema != self._writer.schema:
            batch = batch.cast(self._writer.schema)
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
        partition = dict(folder.split("=", 1) for folder in self.path.split("/")[:-1] if "=" in folder)
        return DataFile(self.path, size, metadata.num_rows, partition, least, greatest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What tasks found: rows, those of a group in order, and by table the files that they wrote."""

    rows: list[Any]
    files: dict[str, list[DataFile]] = field(default_factory=dict)


def run_task(batches: Iterator[Any], task: Task, files: MakeFiles | None) -> Outcome:
    """Do a task, whose files count if it ends. Attempts of one task can run at the same time."""
    with _memory_that_stays():
        if files is None:
            return Outcome(rows=[*task(batches, None)])
        with files(f"part-{uuid4().hex}") as opened:
            rows = [*task(batches, opened)]
        return Outcome(rows=rows, files={table: [file] for table, file in opened.written.items()})


@contextmanager
def _memory_that_stays() -> Iterator[None]:
    """Have Arrow take the C library's memory: its own is cleared again for each batch, a tenth of the CPU."""
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)
