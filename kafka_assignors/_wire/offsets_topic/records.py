"""The classes of records: `X` has the fields of Kafka's `XKey`, and an `XValue`.

They are Kafka's schemas: `layouts` reads and writes by the types of their fields. A type that can be None is
nullable. The `version` of a value is the one that it was written in. `value` is None for a tombstone.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, NamedTuple
from uuid import UUID

Int8 = Annotated[int, struct.Struct(">b")]
Int32 = Annotated[int, struct.Struct(">i")]
Int64 = Annotated[int, struct.Struct(">q")]


class Since(NamedTuple):
    """A field of these versions; in others it is its default."""

    first: int
    last: int = 2**15


class Tag(NamedTuple):
    """A tagged field (KIP-482), as newer brokers add them."""

    tag: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitValue:
    """A committed offset.

    Attributes:
        version: The version that it was written in, 0 to 4.
        offset: The offset to continue at.
        leader_epoch: That of the last record consumed; -1 if it is unknown.
        metadata: What the member wrote beside it.
        commit_timestamp: When, in ms since the epoch.
        expire_timestamp: When it is forgotten, in v1; else -1: then the group's state and
            `offsets.retention.minutes` decide.
        topic_id: The topic's id where the broker wrote it.
    """

    version: int
    offset: Int64
    leader_epoch: Annotated[Int32, Since(3)] = -1
    metadata: str
    commit_timestamp: Int64
    expire_timestamp: Annotated[Int64, Since(1, last=1)] = -1
    topic_id: Annotated[UUID | None, Tag(0)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommit:
    """Record types 0 (`LegacyOffsetCommit`, of brokers before 0.9) and 1; a tombstone forgets the offset."""

    group_id: str
    topic: str
    partition: Int32
    value: OffsetCommitValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    """A member of a classic group.

    Attributes:
        member_id: Given to it by the coordinator.
        group_instance_id: Its own name, if it is a static member.
        client_id: Its client id.
        client_host: Where it connected from, such as `/10.0.0.1`.
        rebalance_timeout: How long it may take to join again, in ms.
        session_timeout: How long it may be silent, in ms.
        subscription: What it sent for the chosen protocol; see `decode_subscription` if the protocol type is
            `consumer`.
        assignment: What the leader gave it; see `decode_assignment`. No bytes: nothing, or not yet.
    """

    member_id: str
    group_instance_id: Annotated[str | None, Since(3)] = None
    client_id: str
    client_host: str
    rebalance_timeout: Annotated[Int32, Since(1)] = -1
    session_timeout: Int32
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataValue:
    """A classic group in one generation: what the leader knew, and what it answered.

    Attributes:
        version: The version that it was written in, 0 to 4.
        protocol_type: `consumer` for consumers, `connect` for workers of Kafka Connect.
        generation: The generation.
        protocol: The assignor that was chosen; None in a group without members.
        leader: The member id of the leader; None in a group without members.
        current_state_timestamp: When its state changed last, in ms since the epoch.
        members: Its members, in no particular order.
    """

    version: int
    protocol_type: str
    generation: Int32
    protocol: str | None
    leader: str | None
    current_state_timestamp: Annotated[Int64, Since(2)] = -1
    members: tuple[MemberMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """Record type 2, a classic group after each rebalance; a tombstone: the group is gone."""

    group_id: str
    value: GroupMetadataValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataValue:
    """The epoch of a group of KIP-848.

    Attributes:
        epoch: It rises with each change of members, subscriptions or topics.
        metadata_hash: Of all topics of the group (KIP-1101, since 4.1); else 0.
    """

    epoch: Int32
    metadata_hash: Annotated[Int64, Tag(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadata:
    """Record type 3; a tombstone: the group is gone, or is a classic one now."""

    group_id: str
    value: ConsumerGroupMetadataValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """The racks of a partition's replicas; no longer written since 4.0."""

    partition: Int32
    racks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """A topic as the coordinator saw it; it has `partition_metadata` if the racks were known."""

    topic_id: UUID
    topic_name: str
    num_partitions: Int32
    partition_metadata: tuple[PartitionMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadataValue:
    """The topics that a group subscribes to."""

    topics: tuple[TopicMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadata:
    """Record type 4; up to Kafka 4.0."""

    group_id: str
    value: ConsumerGroupPartitionMetadataValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicProtocol:
    """A protocol that a classic member supports; `decode_subscription` reads its metadata."""

    name: str
    metadata: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassicMemberMetadata:
    """A member that speaks the classic protocol in a group of KIP-848; it likes its first protocol best."""

    session_timeout_ms: Int32
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
    rebalance_timeout_ms: Int32
    server_assignor: str | None
    # Unlike most tagged fields, it is also written for a null.
    classic_member_metadata: Annotated[ClassicMemberMetadata | None, Tag(0)] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMemberMetadata:
    """Record type 5; a tombstone: the member is gone."""

    group_id: str
    member_id: str
    value: ConsumerGroupMemberMetadataValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadataValue:
    """When the target assignment was made.

    Attributes:
        assignment_epoch: The group epoch that it was made for.
        assignment_timestamp: When, in ms since the epoch (KIP-1263, since 4.3); else 0.
    """

    assignment_epoch: Int32
    assignment_timestamp: Annotated[Int64, Tag(0)] = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadata:
    """Record type 6."""

    group_id: str
    value: ConsumerGroupTargetAssignmentMetadataValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPartitions:
    """Partitions of a topic. Since Kafka 4.1 no record has the topic's name."""

    topic_id: UUID
    partitions: tuple[Int32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMemberValue:
    """What a member is to have."""

    topic_partitions: tuple[TopicPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMember:
    """Record type 7; a tombstone: the member is gone."""

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
class AssignedPartitions(TopicPartitions):
    """Those that a member has, and the member epoch at which each was assigned, if known."""

    assignment_epochs: Annotated[tuple[Int32, ...] | None, Tag(0)] = None


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

    member_epoch: Int32
    previous_member_epoch: Int32
    state: Int8
    assigned_partitions: tuple[AssignedPartitions, ...]
    partitions_pending_revocation: tuple[AssignedPartitions, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupCurrentMemberAssignment:
    """Record type 8; a tombstone: the member is gone."""

    group_id: str
    member_id: str
    value: ConsumerGroupCurrentMemberAssignmentValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpressionValue:
    """The topics that an expression stands for.

    Attributes:
        topics: Their names.
        version: The version of the cluster's metadata that it was looked up in.
        timestamp: When, in ms since the epoch.
    """

    topics: tuple[str, ...]
    version: Int64
    timestamp: Int64


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpression:
    """Record type 16; a tombstone: no member subscribes by the expression any more."""

    group_id: str
    regular_expression: str
    value: ConsumerGroupRegularExpressionValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownRecord:
    """A record of another type: of share and streams groups, or of a newer broker.

    Attributes:
        type: The number that its key begins with.
        name: Kafka's name of the type; None for those that 4.3 does not know.
        key: The whole key.
        value: The whole value; None for a tombstone.
    """

    type: int
    name: str | None
    key: bytes
    value: bytes | None


Record = (
    OffsetCommit
    | GroupMetadata
    | ConsumerGroupMetadata
    | ConsumerGroupPartitionMetadata
    | ConsumerGroupMemberMetadata
    | ConsumerGroupTargetAssignmentMetadata
    | ConsumerGroupTargetAssignmentMember
    | ConsumerGroupCurrentMemberAssignment
    | ConsumerGroupRegularExpression
    | UnknownRecord
)
"""Any record; each has a `value`, which is None for a tombstone."""
