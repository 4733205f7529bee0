"""What an archive has, in short."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - its common name

from kafka_assignors._common.times import moment
from kafka_assignors.history._archive import group_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import SparkSession

    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._counts import Counts


@dataclass(frozen=True, kw_only=True)
class Info:
    """What an archive has.

    Attributes:
        counts: By source, how many records of each type; of the whole archive.
        since: When the first of the selected records was written; None if there are none.
        until: When the last was.
        groups: By group, how many of the selected records it has; the most first.
    """

    counts: Mapping[str, Counts]
    since: datetime | None
    until: datetime | None
    groups: Mapping[str, int]


def describe(
    spark: SparkSession,
    archive: Archive,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    groups: Sequence[str] = (),
) -> Info:
    """Count what is in an archive; see `Archive.read` for the selection."""
    records = archive.read(spark, since=since, until=until, groups=groups)
    found = (
        records.groupBy(group_of(F.col("key")).alias("group"))
        .agg(
            F.count("*").alias("records"),
            # As numbers: times would come in the time zone of this process.
            F.unix_micros(F.min("timestamp")).alias("since"),
            F.unix_micros(F.max("timestamp")).alias("until"),
        )
        .collect()
    )
    named = sorted(
        ((row["group"], row["records"]) for row in found if row["group"] is not None),
        key=lambda one: (-one[1], one[0]),
    )
    return Info(
        counts=archive.counts(spark),
        since=_moment(min((row["since"] for row in found), default=None)),
        until=_moment(max((row["until"] for row in found), default=None)),
        groups=dict(named),
    )


def _moment(micros: int | None) -> datetime | None:
    return None if micros is None else moment(micros)
