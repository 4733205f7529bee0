"""Where the work on an archive's groups is done: in this process, or by Spark's tasks.

Both engines call the same functions with the same records (`_records`), so that they find the same.
"""

from __future__ import annotations

import math
import os
import sys
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors.history._records import COLUMNS, GROUPED, UNIT, each_group
from kafka_assignors.history._store.reading import through
from kafka_assignors.history._store.writing import Task, TaskFiles, run_task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._records import GroupTask, Order, Selection
    from kafka_assignors.history._store.location import Location
    from kafka_assignors.history._store.log import DataFile
    from kafka_assignors.history._store.reading import Source, Split
    from kafka_assignors.history._store.writing import MakeFiles, Outcome

SMALL: Final = 64 * 2**20
"""Bytes of files, compressed, that are read without Spark; see docs/history.md for what they take."""
SMALL_TO_REPLAY: Final = 8 * 2**20
"""The same if groups are replayed, too: of more, Spark on several cores soon makes up for its start."""
_ROOM: Final = 2**30
"""Bytes of records that are held at most: files of records that are much alike are small, too."""


class TooLargeError(KafkaAssignorsError, RuntimeError):
    """Records take more room than was to be expected of their files: they are Spark's to read."""


class Engine:
    """Where the work on an archive is done; see `Engine.local`, `Engine.spark` and `Engine.fitting`."""

    def __init__(self, *, most: float, master: str | None = None, doing: str | None = None) -> None:
        self._most = most  # bytes of files that are read in this process
        self._master = master
        self._doing = doing

    @staticmethod
    def local() -> Engine:
        """This process. It holds all records that are meant in memory, up to 1 GiB."""
        return Engine(most=math.inf)

    @staticmethod
    def spark(master: str | None = None, *, doing: str | None = "working") -> Engine:
        """Spark: the session that is there, or a new one; see `spark_session`.

        Args:
            master: Spark's master, such as spark://...; all cores of this machine by default.
            doing: What a terminal shows meanwhile; nothing if None.
        """
        return Engine(most=-1, master=master, doing=doing)

    @staticmethod
    def fitting(master: str | None = None, *, doing: str = "working", replaying: bool = False) -> Engine:
        """This process for a small archive, unless a master is named or Spark is running; else Spark.

        Args:
            master: See `spark`.
            doing: See `spark`.
            replaying: Whether groups are to be replayed: that takes longer, so less is small then.
        """
        if master is not None or _spark_is_there():
            return Engine.spark(master, doing=doing)
        return Engine(most=SMALL_TO_REPLAY if replaying else SMALL, doing=doing)

    def start(self) -> None:
        """Start Spark now, if nothing is to be done here: it takes over signals when it starts."""
        if self._most < 0:
            from kafka_assignors.history import _spark  # noqa: PLC0415 - takes seconds to import

            with _spark.running_spark(self._master, None):
                pass

    def map_groups(
        self,
        archive: Archive,
        selection: Selection,
        task: GroupTask,
        schema: pa.Schema,
        *,
        where: Location | None = None,
    ) -> Outcome:
        """Call a function with the records of each group.

        Args:
            archive: The archive.
            selection: Which of its records.
            task: The function; with Spark, it is sent to other processes.
            schema: The columns of the rows that it gives.
            where: The location of the tables that it writes; None if it writes none.

        Raises:
            TooLargeError: Records take more memory than this process is to use.
            SparkError: Spark failed.
            JavaMissingError: Spark has no Java.
        """
        groups = Task(each_group(task, selection.since_us), schema)
        return self.map_sorted(archive, selection, groups, where=where)

    def map_sorted(
        self,
        archive: Archive,
        selection: Selection,
        task: Task,
        *,
        where: Location | None = None,
    ) -> Outcome:
        """As `map_groups`, with batches of many groups' records in schema SELECTED, sorted by `GROUPED`."""
        files = archive.files_of(selection)
        split = through(archive.split(files, COLUMNS), selection.of)
        made = None if where is None else partial(TaskFiles, where)
        return self.run(split, task, made, order=GROUPED, size=size_of(files))

    def map_rows(self, archive: Archive, columns: Sequence[str], task: Task) -> Outcome:
        """Call a function with batches of all of an archive's rows, in any order, with some columns."""
        files = archive.files()
        return self.run(archive.split(files, columns), task, size=size_of(files))

    def run(
        self,
        split: Split,
        task: Task,
        files: MakeFiles | None = None,
        *,
        order: Order | None = None,
        size: float = math.inf,
    ) -> Outcome:
        """Call a function with batches of rows, in an order if one is given; files take `size` bytes."""
        if size <= self._most:
            try:
                source = split(1)
                rows = source.batches() if order is None else in_order(_all_of(source, order.schema), order)
                return run_task(rows, task, files)
            except TooLargeError:
                if self._most == math.inf:
                    raise
        from kafka_assignors.history import _spark  # noqa: PLC0415 - takes seconds to import

        with _spark.running_spark(self._master, self._doing) as spark:
            return _spark.run(spark, split, task, files, order)


def size_of(files: Iterable[DataFile]) -> int:
    """How many bytes files have."""
    return sum(file.size for file in files)


def _all_of(source: Source, schema: pa.Schema) -> Any:
    parts: list[Any] = []
    size = 0
    for part in source.batches():
        parts.append(part)
        size += part.nbytes
        if size > _ROOM:
            raise TooLargeError(f"the records take more than {_ROOM:,} bytes")
    return pa.Table.from_batches(parts, schema)


def in_order(records: Any, order: Order) -> Iterator[Any]:
    """The rows of a table, sorted."""
    table = records.combine_chunks()
    places = pc.sort_indices(table, [(name, "ascending") for name in order.columns])
    rows = max(1, len(places) * UNIT // max(1, table.nbytes))
    for first in range(0, len(places), rows):
        yield from table.take(places.slice(first, rows)).combine_chunks().to_batches()


def _spark_is_there() -> bool:
    """Whether Spark is running already, or this was started by spark-submit: then nothing is saved."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return True
    if "pyspark.sql" not in sys.modules:
        return False
    from kafka_assignors.history import _spark  # noqa: PLC0415 - as above

    return _spark.is_active()
