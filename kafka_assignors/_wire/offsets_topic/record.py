"""A record of the offsets topic: its key says of what it is, its value what became of that."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

from kafka_assignors._wire.offsets_topic import (
    consumer_group,
    consumer_group_member,
    group_metadata,
    offset_commit,
)
from kafka_assignors._wire.offsets_topic.consumer_group import (
    ConsumerGroupMetadata,
    ConsumerGroupPartitionMetadata,
    ConsumerGroupRegularExpression,
    ConsumerGroupTargetAssignmentMetadata,
)
from kafka_assignors._wire.offsets_topic.consumer_group_member import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupTargetAssignmentMember,
)
from kafka_assignors._wire.offsets_topic.group_metadata import GroupMetadata
from kafka_assignors._wire.offsets_topic.offset_commit import OffsetCommit
from kafka_assignors._wire.offsets_topic.wire import RecordError, RecordReader, read_message


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


def record_type(key: bytes) -> int:
    """The number that a key begins with; see `RECORD_TYPES`.

    Raises:
        RecordError: There are no two bytes.
    """
    if len(key) < 2:  # noqa: PLR2004 - an int16
        raise RecordError("a record's key", 0, len(key), "it is too short for the type of record")
    return int.from_bytes(key[:2], signed=True)


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
    kind = _KINDS.get(number)
    if kind is None:
        return UnknownRecord(type=number, name=RECORD_TYPES.get(number), key=key, value=value)
    name = RECORD_TYPES[number]
    fields = read_message(key, f"{name}Key", kind.read_key, versions=(number,))
    return kind.make(**fields, value=None if value is None else kind.decode_value(value))


def _group(reader: RecordReader, _: int) -> dict[str, Any]:
    return {"group_id": reader.text("the group")}


def _member(reader: RecordReader, version: int) -> dict[str, Any]:
    return _group(reader, version) | {"member_id": reader.text("the member id")}


def _partition(reader: RecordReader, version: int) -> dict[str, Any]:
    return _group(reader, version) | {
        "topic": reader.text("the topic"),
        "partition": reader.int32("the partition"),
    }


def _expression(reader: RecordReader, version: int) -> dict[str, Any]:
    return _group(reader, version) | {"regular_expression": reader.text("the regular expression")}


class _Kind(NamedTuple):
    make: Callable[..., Record]
    read_key: Callable[[RecordReader, int], dict[str, Any]]
    decode_value: Callable[[bytes], Any]


def _of_consumer_group(
    make: Callable[..., Record],
    read_key: Callable[[RecordReader, int], dict[str, Any]],
    read_value: Callable[[RecordReader, int], Any],
) -> _Kind:
    decode = partial(
        read_message,
        name=f"{make.__name__}Value",
        read=read_value,
        versions=consumer_group.VERSIONS,
        flexible_since=consumer_group.FLEXIBLE_SINCE,
    )
    return _Kind(make, read_key, decode)


_OFFSET_COMMIT: Final = _Kind(OffsetCommit, _partition, offset_commit.decode_offset_commit)

_KINDS: Final = {
    0: _OFFSET_COMMIT,
    1: _OFFSET_COMMIT,
    2: _Kind(GroupMetadata, _group, group_metadata.decode_group_metadata),
    3: _of_consumer_group(ConsumerGroupMetadata, _group, consumer_group.read_group),
    4: _of_consumer_group(ConsumerGroupPartitionMetadata, _group, consumer_group.read_partition_metadata),
    5: _of_consumer_group(ConsumerGroupMemberMetadata, _member, consumer_group_member.read_member),
    6: _of_consumer_group(ConsumerGroupTargetAssignmentMetadata, _group, consumer_group.read_target_metadata),
    7: _of_consumer_group(ConsumerGroupTargetAssignmentMember, _member, consumer_group_member.read_target),
    8: _of_consumer_group(ConsumerGroupCurrentMemberAssignment, _member, consumer_group_member.read_current),
    16: _of_consumer_group(
        ConsumerGroupRegularExpression, _expression, consumer_group.read_regular_expression
    ),
}
