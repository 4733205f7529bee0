"""A Spark data source to write an archive to: its tasks decode what they get and write the tables themselves.

Each task reads its part of the archive once and writes the files of all tables. Through Spark's own writer,
which takes rows one by one, the assignments of 1,000,000 records alone took 75 s of CPU.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from kafka_assignors.history.schemas import ARCHIVE, GENERATIONS, MOVES, TABLES
from kafka_assignors.history.tables import fast, plain
from kafka_assignors.history.tables.decoded import kept
from kafka_assignors.history.tables.files import TableFiles, abort, commit, units, write_text
from kafka_assignors.history.tables.tracker import RUNS, Tracker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql.types import StructType

FORMAT: Final = "kafka_assignors_tables"
EACH_GENERATION: Final = "each_generation"
"""Where the rows of generations go first: one for each record."""
RUNS_OF_GROUPS: Final = "runs"
"""Where the ends of runs go; see `tracker`."""
ALL_MOVES: Final = "all_moves"
"""Where moves go that take the place of those that tasks found."""

_WIDE: Final = frozenset({"members", "assignments", "claims"})
"""Tables with many rows for each record."""
_SCHEMAS: Final = {**TABLES, EACH_GENERATION: GENERATIONS, RUNS_OF_GROUPS: RUNS, ALL_MOVES: MOVES}


def choose(decoder: str) -> str:
    """The decoder that is meant.

    Args:
        decoder: "fast", "plain", or "auto": fast if it was compiled.

    Raises:
        ValueError: There is no such decoder, or it was not compiled.
    """
    if decoder == "auto":
        return "fast" if fast.is_compiled() else "plain"
    if decoder not in ("fast", "plain"):
        raise ValueError(f"there is no decoder {decoder!r}, only 'auto', 'fast' and 'plain'")
    if decoder == "fast" and not fast.is_compiled():
        raise ValueError(
            "the fast decoder was not compiled when kafka-assignors was installed: install it where there is a C "
            "compiler, or use the decoder 'plain'"
        )
    return decoder


@dataclass(frozen=True, slots=True, kw_only=True)
class Written(WriterCommitMessage):
    """What a task wrote.

    Attributes:
        name: What its files are called.
        read: How many records it read.
        rows: How many rows it wrote, by table.
    """

    name: str
    read: int
    rows: Mapping[str, int]


class TablesSource(DataSource):
    """Takes rows in schema ARCHIVE, or those of one table.

    Options:
        path: The folder of the tables.
        summary: The file in it that is to say what was written.
        table: The table that the rows are of; without it they are an archive's.
        decoder: "fast" or "plain".
        names: The names of topics by id, as JSON.
    """

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return FORMAT

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002
        """A writer. It adds to what is there: no file has the name of another."""
        if "table" in self.options:
            write: Callable[[TableFiles, Iterator[Any]], int] = partial(_copy, table=self.options["table"])
        else:
            write = partial(
                _decode,
                decoder=self.options["decoder"],
                names=json.loads(self.options.get("names", "{}")),
            )
        return TablesWriter(path=self.options["path"], summary=self.options["summary"], write=write)


class TablesWriter(DataSourceArrowWriter):
    """Writes files in the tasks, and puts them in place in the end.

    Args:
        path: The folder.
        summary: The file in it that is to say what was written.
        write: What a task does; it returns how many records it read.
    """

    def __init__(self, *, path: str, summary: str, write: Callable[[TableFiles, Iterator[Any]], int]) -> None:
        self._path = path
        self._summary = summary
        self._write = write

    def write(self, iterator: Iterator[Any]) -> Written:
        """Write the files of a task."""
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        # Attempts of one task can run at the same time.
        name = f"part-{number:05d}-{uuid4().hex}"
        with TableFiles(self._path, name, wide=_WIDE) as files:
            read = self._write(files, iterator)
        return Written(name=name, read=read, rows=files.rows)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Put the files in place, and say what was written."""
        written = [message for message in messages if isinstance(message, Written)]
        commit(self._path, [(table, task.name) for task in written for table in task.rows])
        rows: Counter[str] = Counter()
        for task in written:
            rows.update(task.rows)
        told = {"read": sum(task.read for task in written), "rows": rows}
        write_text(self._path, self._summary, json.dumps(told))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002 - none is needed
        """Remove what was written."""
        abort(self._path)


def _decode(files: TableFiles, batches: Iterator[Any], *, decoder: str, names: Mapping[str, str]) -> int:
    is_fast = decoder == "fast"
    decode = fast.decode if is_fast else plain.decode
    tracker = Tracker(fast=is_fast)
    read = 0
    for unit in units(as_archived(batch) for batch in batches):
        decoded = decode(unit, names)
        read += int(kept(unit).size)
        files.write("moves", MOVES, tracker.add(decoded.pop("owners")))
        files.write(RUNS_OF_GROUPS, RUNS, tracker.ended())
        files.write(EACH_GENERATION, GENERATIONS, decoded.pop("generations"))
        for table, rows in decoded.items():
            files.write(table, TABLES[table], rows)
    tracker.end()
    files.write(RUNS_OF_GROUPS, RUNS, tracker.ended())
    return read


def _copy(files: TableFiles, batches: Iterator[Any], *, table: str) -> int:
    read = 0
    for batch in batches:
        files.write(table, _SCHEMAS[table], in_schema(batch, _SCHEMAS[table]))
        read += batch.num_rows
    return read


def as_archived(batch: Any) -> Any:
    """A batch from Spark in schema ARCHIVE."""
    return in_schema(batch, ARCHIVE)


def in_schema(batch: Any, schema: Any) -> Any:
    """A batch from Spark in a schema of ours: its times are in the session's zone, and its fields in any order."""
    arrays = [batch[field.name].cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
