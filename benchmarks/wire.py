"""What goes over the wire to and from a leader, and the files in which peers are given and give it.

All integers are big-endian; a string is int16 length + UTF-8, a blob int32 length + bytes.

    group     int32 topics, each: string name, int32 partitions, int32 racks of each partition (0 if unknown),
              that many strings for each partition; int32 members, each: string member id, string instance id
              (empty for none), blob subscription
    answer    int32 members, each: string member id, blob assignment

It shares no code with the library, so that a mistake in one does not hide in the other.
"""

import random
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Self

import numpy as np

from benchmarks.cases import IntArray, Problem, rack_of, replica_racks

GENERATION: Final = 1
"""The generation in which members own what they own."""

_NO_GENERATION: Final = -1
_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_NULL_STRING: Final = _INT16.pack(-1)


class Dialect(StrEnum):
    """What members say of what they own; all in version 3 of the subscription (KIP-881)."""

    SILENT = "silent"  # nothing: range, roundrobin
    JAVA = "java"  # user data of Java's StickyAssignor: sticky
    KAFKA_PYTHON = "kafka-python"  # the same behind an int16 version: kafka-python's own sticky
    OWNED = "owned"  # the subscription's field for it: cooperative-sticky


def dialect_of(strategy: str, peer: str) -> Dialect:
    """What the members of a peer's group say."""
    if strategy == "sticky":
        return Dialect.KAFKA_PYTHON if peer == "kafka-python" else Dialect.JAVA
    return Dialect.OWNED if strategy == "cooperative-sticky" else Dialect.SILENT


def string(text: str) -> bytes:
    """A string on the wire."""
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


def blob(data: bytes) -> bytes:
    """Bytes on the wire."""
    return _INT32.pack(len(data)) + data


def claims(problem: Problem) -> list[bytes]:
    """For each member its partitions as an array of (topic, array of ids); empty bytes if it has none."""
    names = [string(topic) for topic in problem.topics]
    owned = np.argsort(problem.owner, kind="stable")
    places = np.searchsorted(problem.owner[owned], np.arange(len(problem.members) + 1))
    bounds = problem.bounds
    return [
        _claim(owned[places[member] : places[member + 1]], bounds, names)
        for member in range(len(problem.members))
    ]


def _claim(partitions: IntArray, bounds: IntArray, names: list[bytes]) -> bytes:
    if not partitions.size:
        return b""
    topics = np.searchsorted(bounds, partitions, side="right") - 1
    raw = (partitions - bounds[topics]).astype(">i4").tobytes()
    starts = np.flatnonzero(np.diff(topics, prepend=-1))
    parts = [_INT32.pack(starts.size)]
    for topic, start, end in zip(
        topics[starts].tolist(), starts.tolist(), [*starts[1:].tolist(), topics.size], strict=True
    ):
        parts += [names[topic], _INT32.pack(end - start), raw[4 * start : 4 * end]]
    return b"".join(parts)


def subscriptions(problem: Problem, dialect: Dialect) -> list[bytes]:
    """The subscription of each member."""
    names = [string(topic) for topic in problem.topics]
    wanted = {
        topics: _INT32.pack(len(topics)) + b"".join(names[topic] for topic in topics)
        for topics in set(problem.subscriptions)
    }
    nothing = _INT32.pack(0)
    said = [b""] * len(problem.members) if dialect is Dialect.SILENT else claims(problem)
    return [
        b"".join(
            (
                _INT16.pack(3),
                wanted[topics],
                blob(_user_data(claim, dialect)),
                claim if claim and dialect is Dialect.OWNED else nothing,
                _INT32.pack(GENERATION if claim else _NO_GENERATION),
                string(rack_of(number)) if problem.racks else _NULL_STRING,
            )
        )
        for number, (topics, claim) in enumerate(zip(problem.subscriptions, said, strict=True))
    ]


def _user_data(claim: bytes, dialect: Dialect) -> bytes:
    generation = _INT32.pack(GENERATION)
    match dialect:
        case Dialect.JAVA if claim:
            return claim + generation
        case Dialect.KAFKA_PYTHON if claim:
            return _INT16.pack(1) + claim + generation
        case Dialect.OWNED:
            return generation if claim else _INT32.pack(_NO_GENERATION)
    return b""


def write_group(problem: Problem, dialect: Dialect, path: Path) -> None:
    """Write the group as its leader sees it; the members in no particular order, as the broker sends them."""
    parts = [_INT32.pack(len(problem.topics))]
    for topic, size in zip(problem.topics, problem.sizes.tolist(), strict=True):
        parts += [string(topic), _INT32.pack(size), _INT32.pack(2 if problem.racks else 0)]
        if problem.racks:
            parts += [string(rack) for partition in range(size) for rack in replica_racks(partition)]
    members = list(zip(problem.members, subscriptions(problem, dialect), strict=True))
    random.Random(len(members)).shuffle(members)
    parts.append(_INT32.pack(len(members)))
    for member, subscription in members:
        parts += [string(member), string(""), blob(subscription)]
    path.write_bytes(b"".join(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """A topic of a group file: the racks of each partition's replicas are None if unknown."""

    name: str
    partitions: int
    racks: tuple[tuple[str, ...], ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group file: members are (member id, instance id or None, subscription)."""

    topics: tuple[Topic, ...]
    members: tuple[tuple[str, str | None, bytes], ...]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read it."""
        reader = Reader(path.read_bytes())
        topics = tuple(_read_topic(reader) for _ in range(reader.int32()))
        members = tuple(
            (reader.string(), reader.string() or None, reader.blob()) for _ in range(reader.int32())
        )
        return cls(topics=topics, members=members)


def _read_topic(reader: "Reader") -> Topic:
    name, partitions, racks = reader.string(), reader.int32(), reader.int32()
    known = tuple(tuple(reader.string() for _ in range(racks)) for _ in range(partitions)) if racks else None
    return Topic(name=name, partitions=partitions, racks=known)


def write_answer(assignments: Mapping[str, bytes], path: Path) -> None:
    """Write the assignment of each member."""
    parts = [_INT32.pack(len(assignments))]
    for member, assignment in assignments.items():
        parts += [string(member), blob(assignment)]
    path.write_bytes(b"".join(parts))


def read_answer(path: Path) -> dict[str, bytes]:
    """Read the assignment of each member."""
    reader = Reader(path.read_bytes())
    return {reader.string(): reader.blob() for _ in range(reader.int32())}


def read_assignment(data: bytes) -> list[tuple[str, IntArray]]:
    """The topics and partition ids of a ConsumerProtocolAssignment of any version, as they come."""
    reader = Reader(data)
    reader.int16()
    return [(reader.string(), reader.ids()) for _ in range(reader.int32())]


class Reader:
    """Reads from the front; the files are our own, so a wrong one may end in any error."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def take(self, size: int) -> bytes:
        """The next bytes."""
        self.place += size
        return self.data[self.place - size : self.place]

    def int16(self) -> int:
        """The next int16."""
        return int(_INT16.unpack(self.take(2))[0])

    def int32(self) -> int:
        """The next int32."""
        return int(_INT32.unpack(self.take(4))[0])

    def string(self) -> str:
        """The next string."""
        return self.take(self.int16()).decode()

    def blob(self) -> bytes:
        """The next blob."""
        return self.take(self.int32())

    def ids(self) -> IntArray:
        """The next array of int32."""
        count = self.int32()
        return np.frombuffer(self.take(4 * count), dtype=">i4").astype(np.int64)
