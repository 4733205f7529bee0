"""The Spark job that measures groups: from an archive's records to the tables REBALANCES and GROUPS.

The records of a group come to one task in their order, sorted by Spark, which spills to disk; a task holds
one group's state and one piece of what it found. Long histories of classic groups are cut into windows, which
go to several tasks: see `pieces`. Those of KIP-848 are not, as each of their records tells but a part of the
group.
"""

from __future__ import annotations

import shutil
from itertools import chain, groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import (
    Window,
    functions as F,  # noqa: N812 - as everybody calls it
)
from pyspark.sql.pandas.types import from_arrow_schema

from kafka_assignors._groups.topics import seen_and_names
from kafka_assignors.history._archive import file_uri
from kafka_assignors.history._pieces import LEAD_IN, PIECES, Part, activity_of, measure_part, piece_row
from kafka_assignors.history._schemas import GROUPS
from kafka_assignors.history._snapshots import ArchivedRecord

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from kafka_assignors._groups.activity import Activity
    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.topics import SeenTopic

WINDOW: Final = 2_000
"""How many records a window of a long history has."""

_CLASSIC: Final = 2
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
    kept = records.where("`group` is not null and key is not null")
    seen, names = seen_and_names(topics)

    def measure_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for (group, number), rows in groupby(_rows(batches), itemgetter("group", "window")):
            for piece, (activity, found) in enumerate(measure_window(rows)):
                row = piece_row(group, number, piece, activity, found)
                yield pa.RecordBatch.from_pylist([row], schema=PIECES)

    def measure_window(rows: Iterator[dict[str, Any]]) -> Iterator[tuple[Activity, list[Rebalance]]]:
        first = next(rows)
        part = Part(lead_in=first["lead_in"], last=first["last"])
        archived = map(record_of, chain([first], rows))
        return measure_part(archived, part, topics=seen, topic_names=names)

    windows = _windows(kept, window).select(
        *("group", "window", "lead_in", "last", "partition", "offset", "leader_epoch", "key", "value"),
        F.unix_micros("timestamp").alias("time_us"),
    )
    ordered = windows.repartition("group", "window").sortWithinPartitions(
        "group", "window", "partition", "offset"
    )
    return ordered.mapInArrow(measure_all, from_arrow_schema(PIECES))


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


def _windows(kept: DataFrame, window: int) -> DataFrame:
    """Each record with its window; at the end of one window it is in the next, too, to lead in."""
    sizes = kept.groupBy("group").agg(
        F.count("*").alias("size"), F.max(F.col("type") != _CLASSIC).alias("modern")
    )
    found = sizes.where((F.col("size") > 2 * window) & ~F.col("modern")).select("group", "size").collect()
    whole = {"window": F.lit(0).cast("long"), "lead_in": F.lit(0).cast("long"), "last": F.lit(True)}
    if not found:
        return kept.withColumns(whole)
    long = F.broadcast(kept.sparkSession.createDataFrame(found, "`group` string, size long"))
    order = Window.partitionBy("group").orderBy("partition", "offset")
    size, number, place = F.col("size"), F.col("number"), F.col("window")
    cut = (
        kept.join(long, "group")
        .withColumn("number", F.row_number().over(order) - 1)
        .withColumn(
            "window",
            F.explode(
                F.sequence(
                    F.floor(number / window),
                    F.least(F.floor((number + LEAD_IN) / window), F.floor((size - 1) / window)),
                )
            ),
        )
        .withColumns(
            {
                "lead_in": F.least(F.lit(LEAD_IN), place * window),
                "last": (place + 1) * window >= size,
            }
        )
        .drop("size", "number")
    )
    rest = kept.join(long, "group", "left_anti").withColumns(whole)
    return rest.unionByName(cut)


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    for batch in batches:
        for begin in range(0, batch.num_rows, _ROWS):
            yield from batch.slice(begin, _ROWS).to_pylist()


def record_of(row: Any) -> ArchivedRecord:
    """A row with the columns of ARCHIVE, and `time_us` for its timestamp, as a record."""
    return ArchivedRecord(
        # PySpark's own rows have bytearrays.
        key=bytes(row["key"]),
        value=None if row["value"] is None else bytes(row["value"]),
        partition=row["partition"],
        offset=row["offset"],
        time_us=row["time_us"],
        leader_epoch=row["leader_epoch"],
    )
