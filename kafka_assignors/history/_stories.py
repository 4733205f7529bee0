"""What a report says of groups, by any way of reading: each is measured, replayed and shown in one pass."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from kafka_assignors._groups.snapshots import Snapshot, SnapshotMember, make_member
from kafka_assignors._groups.topics import seen_and_names
from kafka_assignors.history._pieces import PIECES, measure_part, piece_row
from kafka_assignors.history._snapshots import SnapshotReader
from kafka_assignors.history._what_if.job import CourseFollower
from kafka_assignors.history.report import GroupHistory, ReportData, shown_groups, write_report

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.saving import WhatIf
    from kafka_assignors._groups.snapshots import ArchivedRecord
    from kafka_assignors._groups.topics import SeenTopic, TopicsSeen
    from kafka_assignors.history._archive import Archive
    from kafka_assignors.history._pieces import HistoryPart, Tell
    from kafka_assignors.history.report import GroupSummary, ReportLimits

STORIES: Final = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("piece", pa.struct(list(PIECES))),
        pa.field("states", pa.binary()),
        pa.field("course", pa.binary()),
    ]
)
"""What was read of a group: a piece of its course, or of what was measured, with its rebalances and states to
be drawn.
"""


def story_of(topics: Sequence[SeenTopic], *, replayed: bool) -> Tell:
    """Makes `tell_group` of a part of a group's history, if these are the cluster's topics."""
    seen, names = seen_and_names(topics)

    def tell(group: str, part: HistoryPart, its: Iterator[ArchivedRecord]) -> Iterator[dict[str, Any]]:
        return tell_group(group, part, its, topics=seen, topic_names=names, replayed=replayed)

    return tell


def check_groups(groups: Collection[GroupSummary]) -> None:
    """Make sure that there is something to report on.

    Raises:
        ValueError: There are no groups.
    """
    if not groups:
        raise ValueError("there is nothing to report on: no record of a group is meant")


def write_page(
    archive: Archive,
    path: Path,
    groups: Sequence[GroupSummary],
    replayed: Sequence[WhatIf],
    histories: Callable[[Collection[str]], Iterable[GroupHistory]],
    *,
    limits: ReportLimits | None,
) -> int:
    """Write the page of a report.

    Args:
        archive: Where the cluster's name is from.
        path: The page.
        groups: All groups, at least one.
        replayed: What-if of them.
        histories: The histories of some of them, one after the other.
        limits: How much to show.

    Returns:
        How many bytes it has.
    """
    data = ReportData(
        source=archive.description.cluster_id or str(archive.where),
        made=datetime.now(UTC),
        since=min(group.since for group in groups),
        until=max(group.until for group in groups),
        groups=groups,
        histories=histories(shown_groups(groups, limits)),
        what_if=replayed,
    )
    return write_report(data, path, limits=limits)


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
        Rows of `STORIES`.
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


def read_history(group: str, pickled: Iterable[bytes]) -> GroupHistory:
    """A group's rebalances and states, of the states of its pieces in order."""
    rebalances: list[Rebalance] = []
    states: list[Snapshot] = []
    for one in pickled:
        found, drawn = read_states(one)
        rebalances += found
        states += drawn
    return GroupHistory(group=group, rebalances=rebalances, snapshots=tuple(states))


def read_states(pickled: bytes) -> tuple[list[Rebalance], list[Snapshot]]:
    """What `tell_group` has of a piece: its rebalances, and what is drawn of its states."""
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
