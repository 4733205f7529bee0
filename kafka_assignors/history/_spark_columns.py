"""Rows of an archive in Spark's terms: which are meant, and what their keys say."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - its common name

from kafka_assignors._common.times import in_utc
from kafka_assignors.history._counts import NO_TYPE

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame

KEPT: Final = f"(key IS NOT NULL OR type = {NO_TYPE})"
"""What is true of rows of ARCHIVE that are records, and not only their number; in SQL."""


def selected(
    rows: DataFrame, since: datetime | None, until: datetime | None, groups: Sequence[str]
) -> DataFrame:
    """Of rows of ARCHIVE the records that are kept; see `Archive.read`."""
    rows = rows.where(KEPT)
    if since is not None:
        rows = rows.where(F.col("timestamp") >= F.lit(in_utc(since)))
    if until is not None:
        rows = rows.where(F.col("timestamp") < F.lit(in_utc(until)))
    if groups:
        rows = rows.where(group_of(F.col("key")).rlike(_expression(groups)))
    return rows


def newest(rows: DataFrame) -> DataFrame:
    """Of each key the newest record, unless that says that it is gone: what compaction leaves in the end."""
    last = F.max_by(F.struct(*rows.columns), F.struct("partition", "offset"))
    return rows.groupBy("key").agg(last.alias("newest")).select("newest.*").where("value is not null")


def group_of(key: Column) -> Column:
    """The group that a record's key names, worked out without Python; null if the key names none.

    All keys begin with the type, two bytes, and the group: its length in two bytes, and UTF-8.
    """
    size = F.conv(F.hex(F.substring(key, 3, 2)), 16, 10).cast("int")
    name = F.substring(key, F.lit(5), size).cast("string")
    is_whole = (F.length(key) >= 4) & (size <= 0x7FFF) & (F.length(key) >= size + 4)  # noqa: PLR2004 - as above
    return F.when(is_whole, F.try_validate_utf8(name))


def day_of(timestamp: Column) -> Column:
    """The day of a moment in UTC, in any time zone of the session."""
    return F.date_from_unix_date(F.floor(F.unix_micros(timestamp) / 86_400_000_000).cast("int"))


def in_days(rows: DataFrame, days_at_once: int) -> DataFrame:
    """Rows of ARCHIVE, those of a day in one task and in order."""
    days = rows.withColumn("day", day_of(F.col("timestamp"))).repartition(days_at_once, "day")
    return days.sortWithinPartitions("day", "partition", "offset")


def _expression(patterns: Sequence[str]) -> str:
    # Java's \Z, unlike Python's, is also before a line's end at the end.
    wholes = (fnmatch.translate(pattern).removesuffix(r"\Z").removesuffix(r"\z") for pattern in patterns)
    return "|".join(rf"\A{each}\z" for each in wholes)
