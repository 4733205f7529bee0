"""The one way from an archive's records to what commands say of its groups.

    archive -> sorted by group -> decoded once -> one group's records at a time -> rows

The records of a group come to one task in their order, sorted by Spark, which spills to disk. Every command
but the tables goes this way, and once. What else it wants to know of a group it finds in the same snapshots.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import (
    Window,
    functions as F,  # noqa: N812 - as everybody calls it
)
from pyspark.sql.pandas.types import from_arrow_schema

from kafka_assignors.history._decoded import COLUMNS, read_batches
from kafka_assignors.history._pieces import LEAD_IN, HistoryPart
from kafka_assignors.history._schemas import KIP848_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from kafka_assignors._groups.snapshots import ArchivedRecord
    from kafka_assignors.history._pieces import Tell


def of_each_group(
    records: DataFrame, tell: Tell, schema: pa.Schema, *, window: int | None = None, tasks: int | None = None
) -> DataFrame:
    """What commands say of each group.

    Args:
        records: Records in schema ARCHIVE with a column `group`. Those without a key or a group are left out.
        tell: Works out rows of a group's records.
        schema: Of these rows.
        window: How many records of a classic group make up one window. Each begins with the last records of
            the one before. None for all of them. With it, how many records each group has is looked up at
            once, the rest when the result is used.
        tasks: Among how many tasks groups are shared out; Spark decides if None.
    """
    kept = records.where("`group` is not null and key is not null")
    named = ("group", "window", "lead_in", "last")
    parts = (_whole(kept) if window is None else _windows(kept, window)).select(
        *named,
        *(name for name in COLUMNS if name != "time_us"),
        F.unix_micros("timestamp").alias("time_us"),
    )
    keys = ("group", "window")
    shared = parts.repartition(*keys) if tasks is None else parts.repartition(tasks, *keys)
    ordered = shared.sortWithinPartitions(*keys, "partition", "offset")

    def tell_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for (group, *part), rows in groupby(_records(batches), key=lambda one: one[0]):
            number, lead_in, last = part
            its = (record for _, record in rows)
            for row in tell(group, HistoryPart(window=number, lead_in=lead_in, last=last), its):
                yield pa.RecordBatch.from_pylist([row], schema=schema)

    return ordered.mapInArrow(tell_all, from_arrow_schema(schema))


def _records(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[tuple[Any, ...], ArchivedRecord]]:
    """Each record with its group, window, lead-in, and whether it is the last window.

    Raises:
        RuntimeError: They do not come in the order that Spark was asked for: readers would pass some over.
    """
    before: tuple[Any, ...] = ()
    for batch, records in read_batches(batches):
        named = (batch.column(name).to_pylist() for name in ("group", "window", "lead_in", "last"))
        for part, record in zip(zip(*named, strict=True), records, strict=True):
            this = (*part, record.partition, record.offset)
            if before[:4] == part and this < before:
                raise RuntimeError(f"Spark gave the record {this} after {before}, in spite of its sort")
            before = this
            yield part, record


def _whole(kept: DataFrame) -> DataFrame:
    """Each record in the only window of its group."""
    return kept.withColumns(
        {"window": F.lit(0).cast("long"), "lead_in": F.lit(0).cast("long"), "last": F.lit(True)}
    )


def _windows(kept: DataFrame, window: int) -> DataFrame:
    """Each record with its window; at the end of one window it is in the next, too, to lead in."""
    sizes = kept.groupBy("group").agg(
        F.count("*").alias("size"), F.max(F.col("type").isin(*KIP848_TYPES)).alias("modern")
    )
    found = sizes.where((F.col("size") > 2 * window) & ~F.col("modern")).select("group", "size").collect()
    if not found:
        return _whole(kept)
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
    rest = _whole(kept.join(long, "group", "left_anti"))
    return rest.unionByName(cut)
