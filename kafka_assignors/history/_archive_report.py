"""A report on what an archive has, on Spark: each group is read once, measured, replayed, and shown."""

from __future__ import annotations

from datetime import UTC
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kafka_assignors._groups.saving import WhatIf
from kafka_assignors.history._chain import of_each_group
from kafka_assignors.history._metrics import WINDOW, groups_of
from kafka_assignors.history._stories import STORIES, check_groups, read_history, story_of, write_page
from kafka_assignors.history._what_if.job import (
    ASSIGNORS,
    SCENARIOS,
    check_wanted,
    replay_courses,
)
from kafka_assignors.history.report import (
    GroupHistory,
    GroupSummary,
    ReportLimits,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, Row

    from kafka_assignors.history._archive import Archive


def report_archive(
    archive: Archive,
    records: DataFrame,
    path: Path,
    *,
    assignors: Sequence[str] = ASSIGNORS,
    scenarios: Sequence[str] = SCENARIOS,
    limits: ReportLimits | None = None,
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
    parts = check_wanted(assignors, scenarios) if assignors else ()
    tell = story_of(archive.topics(), replayed=bool(parts))
    # What is replayed has to be read as a whole; what is not, in windows.
    told = of_each_group(records, tell, STORIES, window=None if parts else WINDOW)
    stories = told.persist(StorageLevel.DISK_ONLY)
    try:
        pieces = stories.where("piece is not null").select("piece.*")
        groups = [GroupSummary.from_row(zoned(row, "since", "until")) for row in groups_of(pieces).collect()]
        check_groups(groups)
        replayed: list[WhatIf] = []
        if parts:
            courses = stories.where("course is not null")
            few = len(groups) < records.sparkSession.sparkContext.defaultParallelism
            rows = replay_courses(courses, parts, split=few).collect()
            replayed = [WhatIf.from_row(row.asDict()) for row in rows]
        drawn = stories.where("states is not null")
        return write_page(
            archive,
            path,
            groups,
            replayed,
            lambda shown: _histories(drawn.where(F.col("group").isin(shown))),
            limits=limits,
        )
    finally:
        stories.unpersist()


def _histories(stories: DataFrame) -> Iterator[GroupHistory]:
    """Each group's rebalances and states, one group after the other, as Spark hands them over."""
    rows = stories.orderBy("group", "piece.window", "number").select("group", "states").toLocalIterator()
    for group, its in groupby(rows, lambda row: row["group"]):
        yield read_history(group, (row["states"] for row in its))


def zoned(row: Row, *times: str) -> dict[str, Any]:
    """A row whose times say that they are in UTC: PySpark hands them over in this machine's time zone."""
    fields = row.asDict(recursive=True)
    return fields | {name: fields[name].astimezone(UTC) for name in times}
