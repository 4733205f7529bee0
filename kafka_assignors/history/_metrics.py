"""The Spark job that measures groups: from an archive's records to the tables REBALANCES and GROUPS.

A task holds one group's state and one piece of what it found. Long histories of classic groups are cut into
windows, which go to several tasks: see `pieces`. Those of KIP-848 are not, as each of their records tells but
a part of the group.
"""

from __future__ import annotations

import shutil
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema

from kafka_assignors._groups.topics import seen_and_names
from kafka_assignors.history._archive import file_uri
from kafka_assignors.history._chain import of_each_group
from kafka_assignors.history._pieces import PIECES, activity_of, measure_part, piece_row
from kafka_assignors.history._schemas import GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from kafka_assignors._groups.snapshots import ArchivedRecord
    from kafka_assignors._groups.topics import SeenTopic
    from kafka_assignors.history._pieces import HistoryPart

WINDOW: Final = 2_000
"""How many records a window of a long history has."""

_ROWS: Final = 256  # that are made of Arrow's columns at once


def write_metrics(records: DataFrame, topics: Sequence[SeenTopic], folder: Path) -> None:
    """Measure all groups, and write the tables `rebalances` and `groups` as Parquet.

    Args:
        records: See `measure`.
        topics: See `measure`.
        folder: Where to; tables that are there are replaced.
    """
    pieces = measure(records, topics).persist(StorageLevel.DISK_ONLY)
    try:
        write_pieces(pieces, folder)
    finally:
        pieces.unpersist()


def write_pieces(pieces: DataFrame, folder: Path) -> None:
    """Write what was measured as the tables `rebalances` and `groups`; those of before stay until then."""
    for name, table in (("rebalances", rebalances_of(pieces)), ("groups", groups_of(pieces))):
        staged = folder / f".{name}-{uuid4().hex}"
        try:
            table.write.parquet(file_uri(staged))
            shutil.rmtree(folder / name, ignore_errors=True)
            staged.rename(folder / name)
        finally:
            shutil.rmtree(staged, ignore_errors=True)


def measure(records: DataFrame, topics: Sequence[SeenTopic] = (), *, window: int = WINDOW) -> DataFrame:
    """Measure all groups.

    How many records each group has is looked up at once, the rest when the result is used.

    Args:
        records: Records in schema ARCHIVE with a column `group`. Those without a key or a group are left out.
            A record that is there twice counts once.
        topics: The cluster's topics, as `Archive.topics` gives them.
        window: How many records of a classic group are measured in one go.

    Returns:
        Pieces, in schema PIECES; see `rebalances_of` and `groups_of`. It is worth persisting.
    """
    seen, names = seen_and_names(topics)

    def measure_window(
        group: str, part: HistoryPart, records: Iterator[ArchivedRecord]
    ) -> Iterator[dict[str, Any]]:
        found = measure_part(records, part, topics=seen, topic_names=names)
        for number, (activity, rebalances) in enumerate(found):
            yield piece_row(group, part.window, number, activity, rebalances)

    return of_each_group(records, measure_window, PIECES, window=window)


def rebalances_of(pieces: DataFrame) -> DataFrame:
    """The table REBALANCES."""
    return pieces.select(F.explode("rebalances").alias("one")).select("one.*")


def groups_of(pieces: DataFrame) -> DataFrame:
    """The table GROUPS."""

    def add_up(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for group, rows in groupby(_rows(batches), itemgetter("group")):
            total, *later = map(activity_of, rows)
            for one in later:
                total.add_later(one)
            yield pa.RecordBatch.from_pylist([total.row(group)], schema=GROUPS)

    small = pieces.drop("rebalances").withColumns({name: F.unix_micros(name) for name in ("since", "until")})
    ordered = small.repartition("group").sortWithinPartitions("group", "window", "number")
    return ordered.mapInArrow(add_up, from_arrow_schema(GROUPS))


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for begin in range(0, batch.num_rows, _ROWS):
            yield from batch.slice(begin, _ROWS).to_pylist()
