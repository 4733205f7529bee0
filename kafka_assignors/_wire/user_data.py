"""The user data of sticky members: what they owned, and in which generation.

Written in Java's layout; read in all layouts that are in use. The bytes come from other members, so reading
trusts nothing. Every count is checked against the bytes that are there before anything is made of it.

    Java v1 (KIP-341)      partition list, int32 generation
    Java v0                the same without the generation
    kafka-python 3         int16 version 1, then Java v1
    cooperative (Java)     int32 generation alone; the partitions stand in the subscription itself

Behind the generation a member appends what is not the default; Java and librdkafka do not read on:

    int32 weight
    int32 weight, int32 priority
    int32 weight, int32 priority, "ka", what its strategy sends for the leader

All integers are big-endian.
"""

import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

import numpy as np

from kafka_assignors._model.claims import NO_EXTRA, Claimed, ClaimTable, Extra
from kafka_assignors._model.members import MAX_PRIORITY, MAX_WEIGHT, NO_GENERATION
from kafka_assignors._wire.codec import encode_partition_list, read_partition_lists
from kafka_assignors._wire.reader import INT16, INT32, Reader, UnreadableError

_WEIGHTED: Final = 2 * INT32.size
"""Bytes of a generation and a weight, or of a weight and a priority."""

_OPTIONS: Final = struct.Struct(">2i")

UNFINISHED: Final = b"unfinished"
"""The user data of an assignment that another round is to follow. Other clients do not read it."""

_KAFKA_PYTHON_PREFIX: Final = INT16.pack(1)
_MARK: Final = b"ka"

Layout = Literal["Java v1", "Java v0", "with options", "kafka-python"]
"""The layouts of a prior assignment."""


@dataclass(frozen=True, slots=True)
class StickyUserData:
    """A member's prior assignment; ids by topic in the order in which they were sent, not checked at all.

    The generation is `NO_GENERATION` in layouts without one. The weight is 1 if none is said, or one that is
    none.
    """

    claims: Mapping[str, Collection[int]]
    generation: int = NO_GENERATION
    weight: int = 1
    extra: Extra = NO_EXTRA


def encode_generation(generation: int, weight: int = 1, extra: Extra = NO_EXTRA) -> bytes:
    """Write the user data of a cooperative member as Java's CooperativeStickyAssignor does."""
    if extra == NO_EXTRA:
        return INT32.pack(generation) + (INT32.pack(weight) if weight != 1 else b"")
    data = _MARK + extra.data if extra.data else b""
    return INT32.pack(generation) + INT32.pack(weight) + INT32.pack(extra.priority) + data


def encode_sticky(
    claims: Mapping[str, Collection[int]], generation: int, weight: int = 1, extra: Extra = NO_EXTRA
) -> bytes:
    """Write a prior assignment as Java's StickyAssignor does (v1), topics and partitions sorted."""
    listed = [(name, np.sort(np.fromiter(claims[name], dtype=">i4")).tobytes()) for name in sorted(claims)]
    return encode_partition_list(listed) + encode_generation(generation, weight, extra)


def decode_all(data: Sequence[bytes]) -> tuple[Claimed, dict[int, UnreadableError]]:
    """Read the prior assignments of many members at once.

    What cannot be read, or has no bytes, claims nothing; second, why it cannot be, by the member's number. A
    generation is `NO_GENERATION` in layouts without one.
    """
    lists = read_partition_lists(list(data))
    sizes = np.fromiter(map(len, data), dtype=np.int64, count=len(data))
    left = np.where(lists.lengths >= 0, sizes - lists.lengths, -1)
    stated, weight = lists.tails[:, 0], lists.tails[:, 1]
    is_weighted = left == _WEIGHTED
    has_generation = (left == INT32.size) | is_weighted
    weights = np.where(is_weighted & (weight >= 1) & (weight <= MAX_WEIGHT), weight, 1)
    generations = np.where(has_generation, stated, NO_GENERATION)
    table, extras, faults = lists.table, {}, {}
    # What is left are other layouts, and what cannot be read.
    others = ((sizes > 0) & (left != 0) & ~has_generation).nonzero()[0].tolist()
    if others:
        claims: list[Mapping[str, Collection[int]]] = [*table.claims()]
        for number in others:
            claims[number] = {}
            try:
                prior = decode_sticky(data[number])
            except UnreadableError as fault:
                faults[number] = fault
                continue
            claims[number] = prior.claims
            generations[number], weights[number] = prior.generation, prior.weight
            if any(prior.extra):
                extras[number] = prior.extra
        table = ClaimTable.of(claims)
    holds = np.zeros(sizes.size, dtype=np.bool_)
    claimed = Claimed(claims=table, generations=generations, holds=holds, weights=weights, extras=extras)
    return claimed, faults


def decode_sticky(data: bytes) -> StickyUserData:
    """Read a prior assignment in whichever layout accounts for every byte, or raise UnreadableError."""
    return _read_any(data)[1]


def layout_of(data: bytes) -> Layout:
    """In which layout a prior assignment is written; raises UnreadableError if in none that is known."""
    return _read_any(data)[0]


def _read_any(data: bytes) -> tuple[Layout, StickyUserData]:
    faults = []
    for layout, read in _LAYOUTS.items():
        try:
            return layout, read(data)
        except UnreadableError as fault:
            faults.append(f"{layout}: {fault}")
    raise UnreadableError(f"{len(data)} bytes are no sticky user data ({'; '.join(faults)})")


def decode_generation(data: bytes) -> tuple[int, int, Extra] | None:
    """Read generation, weight and extra of a cooperative member; None if the user data is anything else.

    More than four bytes that begin with 0 are a prior assignment without topics, as librdkafka sends it:
    there is no generation 0.
    """
    if len(data) < INT32.size:
        return None
    generation = int(INT32.unpack_from(data)[0])
    if generation == 0 and len(data) > INT32.size:
        return None
    options = _read_options(data[INT32.size :])
    return None if options is None else (generation, *options)


def _read_options(data: bytes) -> tuple[int, Extra] | None:
    """Weight and extra; None if the bytes are anything else.

    A weight alone that is out of range counts as 1. With more behind it the bytes are something else.
    """
    if not data:
        return 1, NO_EXTRA
    if len(data) == INT32.size:
        weight = int(INT32.unpack(data)[0])
        return weight if 1 <= weight <= MAX_WEIGHT else 1, NO_EXTRA
    if len(data) == _WEIGHTED or data[_WEIGHTED:].startswith(_MARK):
        weight, priority = _OPTIONS.unpack_from(data)
        if 1 <= weight <= MAX_WEIGHT and abs(priority) <= MAX_PRIORITY:
            return weight, Extra(priority, data[_WEIGHTED + len(_MARK) :])
    return None


def _read_java(data: bytes, *, with_generation: bool = True, with_options: bool = False) -> StickyUserData:
    reader = Reader(data)
    claims: dict[str, list[int]] = {}
    for topic, ids in reader.partition_list():
        claims.setdefault(topic, []).extend(ids)
    generation = reader.int32("the generation") if with_generation else NO_GENERATION
    options = _read_options(data[reader.offset :] if with_options else b"")
    if options is None or (reader.left and not with_options):
        raise UnreadableError(f"{reader.left} bytes are left over")
    return StickyUserData(claims, generation, *options)


def _read_kafka_python(data: bytes) -> StickyUserData:
    if not data.startswith(_KAFKA_PYTHON_PREFIX):
        raise UnreadableError(f"it does not begin with {_KAFKA_PYTHON_PREFIX.hex()}")
    return _read_java(data[len(_KAFKA_PYTHON_PREFIX) :])


_LAYOUTS: Final[Mapping[Layout, Callable[[bytes], StickyUserData]]] = {
    "Java v1": _read_java,
    "Java v0": partial(_read_java, with_generation=False),
    "with options": partial(_read_java, with_options=True),
    "kafka-python": _read_kafka_python,
}
