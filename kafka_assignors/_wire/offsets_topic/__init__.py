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
from kafka_assignors._wire.offsets_topic.records import *  # noqa: F403 - each class of a record
from kafka_assignors._wire.offsets_topic.wire import RecordError as RecordError
