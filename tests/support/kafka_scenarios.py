"""What the tests named after Kafka's sticky assignor tests share: planners, groups that live on, judgements.

A scenario is a `Story`: members come, go and change their minds, and `rebalance` is called in between.
Each is told once and runs

- with every planner of `PLANNERS`; those about racks with `exact` only, which looks at them;
- eagerly, and cooperatively: then a rebalance is followed through its rounds until nothing is held back;
- with racks unknown on one side, on the other, or everywhere the same, as Kafka's RackConfig does: where
  racks cannot matter, they must not.

Where Kafka's test pins one plan of several that are as good, it says `assert_no_worse_than`: what was pinned
there is a bound here. The plans of `kip54` are compared with those of Kafka's own classes elsewhere.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any, Final

import numpy as np
import pytest
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from kafka_assignors import Assignor, StickyAssignor
from kafka_assignors._model.group import NO_GENERATION, NOBODY, Group, Member
from kafka_assignors._model.plan import Plan, check
from kafka_assignors.planners import hand_over, plan_exact
from kafka_assignors.planners._kip54 import plan_kip54
from tests.support.by_hand import cluster_of, joined, partitions_in
from tests.support.random_groups import settled

Planner = Callable[[Group], Plan]
Assigned = Mapping[str, Mapping[str, Collection[int]]]
"""Partition ids by member and topic."""

Partition = tuple[str, int]

PLANNERS: Final[dict[str, Planner]] = {"kip54": plan_kip54, "exact": plan_exact}

# Kafka's own test allows four rebalances after the first one (apache/kafka#7503). With unequal subscriptions
# what kip54 plans in the second round, without the claims on what was let go of, may move partitions again.
MOST_ROUNDS: Final = {"kip54": 3, "exact": 2}

RACKS: Final = ("a", "b", "c")


def parse(written: str) -> dict[str, list[int]]:
    """Partition ids by topic of "t-0 t-1 u-3"."""
    topics: dict[str, list[int]] = {}
    for name in written.split():
        topic, _, number = name.rpartition("-")
        topics.setdefault(topic, []).append(int(number))
    return topics


def flat(topics: Mapping[str, Iterable[int]]) -> set[Partition]:
    return {(topic, number) for topic, ids in topics.items() for number in ids}


def flat_all(assigned: Assigned) -> dict[str, set[Partition]]:
    return {member: flat(topics) for member, topics in assigned.items()}


def assert_valid(group: Group, assigned: Assigned) -> None:
    """Everything goes to exactly one member, and that one subscribes to it; every member has an entry."""
    assert assigned.keys() == {member.member_id for member in group.members}
    for member in group.members:
        assert assigned[member.member_id].keys() <= member.topics, member.member_id
    for topic, name in enumerate(group.topics):
        ids = chain.from_iterable(topics.get(name, ()) for topics in assigned.values())
        expected = group.partition_ids[list(group.partitions_of(topic))].tolist()
        assert sorted(ids) == expected, name


def assert_no_single_move_helps(plan: Plan) -> None:
    """Nobody has two partitions more than a member that could take one of them over.

    Stricter than Kafka's verifyValidityAndBalance, which looks at members with partitions of one topic only.
    """
    group, loads = plan.group, plan.loads
    for topic, subscribers in enumerate(group.subscribers):
        holders = plan.owner[list(group.partitions_of(topic))]
        assert loads[holders].max() <= loads[list(subscribers)].min() + 1, group.topics[topic]


def assert_best_balance(plan: Plan) -> None:
    """No chain of moves evens out the loads; then no other plan has a better sorted vector of loads.

    A chain passes from a member through a topic of which it has a partition to any other subscriber.
    """
    group = plan.group
    holders = [
        set(plan.owner[list(group.partitions_of(topic))].tolist()) for topic in range(len(group.topics))
    ]
    for load in np.unique(plan.loads).tolist():
        # Whoever could pass something on, in one step or many, to one of the members with this load.
        reached = set(np.flatnonzero(plan.loads <= load).tolist())
        front, topics = list(reached), set[int]()
        while front:
            for topic in group.subscriptions[front.pop()]:
                if topic not in topics:
                    topics.add(topic)
                    front += holders[topic] - reached
                    reached |= holders[topic]
        highest = max(plan.loads[list(reached)].tolist())
        assert highest <= load + 1, (load, highest)


def assert_no_exchange(group: Group, after: Assigned) -> None:
    """No two members give each other partitions of one topic, that each of them could have kept.

    Kafka's isSticky, but over all that changed hands, not only over what its last step moved.
    """
    had = settled(group)
    went = {
        (topic, had[topic, number], member)
        for member, mine in flat_all(after).items()
        for topic, number in mine
        if had.get((topic, number), member) != member
    }
    assert not {way for way in went if (way[0], way[2], way[1]) in went}


def rack_mismatches(group: Group, assigned: Assigned) -> int:
    """How many partitions have no replica in the rack of their member, which has one (Kafka's count)."""
    assert group.replica_racks is not None
    racks = {group.name_of(number): racks for number, racks in enumerate(group.replica_racks)}
    mine = flat_all(assigned)
    return sum(
        member.rack not in racks[partition]
        for member in group.members
        if member.rack is not None
        for partition in mine[member.member_id]
    )


def cost(group: Group, assigned: Assigned) -> tuple[list[int], int, int]:
    """What a plan is judged by: loads, the highest first; partitions outside their racks; moves."""
    mine = flat_all(assigned)
    loads = sorted((len(partitions) for partitions in mine.values()), reverse=True)
    moves = sum(
        group.name_of(partition) not in mine[group.members[owner].member_id]
        for partition, owner in enumerate(group.owner.tolist())
        if owner != NOBODY
    )
    return loads, rack_mismatches(group, assigned) if group.replica_racks else 0, moves


@dataclass
class Story:
    """A group from rebalance to rebalance, with members as they will join the next one.

    Racks are known of "none", "brokers", "members" or "both"; then every partition has replicas in all racks.
    `group` and `goal` are those of the last rebalance's first round: with all that could not be given yet.
    """

    topics: dict[str, int]
    planner: str
    cooperative: bool = False
    racks: str = "none"
    members: dict[str, Member] = field(default_factory=dict)
    generation: int = 1
    group: Group = field(init=False)
    goal: Plan = field(init=False)
    assigned: Assigned = field(default_factory=dict)
    rounds: int = 0

    def join(self, member: str, *topics: str) -> None:
        """A new member, or one that lost its memory."""
        self.claim(member, topics, {}, NO_GENERATION)

    def claim(
        self, member: str, topics: Iterable[str], claims: Mapping[str, Collection[int]] | str, generation: int
    ) -> None:
        """A member that says it owned something in a generation."""
        rack = RACKS[len(self.members) % len(RACKS)] if self.racks in ("members", "both") else None
        self.members[member] = Member(
            member_id=member,
            topics=frozenset(topics),
            rack=self.members[member].rack if member in self.members else rack,
            claims=parse(claims) if isinstance(claims, str) else claims,
            generation=generation,
            holds=self.cooperative,
        )
        self.generation = max(self.generation, generation + 1)

    def subscribe(self, member: str, *topics: str) -> None:
        self.members[member] = replace(self.members[member], topics=frozenset(topics))

    def leave(self, member: str) -> None:
        del self.members[member]

    def rebalance(self, *, small: bool = True) -> dict[str, set[Partition]]:
        """Rebalance, judge all that can be judged without knowing the scenario, and let members remember."""
        self.rounds = 0
        while True:
            group = self._group()
            goal = PLANNERS[self.planner](group)
            check(goal, group)
            sent = hand_over(goal) if self.cooperative else goal
            assigned = sent.assignments()
            if self.cooperative:
                self._check_hand_over(sent)
            if not self.rounds:
                self.group, self.goal = group, goal
                if small:
                    self._check_racks_change_nothing()
            self.rounds += 1
            for name, member in self.members.items():
                self.members[name] = replace(member, claims=assigned[name], generation=self.generation)
            self.generation += 1
            if not sent.unassigned.size:
                break
            most = MOST_ROUNDS["exact"] if group.uniform else MOST_ROUNDS[self.planner]
            assert self.rounds < most, f"{sent.unassigned.size} partitions held back after {most} rounds"

        self.assigned = assigned
        assert_valid(group, assigned)
        self._check_balance(goal)
        if small:
            assert_no_exchange(self.group, assigned)
            again = self._group()
            assert PLANNERS[self.planner](again).assignments() == assigned, "it does not keep its own plan"
            if self.planner != "kip54":
                self.assert_no_worse_than(plan_kip54(self.group).assignments())
        return flat_all(assigned)

    def plan(self) -> Plan:
        """What the next rebalance is to lead to."""
        return PLANNERS[self.planner](self._group())

    @property
    def loads(self) -> list[int]:
        """How many partitions members have, ascending."""
        return sorted(sum(map(len, topics.values())) for topics in self.assigned.values())

    @property
    def moves(self) -> int:
        """How many partitions the last rebalance took from members that had them and could have kept them."""
        return self.goal.moves

    @property
    def changing_hands(self) -> dict[Partition, str]:
        """The partitions that somebody claimed and somebody else gets, who did not (Kafka's
        partitionsTransferringOwnership)."""
        claimed = flat_all({member.member_id: member.claims for member in self.group.members})
        anybodys = set[Partition]().union(*claimed.values())
        return {
            partition: member
            for member, mine in flat_all(self.goal.assignments()).items()
            for partition in (mine & anybodys) - claimed[member]
        }

    def assert_no_worse_than(self, pinned: Mapping[str, str] | Assigned) -> None:
        """Balance, then racks, then moves are at least as good as in this plan for the same group.

        For kip54, which does not look at racks, only where racks make no difference.
        """
        written = {m: parse(mine) if isinstance(mine, str) else mine for m, mine in pinned.items()}
        assert_valid(self.group, written)
        assert cost(self.group, self.goal.assignments()) <= cost(self.group, written)

    def _group(self) -> Group:
        racks = None
        if self.racks in ("brokers", "both"):
            everywhere = frozenset(RACKS)
            racks = {
                (topic, number): everywhere for topic, size in self.topics.items() for number in range(size)
            }
        topics = {topic: range(size) for topic, size in self.topics.items()}
        return Group.of(topics, self.members.values(), racks)

    def _check_racks_change_nothing(self) -> None:
        if self.racks != "none":
            members = [replace(member, rack=None) for member in self.members.values()]
            topics = {topic: range(size) for topic, size in self.topics.items()}
            plan = PLANNERS[self.planner](Group.of(topics, members))
            assert plan.assignments() == self.goal.assignments()

    def _check_balance(self, plan: Plan) -> None:
        if self.planner == "exact":
            assert_best_balance(plan)
        else:
            assert_no_single_move_helps(plan)

    def _check_hand_over(self, sent: Plan) -> None:
        """Nothing is given to anybody while somebody else may be consuming it.

        A member keeps what it has, unless somebody has it who was in a generation as new.
        """
        group = sent.group
        generation = np.array([member.generation for member in group.members])
        partition, holder = group.holders.T
        receiver = sent.owner[partition]
        others = (receiver != NOBODY) & (receiver != holder)
        if not others.any():
            return
        pairs = set(zip(partition.tolist(), holder.tolist(), strict=True))
        for number, member in zip(partition[others].tolist(), holder[others].tolist(), strict=True):
            owner = int(sent.owner[number])
            assert (number, owner) in pairs, group.name_of(number)
            assert generation[member] < generation[owner], group.name_of(number)


Begin = Callable[..., Story]
"""Begins a story from the sizes of its topics."""


def stories(
    modes: Sequence[str] = ("eager", "cooperative"),
    racks: Sequence[str] = ("none", "brokers", "members", "both"),
) -> pytest.MarkDecorator:
    """A mark that runs a test, whose argument is `begin`, in all of these variants."""

    def variants() -> Iterator[Any]:
        for planner in PLANNERS:
            for mode in modes:
                for known in racks:
                    begin = partial(Story, planner=planner, cooperative=mode == "cooperative", racks=known)
                    yield pytest.param(begin, id=f"{planner}-{mode}-racks:{known}")

    return pytest.mark.parametrize("begin", list(variants()))


every_way = stories()
"""All planners, both protocols, whatever is known of racks (Kafka's RackConfig)."""

with_and_without_racks = stories(racks=("none", "both"))
"""As Kafka runs its large scenarios."""

every_planner = pytest.mark.parametrize("planner", PLANNERS)


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A group whose partitions have replicas in some racks only (Kafka's verifyRackAssignment).

    Brokers are numbered through; the replicas of the n-th partition, counted over all topics, are on
    brokers n, n + 1, ...; broker b is in the b-th of the racks, None if that is not known.
    """

    topics: Mapping[str, int]
    replicas: int
    brokers: Sequence[str | None]
    members: Sequence[str | None]
    wanted: Sequence[Iterable[str]]

    def group(self, owned: Sequence[str] = (), *, holds: bool = False) -> Group:
        names = [(topic, number) for topic, size in self.topics.items() for number in range(size)]
        replica_racks = {
            name: frozenset(
                rack
                for replica in range(self.replicas)
                if (rack := self.brokers[(place + replica) % len(self.brokers)])
            )
            for place, name in enumerate(names)
        }
        members = [
            Member(
                member_id=f"consumer{number}",
                topics=frozenset(self.wanted[number]),
                rack=rack,
                claims=parse(owned[number]) if owned else {},
                generation=NO_GENERATION,
                holds=holds,
            )
            for number, rack in enumerate(self.members)
        ]
        return Group.of({topic: range(size) for topic, size in self.topics.items()}, members, replica_racks)


def by_number(written: Sequence[str]) -> dict[str, dict[str, list[int]]]:
    """Assignments by member id of members that are numbered."""
    return {f"consumer{number}": parse(partitions) for number, partitions in enumerate(written)}


def sizes_by_topic(mine: Iterable[Partition]) -> dict[str, int]:
    return dict(Counter(topic for topic, _ in mine))


def subscription(
    version: int, topics: list[str], owned: str, generation: int, user_data: bytes | None
) -> Any:
    """A subscription of this version with as much of this as the version has fields for."""
    partition = ConsumerProtocolSubscription.TopicPartition
    return ConsumerProtocolSubscription(
        version=version,
        topics=topics,
        user_data=user_data,
        owned_partitions=[partition(topic=topic, partitions=ids) for topic, ids in parse(owned).items()],
        generation_id=generation,
    )


def assign_by_hand(
    assignor: Assignor, topics: Mapping[str, Iterable[int]], **subscriptions: Any
) -> dict[str, set[Partition]]:
    """What members with these subscriptions get from this leader, over the wire both ways."""
    members = [joined(member, sent) for member, sent in subscriptions.items()]
    assigned = assignor.assign(cluster_of(topics), members)
    return flat_all({member: partitions_in(assigned[member]) for member in subscriptions})


def as_read(strategy: type[StickyAssignor], sent: Any) -> tuple[dict[str, list[int]], int, bool]:
    """What a leader reads in a subscription: claims, their generation, and whether they are held."""
    read: list[Member] = []

    def plan(group: Group) -> Plan:
        read.extend(group.members)
        return plan_kip54(group)

    assign_by_hand(strategy(planner=plan), {"t": range(1)}, m=sent)
    (member,) = read
    return {topic: list(ids) for topic, ids in member.claims.items()}, member.generation, member.holds
