"""The bytes of all members at once: partition lists in and out, subscriptions in.

A *partition list* is what user data, owned partitions and assignments have in common:

    int32 topics, each: int16 length + name, int32 n, n x int32

All integers are big-endian. Where `_codec.c` could be compiled it does the work; what is written here in
Python is what it means, and runs without it. The bytes come from other members, so reading trusts nothing:
every count is checked against the bytes that are there before anything is made of it.
"""

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import pairwise
from typing import Any, Final

import numpy as np

from kafka_assignors.arrays import IntArray
from kafka_assignors.claims import ClaimTable

try:
    _compiled: Any = import_module("kafka_assignors.protocol._codec")
except ImportError:  # installed without a compiler
    _compiled = None

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_OWNED_SINCE: Final = 1
_GENERATION_SINCE: Final = 2
_RACK_SINCE: Final = 3

UNREADABLE: Final = -1
"""What stands for the length of what cannot be read."""


class UnreadableError(ValueError):
    """The bytes are not what they should be."""


class Reader:
    """Reads bytes from the front, and never past the end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    @property
    def left(self) -> int:
        """How many bytes are left."""
        return len(self.data) - self.place

    def take(self, size: int, what: str) -> bytes:
        """The next bytes; `what` they are is for the error."""
        if size < 0:
            raise UnreadableError(f"{what} is negative ({size})")
        taken = self.data[self.place : self.place + size]
        if len(taken) < size:
            raise UnreadableError(f"{what} wants {size} bytes, {len(taken)} are left")
        self.place += size
        return taken

    def int16(self, what: str) -> int:
        """The next two bytes."""
        return int(_INT16.unpack(self.take(_INT16.size, what))[0])

    def int32(self, what: str) -> int:
        """The next four bytes."""
        return int(_INT32.unpack(self.take(_INT32.size, what))[0])

    def count(self, least: int, what: str) -> int:
        """A number of things that take at least so many bytes each, so that an absurd one fails at once."""
        count = self.int32(f"the number of {what}")
        if count < 0 or count * least > self.left:
            raise UnreadableError(f"{count} {what} do not fit into {self.left} bytes")
        return count

    def version(self) -> int:
        """The version that a message begins with."""
        version = self.int16("the version")
        if version < 0:
            raise UnreadableError(f"there is no version {version}")
        return version

    def string(self, what: str) -> str | None:
        """A string of up to 32,767 bytes; None for null."""
        size = self.int16(f"the length of {what}")
        if size == -1:
            return None
        return _utf8(self.take(size, what), what)

    def partition_list(self) -> list[tuple[str, list[int]]]:
        """Topics and their partition ids."""
        listed = []
        for _ in range(self.count(6, "topics")):
            raw = self.take(self.int16("the length of a topic's name"), "a topic's name")
            name = _utf8(raw, "a topic's name")
            count = self.count(4, f"partitions of {name}")
            ids = self.take(count * 4, f"the partitions of {name}")
            listed.append((name, np.frombuffer(ids, dtype=">i4").tolist()))
        return listed

    def skip_partition_list(self) -> None:
        """Pass over topics and their partition ids without looking at the names."""
        for _ in range(self.count(6, "topics")):
            self.take(self.int16("the length of a topic's name"), "a topic's name")
            self.take(self.count(4, "partitions") * 4, "the partitions")


def _utf8(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as fault:
        raise UnreadableError(f"{what} {raw!r} is not UTF-8") from fault


def read_partition_lists(blobs: list[bytes]) -> tuple[ClaimTable, list[int]]:
    """Read many partition lists.

    Args:
        blobs: Bytes that begin with one each.

    Returns:
        The lists as claims, and how many bytes each of them has. A list that cannot be read is empty and has
        `UNREADABLE` bytes.
    """
    if _compiled is not None:
        consumed, names, claimant, topic, sizes, ids = _compiled.read_partitions(blobs)
        return ClaimTable(
            claimants=len(blobs),
            names=names,
            claimant=_column(claimant),
            topic=_column(topic),
            sizes=_column(sizes),
            ids=_column(ids),
        ), _column(consumed).tolist()
    lists, lengths = [], []
    for blob in blobs:
        reader = Reader(blob)
        by_topic: dict[str, list[int]] = {}
        try:
            for topic, ids in reader.partition_list():
                by_topic.setdefault(topic, []).extend(ids)
            lengths.append(reader.place)
        except UnreadableError:
            by_topic = {}
            lengths.append(UNREADABLE)
        lists.append(by_topic)
    return ClaimTable.of(lists), lengths


def _column(raw: bytes) -> IntArray:
    return np.frombuffer(raw, dtype=np.int64)


def write_partition_lists(
    names: Sequence[str], topics: IntArray, ids: IntArray, bounds: IntArray, *, head: bytes, tail: bytes
) -> list[bytes]:
    """Write many partition lists.

    Args:
        names: The names of the topics.
        topics: (S,) the number of the topic of each partition; those of a topic stand together.
        ids: (S,) its partition id.
        bounds: (K + 1,) list k has the partitions bounds[k]..bounds[k + 1] - 1.
        head: Bytes before each list.
        tail: Bytes behind it.

    Raises:
        ValueError: A name has more than 32,767 bytes.
    """
    encoded = [name.encode() for name in names]
    if _compiled is not None:
        written: list[bytes] = _compiled.write_partitions(encoded, topics, ids, bounds, head, tail)
        return written
    headed = []
    for name in encoded:
        if len(name) >= 2**15:
            raise ValueError("a topic's name has more than 32767 bytes")
        headed.append(_INT16.pack(len(name)) + name)
    raw = ids.astype(">i4").tobytes()
    starts = np.flatnonzero(np.diff(topics, prepend=-1))
    starts = np.unique(np.concatenate((starts, bounds[:-1][bounds[:-1] < topics.size])))
    stops = np.append(starts[1:], topics.size)
    first_run = np.searchsorted(starts, bounds).tolist()
    runs = [
        headed[topic] + _INT32.pack(stop - start) + raw[4 * start : 4 * stop]
        for topic, start, stop in zip(topics[starts].tolist(), starts.tolist(), stops.tolist(), strict=True)
    ]
    return [
        b"".join((head, _INT32.pack(last - first), *runs[first:last], tail))
        for first, last in pairwise(first_run)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A decoded ConsumerProtocolSubscription, with the names that kafka-python's has.

    Attributes:
        topics: The topics.
        user_data: The user data; empty for null.
        owned: The owned partitions, a partition list; empty below v1, which has none.
        generation: The generation, None below v2.
        rack: The rack, None if there is none.
    """

    topics: frozenset[str]
    user_data: bytes
    owned: bytes
    generation: int | None
    rack: str | None


def read_subscriptions(blobs: list[bytes]) -> list[Subscription | None]:
    """Read many subscriptions, v0 and up; None for one that cannot be read. Equal topics are one object."""
    if _compiled is None:
        sets: dict[frozenset[str], frozenset[str]] = {}
        return [_read_subscription(blob, sets) for blob in blobs]
    sections, raw = _compiled.read_subscriptions(blobs)
    topics = [None if None in section else frozenset(section) for section in sections]
    fields = np.frombuffer(raw, dtype=np.int64).reshape(-1, 8).tolist()
    return [_subscription(blob, topics, *field) for blob, field in zip(blobs, fields, strict=True)]


def _subscription(blob: bytes, topics: Sequence[frozenset[str] | None], *fields: int) -> Subscription | None:
    """Put together what the compiled reader found, the places of its parts."""
    section, data, data_end, owned, owned_end, generation, rack, rack_end = fields
    names = topics[section] if section >= 0 else None
    if names is None:
        return None
    try:
        return Subscription(
            topics=names,
            user_data=blob[data:data_end],
            owned=blob[owned:owned_end],
            generation=generation if generation >= -(2**31) else None,
            rack=blob[rack:rack_end].decode() or None,
        )
    except UnicodeDecodeError:
        return None


def _read_subscription(blob: bytes, sets: dict[frozenset[str], frozenset[str]]) -> Subscription | None:
    reader = Reader(blob)
    try:
        version = reader.version()
        count = reader.count(2, "topics")
        names = frozenset(filter(None, (reader.string("a topic's name") for _ in range(count))))
        size = reader.int32("the length of the user data")
        user_data = b"" if size == -1 else reader.take(size, "the user data")
        owned, generation, rack = b"", None, None
        if version >= _OWNED_SINCE:
            start = reader.place
            reader.skip_partition_list()
            owned = blob[start : reader.place]
        if version >= _GENERATION_SINCE:
            generation = reader.int32("the generation")
        if version >= _RACK_SINCE:
            rack = reader.string("the rack") or None
    except UnreadableError:
        return None
    return Subscription(
        topics=sets.setdefault(names, names),
        user_data=user_data,
        owned=owned,
        generation=generation,
        rack=rack,
    )
