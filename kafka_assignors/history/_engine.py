"""Where the work on an archive's groups is done: in this process, or the same by Spark's tasks."""

import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._arrow import as_numpy, integers
from kafka_assignors.history._records import COLUMNS, GROUPED, UNIT, GroupTask, Order, Selection, each_group
from kafka_assignors.history._store.location import Location
from kafka_assignors.history._store.log import DataFile
from kafka_assignors.history._store.reading import Source, Split, through
from kafka_assignors.history._store.writing import MakeFiles, Outcome, Task, TaskFiles, run_task

SMALL: Final = 64 * 2**20
"""Bytes of files, compressed, that are read without Spark; see docs/history.md for what they take."""
SMALL_TO_REPLAY: Final = 8 * 2**20
"""The same if groups are replayed, too: of more, Spark on several cores soon makes up for its start."""
_SHARE: Final = 2 * 2**20  # bytes of files, compressed, whose records are sorted at a time
_SHARES: Final = 64
_ROOM: Final = 2**30  # bytes of these records: files of records that are much alike are small, too


class TooLargeError(KafkaAssignorsError, RuntimeError):
    """Records take more room than was to be expected of their files: they are Spark's to read."""


class Engine:
    """Where the work on an archive is done; see `Engine.local`, `Engine.spark` and `Engine.fitting`."""

    def __init__(self, *, most: float, master: str | None = None, progress: bool = True) -> None:
        self._most = most  # bytes of files that are read in this process
        self._master = master
        self._progress = progress

    @staticmethod
    def local() -> "Engine":
        """This process. It holds all records that are meant in memory, compressed."""
        return Engine(most=math.inf)

    @staticmethod
    def spark(master: str | None = None, *, progress: bool = True) -> "Engine":
        """Spark: the session that is there, or a new one of this master; see `spark_session`.

        On a terminal Spark shows how far it is, unless without `progress`.
        """
        return Engine(most=-1, master=master, progress=progress)

    @staticmethod
    def fitting(master: str | None = None, *, replaying: bool = False) -> "Engine":
        """This process for a small archive, unless a master is named or Spark is running; else Spark.

        If groups are `replaying`, that takes longer, so less is small.
        """
        if master is not None or _spark_is_there():
            return Engine.spark(master)
        return Engine(most=SMALL_TO_REPLAY if replaying else SMALL)

    def start(self) -> None:
        """Start Spark now, if nothing is to be done here: it takes over signals when it starts."""
        if self._most < 0:
            from kafka_assignors.history import _spark  # noqa: PLC0415 - takes seconds to import

            with _spark.running_spark(self._master, progress=self._progress):
                pass

    def map_groups(
        self, archive: Archive, selection: Selection, task: GroupTask, *, where: Location | None = None
    ) -> Outcome:
        """Call a function with the selected records of each group. It may write tables at a location.

        Raises:
            TooLargeError: Records take more memory than this process is to use.
            SparkError: Spark failed.
            JavaMissingError: Spark has no Java.
        """
        return self.map_sorted(archive, selection, each_group(task, selection.since_us), where=where)

    def map_sorted(
        self, archive: Archive, selection: Selection, task: Task, *, where: Location | None = None
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
                rows = source.batches() if order is None else _sorted(source, order, size)
                return run_task(rows, task, files)
            except TooLargeError:
                if self._most == math.inf:
                    raise
        from kafka_assignors.history import _spark  # noqa: PLC0415 - takes seconds to import

        with _spark.running_spark(self._master, progress=self._progress) as spark:
            return _spark.run(spark, split, task, files, order)


def size_of(files: Iterable[DataFile]) -> int:
    """How many bytes files have."""
    return sum(file.size for file in files)


def _sorted(source: Source, order: Order, size: float) -> Iterator[Any]:
    """The rows of a source in an order; but for one share, which is sorted, they are held compressed."""
    count = int(max(1, min(_SHARES, size // _SHARE))) if order.together else 1
    shares = [_Share(order.schema) for _ in range(count)]
    for batch in source.batches():
        number = np.zeros(batch.num_rows, dtype=np.int64)
        for name in order.together if count > 1 else ():
            values = batch[name].dictionary_encode(null_encoding="encode")
            hashes = [crc32(str(value).encode()) for value in values.dictionary.to_pylist()]
            number += np.array(hashes, dtype=np.int64)[as_numpy(values.indices)]
        number %= count
        apart = batch.take(integers(np.argsort(number, kind="stable").tolist())) if count > 1 else batch
        begin = 0
        for share, rows in zip(shares, np.bincount(number, minlength=count).tolist(), strict=True):
            if rows:
                share.add(apart.slice(begin, rows))
            begin += rows
    while shares:
        yield from in_order(shares.pop().rows(), order)


class _Share:
    """Rows, compressed. Of 70,000 records of 7 kB a command takes 470 MB so, else 1.2 GB, and as much CPU."""

    def __init__(self, schema: pa.Schema) -> None:
        self._sink = pa.BufferOutputStream()
        self._writer = pa.ipc.new_stream(
            self._sink, schema, options=pa.ipc.IpcWriteOptions(compression="lz4")
        )
        self._size = 0

    def add(self, batch: Any) -> None:
        self._size += batch.nbytes
        if self._size > _ROOM:
            raise TooLargeError(f"the records take more than {_ROOM:,} bytes")
        self._writer.write_batch(batch)

    def rows(self) -> Any:
        self._writer.close()
        return pa.ipc.open_stream(self._sink.getvalue()).read_all()


def in_order(records: Any, order: Order) -> Iterator[Any]:
    """The rows of a table, sorted."""
    table = records.combine_chunks()
    places = pc.sort_indices(table, [(name, "ascending") for name in order.columns])
    rows = max(1, len(places) * UNIT // max(1, table.nbytes))
    for first in range(0, len(places), rows):
        yield from table.take(places.slice(first, rows)).combine_chunks().to_batches()


def _spark_is_there() -> bool:
    """Whether Spark is running already, or this was started by spark-submit: then nothing is saved."""
    sql = sys.modules.get("pyspark.sql")
    is_active = sql is not None and sql.SparkSession.getActiveSession() is not None
    return is_active or "PYSPARK_GATEWAY_PORT" in os.environ
