"""What is read in a broker's own `__consumer_offsets`, against what the members of its groups reported."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Self
from uuid import UUID

import pytest
from confluent_kafka import Consumer

from integration_tests.support.offsets_log import SECONDS, read_log, topic_id
from kafka_assignors import CooperativeStickyAssignor, StickyAssignor
from kafka_assignors._timelines.events import AssignmentReceived, Led
from kafka_assignors._wire.offsets_topic import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    EpochMemberState,
    GroupMetadata,
    GroupMetadataValue,
    OffsetCommit,
    Record,
    TopicPartitions,
    decode_assignment,
    decode_prior_assignment,
    decode_subscription,
)
from kafka_assignors.testing import Cluster, ConsumerGroup, Load

MakeGroup = Callable[..., ConsumerGroup]
Partitions = frozenset[tuple[str, int]]

PARTITIONS = 6


def generations(records: Sequence[Record]) -> dict[int, GroupMetadataValue]:
    """The last word on each generation that had members."""
    return {
        record.value.generation: record.value
        for record in records
        if isinstance(record, GroupMetadata) and record.value is not None and record.value.members
    }


def flat(by_topic: Mapping[str, Collection[int]]) -> Partitions:
    return frozenset((topic, number) for topic, numbers in by_topic.items() for number in numbers)


def assigned(group: GroupMetadataValue) -> dict[str, Partitions]:
    """By member id; nothing for a member that was given no bytes."""
    read = {member.member_id: decode_assignment(member.assignment) for member in group.members}
    return {name: flat(one.assigned_partitions) if one else frozenset() for name, one in read.items()}


def reported(group: ConsumerGroup) -> dict[int, dict[str, Partitions]]:
    """What members said that they were assigned, by generation and member id."""
    found: dict[int, dict[str, Partitions]] = {}
    for event in group.timeline.of(AssignmentReceived):
        parts = frozenset((part.topic, part.partition) for part in event.partitions)
        found.setdefault(event.generation, {})[event.member_id] = parts
    return found


@pytest.mark.parametrize("assignor", [StickyAssignor, CooperativeStickyAssignor])
def test_the_records_of_a_group_are_what_its_members_reported(
    assignor: type[Any], topic: str, consumer_group: MakeGroup, kafka_cluster: Cluster
) -> None:
    group = consumer_group(topic, [assignor], settings={"session_timeout_ms": 45_000})
    with Load(kafka_cluster.bootstrap_servers, topic) as load:
        for name, instance_id in (("a", None), ("b", "static b"), ("c", None)):
            group.join(name, instance_id=instance_id)
            group.wait_stable()
        load.stop()
        group.wait_consumed(load)
    for each in list(group.members.values()):
        each.commit()
    group.members["c"].leave()
    stable = group.wait_stable()
    records = read_log(kafka_cluster, group.group_id)

    found, told = generations(records), reported(group)
    assert max(found) == stable.generation
    assert assigned(found[stable.generation]) == told[stable.generation]
    for number, parts in told.items():
        # A member that hears of the next rebalance first does not report the one before.
        assert parts.items() <= assigned(found[number]).items(), f"generation {number}"
    name_of = {event.member_id: event.member for event in group.timeline.of(AssignmentReceived)}
    leaders = {event.generation: event.member for event in group.timeline.of(Led)}
    for number in told:
        assert name_of[found[number].leader or ""] == leaders[number]
    for value in found.values():
        assert (value.protocol_type, value.protocol) == ("consumer", assignor.name)
        for member in value.members:
            assert member.group_instance_id == ("static b" if name_of[member.member_id] == "b" else None)
            assert member.session_timeout == 45_000
            said = decode_subscription(member.subscription)
            assert said.topics == (topic,)
            prior = decode_prior_assignment(value.protocol, said.user_data)
            if prior is not None and prior.claims:
                assert flat(prior.claims) == told[prior.generation][member.member_id]
            if said.owned_partitions:
                assert flat(said.owned_partitions) <= told[said.generation_id][member.member_id]

    committed = {
        (record.topic, record.partition): record.value.offset
        for record in records
        if isinstance(record, OffsetCommit) and record.value is not None
    }
    assert committed == {(part.topic, part.partition): count for part, count in load.produced.items()}


def named(parts: Sequence[TopicPartitions], names: Mapping[UUID, str]) -> Partitions:
    return frozenset((names[one.topic_id], number) for one in parts for number in one.partitions)


class NewGroup:
    """Members of confluent-kafka in a group of KIP-848, which live in the test's own thread."""

    def __init__(self, cluster: Cluster, topic: str, consumers: list[Consumer], group_id: str) -> None:
        self.cluster = cluster
        self.consumers = consumers
        self.group_id = group_id
        for consumer in consumers:
            consumer.subscribe([topic])

    @classmethod
    @contextmanager
    def of(cls, cluster: Cluster, topic: str, members: int) -> Iterator[Self]:
        group_id = f"{topic}-848"
        settings = {
            **cluster.access.librdkafka(),
            "group.id": group_id,
            "group.protocol": "consumer",
            "client.rack": "r1",
        }
        with ExitStack() as stack:
            consumers = [Consumer({**settings, "client.id": f"c{number}"}) for number in range(members)]
            for consumer in consumers:
                stack.callback(consumer.close)
            yield cls(cluster, topic, consumers, group_id)

    def latest(self, kind: type[Any]) -> dict[Any, Any]:
        """The value of the newest record of a kind, of each member; or of the group, under None."""
        log = read_log(self.cluster, self.group_id)
        return {getattr(one, "member_id", None): one.value for one in log if isinstance(one, kind)}

    def wait(self) -> None:
        """Poll until all is owned, by the members' word and by the coordinator's."""
        deadline = time.monotonic() + SECONDS
        while not self._has_settled():
            assert time.monotonic() < deadline
            for consumer in self.consumers:
                consumer.poll(0.1)

    def _has_settled(self) -> bool:
        parts = [owned(consumer) for consumer in self.consumers]
        if not all(parts) or sum(map(len, parts)) != PARTITIONS:
            return False
        (group,) = self.latest(ConsumerGroupMetadata).values()
        present = [value for value in self.latest(ConsumerGroupCurrentMemberAssignment).values() if value]
        at_rest = [(group.epoch, EpochMemberState.STABLE)] * len(self.consumers)
        return [(value.member_epoch, value.state) for value in present] == at_rest


def owned(consumer: Consumer) -> Partitions:
    return frozenset((part.topic, part.partition) for part in consumer.assignment())


def test_the_records_of_a_group_of_kip_848_are_what_its_members_have(
    topic: str, kafka_cluster: Cluster
) -> None:
    with NewGroup.of(kafka_cluster, topic, members=2) as group:
        group.wait()
        names = {topic_id(kafka_cluster, topic): topic}
        current = group.latest(ConsumerGroupCurrentMemberAssignment)
        target = group.latest(ConsumerGroupTargetAssignmentMember)
        said = group.latest(ConsumerGroupMemberMetadata)
        assert current.keys() == target.keys() == said.keys() == {c.memberid() for c in group.consumers}
        for number, consumer in enumerate(group.consumers):
            member_id = consumer.memberid()
            assert named(current[member_id].assigned_partitions, names) == owned(consumer)
            assert named(target[member_id].topic_partitions, names) == owned(consumer)
            assert current[member_id].partitions_pending_revocation == ()
            assert (said[member_id].client_id, said[member_id].rack_id) == (f"c{number}", "r1")
            assert said[member_id].subscribed_topic_names == (topic,)
            assert said[member_id].classic_member_metadata is None
        (epoch,) = group.latest(ConsumerGroupMetadata).values()
        (made,) = group.latest(ConsumerGroupTargetAssignmentMetadata).values()
        assert made.assignment_epoch == epoch.epoch


def test_the_records_of_a_member_of_kip_848_that_leaves_are_tombstones(
    topic: str, kafka_cluster: Cluster
) -> None:
    with NewGroup.of(kafka_cluster, topic, members=2) as group:
        group.wait()
        gone = group.consumers.pop()
        gone_id, left_id = gone.memberid(), group.consumers[0].memberid()
        gone.close()
        group.wait()
        for kind in (
            ConsumerGroupCurrentMemberAssignment,
            ConsumerGroupTargetAssignmentMember,
            ConsumerGroupMemberMetadata,
        ):
            found = group.latest(kind)
            assert found.keys() == {gone_id, left_id}
            assert found[gone_id] is None
            assert found[left_id] is not None
