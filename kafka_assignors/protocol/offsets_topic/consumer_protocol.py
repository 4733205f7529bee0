"""What consumers say and get inside a group's record (KIP-429's `ConsumerProtocol`), one member at a time.

The coordinator does not look into it: it is whatever members sent. What follows the known fields is ignored,
as newer versions only append. Where many are to be read, `codec` reads them in bulk, 20 to 25 times as fast.
"""

import struct
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from kafka_assignors.members import NO_GENERATION
from kafka_assignors.protocol.bounded import Bounded
from kafka_assignors.protocol.codec import Reader, UnreadableError
from kafka_assignors.protocol.offsets_topic.wire import LONGEST_TEXT, RecordError
from kafka_assignors.protocol.user_data import StickyUserData, decode_generation, decode_sticky

_T = TypeVar("_T")

_OWNED_SINCE: Final = 1
_GENERATION_SINCE: Final = 2
_RACK_SINCE: Final = 3

_AFTER_OWNED: Final = (0, 0, 4, 6)
"""Bytes after the owned partitions by version, up to 3, if there is no rack."""
_NULL: Final = 0xFFFF
_uint16: Final = struct.Struct(">H").unpack_from
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


Partitions = Mapping[str, tuple[int, ...]]
"""Partition ids by topic."""
SubscriptionFields = tuple[int, tuple[str, ...], bytes | None, Partitions, int, str | None]
"""What is in a `Subscription`, in its order."""
AssignmentFields = tuple[int, Partitions, bytes | None]
"""What is in an `Assignment`, in its order."""
Prior = tuple[Mapping[str, Collection[int]], int, int]
"""What is in a `StickyUserData`, in its order."""


def decode_subscription(data: bytes) -> Subscription:
    """Read a `MemberMetadata.subscription` of a group whose protocol type is `consumer`.

    Raises:
        RecordError: The member sent something else.
    """
    version, topics, user_data, owned, generation_id, rack_id = read_subscription(data)
    return Subscription(
        version=version,
        topics=topics,
        user_data=user_data,
        owned_partitions=owned,
        generation_id=generation_id,
        rack_id=rack_id,
    )


def read_subscription(data: bytes) -> SubscriptionFields:
    """As `decode_subscription`, without making an object of it."""
    try:
        fields = _subscription_at_once(data)
    except (struct.error, UnicodeDecodeError):
        fields = None
    return fields or _read(data, "ConsumerProtocolSubscription", _subscription)


def decode_assignment(data: bytes) -> Assignment | None:
    """Read a `MemberMetadata.assignment` of a group whose protocol type is `consumer`.

    Returns:
        None for no bytes: the leader gave the member nothing, or has not answered yet.

    Raises:
        RecordError: The leader sent something else.
    """
    if not data:
        return None
    version, assigned, user_data = read_assignment(data)
    return Assignment(version=version, assigned_partitions=assigned, user_data=user_data)


def read_assignment(data: bytes) -> AssignmentFields:
    """As `decode_assignment`, of some bytes, without making an object of it."""
    try:
        fields = _assignment_at_once(data)
    except struct.error:
        fields = None
    return fields or _read(data, "ConsumerProtocolAssignment", _assignment)


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
    prior = read_prior_assignment(protocol, user_data)
    return None if prior is None else StickyUserData(*prior)


def read_prior_assignment(protocol: str | None, user_data: bytes | None) -> Prior | None:
    """As `decode_prior_assignment`, without making an object of it."""
    if not user_data or protocol not in ("sticky", "cooperative-sticky"):
        return None
    if protocol == "cooperative-sticky":
        short = decode_generation(user_data)
        if short is not None:
            generation, weight = short
            return {}, generation, weight
    prior = _prior_at_once(user_data)
    if prior is not None:
        return prior
    try:
        careful = decode_sticky(user_data)
    except UnreadableError as fault:
        raise RecordError("sticky user data", 0, len(user_data), str(fault)) from fault
    return careful.claims, careful.generation, careful.weight


_recent_head: tuple[bytes, int, tuple[str, ...]] = (bytes(6), 0, ())
"""Version and topics of the subscription that was read last, as bytes and as what they say."""


def _subscription_at_once(data: bytes) -> SubscriptionFields | None:
    """As `_subscription`, without a call for each field: half the time.

    Returns:
        None if anything is not as it should be.

    Raises:
        struct.error: The bytes end too early.
        UnicodeDecodeError: A string is not UTF-8.
    """
    global _recent_head  # noqa: PLW0603 - see `_recent`
    raw, version, topics = _recent_head
    if data.startswith(raw):
        at = len(raw)
    else:
        read_head = _head_at_once(data)
        if read_head is None:
            return None
        version, topics, at = read_head
        _recent_head = data[:at], version, topics
    (size,) = _int32(data, at)
    at += 4
    user_data = None
    if size >= 0:
        user_data = data[at : at + size]
        at += size
    if size < -1 or at > len(data):
        return None
    is_read = True
    owned: Partitions = {}
    generation_id, rack_id = NO_GENERATION, None
    if version >= _OWNED_SINCE:
        read = _partitions_at_once(data, at, len(data) - _AFTER_OWNED[min(version, _RACK_SINCE)])
        if read is None:
            return None
        owned, at = read
    if version >= _GENERATION_SINCE:
        (generation_id,) = _int32(data, at)
        at += 4
    if version >= _RACK_SINCE:
        (size,) = _uint16(data, at)
        at += 2
        if size != _NULL:
            rack_id = data[at : at + size].decode()
            at += size
            is_read = size <= LONGEST_TEXT and at <= len(data)
    return (version, topics, user_data, owned, generation_id, rack_id) if is_read else None


def _head_at_once(data: bytes) -> tuple[int, tuple[str, ...], int] | None:
    """Version and topics of a subscription, and where they end; None if anything is not as it should be."""
    version, count = _version_and_count(data)
    at = 6
    topics = []
    longest = 0
    for _ in range(count):
        (size,) = _uint16(data, at)
        longest |= size
        topics.append(data[at + 2 : at + 2 + size].decode())
        at += 2 + size
    if version < 0 or count < 0 or longest > LONGEST_TEXT or at > len(data):
        return None
    return version, tuple(topics), at


def _assignment_at_once(data: bytes) -> AssignmentFields | None:
    """As `_assignment`; None if anything is not as it should be, or a topic comes twice.

    Raises:
        struct.error: The bytes end too early.
    """
    read = _partitions_at_once(data, 2, len(data) - 4)
    if read is None:
        return None
    partitions, end = read
    version, size = _int16(data)[0], _int32(data, end)[0]
    start = end + 4
    if version < 0 or size < -1 or start + size > len(data):
        return None
    return version, partitions, None if size < 0 else data[start : start + size]


def _prior_at_once(data: bytes) -> Prior | None:
    """Java's layouts without a weight, by far the most frequent ones; None for others."""
    read = _partitions_at_once(data, 0, len(data) - 4)
    if read is None:
        return None
    claims, end = read
    left = len(data) - end
    if left == 0:
        return claims, NO_GENERATION, 1
    return (claims, _int32(data, end)[0], 1) if left == 4 else None  # noqa: PLR2004 - an int32


_recent: tuple[bytes, Partitions] = (bytes(4), {})
"""The partition list that was read last, as bytes and as what it says."""
_lists: Final = Bounded[bytes, Partitions](32 * 2**20)
"""Partition lists that were read before. With 400 groups of 20 members in turn they save a tenth of decoding,
beside what `_recent` saves."""


def _partitions_at_once(data: bytes, at: int, end: int) -> tuple[Partitions, int] | None:
    """As `_partitions`, without a call for each field; and where the list ends.

    A sticky member says what it had twice, and most get it again: such a list is not read a second time.

    Args:
        data: The bytes.
        at: Where the list begins.
        end: Where it ends, if what comes after it is as it mostly is. If these bytes are a list that was read
            before, it ends there.

    Returns:
        None if anything is not as it should be, or a topic comes twice.
    """
    global _recent  # noqa: PLW0603 - as any cache; replaced whole, so that threads need no lock
    raw, recent = _recent
    if data.startswith(raw, at):
        return recent, at + len(raw)
    listed = data[at:end]
    known = _lists.get(listed)
    if known is not None:
        _recent = listed, known
        return known, end
    first = at
    found: dict[str, tuple[int, ...]] = {}
    try:
        (topics,) = _int32(data, at)
        at += 4
        for _ in range(topics):
            (size,) = _uint16(data, at)
            place = at + 2 + size
            (count,) = _uint32(data, place)
            after = place + 4 + 4 * count
            if size > LONGEST_TEXT or after > len(data):
                return None
            found[data[at + 2 : place].decode()] = struct.unpack_from(f">{count}i", data, place + 4)
            at = after
    except (struct.error, UnicodeDecodeError):
        return None
    if topics < 0 or len(found) < topics:
        return None
    if at == end:
        # An id takes 4 bytes of the list's, and up to 36 in a tuple.
        _lists.remember(listed, found, 500 + 10 * len(listed))
    else:
        listed = data[first:at]
    _recent = listed, found
    return found, at


def _read(data: bytes, name: str, read: Callable[[Reader], _T]) -> _T:
    reader = Reader(data)
    try:
        return read(reader)
    except UnreadableError as fault:
        raise RecordError(name, reader.place, len(data), str(fault)) from fault


def _subscription(reader: Reader) -> SubscriptionFields:
    version = reader.version()
    topics = []
    for _ in range(reader.count(2, "topics")):
        topic = reader.string("a topic's name")
        if topic is None:
            raise UnreadableError("a topic's name is null")
        topics.append(topic)
    return (
        version,
        tuple(topics),
        _user_data(reader),
        _partitions(reader) if version >= _OWNED_SINCE else {},
        reader.int32("the generation") if version >= _GENERATION_SINCE else NO_GENERATION,
        reader.string("the rack") if version >= _RACK_SINCE else None,
    )


def _assignment(reader: Reader) -> AssignmentFields:
    return reader.version(), _partitions(reader), _user_data(reader)


def _user_data(reader: Reader) -> bytes | None:
    size = reader.int32("the length of the user data")
    return None if size == -1 else reader.take(size, "the user data")


def _partitions(reader: Reader) -> dict[str, tuple[int, ...]]:
    """Topics in the order in which they come; one that comes twice has the partitions of both."""
    found: dict[str, list[int]] = {}
    for topic, ids in reader.partition_list():
        found.setdefault(topic, []).extend(ids)
    return {topic: tuple(ids) for topic, ids in found.items()}
