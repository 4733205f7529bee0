"""The rebalances of a group, found in its snapshots: the one rule; docs/history_rebalances.md has it in full.

A generation is a rebalance of its own, unless it hands over what a cooperative generation before it made
members give up. A static member that comes back meanwhile does not end that. A group of KIP-848 rebalances
from the first change until every member has what it is to have.

`SpanFinder` says which snapshots are one rebalance, `rebalance_of` what that rebalance was.
"""

from collections.abc import Iterator, Set as AbstractSet
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Final

from kafka_assignors._common.times import moment
from kafka_assignors._groups.best import find_best
from kafka_assignors._groups.moved import OwnerMove, count_moved, moves_of, owners_that_differ
from kafka_assignors._groups.reasons import HAND_OVER, Change, began_us, find_changes, hands_over
from kafka_assignors._groups.snapshots import KIP848, Snapshot
from kafka_assignors._groups.topics import TopicsSeen

LONGEST_HAND_OVER: Final = 16
"""So many generations of a classic group follow on the first in one rebalance at most."""

_NO_REASON: Final = frozenset({HAND_OVER, "coordinator moved", "unknown"})


@dataclass(frozen=True, kw_only=True)
class Rebalance:
    """A rebalance: one row of `schemas.REBALANCES`, which says what each field is.

    It is `quiet` if it was none for anybody but a static member that came back to its generation. Such are in
    no table of rebalances; a group's time without an owner has theirs.
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

    @property
    def needless(self) -> int:
        """How many partitions moved beyond the least; 0 if that is unknown."""
        return 0 if self.least_moved is None else max(0, self.moved - self.least_moved)

    def row(self) -> dict[str, Any]:
        reasons = [asdict(one) for one in self.reasons]
        return self._columns(reasons=reasons, moves=[one._asdict() for one in self.moves])

    def values(self) -> tuple[Any, ...]:
        """The row as a tuple: pyarrow takes tuples by position, in a third of the time that dicts take."""
        reasons = [(one.kind, one.member, one.text) for one in self.reasons]
        return tuple(self._columns(reasons=reasons).values())

    def _columns(self, **others: Any) -> dict[str, Any]:
        """The columns in the order of `schemas.REBALANCES`, with other values for some."""
        return {name: value for name, value in (vars(self) | others).items() if name != "quiet"}


@dataclass(slots=True)
class Span:
    """A rebalance as a stretch of a group's snapshots; it may yet continue until it is returned.

    Until its first snapshot comes, `end` is the one before it. `unowned` are partitions that nobody had, and
    for how long at least, in microseconds; a partition may be in several.
    """

    before: Snapshot
    began_us: int
    first_generation: int
    end: Snapshot
    unowned: list[tuple[AbstractSet[tuple[str, int]], int]] = field(default_factory=list)
    _changes: tuple[Snapshot, Snapshot, tuple[Change, ...]] | None = None
    _known: set[tuple[str, int]] = field(default_factory=set)
    _on_the_way: dict[Change, None] = field(default_factory=dict)

    @property
    def reasons(self) -> tuple[Change, ...]:
        """What differs between any two of its snapshots, but for how a hand-over goes on."""
        changes = self._find_changes(self.before, self.end)
        grown = (one for one in changes if one.kind == "topics changed")
        return tuple(dict.fromkeys([*self._on_the_way, *grown])) or changes

    @property
    def quiet(self) -> bool:
        """Whether it is none for anybody but a static member that came back to its generation."""
        return (
            self.end.is_of_generation(self.before)
            and self.before.by_identity.keys() == self.end.by_identity.keys()
        )

    @property
    def unowned_us(self) -> int:
        """Partition-microseconds certainly without an owner, of partitions that have one in the end."""
        owned = self.end.owned
        has_owner = owned.__contains__
        return sum(
            us * (len(partitions) if partitions is owned else sum(map(has_owner, partitions)))
            for partitions, us in self.unowned
        )

    def _find_changes(self, last: Snapshot, snapshot: Snapshot) -> tuple[Change, ...]:
        """`find_changes`, of which a rebalance of one generation asks twice."""
        found = self._changes
        if found is None or found[0] is not last or found[1] is not snapshot:
            self._changes = found = (last, snapshot, find_changes(last, snapshot))
        return found[2]

    def go_on(self, last: Snapshot, snapshot: Snapshot) -> None:
        changes = self._find_changes(last, snapshot)
        self._on_the_way.update((one, None) for one in changes if one.kind not in _NO_REASON)

    def add_unowned(self, partitions: AbstractSet[tuple[str, int]], us: int) -> None:
        """Note that nobody had these for so long; whether it counts depends on whether somebody gets them.

        A time below 0 is that of a clock that was set back, and unknown.
        """
        if us > 0 and partitions:
            self.unowned.append((partitions, us))

    def add_unowned_since(self, last: Snapshot, time_us: int) -> None:
        """Of KIP-848: what somebody had in this rebalance, and nobody has after its last snapshot."""
        self._known |= last.owned
        if not last.settled:
            self.add_unowned(self._known - last.owned, time_us - last.time_us)

    def add_rejoining(self, last: Snapshot, snapshot: Snapshot) -> None:
        """Of a classic group: what nobody had from when all had joined until the record was written.

        Eager members have revoked everything by then, cooperative ones what the last generation took away.
        """
        unowned = last.owned
        if snapshot.cooperative:
            here = snapshot.by_identity
            kept = [member.assignment for member in last.members if member.identity in here]
            unowned = last.given_up.union(last.owned.difference(*kept))
        self.add_unowned(unowned, snapshot.time_us - began_us(last, snapshot))


class SpanFinder:
    """Finds which snapshots of a group are one rebalance, as they come.

    What is found depends on the last `LONGEST_HAND_OVER` + 2 generations of a classic group alone. So a long
    history can be cut into pieces that overlap by so much.
    """

    def __init__(self, *, reasons: bool = True) -> None:
        self._reasons = reasons
        self._last: Snapshot | None = None
        self._open: Span | None = None
        self._followed = 0

    @property
    def is_open(self) -> bool:
        """Whether the last snapshot belongs to a rebalance that may yet continue."""
        return self._open is not None

    def add(self, snapshot: Snapshot) -> Iterator[Span]:
        """Take the next snapshot; yields rebalances that are over by then, quiet ones among them."""
        last, self._last = self._last, snapshot
        if last is None:
            return
        if KIP848 in (last.protocol_type, snapshot.protocol_type):
            yield from self._add_modern(last, snapshot)
        elif snapshot.is_of_generation(last):
            yield from self._add_again(last, snapshot)
        else:
            yield from self._add_classic(last, snapshot)

    def finish(self) -> Iterator[Span]:
        """What is left of a rebalance that did not come to its end."""
        if self._last is not None:
            yield from self._close(self._last)

    def give_up(self, now_us: int) -> Iterator[Span]:
        """What is left of one whose hand-over should have come by now."""
        last = self._last
        if last is not None and last.settled and now_us - last.time_us > last.patience_us:
            yield from self._close(last)

    def _add_again(self, last: Snapshot, snapshot: Snapshot) -> Iterator[Span]:
        """Take another record of a generation: that of a static member that came back."""
        opened = self._open
        if opened is not None and snapshot.members and hands_over(last, snapshot):
            yield from self._go_on(opened, last, snapshot)
            return
        yield from self._close(last)
        if last.by_member_id.keys() != snapshot.by_member_id.keys() and any(
            one.kind == "static member came back" for one in find_changes(last, snapshot)
        ):
            self._open = Span(last, snapshot.time_us, snapshot.generation, end=last)
            yield from self._close(snapshot)

    def _add_classic(self, last: Snapshot, snapshot: Snapshot) -> Iterator[Span]:
        follows = self._open is not None and hands_over(last, snapshot)
        self._followed = self._followed + 1 if follows else 0
        if not follows or self._followed > LONGEST_HAND_OVER:
            yield from self._close(last)
        if not last.members and not snapshot.members:
            return
        opened = self._open
        if opened is None:
            opened = self._open = Span(last, began_us(last, snapshot), snapshot.generation, end=last)
        opened.add_rejoining(last, snapshot)
        yield from self._go_on(opened, last, snapshot)

    def _go_on(self, opened: Span, last: Snapshot, snapshot: Snapshot) -> Iterator[Span]:
        """Continue a rebalance by a record of a classic group; it is over if nothing is given up with it."""
        if self._reasons:
            opened.go_on(last, snapshot)
        if not snapshot.given_up:
            yield from self._close(snapshot)

    def _add_modern(self, last: Snapshot, snapshot: Snapshot) -> Iterator[Span]:
        self._followed = 0
        if last.protocol_type != KIP848:
            yield from self._close(last)
        opened = self._open
        if opened is None:
            if not last.members and not snapshot.members:
                return
            opened = self._open = Span(last, began_us(last, snapshot), snapshot.generation, end=last)
        if opened.first_generation == opened.before.generation:
            opened.first_generation = snapshot.generation
        opened.add_unowned_since(last, snapshot.time_us)
        if self._reasons:
            opened.go_on(last, snapshot)
        if snapshot.settled:
            yield from self._close(snapshot)

    def _close(self, end: Snapshot) -> Iterator[Span]:
        opened, self._open = self._open, None
        if opened is not None:
            opened.end = end
            yield opened


def rebalance_of(span: Span, topics: TopicsSeen, *, moves: bool = True) -> Rebalance:
    """What a rebalance was; without `moves` they are only counted."""
    before, end = span.before, span.end
    old, new = before.by_identity, end.by_identity
    stayed = old.keys() & new.keys()
    static = stayed if before.instances or end.instances else ()
    had, has = owners_that_differ(before, end)
    loads = [len(member.assignment) for member in end.members]
    best = find_best(before, end, topics)
    return Rebalance(
        group=end.group,
        first_generation=span.first_generation,
        generation=end.generation,
        began=moment(span.began_us),
        ended=moment(end.time_us),
        seconds=max(0, end.time_us - span.began_us) / 1e6,
        strategy=end.strategy,
        reasons=span.reasons,
        members=len(end.members),
        joined=len(new) - len(stayed),
        gone=len(old) - len(stayed),
        returned=sum([old[one].member_id != new[one].member_id for one in static]),
        partitions=best.partitions,
        moved=count_moved(had, has),
        least_moved=best.moved,
        imbalance=max(loads, default=0) - min(loads, default=0),
        best_imbalance=best.imbalance,
        unowned_seconds=span.unowned_us / 1e6,
        moves=moves_of(had, has) if moves else (),
        quiet=span.quiet,
    )
