"""What consumers say and get inside a group's record (KIP-429's `ConsumerProtocol`), one member at a time.

The coordinator does not look into it: it is what members sent. What follows the known fields is ignored, as
newer versions only append. Where many are to be read, `codec` reads them at once.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from kafka_assignors._common.strategies import COOPERATIVE
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._wire.offsets_topic.wire import RecordError
from kafka_assignors._wire.reader import Reader, UnreadableError
from kafka_assignors._wire.user_data import StickyUserData, decode_generation, decode_sticky

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A `ConsumerProtocolSubscription`.

    Attributes:
        version: Its version.
        topics: The topics that the member subscribes to.
        user_data: What its assignor adds; see `decode_prior_assignment`.
        owned_partitions: Partition ids by topic that it says it owns; empty below v1.
        generation_id: The generation that it owns them since; -1 for none, and below v2.
        rack_id: Its rack; None below v3. librdkafka writes an empty one for none.
        fault: What does not count, as it cannot be read: a null among the topics, or a field behind them
            with all that follow it. None if everything could be read.
    """

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None
    owned_partitions: Mapping[str, tuple[int, ...]]
    generation_id: int = NO_GENERATION
    rack_id: str | None = None
    fault: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """A `ConsumerProtocolAssignment`.

    Attributes:
        version: Its version.
        assigned_partitions: Partition ids by topic.
        user_data: What the leader adds.
    """

    version: int
    assigned_partitions: Mapping[str, tuple[int, ...]]
    user_data: bytes | None


def decode_subscription(data: bytes) -> Subscription:
    """Read a `MemberMetadata.subscription` of a group whose protocol type is `consumer`.

    A member is served by its topics, whatever follows them, as a leader of this library does; see `fault`.

    Raises:
        RecordError: The member sent something else, or its topics cannot be read.
    """
    return _read(data, "ConsumerProtocolSubscription", _subscription)


def decode_assignment(data: bytes) -> Assignment | None:
    """Read a `MemberMetadata.assignment` of a group whose protocol type is `consumer`.

    Returns:
        None for no bytes: the leader gave the member nothing, or has not answered yet.

    Raises:
        RecordError: The leader sent something else.
    """
    return _read(data, "ConsumerProtocolAssignment", _assignment) if data else None


def decode_prior_assignment(protocol: str | None, user_data: bytes | None) -> StickyUserData | None:
    """Read what a member of a sticky group says in its user data about what it had.

    Of a `cooperative-sticky` member that is the generation alone, and what it has stands in
    `Subscription.owned_partitions`; of librdkafka's, both.

    Args:
        protocol: The group's protocol.
        user_data: `Subscription.user_data`.

    Returns:
        None for other protocols, and for members that say nothing.

    Raises:
        RecordError: The user data is in none of the layouts in use.
    """
    if not user_data or not (protocol == "sticky" or protocol in COOPERATIVE):
        return None
    if protocol in COOPERATIVE:
        short = decode_generation(user_data)
        if short is not None:
            return StickyUserData({}, *short)
    try:
        return decode_sticky(user_data)
    except UnreadableError as fault:
        raise RecordError("sticky user data", 0, len(user_data), str(fault)) from fault


def _read(data: bytes, name: str, read: Callable[[Reader], _T]) -> _T:
    reader = Reader(data)
    try:
        return read(reader)
    except UnreadableError as fault:
        raise RecordError(name, reader.offset, len(data), str(fault)) from fault


def _subscription(reader: Reader) -> Subscription:
    read = reader.subscription()
    owned, fault = list[tuple[str, list[int]]](), read.fault
    try:
        owned = Reader(read.owned).partition_list() if read.owned else []
    except UnreadableError as error:
        fault = str(error)
    return Subscription(
        version=read.version,
        topics=read.topics,
        user_data=read.user_data,
        owned_partitions=_by_topic(owned),
        generation_id=NO_GENERATION if read.generation is None else read.generation,
        rack_id=read.rack,
        fault=fault and f"ConsumerProtocolSubscription: {fault}",
    )


def _assignment(reader: Reader) -> Assignment:
    read = reader.assignment()
    return Assignment(
        version=read.version, assigned_partitions=_by_topic(read.partitions), user_data=read.user_data
    )


def _by_topic(listed: Iterable[tuple[str, list[int]]]) -> dict[str, tuple[int, ...]]:
    """Topics in the order in which they come; one that comes twice has the partitions of both."""
    found: dict[str, list[int]] = {}
    for topic, ids in listed:
        found.setdefault(topic, []).extend(ids)
    return {topic: tuple(ids) for topic, ids in found.items()}
