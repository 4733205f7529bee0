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
from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_assignors.history.tables.garbage import no_garbage_collection
from kafka_assignors.protocol.bounded import Bounded

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
            _, self._is_exclusive = _settled(self.given)
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


_Place = tuple[str, int]
"""A topic and one of its partitions."""
_Move = tuple[str, int, str | None, str | None]
"""A topic, its partition, who had it and who has it."""


class _List(NamedTuple):
    """What is in a partition list."""

    each: list[_Place]
    different: frozenset[_Place]


_read: Final = Bounded[bytes, _List](16 * 2**20)
"""Partition lists that were read before: what a member has after one record it had before the next."""
_PLACE_BYTES: Final = 150


def _list_of(listed: bytes) -> _List:
    found = _read.get(listed)
    if found is None:
        each = _each(listed)
        found = _List(each, frozenset(each))
        _read.remember(listed, found, _MEMBER_BYTES + len(listed) + _PLACE_BYTES * len(each))
    return found


def _each(listed: bytes) -> list[_Place]:
    """Topic and partition of each that is in a partition list."""
    (topics,) = _INT32.unpack_from(listed)
    at = 4
    found: list[_Place] = []
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
    return _settled(owners.given)[0]


def _settled(given: Mapping[str, bytes]) -> tuple[dict[_Place, str], bool]:
    """The owner of each partition, and whether each was given just once."""
    found: dict[_Place, str] = {}
    count = 0
    for identity in sorted(given):
        each = _list_of(given[identity]).each
        count += len(each)
        found.update(zip(each, repeat(identity)))
    return found, count == len(found)


def _moved(before: Owners, after: Owners) -> list[_Move]:
    """The partitions that moved, in order.

    Most members have what they had: these need to be looked at only if another has any of it as well.
    """
    old, new = before.given, after.given
    left = {member: listed for member, listed in old.items() if new.get(member) != listed}
    came = {member: listed for member, listed in new.items() if old.get(member) != listed}
    passed_on = _passed_on(left, came) if before.is_exclusive else None
    if passed_on is not None:
        after.is_exclusive = True
        return passed_on
    (had, _), (has, is_exclusive) = _settled(left), _settled(came)
    # Where nothing was given to two members, those that stayed have nothing of what others had.
    suspect = has.keys() - had.keys() if before.is_exclusive else has.keys() | had.keys()
    stayed = {member: listed for member, listed in old.items() if member not in left}
    shared = {
        member: listed
        for member, listed in stayed.items()
        if suspect and not suspect.isdisjoint(_list_of(listed).different)
    }
    if before.is_exclusive:
        after.is_exclusive = not shared and is_exclusive
    if shared:
        (had, _), (has, _) = _settled(left | shared), _settled(came | shared)
    moved: list[_Move] = [(*one, owner, has.get(one)) for one, owner in had.items() if has.get(one) != owner]
    moved += [(*one, None, has[one]) for one in has.keys() - had.keys()]
    return sorted(moved, key=_PLACE)


_PLACE: Final = itemgetter(0, 1)


def _passed_on(left: Mapping[str, bytes], came: Mapping[str, bytes]) -> list[_Move] | None:
    """The partitions that moved, if nobody was given anything but what another had and has no more.

    Args:
        left: What members had that now have something else. Nothing of it was given to two members.
        came: What members have that had something else.
    """
    lost: dict[_Place, str] = {}
    for member, listed in left.items():
        kept = _list_of(came[member]).different if member in came else _NOTHING
        lost.update(zip(_list_of(listed).different - kept, repeat(member)))
    gained: dict[_Place, str] = {}
    count = 0
    for member, listed in came.items():
        had = _list_of(left[member]).different if member in left else _NOTHING
        taken = _list_of(listed).different - had
        count += len(taken)
        gained.update(zip(taken, repeat(member)))
    if len(gained) < count or not gained.keys() <= lost.keys():
        return None
    return sorted([(*one, member, gained.get(one)) for one, member in lost.items()], key=_PLACE)


_NOTHING: Final[frozenset[_Place]] = frozenset()


Told = Owners | bytes
"""A record's owners, as Python's decoders tell them, or as the compiled one and files do."""


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
        moves = [_moved(owners_of(old), owners_of(new)) for old, new in zip(before, after, strict=True)]
    rows = [*chain.from_iterable(moves)]
    topic, partition, source, target = ([row[cell] for row in rows] for cell in range(4))
    return Moves(
        pa.array(np.repeat(np.arange(len(moves), dtype=np.int32), [*map(len, moves)])),
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
