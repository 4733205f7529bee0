"""A record of the offsets topic: its key says of what it is, its value what became of that."""

from collections.abc import Mapping
from typing import Final, get_args, get_type_hints

from kafka_assignors._wire.offsets_topic import records
from kafka_assignors._wire.offsets_topic.layouts import Message
from kafka_assignors._wire.offsets_topic.records import (
    GroupMetadataValue,
    OffsetCommitValue,
    Record,
    UnknownRecord,
)
from kafka_assignors._wire.offsets_topic.wire import RecordError
from kafka_assignors._wire.reader import INT16, encode_string

RECORD_TYPES: Final[Mapping[int, str]] = {
    0: "LegacyOffsetCommit",
    1: "OffsetCommit",
    2: "GroupMetadata",
    3: "ConsumerGroupMetadata",
    4: "ConsumerGroupPartitionMetadata",
    5: "ConsumerGroupMemberMetadata",
    6: "ConsumerGroupTargetAssignmentMetadata",
    7: "ConsumerGroupTargetAssignmentMember",
    8: "ConsumerGroupCurrentMemberAssignment",
    10: "ShareGroupMemberMetadata",
    11: "ShareGroupMetadata",
    12: "ShareGroupTargetAssignmentMetadata",
    13: "ShareGroupTargetAssignmentMember",
    14: "ShareGroupCurrentMemberAssignment",
    15: "ShareGroupStatePartitionMetadata",
    16: "ConsumerGroupRegularExpression",
    17: "StreamsGroupMetadata",
    19: "StreamsGroupMemberMetadata",
    20: "StreamsGroupTargetAssignmentMetadata",
    21: "StreamsGroupTargetAssignmentMember",
    22: "StreamsGroupCurrentMemberAssignment",
    23: "StreamsGroupTopology",
}
"""Kafka 4.3's names of the types (`CoordinatorRecordType`); 9 and 18 are nobody's."""

_BATCH_HEADER: Final = 61
_NEVER: Final = 2**15


_READ: Final = {
    0: records.OffsetCommit,
    1: records.OffsetCommit,
    2: records.GroupMetadata,
    3: records.ConsumerGroupMetadata,
    4: records.ConsumerGroupPartitionMetadata,
    5: records.ConsumerGroupMemberMetadata,
    6: records.ConsumerGroupTargetAssignmentMetadata,
    7: records.ConsumerGroupTargetAssignmentMember,
    8: records.ConsumerGroupCurrentMemberAssignment,
    16: records.ConsumerGroupRegularExpression,
}
_KIP848_SINCE: Final = 3
"""The first type whose values are v0 only, which is flexible. Values of those before are v0 to v4."""


def _key(number: int) -> Message:
    return Message(_READ[number], f"{RECORD_TYPES[number]}Key", range(number, number + 1), _NEVER)


def _value(number: int) -> Message:
    value, _ = get_args(get_type_hints(_READ[number])["value"])
    versions, flexible_since = (range(1), 0) if number >= _KIP848_SINCE else (range(5), 4)
    return Message(value, value.__name__, versions, flexible_since)


_KEYS: Final = {number: _key(number) for number in _READ}
_VALUES: Final = {number: _value(number) for number in _READ}
_OFFSET_COMMIT: Final = _VALUES[1]
_GROUP_METADATA: Final = _VALUES[2]


def record_type(key: bytes) -> int:
    """The number that a key begins with; see `RECORD_TYPES`. Raises RecordError if it has no two bytes."""
    if len(key) < INT16.size:
        raise RecordError("a record's key", 0, len(key), "it is too short for the type of record")
    return int.from_bytes(key[: INT16.size], signed=True)


def decode_record(key: bytes | None, value: bytes | None) -> Record:
    """Read a record as a consumer of `__consumer_offsets` gets it.

    What is in it is read to the last byte, but for the subscriptions and assignments of members, which
    `decode_subscription` and `decode_assignment` read.

    Args:
        key: Its key.
        value: Its value; None for a tombstone.

    Returns:
        An `UnknownRecord` for types that are not read here; their bytes are not looked at.

    Raises:
        RecordError: The bytes are something else, or of a version that is not known.
    """
    if key is None:
        raise RecordError("a record's key", 0, 0, "it is null; all records of the offsets topic have one")
    number = record_type(key)
    if number not in _READ:
        return UnknownRecord(type=number, name=RECORD_TYPES.get(number), key=key, value=value)
    make = _KEYS[number].read(key)
    record: Record = make(value=None if value is None else _VALUES[number].read(value))
    return record


def decode_group_metadata(data: bytes) -> GroupMetadataValue:
    """Read a `GroupMetadataValue`, v0 to v4.

    Raises:
        RecordError: The bytes are something else.
    """
    value: GroupMetadataValue = _GROUP_METADATA.read(data)
    return value


def decode_offset_commit(data: bytes) -> OffsetCommitValue:
    """Read an `OffsetCommitValue`, v0 to v4.

    Raises:
        RecordError: The bytes are something else.
    """
    value: OffsetCommitValue = _OFFSET_COMMIT.read(data)
    return value


def encode_group_metadata(value: GroupMetadataValue) -> bytes:
    """Write a `GroupMetadataValue` in the version that it says; what that version does not have is left out.

    Raises:
        ValueError: There is no such version, or a string has more than 32,767 bytes.
    """
    return _GROUP_METADATA.write(value, value.version)


def group_metadata_key(group_id: str) -> bytes:
    """The key of a group's `GroupMetadata` records.

    Raises:
        ValueError: The group's name has more than 32,767 bytes.
    """
    return INT16.pack(2) + encode_string(group_id)


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
