"""Members of groups of KIP-848: what they said, what they are to have, and what they have.

As in `consumer_group`, all values are v0.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Final
from uuid import UUID

from kafka_assignors._wire.offsets_topic.wire import RecordReader

_TAG: Final = 0
"""The only tag that any of them has so far. Unlike most, it is also written for a null."""

_LEAST_TOPIC: Final = 18
"""Bytes of a topic without partitions: its id, their number, and how many tagged fields there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions:
    """Partitions of a topic.

    Attributes:
        topic_id: The topic's id. Since Kafka 4.1 no record has its name.
        partitions: Partition ids.
        assignment_epochs: The member epoch at which each was assigned; None if that is unknown. Only in what
            a member has now.
    """

    topic_id: UUID
    partitions: tuple[int, ...]
    assignment_epochs: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicProtocol:
    """A protocol that a classic member supports.

    Attributes:
        name: Its name.
        metadata: What the member says for it; see `decode_subscription`.
    """

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberMetadata:
    """What is kept of a member that speaks the classic protocol in a group of KIP-848.

    Attributes:
        session_timeout_ms: How long it may be silent.
        supported_protocols: Its protocols, the one that it likes best first.
    """

    session_timeout_ms: int
    supported_protocols: tuple[ClassicProtocol, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadataValue:
    """What a member said of itself.

    Attributes:
        instance_id: Its own name, if it is a static member.
        rack_id: Its rack.
        client_id: Its client id.
        client_host: Where it connected from.
        subscribed_topic_names: The topics that it subscribes to by name.
        subscribed_topic_regex: The expression (RE2) that it subscribes by.
        rebalance_timeout_ms: How long it may take to revoke partitions.
        server_assignor: The assignor that it asks for.
        classic_member_metadata: None for a member that speaks the new protocol.
    """

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    subscribed_topic_names: tuple[str, ...]
    subscribed_topic_regex: str | None
    rebalance_timeout_ms: int
    server_assignor: str | None
    classic_member_metadata: ClassicMemberMetadata | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadata:
    """Record type 5.

    Attributes:
        group_id: The group.
        member_id: The member.
        value: None for a tombstone: the member is gone.
    """

    group_id: str
    member_id: str
    value: ConsumerGroupMemberMetadataValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMemberValue:
    """What a member is to have.

    Attributes:
        topic_partitions: The partitions.
    """

    topic_partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMember:
    """Record type 7.

    Attributes:
        group_id: The group.
        member_id: The member.
        value: None for a tombstone: the member is gone.
    """

    group_id: str
    member_id: str
    value: ConsumerGroupTargetAssignmentMemberValue | None


class EpochMemberState(IntEnum):
    """How far a member is on the way to its target (Kafka's class of that name)."""

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    """It has to revoke partitions first."""
    UNRELEASED_PARTITIONS = 2
    """It waits for partitions that others have to revoke."""
    UNKNOWN = 127


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignmentValue:
    """What a member has.

    Attributes:
        member_epoch: The epoch that it is given.
        previous_member_epoch: The one before, should it not have heard of the newest.
        state: An `EpochMemberState`, or a number that a newer broker knows.
        assigned_partitions: What it has.
        partitions_pending_revocation: What it has to revoke.
    """

    member_epoch: int
    previous_member_epoch: int
    state: int
    assigned_partitions: tuple[TopicPartitions, ...]
    partitions_pending_revocation: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignment:
    """Record type 8.

    Attributes:
        group_id: The group.
        member_id: The member.
        value: None for a tombstone: the member is gone.
    """

    group_id: str
    member_id: str
    value: ConsumerGroupCurrentMemberAssignmentValue | None


def read_member(reader: RecordReader, _: int) -> ConsumerGroupMemberMetadataValue:
    """The fields of a `ConsumerGroupMemberMetadataValue`."""
    instance_id = reader.string("the instance id")
    rack_id = reader.string("the rack")
    client_id = reader.text("the client id")
    client_host = reader.text("the client host")
    names = reader.texts("topic names", "a topic's name")
    regex = reader.string("the regular expression")
    rebalance_timeout_ms = reader.int32("the rebalance timeout")
    server_assignor = reader.string("the server assignor")
    return ConsumerGroupMemberMetadataValue(
        instance_id=instance_id,
        rack_id=rack_id,
        client_id=client_id,
        client_host=client_host,
        subscribed_topic_names=names,
        subscribed_topic_regex=regex,
        rebalance_timeout_ms=rebalance_timeout_ms,
        server_assignor=server_assignor,
        classic_member_metadata=reader.tagged({_TAG: lambda: _classic_member(reader)}).get(_TAG),
    )


def _classic_member(reader: RecordReader) -> ClassicMemberMetadata | None:
    def protocol() -> ClassicProtocol:
        read = ClassicProtocol(name=reader.text("a protocol"), metadata=reader.blob("a protocol's metadata"))
        reader.tagged()
        return read

    # Among tagged fields, a struct that can be null has a varint before it.
    if reader.unsigned("whether the member is a classic one") == 0:
        return None
    read = ClassicMemberMetadata(
        session_timeout_ms=reader.int32("the session timeout"),
        supported_protocols=reader.each(3, "protocols", protocol),
    )
    reader.tagged()
    return read


def read_target(reader: RecordReader, _: int) -> ConsumerGroupTargetAssignmentMemberValue:
    """The fields of a `ConsumerGroupTargetAssignmentMemberValue`."""

    def partitions() -> TopicPartitions:
        read = TopicPartitions(
            topic_id=reader.uuid("a topic id"), partitions=reader.int32s("partitions of a topic")
        )
        reader.tagged()
        return read

    value = ConsumerGroupTargetAssignmentMemberValue(
        topic_partitions=reader.each(_LEAST_TOPIC, "topics", partitions)
    )
    reader.tagged()
    return value


def read_current(reader: RecordReader, _: int) -> ConsumerGroupCurrentMemberAssignmentValue:
    """The fields of a `ConsumerGroupCurrentMemberAssignmentValue`."""

    def epochs() -> tuple[int, ...] | None:
        return reader.int32s_or_null("assignment epochs")

    def partitions() -> TopicPartitions:
        topic_id = reader.uuid("a topic id")
        ids = reader.int32s("partitions of a topic")
        return TopicPartitions(
            topic_id=topic_id, partitions=ids, assignment_epochs=reader.tagged({_TAG: epochs}).get(_TAG)
        )

    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=reader.int32("the member epoch"),
        previous_member_epoch=reader.int32("the previous member epoch"),
        state=reader.int8("the state"),
        assigned_partitions=reader.each(_LEAST_TOPIC, "topics", partitions),
        partitions_pending_revocation=reader.each(_LEAST_TOPIC, "topics", partitions),
    )
    reader.tagged()
    return value
