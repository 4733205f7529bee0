"""Records of Kafka's internal topic `__consumer_offsets`: what groups did, as their coordinator noted it.

`decode_record` reads any of them. Their classes are in `records`, named as Kafka names its schemas. That of a
classic group (`records.GroupMetadata`) holds the subscriptions and assignments of its members as bytes, which
`decode_subscription` and `decode_assignment` read.
"""

from kafka_assignors._wire.offsets_topic import (
    Record,
    RecordError,
    decode_assignment,
    decode_record,
    decode_subscription,
    records,
)

__all__ = ["Record", "RecordError", "decode_assignment", "decode_record", "decode_subscription", "records"]
