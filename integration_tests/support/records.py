"""Records and commits, from clients that are in no group."""

from collections.abc import Mapping
from typing import Any, Final

from confluent_kafka import Consumer, Producer, TopicPartition

from kafka_assignors.testing import Cluster

PATIENCE: Final = 90.0  # seconds


def produce(cluster: Cluster, topic: str, counts: Mapping[int, int], value: bytes = b"x") -> None:
    """So many records to each partition."""
    producer: Any = Producer(cluster.access.librdkafka())
    for partition, count in counts.items():
        for _ in range(count):
            producer.produce(topic, value, partition=partition)
    assert producer.flush(PATIENCE) == 0


def commit(cluster: Cluster, group_id: str, topic: str, *offsets: int) -> None:
    """Commit for the first partitions, which makes a group if there is none."""
    consumer: Any = Consumer({**cluster.access.librdkafka(), "group.id": group_id})
    commits = [TopicPartition(topic, number, offset) for number, offset in enumerate(offsets)]
    consumer.commit(offsets=commits, asynchronous=False)
    consumer.close()


def committed(cluster: Cluster, group_id: str, topic: str, partition: int = 0) -> int | None:
    """What a group has committed for a partition."""
    consumer: Any = Consumer({**cluster.access.librdkafka(), "group.id": group_id})
    (found,) = consumer.committed([TopicPartition(topic, partition)], PATIENCE)
    consumer.close()
    return found.offset if found.offset >= 0 else None
