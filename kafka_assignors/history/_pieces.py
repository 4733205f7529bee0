"""Pieces of a group's history: what its rebalances were, and how restless it was, while that lasted.

A long history is cut into windows, which are measured at the same time. Each begins with some records of the
one before. A window reports what is over with one of its own records, so that nothing is reported twice.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyarrow as pa

from kafka_assignors._common.garbage import no_garbage_collection
from kafka_assignors._groups.activity import Activity, GroupFollower, MemberTraffic
from kafka_assignors._groups.rebalances import LONGEST_HAND_OVER
from kafka_assignors._groups.topics import seen_and_names
from kafka_assignors.history._schemas import REBALANCES, TIME
from kafka_assignors.history._snapshots import SnapshotReader, read_safely

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.topics import SeenTopic, TopicsSeen
    from kafka_assignors.history._snapshots import ArchivedRecord, Snapshot

LEAD_IN: Final = 64
"""How many records of the window before a window begins with: `LONGEST_HAND_OVER` + 3 and more, as some may
be unreadable, or of one generation."""
assert LEAD_IN > 3 * LONGEST_HAND_OVER  # noqa: S101 - what makes windows tell the same as the whole

PIECE: Final = 500
"""How many rebalances a piece holds at most, more or less; so that no task has to hold all of a group's."""
MOVES: Final = 50_000
"""How many moves a piece holds at most, more or less: 400 bytes each."""

_TRAFFIC: Final = pa.struct(
    [
        pa.field("time_us", pa.int64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
        pa.field("came", pa.int32(), nullable=False),
        pa.field("went", pa.int32(), nullable=False),
        pa.field("here", pa.int32(), nullable=False),
    ]
)

PIECES: Final = pa.schema(
    [
        pa.field("group", pa.string(), nullable=False),
        pa.field("window", pa.int64(), nullable=False),
        pa.field("number", pa.int32(), nullable=False),
        pa.field("since", TIME, nullable=False),
        pa.field("until", TIME, nullable=False),
        pa.field("members", pa.int32(), nullable=False),
        pa.field("seen", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        pa.field("traffic", pa.list_(pa.field("element", _TRAFFIC, nullable=False)), nullable=False),
        pa.field("count", pa.int32(), nullable=False),
        pa.field("moved", pa.int64(), nullable=False),
        pa.field("least_moved", pa.int64(), nullable=False),
        pa.field("needless", pa.int64(), nullable=False),
        pa.field("unowned_seconds", pa.float64(), nullable=False),
        pa.field("longest_seconds", pa.float64(), nullable=False),
        pa.field("reasons", pa.map_(pa.string(), pa.int32()), nullable=False),
        pa.field(
            "rebalances",
            pa.list_(pa.field("element", pa.struct(list(REBALANCES)), nullable=False)),
            nullable=False,
        ),
    ]
)
"""One row for each piece of a group's history; windows, and pieces of one by `number`, are in its order."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPart:
    """A part of a group's history.

    Attributes:
        window: Its number, from 0 on.
        lead_in: How many of its records belong to the part before.
        last: Whether nothing comes after it.
    """

    window: int = 0
    lead_in: int = 0
    last: bool = True


class Tell(Protocol):
    """Works out rows of one group's records."""

    def __call__(
        self, group: str, part: HistoryPart, records: Iterator[ArchivedRecord], /
    ) -> Iterable[dict[str, Any]]:
        """The rows.

        Args:
            group: The group.
            part: Which part of its history it is.
            records: The records of that part by partition and offset, decoded; one may be there twice.
        """


def measure_part(
    records: Iterable[ArchivedRecord],
    part: HistoryPart,
    *,
    topics: TopicsSeen | None = None,
    topic_names: Mapping[str, str] | None = None,
    reader: SnapshotReader | None = None,
    also: Callable[[Snapshot], object] = lambda _: None,
) -> Iterator[tuple[Activity, list[Rebalance]]]:
    """Measure a part of a group's history.

    Args:
        records: Its records by partition and offset.
        part: Which part it is.
        topics: See `find_rebalances`.
        topic_names: See `read_snapshots`.
        reader: What reads the records, if the caller wants to know of it what it rejected.
        also: Gets each snapshot of this part, too, so that nobody has to read the records again.

    Yields:
        One piece after the other.
    """
    pieces = _pieces(records, part, topics, SnapshotReader(topic_names) if reader is None else reader, also)
    while True:
        with no_garbage_collection():
            piece = next(pieces, None)
        if piece is None:
            return
        yield piece


def _pieces(
    records: Iterable[ArchivedRecord],
    part: HistoryPart,
    topics: TopicsSeen | None,
    reader: SnapshotReader,
    also: Callable[[Snapshot], object],
) -> Iterator[tuple[Activity, list[Rebalance]]]:
    follower, piece = GroupFollower(topics), _Piece()
    for number, record in enumerate(records):
        snapshots = read_safely(reader, record)
        # What a record adds is told when the next one comes, so the first of ours tells of the lead-in.
        if number > part.lead_in:
            piece.take(snapshots, follower, also)
        else:
            snapshots += reader.flush() if number == part.lead_in - 1 else ()
            for snapshot in snapshots:
                follower.lead_in(snapshot)
        enough = piece.full or number % (4 * PIECE) == 4 * PIECE - 1
        if enough and (activity := follower.take()) is not None:
            yield activity, piece.found
            piece = _Piece()
    piece.take(reader.flush(), follower, also)
    if part.last:
        piece.add(follower.finish())
    if (activity := follower.take()) is not None:
        yield activity, piece.found


class _Piece:
    """The rebalances of a piece so far."""

    def __init__(self) -> None:
        self.found: list[Rebalance] = []
        self._moves = 0

    def take(
        self, snapshots: Iterable[Snapshot], follower: GroupFollower, also: Callable[[Snapshot], object]
    ) -> None:
        for snapshot in snapshots:
            also(snapshot)
            try:
                self.add(follower.add(snapshot))
            except Exception:  # noqa: BLE001 - one group must not end the job for all
                _log.exception(
                    "cannot measure group %s at %s-%s", snapshot.group, snapshot.partition, snapshot.offset
                )

    def add(self, rebalances: Iterable[Rebalance]) -> None:
        for one in rebalances:
            if not one.quiet:
                self.found.append(one)
                self._moves += len(one.moves)

    @property
    def full(self) -> bool:
        return len(self.found) >= PIECE or self._moves >= MOVES


def piece_row(
    group: str, window: int, number: int, activity: Activity, rebalances: Iterable[Rebalance]
) -> dict[str, Any]:
    """A row of `PIECES`, for pyarrow; its rebalances are tuples, see `Rebalance.values`."""
    return {
        "group": group,
        "window": window,
        "number": number,
        "since": activity.since_us,
        "until": activity.until_us,
        "members": activity.members,
        "seen": sorted(activity.seen),
        "traffic": [one._asdict() for one in activity.traffic],
        "count": activity.rebalances,
        "moved": activity.moved,
        "least_moved": activity.least_moved,
        "needless": activity.needless,
        "unowned_seconds": activity.unowned_seconds,
        "longest_seconds": activity.longest_seconds,
        "reasons": sorted(activity.reasons.items()),
        "rebalances": [one.values() for one in rebalances],
    }


def activity_of(row: Mapping[str, Any]) -> Activity:
    """What a row of `PIECES` says, its times as microseconds since 1970."""
    found = Activity(
        since_us=row["since"],
        until_us=row["until"],
        members=row["members"],
        seen=set(row["seen"]),
        traffic=[MemberTraffic(**one) for one in row["traffic"]],
        rebalances=row["count"],
        moved=row["moved"],
        least_moved=row["least_moved"],
        needless=row["needless"],
        unowned_seconds=row["unowned_seconds"],
        longest_seconds=row["longest_seconds"],
    )
    found.reasons.update(dict(row["reasons"]))
    return found


def measure_window(topics: Sequence[SeenTopic]) -> Tell:
    """Makes pieces of a part of a group's history, in schema PIECES, if these are the cluster's topics."""
    seen, names = seen_and_names(topics)

    def tell(group: str, part: HistoryPart, records: Iterator[ArchivedRecord]) -> Iterator[dict[str, Any]]:
        found = measure_part(records, part, topics=seen, topic_names=names)
        for number, (activity, rebalances) in enumerate(found):
            yield piece_row(group, part.window, number, activity, rebalances)

    return tell


def add_up(pieces: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows of the table GROUPS, for pyarrow.

    Args:
        pieces: Rows of PIECES in order, those of a group one after the other; times as numbers.
    """
    for group, rows in groupby(pieces, itemgetter("group")):
        total, *later = map(activity_of, rows)
        for one in later:
            total.add_later(one)
        yield total.row(group)
