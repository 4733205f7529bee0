"""Between kafka-python's decoded messages and the project's own terms: subscriptions in, assignments out."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import TopicPartition

from kafka_assignors.group import NO_GENERATION

VERSION: Final = 3
"""The newest version of subscription and assignment: owned partitions, generation and rack (KIP-881)."""

_GENERATION_SINCE: Final = 2


def make_subscription(
    topics: Collection[str],
    *,
    owned: Mapping[str, Collection[int]],
    generation: int,
    rack: str | None,
    user_data: bytes | None,
) -> ConsumerProtocolSubscription:
    """A ConsumerProtocolSubscription v3 as Java writes it: topics and owned partitions sorted."""
    return ConsumerProtocolSubscription(
        version=VERSION,
        topics=sorted(topics),
        user_data=user_data,
        owned_partitions=[
            ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=sorted(owned[topic]))
            for topic in sorted(owned)
        ],
        generation_id=generation,
        rack_id=rack,
    )


def make_assignment(partitions: Mapping[str, Collection[int]]) -> ConsumerProtocolAssignment:
    """A ConsumerProtocolAssignment v3 of partition ids by topic."""
    return ConsumerProtocolAssignment(
        VERSION, [(topic, list(partitions[topic])) for topic in partitions], b""
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition ids by topic, both ascending, each once."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(set(partitions)):
        topics.setdefault(topic, []).append(partition)
    return topics


def topics_in(subscription: Any) -> frozenset[str]:
    """The topics of a decoded subscription. Nulls, which the decoder lets pass, are no topics."""
    return frozenset(topic for topic in subscription.topics or () if topic is not None)


def owned_in(subscription: Any) -> dict[str, list[int]]:
    """The owned partitions of a decoded subscription by topic; empty below v1, which has none."""
    owned: dict[str, list[int]] = {}
    for entry in getattr(subscription, "owned_partitions", None) or ():
        if entry.topic is not None:
            owned.setdefault(entry.topic, []).extend(entry.partitions or ())
    return owned


def generation_in(subscription: Any) -> int | None:
    """The generation field of a decoded subscription; None below v2, which has none (KIP-792)."""
    if subscription.version < _GENERATION_SINCE:
        return None
    return int(getattr(subscription, "generation_id", NO_GENERATION))


def rack_in(subscription: Any) -> str | None:
    """The rack of a decoded subscription; None below v3, and for librdkafka's empty string."""
    return getattr(subscription, "rack_id", None) or None


def user_data_in(subscription: Any) -> bytes:
    """The user data of a decoded subscription, empty for null."""
    return bytes(subscription.user_data or b"")
