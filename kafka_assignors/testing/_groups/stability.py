"""Whether a group is at rest, and its partitions are owned as they should be: what is wrong, in words.

Three words are held against each other: the members' own, the coordinator's, and which topics there are.
"""

import re
import threading
import warnings
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import confluent_kafka.admin
from confluent_kafka import ConsumerGroupState, KafkaException
from confluent_kafka.admin import AdminClient
from kafka import TopicPartition
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors._timelines.events import NO_GENERATION, format_partitions
from kafka_assignors.testing._groups.member import Member
from kafka_assignors.testing._groups.specs import Sharing, names_of, subscribes
from kafka_assignors.testing._topics import REQUEST_SECONDS, existing_partitions

_WARNINGS = threading.Lock()
"""Held while warnings are caught, whose filters are the whole process's."""

Existing = Mapping[str, Collection[TopicPartition]]
"""Topic -> its partitions, as the brokers say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokersView:
    """A group as its coordinator describes it.

    Attributes:
        state: "Stable", "PreparingRebalance", "CompletingRebalance", "Empty", "Dead" or "Unknown"; of a group
            of KIP-848 "Assigning" and "Reconciling" instead of the second and third.
        protocol: The name of the chosen assignor; empty during a rebalance.
        assignments: The partitions of each member, by member id.
        subscriptions: The topics that each member asked for when it last joined, by member id. Empty during a
            rebalance, and without members whose subscription cannot be decoded. None of a KIP-848 group, of
            which librdkafka does not ask it.
        error: Why there is no view, if there is none.
    """

    state: str = "Unknown"
    protocol: str = ""
    assignments: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    subscriptions: Mapping[str, frozenset[str]] | None = field(default_factory=dict)
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StableGroup:
    """A group on which its members and its coordinator agreed.

    Attributes:
        generation: The generation that all members are in.
        protocol: The name of the chosen assignor.
        assignments: The partitions of each member, by the member's name.
    """

    generation: int
    protocol: str
    assignments: Mapping[str, frozenset[TopicPartition]]


def describe(client: AdminClient, group_id: str) -> BrokersView:
    try:
        listed = _list_groups(client, group_id)
    except KafkaException as error:
        return BrokersView(error=str(error))
    if not listed:
        return BrokersView(error="the coordinator does not answer")
    # While its coordinator moves, two brokers may list a group.
    found = next((group for group in listed if group.error is None and group.state != "Dead"), listed[0])
    if found.error is not None:
        return BrokersView(error=str(found.error))
    if found.state == "Dead":
        return _of_another_protocol(client, group_id)
    return BrokersView(
        state=found.state,
        protocol=found.protocol,
        assignments={member.id: _assigned(member.assignment) for member in found.members},
        subscriptions={
            member.id: topics for member in found.members if (topics := _asked(member.metadata)) is not None
        },
    )


def _list_groups(client: AdminClient, *group_id: str) -> list[Any]:
    """One group, or all, as librdkafka's older request has them."""
    # Deprecated, but what replaces it leaves out subscriptions, and groups of other kinds.
    with _WARNINGS, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return list(client.list_groups(*group_id, timeout=REQUEST_SECONDS))


def _of_another_protocol(client: AdminClient, group_id: str) -> BrokersView:
    """A group of which the request for classic groups says that there is none."""
    asked = client.describe_consumer_groups([group_id], request_timeout=REQUEST_SECONDS)[group_id]
    try:
        described: Any = asked.result()
        dead = described.state is ConsumerGroupState.DEAD
        if dead and group_id in {one.id for one in _list_groups(client)}:
            other = f"{group_id} is no consumer group, but one of another kind, as a share group"
            return BrokersView(error=other)
    except KafkaException as error:
        return BrokersView(error=str(error))
    return BrokersView(
        state=described.state.name.title(),
        protocol=described.partition_assignor,
        assignments={
            member.member_id: frozenset(
                TopicPartition(one.topic, one.partition) for one in member.assignment.topic_partitions
            )
            for member in described.members
        },
        subscriptions=None,
    )


def _assigned(encoded: bytes) -> frozenset[TopicPartition]:
    if not encoded:
        return frozenset()
    return frozenset(ConsumerProtocolAssignment.decode(encoded).partitions())


def _asked(encoded: bytes) -> frozenset[str] | None:
    try:
        return frozenset(ConsumerProtocolSubscription.decode(encoded).topics) if encoded else None
    except Exception:  # noqa: BLE001 - a broken member is for the test to judge, not for us to die of
        return None


def among_members(members: Collection[Member]) -> list[str]:
    """What is wrong by the members' own word alone."""
    wrong = [f"{member.name} ended" for member in members if not member.running]
    wrong += [f"{member.name} is joining" for member in members if member.joining]
    wrong += [
        f"{member.name} is in no generation"
        if member.observed
        else f"{member.name} has no observed consumer: its function calls seat.observe(consumer) first"
        for member in members
        if member.generation == NO_GENERATION and not member.joining and member.running
    ]
    if len({member.generation for member in members}) > 1:
        said = ", ".join(f"{member.name} {member.generation}" for member in members)
        wrong.append(f"the members are in different generations: {said}")
    return wrong


def against_brokers(members: Collection[Member], view: BrokersView, name: Mapping[str, str]) -> Iterator[str]:
    """What is wrong in view of the coordinator's word."""
    if view.error:
        yield f"the coordinator cannot be asked: {view.error}"
        return
    if view.state not in ({"Stable"} if members else {"Empty", "Dead"}):
        yield f"the coordinator says {view.state}"
    for member in members:
        assigned = view.assignments.get(member.member_id)
        if assigned is None:
            yield f"the coordinator does not list {member.name}"
        elif assigned != member.assignment:
            yield (
                f"the coordinator says that {member.name} has {format_partitions(assigned)},"
                f" {member.name} says {format_partitions(member.assignment)}"
            )
    for member_id in view.assignments.keys() - {member.member_id for member in members}:
        yield f"the coordinator still lists {name.get(member_id, member_id)}"


def against_topics(
    members: Collection[Member],
    view: BrokersView,
    existing: Existing,
    partitions: Collection[TopicPartition] | None,
    ownership: Sharing,
) -> Iterator[str]:
    """What is wrong in view of the topics that exist.

    Where no partitions are given, all topics that members subscribe to by name must exist.
    """
    subscribed = {
        member.name: {topic for topic in existing if subscribes(member.topics, topic)} for member in members
    }
    yield from _against_joins(members, view, subscribed, existing)
    if partitions is None:
        yield from _against_names(members, existing)
        topics = set[str]().union(*subscribed.values())
        partitions = [partition for topic in topics for partition in existing[topic]]
    wanted = frozenset(partitions)
    owners: dict[TopicPartition, list[str]] = {partition: [] for partition in wanted}
    for member in members:
        for partition in member.assignment:
            owners.setdefault(partition, []).append(member.name)
    for partition, names in sorted(owners.items()):
        right = len(names) == 1
        if ownership == "broadcast":
            right = names == [name for name, topics in subscribed.items() if partition.topic in topics]
        if not right or partition not in wanted:
            yield f"{partition.topic}-{partition.partition} is owned by {', '.join(names) or 'nobody'}"


def against_brokers_topics(
    members: Collection[Member],
    view: BrokersView,
    client: AdminClient,
    partitions: Collection[TopicPartition] | None,
    ownership: Sharing,
) -> list[str]:
    """The same, with the topics that brokers say there are."""
    try:
        existing = existing_partitions(client)
    except KafkaException as error:  # the broker that was asked may just be going down
        return [f"no broker says which topics there are: {error}"]
    return [*against_topics(members, view, existing, partitions, ownership)]


def log_ends(client: AdminClient, partitions: Collection[TopicPartition]) -> list[str]:
    """Where the brokers' logs end: whether records that are missed are there at all."""
    latest = cast("Any", confluent_kafka.admin).OffsetSpec.latest()
    ends = client.list_offsets({confluent_kafka.TopicPartition(*one): latest for one in partitions})
    found: list[str] = []
    for one, end in ends.items():
        try:
            found.append(f"the log of {one.topic}-{one.partition} ends at {end.result().offset}")
        except KafkaException as error:
            found.append(f"no broker says where the log of {one.topic}-{one.partition} ends: {error}")
    return found


def _against_names(members: Collection[Member], existing: Existing) -> Iterator[str]:
    """Which members subscribe to topics by names that no topic has: if misspelled, nothing else tells it."""
    for member in members:
        if isinstance(member.topics, re.Pattern):
            continue
        if absent := sorted({*names_of(member.topics)} - existing.keys()):
            yield (
                f"{member.name} subscribes to {', '.join(absent)}: no such topic; if it is to come later,"
                " give wait_stable the partitions= that must be owned"
            )


def _against_joins(
    members: Collection[Member],
    view: BrokersView,
    subscribed: Mapping[str, Collection[str]],
    existing: Existing,
) -> Iterator[str]:
    """Which members joined with other topics than those that they subscribe to."""
    if view.subscriptions is None:
        return
    for member in members:
        asked = view.subscriptions.get(member.member_id)
        if asked is None:
            if member.member_id in view.assignments:
                yield f"the coordinator does not say what {member.name} joined with"
        elif (wanted := subscribed[member.name]) != (said := asked & existing.keys()):
            yield (
                f"{member.name} subscribes to {', '.join(sorted(wanted)) or 'no topic that there is'},"
                f" and joined last with {', '.join(sorted(said)) or 'none'}"
            )


def against_expectation(members: Collection[Member], expect: Mapping[str, int]) -> Iterator[str]:
    """Which members have not as many partitions as they should."""
    sizes = {member.name: len(member.assignment) for member in members}
    for name, count in expect.items():
        if sizes.get(name) != count:
            yield f"{name} has {sizes.get(name, 'no')} partitions instead of {count}"
