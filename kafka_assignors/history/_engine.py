"""Where the work on an archive's groups is done: in this process, or by Spark's tasks.

Both engines call the same functions with the same records (`_records`), so that they find the same.
"""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors.history._records import COLUMNS, ORDER, SELECTED, UNIT, EachGroup
from kafka_assignors.history._store.writing import TaskFiles, run_task

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._records import GroupTask, Selection
    from kafka_assignors.history._store.location import Location
    from kafka_assignors.history._store.log import DataFile
    from kafka_assignors.history._store.writing import Outcome, Task

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

    def __init__(self, *, most: float, master: str | None = None, doing: str = "") -> None:
        self._most = most  # bytes of files that are read in this process
        self._master = master
        self._doing = doing

    @staticmethod
    def local() -> Engine:
        """This process. It holds all records that are meant in memory, up to 1 GiB."""
        return Engine(most=math.inf)

    @staticmethod
    def spark(master: str | None = None, *, doing: str = "working") -> Engine:
        """Spark: the session that is there, or a new one; see `spark_session`.

        Args:
            master: Spark's master, such as spark://...; all cores of this machine by default.
            doing: What a terminal shows meanwhile.
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

    def map_groups(
        self,
        archive: Archive,
        selection: Selection,
        task: GroupTask,
        *,
        where: Location | None = None,
    ) -> Outcome:
        """Call a function with the records of each group.

        Args:
            archive: The archive.
            selection: Which of its records.
            task: The function; with Spark, it is sent to other processes.
            where: The place of the tables that it writes; None if it writes none.

        Raises:
            TooLargeError: Records take more memory than this process is to use.
            SparkError: Spark failed.
            JavaMissingError: Spark has no Java.
        """
        return self.map_sorted(archive, selection, EachGroup(task, selection.since_us), where=where)

    def map_sorted(
        self,
        archive: Archive,
        selection: Selection,
        task: Task,
        *,
        where: Location | None = None,
    ) -> Outcome:
        """As `map_groups`, with batches of many groups' records in schema SELECTED, sorted by `ORDER`."""
        if self._reads(archive.files_of(selection)):
            try:
                files = None if where is None else TaskFiles(where, f"part-{uuid4().hex}")
                return run_task(_in_order(_all_of(archive, selection)), task, files)
            except TooLargeError:
                if self._most == math.inf:
                    raise
        from kafka_assignors.history import _spark  # noqa: PLC0415 - takes seconds to import

        with _spark.running_spark(self._master, self._doing) as spark:
            return _spark.map_sorted(spark, archive, selection, task, where=where)

    def map_rows(self, archive: Archive, columns: Sequence[str], task: Task) -> Outcome:
        """Call a function with batches of all of an archive's rows, in any order, with some columns."""
        if self._reads(archive.files()):
            return run_task(archive.batches(archive.files(), columns), task, None)
        from kafka_assignors.history import _spark  # noqa: PLC0415 - as above

        with _spark.running_spark(self._master, self._doing) as spark:
            return _spark.map_rows(spark, archive, columns, task)

    def _reads(self, files: Iterable[DataFile]) -> bool:
        """Whether this process reads these files itself."""
        return sum(file.size for file in files) <= self._most


def _all_of(archive: Archive, selection: Selection) -> Any:
    parts: list[Any] = []
    size = 0
    for part in selection.of(archive.batches(archive.files_of(selection), COLUMNS)):
        parts.append(part)
        size += part.nbytes
        if size > _ROOM:
            raise TooLargeError(f"the records of {archive.where} take more than {_ROOM:,} bytes")
    return pa.Table.from_batches(parts, SELECTED)


def _in_order(records: Any) -> Iterator[Any]:
    table = records.combine_chunks()
    order = pc.sort_indices(table, [(name, "ascending") for name in ORDER])
    rows = max(1, len(order) * UNIT // max(1, table.nbytes))
    for first in range(0, len(order), rows):
        yield from table.take(order.slice(first, rows)).combine_chunks().to_batches()


def _spark_is_there() -> bool:
    """Whether Spark is running already, or this was started by spark-submit: then nothing is saved."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return True
    sql: Any = sys.modules.get("pyspark.sql")
    return sql is not None and sql.SparkSession.getActiveSession() is not None
