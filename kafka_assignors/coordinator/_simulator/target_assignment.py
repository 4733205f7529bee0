"""Who is to have what in a KIP-848 group, in the coordinator's own words, orders included.

The coordinator's uniform assignor follows the orders of hash maps. These follow the orders in which entries
were put into them, through all targets that there ever were. So a target is kept as it is written to the log:
topics, and the partitions of each, in the order of writing. This is `TargetAssignmentBuilder` of Apache Kafka
4.3 with its two assignors.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple
from uuid import UUID

from kafka_assignors._model.arrays import NOBODY
from kafka_assignors._model.group import Group, Member
from kafka_assignors._wire.java.orders import HashKeys, hash_order, string_hash, string_order, uuid_hash
from kafka_assignors.coordinator._simulator.messages import TopicIdPartition
from kafka_assignors.coordinator._simulator.reconciliation import GroupMember
from kafka_assignors.planners._kip848_range import plan_kip848_range
from kafka_assignors.planners._kip848_uniform import slot_hash, uniform_steps

Assignor = Literal["uniform", "range"]
"""The assignors of Kafka's coordinator."""

ASSIGNORS: Final[tuple[Assignor, ...]] = ("uniform", "range")
"""The first is the default."""

Target = Mapping[UUID, Sequence[int]]
"""What one member is to have: topic ids and partitions in the order in which they were put."""


class TargetTopic(NamedTuple):
    """A topic that exists."""

    topic_id: UUID
    partitions: int


class MemberIds(Collection[str]):
    """Member ids in the order of Kafka's `TimelineHashMap`, which the coordinator keeps its members in.

    In a bin, who came last comes first.
    """

    def __init__(self) -> None:
        self._hashes: dict[str, int] = {}
        self._bins = 2

    def put(self, member_id: str) -> None:
        """Put an id; one that is there keeps its place. The table grows before a put, even of one that is."""
        if 3 * (len(self._hashes) + 1) > 4 * self._bins:
            self._bins *= 2
        self._hashes.setdefault(member_id, slot_hash(string_hash(member_id)))

    def discard(self, member_id: str) -> None:
        self._hashes.pop(member_id, None)

    def __contains__(self, member_id: object) -> bool:
        return member_id in self._hashes

    def __len__(self) -> int:
        return len(self._hashes)

    def __iter__(self) -> Iterator[str]:
        newest_first = reversed(self._hashes)
        return iter(sorted(newest_first, key=lambda member_id: self._hashes[member_id] * self._bins >> 64))


def partitions_of(target: Target) -> set[TopicIdPartition]:
    return {TopicIdPartition(topic, number) for topic, numbers in target.items() for number in numbers}


def preferred_assignor(members: Iterable[GroupMember], *, asking: str) -> Assignor:
    """The assignor that most members ask for; Kafka's default, uniform, if nobody does.

    Of equals it is the one that comes first in Kafka's hash map. If both are in one bin, it is what only the
    member asks for that has just sent a heartbeat, else uniform.
    """
    everyone = list(members)
    others = {member.assignor for member in everyone if member.member_id != asking}
    asked = Counter(member.assignor for member in everyone)
    first = max(sorted(ASSIGNORS, key=lambda name: name in others), key=asked.__getitem__)
    return first if asked[first] else ASSIGNORS[0]


def next_targets(
    assignor: Assignor,
    members: Mapping[str, GroupMember],
    walked: Iterable[str],
    targets: Mapping[str, Target],
    topics: Mapping[str, TargetTopic],
) -> dict[str, Target]:
    """The new target of each member.

    The ids are walked in the assignor's order. A static member that came back has its predecessor's target.
    """
    names = {topic.topic_id: name for name, topic in topics.items()}

    def claims(member_id: str) -> dict[str, Sequence[int]]:
        # No topic can have a slash in its name: claims on topics that are gone only take up room.
        target = targets.get(member_id, {})
        return {names.get(topic_id, f"/{topic_id}"): numbers for topic_id, numbers in target.items()}

    group = Group.of(
        {name: range(topic.partitions) for name, topic in topics.items()},
        [
            Member(
                member_id=member.member_id,
                topics=member.topics,
                instance_id=member.instance_id,
                claims=claims(member.member_id),
            )
            for member in members.values()
        ],
    )
    made = (
        _by_range(group, members, topics)
        if assignor == "range"
        else _by_uniform(group, members, walked, targets, topics)
    )
    return {
        member_id: _unless_equal(targets.get(member_id), made.get(member_id, {})) for member_id in members
    }


def _unless_equal(old: Target | None, new: Target) -> Target:
    """What is written to the log only if it differs keeps its order if it does not."""
    if old is new or old is None or partitions_of(old) != partitions_of(new):
        return new
    return old


def _by_range(
    group: Group, members: Mapping[str, GroupMember], topics: Mapping[str, TargetTopic]
) -> dict[str, Target]:
    made: dict[str, Target] = {}
    for member_id, assigned in plan_kip848_range(group).assignments().items():
        named = members[member_id].topics
        listed = hash_order(sorted(named, key=string_order), string_hash)
        ids = {topics[name].topic_id: tuple(assigned[name]) for name in listed if name in assigned}
        # With equal subscriptions Kafka makes room for the topics that exist, else for all names.
        room = len(named & topics.keys() if _equal(members) else named) + 1
        made[member_id] = {topic: ids[topic] for topic in hash_order(ids, uuid_hash, room=room)}
    return made


def _equal(members: Mapping[str, GroupMember]) -> bool:
    return len({member.topics for member in members.values()}) == 1


def _by_uniform(
    group: Group,
    members: Mapping[str, GroupMember],
    walked: Iterable[str],
    targets: Mapping[str, Target],
    topics: Mapping[str, TargetTopic],
) -> dict[str, Target]:
    if not group.size:
        return {}
    numbers = {member_id: number for number, member_id in enumerate(group.members.ids)}
    known = {name: topic.topic_id for name, topic in topics.items()}
    known |= {f"/{topic}": topic for target in targets.values() for topic in target}
    drafts = _Drafts(group, topics, targets)
    for member_id, member in members.items():
        subscribed = {topics[name].topic_id for name in member.topics if name in topics}
        for topic in targets.get(member_id, {}):
            if topic not in subscribed:
                drafts[member_id].forget(topic)
    drafts.take(
        uniform_steps(group, known, [numbers[member_id] for member_id in walked]), equal=_equal(members)
    )
    return {member_id: drafts.written(member_id) for member_id in members}


class _Drafts:
    """The targets that are being changed, by member id."""

    def __init__(
        self, group: Group, topics: Mapping[str, TargetTopic], targets: Mapping[str, Target]
    ) -> None:
        self._group = group
        self._topics = topics
        self._targets = targets
        self._drafts: dict[str, _Draft] = {}

    def __getitem__(self, member_id: str) -> "_Draft":
        if member_id not in self._drafts:
            self._drafts[member_id] = _Draft(self._targets.get(member_id, {}))
        return self._drafts[member_id]

    def take(self, steps: Sequence[tuple[int, int]], *, equal: bool) -> None:
        """Take the assignor's steps; with equal subscriptions all is let go of before anything is given."""
        group = self._group
        owner = {partition: int(group.owner[partition]) for partition, _ in steps}
        if equal:
            for partition, number in owner.items():
                self._take_away(partition, number)
            owner = dict.fromkeys(owner, NOBODY)
        for partition, number in steps:
            self._take_away(partition, owner[partition])
            topic = int(group.topic_of[partition])
            share = -(-len(group.partitions_of(topic)) // len(group.subscribers[topic]))
            draft = self[group.members.ids[number]]
            draft.add(self._name(partition), room=0 if equal else share + 1)
            owner[partition] = number

    def _take_away(self, partition: int, number: int) -> None:
        if number != NOBODY:
            self[self._group.members.ids[number]].remove(self._name(partition))

    def _name(self, partition: int) -> TopicIdPartition:
        topic, number = self._group.name_of(partition)
        return TopicIdPartition(self._topics[topic].topic_id, number)

    def written(self, member_id: str) -> Target:
        """The target of a member; what no step has touched is as it was."""
        if member_id in self._drafts:
            return self._drafts[member_id].written()
        return self._targets.get(member_id, {})


class _Draft:
    """A target that is being changed: hash maps, as the assignor has them."""

    def __init__(self, target: Target) -> None:
        self._topics = HashKeys(hash_order(target, uuid_hash), uuid_hash)
        self._numbers = {topic: HashKeys(hash_order(numbers, int), int) for topic, numbers in target.items()}

    def add(self, partition: TopicIdPartition, *, room: int) -> None:
        """Add a partition; `room` is for how many a topic's set is made, if it has none yet."""
        topic, number = partition
        self._topics.compute(topic)
        if topic not in self._numbers:
            self._numbers[topic] = HashKeys((), int, room=room)
        self._numbers[topic].add(number)

    def remove(self, partition: TopicIdPartition) -> None:
        """Remove a partition, and its topic with the last one."""
        topic, number = partition
        self._numbers[topic].discard(number)
        if not self._numbers[topic]:
            self.forget(topic)

    def forget(self, topic: UUID) -> None:
        self._topics.discard(topic)
        del self._numbers[topic]

    def written(self) -> Target:
        return {topic: tuple(self._numbers[topic]) for topic in self._topics}
