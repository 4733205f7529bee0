"""A report on an archive: each group is measured, replayed and drawn in one go over its records."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from os import fspath
from pathlib import Path
from typing import Any

from kafka_assignors._common.files import write_whole
from kafka_assignors._groups.activity import GroupFollower
from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot
from kafka_assignors._groups.topics import TopicsSeen, seen_and_names
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._metrics import GroupSummary, rebalances_of
from kafka_assignors.history._records import Selection, each_group
from kafka_assignors.history._report.drawing import ReportedGroup, draw, restlessness
from kafka_assignors.history._report.page import render
from kafka_assignors.history._snapshots import SnapshotReader
from kafka_assignors.history._what_if.course import CourseBuilder, bare
from kafka_assignors.history._what_if.job import ASSIGNORS, SCENARIOS, Wanted, check_wanted, replay_all


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """A report that was written.

    Attributes:
        page: The HTML file.
        bytes: Its size.
    """

    page: str
    bytes: int


def report_archive(
    archive: Archive,
    page: str | os.PathLike[str],
    *,
    assignors: Sequence[str] = ASSIGNORS,
    scenarios: Sequence[str] = SCENARIOS,
    since: datetime | None = None,
    until: datetime | None = None,
    groups: Sequence[str] = (),
    engine: Engine | None = None,
) -> ReportPage:
    """Write a report into an HTML file; without assignors, nothing is replayed.

    `assignors` and `scenarios` are those of `what_if`, all other arguments those of `metrics`.

    Raises:
        ValueError: There is no such assignor or scenario, the page cannot be there, or there are no records.
        SparkError: Spark failed.
    """
    path = _checked(Path(page))
    topics, names = seen_and_names(archive.topics())
    selection = Selection(since=since, until=until, groups=groups, commits=bool(assignors))
    group_task = partial(
        report_group,
        wanted=check_wanted(assignors, scenarios) if assignors else (),
        topics=topics,
        topic_names=names,
    )
    task = partial(_most_restless, each=each_group(group_task, selection.since_us))
    engine = engine or Engine.fitting(replaying=bool(assignors))
    groups_found = engine.map_sorted(archive, selection, task).rows
    if not groups_found:
        raise ValueError("nothing to report on: the archive has no records of these groups at that time")
    source = archive.description.cluster_id or str(archive.where)
    content = render(groups_found, source=source, made=datetime.now(UTC), asked=since).encode()
    write_whole(path, content)
    return ReportPage(page=fspath(page), bytes=len(content))


def _checked(page: Path) -> Path:
    if not page.absolute().parent.is_dir():
        raise ValueError(f"there is no folder for the page {page}: make it, or name another")
    if page.is_dir():
        raise ValueError(f"{page} is a folder, and the page is a file: write {page / 'groups.html'}")
    return page


def report_group(
    group: str,
    records: Iterable[ArchivedRecord],
    _: object = None,
    *,
    wanted: Wanted,
    topics: TopicsSeen,
    topic_names: Mapping[str, str],
) -> Iterator[ReportedGroup]:
    """Measure, replay and draw one group."""
    reader, measured = SnapshotReader(topic_names), GroupFollower(topics)
    course = CourseBuilder(group, topics)
    states: list[Snapshot] = []

    def keep(snapshot: Snapshot) -> None:
        # Held until the group is over: without what is not drawn.
        drawn = tuple([bare(one, one.assignment) for one in snapshot.members])
        states.append(replace(snapshot, members=drawn))
        if wanted:
            course.add(snapshot)

    rebalances = [*rebalances_of(course.commits.without(records), reader, measured, keep)]
    replayed = replay_all(course.build(), wanted, reader.rejected) if wanted else []
    if measured.activity is not None:
        yield ReportedGroup(
            summary=GroupSummary.of(measured.activity.row(group)),
            what_if=replayed,
            drawing=draw(rebalances, states),
        )


def _most_restless(
    batches: Iterator[Any], files: None, *, each: Callable[..., Iterator[ReportedGroup]]
) -> Iterator[ReportedGroup]:
    """All groups of a task; its most restless alone keep their drawings."""
    found = sorted(each(batches, files), key=lambda one: restlessness(one.summary))
    yield from found[: limits.GROUPS_DRAWN]
    yield from (replace(one, drawing=None) for one in found[limits.GROUPS_DRAWN :])
