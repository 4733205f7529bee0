"""What consumers say and get inside a group's record (KIP-429's `ConsumerProtocol`), one member at a time.

The coordinator does not look into it: it is whatever members sent. What follows the known fields is ignored,
as newer versions only append. Where many are to be read, `codec` reads them in bulk, 20 to 25 times as fast.
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from kafka_assignors.members import NO_GENERATION
from kafka_assignors.protocol.codec import Reader, UnreadableError
from kafka_assignors.protocol.offsets_topic.wire import RecordError
from kafka_assignors.protocol.user_data import StickyUserData, decode_generation, decode_sticky

_T = TypeVar("_T")

_OWNED_SINCE: Final = 1
_GENERATION_SINCE: Final = 2
_RACK_SINCE: Final = 3

_NULL: Final = 0xFFFF
_LONGEST_TEXT: Final = 2**15 - 1
_uint16: Final = struct.Struct(">H").unpack_from
_NO_DATA: Final = b"\xff\xff\xff\xff"
_uint32: Final = struct.Struct(">I").unpack_from
_int16: Final = struct.Struct(">h").unpack_from
_int32: Final = struct.Struct(">i").unpack_from
_version_and_count: Final = struct.Struct(">hi").unpack_from


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
    """

    version: int
    topics: tuple[str, ...]
    user_data: bytes | None
    owned_partitions: Mapping[str, tuple[int, ...]]
    generation_id: int = NO_GENERATION
    rack_id: str | None = None


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

    Raises:
        RecordError: The member sent something else.
    """
    try:
        subscription = _subscription_at_once(data)
    except (struct.error, UnicodeDecodeError):
        subscription = None
    return subscription or _read(data, "ConsumerProtocolSubscription", _subscription)


def decode_assignment(data: bytes) -> Assignment | None:
    """Read a `MemberMetadata.assignment` of a group whose protocol type is `consumer`.

    Returns:
        None for no bytes: the leader gave the member nothing, or has not answered yet.

    Raises:
        RecordError: The leader sent something else.
    """
    if not data:
        return None
    return _assignment_at_once(data) or _read(data, "ConsumerProtocolAssignment", _assignment)


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
    if not user_data or protocol not in ("sticky", "cooperative-sticky"):
        return None
    if protocol == "cooperative-sticky":
        short = decode_generation(user_data)
        if short is not None:
            generation, weight = short
            return StickyUserData({}, generation, weight)
    try:
        return _prior_at_once(user_data) or decode_sticky(user_data)
    except UnreadableError as fault:
        raise RecordError("sticky user data", 0, len(user_data), str(fault)) from fault


def _subscription_at_once(data: bytes) -> Subscription | None:
    """As `_subscription`, without a call for each field: half the time.

    Returns:
        None if anything is not as it should be.

    Raises:
        struct.error: The bytes end too early.
        UnicodeDecodeError: A string is not UTF-8.
    """
    version, count = _version_and_count(data)
    at = 6
    topics = []
    longest = 0
    for _ in range(count):
        (size,) = _uint16(data, at)
        longest |= size
        topics.append(data[at + 2 : at + 2 + size].decode())
        at += 2 + size
    (size,) = _int32(data, at)
    at += 4
    user_data = None
    if size >= 0:
        user_data = data[at : at + size]
        at += size
    if version < 0 or count < 0 or longest > _LONGEST_TEXT or size < -1 or at > len(data):
        return None
    owned: Mapping[str, tuple[int, ...]] = {}
    generation_id, rack_id = NO_GENERATION, None
    if version >= _OWNED_SINCE:
        read = _partitions_at_once(data, at)
        if read is None:
            return None
        owned, at = read
    if version >= _GENERATION_SINCE:
        (generation_id,) = _int32(data, at)
        at += 4
    if version >= _RACK_SINCE:
        (size,) = _uint16(data, at)
        if size != _NULL:
            rack_id = data[at + 2 : at + 2 + size].decode()
            if size > _LONGEST_TEXT or at + 2 + size > len(data):
                return None
    return Subscription(
        version=version,
        topics=tuple(topics),
        user_data=user_data,
        owned_partitions=owned,
        generation_id=generation_id,
        rack_id=rack_id,
    )


def _assignment_at_once(data: bytes) -> Assignment | None:
    """As `_assignment`, of what has no user data, as from Java's leaders; None for others."""
    read = _partitions_at_once(data, 2)
    if read is None:
        return None
    partitions, end = read
    version = _int16(data)[0]
    if version < 0 or data[end : end + 4] != _NO_DATA:
        return None
    return Assignment(version=version, assigned_partitions=partitions, user_data=None)


def _prior_at_once(data: bytes) -> StickyUserData | None:
    """Java's layouts without a weight, by far the most frequent ones; None for others."""
    read = _partitions_at_once(data, 0)
    if read is None:
        return None
    claims, end = read
    left = len(data) - end
    if left == 0:
        return StickyUserData(claims)
    return StickyUserData(claims, _int32(data, end)[0]) if left == 4 else None  # noqa: PLR2004 - an int32


_recent: tuple[bytes, Mapping[str, tuple[int, ...]]] = (bytes(4), {})
"""The partition list that was read last, as bytes and as what it says."""


def _partitions_at_once(data: bytes, at: int) -> tuple[Mapping[str, tuple[int, ...]], int] | None:
    """As `_partitions`, without a call for each field; and where the list ends.

    A sticky member says what it had twice, and most get it again: such a list is not read a second time.

    Returns:
        None if anything is not as it should be, or a topic comes twice.
    """
    global _recent  # noqa: PLW0603 - as any cache; replaced whole, so that threads need no lock
    raw, recent = _recent
    if data.startswith(raw, at):
        return recent, at + len(raw)
    first = at
    found: dict[str, tuple[int, ...]] = {}
    try:
        (topics,) = _int32(data, at)
        at += 4
        if topics < 0:
            return None
        for _ in range(topics):
            (size,) = _uint16(data, at)
            place = at + 2 + size
            (count,) = _uint32(data, place)
            end = place + 4 + 4 * count
            if size > _LONGEST_TEXT or end > len(data):
                return None
            found[data[at + 2 : place].decode()] = struct.unpack_from(f">{count}i", data, place + 4)
            at = end
    except (struct.error, UnicodeDecodeError):
        return None
    if len(found) < topics:
        return None
    _recent = data[first:at], found
    return found, at


def _read(data: bytes, name: str, read: Callable[[Reader], _T]) -> _T:
    reader = Reader(data)
    try:
        return read(reader)
    except UnreadableError as fault:
        raise RecordError(name, reader.place, len(data), str(fault)) from fault


def _subscription(reader: Reader) -> Subscription:
    version = reader.version()
    topics = []
    for _ in range(reader.count(2, "topics")):
        topic = reader.string("a topic's name")
        if topic is None:
            raise UnreadableError("a topic's name is null")
        topics.append(topic)
    return Subscription(
        version=version,
        topics=tuple(topics),
        user_data=_user_data(reader),
        owned_partitions=_partitions(reader) if version >= _OWNED_SINCE else {},
        generation_id=reader.int32("the generation") if version >= _GENERATION_SINCE else NO_GENERATION,
        rack_id=reader.string("the rack") if version >= _RACK_SINCE else None,
    )


def _assignment(reader: Reader) -> Assignment:
    return Assignment(
        version=reader.version(), assigned_partitions=_partitions(reader), user_data=_user_data(reader)
    )


def _user_data(reader: Reader) -> bytes | None:
    size = reader.int32("the length of the user data")
    return None if size == -1 else reader.take(size, "the user data")


def _partitions(reader: Reader) -> dict[str, tuple[int, ...]]:
    """Topics in the order in which they come; one that comes twice has the partitions of both."""
    found: dict[str, list[int]] = {}
    for topic, ids in reader.partition_list():
        found.setdefault(topic, []).extend(ids)
    return {topic: tuple(ids) for topic, ids in found.items()}
