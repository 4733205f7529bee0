"""One rebalance's problem: members, their topics, and who owned what before, as dense integers.

A `Group` is made once per rebalance from what the members said and never changed. Members and topics get
numbers in one fixed order, and partitions get one flat number each. The members' claims of prior ownership
are settled here and nowhere else. Planners see nothing but a `Group`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import Self

import numpy as np

from kafka_assignors._model.arrays import NOBODY, BoolArray, IntArray
from kafka_assignors._model.claims import Claims, Existing
from kafka_assignors._model.members import MAX_WEIGHT, NO_GENERATION, Member, Members
from kafka_assignors._model.racks import KnownRacks, ReplicaRacks, racks_matter
from kafka_assignors._model.standbys import Subscriptions, of_highest_priority
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors._model.topic_sets import TopicNumbers

__all__ = ["MAX_WEIGHT", "NOBODY", "NO_GENERATION", "Group", "IntArray", "Member", "Members"]


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
        subscribed: The different subscriptions, in the order of the first member that has each. To a topic
            subscribe only those who take part in it: of who sent it, the members of the highest priority. The
            others are its standbys; what they claim of it they may hold, but it is not valid.
        subscription_of: (M,) the number of each member's subscription.
        claims: The claims on partitions that exist, valid or not.
        owner: (N,) the member whose claim on the partition is valid, or `NOBODY`. Who holds it comes before
            who only remembers it, then the highest generation wins. Two such claims of one generation cancel
            each other. A claim counts only while its member subscribes to the topic.
        replica_racks: For each partition the racks of its replicas; None where no member names a rack.
    """

    members: Members
    topics: tuple[str, ...]
    partition_ids: IntArray
    topic_bounds: IntArray
    subscribed: TopicNumbers
    subscription_of: IntArray
    claims: Claims
    owner: IntArray
    replica_racks: ReplicaRacks | None

    @classmethod
    def of(
        cls,
        topics: Mapping[str, Iterable[int]],
        members: Members | Iterable[Member],
        replica_racks: KnownRacks | None = None,
        *,
        tick: Tick = go_on,
    ) -> Self:
        """Number everything and settle the claims.

        Args:
            topics: The partition ids of each topic. Topics that nobody subscribes to, or that have no
                partitions, are left out of the group.
            members: The members in any order; their member ids differ. As `Members` they need not be made.
            replica_racks: The racks of each (topic, partition id)'s replicas, or a function of topic and ids.
                Used if a member has a rack.
            tick: Called again and again meanwhile; it may raise to give up.

        Raises:
            ValueError: Two members have one member id, or a member's weight or priority is out of range.
        """
        if not isinstance(members, Members):
            members = Members.of(members, tick)
        tick()
        members = members.in_order()
        tick()
        ids = _ids_of(topics, members.wanted, tick)
        numbers = {topic: number for number, topic in enumerate(ids)}
        partition_ids, bounds = _flat([*ids.values()])
        tick()
        subscribed, which = TopicNumbers.of(members.topics, numbers, tick)
        subscription_of = which[members.topics_of]
        if members.extras:
            (subscribed, subscription_of), _ = of_highest_priority(
                (subscribed, subscription_of), members.priorities
            )
        claims = Claims.find(
            members.claims,
            Existing(topics=numbers, ids=partition_ids, bounds=bounds),
            subscribed=subscribed,
            subscription_of=subscription_of,
            generations=members.generations,
            holds=members.holds,
            tick=tick,
        )
        tick()
        return cls(
            members=members,
            topics=tuple(ids),
            partition_ids=partition_ids,
            topic_bounds=bounds,
            subscribed=subscribed,
            subscription_of=subscription_of,
            claims=claims,
            owner=claims.owners(partition_ids.size),
            replica_racks=ReplicaRacks.of(ids, replica_racks, tick) if any(members.racks) else None,
        )

    def with_claims(self, claims: Claims) -> Self:
        """The same group with other claims, by which the owners are settled."""
        return replace(self, claims=claims, owner=claims.owners(self.size))

    def with_subscriptions(self, subscriptions: Subscriptions) -> Self:
        """The same group with others who take part, by which the owners are settled."""
        subscribed, subscription_of = subscriptions
        claims = self.claims
        topic = self.topic_of[claims.partition]
        valid = subscribed.contain(subscription_of[claims.member], topic)
        group = replace(self, subscribed=subscribed, subscription_of=subscription_of)
        return group.with_claims(replace(claims, subscribed=valid))

    @cached_property
    def sent(self) -> Subscriptions:
        """`subscribed` and `subscription_of` as members sent them, standbys among them."""
        numbers = {topic: number for number, topic in enumerate(self.topics)}
        subscribed, which = TopicNumbers.of(self.members.topics, numbers)
        return subscribed, which[self.members.topics_of]

    def has_sent(self, member: IntArray, topic: IntArray) -> BoolArray:
        """As `subscribes`, but by what members sent."""
        subscribed, subscription_of = self.sent
        return subscribed.contain(subscription_of[member], topic)

    @cached_property
    def standbys(self) -> BoolArray:
        """(M,) whether each member sent topics that exist, and takes part in none of them."""
        (sent, sent_of), taken = self.sent, self.subscribed
        found: BoolArray = (np.diff(sent.bounds)[sent_of] > 0) & (
            np.diff(taken.bounds)[self.subscription_of] == 0
        )
        return found

    @cached_property
    def existing(self) -> Existing:
        """The partitions by topic and id, to find them again in a later group."""
        topics = {topic: number for number, topic in enumerate(self.topics)}
        return Existing(topics=topics, ids=self.partition_ids, bounds=self.topic_bounds)

    @property
    def size(self) -> int:
        """N, the number of partitions."""
        return self.partition_ids.size

    @cached_property
    def previous(self) -> IntArray:
        """(N,) the member with the newest valid claim from before the newest generation, or `NOBODY`.

        KIP-54's "previous assignment". The members that were in the newest generation may claim nothing.
        """
        newest = int(self.members.generations.max(initial=NO_GENERATION))
        return self.claims.previous_owners(newest, self.size)

    @cached_property
    def holders(self) -> IntArray:
        """(K, 2) pairs (partition, member): what members hold at this moment, valid claim or not."""
        held = self.claims.held
        return np.stack((self.claims.partition[held], self.claims.member[held]), axis=1)

    @cached_property
    def topic_of(self) -> IntArray:
        """(N,) the number of each partition's topic."""
        return np.arange(len(self.topics)).repeat(self.topic_bounds[1:] - self.topic_bounds[:-1])

    @property
    def weights(self) -> IntArray:
        """(M,) the weight of each member."""
        return self.members.weights

    @cached_property
    def uniform(self) -> bool:
        """Whether all members subscribe to the same existing topics."""
        return len(self.subscribed) <= 1

    @cached_property
    def local_racks(self) -> ReplicaRacks | None:
        """For each partition those racks of members that a replica is in; None where racks do not matter."""
        if self.replica_racks is None:
            return None
        racks = frozenset(rack for rack in self.members.racks if rack)
        if not racks_matter(racks, self.replica_racks.sets):
            return None
        return self.replica_racks.within(racks)

    @cached_property
    def subscriptions(self) -> tuple[tuple[int, ...], ...]:
        """For each member the numbers of its topics, ascending."""
        distinct = self.subscribed.tuples()
        return tuple(distinct[number] for number in self.subscription_of.tolist())

    @cached_property
    def subscribers(self) -> tuple[tuple[int, ...], ...]:
        """For each topic the numbers of its members, ascending."""
        # Topics in the same subscriptions have one tuple.
        subscriptions: list[list[int]] = [[] for _ in self.topics]
        for number, topics in enumerate(self.subscribed.tuples()):
            for topic in topics:
                subscriptions[topic].append(number)
        members_of: dict[tuple[int, ...], tuple[int, ...]] = {}
        for numbers in set(map(tuple, subscriptions)):
            wanted = np.zeros(len(self.subscribed), dtype=np.bool_)
            wanted[list(numbers)] = True
            members_of[numbers] = tuple(wanted[self.subscription_of].nonzero()[0].tolist())
        return tuple(members_of[tuple(numbers)] for numbers in subscriptions)

    def subscribes(self, member: IntArray, topic: IntArray) -> BoolArray:
        """Whether each member subscribes to the topic beside it, an array of numbers each."""
        return self.subscribed.contain(self.subscription_of[member], topic)

    def partitions_of(self, topic: int) -> range:
        """The partitions of the topic with this number."""
        return range(int(self.topic_bounds[topic]), int(self.topic_bounds[topic + 1]))

    def name_of(self, partition: int) -> tuple[str, int]:
        """The (topic, partition id) of a partition."""
        return self.topics[self.topic_of[partition]], int(self.partition_ids[partition])


_EMPTY = np.empty(0, dtype=np.int64)
_BREATH = 10_000
"""After how many topics or partitions to call a tick: some milliseconds."""


def _ids_of(
    topics: Mapping[str, Iterable[int]], wanted: Collection[str], tick: Tick
) -> dict[str, Sequence[int]]:
    """The ids of the topics that somebody wants and that have some, in the order of their names."""
    ids = {}
    for topic in topics.keys() & wanted:
        ids[topic] = _ascending(topics[topic])
        if len(ids) % _BREATH == 0:
            tick()
    return {topic: ids[topic] for topic in sorted(ids) if ids[topic]}


def _flat(ids: Sequence[Sequence[int]]) -> tuple[IntArray, IntArray]:
    """The ids of all topics in one array, and where those of each begin and end."""
    counting = np.arange(max(map(len, ids), default=0))
    arrays = (
        counting[: len(each)] if isinstance(each, range) else np.array(each, dtype=np.int64) for each in ids
    )
    return np.concatenate([_EMPTY, *arrays]), np.array([0, *accumulate(map(len, ids))])


def _ascending(ids: Iterable[int]) -> Sequence[int]:
    """Partition ids in order, each once; a range if they count up from 0."""
    if isinstance(ids, range) and ids == range(len(ids)):
        return ids
    listed = list(ids)
    # Clients know ids that count up from 0, in order, or in sets, which give such numbers in order.
    counting = range(len(listed))
    return counting if listed == list(counting) else sorted(set(listed))
