"""Range: each topic's partitions in ranges, one range a subscriber (Kafka's RangeAssignor, KIP-881)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise

import numpy as np

from kafka_assignors._model.arrays import NOBODY, IntArray
from kafka_assignors._model.group import Group, racks_matter
from kafka_assignors._model.plan import Plan


def plan_range(group: Group) -> Plan:
    """Divide every topic by itself among its subscribers, the first ones getting one more if need be.

    Where racks matter, partitions go to members in a rack of one of their replicas first, as far as
    the quotas allow; topics with the same subscribers and the same partition ids stay co-partitioned.
    The result is exactly that of Apache Kafka 4.3's RangeAssignor.
    """
    if group.replica_racks is None:
        return Plan.from_owner(group, owners_by_range(group))
    owner = np.full(group.size, NOBODY, dtype=np.int64)
    topics = [_Topic(group, topic, owner) for topic in range(len(group.topics))]
    if any(topic.racks_matter for topic in topics):
        _match_racks(topics)
    for topic in topics:
        topic.assign_ranges()
    return Plan.from_owner(group, owner)


def owners_by_range(group: Group) -> IntArray:
    """(N,) the owner of each partition where racks do not matter."""
    owner = np.full(group.size, NOBODY, dtype=np.int64)
    for subscribers, (first, last) in zip(
        group.subscribers, pairwise(group.topic_bounds.tolist()), strict=True
    ):
        quota, extras = divmod(last - first, len(subscribers))
        sizes = np.full(len(subscribers), quota)
        sizes[:extras] += 1
        owner[first:last] = np.repeat(subscribers, sizes)
    return owner


class _Topic:
    """How far the assignment of one topic has come."""

    def __init__(self, group: Group, topic: int, owner: IntArray) -> None:
        self.members = group.subscribers[topic]
        self.partitions = group.partitions_of(topic)
        self.ids = tuple(group.partition_ids[self.partitions.start : self.partitions.stop].tolist())
        self.owner = owner
        self.quota, self.extras = divmod(len(self.partitions), len(self.members))
        self.loads = dict.fromkeys(self.members, 0)
        self.member_racks = {m: group.members.racks[m] for m in self.members}
        racks = group.replica_racks
        self.racks = racks[self.partitions.start : self.partitions.stop] if racks is not None else ()
        self.racks_matter = bool(self.racks) and racks_matter(
            {rack for rack in self.member_racks.values() if rack}, self.racks
        )

    def room(self, member: int) -> int:
        """How many more partitions the member may get: one above the quota while extras are left."""
        return max(0, self.quota + (self.extras > 0) - self.loads[member])

    def matches(self, member: int, place: int) -> bool:
        """Whether the member has no rack, or the partition at this place has a replica in it."""
        rack = self.member_racks[member]
        return not rack or (bool(self.racks) and rack in self.racks[place])

    def assign(self, member: int, places: Sequence[int]) -> None:
        self.owner[[self.partitions[place] for place in places]] = member
        self.loads[member] += len(places)
        # A range takes at most one above the quota, so at most one extra is used up here.
        if self.loads[member] > self.quota:
            self.extras -= 1

    def assign_ranges(self, *, in_rack: bool = False) -> None:
        """Give each member in turn the first free partitions up to its room."""
        free = [place for place, flat in enumerate(self.partitions) if self.owner[flat] == NOBODY]
        # Members in one rack take from one queue, out of which nothing comes twice.
        queues: dict[str | None, Iterator[int]] = {}
        gone: set[int] = set()
        for member in self.members:
            rack = (self.member_racks[member] or None) if in_rack else None
            if rack not in queues:
                queues[rack] = iter([place for place in free if rack is None or self.matches(member, place)])
            fit = (place for place in queues[rack] if place not in gone)
            taken = list(islice(fit, self.room(member)))
            if taken:
                self.assign(member, taken)
                gone.update(taken)


def _match_racks(topics: Iterable[_Topic]) -> None:
    """First pass where racks matter: give partitions away within racks only."""
    sets = defaultdict(list)
    for topic in topics:
        sets[topic.members, topic.ids].append(topic)
    for co_partitioned in sets.values():
        if len(co_partitioned) > 1:
            _match_co_partitioned(co_partitioned)
        elif co_partitioned[0].racks_matter:
            co_partitioned[0].assign_ranges(in_rack=True)


def _match_co_partitioned(topics: Sequence[_Topic]) -> None:
    """Give equal partition ids of all the topics to one member whose rack matches in each of them."""
    remaining = list(topics[0].members)
    for place in range(len(topics[0].partitions)):
        for member in remaining:
            if all(topic.room(member) > 0 and topic.matches(member, place) for topic in topics):
                for topic in topics:
                    topic.assign(member, [place])
                if not any(topic.room(member) > 0 for topic in topics):
                    remaining.remove(member)
                break
