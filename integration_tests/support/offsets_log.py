"""What a broker has in its log of a group, and the ids that it uses there."""

import time
from collections.abc import Mapping
from contextlib import closing
from typing import Any
from uuid import UUID

from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient
from kafka import KafkaConsumer, TopicPartition

from kafka_assignors._wire.offsets_topic import Record, UnknownRecord, decode_record
from kafka_assignors.testing import Cluster

OFFSETS_TOPIC = "__consumer_offsets"
SECONDS = 150.0


def read_messages(cluster: Cluster, ends: Mapping[int, int] | None = None) -> list[Any]:
    """All that is in the offsets topic, or was when its partitions had these ends."""
    settings = {"exclude_internal_topics": False, "enable_auto_commit": False}
    messages: list[Any] = []
    with closing(KafkaConsumer(**cluster.access.kafka_python(), **settings)) as consumer:
        parts = [TopicPartition(OFFSETS_TOPIC, n) for n in consumer.partitions_for_topic(OFFSETS_TOPIC)]
        consumer.assign(parts)
        consumer.seek_to_beginning(*parts)
        until = consumer.end_offsets(parts)
        if ends is not None:
            until = {part: ends.get(part.partition, 0) for part in parts}
        deadline = time.monotonic() + SECONDS
        while any(consumer.position(part) < until[part] for part in parts):
            assert time.monotonic() < deadline
            for part, batch in consumer.poll(timeout_ms=100).items():
                messages += [one for one in batch if one.offset < until[part]]
    return messages


def read_log(cluster: Cluster, group_id: str) -> list[Record]:
    """All records about a group that there are by now, in the order in which they were written."""
    records = [decode_record(one.key, one.value) for one in read_messages(cluster)]
    return [r for r in records if not isinstance(r, UnknownRecord) and r.group_id == group_id]


def topic_id(cluster: Cluster, topic: str) -> UUID:
    admin = AdminClient(cluster.access.librdkafka())
    told = admin.describe_topics(TopicCollection([topic]))[topic].result().topic_id
    high, low = told.get_most_significant_bits(), told.get_least_significant_bits()
    return UUID(int=high % 2**64 << 64 | low % 2**64)
