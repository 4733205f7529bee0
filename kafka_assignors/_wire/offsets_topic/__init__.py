"""Records of Kafka's internal topic `__consumer_offsets`; `kafka_assignors.offsets_topic` is public."""

from kafka_assignors._wire.offsets_topic.consumer_protocol import (
    Assignment as Assignment,
    Subscription as Subscription,
    decode_assignment as decode_assignment,
    decode_prior_assignment as decode_prior_assignment,
    decode_subscription as decode_subscription,
)
from kafka_assignors._wire.offsets_topic.record import (
    batch_size as batch_size,
    decode_group_metadata as decode_group_metadata,
    decode_offset_commit as decode_offset_commit,
    decode_record as decode_record,
    encode_group_metadata as encode_group_metadata,
    group_metadata_key as group_metadata_key,
    record_type as record_type,
)
from kafka_assignors._wire.offsets_topic.records import (
    AssignedPartitions as AssignedPartitions,
    ClassicMemberMetadata as ClassicMemberMetadata,
    ClassicProtocol as ClassicProtocol,
    ConsumerGroupCurrentMemberAssignment as ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupCurrentMemberAssignmentValue as ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadata as ConsumerGroupMemberMetadata,
    ConsumerGroupMemberMetadataValue as ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadata as ConsumerGroupMetadata,
    ConsumerGroupMetadataValue as ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadata as ConsumerGroupPartitionMetadata,
    ConsumerGroupPartitionMetadataValue as ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpression as ConsumerGroupRegularExpression,
    ConsumerGroupRegularExpressionValue as ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMember as ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMemberValue as ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadata as ConsumerGroupTargetAssignmentMetadata,
    ConsumerGroupTargetAssignmentMetadataValue as ConsumerGroupTargetAssignmentMetadataValue,
    EpochMemberState as EpochMemberState,
    GroupMetadata as GroupMetadata,
    GroupMetadataValue as GroupMetadataValue,
    MemberMetadata as MemberMetadata,
    OffsetCommit as OffsetCommit,
    OffsetCommitValue as OffsetCommitValue,
    PartitionMetadata as PartitionMetadata,
    Record as Record,
    TopicMetadata as TopicMetadata,
    TopicPartitions as TopicPartitions,
    UnknownRecord as UnknownRecord,
)
from kafka_assignors._wire.offsets_topic.wire import RecordError as RecordError
