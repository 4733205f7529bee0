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
from itertools import repeat
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


def encode_owners(members: Iterable[tuple[str, Mapping[str, Sequence[int]]]]) -> bytes:
    """The owners of a record.

    Args:
        members: The identity of each member, and its partitions by topic.
    """
    return join_owners([encode_member(*member) for member in members])


def encode_member(
    identity: str, partitions: Mapping[str, Sequence[int]], listed: bytes | None = None
) -> bytes:
    """One member's part of the owners of a record.

    Args:
        identity: Its identity.
        partitions: Its partitions by topic. Without any there is no part of it.
        listed: The same as a partition list, if they were read from one.
    """
    if not partitions:
        return b""
    return _string(identity) + (_partition_list(partitions) if listed is None else listed)


def join_owners(members: Iterable[bytes]) -> bytes:
    """The owners of a record, out of its members' parts."""
    each = [part for part in members if part]
    return struct.pack(f">i{len(each)}i", len(each), *map(len, each)) + b"".join(each)


def _partition_list(partitions: Mapping[str, Sequence[int]]) -> bytes:
    parts = [struct.pack(">i", len(partitions))]
    for topic, ids in partitions.items():
        parts += [_string(topic), struct.pack(f">i{len(ids)}i", len(ids), *ids)]
    return b"".join(parts)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def decode_owners(owners: bytes) -> dict[tuple[str, int], str]:
    """The owner of each partition that has one."""
    return _settled(_members(owners))


def _members(owners: bytes) -> list[bytes]:
    """The bytes of each member."""
    (count,) = _INT32.unpack_from(owners)
    sizes = struct.unpack_from(f">{count}i", owners, 4)
    members, at = [], 4 + 4 * count
    for size in sizes:
        members.append(owners[at : at + size])
        at += size
    return members


_Given = tuple[str, frozenset[tuple[str, int]]]
"""A member's identity, and its partitions."""


class _GivenByMember(Bounded[bytes, _Given]):
    """What the bytes of members say; most of them come again with the group's next record."""

    def __missing__(self, member: bytes) -> _Given:
        found = _read_given(member)
        self.remember(member, found, len(member) + 1000 + 150 * len(found[1]))
        return found


_MOST_REMEMBERED: Final = 64 * 2**20
_given: Final = _GivenByMember(_MOST_REMEMBERED)


def _read_given(member: bytes) -> _Given:
    size = _UINT16.unpack_from(member)[0]
    at = 2 + size
    identity = member[2:at].decode()
    (topics,) = _INT32.unpack_from(member, at)
    at += 4
    partitions: set[tuple[str, int]] = set()
    for _ in range(topics):
        size = _UINT16.unpack_from(member, at)[0]
        place = at + 2 + size
        (count,) = _INT32.unpack_from(member, place)
        at, name = place + 4 + 4 * count, member[at + 2 : place].decode()
        partitions.update(
            zip(repeat(name), struct.unpack_from(f">{count}i", member, place + 4), strict=False)
        )
    return identity, frozenset(partitions)


def _settled(members: Iterable[bytes]) -> dict[tuple[str, int], str]:
    settled: dict[tuple[str, int], str] = {}
    for identity, partitions in sorted(map(_given.__getitem__, members), key=itemgetter(0)):
        settled.update(dict.fromkeys(partitions, identity))
    return settled


_exclusive: Final = Bounded[bytes, None](_MOST_REMEMBERED)
"""Owners of records in which no partition is given to two members. Of what follows on them only
what was given anew can be somebody else's as well."""


def _moved(before: bytes, after: bytes) -> list[tuple[str, int, str | None, str | None]]:
    """Topic, partition, and who had it and has it, of each partition that moved.

    Most members have what they had: these need to be looked at only if another has any of it as well.
    """
    if before == after:
        return []
    old, new = _members(before), _members(after)
    same = {*old}.intersection(new)
    changed_old = [member for member in old if member not in same]
    changed_new = [member for member in new if member not in same]
    nothing = frozenset[tuple[str, int]]()
    lost = nothing.union(*[_given[member][1] for member in changed_old])
    gained = nothing.union(*[_given[member][1] for member in changed_new])
    touched = lost | gained
    was_exclusive = before in _exclusive
    suspect = gained - lost if was_exclusive else touched
    shared = [one for one in same if not suspect.isdisjoint(_given[one][1])] if suspect else []
    if not shared and _are_apart(changed_new if was_exclusive else new):
        _exclusive.forget(before, len(before))
        _exclusive.remember(after, None, len(after))
    had = _settled(changed_old + shared)
    has = _settled(changed_new + shared)
    moved = sorted([one for one in touched if had.get(one) != has.get(one)])
    return [(*one, had.get(one), has.get(one)) for one in moved]


def _are_apart(members: list[bytes]) -> bool:
    """Whether no partition is given to two of them."""
    given = [_given[member][1] for member in members]
    return sum(map(len, given)) == len(frozenset[tuple[str, int]]().union(*given))


def find_moves(before: list[bytes], after: list[bytes], *, fast: bool = True) -> Moves:
    """The partitions whose owners differ, for each pair of records.

    Args:
        before: (K,) owners of one record each.
        after: (K,) owners of another one.
        fast: Whether the compiled part may do it, should it be there. The result is the same.

    """
    if fast and _compiled is not None:
        return _at_once(before, after)
    with no_garbage_collection():
        rows = [
            (number, *move)
            for number, (old, new) in enumerate(zip(before, after, strict=True))
            for move in _moved(old, new)
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
