"""Topics to test with, made and changed through a client that is independent of the one under test."""

import contextlib
import uuid
from collections.abc import Iterator
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Producer

# Their documented place; the stubs say otherwise.
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # type: ignore[attr-defined]
from kafka import TopicPartition

from kafka_assignors._common.waiting import wait_until
from kafka_assignors.testing._brokers.access import Access, Kafka

REQUEST_SECONDS: Final = 10.0
"""How long one request may take."""

LOG_LEVEL: Final = 2
"""What librdkafka says on stderr: less than that brokers refuse connections, which tests make them do."""


def admin_client(kafka: Kafka) -> AdminClient:
    """A client that is no member of any group, and logs errors only."""
    return AdminClient({**Access.to(kafka).librdkafka(), "log_level": LOG_LEVEL})


def existing_partitions(
    client: AdminClient | Producer, timeout: float = REQUEST_SECONDS
) -> dict[str, list[TopicPartition]]:
    """The partitions of every topic, by its name; raises KafkaException if no broker answers."""
    topics = client.list_topics(timeout=timeout).topics
    return {
        name: [TopicPartition(name, number) for number in sorted(topic.partitions)]
        for name, topic in topics.items()
    }


def create_topic(
    kafka: Kafka,
    partitions: int,
    *,
    name: str | None = None,
    replication: int = 1,
    timeout: float = 30.0,
) -> str:
    """Create a topic and wait until the brokers show it with leaders for all its partitions.

    Args:
        kafka: The cluster.
        partitions: How many partitions it gets.
        name: Its name; a new one by default.
        replication: How many replicas each partition gets.
        timeout: In seconds.

    Returns:
        The topic's name.

    Raises:
        confluent_kafka.KafkaException: The brokers refuse, for instance because there is such a topic.
        TimeoutError: They do not show it.
    """
    drawn = name is None
    name = name or f"topic-{uuid.uuid4().hex[:8]}"
    with _asking(kafka) as admin:
        try:
            admin.create_topics([NewTopic(name, partitions, replication)])[name].result(timeout=timeout)
        except KafkaException as error:
            # librdkafka sends the request again if its answer is lost: a topic of a name just drawn is it.
            if not drawn or error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
        _wait_until_shown(admin, name, partitions, timeout)
    return name


def grow_topic(kafka: Kafka, name: str, partitions: int, *, timeout: float = 30.0) -> None:
    """Give a topic more partitions, and wait until the brokers show them with leaders.

    Args:
        kafka: The cluster.
        name: The topic.
        partitions: How many partitions it has then.
        timeout: In seconds.

    Raises:
        confluent_kafka.KafkaException: The brokers refuse, for instance because it has so many already.
        TimeoutError: They do not show them.
    """
    with _asking(kafka) as admin:
        admin.create_partitions([NewPartitions(name, partitions)])[name].result(timeout=timeout)
        _wait_until_shown(admin, name, partitions, timeout)


def delete_topic(kafka: Kafka, name: str, *, timeout: float = 30.0) -> None:
    """Delete a topic.

    Raises:
        confluent_kafka.KafkaException: The brokers refuse, for instance because there is no such topic.
        TimeoutError: They do not answer.
    """
    with _asking(kafka) as admin:
        admin.delete_topics([name])[name].result(timeout=timeout)


@contextlib.contextmanager
def _asking(kafka: Kafka) -> Iterator[AdminClient]:
    """A client, whose errors say which brokers of the cluster do not serve: it sees only that none answers.

    It must outlive the answer.
    """
    try:
        yield admin_client(kafka)
    except Exception as error:
        # Only a cluster of the kit knows; of servers named otherwise, nothing is known.
        wrong: list[str] = getattr(kafka, "wrong", list)()
        if wrong:
            error.add_note(f"of the cluster: {'; '.join(wrong)}")
        raise


def _wait_until_shown(admin: AdminClient, name: str, partitions: int, timeout: float) -> None:
    def wrong() -> list[str]:
        topic = admin.list_topics(name, timeout=REQUEST_SECONDS).topics[name]
        led = [partition for partition in topic.partitions.values() if partition.leader >= 0]
        return [] if len(led) == partitions else [f"{len(led)} have one"]

    wait_until(wrong, timeout, f"{partitions} partitions of {name} to have leaders")
