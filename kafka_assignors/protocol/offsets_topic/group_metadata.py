"""A classic group after each rebalance (`GroupMetadataKey`, `GroupMetadataValue`).

One record holds what the leader knew and what it answered: every member's subscription and assignment. There
are many of them, so the versions without varints, which are all that brokers up to 4.3 write, are read
without a call for each field: 20 members in 37 us, and in 87 us with. Only what is right is read so; what
that stumbles over, the careful way reads, and says what is wrong.
"""

import struct
from dataclasses import dataclass
from typing import Final

from kafka_assignors.protocol.offsets_topic.wire import LONGEST_TEXT, RecordReader, RecordWriter, read_message

_VERSIONS: Final = range(5)
_FLEXIBLE_SINCE: Final = 4

_TYPE: Final = 2
_LEAST_MEMBER: Final = 15
"""Bytes of a member that says nothing, in v4: two timeouts, six lengths, and that there are no tags."""
_BATCH_HEADER: Final = 61

_REBALANCE_TIMEOUT_SINCE: Final = 1
_STATE_TIMESTAMP_SINCE: Final = 2
_INSTANCE_ID_SINCE: Final = 3

_NULL: Final = 0xFFFF
_LONGEST_BLOB: Final = 2**31 - 1
_uint16: Final = struct.Struct(">H").unpack_from
_uint32: Final = struct.Struct(">I").unpack_from
_int32: Final = struct.Struct(">i").unpack_from
_int64: Final = struct.Struct(">q").unpack_from
_session: Final = struct.Struct(">iI").unpack_from
_timeouts: Final = struct.Struct(">iiI").unpack_from


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


MemberFields = tuple[str, str | None, str, str, int, int, bytes, bytes]
"""What is in a `MemberMetadata`, in its order."""
GroupFields = tuple[int, str, int, str | None, str | None, int, list[MemberFields]]
"""What is in a `GroupMetadataValue`, in its order."""


def decode_group_metadata(data: bytes) -> GroupMetadataValue:
    """Read a `GroupMetadataValue`, v0 to v4.

    Raises:
        RecordError: The bytes are something else.
    """
    return _value_of(read_group_metadata(data))


def read_group_metadata(data: bytes) -> GroupFields:
    """As `decode_group_metadata`, without an object for each member, which takes as long as reading it."""
    try:
        fields = _fields_at_once(data)
    except (struct.error, UnicodeDecodeError):
        fields = None
    return fields or _read_carefully(data)


def _value_of(fields: GroupFields) -> GroupMetadataValue:
    version, protocol_type, generation, protocol, leader, state_timestamp, members = fields
    return GroupMetadataValue(
        version=version,
        protocol_type=protocol_type,
        generation=generation,
        protocol=protocol,
        leader=leader,
        current_state_timestamp=state_timestamp,
        members=tuple(
            MemberMetadata(
                member_id=member_id,
                group_instance_id=instance_id,
                client_id=client_id,
                client_host=client_host,
                rebalance_timeout=rebalance_timeout,
                session_timeout=session_timeout,
                subscription=subscription,
                assignment=assignment,
            )
            for (
                member_id,
                instance_id,
                client_id,
                client_host,
                rebalance_timeout,
                session_timeout,
                subscription,
                assignment,
            ) in members
        ),
    )


def _fields_at_once(data: bytes) -> GroupFields | None:
    """Below v4; None if anything is not as it should be.

    All lengths are read as unsigned, so that reading only ever goes forward, and ends with the bytes. That
    none was negative, and none went past the end, is looked at afterwards.

    Raises:
        struct.error: The bytes end too early.
        UnicodeDecodeError: A string is not UTF-8.
    """
    version = _uint16(data)[0]
    if version >= _FLEXIBLE_SINCE:
        return None
    size = _uint16(data, 2)[0]
    longest = size
    at = 4 + size
    protocol_type = data[4:at].decode()
    generation = _int32(data, at)[0]
    size = _uint16(data, at + 4)[0]
    at += 6
    protocol = leader = None
    if size != _NULL:
        longest |= size
        protocol = data[at : at + size].decode()
        at += size
    size = _uint16(data, at)[0]
    at += 2
    if size != _NULL:
        longest |= size
        leader = data[at : at + size].decode()
        at += size
    state_timestamp = -1
    if version >= _STATE_TIMESTAMP_SINCE:
        state_timestamp = _int64(data, at)[0]
        at += 8
    count = _int32(data, at)[0]
    at += 4
    members = _members_at_once(data, at, count, version)
    if longest > LONGEST_TEXT or count < 0 or members is None:
        return None
    return version, protocol_type, generation, protocol, leader, state_timestamp, members


def _members_at_once(data: bytes, at: int, count: int, version: int) -> list[MemberFields] | None:
    longest = largest = 0
    members: list[MemberFields] = []
    instance_id = None
    rebalance_timeout = -1
    for _ in range(count):
        size = _uint16(data, at)[0]
        longest |= size
        at += 2 + size
        member_id = data[at - size : at].decode()
        if version >= _INSTANCE_ID_SINCE:
            size = _uint16(data, at)[0]
            at += 2
            instance_id = None
            if size != _NULL:
                longest |= size
                instance_id = data[at : at + size].decode()
                at += size
        size = _uint16(data, at)[0]
        longest |= size
        at += 2 + size
        client_id = data[at - size : at].decode()
        size = _uint16(data, at)[0]
        longest |= size
        at += 2 + size
        client_host = data[at - size : at].decode()
        if version >= _REBALANCE_TIMEOUT_SINCE:
            rebalance_timeout, session_timeout, size = _timeouts(data, at)
            at += 12
        else:
            session_timeout, size = _session(data, at)
            at += 8
        largest |= size
        subscription = data[at : at + size]
        at += size
        size = _uint32(data, at)[0]
        largest |= size
        at += 4 + size
        members.append(
            (
                member_id,
                instance_id,
                client_id,
                client_host,
                rebalance_timeout,
                session_timeout,
                subscription,
                data[at - size : at],
            )
        )
    if longest > LONGEST_TEXT or largest > _LONGEST_BLOB or at != len(data):
        return None
    return members


def _read_carefully(data: bytes) -> GroupFields:
    return read_message(
        data, "GroupMetadataValue", _fields, versions=_VERSIONS, flexible_since=_FLEXIBLE_SINCE
    )


def _fields(reader: RecordReader, version: int) -> GroupFields:
    def member() -> MemberFields:
        read = (
            reader.text("a member id"),
            reader.text_or_null("a group instance id") if version >= _INSTANCE_ID_SINCE else None,
            reader.text("a client id"),
            reader.text("a client host"),
            reader.int32("a rebalance timeout") if version >= _REBALANCE_TIMEOUT_SINCE else -1,
            reader.int32("a session timeout"),
            reader.blob("a subscription"),
            reader.blob("an assignment"),
        )
        reader.tagged()
        return read

    fields = (
        version,
        reader.text("the protocol type"),
        reader.int32("the generation"),
        reader.text_or_null("the protocol"),
        reader.text_or_null("the leader"),
        reader.int64("the state timestamp") if version >= _STATE_TIMESTAMP_SINCE else -1,
        [*reader.each(_LEAST_MEMBER, "members", member)],
    )
    reader.tagged()
    return fields


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
