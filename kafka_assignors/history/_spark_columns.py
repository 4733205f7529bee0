"""Rows of an archive in Spark's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its common name

from kafka_assignors.history._counts import NO_TYPE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

KEPT: Final = f"(key IS NOT NULL OR type = {NO_TYPE})"
"""What is true of rows of ARCHIVE that are records, and not only their number; in SQL."""


def newest(rows: DataFrame) -> DataFrame:
    """Of each key the newest record, unless that says that it is gone: what compaction leaves in the end."""
    last = F.max_by(F.struct(*rows.columns), F.struct("partition", "offset"))
    return rows.groupBy("key").agg(last.alias("newest")).select("newest.*").where("value is not null")


def day_of(timestamp: Column) -> Column:
    """The day of a moment in UTC, in any time zone of the session."""
    return F.date_from_unix_date(F.floor(F.unix_micros(timestamp) / 86_400_000_000).cast("int"))


def in_days(rows: DataFrame, days_at_once: int) -> DataFrame:
    """Rows of ARCHIVE, those of a day in one task and in order."""
    days = rows.withColumn("day", day_of(F.col("timestamp"))).repartition(days_at_once, "day")
    return days.sortWithinPartitions("day", "partition", "offset")
