"""One rebalance's problem: members, their topics, and who owned what before, as dense integers.

A `Group` is made once per rebalance from what the members said and never changed. Members and topics get
numbers in one fixed order, partitions get one flat number each, and the members' claims of prior ownership
are settled here and nowhere else. Planners see nothing but a `Group`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self

import numpy as np

from kafka_assignors.arrays import NOBODY, BoolArray, IntArray
from kafka_assignors.claims import Claims, ClaimTable, Existing, subscribed

__all__ = ["MAX_WEIGHT", "NOBODY", "NO_GENERATION", "Group", "IntArray", "Member", "racks_matter"]

NO_GENERATION = -1
"""The generation of a member that is in none, or that does not say (Kafka's DEFAULT_GENERATION)."""


MAX_WEIGHT = 1000
"""The largest weight of a member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """What one member brought to the rebalance, decoded and cleaned.

    Attributes:
        member_id: The id that the coordinator gave it; unique in the group.
        topics: The topics it subscribes to.
        instance_id: Its `group.instance.id` if it is a static member (KIP-345).
        rack: Its rack, None if unknown (KIP-881).
        claims: The partitions that it says it owned, by topic. Any integers: those that do not exist are
            sorted out by `Group`.
        generation: The generation in which it owned them, `NO_GENERATION` if it does not say.
        holds: Whether the claims are partitions that it holds at this moment and goes on holding until
            told otherwise (cooperative), or only a memory of what it had (eager).
        weight: How much it can take on beside the others: twice the weight, twice the partitions;
            1 to `MAX_WEIGHT`.
    """

    member_id: str
    topics: frozenset[str]
    instance_id: str | None = None
    rack: str | None = None
    claims: Mapping[str, Collection[int]] = field(default_factory=dict)
    generation: int = NO_GENERATION
    holds: bool = False
    weight: int = 1

    @property
    def order(self) -> tuple[bool, bytes]:
        """Sort key: static members by instance id, then dynamic ones by member id (Kafka's MemberInfo).

        Strings compare by their UTF-16 units, as Java's do, so that every leader sees one order.
        """
        name = self.member_id if self.instance_id is None else self.instance_id
        return self.instance_id is None, name.encode("utf-16-be", "surrogatepass")


@dataclass(frozen=True, kw_only=True, eq=False)
class Group:
    """Members, subscriptions, partitions and settled prior ownership of one rebalance.

    Build it with `Group.of`. M members, T topics and N partitions; a *partition* is its flat number
    0..N-1, in the order of (topic, partition id).

    Attributes:
        members: The members in canonical order; a member's number is its place here.
        topics: The subscribed topics that exist, sorted; a topic's number is its place here.
        partition_ids: (N,) the id of each partition in its topic. Ids need not start at 0 or be contiguous.
        topic_bounds: (T + 1,) the partitions of topic t are topic_bounds[t]..topic_bounds[t + 1] - 1.
        distinct_subscriptions: The different subscriptions, each the numbers of its topics, ascending; in
            the order of the first member that has it.
        subscription_of: (M,) the number of each member's subscription.
        claims: The claims on partitions that exist, valid or not.
        owner: (N,) the member whose claim on the partition is valid, or `NOBODY`. Who holds it comes before
            who only remembers it, then the highest generation wins; two such claims of one generation
            cancel each other; a claim counts only while its member subscribes to the topic.
        replica_racks: For each partition the racks of its replicas; None where no member names a rack.
    """

    members: tuple[Member, ...]
    topics: tuple[str, ...]
    partition_ids: IntArray
    topic_bounds: IntArray
    distinct_subscriptions: tuple[tuple[int, ...], ...]
    subscription_of: IntArray
    claims: Claims
    owner: IntArray
    replica_racks: tuple[frozenset[str], ...] | None

    @classmethod
    def of(
        cls,
        topics: Mapping[str, Iterable[int]],
        members: Iterable[Member],
        replica_racks: Mapping[tuple[str, int], frozenset[str]] | None = None,
    ) -> Self:
        """Number everything and settle the claims.

        Args:
            topics: The partition ids of each topic. Topics that nobody subscribes to, or that have no
                partitions, are left out of the group.
            members: The members in any order; their member ids differ.
            replica_racks: The racks of each (topic, partition id)'s replicas. Used if a member has a rack.

        Raises:
            ValueError: Two members have one member id, or a member's weight is out of range.
        """
        ordered = tuple(sorted(members, key=lambda member: member.order))
        ids = [member.member_id for member in ordered]
        if len(set(ids)) != len(ids):
            twice = sorted({name for name in ids if ids.count(name) > 1})
            raise ValueError(f"member ids must differ, but {twice} came more than once")
        for member in ordered:
            if not 1 <= member.weight <= MAX_WEIGHT:
                raise ValueError(
                    f"the weight of {member.member_id} must be from 1 to {MAX_WEIGHT}, not {member.weight}"
                )

        wanted = frozenset[str]().union(*(member.topics for member in ordered))
        id_arrays = {
            topic: np.unique(np.fromiter(topics[topic], dtype=np.int64)) for topic in wanted & topics.keys()
        }
        names = tuple(sorted(topic for topic, array in id_arrays.items() if array.size))
        numbers = {topic: number for number, topic in enumerate(names)}
        sizes = [id_arrays[topic].size for topic in names]
        bounds = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        partition_ids = np.concatenate([_EMPTY, *(id_arrays[topic] for topic in names)])

        # Members with equal topics are many: number each distinct subscription once.
        by_topics: dict[frozenset[str], int] = {}
        by_numbers: dict[tuple[int, ...], int] = {}
        for member in ordered:
            if member.topics not in by_topics:
                subscription = tuple(sorted(numbers[topic] for topic in member.topics & numbers.keys()))
                by_topics[member.topics] = by_numbers.setdefault(subscription, len(by_numbers))
        distinct = tuple(by_numbers)
        subscription_of = np.array([by_topics[member.topics] for member in ordered], dtype=np.int64)

        existing = Existing(topics=numbers, ids=partition_ids, bounds=bounds)
        generations = np.array([member.generation for member in ordered], dtype=np.int64)
        claims = Claims.find(
            ClaimTable.of([member.claims for member in ordered]),
            existing,
            subscriptions=distinct,
            subscription_of=subscription_of,
            generations=generations,
            holds=np.array([member.holds for member in ordered], dtype=np.bool_),
        )
        racks = None
        if replica_racks is not None and any(member.rack for member in ordered):
            racks = tuple(
                replica_racks.get((topic, int(partition)), frozenset())
                for topic in names
                for partition in id_arrays[topic]
            )
        return cls(
            members=ordered,
            topics=names,
            partition_ids=partition_ids,
            topic_bounds=bounds,
            distinct_subscriptions=distinct,
            subscription_of=subscription_of,
            claims=claims,
            owner=claims.owners(existing.size),
            replica_racks=racks,
        )

    @property
    def size(self) -> int:
        """N, the number of partitions."""
        return self.partition_ids.size

    @cached_property
    def previous(self) -> IntArray:
        """(N,) the member with the newest valid claim from before the newest generation, or `NOBODY`.

        KIP-54's "previous assignment". The members that were in the newest generation may claim nothing.
        """
        newest = max((member.generation for member in self.members), default=NO_GENERATION)
        return self.claims.previous_owners(newest, self.size)

    @cached_property
    def holders(self) -> IntArray:
        """(K, 2) pairs (partition, member): what members hold at this moment, valid claim or not."""
        held = self.claims.held
        return np.stack((self.claims.partition[held], self.claims.member[held]), axis=1)

    @property
    def revocation_required(self) -> bool:
        """Whether a member claims a partition of a topic that it no longer subscribes to."""
        return not self.claims.subscribed.all()

    @cached_property
    def topic_of(self) -> IntArray:
        """(N,) the number of each partition's topic."""
        return np.repeat(np.arange(len(self.topics)), np.diff(self.topic_bounds))

    @cached_property
    def weights(self) -> IntArray:
        """(M,) the weight of each member."""
        return np.array([member.weight for member in self.members], dtype=np.int64)

    @cached_property
    def uniform(self) -> bool:
        """Whether all members subscribe to the same existing topics."""
        return len(self.distinct_subscriptions) <= 1

    @cached_property
    def subscriptions(self) -> tuple[tuple[int, ...], ...]:
        """For each member the numbers of its topics, ascending."""
        return tuple(self.distinct_subscriptions[number] for number in self.subscription_of.tolist())

    @cached_property
    def subscribers(self) -> tuple[tuple[int, ...], ...]:
        """For each topic the numbers of its members, ascending."""
        members: list[list[int]] = [[] for _ in self.topics]
        for number, subscription in enumerate(self.subscriptions):
            for topic in subscription:
                members[topic].append(number)
        return tuple(map(tuple, members))

    def subscribes(self, member: IntArray, topic: IntArray) -> BoolArray:
        """Whether each member subscribes to the topic beside it, an array of numbers each."""
        return subscribed(
            topic, self.subscription_of[member], self.distinct_subscriptions, topics=len(self.topics)
        )

    def partitions_of(self, topic: int) -> range:
        """The partitions of the topic with this number."""
        return range(int(self.topic_bounds[topic]), int(self.topic_bounds[topic + 1]))

    def name_of(self, partition: int) -> tuple[str, int]:
        """The (topic, partition id) of a partition."""
        return self.topics[self.topic_of[partition]], int(self.partition_ids[partition])


_EMPTY = np.empty(0, dtype=np.int64)


def racks_matter(member_racks: Collection[str], partition_racks: Sequence[frozenset[str]]) -> bool:
    """KIP-881's rule of when to look at racks (Kafka's AbstractPartitionAssignor.useRackAwareAssignment).

    Args:
        member_racks: The racks of the members in question, unknown ones left out.
        partition_racks: For each partition in question the racks of its replicas.

    Returns:
        True if members and replicas share a rack and the partitions differ in their racks: where every
        partition is in every rack, any plan is as good as another.
    """
    everywhere = frozenset[str]().union(*partition_racks)
    return not everywhere.isdisjoint(member_racks) and any(racks != everywhere for racks in partition_racks)
