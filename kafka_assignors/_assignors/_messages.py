"""The messages of members and leaders: a subscription for kafka-python to encode, assignments encoded."""

from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, Final

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors._model.plan import Plan
from kafka_assignors._wire.codec import write_partition_lists
from kafka_assignors._wire.reader import INT16, INT32

VERSION: Final = 3
"""The newest version of subscription and assignment: owned partitions, generation and rack (KIP-881)."""

_HEAD: Final = INT16.pack(VERSION)
_NO_USER_DATA: Final = INT32.pack(0)


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


def encode_assignments(
    plan: Plan, user_data: Mapping[int, bytes] = MappingProxyType({})
) -> dict[str, EncodedAssignment]:
    """The assignment of every member by member id; topics ascending, of each those first that it had.

    `user_data` is of some members, by their numbers; the others get none.
    """
    group = plan.group
    encoded = write_partition_lists(
        group.topics,
        plan.topics,
        group.partition_ids[plan.kept_first],
        plan.bounds,
        head=_HEAD,
        tail=_NO_USER_DATA,
    )
    for number, data in user_data.items():
        encoded[number] = encoded[number][: -len(_NO_USER_DATA)] + INT32.pack(len(data)) + data
    return dict(zip(group.members.ids, map(EncodedAssignment, encoded), strict=True))
