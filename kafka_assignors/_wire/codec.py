"""The bytes of all members at once: partition lists in and out, subscriptions and assignments in.

Where `_codec` could be compiled it does the work; what is written here in Python is what it means, and runs
without it. `reader` has the layouts.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import pairwise
from typing import Any, Final

import numpy as np

from kafka_assignors._model.arrays import IntArray
from kafka_assignors._model.claims import ClaimTable
from kafka_assignors._model.topic_sets import TopicSets
from kafka_assignors._wire.reader import (
    GENERATION_SINCE,
    INT16,
    INT32,
    OWNED_SINCE,
    RACK_SINCE,
    Reader,
    SubscriptionFields,
    UnreadableError,
    encode_string,
)

try:
    _compiled: Any = import_module("kafka_assignors._wire._codec")
except ImportError:  # installed without a compiler
    _compiled = None


def compiled() -> Any:
    """The compiled part; None if there is none."""
    return _compiled


UNREADABLE: Final = -1
"""What stands for the length of what cannot be read."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PartitionLists:
    """Partition lists, read.

    One that cannot be read is empty in the table, and its length in bytes is `UNREADABLE`. `tails` (K, 2) are
    the two int32 that follow each; 0 for each that is not there.
    """

    table: ClaimTable
    lengths: IntArray
    tails: IntArray


def read_partition_lists(blobs: list[bytes]) -> PartitionLists:
    """Read many partition lists, each from the beginning of its bytes."""
    if _compiled is not None:
        return _lists(_compiled.read_partitions(blobs), len(blobs))
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
        ends[number] = reader.offset
        after = blob[reader.offset : reader.offset + 2 * INT32.size]
        for column, (tail,) in enumerate(INT32.iter_unpack(after[: len(after) // 4 * 4])):
            tails[number, column] = tail
    return PartitionLists(table=ClaimTable.of_rows(lists), lengths=ends, tails=tails)


def _lists(read: dict[str, Any], count: int) -> PartitionLists:
    return PartitionLists(
        table=_table(read, read["names"], count),
        lengths=np.frombuffer(read["lengths"], dtype=np.int64),
        tails=_column(read["tails"]).reshape(-1, 2),
    )


def _table(read: dict[str, Any], names: list[str], claimants: int) -> ClaimTable:
    columns = {name: _column(read[name]) for name in ("claimant", "topic", "ids")}
    return ClaimTable(claimants=claimants, names=names, sizes=np.diff(_column(read["bounds"])), **columns)


def _column(raw: bytes) -> IntArray:
    return np.frombuffer(raw, dtype=np.int32).astype(np.int64)


def read_assignments(blobs: list[bytes]) -> tuple[ClaimTable, list[int]]:
    """Read many ConsumerProtocolAssignments: what each gives, and which cannot be read."""
    if _compiled is not None:
        read = _lists(_compiled.read_assignments(blobs), len(blobs))
        return read.table, np.flatnonzero(read.lengths == UNREADABLE).tolist()
    lists: list[list[tuple[str, list[int]]]] = []
    unreadable = []
    for number, blob in enumerate(blobs):
        try:
            lists.append(Reader(blob).assignment().partitions if blob else [])
        except UnreadableError:
            lists.append([])
            unreadable.append(number)
    return ClaimTable.of_rows(lists), unreadable


def write_partition_lists(
    names: Sequence[str], topics: IntArray, ids: IntArray, bounds: IntArray, *, head: bytes, tail: bytes
) -> list[bytes]:
    """Write many partition lists, each with a head and a tail of bytes.

    `topics` and `ids` (S,) are the topic's number and the id of each partition; those of a topic stand
    together. List k has the partitions bounds[k]..bounds[k + 1] - 1. Raises ValueError for a name of more
    than 32,767 bytes.
    """
    encoded = [encode_string(name) for name in names]
    if _compiled is not None:
        written: list[bytes] = _compiled.write_partitions(encoded, topics, ids, bounds, head, tail)
        return written
    raw = ids.astype(">i4").tobytes()
    starts = np.flatnonzero(np.diff(topics, prepend=-1))
    starts = np.unique(np.concatenate((starts, bounds[:-1][bounds[:-1] < topics.size])))
    stops = np.append(starts, topics.size)[1:]
    first_run = np.searchsorted(starts, bounds).tolist()
    runs = [
        (encoded[topic], raw[4 * start : 4 * stop])
        for topic, start, stop in zip(topics[starts].tolist(), starts.tolist(), stops.tolist(), strict=True)
    ]
    return [b"".join((head, _partition_list(runs[first:last]), tail)) for first, last in pairwise(first_run)]


def encode_partition_list(topics: Iterable[tuple[str, bytes]]) -> bytes:
    """Write one partition list, of names and partition ids as big-endian int32.

    Raises ValueError for a name of more than 32,767 bytes.
    """
    return _partition_list([(encode_string(name), ids) for name, ids in topics])


def _partition_list(topics: Sequence[tuple[bytes, bytes]]) -> bytes:
    parts = [INT32.pack(len(topics))]
    for name, ids in topics:
        parts += (name, INT32.pack(len(ids) // 4), ids)
    return b"".join(parts)


def write_topics(names: Collection[str]) -> bytes:
    """Write a ConsumerProtocolSubscription v0 to some topics, as short as it can be.

    Raises ValueError for a name of more than 32,767 bytes.
    """
    return b"".join((bytes(2), INT32.pack(len(names)), *map(encode_string, names), INT32.pack(-1)))


NOT_STATED: Final = -(2**40)
"""What stands for the generation in subscriptions that have none (below v2)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Subscriptions:
    """What ConsumerProtocolSubscriptions of many members say, as columns.

    `topics_of` (M,) is which of the different sets of topics each member subscribes to. User data is empty
    for null. Nothing is owned below v1, generations are `NOT_STATED` below v2. Members that are `unreadable`
    subscribe to nothing. Others are `strange`, with something in them that Kafka never writes: a null among
    the topics, or what cannot be read behind them. Both are numbers of members.
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
    return replace(
        read,
        unreadable=[number for number, one in odd.items() if one is None],
        strange=sorted({*read.strange, *(number for number, one in odd.items() if one and one.fault)}),
    )


def _read_compiled(blobs: list[bytes]) -> Subscriptions | list[int]:
    """Read them by the compiled codec; or the numbers of those in which something is odd."""
    read = _compiled.read_subscriptions(blobs)
    names, racks = read["names"], read["racks"]
    bounds, entries, topics_of = (_column(read[name]) for name in ("topics_bounds", "entries", "topics_of"))
    odd = topics_of < 0
    if None in names:  # it is not UTF-8
        nameless = np.array([name is None for name in names])[entries]
        some = np.add.reduceat(np.append(nameless, [False]), bounds[:-1]) * (np.diff(bounds) > 0)
        odd |= (some > 0)[topics_of]
    rack_names = [rack.decode(errors="replace") or None for rack in racks]
    if any(rack and "\ufffd" in rack for rack in rack_names):
        odd |= [not _is_utf8(rack) for rack in racks]
    if odd.any():
        return [int(number) for number in np.flatnonzero(odd)]
    stated = _column(read["version"]) >= GENERATION_SINCE
    return Subscriptions(
        topics=TopicSets(names=names, bounds=bounds, entries=entries),
        topics_of=topics_of,
        user_data=read["user_data"],
        owned=_table(read, read["owned_names"], len(blobs)),
        generations=np.where(stated, _column(read["generation"]), NOT_STATED),
        racks=rack_names,
        strange=np.flatnonzero(_column(read["strange"])).tolist(),
    )


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _put_together(read: Sequence[SubscriptionFields | None]) -> Subscriptions:
    each = [one or SubscriptionFields(0, ()) for one in read]
    topics: dict[frozenset[str], int] = {}
    owned = read_partition_lists([one.owned for one in each])
    strange = [
        number
        for number, (one, length) in enumerate(zip(each, owned.lengths.tolist(), strict=True))
        if one.fault or (one.owned and length == UNREADABLE)
    ]
    return Subscriptions(
        topics_of=np.array(
            [topics.setdefault(frozenset(one.topics), len(topics)) for one in each], dtype=np.int64
        ),
        topics=TopicSets.of(topics),
        user_data=[one.user_data or b"" for one in each],
        owned=owned.table,
        generations=np.array(
            [NOT_STATED if one.generation is None else one.generation for one in each], dtype=np.int64
        ),
        racks=[one.rack or None for one in each],
        unreadable=[number for number, one in enumerate(read) if one is None],
        strange=strange,
    )


def _written(one: SubscriptionFields | None) -> bytes:
    """What was read of a subscription, in the lowest version that can say it."""
    if one is None:
        return write_topics(())
    data = one.user_data or b""
    parts = [INT32.pack(len(one.topics)), *map(encode_string, one.topics), INT32.pack(len(data)), data]
    if one.generation is None:
        return b"".join((INT16.pack(OWNED_SINCE if one.owned else 0), *parts, one.owned))
    rack = b"\xff\xff" if one.rack is None else encode_string(one.rack)
    owned = one.owned or bytes(INT32.size)
    return b"".join((INT16.pack(RACK_SINCE), *parts, owned, INT32.pack(one.generation), rack))


def _read_subscription(blob: bytes) -> SubscriptionFields | None:
    """What counts in a subscription, also in an odd one; None if it cannot be read."""
    try:
        return Reader(blob).subscription()
    except UnreadableError:
        return None
