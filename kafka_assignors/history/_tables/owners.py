"""Who owned what after a record, also in few bytes.

The owners of a record are:

    int32 members, for each int32 size; then each member that was given something:
    its identity as a string, its partition list

in the layouts of `kafka_assignors._wire.reader`. The identity is the instance id of a static member, and the
member id of others. Of two members that were given the same partition the last by identity counts, unless one
of them has it before and after.
"""

from __future__ import annotations

import struct
from itertools import repeat
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_assignors._wire.codec import encode_partition_list
from kafka_assignors._wire.reader import Reader, encode_string
from kafka_assignors.history._tables.bounded import Bounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

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
    return encode_partition_list(
        [(topic, struct.pack(f">{len(ids)}i", *ids)) for topic, ids in partitions.items()]
    )


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
    return [(topic, one) for topic, ids in Reader(listed).partition_list() for one in ids]


def encode_owners(owners: Owners) -> bytes:
    """The bytes of a record's owners."""
    parts = [encode_string(identity) + listed for identity, listed in owners.given.items()]
    return struct.pack(f">i{len(parts)}i", len(parts), *map(len, parts)) + b"".join(parts)


def decode_owners(raw: bytes) -> Owners:
    """The owners of a record, of its bytes."""
    reader = Reader(raw)
    count = reader.count(4, "members")
    sizes = [reader.int32("the size of a member") for _ in range(count)]
    members = []
    for size in sizes:
        end = reader.place + size
        identity = reader.text("an identity")
        members.append((identity, reader.take(end - reader.place, "a partition list")))
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
"""A record's owners, as Python's decoders return them, or as the compiled one and files do."""


def as_bytes(told: Told) -> bytes:
    """Owners as bytes, from either form."""
    return encode_owners(told) if isinstance(told, Owners) else told


def size_of(told: Told) -> int:
    """Bytes that it takes to remember owners, about."""
    return told.size if isinstance(told, Owners) else len(told)
