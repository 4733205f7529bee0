"""A report on what an archive has, on Spark: each group is read once, measured, replayed, and shown."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from kafka_assignors._groups.saving import WhatIf
from kafka_assignors._groups.snapshots import Snapshot, SnapshotMember, make_member
from kafka_assignors._groups.topics import seen_and_names
from kafka_assignors.history._chain import of_each_group
from kafka_assignors.history._metrics import WINDOW, groups_of
from kafka_assignors.history._pieces import PIECES, measure_part, piece_row
from kafka_assignors.history._snapshots import SnapshotReader
from kafka_assignors.history._what_if.job import (
    ASSIGNORS,
    SCENARIOS,
    CourseFollower,
    check_wanted,
    replay_courses,
)
from kafka_assignors.history.report import (
    GroupHistory,
    GroupSummary,
    Limits,
    ReportData,
    shown_groups,
    write_report,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, Row

    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.snapshots import ArchivedRecord
    from kafka_assignors._groups.topics import TopicsSeen
    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._pieces import HistoryPart

_STORIES: Final = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("piece", pa.struct(list(PIECES))),
        pa.field("states", pa.binary()),
        pa.field("course", pa.binary()),
    ]
)
"""What was read of a group: a piece of what was measured, with the rebalances and states of that piece to be
drawn, or a piece of its course."""


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
    parts = check_wanted(assignors, scenarios) if assignors else ()
    seen, names = seen_and_names(archive.topics())

    def tell(group: str, part: HistoryPart, its: Iterator[ArchivedRecord]) -> Iterator[dict[str, Any]]:
        return tell_group(group, part, its, topics=seen, topic_names=names, replayed=bool(parts))

    # What is replayed has to be read as a whole; what is not, in windows.
    told = of_each_group(records, tell, _STORIES, window=None if parts else WINDOW)
    stories = told.persist(StorageLevel.DISK_ONLY)
    try:
        pieces = stories.where("piece is not null").select("piece.*")
        groups = [GroupSummary.from_row(zoned(row, "since", "until")) for row in groups_of(pieces).collect()]
        if not groups:
            raise ValueError("there is nothing to report on: no record of a group is meant")
        replayed: list[WhatIf] = []
        if parts:
            courses = stories.where("course is not null")
            few = len(groups) < records.sparkSession.sparkContext.defaultParallelism
            rows = replay_courses(courses, parts, split=few).collect()
            replayed = [WhatIf.from_row(row.asDict()) for row in rows]
        data = ReportData(
            source=archive.description.cluster_id or str(archive.where),
            made=datetime.now(UTC),
            since=min(group.since for group in groups),
            until=max(group.until for group in groups),
            groups=groups,
            histories=_histories(stories.where(F.col("group").isin(shown_groups(groups, limits)))),
            what_if=replayed,
        )
        return write_report(data, path, limits=limits)
    finally:
        stories.unpersist()


def tell_group(
    group: str,
    part: HistoryPart,
    records: Iterable[ArchivedRecord],
    *,
    topics: TopicsSeen,
    topic_names: Mapping[str, str],
    replayed: bool,
) -> Iterator[dict[str, Any]]:
    """All that a report wants to know of a group, or a part of its history, in one go over its records.

    Args:
        group: The group.
        part: Which part it is.
        records: Its records by partition and offset.
        topics: How many partitions topics had.
        topic_names: The name of each topic by its id.
        replayed: Whether its course is wanted.

    Yields:
        Rows of `_STORIES`.
    """
    reader, course = SnapshotReader(topic_names), CourseFollower(group) if replayed else None
    states: list[Snapshot] = []

    def also(snapshot: Snapshot) -> None:
        states.append(snapshot)
        if course is not None:
            course.take([snapshot])

    pieces = measure_part(records, part, topics=topics, reader=reader, also=also)
    for number, (activity, rebalances) in enumerate(pieces):
        row = piece_row(group, part.window, number, activity, ())
        yield {"group": group, "number": number, "piece": row, "states": _pickled(rebalances, states)}
        states.clear()
    if course is not None:
        yield from course.rows(topics, undecoded=reader.rejected)


_NO_CLAIMS: Final[dict[str, tuple[int, ...]]] = {}
_CLAIMS: Final = SnapshotMember._fields.index("claims")


def _pickled(rebalances: Sequence[Rebalance], states: Iterable[Snapshot]) -> bytes:
    """What is drawn of a piece. Of members as bare tuples: these are pickled several times as fast."""
    drawn = [
        (
            (state.group, state.generation, state.time_us, state.offset),
            [(*member[:_CLAIMS], _NO_CLAIMS, *member[_CLAIMS + 1 :]) for member in state.members],
        )
        for state in states
    ]
    return pickle.dumps((list(rebalances), drawn), protocol=pickle.HIGHEST_PROTOCOL)


def _histories(stories: DataFrame) -> Iterator[GroupHistory]:
    """Each group's rebalances and states, one group after the other, as Spark hands them over."""
    rows = stories.where("states is not null").orderBy("group", "piece.window", "number")
    for group, its in groupby(rows.select("group", "states").toLocalIterator(), lambda row: row["group"]):
        rebalances: list[Rebalance] = []
        states: list[Snapshot] = []
        for row in its:
            found, drawn = read_states(row["states"])
            rebalances += found
            states += drawn
        yield GroupHistory(group=group, rebalances=rebalances, snapshots=tuple(states))


def read_states(pickled: bytes) -> tuple[list[Rebalance], list[Snapshot]]:
    """What `tell_group` tells of a piece: its rebalances, and what is drawn of its states."""
    found, drawn = pickle.loads(bytes(pickled))  # noqa: S301 - of our own tasks
    return found, [
        Snapshot(
            group=group,
            generation=generation,
            time_us=time_us,
            offset=offset,
            members=tuple(map(make_member, members)),
        )
        for (group, generation, time_us, offset), members in drawn
    ]


def zoned(row: Row, *times: str) -> dict[str, Any]:
    """A row whose times say that they are in UTC: PySpark hands them over in this machine's time zone."""
    fields = row.asDict(recursive=True)
    return fields | {name: fields[name].astimezone(UTC) for name in times}
