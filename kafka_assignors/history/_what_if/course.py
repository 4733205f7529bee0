"""The course of a group: its rebalances one after the other, who was in it then, and how long each took.

What a rebalance is, `SpanFinder` says, for all commands. What is replayed is who was in the group, not what
its assignor made of it. So

- a rebalance of a classic group, which may be several generations of a cooperative hand-over, has a step for
  each membership. Members that join or leave during the hand-over are a step of their own, as the assignor
  has to see them. Steps of one rebalance have its number, and count as one;
- a rebalance of a group of KIP-848 is one step: what it came to;
- a rebalance of the same members for any other reason (new partitions, say) is a step;
- a static member that comes back to its generation is none: its member id changes in the step before.

A step lasts from when the coordinator had all joins (`reasons.began_us`) to when it wrote the assignments.
No record says how long the group waited for the joins. If a clock was set back, times continue from where
they were. How long it was until then is unknown, and counts as no time.

The first step is no rebalance: it only says what there was when the history begins.

A topic has as many partitions as were last seen until then, or as the group has assigned since, if these are
more. It may have grown since it was seen. Before it was seen it has what the group gave away up to then. One
of which a rebalance left nobody any partition, though members subscribe to it, was deleted: it has none.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kafka_assignors._groups import reasons
from kafka_assignors._groups.rebalances import SpanFinder
from kafka_assignors._groups.snapshots import KIP848
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors._model.arrays import NOBODY, IntArray, places

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from kafka_assignors._groups.rebalances import Span
    from kafka_assignors._groups.snapshots import Partitions, Snapshot, SnapshotMember

MOST_PARTITIONS: Final = 100_000
"""How many partitions a topic can have; ids from there on are not believed: leaders may write anything."""

_ID_BITS: Final = 32
_ID_MASK: Final = (1 << _ID_BITS) - 1
_CODED: Final = 4096
"""How many members' partitions are remembered."""


class Participant(NamedTuple):
    """A member, as far as what-if needs it; see `SnapshotMember`."""

    identity: str
    member_id: str
    instance_id: str | None
    client_id: str
    host: str
    rack: str | None
    topics: frozenset[str]
    session_timeout_ms: int


@dataclass(frozen=True, kw_only=True)  # without slots: see `Rebalance`
class CourseStep:
    """A membership of a rebalance, or where the history begins.

    Attributes:
        rebalance: The number of its rebalance, from 1 on; steps that follow each other with one number are
            one. 0 for none: where the history begins, and where a group is otherwise than it was left.
        members: Who was in the group then, by identity; empty if nobody was left.
        began_us: When it began, in microseconds since 1970, on a clock that is never set back.
        ended_us: When the assignments were there.
        sizes: How many partitions each topic of the course had.
        owners: (N,) the number of the identity to which each partition of the course was really assigned, or
            `NOBODY`. None in a course that is not what happened.
        cooperative: Whether members kept in truth what did not move.
        away: Identities that were away without the group knowing, by number, and for how many seconds between
            the step before and this one.
    """

    rebalance: int
    members: tuple[Participant, ...]
    began_us: int
    ended_us: int
    sizes: tuple[int, ...]
    owners: NDArray[np.int32] | None = None
    cooperative: bool = False
    away: tuple[tuple[int, float], ...] = ()

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended_us - self.began_us) / 1e6


@dataclass(frozen=True, kw_only=True)
class Course:
    """A group's rebalances in order.

    Attributes:
        group: The group.
        topics: All topics that its members subscribed to or had, sorted.
        bounds: (T + 1,) partition p of topic t is number bounds[t] + p of the N of the course.
        identities: Who was ever in it; places are the identities' numbers.
        steps: Where its history begins, and its rebalances.
        until_us: When the history ends.
        away: As `Step.away`, after the last step.
    """

    group: str
    topics: tuple[str, ...]
    bounds: IntArray
    identities: tuple[str, ...]
    steps: tuple[CourseStep, ...]
    until_us: int
    away: tuple[tuple[int, float], ...] = ()

    @classmethod
    def of(
        cls, snapshots: Iterable[Snapshot], topics: Mapping[str, int] | TopicsSeen | None = None
    ) -> Course:
        """The course that snapshots of one group show, in their order; see `CourseBuilder`."""
        listed = list(snapshots)
        builder = CourseBuilder(listed[0].group if listed else "")
        for snapshot in listed:
            builder.add(snapshot)
        return builder.build(topics)

    @property
    def size(self) -> int:
        """N, the number of partitions."""
        return int(self.bounds[-1])

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each identity."""
        return {identity: number for number, identity in enumerate(self.identities)}


class _Seen(NamedTuple):
    """A snapshot, made small; its times are on a clock that is never set back, but for `told_us`."""

    told_us: int
    time_us: int
    began_us: int
    modern: bool
    cooperative: bool
    members: tuple[Participant, ...]
    given: IntArray
    to: NDArray[np.int32]
    rebalance: int = 0

    def has_members_of(self, other: _Seen) -> bool:
        """Whether the same members subscribe to the same topics."""
        return [(one.identity, one.topics) for one in self.members] == [
            (one.identity, one.topics) for one in other.members
        ]

    def is_same_but_for_ids(self, other: _Seen) -> bool:
        """Whether all have what they had, though some may have another member id."""
        return (
            [one.identity for one in self.members] == [one.identity for one in other.members]
            and np.array_equal(self.given, other.given)
            and np.array_equal(self.to, other.to)
        )


class CourseBuilder:
    """Takes a group's snapshots in their order, each as about two kilobytes, and makes its course."""

    def __init__(self, group: str) -> None:
        self._group = group
        self._topics: dict[str, int] = {}  # the first partition of each, in the order they came
        self._identities: dict[str, int] = {}
        self._participants: dict[str, Participant] = {}  # by member id
        self._spans = SpanFinder(reasons=False)
        self._last: Snapshot | None = None
        self._steps: list[_Seen] = []  # where the history begins, and the memberships of its rebalances
        self._open: list[_Seen] = []  # of the rebalance that may yet go on
        self._rebalance = 0
        self._any_members = False
        self._assignable = True
        self._until_us = 0
        self._behind_us = 0  # what clocks were set back by
        self._coded: dict[Partitions, IntArray] = {}
        self._given: IntArray = np.empty(0, dtype=np.int64)

    def add(self, snapshot: Snapshot) -> None:
        """Take a snapshot. The course is empty if no assignor of consumers could assign any of them."""
        self._assignable &= snapshot.assignable
        if not self._assignable:
            return
        seen = self._seen(snapshot)
        self._last = snapshot
        self._any_members |= bool(snapshot.members)
        self._until_us = seen.time_us
        ended = False
        for span in self._spans.add(snapshot):
            if span.end is snapshot:
                ended = True
                self._open.append(seen)
            self._end_rebalance(span)
        if self._spans.is_open:
            self._open.append(seen)
        elif not ended:
            self._note(seen)

    def build(self, topics: Mapping[str, int] | TopicsSeen | None = None) -> Course:
        """Make the course of the snapshots; no more can be taken then."""
        for span in self._spans.finish():
            self._end_rebalance(span)
        rebalances = self._steps if self._any_members and self._assignable else []
        numbers, bounds, sizes = self._layout(rebalances, TopicsSeen.known(topics))
        shown = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        steps = []
        for rebalance, counts in zip(rebalances, sizes, strict=True):
            if rebalance.given is not shown[0]:  # most generations give the same partitions away
                topic = numbers[rebalance.given >> _ID_BITS]
                shown = rebalance.given, bounds[topic] + (rebalance.given & _ID_MASK)
            owners = np.full(int(bounds[-1]), NOBODY, dtype=np.int32)
            owners[shown[1]] = rebalance.to
            steps.append(
                CourseStep(
                    rebalance=rebalance.rebalance,
                    members=rebalance.members,
                    began_us=rebalance.began_us,
                    ended_us=rebalance.time_us,
                    sizes=counts,
                    owners=owners,
                    cooperative=rebalance.cooperative,
                )
            )
        return Course(
            group=self._group,
            topics=tuple(sorted(self._topics)),
            bounds=bounds,
            identities=tuple(self._identities),
            steps=tuple(steps),
            until_us=self._until_us,
        )

    def _end_rebalance(self, span: Span) -> None:
        """Make steps of the memberships of a rebalance."""
        opened, self._open = self._open, []
        if span.quiet:
            self._note(opened[-1])
            return
        self._rebalance += 1
        steps: list[_Seen] = []
        for seen in opened:
            if steps and (seen.modern or steps[-1].has_members_of(seen)):
                steps[-1] = seen._replace(began_us=steps[-1].began_us)
            else:
                steps.append(seen)
        self._steps += [one._replace(rebalance=self._rebalance) for one in steps]

    def _note(self, seen: _Seen) -> None:
        """What is seen without a rebalance: where the history begins; a static member that is back."""
        last = self._steps[-1] if self._steps else None
        if last is not None and last.is_same_but_for_ids(seen):
            self._steps[-1] = last._replace(members=seen.members)
        else:
            self._steps.append(seen)

    def _seen(self, snapshot: Snapshot) -> _Seen:
        identities = self._identities
        for topic in snapshot.topics - self._topics.keys():
            self._topics[topic] = len(self._topics) << _ID_BITS
        given = [self._codes(member.assignment) for member in snapshot.members]
        to = [identities.setdefault(member.identity, len(identities)) for member in snapshot.members]
        columns = self._columns(given, to)
        last = self._last or snapshot
        self._behind_us += max(0, last.time_us - snapshot.time_us)
        return _Seen(
            told_us=snapshot.time_us,
            time_us=snapshot.time_us + self._behind_us,
            began_us=reasons.began_us(last, snapshot) + self._behind_us,
            modern=snapshot.protocol_type == KIP848,
            cooperative=snapshot.cooperative or snapshot.protocol_type == KIP848,
            members=tuple(self._participant(member) for member in snapshot.members),
            given=columns[0],
            to=columns[1],
        )

    def _codes(self, partitions: Partitions) -> IntArray:
        """Partitions by number. What a member has in one generation it has, most often, in the next."""
        found = self._coded.get(partitions)
        if found is None:
            for topic in {topic for topic, _ in partitions} - self._topics.keys():
                self._topics[topic] = len(self._topics) << _ID_BITS
            first = self._topics
            found = np.array(
                [first[topic] | one for topic, one in partitions if 0 <= one < MOST_PARTITIONS],
                dtype=np.int64,
            )
            if len(self._coded) >= _CODED:
                self._coded.clear()
            self._coded[partitions] = found
        return found

    def _participant(self, member: SnapshotMember) -> Participant:
        """The member, as the same object for as long as it stays the same."""
        known = self._participants.get(member.member_id)
        if (
            known is not None
            and known.host == member.host
            and known.topics == member.topics
            and known.rack == member.rack
            and known.client_id == member.client_id
            and known.instance_id == member.instance_id
            and known.session_timeout_ms == member.session_timeout_ms
        ):
            return known
        made = Participant(
            member.instance_id or member.member_id,
            member.member_id,
            member.instance_id,
            member.client_id,
            member.host,
            member.rack,
            member.topics,
            member.session_timeout_ms,
        )
        self._participants[member.member_id] = made
        return made

    def _columns(self, given: list[IntArray], to: list[int]) -> tuple[IntArray, NDArray[np.int32]]:
        """Partitions in order and whom they were given to; of two, the last. Equal columns are one."""
        partitions = np.concatenate(given) if given else np.empty(0, dtype=np.int64)
        numbers = np.repeat(np.array(to, dtype=np.int32), [each.size for each in given])
        order = np.argsort(partitions, kind="stable")
        partitions, owners = partitions[order], numbers[order]
        if partitions.size and (partitions[1:] == partitions[:-1]).any():
            last = np.append(partitions[1:] != partitions[:-1], [True])
            partitions, owners = partitions[last], owners[last]
        if np.array_equal(partitions, self._given):
            partitions = self._given
        self._given = partitions
        return partitions, owners

    def _layout(
        self, rebalances: Sequence[_Seen], seen: TopicsSeen
    ) -> tuple[IntArray, IntArray, list[tuple[int, ...]]]:
        """The place of each topic among the sorted ones; their bounds; their sizes in each rebalance."""
        numbers = places(np.argsort(np.array(list(self._topics), dtype=object)), len(self._topics))
        changes = _changes(sorted(self._topics), rebalances, seen)
        for place, topic in self._deleted(rebalances):
            changes.setdefault(place, []).append((int(numbers[topic]), 0))
        now = np.zeros(len(self._topics), dtype=np.int64)
        most = now.copy()
        sizes: list[tuple[int, ...]] = []
        given: IntArray | None = None
        for place, rebalance in enumerate(rebalances):
            # Most rebalances give the same partitions away as the one before, of topics that stayed the same.
            if rebalance.given is given and place not in changes:
                sizes.append(sizes[-1])
                continue
            given = rebalance.given
            for topic, count in changes.get(place, ()):
                now[topic] = count
            np.maximum.at(now, numbers[given >> _ID_BITS], (given & _ID_MASK) + 1)
            np.maximum(most, now, out=most)
            sizes.append(tuple(now.tolist()))
        return numbers, np.concatenate(([0], np.cumsum(most))), sizes

    def _deleted(self, rebalances: Sequence[_Seen]) -> Iterator[tuple[int, int]]:
        """The last step of each rebalance that left nobody any partition of a topic, and that topic."""
        names = list(self._topics)
        had: set[int] = set()
        for step, following in zip_longest(enumerate(rebalances), rebalances[1:]):
            place, rebalance = step
            # Within a rebalance a topic may be on its way from one member to another.
            goes_on = following is not None and 0 < rebalance.rebalance == following.rebalance
            if goes_on or not rebalance.members:
                continue
            has = set(np.unique(rebalance.given >> _ID_BITS).tolist())
            for topic in had - has:
                if any(names[topic] in member.topics for member in rebalance.members):
                    yield place, topic
            had = has


def _changes(
    topics: Iterable[str], rebalances: Sequence[_Seen], seen: TopicsSeen
) -> dict[int, list[tuple[int, int]]]:
    """Topics by number, and how many partitions they had been seen to have, by the first rebalance after."""
    # Records are in the order of their offsets; a clock that was set back does not undo what was seen.
    ended = list(accumulate((rebalance.told_us for rebalance in rebalances), max))
    found: dict[int, list[tuple[int, int]]] = {}
    for number, topic in enumerate(topics):
        for since, count in seen.changes(topic):
            found.setdefault(bisect_left(ended, since), []).append((number, count))
    return found
