"""The bytes of all members at once: partition lists in and out, subscriptions in.

A *partition list* is what user data, owned partitions and assignments have in common:

    int32 topics, each: int16 length + name, int32 n, n x int32

All integers are big-endian. Where `_codec.c` could be compiled it does the work; what is written here in
Python is what it means, and runs without it. The bytes come from other members, so reading trusts nothing:
every count is checked against the bytes that are there before anything is made of it.
"""

import struct
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from typing import Any, Final, NamedTuple

import numpy as np

from kafka_assignors._model.arrays import IntArray
from kafka_assignors._model.claims import ClaimTable
from kafka_assignors._model.topic_sets import TopicSets

try:
    _compiled: Any = import_module("kafka_assignors._wire._codec")
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

    def count(self, least: int, what: str, *, or_null: bool = False) -> int:
        """A number of things that take at least so many bytes each, so that an absurd one fails at once."""
        count = self.int32(f"the number of {what}")
        if or_null and count == -1:
            return 0
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
        """Pass over topics and their partition ids without looking at the names; null lists are empty."""
        for _ in range(self.count(6, "topics", or_null=True)):
            self.take(self.int16("the length of a topic's name"), "a topic's name")
            self.take(self.count(4, "partitions", or_null=True) * 4, "the partitions")


def _utf8(raw: bytes, what: str) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as fault:
        raise UnreadableError(f"{what} {raw!r} is not UTF-8") from fault


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionLists:
    """Partition lists, read.

    Attributes:
        table: The lists as claims; one that cannot be read is empty.
        lengths: (K,) how many bytes each has, `UNREADABLE` for one that cannot be read.
        tails: (K, 2) the two int32 that follow it; 0 for each that is not there.
    """

    table: ClaimTable
    lengths: IntArray
    tails: IntArray


def read_partition_lists(blobs: list[bytes]) -> PartitionLists:
    """Read many partition lists, each from the beginning of its bytes."""
    if _compiled is not None:
        names, *columns = _compiled.read_partitions(blobs)
        claimant, topic, sizes, ids, lengths, tails = map(_column, columns)
        table = ClaimTable(
            claimants=len(blobs), names=names, claimant=claimant, topic=topic, sizes=sizes, ids=ids
        )
        return PartitionLists(table=table, lengths=lengths, tails=tails.reshape(-1, 2))
    lists: list[list[tuple[str, list[int]]]] = []
    ends = np.full(len(blobs), UNREADABLE)
    tails = np.zeros((len(blobs), 2), dtype=np.int64)
    for number, blob in enumerate(blobs):
        reader = Reader(blob)
        try:
            lists.append(reader.partition_list())
        except UnreadableError:
            lists.append([])
            continue
        ends[number] = reader.place
        after = blob[reader.place : reader.place + 2 * _INT32.size]
        for place, (tail,) in enumerate(_INT32.iter_unpack(after[: len(after) // 4 * 4])):
            tails[number, place] = tail
    return PartitionLists(table=ClaimTable.of_rows(lists), lengths=ends, tails=tails)


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
    stops = np.append(starts, topics.size)[1:]
    first_run = np.searchsorted(starts, bounds).tolist()
    runs = [
        headed[topic] + _INT32.pack(stop - start) + raw[4 * start : 4 * stop]
        for topic, start, stop in zip(topics[starts].tolist(), starts.tolist(), stops.tolist(), strict=True)
    ]
    return [
        b"".join((head, _INT32.pack(last - first), *runs[first:last], tail))
        for first, last in pairwise(first_run)
    ]


def write_topics(names: Collection[str]) -> bytes:
    """Write a ConsumerProtocolSubscription v0 to some topics, as short as it can be.

    Raises:
        struct.error: A name has more than 32,767 bytes.
    """
    return b"".join((bytes(2), _INT32.pack(len(names)), *map(_string, names), _INT32.pack(-1)))


def _string(text: str) -> bytes:
    raw = text.encode()
    return _INT16.pack(len(raw)) + raw


NOT_SAID: Final = -(2**40)
"""What stands for the generation in subscriptions that have none (below v2)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Subscriptions:
    """What ConsumerProtocolSubscriptions of many members say, as columns.

    Attributes:
        topics: The different sets of topics.
        topics_of: (M,) which of these each member subscribes to.
        user_data: The user data of each member; empty for null.
        owned: The owned partitions of each; none below v1.
        generations: (M,) the generation of each, `NOT_SAID` below v2.
        racks: The rack of each, None if there is none.
        unreadable: The numbers of those that cannot be read; they subscribe to nothing.
        strange: The numbers of those that can, with something in them that Kafka never writes: a null among
            the topics, or owned partitions that cannot be read.
    """

    topics: TopicSets
    topics_of: IntArray
    user_data: Sequence[bytes]
    owned: ClaimTable
    generations: IntArray
    racks: Sequence[str | None]
    unreadable: Sequence[int] = ()
    strange: Sequence[int] = ()


def read_subscriptions(blobs: list[bytes]) -> Subscriptions:
    """Read many subscriptions, v0 and up; of newer versions than v3 what is known."""
    if _compiled is None:
        return _put_together([_read_subscription(blob) for blob in blobs])
    read = _read_compiled(blobs)
    if isinstance(read, Subscriptions):
        return read
    # The Python version says what counts in odd ones. It takes 100 times as long, so it does not read the
    # others: one member would cost a leader of 2,000 a second.
    odd = {number: _read_subscription(blobs[number]) for number in read}
    plain = [_written(odd[number]) if number in odd else blob for number, blob in enumerate(blobs)]
    read = _read_compiled(plain)
    if not isinstance(read, Subscriptions):  # what the Python version took for readable is not
        return _put_together([_read_subscription(blob) for blob in blobs])
    nulls = {number for number, one in odd.items() if one is not None and one.has_nulls}
    return replace(
        read,
        unreadable=[number for number, one in odd.items() if one is None],
        strange=sorted({*read.strange, *nulls}),
    )


def _read_compiled(blobs: list[bytes]) -> Subscriptions | list[int]:
    """Read them by the compiled codec; or the numbers of those in which something is odd."""
    names, *columns, user_data, owned, racks = _compiled.read_subscriptions(blobs)
    bounds, entries, of_section, said = map(_column, columns)
    odd = of_section < 0
    if None in names:  # it is not UTF-8
        nameless = np.array([name is None for name in names])[entries]
        some = np.add.reduceat(np.append(nameless, [False]), bounds[:-1]) * (np.diff(bounds) > 0)
        odd |= (some > 0)[of_section]
    rack_names = [rack.decode(errors="replace") or None for rack in racks]
    if any(rack and "\ufffd" in rack for rack in rack_names):
        odd |= [not _is_utf8(rack) for rack in racks]
    if odd.any():
        return [int(number) for number in np.flatnonzero(odd)]
    table, strange = _read_owned(owned)
    return Subscriptions(
        topics=TopicSets(names=names, bounds=bounds, entries=entries),
        topics_of=of_section,
        user_data=user_data,
        owned=table,
        generations=np.where(said < NOT_SAID, NOT_SAID, said),
        racks=rack_names,
        strange=strange,
    )


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


_OWNS_NOTHING: Final = bytes(4)
_NO_CLAIMS: Final = ClaimTable.of([])


def _read_owned(owned: list[bytes]) -> tuple[ClaimTable, list[int]]:
    """The owned partitions, and the numbers of those that cannot be read. No bytes: below v1."""
    if not any(map(_OWNS_NOTHING.__ne__, owned)):
        return replace(_NO_CLAIMS, claimants=len(owned)), []
    lists = read_partition_lists(owned)
    unreadable = np.flatnonzero(lists.lengths == UNREADABLE).tolist()
    return lists.table, [number for number in unreadable if owned[number]]


class _Subscription(NamedTuple):
    topics: frozenset[str]
    user_data: bytes
    owned: bytes
    generation: int
    rack: str | None
    has_nulls: bool = False


def _put_together(read: Sequence[_Subscription | None]) -> Subscriptions:
    nothing = _Subscription(frozenset(), b"", b"", NOT_SAID, None)
    each = [one or nothing for one in read]
    topics: dict[frozenset[str], int] = {}
    table, strange = _read_owned([one.owned for one in each])
    return Subscriptions(
        topics_of=np.array([topics.setdefault(one.topics, len(topics)) for one in each], dtype=np.int64),
        topics=TopicSets.of(topics),
        user_data=[one.user_data for one in each],
        owned=table,
        generations=np.array([one.generation for one in each], dtype=np.int64),
        racks=[one.rack for one in each],
        unreadable=[number for number, one in enumerate(read) if one is None],
        strange=sorted({*strange, *(number for number, one in enumerate(each) if one.has_nulls)}),
    )


def _written(one: _Subscription | None) -> bytes:
    """What was read of a subscription, in the lowest version that can say it."""
    if one is None:
        return write_topics(())
    said = one.generation != NOT_SAID
    version = _RACK_SINCE if said else _OWNED_SINCE if one.owned else 0
    rack = b"\xff\xff" if one.rack is None else _string(one.rack)
    return b"".join(
        (
            *(_INT16.pack(version), _INT32.pack(len(one.topics)), *map(_string, one.topics)),
            *(_INT32.pack(len(one.user_data)), one.user_data, one.owned),
            *((_INT32.pack(one.generation), rack) if said else ()),
        )
    )


def _read_subscription(blob: bytes) -> _Subscription | None:
    reader = Reader(blob)
    try:
        version = reader.version()
        count = reader.count(2, "topics")
        listed = [reader.string("a topic's name") for _ in range(count)]
        topics = frozenset(name for name in listed if name is not None)
        size = reader.int32("the length of the user data")
        user_data = b"" if size == -1 else reader.take(size, "the user data")
        owned, generation, rack = b"", NOT_SAID, None
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
    return _Subscription(topics, user_data, owned, generation, rack, has_nulls=None in listed)
