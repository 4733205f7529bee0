"""Assignors to replay a course with, by name.

Ours, Kafka's own sticky algorithm and the models of KIP-848 are called as planners. What each member had
after the rebalance before is its claim. Members of one group that take part in each rebalance have no others.
Cooperative ones are called again until nothing is held back any more, as the members would join again.

A class that implements kafka-python's contract is called by that contract, one assignor for each member. The
bytes are those that members and leader would send: `metadata`, `assign` on the leader, `on_assignment`.

Left out is what no record has: the racks of replicas, topic ids, and weights of members.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from kafka_assignors._common.strategies import STRATEGIES, load
from kafka_assignors._model.arrays import NOBODY, IntArray, ranges
from kafka_assignors._model.claims import Claims, ClaimTable
from kafka_assignors._model.group import Group
from kafka_assignors._model.members import NO_GENERATION, Member, Members
from kafka_assignors._wire.java.orders import hash_order, string_hash
from kafka_assignors.planners._cooperative import first_round

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors._model.plan import Plan
    from kafka_assignors.history._what_if.course import Course, CourseStep

ROUNDS: Final = 10
"""How many rounds a cooperative rebalance may have; more are cut off."""

_GENERATION: Final = 1
"""The generation of all claims; who claims anything was in the rebalance before."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Situation:
    """A rebalance of a course, with members to give partitions to.

    Attributes:
        group: The members without claims.
        at: (n,) the place of each partition of the group among those of the course.
        who: (M,) the number of each member's identity.
        member_of: (I,) the member of each identity of the course, or `NOBODY`.
        sizes: How many partitions each of the group's topics has.
    """

    group: Group
    at: IntArray
    who: IntArray
    member_of: IntArray
    sizes: Mapping[str, int]

    @classmethod
    def of(cls, course: Course, step: CourseStep) -> Situation:
        """What the members of a step see."""
        counts = dict(zip(course.topics, step.sizes, strict=True))
        members = Members.of(
            Member(
                member_id=member.member_id,
                instance_id=member.instance_id,
                topics=member.topics,
                rack=member.rack,
            )
            for member in step.members
        ).in_order()
        topics = tuple(members.topics)
        subscriptions = tuple(topics[number] for number in members.topics_of.tolist())
        group = replace(_nameless(tuple(counts.items()), subscriptions), members=members)
        identities = {member.member_id: course.numbers[member.identity] for member in step.members}
        who = np.array([identities[member_id] for member_id in group.members.ids], dtype=np.int64)
        member_of = np.full(len(course.identities), NOBODY, dtype=np.int64)
        member_of[who] = np.arange(who.size)
        places = {topic: number for number, topic in enumerate(course.topics)}
        chosen = np.array([places[topic] for topic in group.topics], dtype=np.int64)
        at, _ = ranges(course.bounds[chosen], np.diff(group.topic_bounds))
        sizes = {topic: counts[topic] for topic in group.topics}
        return cls(group=group, at=at, who=who, member_of=member_of, sizes=sizes)

    def kept(self, before: IntArray) -> IntArray:
        """(n,) the member that has each partition and still subscribes to its topic, or `NOBODY`."""
        had = before[self.at]
        member = np.where(had == NOBODY, NOBODY, self.member_of[had])
        if self.group.uniform:
            return member
        there = np.flatnonzero(member != NOBODY)
        wanted = self.group.subscribes(member[there], self.group.topic_of[there])
        member[there[~wanted]] = NOBODY
        return member

    def claimed(self, owner: IntArray, *, held: bool) -> Group:
        """The group with members that claim what they have: (n,) the owner of each partition, or `NOBODY`."""
        # As `Group.of` would find it of members that claim this, in a third of the time: each partition is
        # there, subscribed to, and claimed by one member.
        members, group = self.group.members, self.group
        there = np.flatnonzero(owner != NOBODY)
        there = there[np.argsort(owner[there], kind="stable")]
        claimant, topic = owner[there], group.topic_of[there]
        new_row = np.ones(there.size, dtype=np.bool_)
        new_row[1:] = (claimant[1:] != claimant[:-1]) | (topic[1:] != topic[:-1])
        rows = np.flatnonzero(new_row)
        table = ClaimTable(
            claimants=len(members),
            names=group.topics,
            claimant=claimant[rows],
            topic=topic[rows],
            sizes=np.diff(rows, append=there.size),
            ids=group.partition_ids[there],
        )
        generations = np.full(len(members), NO_GENERATION)
        generations[claimant] = _GENERATION
        claims = Claims(
            partition=there,
            member=claimant,
            generation=generations[claimant],
            subscribed=np.ones(there.size, dtype=np.bool_),
            held=np.full(there.size, held, dtype=np.bool_),
        )
        holds = np.full(len(members), held, dtype=np.bool_)
        members = replace(members, claims=table, generations=generations, holds=holds)
        return replace(group, members=members, claims=claims, owner=owner)


@lru_cache(maxsize=8)
def _nameless(counts: tuple[tuple[str, int], ...], subscriptions: tuple[frozenset[str], ...]) -> Group:
    """A group but for who its members are, which most often is all that changes in a rebalance."""
    members = [Member(member_id=f"{n:09}", topics=topics) for n, topics in enumerate(subscriptions)]
    return Group.of({topic: range(count) for topic, count in counts}, members)


class Leader(Protocol):
    """Assigns for a group, one rebalance after the other."""

    @property
    def cooperative(self) -> bool:
        """Whether members keep what does not move."""

    def assign(self, situation: Situation, before: IntArray) -> IntArray:
        """Who gets what in the end.

        Args:
            situation: The rebalance.
            before: (N,) the identity that had each partition of the course, or `NOBODY`.

        Returns:
            (n,) the member that each partition of the group goes to, or `NOBODY`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A leader that is a planner; with `in_rounds` what moves is given away in a round of its own."""

    plan: Callable[[Group], Plan]
    sticky: bool = False
    cooperative: bool = False
    in_rounds: bool = False

    def assign(self, situation: Situation, before: IntArray) -> IntArray:
        """See `Leader`."""
        if not self.sticky:
            return self.plan(situation.group).owner
        has = situation.kept(before)
        if not self.in_rounds:
            return self.plan(situation.claimed(has, held=False)).owner
        for _ in range(ROUNDS):
            # What a member no longer subscribes to it holds as well until it is told to let go. By the next
            # round it has, so that it makes no difference to who gets it in the end.
            sent, awaited = first_round(self.plan(situation.claimed(has, held=True)))
            has = sent.owner
            if not awaited.size:
                break
        return has


@dataclass(slots=True)
class ByContract:
    """A leader that is an assignor of kafka-python's contract, one for each member."""

    make: Callable[[], Any]
    cooperative: bool
    _assignors: dict[int, Any] = field(default_factory=dict)
    _leader: int = NOBODY
    _generation: int = 0

    def assign(self, situation: Situation, before: IntArray) -> IntArray:
        """See `Leader`; raises what the assignor raises, and a ValueError if its answer cannot be."""
        who = situation.who.tolist()
        ids = situation.group.members.ids
        order = hash_order(range(len(ids)), lambda number: string_hash(ids[number]))
        self._assignors = {number: self._assignors.get(number) or self.make() for number in who}
        if self._leader not in self._assignors:
            self._leader = who[order[0]]
        had = before[situation.at]
        has = np.where(had == NOBODY, NOBODY, situation.member_of[had])
        for _ in range(ROUNDS):
            had, has = has, self._round(situation, order)
            if not self.cooperative or not (has != had)[had != NOBODY].any():
                break  # nobody lost anything, so that nobody joins again
        return has

    def _round(self, situation: Situation, order: Sequence[int]) -> IntArray:
        """One generation."""
        from kafka.protocol.consumer.group import JoinGroupResponse  # noqa: PLC0415 - slow to import
        from kafka.protocol.consumer.metadata import (  # noqa: PLC0415
            ConsumerProtocolAssignment,
            ConsumerProtocolSubscription,
        )

        members, who = situation.group.members, situation.who.tolist()
        joined = []
        for number in order:
            told = self._assignors[who[number]].metadata(set(members.topics[members.topics_of[number]]))
            joined.append(
                JoinGroupResponse.JoinGroupResponseMember(
                    member_id=members.ids[number],
                    group_instance_id=members.instance_ids[number],
                    metadata=ConsumerProtocolSubscription.decode(told.encode()),
                )
            )
        answer = self._assignors[self._leader].assign(_cluster(tuple(situation.sizes.items())), joined)
        self._generation += 1
        given: list[int] = []
        to: list[int] = []
        places = {topic: number for number, topic in enumerate(situation.group.topics)}
        for number in order:
            if members.ids[number] not in answer:
                continue  # kafka-python tells its assignor nothing of this
            assigned = ConsumerProtocolAssignment.decode(answer[members.ids[number]].encode())
            self._assignors[who[number]].on_assignment(assigned, self._generation)
            for topic, partition in assigned.partitions():
                if topic not in places or partition not in range(situation.sizes[topic]):
                    raise ValueError(
                        f"{members.ids[number]} was given {topic}-{partition}, which does not exist"
                    )
                given.append(int(situation.group.topic_bounds[places[topic]]) + partition)
                to.append(number)
        if len(set(given)) < len(given):
            raise ValueError("a partition was given to two members")
        has = np.full(situation.group.size, NOBODY, dtype=np.int64)
        has[given] = to
        return has


@lru_cache(maxsize=16)
def _cluster(sizes: tuple[tuple[str, int], ...]) -> Any:
    """kafka-python's view of a cluster of one broker with these topics."""
    from kafka.cluster import ClusterMetadata  # noqa: PLC0415 - slow to import
    from kafka.protocol.metadata import MetadataResponse  # noqa: PLC0415

    broker, topic_type = MetadataResponse.MetadataResponseBroker, MetadataResponse.MetadataResponseTopic
    cluster = ClusterMetadata()
    cluster.update_metadata(
        MetadataResponse(
            version=7,
            throttle_time_ms=0,
            cluster_id="replayed",
            controller_id=1,
            brokers=[broker(version=7, node_id=1, host="localhost", port=9092, rack=None)],
            topics=[
                topic_type(
                    error_code=0,
                    name=topic,
                    is_internal=False,
                    partitions=[
                        topic_type.MetadataResponsePartition(
                            error_code=0,
                            partition_index=partition,
                            leader_id=1,
                            leader_epoch=0,
                            replica_nodes=[1],
                            isr_nodes=[1],
                            offline_replicas=[],
                        )
                        for partition in range(count)
                    ],
                )
                for topic, count in sizes
            ],
        )
    )
    return cluster


_PLANNED: Final = {
    name: Planned(plan=load(STRATEGIES[name].planner or ""), **how)
    for name, how in {
        "range": {},
        "roundrobin": {},
        "sticky": {"sticky": True},
        "cooperative-sticky": {"sticky": True, "cooperative": True, "in_rounds": True},
        "kip54": {"sticky": True},
        "kip848:uniform": {"sticky": True, "cooperative": True},
        "kip848:range": {"cooperative": True},
    }.items()
}

_KAFKA_PYTHON: Final = {f"kafka-python:{name}": one.stock for name, one in STRATEGIES.items() if one.stock}

NAMES: Final = (*_PLANNED, *_KAFKA_PYTHON)
"""The assignors that have names. `kip54` is the sticky assignor of Kafka's Java clients (KIP-54), eager."""


def leader_of(name: str) -> Leader:
    """A leader for one replay.

    Args:
        name: One of `NAMES`, or `module:Class` of an assignor of kafka-python's contract that needs no
            arguments.

    Raises:
        ValueError: There is no such assignor, or it cannot be made.
    """
    if name in _PLANNED:
        return _PLANNED[name]
    path = _KAFKA_PYTHON.get(name, name)
    module, _, attribute = path.partition(":")
    from kafka.coordinator.assignors.abstract import RebalanceProtocol  # noqa: PLC0415 - slow to import

    known = f"choose one of {', '.join(NAMES)}, or module:Class of your own"
    if not module or not attribute or module in {"kafka-python", "kip848"}:
        raise ValueError(f"there is no assignor {name!r}; {known}")
    try:
        made = load(path)
    except (ImportError, AttributeError) as fault:
        raise ValueError(f"there is no assignor {name!r} ({fault}); {known}") from fault
    missing = [method for method in ("metadata", "assign", "on_assignment") if not hasattr(made, method)]
    if not callable(made) or missing:
        raise ValueError(
            f"{name!r} is no assignor of kafka-python's contract"
            f" (it has no {', '.join(missing) or 'constructor'}); {known}"
        )
    try:
        protocols = made().supported_protocols()
    except Exception as fault:
        raise ValueError(f"{name!r} cannot be made without arguments ({fault}); {known}") from fault
    return ByContract(make=made, cooperative=RebalanceProtocol.COOPERATIVE in protocols)
