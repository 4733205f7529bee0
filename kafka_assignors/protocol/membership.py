"""Between kafka-python's decoded messages and the project's own terms: subscriptions in, assignments out."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.structs import TopicPartition

from kafka_assignors.group import NO_GENERATION
from kafka_assignors.plan import Plan
from kafka_assignors.protocol.codec import Subscription, read_partition_lists, write_partition_lists

VERSION: Final = 3
"""The newest version of subscription and assignment: owned partitions, generation and rack (KIP-881)."""

_GENERATION_SINCE: Final = 2
_HEAD: Final = VERSION.to_bytes(2, "big")
_NO_USER_DATA: Final = (0).to_bytes(4, "big")


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


class EncodedAssignment:
    """A ConsumerProtocolAssignment v3 as bytes; read, if somebody asks for more, by kafka-python.

    kafka-python takes anything that can `encode()`. Its own encoding takes 3 s for 1,000,000 partitions.
    """

    __slots__ = ("_encoded",)

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded

    def encode(self) -> bytes:
        """The bytes that go to the coordinator."""
        return self._encoded

    def __getattr__(self, name: str) -> Any:
        return getattr(ConsumerProtocolAssignment.decode(self._encoded), name)

    def __repr__(self) -> str:
        return repr(ConsumerProtocolAssignment.decode(self._encoded))


def encode_assignments(plan: Plan) -> dict[str, EncodedAssignment]:
    """The assignment of every member by member id; topics and partition ids ascending, no user data."""
    group = plan.group
    encoded = write_partition_lists(
        group.topics,
        group.topic_of[plan.partitions],
        group.partition_ids[plan.partitions],
        plan.bounds,
        head=_HEAD,
        tail=_NO_USER_DATA,
    )
    return {
        member.member_id: EncodedAssignment(each) for member, each in zip(group.members, encoded, strict=True)
    }


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition ids by topic, both ascending, each once."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(set(partitions)):
        topics.setdefault(topic, []).append(partition)
    return topics


def topics_in(subscription: Any) -> frozenset[str]:
    """The topics of a decoded subscription. Nulls, which the decoder lets pass, are no topics."""
    if isinstance(subscription, Subscription):
        return subscription.topics
    return frozenset(topic for topic in subscription.topics or () if topic is not None)


def all_owned_in(subscriptions: Sequence[Any]) -> list[Mapping[str, Collection[int]]]:
    """The owned partitions of decoded subscriptions by topic; empty below v1, which has none."""
    encoded = [each.owned for each in subscriptions if isinstance(each, Subscription)]
    if len(encoded) == len(subscriptions):
        return [*read_partition_lists(encoded)[0].claims()]
    return [_owned_in(each) for each in subscriptions]


def _owned_in(subscription: Any) -> dict[str, list[int]]:
    owned: dict[str, list[int]] = {}
    for entry in getattr(subscription, "owned_partitions", None) or ():
        if entry.topic is not None:
            owned.setdefault(entry.topic, []).extend(entry.partitions or ())
    return owned


def generation_in(subscription: Any) -> int | None:
    """The generation field of a decoded subscription; None below v2, which has none (KIP-792)."""
    if isinstance(subscription, Subscription):
        return subscription.generation
    if subscription.version < _GENERATION_SINCE:
        return None
    return int(getattr(subscription, "generation_id", NO_GENERATION))


def rack_in(subscription: Any) -> str | None:
    """The rack of a decoded subscription; None below v3, and for librdkafka's empty string."""
    if isinstance(subscription, Subscription):
        return subscription.rack
    return getattr(subscription, "rack_id", None) or None


def user_data_in(subscription: Any) -> bytes:
    """The user data of a decoded subscription, empty for null."""
    return bytes(subscription.user_data or b"")
