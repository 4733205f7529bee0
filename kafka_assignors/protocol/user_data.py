"""The user data of sticky members: what they owned, and in which generation.

Written in Java's layout; read in all layouts that are in use. The bytes come from other members, so reading
trusts nothing: every count is checked against the bytes that are there before anything is made of it.

    Java v1 (KIP-341)      int32 topics, each: int16 length + name, int32 n, n x int32; then int32 generation
    Java v0                the same without the generation
    kafka-python 3         int16 version 1, then Java v1
    cooperative (Java)     int32 generation alone; the partitions stand in the subscription itself

All integers are big-endian.
"""

import struct
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from kafka_assignors.group import NO_GENERATION

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
GENERATION_SIZE: Final = _INT32.size
"""Bytes of a cooperative member's user data."""

_KAFKA_PYTHON_PREFIX: Final = _INT16.pack(1)


class UserDataError(ValueError):
    """User data that is in none of the known layouts."""


@dataclass(frozen=True, slots=True)
class StickyUserData:
    """A member's prior assignment.

    Attributes:
        claims: Partition ids by topic, in the order in which they were sent, not checked in any way.
        generation: The generation of that assignment, `NO_GENERATION` in layouts without one.
    """

    claims: Mapping[str, Collection[int]]
    generation: int = NO_GENERATION


def encode_sticky(claims: Mapping[str, Collection[int]], generation: int) -> bytes:
    """Write a prior assignment as Java's StickyAssignor does (v1), topics and partitions sorted."""
    parts = [_INT32.pack(len(claims))]
    for topic in sorted(claims):
        name = topic.encode()
        parts += [_INT16.pack(len(name)), name, _INT32.pack(len(claims[topic]))]
        parts.append(np.sort(np.fromiter(claims[topic], dtype=">i4")).tobytes())
    parts.append(_INT32.pack(generation))
    return b"".join(parts)


def decode_sticky(data: bytes) -> StickyUserData:
    """Read a prior assignment in whichever layout accounts for every byte.

    Raises:
        UserDataError: No layout does.
    """
    faults = []
    for layout, read in _LAYOUTS.items():
        try:
            return read(data)
        except UserDataError as fault:
            faults.append(f"{layout}: {fault}")
    raise UserDataError(f"{len(data)} bytes are no sticky user data ({'; '.join(faults)})")


def encode_generation(generation: int) -> bytes:
    """Write the user data of a cooperative member as Java's CooperativeStickyAssignor does."""
    return _INT32.pack(generation)


def decode_generation(data: bytes) -> int:
    """Read the user data of a cooperative member.

    Raises:
        UserDataError: It is not one 32-bit integer.
    """
    if len(data) != GENERATION_SIZE:
        raise UserDataError(f"{len(data)} bytes are no generation, which has {GENERATION_SIZE}")
    return int(_INT32.unpack(data)[0])


class _Reader:
    """Reads from the front, and never past the end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def take(self, size: int, what: str) -> bytes:
        if size < 0:
            raise UserDataError(f"{what} is negative ({size})")
        taken = self.data[self.place : self.place + size]
        if len(taken) < size:
            raise UserDataError(f"{what} wants {size} bytes, {len(taken)} are left")
        self.place += size
        return taken

    def int16(self, what: str) -> int:
        return int(_INT16.unpack(self.take(_INT16.size, what))[0])

    def int32(self, what: str) -> int:
        return int(_INT32.unpack(self.take(_INT32.size, what))[0])

    def assignment(self) -> Iterator[tuple[str, list[int]]]:
        topics = self.int32("the number of topics")
        # A topic takes six bytes at the least, so that an absurd count fails before the loop.
        if topics < 0 or topics * 6 > len(self.data) - self.place:
            raise UserDataError(f"{topics} topics do not fit into {len(self.data) - self.place} bytes")
        for _ in range(topics):
            raw = self.take(self.int16("the length of a topic's name"), "a topic's name")
            try:
                name = raw.decode()
            except UnicodeDecodeError as fault:
                raise UserDataError(f"the topic name {raw!r} is not UTF-8") from fault
            count = self.int32(f"the number of partitions of {name}")
            ids = self.take(count * 4, f"the partitions of {name}")
            yield name, np.frombuffer(ids, dtype=">i4").tolist()

    def end(self) -> None:
        if self.place != len(self.data):
            raise UserDataError(f"{len(self.data) - self.place} bytes are left over")


def _read_java(data: bytes, *, with_generation: bool = True) -> StickyUserData:
    reader = _Reader(data)
    claims: dict[str, list[int]] = {}
    for topic, ids in reader.assignment():
        claims.setdefault(topic, []).extend(ids)
    generation = reader.int32("the generation") if with_generation else NO_GENERATION
    reader.end()
    return StickyUserData(claims, generation)


def _read_java_v0(data: bytes) -> StickyUserData:
    return _read_java(data, with_generation=False)


def _read_kafka_python(data: bytes) -> StickyUserData:
    if not data.startswith(_KAFKA_PYTHON_PREFIX):
        raise UserDataError(f"it does not begin with {_KAFKA_PYTHON_PREFIX.hex()}")
    return _read_java(data[len(_KAFKA_PYTHON_PREFIX) :])


_LAYOUTS: Final = {"Java v1": _read_java, "Java v0": _read_java_v0, "kafka-python": _read_kafka_python}
