"""The course of a group: its memberships one after the other, and how long each took to settle.

What is replayed is who was in the group, not what its assignor made of it. So

- the generations of one cooperative hand-over are one rebalance: the same members with the same topics, and
  the later generation gives away what the earlier one made members give up (`Snapshot.given_up`);
- a group of KIP-848 rebalances until every member has what it is to have (`Snapshot.settled`);
- several records of one generation are one rebalance: a static member came back, under another member id;
- a rebalance of the same members for any other reason (new partitions, say) is a rebalance.

A rebalance lasts from when the coordinator had all joins (`reasons.began_us`) to when it wrote the
assignments; of a hand-over from the first of its generations to the last. How long the group waited for the
joins no record tells.

The first step is no rebalance: it only says what there was when the history begins. If that is amid a
rebalance, it is what came of it.

A topic has as many partitions as were last seen until then, or as the group has given away since, whichever
are more: it may have grown since it was seen. Before it was seen it has what the group gave away up to then.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from kafka_assignors._groups import reasons
from kafka_assignors._groups.kip848 import PROTOCOL_TYPE
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors._model.arrays import NOBODY, IntArray, places

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from kafka_assignors.history._snapshots import Snapshot, SnapshotMember

MOST_PARTITIONS: Final = 100_000
"""How many partitions a topic can have; ids from there on are not believed: leaders may write anything."""

_ID_BITS: Final = 32
_ID_MASK: Final = (1 << _ID_BITS) - 1
_REPLAYED: Final = ("consumer", PROTOCOL_TYPE)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A rebalance, or where the history begins.

    Attributes:
        members: Who was in the group then, by identity; empty if nobody was left.
        began_us: When it began, in microseconds since 1970.
        ended_us: When the assignments were there.
        sizes: How many partitions each topic of the course had.
        owners: (N,) the number of the identity that each partition of the course was given to in truth, or
            `NOBODY`; None in a course that is not what happened.
        cooperative: Whether members kept in truth what did not move.
        away: Identities that were away without the group knowing, by number, and for how many seconds between
            the step before and this one.
    """

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
    steps: tuple[Step, ...]
    until_us: int
    away: tuple[tuple[int, float], ...] = ()

    @classmethod
    def of(
        cls, snapshots: Iterable[Snapshot], topics: Mapping[str, int] | TopicsSeen | None = None
    ) -> Course:
        """The course that snapshots of one group show; see `CourseBuilder`."""
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
    """A snapshot, made small."""

    time_us: int
    partition: int
    offset: int
    generation: int
    state_time_us: int | None
    cooperative: bool
    settled: bool
    members: tuple[Participant, ...]
    given: IntArray
    to: NDArray[np.int32]
    given_up: frozenset[int]

    @property
    def signature(self) -> tuple[tuple[str, str, frozenset[str]], ...]:
        return tuple((member.identity, member.member_id, member.topics) for member in self.members)


class CourseBuilder:
    """Takes a group's snapshots in any order, each as about two kilobytes, and makes its course.

    Args:
        group: The group.
    """

    def __init__(self, group: str) -> None:
        self._group = group
        self._topics: dict[str, int] = {}  # the first partition of each, in the order they came
        self._identities: dict[str, int] = {}
        self._participants: dict[Participant, Participant] = {}
        self._seen: list[_Seen] = []
        self._given: IntArray = np.empty(0, dtype=np.int64)

    def add(self, snapshot: Snapshot) -> None:
        """Take a snapshot; those of others than consumers (Kafka Connect's workers, say) are passed over."""
        if snapshot.members and snapshot.protocol_type not in _REPLAYED:
            return
        given: list[int] = []
        to: list[int] = []
        for member in snapshot.members:
            number = self._identities.setdefault(member.identity, len(self._identities))
            for topic in member.topics.union([topic for topic, _ in member.assignment]):
                self._topics.setdefault(topic, len(self._topics) << _ID_BITS)
            first = self._topics
            given += [first[topic] | one for topic, one in member.assignment if 0 <= one < MOST_PARTITIONS]
            to += [number] * (len(given) - len(to))
        columns = self._columns(given, to)
        self._seen.append(
            _Seen(
                time_us=snapshot.time_us,
                partition=snapshot.partition,
                offset=snapshot.offset,
                generation=snapshot.generation,
                state_time_us=snapshot.state_time_us,
                cooperative=snapshot.cooperative or snapshot.protocol_type == PROTOCOL_TYPE,
                settled=snapshot.settled,
                members=tuple(self._participant(member) for member in snapshot.members),
                given=columns[0],
                to=columns[1],
                given_up=frozenset(
                    self._topics[topic] | one for topic, one in snapshot.given_up if topic in self._topics
                ),
            )
        )

    def build(self, topics: Mapping[str, int] | TopicsSeen | None = None) -> Course:
        """Make the course of the snapshots so far.

        Args:
            topics: How many partitions each topic has, or had at what time; see above.
        """
        # Offsets are the order of what happened; times of a record are a clock's. Only a group that moved to
        # another partition of the topic has no other order.
        one_log = len({seen.partition for seen in self._seen}) <= 1
        self._seen.sort(key=lambda seen: (0 if one_log else seen.time_us, seen.partition, seen.offset))
        rebalances, began = self._rebalances()
        numbers, bounds, sizes = self._layout(rebalances, TopicsSeen.told(topics))
        shown = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        steps = []
        for rebalance, began_us, counts in zip(rebalances, began, sizes, strict=True):
            if rebalance.given is not shown[0]:  # most generations give the same partitions away
                topic = numbers[rebalance.given >> _ID_BITS]
                shown = rebalance.given, bounds[topic] + (rebalance.given & _ID_MASK)
            owners = np.full(int(bounds[-1]), NOBODY, dtype=np.int32)
            owners[shown[1]] = rebalance.to
            steps.append(
                Step(
                    members=rebalance.members,
                    began_us=began_us,
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
            until_us=max((seen.time_us for seen in self._seen), default=0),
        )

    def _rebalances(self) -> tuple[list[_Seen], list[int]]:
        """What each rebalance ended with, and when it began; the first is where the history begins."""
        rebalances: list[_Seen] = []
        began: list[int] = []
        if not any(seen.members for seen in self._seen):
            return rebalances, began
        last = self._seen[0]  # before which nothing is known: what began there began when it was written
        for seen in self._seen:
            before = rebalances[-1] if rebalances else None
            if before is not None and (not before.settled or _is_hand_over(before, seen)):
                rebalances[-1] = seen
            elif before is not None and _is_same(before, seen):
                rebalances[-1] = before._replace(members=seen.members)
            elif before is None or before.members or seen.members:
                rebalances.append(seen)
                began.append(reasons.began_us(last, seen))
            last = seen
        return rebalances, began

    def _participant(self, member: SnapshotMember) -> Participant:
        made = Participant(
            identity=member.identity,
            member_id=member.member_id,
            instance_id=member.instance_id,
            client_id=member.client_id,
            host=member.host,
            rack=member.rack,
            topics=member.topics,
            session_timeout_ms=member.session_timeout_ms,
        )
        return self._participants.setdefault(made, made)

    def _columns(self, given: list[int], to: list[int]) -> tuple[IntArray, NDArray[np.int32]]:
        """Partitions in order and whom they were given to; of two, the last. Equal columns are one."""
        partitions = np.array(given, dtype=np.int64)
        order = np.argsort(partitions, kind="stable")
        partitions, owners = partitions[order], np.array(to, dtype=np.int32)[order]
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


def _changes(
    topics: Iterable[str], rebalances: Sequence[_Seen], seen: TopicsSeen
) -> dict[int, list[tuple[int, int]]]:
    """Topics by number, and how many partitions they had been seen to have, by the first rebalance after."""
    # Records are in the order of their offsets; a clock that was set back does not undo what was seen.
    ended = list(accumulate((rebalance.time_us for rebalance in rebalances), max))
    found: dict[int, list[tuple[int, int]]] = {}
    for number, topic in enumerate(topics):
        for since, count in seen.changes(topic):
            found.setdefault(bisect_left(ended, since), []).append((number, count))
    return found


def _is_same(before: _Seen, seen: _Seen) -> bool:
    """Whether two records are of one generation: the same members, one of which may have been restarted."""
    return before.generation == seen.generation and [one.identity for one in before.members] == [
        one.identity for one in seen.members
    ]


def _is_hand_over(before: _Seen, seen: _Seen) -> bool:
    return (
        seen.generation > before.generation
        and before.signature == seen.signature
        and not before.given_up.isdisjoint(seen.given.tolist())
    )
