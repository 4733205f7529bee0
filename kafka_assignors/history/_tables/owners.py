"""Who owned what after a record, also in few bytes.

The owners of a record are:

    int32 members, for each int32 size; then each member that was given something:
    int16 length + identity, then its partition list:
    int32 topics, each: int16 length + name, int32 n, n x int32

where the identity is the instance id of a static member, and the member id of others. Of two members that
were given the same partition the last by identity counts. All integers are big-endian.
"""

from __future__ import annotations

import struct
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_assignors.history._tables.bounded import Bounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_UINT16: Final = struct.Struct(">H")
_INT32: Final = struct.Struct(">i")

_MEMBER_BYTES: Final = 200
"""Bytes that a member takes in memory, beside its list."""


class Owners:
    """What the members of a group were given.

    Most members have what they had, so that only the others' lists need to be looked into.

    Args:
        members: The identity of each member that was given something, and the bytes of its partition list.
    """

    __slots__ = ("_is_exclusive", "given", "size")

    def __init__(self, members: Iterable[tuple[str, bytes]]) -> None:
        pairs = [*members]
        self.given = dict(pairs)
        if len(self.given) < len(pairs):
            self.given = _put_together(pairs)
        self.size = _MEMBER_BYTES * len(self.given) + sum(map(len, self.given.values()))
        self._is_exclusive: bool | None = None

    @property
    def is_exclusive(self) -> bool:
        """Whether no partition is given to two members."""
        if self._is_exclusive is None:
            _, self._is_exclusive = settled(self.given)
        return self._is_exclusive

    @is_exclusive.setter
    def is_exclusive(self, is_exclusive: bool) -> None:
        self._is_exclusive = is_exclusive


def encode_list(partitions: Mapping[str, Sequence[int]]) -> bytes:
    """Partitions by topic as a partition list."""
    parts = [_INT32.pack(len(partitions))]
    for topic, ids in partitions.items():
        parts += [_string(topic), struct.pack(f">i{len(ids)}i", len(ids), *ids)]
    return b"".join(parts)


def _put_together(members: list[tuple[str, bytes]]) -> dict[str, bytes]:
    """What each was given, where one was given something twice, which no coordinator lets happen."""
    given: dict[str, bytes] = {}
    for identity, listed in members:
        twice = given.get(identity)
        given[identity] = listed if twice is None else _together(twice, listed)
    return given


def _together(listed: bytes, more: bytes) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, partition in (*_each(listed), *_each(more)):
        topics.setdefault(topic, []).append(partition)
    return encode_list(topics)


Place = tuple[str, int]
"""A topic and one of its partitions."""


class _List(NamedTuple):
    """What is in a partition list."""

    each: list[Place]
    different: frozenset[Place]


_read: Final = Bounded[bytes, _List](16 * 2**20)
"""Partition lists that were read before: what a member has after one record it had before the next."""
_PLACE_BYTES: Final = 150


def list_of(listed: bytes) -> _List:
    """What is in a partition list."""
    found = _read.get(listed)
    if found is None:
        each = _each(listed)
        found = _List(each, frozenset(each))
        _read.remember(listed, found, _MEMBER_BYTES + len(listed) + _PLACE_BYTES * len(each))
    return found


def _each(listed: bytes) -> list[Place]:
    """Topic and partition of each that is in a partition list."""
    (topics,) = _INT32.unpack_from(listed)
    at = 4
    found: list[Place] = []
    for _ in range(topics):
        (size,) = _UINT16.unpack_from(listed, at)
        place = at + 2 + size
        (count,) = _INT32.unpack_from(listed, place)
        topic = listed[at + 2 : place].decode()
        at = place + 4 + 4 * count
        found += [(topic, one) for one in struct.unpack_from(f">{count}i", listed, place + 4)]
    return found


def encode_owners(owners: Owners) -> bytes:
    """The bytes of a record's owners."""
    parts = [_string(identity) + listed for identity, listed in owners.given.items()]
    return struct.pack(f">i{len(parts)}i", len(parts), *map(len, parts)) + b"".join(parts)


def _string(text: str) -> bytes:
    raw = text.encode()
    return _UINT16.pack(len(raw)) + raw


def decode_owners(raw: bytes) -> Owners:
    """The owners of a record, of its bytes."""
    (count,) = _INT32.unpack_from(raw)
    sizes = struct.unpack_from(f">{count}i", raw, 4)
    members, at = [], 4 + 4 * count
    for size in sizes:
        place = at + 2 + _UINT16.unpack_from(raw, at)[0]
        members.append((raw[at + 2 : place].decode(), raw[place : at + size]))
        at += size
    return Owners(members)


def owner_of_each(owners: Owners) -> dict[tuple[str, int], str]:
    """The owner of each partition that has one."""
    return settled(owners.given)[0]


def settled(given: Mapping[str, bytes]) -> tuple[dict[Place, str], bool]:
    """The owner of each partition, and whether each was given just once."""
    found: dict[Place, str] = {}
    count = 0
    for identity in sorted(given):
        each = list_of(given[identity]).each
        count += len(each)
        found.update(zip(each, repeat(identity)))
    return found, count == len(found)


Told = Owners | bytes
"""A record's owners, as Python's decoders tell them, or as the compiled one and files do."""


def as_bytes(told: Told) -> bytes:
    """Owners as bytes, whichever way they were told."""
    return encode_owners(told) if isinstance(told, Owners) else told


def size_of(told: Told) -> int:
    """Bytes that it takes to remember owners, about."""
    return told.size if isinstance(told, Owners) else len(told)
