"""Records of Kafka's internal topic `__consumer_offsets`: what groups did, as their coordinator noted it.

`decode_record` reads any of them. A record of a classic group holds the subscriptions and assignments of its
members as bytes, which `decode_subscription` and `decode_assignment` read.
"""

from kafka_assignors._wire.offsets_topic.consumer_group import (
    ConsumerGroupMetadata,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadata,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpression,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMetadata,
    ConsumerGroupTargetAssignmentMetadataValue,
    PartitionMetadata,
    TopicMetadata,
)
from kafka_assignors._wire.offsets_topic.consumer_group_member import (
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMemberValue,
    EpochMemberState,
    TopicPartitions,
)
from kafka_assignors._wire.offsets_topic.consumer_protocol import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_prior_assignment,
    decode_subscription,
)
from kafka_assignors._wire.offsets_topic.group_metadata import (
    GroupMetadata,
    GroupMetadataValue,
    MemberMetadata,
    batch_size,
    decode_group_metadata,
    encode_group_metadata,
    group_metadata_key,
)
from kafka_assignors._wire.offsets_topic.offset_commit import (
    OffsetCommit,
    OffsetCommitValue,
    decode_offset_commit,
)
from kafka_assignors._wire.offsets_topic.record import (
    Record,
    UnknownRecord,
    decode_record,
    record_type,
)
from kafka_assignors._wire.offsets_topic.wire import (
    RecordError,
)

__all__ = [
    "Assignment",
    "ClassicMemberMetadata",
    "ClassicProtocol",
    "ConsumerGroupCurrentMemberAssignment",
    "ConsumerGroupCurrentMemberAssignmentValue",
    "ConsumerGroupMemberMetadata",
    "ConsumerGroupMemberMetadataValue",
    "ConsumerGroupMetadata",
    "ConsumerGroupMetadataValue",
    "ConsumerGroupPartitionMetadata",
    "ConsumerGroupPartitionMetadataValue",
    "ConsumerGroupRegularExpression",
    "ConsumerGroupRegularExpressionValue",
    "ConsumerGroupTargetAssignmentMember",
    "ConsumerGroupTargetAssignmentMemberValue",
    "ConsumerGroupTargetAssignmentMetadata",
    "ConsumerGroupTargetAssignmentMetadataValue",
    "EpochMemberState",
    "GroupMetadata",
    "GroupMetadataValue",
    "MemberMetadata",
    "OffsetCommit",
    "OffsetCommitValue",
    "PartitionMetadata",
    "Record",
    "RecordError",
    "Subscription",
    "TopicMetadata",
    "TopicPartitions",
    "UnknownRecord",
    "batch_size",
    "decode_assignment",
    "decode_group_metadata",
    "decode_offset_commit",
    "decode_prior_assignment",
    "decode_record",
    "decode_subscription",
    "encode_group_metadata",
    "group_metadata_key",
    "record_type",
]
