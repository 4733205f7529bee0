"""Between kafka-python's decoded messages and the project's own terms: subscriptions in, assignments out."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors._model.arrays import IntArray, sums
from kafka_assignors._model.claims import ClaimTable
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._model.plan import Plan
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors._model.topic_sets import Names, TopicSets
from kafka_assignors._wire.codec import NOT_STATED, Subscriptions, write_partition_lists
from kafka_assignors._wire.reader import GENERATION_SINCE, INT16, INT32

VERSION: Final = 3
"""The newest version of subscription and assignment: owned partitions, generation and rack (KIP-881)."""

_FIXED: Final = 24  # version, counts, lengths, generation and a rack of a few letters
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


def subscriptions(decoded: Sequence[Any], tick: Tick = go_on) -> Subscriptions:
    """The columns of ConsumerProtocolSubscriptions that kafka-python has decoded.

    Nulls, which its decoder lets pass, are no topics. librdkafka's empty rack is none. The tick is called for
    each member at the least; it may raise to give up.
    """
    names, sets = Names(), dict[bytes, IntArray]()
    number_of: dict[bytes, int] = {}
    topics_of = []
    for each in decoded:
        tick()
        numbers = np.unique(names.numbers([name for name in each.topics or () if name is not None]))
        key = numbers.tobytes()
        sets[key] = numbers
        topics_of.append(number_of.setdefault(key, len(number_of)))
    bounds = np.cumsum([0, *(numbers.size for numbers in sets.values())])
    return Subscriptions(
        topics=TopicSets(
            names=list(names), bounds=bounds, entries=np.concatenate([*sets.values(), np.empty(0, np.int64)])
        ),
        topics_of=np.array(topics_of, dtype=np.int64),
        user_data=[bytes(each.user_data or b"") for each in decoded],
        owned=ClaimTable.of_rows([list(_owned_in(each)) for each in decoded], tick),
        generations=np.array([_generation_in(each) for each in decoded], dtype=np.int64),
        racks=[getattr(each, "rack_id", None) or None for each in decoded],
    )


def sizes_of(subscriptions: Subscriptions) -> IntArray:
    """(M,) about how many bytes each subscription has; exact for names in ASCII."""
    topics, owned = subscriptions.topics, subscriptions.owned
    name_sizes = np.array([len(name) for name in topics.names], dtype=np.int64)
    set_of = np.repeat(np.arange(len(topics)), np.diff(topics.bounds))
    set_sizes = sums(set_of, name_sizes[topics.entries] + 2, len(topics))
    owned_names = np.array([len(name) for name in owned.names], dtype=np.int64)
    owned_sizes = sums(
        owned.claimant, owned_names[owned.topic] + 6 + 4 * owned.sizes, subscriptions.topics_of.size
    )
    user_data = np.array([len(data) for data in subscriptions.user_data], dtype=np.int64)
    return set_sizes[subscriptions.topics_of] + owned_sizes + user_data + _FIXED


def _owned_in(subscription: Any) -> Iterator[tuple[str, Collection[int]]]:
    for entry in getattr(subscription, "owned_partitions", None) or ():
        if entry.topic is not None:
            yield entry.topic, entry.partitions or ()


def _generation_in(subscription: Any) -> int:
    if subscription.version < GENERATION_SINCE:
        return NOT_STATED
    return int(getattr(subscription, "generation_id", NO_GENERATION))
