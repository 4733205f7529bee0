"""The rebalances of a group, found in its snapshots; docs/history.md has the rules in full.

A generation is a rebalance of its own, unless it hands over what a cooperative generation before it made
members give up. A group of KIP-848 rebalances from the first change until every member has what it is to
have.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from kafka_assignors._groups.best import find_best
from kafka_assignors._groups.kip848 import PROTOCOL_TYPE
from kafka_assignors._groups.reasons import Change, began_us, cannot_be_lost, find_changes, hands_over
from kafka_assignors._groups.topics import TopicsSeen

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kafka_assignors._groups.snapshots import Snapshot

LONGEST_HAND_OVER: Final = 16
"""So many generations of a classic group follow on the first in one rebalance at most."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NO_REASON: Final = frozenset({"hand-over of a cooperative rebalance", "coordinator moved", "unknown"})


class OwnerMove(NamedTuple):
    """A partition whose owner is another than before, by identity; None for nobody."""

    topic: str
    partition: int
    source: str | None
    target: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """A rebalance: one row of `schemas.REBALANCES`, which says what each field is.

    Attributes:
        quiet: Whether it was none for anybody but a static member that came back to its generation. Such
            are in no table of rebalances; they count among the reasons, and for time without an owner.
    """

    group: str
    first_generation: int
    generation: int
    began: datetime
    ended: datetime
    seconds: float
    strategy: str | None
    reasons: tuple[Change, ...]
    members: int
    joined: int
    gone: int
    returned: int
    partitions: int
    moved: int
    least_moved: int | None
    imbalance: int
    best_imbalance: int | None
    unowned_seconds: float
    moves: tuple[OwnerMove, ...]
    quiet: bool = False

    def row(self) -> dict[str, Any]:
        """The row, for pyarrow."""
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name != "quiet"}
        values["reasons"] = [
            {"kind": reason.kind, "member": reason.member, "text": reason.text} for reason in self.reasons
        ]
        values["moves"] = [move._asdict() for move in self.moves]
        return values

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """A row of the table as an object.

        Raises:
            ValueError: A time is without a time zone.
        """
        values = with_zones(row, "began", "ended")
        values["reasons"] = tuple(Change(**reason) for reason in row["reasons"])
        values["moves"] = tuple(OwnerMove(**move) for move in row["moves"])
        return cls(**values)


def with_zones(row: Mapping[str, Any], *times: str) -> dict[str, Any]:
    """A row, if its times tell their zone.

    Raises:
        ValueError: One does not.
    """
    for name in times:
        if row[name].tzinfo is None:
            raise ValueError(
                f"{name} of group {row['group']!r} is {row[name]}, without a time zone; times are in UTC:"
                " give it .replace(tzinfo=UTC)"
            )
    return dict(row)


def find_rebalances(
    snapshots: Iterable[Snapshot], topics: Mapping[str, int] | TopicsSeen | None = None
) -> list[Rebalance]:
    """The rebalances of one group, in the order in which they ended.

    The first snapshot only says what there was before; what happened until then is not told.

    Args:
        snapshots: Its snapshots, in their order.
        topics: How many partitions each topic has, or had at what time. Of topics that are not in it only
            those partitions count that have an owner before or after.
    """
    finder = RebalanceFinder(topics)
    found = [one for snapshot in snapshots for one in finder.add(snapshot)]
    return [one for one in (*found, *finder.finish()) if not one.quiet]


@dataclass(slots=True)
class _Open:
    """A rebalance that may yet go on."""

    before: Snapshot
    began_us: int
    first_generation: int
    reasons: dict[Change, None] = field(default_factory=dict)
    unowned_us: Counter[tuple[str, int]] = field(default_factory=Counter)
    known: set[tuple[str, int]] = field(default_factory=set)

    def go_on(self, last: Snapshot, snapshot: Snapshot) -> None:
        """Note why it goes on."""
        changes = find_changes(last, snapshot)
        self.reasons.update((one, None) for one in changes if one.kind not in _NO_REASON)

    def add_unowned(self, partitions: Iterable[tuple[str, int]], us: int) -> None:
        """Note that nobody had these for so long; whether it counts depends on whether somebody gets them."""
        for partition in partitions:
            self.unowned_us[partition] += us


class RebalanceFinder:
    """Finds rebalances as snapshots come.

    What is found depends on the last `LONGEST_HAND_OVER` + 2 records of a classic group alone, so that a long
    history can be cut into pieces that overlap by so much.

    Args:
        topics: See `find_rebalances`.
    """

    def __init__(self, topics: Mapping[str, int] | TopicsSeen | None = None) -> None:
        self._topics = TopicsSeen.told(topics)
        self._last: Snapshot | None = None
        self._open: _Open | None = None
        self._followed = 0

    def add(self, snapshot: Snapshot) -> Iterator[Rebalance]:
        """Take the next snapshot.

        Yields:
            The rebalances that are over with it, quiet ones among them.
        """
        last, self._last = self._last, snapshot
        if last is None:
            return
        if PROTOCOL_TYPE in (last.protocol_type, snapshot.protocol_type):
            yield from self._add_modern(last, snapshot)
        elif _same_generation(last, snapshot):
            yield from self._close(last)
            self._followed = 0
            if any(one.kind == "static member came back" for one in find_changes(last, snapshot)):
                self._open = _Open(last, snapshot.time_us, snapshot.generation)
                yield from self._close(snapshot)
        else:
            yield from self._add_classic(last, snapshot)

    def finish(self) -> Iterator[Rebalance]:
        """What is left of a rebalance that did not come to its end."""
        if self._last is not None:
            yield from self._close(self._last)

    def give_up(self, now_us: int) -> Iterator[Rebalance]:
        """What is left of one whose hand-over should have come by now."""
        last = self._last
        if last is not None and last.settled and now_us - last.time_us > last.patience_us:
            yield from self._close(last)

    def _add_classic(self, last: Snapshot, snapshot: Snapshot) -> Iterator[Rebalance]:
        follows = self._open is not None and hands_over(last, snapshot)
        self._followed = self._followed + 1 if follows else 0
        if not follows or self._followed > LONGEST_HAND_OVER:
            yield from self._close(last)
        if not last.members and not snapshot.members:
            return
        if self._open is None:
            self._open = _Open(last, began_us(last, snapshot), snapshot.generation)
        else:
            self._open.add_unowned(last.given_up, snapshot.time_us - last.time_us)
        self._open.go_on(last, snapshot)
        _add_rejoining(self._open, last, snapshot)
        if not snapshot.given_up:
            yield from self._close(snapshot)

    def _add_modern(self, last: Snapshot, snapshot: Snapshot) -> Iterator[Rebalance]:
        self._followed = 0
        if last.protocol_type != PROTOCOL_TYPE:
            yield from self._close(last)
        if self._open is None:
            if not last.members and not snapshot.members:
                return
            self._open = _Open(last, began_us(last, snapshot), snapshot.generation)
        opened = self._open
        if opened.first_generation == opened.before.generation:
            opened.first_generation = snapshot.generation
        opened.known |= last.owners.keys()
        if not last.settled:
            opened.add_unowned(opened.known - last.owners.keys(), snapshot.time_us - last.time_us)
        opened.go_on(last, snapshot)
        if snapshot.settled:
            yield from self._close(snapshot)

    def _close(self, end: Snapshot) -> Iterator[Rebalance]:
        opened, self._open = self._open, None
        if opened is not None:
            yield _rebalance(opened, end, self._topics)


def _same_generation(last: Snapshot, snapshot: Snapshot) -> bool:
    """Whether both are of one generation; a group that was deleted may begin where it ended."""
    return (
        last.generation == snapshot.generation
        and last.protocol_type == snapshot.protocol_type
        and bool(last.members or not snapshot.members)
    )


def _add_rejoining(opened: _Open, last: Snapshot, snapshot: Snapshot) -> None:
    """Time without an owner while members join: of all in eager groups, else of those who are gone."""
    began = began_us(last, snapshot)
    here = {member.identity for member in snapshot.members}
    for member in last.members:
        gone = member.identity not in here
        if gone or not snapshot.cooperative:
            opened.add_unowned(member.assignment, snapshot.time_us - began)
        if gone and member.instance_id and not cannot_be_lost(member, last, snapshot):
            silent_us = min(member.session_timeout_ms * 1000, began - last.time_us)
            opened.add_unowned(member.assignment, silent_us)


def _rebalance(opened: _Open, end: Snapshot, topics: TopicsSeen) -> Rebalance:
    before = opened.before
    changes = find_changes(before, end)
    reasons = [*opened.reasons, *(one for one in changes if one.kind == "topics changed")]
    old = {member.identity: member.member_id for member in before.members}
    new = {member.identity: member.member_id for member in end.members}
    partitions = sorted(before.owners.keys() | end.owners.keys())
    moves = tuple(
        OwnerMove(topic, partition, source, target)
        for topic, partition in partitions
        if (source := before.owners.get((topic, partition))) != (target := end.owners.get((topic, partition)))
    )
    loads = [len(member.assignment) for member in end.members]
    best = find_best(before, end, topics)
    return Rebalance(
        group=end.group,
        first_generation=opened.first_generation,
        generation=end.generation,
        began=_EPOCH + timedelta(microseconds=opened.began_us),
        ended=_EPOCH + timedelta(microseconds=end.time_us),
        seconds=(end.time_us - opened.began_us) / 1e6,
        strategy=end.strategy,
        reasons=tuple(dict.fromkeys(reasons)) or changes,
        members=len(end.members),
        joined=len(new.keys() - old.keys()),
        gone=len(old.keys() - new.keys()),
        returned=sum(old[one] != new[one] for one in old.keys() & new.keys()),
        partitions=best.partitions,
        moved=sum(None not in (move.source, move.target) for move in moves),
        least_moved=best.moved,
        imbalance=max(loads, default=0) - min(loads, default=0),
        best_imbalance=best.imbalance,
        unowned_seconds=sum(opened.unowned_us[one] for one in opened.unowned_us if one in end.owners) / 1e6,
        moves=moves,
        quiet=_same_generation(before, end) and old.keys() == new.keys(),
    )
