"""Who owned what after a record, in few bytes; and the moves between two of them.

The owners of a record are, for each member that was given something:

    int16 length + identity, then its partition list: int32 topics, each: int16 length + name, int32 n, n x int32

where the identity is the instance id of a static member, and the member id of others. Of two members that were
given the same partition the last by identity counts. All integers are big-endian.
"""

from __future__ import annotations

import struct
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_assignors.protocol.codec import Reader

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def encode_owners(identity: str, partitions: Mapping[str, Sequence[int]]) -> bytes:
    """What a member with these partitions adds to its record's owners; nothing without any topic."""
    if not partitions:
        return b""
    parts = [_string(identity), struct.pack(">i", len(partitions))]
    for topic, ids in partitions.items():
        parts += [_string(topic), struct.pack(f">i{len(ids)}i", len(ids), *ids)]
    return b"".join(parts)


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack(">h", len(raw)) + raw


def decode_owners(owners: bytes) -> dict[tuple[str, int], str]:
    """The owner of each partition that has one.

    Raises:
        ValueError: The bytes are no owners.
    """
    reader = Reader(owners)
    found: dict[tuple[str, int], str] = {}
    while reader.left:
        identity = reader.string("an identity") or ""
        for topic, ids in reader.partition_list():
            for partition in ids:
                key = (topic, partition)
                found[key] = max(identity, found.get(key, identity))
    return found


def find_moves(before: list[bytes], after: list[bytes], *, fast: bool = True) -> Moves:
    """The partitions whose owners differ, for each pair of records.

    Args:
        before: (K,) owners of one record each.
        after: (K,) owners of another one.
        fast: Whether the compiled part may do it, should it be there. The result is the same.

    Raises:
        ValueError: Some of the bytes are no owners.
    """
    if fast and _compiled is not None:
        return _at_once(before, after)
    rows = []
    for number, (old, new) in enumerate(zip(before, after, strict=True)):
        if old == new:
            continue
        had, has = decode_owners(old), decode_owners(new)
        rows += [
            (number, topic, partition, had.get((topic, partition)), has.get((topic, partition)))
            for topic, partition in sorted(had.keys() | has.keys())
            if had.get((topic, partition)) != has.get((topic, partition))
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
