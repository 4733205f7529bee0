"""Kafka's own sticky algorithm (KIP-54 with its later mends; Kafka's AbstractStickyAssignor), without racks.

Two algorithms, as in Kafka: a *constrained* one for equal subscriptions, which is optimal, and a *general*
one for all others, which is a heuristic. It looks for single moves that even out the loads, and takes them
back if they did not help. So it may miss a plan that needs a chain of moves. It is kept as the readable
counterpart of the published descriptions.

Where Kafka's result depends on the order of a hash map, this one goes by the canonical order of members.
"""

from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heapreplace

import numpy as np

from kafka_assignors._model.arrays import NOBODY
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan


def plan_kip54(group: Group) -> Plan:
    """Keep what members owned as far as the balance allows, and give the rest to the least loaded."""
    if not group.members or not group.size:
        owner = [NOBODY] * group.size
    elif group.uniform:
        owner = _constrained(group)
    else:
        owner = _General(group).assign()
    return Plan.from_owner(group, np.array(owner, dtype=np.int64))


def _constrained(group: Group) -> list[int]:
    """Equal subscriptions: every member gets the minimum quota, `extras` members one more.

    1. A member keeps what it owned (lowest partition ids first): all of it below the minimum quota; the
       maximum quota while members with that much are still allowed; else the minimum quota.
    2. Each free partition goes to the least loaded member. Kafka goes round the members in turn instead,
       which gives the same loads and moves; by loads is how the published examples of KIP-54 come out.
    """
    quota, extras = divmod(group.size, len(group.members))
    ids, topics = group.partition_ids.tolist(), group.topic_of.tolist()
    owned: list[list[int]] = [[] for _ in group.members]
    for partition, member in enumerate(group.owner.tolist()):
        if member != NOBODY:
            owned[member].append(partition)

    owner = [NOBODY] * group.size
    open_members: list[tuple[int, int]] = []  # a heap of (load, member), those with the maximum left out
    for member, partitions in enumerate(owned):
        if len(partitions) > quota and extras:
            extras -= 1
            keep = quota + 1
        else:
            keep = min(len(partitions), quota)
            open_members.append((keep, member))
        for partition in sorted(partitions, key=lambda p: (ids[p], topics[p]))[:keep]:
            owner[partition] = member

    heapify(open_members)
    for partition in [p for p, member in enumerate(owner) if member == NOBODY]:
        load, member = open_members[0]
        owner[partition] = member
        if load < quota:
            heapreplace(open_members, (load + 1, member))
        else:
            heappop(open_members)
    return owner


class _General:
    """Unequal subscriptions: keep, fill, then improve by single moves.

    Kept up to date: the load of each member, the members by ascending load, and for each topic how many
    of its partitions each member holds; from the latter it is seen at once whether a move could still help.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self.topic_of: list[int] = group.topic_of.tolist()
        self.previous: list[int] = group.previous.tolist()
        self.owner: list[int] = [NOBODY] * group.size
        self.loads = [0] * len(group.members)
        # Kafka's sortedCurrentSubscriptions, by its SubscriptionComparator.
        self.ascending = [(0, member) for member in range(len(group.members))]
        self.topics_of = [frozenset(topics) for topics in group.subscriptions]
        self.held: list[defaultdict[int, int]] = [defaultdict(int) for _ in group.topics]
        for partition, member in enumerate(group.owner.tolist()):
            if member != NOBODY:
                self._give(partition, member)
        # Kafka's PartitionComparator: topics with the fewest potential consumers first, then by name.
        topics = sorted(range(len(group.topics)), key=lambda t: (len(group.subscribers[t]), t))
        self.all_partitions = [p for topic in topics for p in group.partitions_of(topic)]
        self.movements = _Movements(self.topic_of)

    def assign(self) -> list[int]:
        """Run Kafka's `balance`."""
        initializing = not any(self.loads)
        unassigned = [p for p in self.all_partitions if self.owner[p] == NOBODY]
        for partition in unassigned:
            self._give(partition, self._least_loaded(partition))

        # From here on only members count that could exchange a partition with another one.
        movable = {t for t, subscribers in enumerate(self.group.subscribers) if len(subscribers) > 1}
        self.ascending = [
            entry for entry in self.ascending if not movable.isdisjoint(self.topics_of[entry[1]])
        ]
        before, before_score = list(self.owner), self._score()
        # If nothing must be revoked anyway, try first to balance by moving the newly assigned only.
        if self.group.claims.subscribed.all():
            self._reassign(unassigned)
        moved = self._reassign(self.all_partitions)
        if not initializing and moved and self._score() >= before_score:
            return before
        return self.owner

    def _give(self, partition: int, member: int) -> None:
        if self.owner[partition] != NOBODY:
            self._count(partition, self.owner[partition], -1)
        self.owner[partition] = member
        self._count(partition, member, 1)

    def _count(self, partition: int, member: int, change: int) -> None:
        load = self.loads[member]
        del self.ascending[bisect_left(self.ascending, (load, member))]
        self.loads[member] = load + change
        insort(self.ascending, (load + change, member))
        self.held[self.topic_of[partition]][member] += change

    def _least_loaded(self, partition: int) -> int:
        """The subscriber that comes first by (load, member)."""
        topic = self.topic_of[partition]
        return next(member for _, member in self.ascending if topic in self.topics_of[member])

    def _is_balanced(self) -> bool:
        """Kafka's `isBalanced`: no partition can go to a subscriber with a load lower by two or more."""
        highest = self.ascending[-1][0] if self.ascending else 0
        for load, member in self.ascending:
            if load + 1 >= highest:
                break
            for topic in self.topics_of[member]:
                if any(count and self.loads[holder] > load + 1 for holder, count in self.held[topic].items()):
                    return False
        return True

    def _score(self) -> int:
        """Kafka's balance score, 0 being perfect: the sum of the load differences of all pairs of members."""
        last = len(self.ascending) - 1
        return sum(load * (2 * place - last) for place, (load, _) in enumerate(self.ascending))

    def _reassign(self, partitions: Iterable[int]) -> bool:
        """Kafka's `performReassignments`: rounds of single moves until none improves the balance.

        To keep a topic's partitions from going both ways between two members, a move may take another
        partition than the one that was looked at, from a member that has few already. With that Kafka's
        loop can go round for ever, and its leader is expelled. This one ends with the first
        round that improves nothing; plans for which Kafka's ends are the same.
        """
        movable = [p for p in partitions if len(self.group.subscribers[self.topic_of[p]]) > 1]
        performed = False
        modified = True
        balanced = self._is_balanced()  # changes with a move only
        score = self._score()
        while modified and not balanced:
            modified = False
            for partition in movable:
                load = self.loads[self.owner[partition]]
                previous = self.previous[partition]
                if previous != NOBODY and load > self.loads[previous] + 1:
                    target = previous
                else:
                    target = self._least_loaded(partition)
                    if load <= self.loads[target] + 1:
                        continue
                self._move(partition, target)
                performed = modified = True
                balanced = self._is_balanced()
                if balanced:
                    break
            before, score = score, self._score()
            if score >= before:
                break
        return performed

    def _move(self, partition: int, target: int) -> None:
        actual = self.movements.partition_to_move(partition, self.owner[partition], target)
        self.movements.record(actual, self.owner[actual], target)
        self._give(actual, target)


class _Movements:
    """Kafka's PartitionMovements: never move partitions of one topic both ways between two members."""

    def __init__(self, topic_of: Sequence[int]) -> None:
        self.topic_of = topic_of
        self.pair_of: dict[int, tuple[int, int]] = {}  # partition -> (from, to) of its move so far
        self.moved: defaultdict[tuple[int, int, int], set[int]] = defaultdict(set)  # (topic, from, to)

    def partition_to_move(self, partition: int, source: int, target: int) -> int:
        """The partition to move so that `target` gets one: one that once went the other way, if any."""
        if partition in self.pair_of:
            source = self.pair_of[partition][0]
        reverse = self.moved.get((self.topic_of[partition], target, source))
        return min(reverse) if reverse else partition

    def record(self, partition: int, source: int, target: int) -> None:
        topic = self.topic_of[partition]
        if partition in self.pair_of:
            origin, _ = self.pair_of.pop(partition)
            self.moved[topic, origin, source].discard(partition)
            source = origin
        if source != target:
            self.pair_of[partition] = source, target
            self.moved[topic, source, target].add(partition)
