"""Who owned what after a record, in few bytes; and the moves between two of them.

The owners of a record are:

    int32 members, for each int32 size; then each member that was given something:
    int16 length + identity, then its partition list:
    int32 topics, each: int16 length + name, int32 n, n x int32

where the identity is the instance id of a static member, and the member id of others. Of two members that
were given the same partition the last by identity counts. All integers are big-endian.
"""

from __future__ import annotations

import struct
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_assignors.history.tables.garbage import no_garbage_collection

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_UINT16: Final = struct.Struct(">H")
_INT32: Final = struct.Struct(">i")

try:
    _compiled: Any = import_module("kafka_assignors.history.tables._decode")
except ImportError:  # installed without a compiler
    _compiled = None


def compiled() -> Any:
    """The compiled part; None if there is none."""
    return _compiled


_MEMBER_BYTES: Final = 200
"""Bytes that a member takes in memory, beside its list."""


class Moves(NamedTuple):
    """Partitions that changed their owner, by pair of records, topic and partition.

    Attributes:
        pair: (R,) the number of the pair.
        topic: (R,) the topic.
        partition: (R,) its partition.
        source: (R,) who had it before; null if nobody had.
        target: (R,) who has it now; null if nobody does.
    """

    pair: Any
    topic: Any
    partition: Any
    source: Any
    target: Any


class Owners:
    """What the members of a group were given.

    Most members have what they had, so that only the others' lists need to be looked into.

    Args:
        members: The identity of each member that was given something, and the bytes of its partition list.
    """

    __slots__ = ("_is_exclusive", "given", "size")

    def __init__(self, members: Iterable[tuple[str, bytes]]) -> None:
        self.given: dict[str, bytes] = {}
        self.size = 0
        for identity, listed in members:
            twice = self.given.get(identity)
            self.given[identity] = listed if twice is None else _together(twice, listed)
            self.size += _MEMBER_BYTES + len(listed)
        self._is_exclusive: bool | None = None

    @property
    def is_exclusive(self) -> bool:
        """Whether no partition is given to two members."""
        if self._is_exclusive is None:
            self._is_exclusive = _count(self.given) == len(_settled(self.given))
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


def _together(listed: bytes, more: bytes) -> bytes:
    """What one identity was given twice, which no coordinator lets happen."""
    topics: dict[str, list[int]] = {}
    for topic, partition in (*_each(listed), *_each(more)):
        topics.setdefault(topic, []).append(partition)
    return encode_list(topics)


def _each(listed: bytes) -> list[tuple[str, int]]:
    """Topic and partition of each that is in a partition list."""
    (topics,) = _INT32.unpack_from(listed)
    at = 4
    found: list[tuple[str, int]] = []
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
    return _settled(owners.given)


def _settled(given: Mapping[str, bytes]) -> dict[tuple[str, int], str]:
    return {one: identity for identity in sorted(given) for one in _each(given[identity])}


def _count(given: Mapping[str, bytes]) -> int:
    return sum(len(_each(listed)) for listed in given.values())


def _moved(before: Owners, after: Owners) -> list[tuple[str, int, str | None, str | None]]:
    """Topic, partition, and who had it and has it, of each partition that moved.

    Most members have what they had: these need to be looked at only if another has any of it as well.
    """
    old, new = before.given, after.given
    left = {member: listed for member, listed in old.items() if new.get(member) != listed}
    came = {member: listed for member, listed in new.items() if old.get(member) != listed}
    had, has = _settled(left), _settled(came)
    # Where nothing was given to two members, those that stayed have nothing of what others had.
    suspect = has.keys() - had.keys() if before.is_exclusive else has.keys() | had.keys()
    shared = {}
    if suspect:
        stayed = {member: listed for member, listed in old.items() if member not in left}
        shared = {
            member: listed for member, listed in stayed.items() if not suspect.isdisjoint(_each(listed))
        }
    if before.is_exclusive:
        after.is_exclusive = not shared and _count(came) == len(has)
    touched = had.keys() | has.keys()
    if shared:
        had, has = _settled(left | shared), _settled(came | shared)
    moved = sorted([one for one in touched if had.get(one) != has.get(one)])
    return [(*one, had.get(one), has.get(one)) for one in moved]


Told = Owners | bytes
"""A record's owners, as the plain decoder tells them, or as the fast one and files do."""


def as_bytes(told: Told) -> bytes:
    """Owners as bytes, whichever way they were told."""
    return encode_owners(told) if isinstance(told, Owners) else told


def size_of(told: Told) -> int:
    """Bytes that it takes to remember owners, about."""
    return told.size if isinstance(told, Owners) else len(told)


def find_moves(before: Sequence[Told], after: Sequence[Told], *, fast: bool = True) -> Moves:
    """The partitions whose owners differ, for each pair of records.

    Args:
        before: (K,) owners of one record each.
        after: (K,) owners of another one.
        fast: Whether the compiled part may do it, should it be there. The result is the same.
    """
    if fast and _compiled is not None:
        return _at_once([*map(as_bytes, before)], [*map(as_bytes, after)])
    read = dict[int, Owners]()

    def owners_of(told: Told) -> Owners:
        """What is `after` in one pair is `before` in the next."""
        if isinstance(told, Owners):
            return told
        found = read.get(id(told))
        if found is None:
            found = read[id(told)] = decode_owners(told)
        return found

    with no_garbage_collection():
        rows = [
            (number, *move)
            for number, (old, new) in enumerate(zip(before, after, strict=True))
            for move in _moved(owners_of(old), owners_of(new))
        ]
    pair, topic, partition, source, target = zip(*rows, strict=True) if rows else ((),) * 5
    return Moves(
        pa.array(pair, pa.int32()),
        pa.array(topic, pa.string()),
        pa.array(partition, pa.int32()),
        pa.array(source, pa.string()),
        pa.array(target, pa.string()),
    )


def _at_once(before: list[bytes], after: list[bytes]) -> Moves:
    pair, partition, *references, topics, members = _compiled.moves(before, after)
    topic, source, target = (
        strings(numbers, dictionary).cast(pa.string())
        for numbers, dictionary in zip(references, (topics, members, members), strict=True)
    )
    return Moves(int32s(pair), topic, int32s(partition), source, target)


def int32s(raw: bytes) -> Any:
    """An array of the compiled part's numbers."""
    return pa.Array.from_buffers(pa.int32(), len(raw) // 4, [None, pa.py_buffer(raw)])


def strings(numbers: bytes, dictionary: tuple[bytes, bytes]) -> Any:
    """A dictionary-encoded array of the compiled part's strings; those numbered -1 are null."""
    bounds, texts = dictionary
    values = pa.Array.from_buffers(
        pa.string(), len(bounds) // 4 - 1, [None, pa.py_buffer(bounds), pa.py_buffer(texts)]
    )
    references = np.frombuffer(numbers, dtype=np.int32)
    is_null = references < 0
    indices = pa.array(references, mask=is_null) if is_null.any() else pa.array(references)
    return pa.DictionaryArray.from_arrays(indices, values)
