"""What is read in a broker's own `__consumer_offsets`, against what the members of its groups reported."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import pytest

from integration_tests.support.offsets_log import read_log
from kafka_assignors import CooperativeStickyAssignor, StickyAssignor
from kafka_assignors._timelines.events import AssignmentReceived, Led
from kafka_assignors._wire.offsets_topic import (
    GroupMetadata,
    GroupMetadataValue,
    OffsetCommit,
    Record,
    decode_assignment,
    decode_prior_assignment,
    decode_subscription,
)
from kafka_assignors.testing import Cluster, ConsumerGroup, Load

MakeGroup = Callable[..., ConsumerGroup]
Partitions = frozenset[tuple[str, int]]


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
