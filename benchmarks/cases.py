"""The groups to be measured, each made from its few numbers, the same in every run.

K are the large groups of Apache Kafka's own AbstractStickyAssignorTest, J the sizes of its JMH benchmark
ClientSideAssignorBenchmark, P a ladder of small groups for slow peers. In D every member has topics of
its own, so that no two members are alike; X is a large company: services with their topics, and loners.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatch
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

NOBODY: Final = -1

SERVICES: Final = 50
"""Services of an X group. Each has members and topics of its own choice; topics may have several services."""

LONERS: Final = 50
"""Members of an X group that belong to no service."""


class Shape(StrEnum):
    """Who subscribes to what."""

    EQUAL = "equal"  # everybody to all topics
    ODD_ONE = "one odd member"  # everybody to all topics, but the last member to the first topic only
    TWO_TOPICS = "two topics each"  # member i to the neighbouring topics i and i + 1, in a ring
    OWN_TOPICS = "own topics"  # everybody to some topics drawn at random
    SERVICES = "services"


class Event(StrEnum):
    """What happened since the last assignment."""

    FRESH = "fresh"  # there is none
    RESET = "reassign"  # the first member came back and has forgotten what it had
    JOIN = "join"  # the last member is new
    LEAVE = "leave"  # there was one member more


@dataclass(frozen=True, kw_only=True)
class Case:
    """The few numbers that a group is made from.

    Attributes:
        label: Its short name, by which it can be chosen; the events of one group may share it.
        shape: Who subscribes to what.
        event: What happened since the last assignment.
        topics: The number of topics.
        partitions: The partitions of each topic; if `uneven`, the mean, nearly.
        members: The number of members before a leave, after a join.
        width: Topics of each member, where the shape has a choice.
        uneven: Topics have from 1 to 3 x `partitions` partitions, so that loads cannot be all the same.
        racks: Members and replicas are in three racks.
        strategies: What to run it with.
    """

    label: str
    shape: Shape = Shape.EQUAL
    event: Event = Event.FRESH
    topics: int
    partitions: int
    members: int
    width: int = 0
    uneven: bool = False
    racks: bool = False
    strategies: tuple[str, ...] = ("sticky",)

    @property
    def name(self) -> str:
        """The label and what is in it, say "D2 200 topics, 1000 members, own topics (20 each), join"."""
        width = f" ({self.width} each{', uneven' if self.uneven else ''})" if self.width else ""
        racks = ", racks" if self.racks else ""
        size = f"{self.topics} x {self.partitions} partitions, {self.members} members"
        return f"{self.label}: {size}, {self.shape}{width}{racks}, {self.event}"

    @property
    def key(self) -> str:
        """The label and the event, fit for file names."""
        return f"{self.label}-{self.event}"

    def chosen_by(self, pattern: str) -> bool:
        """Whether a pattern of the command line (K2, K2-reassign, K*) means this case."""
        return pattern == self.label or fnmatch(self.key, pattern)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """A group before its rebalance: T topics, M members, N partitions.

    A *partition* is its flat number 0..N-1 in the order of (topic, partition id).

    Attributes:
        topics: The names of the topics, sorted.
        sizes: (T,) the partitions of each topic.
        members: The member ids, sorted.
        subscriptions: For each member the numbers of its topics, ascending.
        owner: (N,) the number of the member that has each partition, `NOBODY` where none.
        racks: Whether members and replicas are in racks: member m in `rack_of(m)`, partition id p in
            `replica_racks(p)`.
    """

    topics: tuple[str, ...]
    sizes: IntArray
    members: tuple[str, ...]
    subscriptions: tuple[tuple[int, ...], ...]
    owner: IntArray
    racks: bool

    @property
    def size(self) -> int:
        """N, the number of partitions."""
        return int(self.sizes.sum())

    @property
    def bounds(self) -> IntArray:
        """(T + 1,) topic t has the partitions bounds[t]..bounds[t + 1] - 1."""
        return np.concatenate(([0], np.cumsum(self.sizes)))

    @property
    def pairs(self) -> int:
        """How many (member, partition) there are to choose from."""
        return sum(int(self.sizes[list(topics)].sum()) for topics in self.subscriptions)


def rack_of(number: int) -> str:
    """The rack of a member; with three racks."""
    return f"rack{number % 3}"


def replica_racks(partition: int) -> tuple[str, str]:
    """The racks of the two replicas of a partition id: each partition lacks one of the three racks."""
    return rack_of(partition), rack_of(partition + 1)


def make(case: Case) -> Problem:
    """Make the group of a case."""
    chance = random.Random(f"{case.shape} {case.topics} {case.members} {case.width} {case.uneven}")
    sizes = np.array(list(_sizes(case, chance)), dtype=np.int64)
    subscriptions = _subscriptions(case, chance)
    there_before = subscriptions[:-1] if case.event is Event.JOIN else subscriptions
    owner = np.full(int(sizes.sum()), NOBODY, dtype=np.int64)
    if case.event is not Event.FRESH:
        owner = _prior(case, sizes, there_before)
    if case.event is Event.RESET:
        owner[owner == 0] = NOBODY
    if case.event is Event.LEAVE:
        subscriptions = subscriptions[:-1]
        owner[owner == len(subscriptions)] = NOBODY
    return Problem(
        topics=_names("t", case.topics),
        sizes=sizes,
        members=_names("c", case.members)[: len(subscriptions)],
        subscriptions=tuple(subscriptions),
        owner=owner,
        racks=case.racks,
    )


def _names(letter: str, count: int) -> tuple[str, ...]:
    return tuple(f"{letter}{number:0{len(str(count))}}" for number in range(count))


def _sizes(case: Case, chance: random.Random) -> Iterator[int]:
    for _ in range(case.topics):
        yield chance.randint(1, 3 * case.partitions) if case.uneven else case.partitions


def _subscriptions(case: Case, chance: random.Random) -> list[tuple[int, ...]]:
    everything = tuple(range(case.topics))
    match case.shape:
        case Shape.EQUAL:
            return [everything] * case.members
        case Shape.ODD_ONE:
            return [everything] * (case.members - 1) + [(0,)]
        case Shape.TWO_TOPICS:
            return [_sorted((m % case.topics, (m + 1) % case.topics)) for m in range(case.members)]
        case Shape.OWN_TOPICS:
            return [_sorted(chance.sample(everything, case.width)) for _ in range(case.members)]
        case Shape.SERVICES:
            return _services(case, chance)


def _services(case: Case, chance: random.Random) -> list[tuple[int, ...]]:
    """Services of many sizes with about `width` topics each, every topic in one at least, and loners."""
    wanted = [
        set(range(service, case.topics, SERVICES))  # so that no topic is left out
        | set(
            chance.sample(range(case.topics), chance.randint(0, 2 * (case.width - case.topics // SERVICES)))
        )
        for service in range(SERVICES)
    ]
    of_service = [_sorted(topics) for topics in wanted]
    weights = [1 / (service + 5) for service in range(SERVICES)]  # a few large ones, many small ones
    in_services = list(range(SERVICES)) + chance.choices(
        range(SERVICES), weights, k=case.members - LONERS - SERVICES
    )
    loners = [
        _sorted(chance.sample(range(case.topics), chance.randint(1, case.width))) for _ in range(LONERS)
    ]
    subscriptions = [of_service[service] for service in in_services] + loners
    chance.shuffle(subscriptions)
    return subscriptions


def _sorted(topics: Sequence[int] | set[int]) -> tuple[int, ...]:
    return tuple(sorted(set(topics)))


def _prior(case: Case, sizes: IntArray, subscriptions: Sequence[tuple[int, ...]]) -> IntArray:
    """A balanced assignment, (N,) the member of each partition, for every peer to start from."""
    size, members = int(sizes.sum()), len(subscriptions)
    if case.shape is Shape.EQUAL:
        return np.arange(size) % members
    if case.shape is Shape.ODD_ONE:
        # The odd one has its share of the only topic that it can have, the others all else in turn.
        share = min(size // members, int(sizes[0]))
        others = np.arange(size - share) % (members - 1)
        return np.concatenate((np.full(share, members - 1), others))
    owner = _least_loaded(sizes, subscriptions)
    if case.shape is not Shape.TWO_TOPICS:
        _even_out(owner, sizes, subscriptions)
    return owner


def _subscribers(topics: int, subscriptions: Sequence[tuple[int, ...]]) -> list[IntArray]:
    lists: list[list[int]] = [[] for _ in range(topics)]
    for member, wanted in enumerate(subscriptions):
        for topic in wanted:
            lists[topic].append(member)
    return [np.array(members, dtype=np.int64) for members in lists]


def _least_loaded(sizes: IntArray, subscriptions: Sequence[tuple[int, ...]]) -> IntArray:
    """One partition after the other to its least loaded subscriber, the first of several."""
    loads = np.zeros(len(subscriptions), dtype=np.int64)
    owner = []
    for members, size in zip(_subscribers(sizes.size, subscriptions), sizes.tolist(), strict=True):
        for _ in range(size):
            member = members[loads[members].argmin()] if members.size else NOBODY
            owner.append(member)
            loads[member] += member != NOBODY
    return np.array(owner, dtype=np.int64)


def _even_out(owner: IntArray, sizes: IntArray, subscriptions: Sequence[tuple[int, ...]]) -> None:
    """Move partitions, in place, until no single move evens out the loads of two members any more."""
    loads = np.bincount(owner[owner != NOBODY], minlength=len(subscriptions))
    subscribers = _subscribers(sizes.size, subscriptions)
    topic_of = np.repeat(np.arange(sizes.size), sizes)
    moved = True
    while moved:
        moved = False
        lowest = np.array([loads[members].min() if members.size else 0 for members in subscribers])
        # Loads only even out within a round, so that other partitions need no look.
        for partition in np.flatnonzero((owner != NOBODY) & (loads[owner] > lowest[topic_of] + 1)):
            members = subscribers[topic_of[partition]]
            target = members[loads[members].argmin()]
            if loads[owner[partition]] > loads[target] + 1:
                loads[owner[partition]] -= 1
                loads[target] += 1
                owner[partition] = target
                moved = True


_BOTH: Final = ("sticky", "cooperative-sticky")
_ALL: Final = ("sticky", "cooperative-sticky", "range", "roundrobin")


def _ladder() -> Iterator[Case]:
    steps = ((1, 10, 100, 20), (2, 20, 100, 40), (3, 25, 200, 50), (4, 50, 200, 100), (5, 100, 500, 200))
    for number, topics, partitions, members in steps:
        for event in (Event.FRESH, Event.RESET):
            yield Case(
                label=f"P{number}",
                event=event,
                topics=topics,
                partitions=partitions,
                members=members,
                strategies=_BOTH if number == 4 else ("sticky",),  # noqa: PLR2004 - one rung is enough
            )
    for number, topics, partitions, members in ((6, 10, 100, 20), (7, 25, 200, 50)):
        yield Case(
            label=f"P{number}",
            shape=Shape.TWO_TOPICS,
            event=Event.JOIN,
            topics=topics,
            partitions=partitions,
            members=members,
        )


def _all_different() -> Iterator[Case]:
    groups = [(50, 100, 5), (200, 1000, 20), (200, 1000, 100)]
    for group, (topics, members, width) in enumerate(groups):
        for uneven in (False, True):
            for event in (Event.FRESH, Event.JOIN, Event.LEAVE):
                yield Case(
                    label=f"D{2 * group + uneven + 1}",
                    shape=Shape.OWN_TOPICS,
                    event=event,
                    topics=topics,
                    partitions=50,
                    members=members,
                    width=width,
                    uneven=uneven,
                )


_million = partial(Case, topics=500, partitions=2000, members=2000)
_in_racks = partial(Case, topics=50, partitions=2000, members=2000, racks=True)
_TWO: Final = Shape.TWO_TOPICS

CASES: Final[tuple[Case, ...]] = (
    *_ladder(),
    Case(label="J1", topics=10, partitions=50, members=100, strategies=(*_BOTH, "range")),
    Case(label="J2", event=Event.JOIN, topics=100, partitions=100, members=1000),
    Case(label="J3", topics=10, partitions=5000, members=1000, racks=True, strategies=("sticky", "range")),
    Case(label="J4", event=Event.JOIN, topics=100, partitions=500, members=5000),
    Case(label="J5", shape=_TWO, topics=100, partitions=100, members=1000),
    Case(label="J6", shape=_TWO, event=Event.JOIN, topics=100, partitions=100, members=1000),
    Case(label="J7", topics=1000, partitions=500, members=10000, strategies=_ALL),
    Case(label="J8", shape=_TWO, event=Event.JOIN, topics=1000, partitions=50, members=5000),
    _million(label="K1", strategies=_ALL),
    _million(label="K2", event=Event.RESET, strategies=_BOTH),
    _million(label="K2b", event=Event.LEAVE),
    _million(label="K3", shape=Shape.ODD_ONE),
    _million(label="K4", shape=Shape.ODD_ONE, event=Event.RESET, strategies=_BOTH),
    _in_racks(label="K5"),
    _in_racks(label="K6", event=Event.RESET),
    *_all_different(),
    *(
        Case(
            label="X1",
            shape=Shape.SERVICES,
            event=event,
            topics=1000,
            partitions=500,
            members=10000,
            width=40,
        )
        for event in (Event.FRESH, Event.JOIN)
    ),
)
"""All cases. A peer that is stopped in one is spared those of the same shape that come later, if as large."""
