"""A classic group after each rebalance (`GroupMetadataKey`, `GroupMetadataValue`).

One record holds what the leader knew and what it answered: every member's subscription and assignment.
"""

from dataclasses import dataclass
from typing import Final

from kafka_assignors._wire.offsets_topic.wire import RecordReader, RecordWriter, read_message

_VERSIONS: Final = range(5)
_FLEXIBLE_SINCE: Final = 4

_TYPE: Final = 2
_LEAST_MEMBER: Final = 15
"""Bytes of a member that says nothing, in v4: two timeouts, six lengths, and that there are no tags."""
_BATCH_HEADER: Final = 61

_REBALANCE_TIMEOUT_SINCE: Final = 1
_STATE_TIMESTAMP_SINCE: Final = 2
_INSTANCE_ID_SINCE: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    """A member of a classic group.

    Attributes:
        member_id: Given to it by the coordinator.
        group_instance_id: Its own name, if it is a static member; None below v3.
        client_id: Its client id.
        client_host: Where it connected from, such as `/10.0.0.1`.
        rebalance_timeout: How long it may take to join again, in ms; -1 in v0.
        session_timeout: How long it may be silent, in ms.
        subscription: What it sent for the chosen protocol; see `decode_subscription` if the protocol type is
            `consumer`.
        assignment: What the leader gave it; see `decode_assignment`. No bytes: nothing, or not yet.
    """

    member_id: str
    group_instance_id: str | None = None
    client_id: str
    client_host: str
    rebalance_timeout: int = -1
    session_timeout: int
    subscription: bytes
    assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataValue:
    """A group in one generation.

    Attributes:
        version: The version that it was written in, 0 to 4.
        protocol_type: `consumer` for consumers, `connect` for workers of Kafka Connect.
        generation: The generation.
        protocol: The assignor that was chosen; None in a group without members.
        leader: The member id of the leader; None in a group without members.
        current_state_timestamp: When its state changed last, in ms since the epoch; -1 below v2.
        members: Its members, in no particular order.
    """

    version: int
    protocol_type: str
    generation: int
    protocol: str | None
    leader: str | None
    current_state_timestamp: int = -1
    members: tuple[MemberMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadata:
    """Record type 2.

    Attributes:
        group_id: The group.
        value: What became of it; None for a tombstone: the group is gone.
    """

    group_id: str
    value: GroupMetadataValue | None


def decode_group_metadata(data: bytes) -> GroupMetadataValue:
    """Read a `GroupMetadataValue`, v0 to v4.

    Raises:
        RecordError: The bytes are something else.
    """
    return read_message(
        data, "GroupMetadataValue", _value, versions=_VERSIONS, flexible_since=_FLEXIBLE_SINCE
    )


def _value(reader: RecordReader, version: int) -> GroupMetadataValue:
    def member() -> MemberMetadata:
        read = MemberMetadata(
            member_id=reader.text("a member id"),
            group_instance_id=(
                reader.string("a group instance id") if version >= _INSTANCE_ID_SINCE else None
            ),
            client_id=reader.text("a client id"),
            client_host=reader.text("a client host"),
            rebalance_timeout=(
                reader.int32("a rebalance timeout") if version >= _REBALANCE_TIMEOUT_SINCE else -1
            ),
            session_timeout=reader.int32("a session timeout"),
            subscription=reader.blob("a subscription"),
            assignment=reader.blob("an assignment"),
        )
        reader.tagged()
        return read

    value = GroupMetadataValue(
        version=version,
        protocol_type=reader.text("the protocol type"),
        generation=reader.int32("the generation"),
        protocol=reader.string("the protocol"),
        leader=reader.string("the leader"),
        current_state_timestamp=(
            reader.int64("the state timestamp") if version >= _STATE_TIMESTAMP_SINCE else -1
        ),
        members=tuple(reader.each(_LEAST_MEMBER, "members", member)),
    )
    reader.tagged()
    return value


def encode_group_metadata(value: GroupMetadataValue) -> bytes:
    """Write a `GroupMetadataValue` in the version that it says; what that version does not have is left out.

    Raises:
        ValueError: There is no such version, or a string has more than 32,767 bytes.
    """
    version = value.version
    if version not in _VERSIONS:
        raise ValueError(
            f"GroupMetadataValue has no version {version}, only {_VERSIONS[0]} to {_VERSIONS[-1]}"
        )
    writer = RecordWriter(flexible=version >= _FLEXIBLE_SINCE)
    writer.int16(version)
    writer.text(value.protocol_type)
    writer.int32(value.generation)
    writer.text(value.protocol)
    writer.text(value.leader)
    if version >= _STATE_TIMESTAMP_SINCE:
        writer.int64(value.current_state_timestamp)
    writer.count(len(value.members))
    for member in value.members:
        writer.text(member.member_id)
        if version >= _INSTANCE_ID_SINCE:
            writer.text(member.group_instance_id)
        writer.text(member.client_id)
        writer.text(member.client_host)
        if version >= _REBALANCE_TIMEOUT_SINCE:
            writer.int32(member.rebalance_timeout)
        writer.int32(member.session_timeout)
        writer.blob(member.subscription)
        writer.blob(member.assignment)
        writer.no_tags()
    writer.no_tags()
    return writer.written()


def group_metadata_key(group_id: str) -> bytes:
    """The key of a group's `GroupMetadata` records.

    Raises:
        ValueError: The group's name has more than 32,767 bytes.
    """
    writer = RecordWriter()
    writer.int16(_TYPE)
    writer.text(group_id)
    return writer.written()


def batch_size(key: bytes, value: bytes) -> int:
    """How many bytes the coordinator appends to the log for a record: a batch (v2) that holds it alone.

    Brokers refuse more than the `max.message.bytes` of `__consumer_offsets`, 1,048,588 unless set, and then
    every member's join fails. With `offsets.topic.compression.codec` set it is what is left after compression
    that counts.
    """
    # Attributes, timestamp delta, offset delta and the number of headers take a byte each.
    record = 4 + _varint_size(len(key)) + len(key) + _varint_size(len(value)) + len(value)
    return _BATCH_HEADER + _varint_size(record) + record


def _varint_size(number: int) -> int:
    """Of a varint with a sign (zigzag)."""
    return max(1, -(-(2 * number).bit_length() // 7))
