"""KIP-848's uniform: what Kafka's group coordinator does by default (its UniformAssignor, as of Kafka 4.3).

Two algorithms, as in Kafka. UniformHomogeneousAssignmentBuilder is for members that name the same topics. It
is balanced and moves little. UniformHeterogeneousAssignmentBuilder is a heuristic for all others. It evens
out the subscribers of one topic at a time.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from uuid import UUID

import numpy as np

from kafka_assignors._model.arrays import NOBODY
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors._wire.java.orders import hash_order, string_hash, string_order, uuid_hash, uuid_order

_ROUNDS = 16
_GOLDEN = 0x9E3779B97F4A7C15  # Kafka's BaseHashTable multiplies hashes by it, as Fibonacci hashing does.


def plan_kip848_uniform(
    group: Group, *, topic_ids: Mapping[str, UUID] | None = None, listed: Iterable[str] | None = None
) -> Plan:
    """Even out the loads, and let members keep what they had as far as that goes.

    The claims of the members stand for the target assignment that the coordinator has; a static member that
    came back has that of its predecessor. Racks and weights make no difference.

    Where all members name the same topics, loads differ by one at most, and the fewest partitions move.
    Where they do not, loads may stay more uneven than they need be, and more may move.

    Much else follows the orders of the coordinator's hash maps. The result is that of Apache Kafka 4.3's
    UniformAssignor (on Java 19 or newer) to the partition. The input must be that of the coordinator's answer
    to ConsumerGroupDescribe. It has topic ids, members in their order, and as the claims of each the topics
    and partitions of its target assignment in their order. With less, it is as if

    - without `topic_ids`, ids ascended in the order of the names;
    - without `listed`, all members were in the group already. Those that share a bin of the coordinator's
      table of members were in the group's order. In truth the one that joined last comes first there;
    - claims in another order had been made in it. It matters if all name the same topics and a member loses
      some. Of topics or ids that share a bin of a map (ids equal modulo 16 or more), the last one goes first.

    Subscriptions are taken for lists of names. To Kafka a regular expression is not equal to the names that
    it stands for.

    Args:
        group: The group.
        topic_ids: The ids of the topics. Kafka's tools print one as 22 letters of URL-safe Base64:
            `UUID(bytes=base64.urlsafe_b64decode(letters + "=="))`.
        listed: The member ids as the coordinator lists them. A member that is not listed joins with this
            rebalance; ids of members that left do no harm.

    Raises:
        ValueError: There are ids, but not for all topics of the group.
    """
    if topic_ids is None:
        topic_ids = _ascending_ids(group.topics)
    missing = sorted(set(group.topics) - topic_ids.keys())
    if missing:
        raise ValueError(f"topic_ids has none for {missing}: give the id of every topic, or no topic_ids")
    owner = group.owner.copy()
    for partition, member in uniform_steps(group, topic_ids, _walked(group.members.ids, listed)):
        owner[partition] = member
    return Plan.from_owner(group, owner)


@lru_cache(maxsize=8)
def _ascending_ids(topics: Iterable[str]) -> Mapping[str, UUID]:
    """Ids in the order of the names. A group is often planned for again with the same topics."""
    return {topic: UUID(int=number) for number, topic in enumerate(topics)}


def uniform_steps(
    group: Group, topic_ids: Mapping[str, UUID], members: Iterable[int]
) -> list[tuple[int, int]]:
    """What `plan_kip848_uniform` gives to whom, one step after the other, as the coordinator does it.

    `members` are in the order in which the coordinator walks them. With different subscriptions a partition
    may move several times.
    """
    if not group.size:
        return []
    order = _Order(group, topic_ids, members)
    alike = len(order.named) == 1 and group.uniform  # by priorities, members may take part in other topics
    return _homogeneous(group, order) if alike else _heterogeneous(group, order)


def slot_hash(value: int) -> int:
    """By its upper bits Kafka's TimelineHashMap, which the coordinator keeps its members in, finds a bin."""
    signed = value - ((value & 1 << 31) << 1)
    return signed * _GOLDEN & (1 << 64) - 1


def _walked(ids: Sequence[str], listed: Iterable[str] | None) -> list[int]:
    hashes = [string_hash(member) for member in ids]
    if listed is None:
        put = sorted(range(len(ids)), key=lambda number: slot_hash(hashes[number]))
    else:
        places = {member: place for place, member in enumerate(listed)}
        put = sorted(range(len(ids)), key=lambda number: places.get(ids[number], len(places)))
    return hash_order(put, hashes.__getitem__)


class _Order:
    """The orders in which the coordinator's hash maps list things: members by number, and sets of topics.

    The sets are the different ones that members name. Kafka counts topics that do not exist, too.
    """

    def __init__(self, group: Group, topic_ids: Mapping[str, UUID], members: Iterable[int]) -> None:
        self.group = group
        self.topic_ids = topic_ids
        self.members = list(members)
        self.number = {topic: number for number, topic in enumerate(group.topics)}
        self.named = {group.members.topics[number] for number in set(group.members.topics_of.tolist())}

    def topic_hash(self, topic: str) -> int:
        """Of a topic that is gone any hash will do: it takes up room, but comes to nothing."""
        return uuid_hash(self.topic_ids[topic]) if topic in self.topic_ids else 0

    def common_topics(self) -> list[int]:
        """The numbers of the topics, where all members name the same."""
        (names,) = self.named
        hashes = tuple(map(self.topic_hash, self.group.topics))
        return [self.number[topic] for topic in _walked_topics(names, self.group.topics, hashes)]

    def sorted_topics(self) -> list[int]:
        """The numbers of the topics, those with the most partitions a subscriber first."""

        def key(topic: int) -> tuple[float, int, tuple[int, int]]:
            subscribers = len(self.group.subscribers[topic])
            per_subscriber = len(self.group.partitions_of(topic)) / subscribers
            return -per_subscriber, subscribers, uuid_order(self.topic_ids[self.group.topics[topic]])

        return sorted(range(len(self.group.topics)), key=key)

    def in_order(self, member: int, owned: Iterable[int]) -> list[int]:
        """What a member had, in the order in which the coordinator goes through it."""
        claims = self.group.members[member].claims
        partitions = {self.group.name_of(partition): partition for partition in owned}
        return [
            partitions[topic, number]
            for topic in hash_order(claims, self.topic_hash)
            for number in hash_order(claims[topic], lambda each: each & 0xFFFFFFFF)
            if (topic, number) in partitions
        ]


@lru_cache(maxsize=8)
def _walked_topics(names: frozenset[str], topics: tuple[str, ...], hashes: tuple[int, ...]) -> list[str]:
    """The topics that exist, as the coordinator walks them, of those that members name."""
    hash_of = dict(zip(topics, hashes, strict=True))
    listed = hash_order(sorted(names, key=string_order), string_hash)
    return hash_order([topic for topic in listed if topic in hash_of], hash_of.__getitem__, room=len(names))


def _homogeneous(group: Group, order: _Order) -> list[tuple[int, int]]:
    """Equal subscriptions: every member gets the minimum quota, `extras` members one more.

    1. A member keeps what it had up to its quota. The quota is one higher while extras are left; who has no
       use for the extra leaves it to those behind, unless they are too few to use up all extras.
    2. Partitions that nobody had, then those let go of, fill up the members in their order.
    """
    owner, free = group.owner, []
    loads = np.bincount(owner[owner != NOBODY], minlength=len(group.members)).tolist()
    for topic in order.common_topics():
        partitions = group.partitions_of(topic)
        unowned = np.flatnonzero(owner[partitions.start : partitions.stop] == NOBODY)
        free += (partitions.start + unowned).tolist()
    quota, extras = divmod(group.size, len(group.members))
    vacancies: list[int] = []
    for place, member in enumerate(order.members):
        extra = extras > 0
        room = quota + extra - loads[member]
        if room < 0:
            free += order.in_order(member, np.flatnonzero(owner == member).tolist())[room:]
        elif room > 0:
            if extra and len(group.members) - place > extras:
                extra = False
                room -= 1
            vacancies += [member] * room
        extras -= extra
    return list(zip(free, vacancies, strict=True))


def _heterogeneous(group: Group, order: _Order) -> list[tuple[int, int]]:
    """Different subscriptions: keep everything, fill up topic by topic, then move partitions.

    1. A member keeps all that it had of the topics that it still subscribes to.
    2. Free partitions go to the subscribers of their topic with the lowest load. Topics with many partitions
       a subscriber come first.
    3. Topic by topic, partitions move from the subscribers with the highest load to those with the lowest
       until their loads differ by one at most, or there is nothing more to move; this goes round until
       nothing has moved since the topic was there last, or for 16 rounds.

    A chain of moves over several topics is found only by chance, so loads may stay uneven. What 16 rounds did
    not reach the next rebalance goes on with, even if nothing else has changed.
    """
    places = {member: place for place, member in enumerate(order.members)}
    owner = [NOBODY if member == NOBODY else places[member] for member in group.owner.tolist()]
    loads = [0] * len(places)
    for place in owner:
        if place != NOBODY:
            loads[place] += 1
    subscribers = [sorted(places[member] for member in members) for members in group.subscribers]
    topics = order.sorted_topics()
    steps: list[tuple[int, int]] = []
    for topic in topics:
        levels = _Levels(loads, subscribers[topic])
        for partition in group.partitions_of(topic):
            if owner[partition] == NOBODY:
                owner[partition] = levels.lowest()
                loads[owner[partition]] += 1
                steps.append((partition, owner[partition]))

    topics = [topic for topic in topics if len(subscribers[topic]) > 1]
    last = None  # the last topic in which something moved
    for topic in topics * _ROUNDS:
        if topic == last:
            break
        moves = _even_out(group.partitions_of(topic), _Levels(loads, subscribers[topic]), owner)
        steps += moves
        if moves or last is None:
            last = topic
    return [(partition, order.members[place]) for partition, place in steps]


class _Levels:
    """The subscribers of a topic, to be filled up from the lowest load and taken from at the highest.

    Loads that rise from below make a *low range* at the front of the sorted members, with one level, which
    takes in the next ones when it reaches their load. Those that fall from above make a *high range*; members
    with nothing to give are put behind its end.
    """

    def __init__(self, loads: list[int], members: Sequence[int]) -> None:
        self.loads = loads  # of all members; changed by whoever gives and takes
        self.members = sorted(members, key=loads.__getitem__)
        self.low_end = self.low_next = 0
        self.low = loads[self.members[0]] - 1
        self.high_start = self.high_end = len(self.members)
        self.high_next = self.high_end - 1
        self.high = loads[self.members[-1]] + 1

    @property
    def spread(self) -> int:
        """The difference of the levels; before anything was given or taken it is higher by two."""
        return self.high - self.low

    def lowest(self) -> int:
        """The member that is to get a partition."""
        if self.low_next >= self.low_end:
            self.low += 1
            while self.low_end < len(self.members) and self.loads[self.members[self.low_end]] == self.low:
                self.low_end += 1
            self.low_next = 0
        self.low_next += 1
        return self.members[self.low_next - 1]

    def highest(self) -> int | None:
        """The member that is to give up a partition, None if all have nothing to give."""
        if self.high_next < self.high_start:
            if 0 < self.high_start >= self.high_end:
                self.high = self.loads[self.members[self.high_start - 1]]
            else:
                self.high -= 1
            while self.high_start > 0 and self.loads[self.members[self.high_start - 1]] == self.high:
                self.high_start -= 1
            self.high_next = self.high_end - 1
        if self.high_next < 0:
            return None
        self.high_next -= 1
        return self.members[self.high_next + 1]

    def exclude(self) -> None:
        """Put the member that came last as the highest behind the high range."""
        here, end = self.high_next + 1, self.high_end - 1
        self.members[here], self.members[end] = self.members[end], self.members[here]
        self.high_end = end


def _even_out(partitions: range, levels: _Levels, owner: list[int]) -> list[tuple[int, int]]:
    """Move partitions of one topic between its subscribers; the moves."""
    if levels.spread - 2 <= 1:
        return []
    # What a member gets here it does not give up again; of the rest the last ones go first.
    given: defaultdict[int, list[int]] = defaultdict(list)
    for partition in partitions:
        given[owner[partition]].append(partition)
    moves: list[tuple[int, int]] = []
    while True:
        source = levels.highest()
        while source is not None and not given[source]:
            levels.exclude()
            source = levels.highest()
        if source is None:
            break
        partition = given[source].pop()
        target = levels.lowest()
        if levels.spread <= 1:
            break
        levels.loads[source] -= 1
        levels.loads[target] += 1
        owner[partition] = target
        moves.append((partition, target))
    return moves
