"""A report on what an archive has: measured, replayed and read on Spark, shown as one page."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.topics import seen_and_names
from kafka_assignors.history._metrics import groups_of, measure, rebalances_of, record_of
from kafka_assignors.history._schemas import AS_IT_WAS
from kafka_assignors.history._snapshots import read_snapshots
from kafka_assignors.history._what_if.job import what_if
from kafka_assignors.history.report import (
    GroupHistory,
    GroupSummary,
    Limits,
    ReportData,
    WhatIf,
    shown_groups,
    write_report,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, Row

    from kafka_assignors.history._archive import Archive

ASSIGNORS: Final = ("range", "sticky", "cooperative-sticky", "kip848:uniform")
"""What groups are replayed with unless told otherwise."""

SCENARIOS: Final = (AS_IT_WAS, "static members")
"""How they are replayed unless told otherwise."""


def report_archive(
    archive: Archive,
    records: DataFrame,
    path: Path,
    *,
    assignors: Sequence[str] = ASSIGNORS,
    scenarios: Sequence[str] = SCENARIOS,
    limits: Limits | None = None,
) -> int:
    """Write a report.

    Args:
        archive: Where topics and the cluster's name are from.
        records: What it is on: see `Archive.read_groups`.
        path: The page.
        assignors: What to replay groups with; none, to replay nothing.
        scenarios: How to replay them; see `what_if`.
        limits: How much to show.

    Returns:
        How many bytes it has.

    Raises:
        ValueError: There is no such assignor or scenario, or there are no records.
    """
    topics = archive.topics()
    seen, names = seen_and_names(topics)
    pieces = measure(records, topics).persist(StorageLevel.DISK_ONLY)
    try:
        groups = [GroupSummary.from_row(zoned(row, "since", "until")) for row in groups_of(pieces).collect()]
        if not groups:
            raise ValueError("there is nothing to report on: no record of a group is meant")
        shown = shown_groups(groups, limits)
        replayed: list[WhatIf] = []
        if assignors:
            rows = what_if(
                records,
                assignors=assignors,
                scenarios=scenarios,
                topics=seen,
                topic_names=names,
            )
            replayed = [WhatIf.from_row(row.asDict()) for row in rows.collect()]
        found: dict[str, list[Rebalance]] = {}
        of_shown = rebalances_of(pieces).where(F.col("group").isin(shown))
        for row in of_shown.orderBy("group", "ended").toLocalIterator():
            found.setdefault(row["group"], []).append(Rebalance.from_row(zoned(row, "began", "ended")))
        data = ReportData(
            source=archive.description.cluster_id or str(archive.path),
            made=datetime.now(UTC),
            since=min(group.since for group in groups),
            until=max(group.until for group in groups),
            groups=groups,
            histories=_histories(records.where(F.col("group").isin(shown)), found, names),
            what_if=replayed,
        )
        return write_report(data, path, limits=limits)
    finally:
        pieces.unpersist()


def _histories(
    records: DataFrame, rebalances: Mapping[str, Sequence[Rebalance]], names: Mapping[str, str]
) -> Iterator[GroupHistory]:
    """Each group's records, one group after the other, as Spark hands them over."""
    rows = (
        records.withColumn("time_us", F.unix_micros("timestamp"))
        .orderBy("group", "partition", "offset")
        .toLocalIterator()
    )
    for group, its in groupby(rows, lambda row: row["group"]):
        yield GroupHistory(
            group=group,
            rebalances=rebalances.get(group, ()),
            snapshots=tuple(read_snapshots(map(record_of, its), names)),
        )


def zoned(row: Row, *times: str) -> dict[str, Any]:
    """A row whose times say that they are in UTC: PySpark hands them over in this machine's time zone."""
    fields = row.asDict(recursive=True)
    return fields | {name: fields[name].astimezone(UTC) for name in times}
