"""Groups of KIP-848, whose assignments the coordinator makes: what is said of a group as a whole.

Of each class `X` and its `XValue`, the first is the record, the second what became of it. All values are
v0; the fields that later brokers added are tagged.
"""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from kafka_assignors._wire.offsets_topic.wire import RecordReader

VERSIONS: Final = range(1)
FLEXIBLE_SINCE: Final = 0

_TAG: Final = 0
"""The only tag that any of them has so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadataValue:
    """A group's epoch.

    Attributes:
        epoch: The group epoch; it rises with each change of members, subscriptions or topics.
        metadata_hash: Of all topics of the group (KIP-1101, since 4.1); else 0.
    """

    epoch: int
    metadata_hash: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupMetadata:
    """Record type 3.

    Attributes:
        group_id: The group.
        value: None for a tombstone: the group is gone, or is a classic one now.
    """

    group_id: str
    value: ConsumerGroupMetadataValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMetadata:
    """Where the replicas of a partition are; no longer written since 4.0.

    Attributes:
        partition: The partition's id.
        racks: The racks of its replicas.
    """

    partition: int
    racks: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicMetadata:
    """A topic as the coordinator saw it.

    Attributes:
        topic_id: Its id.
        topic_name: Its name.
        num_partitions: How many partitions it had.
        partition_metadata: Its partitions, if their racks were known.
    """

    topic_id: UUID
    topic_name: str
    num_partitions: int
    partition_metadata: tuple[PartitionMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadataValue:
    """The topics that a group subscribes to.

    Attributes:
        topics: The topics.
    """

    topics: tuple[TopicMetadata, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupPartitionMetadata:
    """Record type 4; up to Kafka 4.0.

    Attributes:
        group_id: The group.
        value: None for a tombstone.
    """

    group_id: str
    value: ConsumerGroupPartitionMetadataValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadataValue:
    """When the target assignment was made.

    Attributes:
        assignment_epoch: The group epoch that it was made for.
        assignment_timestamp: When, in ms since the epoch (KIP-1263, since 4.3); else 0.
    """

    assignment_epoch: int
    assignment_timestamp: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupTargetAssignmentMetadata:
    """Record type 6.

    Attributes:
        group_id: The group.
        value: None for a tombstone.
    """

    group_id: str
    value: ConsumerGroupTargetAssignmentMetadataValue | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpressionValue:
    """The topics that an expression stands for.

    Attributes:
        topics: Their names.
        version: The version of the cluster's metadata that it was looked up in.
        timestamp: When, in ms since the epoch.
    """

    topics: tuple[str, ...]
    version: int
    timestamp: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerGroupRegularExpression:
    """Record type 16.

    Attributes:
        group_id: The group.
        regular_expression: The expression.
        value: None for a tombstone: nobody subscribes by it any more.
    """

    group_id: str
    regular_expression: str
    value: ConsumerGroupRegularExpressionValue | None


def read_group(reader: RecordReader, _: int) -> ConsumerGroupMetadataValue:
    """The fields of a `ConsumerGroupMetadataValue`."""
    epoch = reader.int32("the epoch")
    tagged = reader.tagged({_TAG: lambda: reader.int64("the metadata hash")})
    return ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=tagged.get(_TAG, 0))


def read_partition_metadata(reader: RecordReader, _: int) -> ConsumerGroupPartitionMetadataValue:
    """The fields of a `ConsumerGroupPartitionMetadataValue`."""

    def partition() -> PartitionMetadata:
        read = PartitionMetadata(
            partition=reader.int32("a partition"),
            racks=reader.texts("racks", "a rack"),
        )
        reader.tagged()
        return read

    def topic() -> TopicMetadata:
        read = TopicMetadata(
            topic_id=reader.uuid("a topic id"),
            topic_name=reader.text("a topic's name"),
            num_partitions=reader.int32("a number of partitions"),
            partition_metadata=reader.each(6, "partitions", partition),
        )
        reader.tagged()
        return read

    value = ConsumerGroupPartitionMetadataValue(topics=reader.each(23, "topics", topic))
    reader.tagged()
    return value


def read_target_metadata(reader: RecordReader, _: int) -> ConsumerGroupTargetAssignmentMetadataValue:
    """The fields of a `ConsumerGroupTargetAssignmentMetadataValue`."""
    epoch = reader.int32("the assignment epoch")
    tagged = reader.tagged({_TAG: lambda: reader.int64("the assignment timestamp")})
    return ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=epoch, assignment_timestamp=tagged.get(_TAG, 0)
    )


def read_regular_expression(reader: RecordReader, _: int) -> ConsumerGroupRegularExpressionValue:
    """The fields of a `ConsumerGroupRegularExpressionValue`."""
    value = ConsumerGroupRegularExpressionValue(
        topics=reader.texts("topics", "a topic's name"),
        version=reader.int64("the version of the metadata"),
        timestamp=reader.int64("the timestamp"),
    )
    reader.tagged()
    return value
