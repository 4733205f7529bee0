"""Range: each topic's partitions in ranges, one range a subscriber (Kafka's RangeAssignor, KIP-881)."""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

import numpy as np

from kafka_assignors._model.arrays import NOBODY, IntArray
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors._model.racks import racks_matter


def plan_range(group: Group) -> Plan:
    """Divide every topic by itself among its subscribers, the first ones getting one more if need be.

    If racks matter, partitions go to members in a rack of one of their replicas first, as far as the quotas
    allow. Topics with the same subscribers and the same partition ids stay co-partitioned. The result is
    exactly that of Apache Kafka 4.3's RangeAssignor.
    """
    if group.replica_racks is None:
        return Plan.from_owner(group, owners_by_range(group))
    parts = _co_partitioned(group)
    if any(part.racks_matter for part in parts):
        for part in parts:
            part.match_racks()
    owner = np.full(group.size, NOBODY, dtype=np.int64)
    for part in parts:
        part.assign_ranges()
        for partitions in part.partitions:
            owner[partitions.start : partitions.stop] = part.owner
    return Plan.from_owner(group, owner)


def owners_by_range(group: Group) -> IntArray:
    """(N,) the owner of each partition where racks do not matter."""
    owner = np.full(group.size, NOBODY, dtype=np.int64)
    owners: dict[tuple[int, int], IntArray] = {}
    for subscribers, (first, last) in zip(
        group.subscribers, pairwise(group.topic_bounds.tolist()), strict=True
    ):
        key = id(subscribers), last - first  # topics in the same subscriptions have one tuple
        if key not in owners:
            quota, extras = divmod(last - first, len(subscribers))
            sizes = np.full(len(subscribers), quota)
            sizes[:extras] += 1
            owners[key] = np.repeat(subscribers, sizes)
        owner[first:last] = owners[key]
    return owner


def _co_partitioned(group: Group) -> list["_CoPartitioned"]:
    """The topics, those together that have the same subscribers and the same partition ids."""
    topics = defaultdict(list)
    for topic, subscribers in enumerate(group.subscribers):
        partitions = group.partitions_of(topic)
        ids = group.partition_ids[partitions.start : partitions.stop].tobytes()
        topics[subscribers, ids].append(partitions)
    return [_CoPartitioned(group, subscribers, partitions) for (subscribers, _), partitions in topics.items()]


class _CoPartitioned:
    """Topics that go to the same members, partition by partition, and how far their assignment has come.

    A *place* is the place of a partition in each of the topics. Its owner may be `NOBODY`. Racks matter if
    they do in one of the topics.
    """

    def __init__(self, group: Group, members: Sequence[int], partitions: Sequence[range]) -> None:
        racks = group.replica_racks or ()
        by_topic = [racks[each.start : each.stop] for each in partitions]
        self.partitions = partitions
        self.owner = [NOBODY] * len(partitions[0])
        self._member_racks = {member: group.members.racks[member] or None for member in members}
        in_racks = {rack for rack in self._member_racks.values() if rack}
        self.racks_matter = any(racks_matter(in_racks, each) for each in by_topic)
        self._racks = (
            by_topic[0]
            if len(by_topic) == 1
            else [frozenset.intersection(*each) for each in zip(*by_topic, strict=True)]
        )
        self._quota, self._extras = divmod(len(self.owner), len(members))
        self._loads = dict.fromkeys(members, 0)

    def match_racks(self) -> None:
        """Give partitions away within racks only: of many topics by places, of one in ranges."""
        if len(self.partitions) > 1:
            self._match_places()
        elif self.racks_matter:
            self.assign_ranges(in_rack=True)

    def assign_ranges(self, *, in_rack: bool = False) -> None:
        """Give each member in turn the first free places up to its room."""
        free = [place for place, owner in enumerate(self.owner) if owner == NOBODY]
        # Members in one rack take from one queue, out of which nothing comes twice.
        queues: dict[str | None, Iterator[int]] = {}
        for member, its_rack in self._member_racks.items():
            rack = its_rack if in_rack else None
            if rack not in queues:
                queues[rack] = iter([place for place in free if rack is None or rack in self._racks[place]])
            fit = (place for place in queues[rack] if self.owner[place] == NOBODY)
            self._assign(member, list(islice(fit, self._room(member))))

    def _match_places(self) -> None:
        """Give each place to the first member that has room, and no rack or one that it has in all topics."""
        waiting = defaultdict[str | None, deque[int]](deque)
        for member, rack in self._member_racks.items():
            waiting[rack].append(member)
        for place, racks in enumerate(self._racks):
            first = []
            for rack in (None, *racks):
                queue = waiting.get(rack, ())
                while queue and not self._room(queue[0]):  # room only shrinks
                    queue.popleft()
                first += list(islice(queue, 1))
            if first:
                self._assign(min(first), [place])

    def _room(self, member: int) -> int:
        """How many more places the member may get: one above the quota while extras are left."""
        return max(0, self._quota + (self._extras > 0) - self._loads[member])

    def _assign(self, member: int, places: Sequence[int]) -> None:
        for place in places:
            self.owner[place] = member
        self._loads[member] += len(places)
        # A range takes at most one above the quota, so at most one extra is used up here.
        if places and self._loads[member] > self._quota:
            self._extras -= 1
