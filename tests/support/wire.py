"""Subscriptions by hand, which may be wrong, and what is read in them; any number of them, for hypothesis."""

import struct
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st

from kafka_assignors._wire import codec
from kafka_assignors._wire.codec import NOT_STATED
from kafka_assignors._wire.user_data import encode_generation, encode_sticky

Entries = list[tuple[str, list[int]]]
"""A partition list: topics in the order in which they come, with their ids."""

NOTHING = struct.pack(">i", 0)
NULL = struct.pack(">i", -1)


def string(text: str | bytes | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    raw = text.encode() if isinstance(text, str) else text
    return struct.pack(">h", len(raw)) + raw


def partition_list(entries: Sequence[tuple[str | bytes | None, Sequence[int]]]) -> bytes:
    return struct.pack(">i", len(entries)) + b"".join(
        string(name) + struct.pack(f">{len(ids) + 1}i", len(ids), *ids) for name, ids in entries
    )


def subscription(
    version: int,
    topics: Sequence[str | bytes | None],
    *,
    user_data: bytes | None = None,
    owned: bytes = NOTHING,
    generation: int = -1,
    rack: str | bytes | None = None,
) -> bytes:
    raw = struct.pack(">hi", version, len(topics)) + b"".join(map(string, topics))
    raw += NULL if user_data is None else struct.pack(">i", len(user_data)) + user_data
    raw += owned if version >= 1 else b""
    raw += struct.pack(">i", generation) if version >= 2 else b""
    return raw + (string(rack) if version >= 3 else b"")


class Subscription(NamedTuple):
    """What one subscription says; generation None if nothing."""

    topics: frozenset[str]
    user_data: bytes = b""
    owned: tuple[tuple[str, list[int]], ...] = ()
    generation: int | None = None
    rack: str | None = None


def read_lists(blobs: list[bytes]) -> list[tuple[Entries, int, list[int]]]:
    """For each list what stands in it, its length, and the two integers behind it."""
    lists = codec.read_partition_lists(blobs)
    assert lists.table.claimants == len(blobs)
    assert lists.tails.shape == (len(blobs), 2)
    claims = [list(claims.items()) for claims in lists.table.claims()]
    return list(zip(claims, lists.lengths.tolist(), lists.tails.tolist(), strict=True))


def read_subscriptions(blobs: list[bytes]) -> list[Subscription | None]:
    """Each subscription, None for one that cannot be read."""
    read = codec.read_subscriptions(blobs)
    assert read.owned.claimants == len(blobs)
    found: list[Subscription | None] = [
        Subscription(
            topics=read.topics[place],
            user_data=bytes(user_data),
            owned=tuple(owned.items()),
            generation=None if generation == NOT_STATED else generation,
            rack=rack,
        )
        for place, user_data, owned, generation, rack in zip(
            read.topics_of.tolist(),
            read.user_data,
            read.owned.claims(),
            read.generations.tolist(),
            read.racks,
            strict=True,
        )
    ]
    for number in read.unreadable:
        assert found[number] == Subscription(frozenset())
        found[number] = None
    return found


def read_assignments(blobs: list[bytes]) -> list[Entries | None]:
    """What each assignment gives, None for one that cannot be read."""
    given, unreadable = codec.read_assignments(blobs)
    assert given.claimants == len(blobs)
    claims = [list(claim.items()) for claim in given.claims()]
    assert not any(claims[number] for number in unreadable)
    return [None if number in unreadable else claim for number, claim in enumerate(claims)]


ODD: Mapping[str, tuple[bytes, dict[str, Any]]] = {
    "no owned partitions": (bytes.fromhex("0001 00000001 0001 74 ffffffff"), {}),
    "nothing behind the topics": (bytes.fromhex("0003 00000001 0001 74"), {}),
    "negative user data": (bytes.fromhex("0000 00000001 0001 74 fffffffe"), {}),
    "less user data than announced": (bytes.fromhex("0003 00000001 0001 74 00000009 00"), {}),
    "null list of owned partitions": (
        subscription(2, ["t"], user_data=b"u", owned=NULL, generation=4),
        {"user_data": b"u", "generation": 4},
    ),
    "null owned topic": (subscription(1, ["t"], owned=partition_list([(None, [])])), {}),
    "null partitions": (bytes.fromhex("0001 00000001 0001 74 ffffffff 00000001 0001 74 ffffffff"), {}),
    "owned topic not UTF-8": (
        subscription(2, ["t"], owned=partition_list([("t", [0]), (b"\xff", [1])]), generation=4),
        {"generation": 4},
    ),
    "no generation": (
        subscription(1, ["t"], owned=partition_list([("t", [1])])).replace(b"\0\1", b"\0\2", 1),
        {"owned": (("t", [1]),)},
    ),
    "no rack": (
        subscription(2, ["t"], owned=partition_list([("t", [1])]), generation=4).replace(b"\0\2", b"\0\3", 1),
        {"owned": (("t", [1]),), "generation": 4},
    ),
    "negative rack": (
        bytes.fromhex("0003 00000001 0001 74 ffffffff 00000000 00000007 fffe"),
        {"generation": 7},
    ),
    "rack not UTF-8": (subscription(3, ["t"], generation=7, rack=b"\xff"), {"generation": 7}),
    "null topic": (subscription(3, [None, "t"], generation=7, rack="r"), {"generation": 7, "rack": "r"}),
}
"""Subscriptions to t with something that Kafka never writes, and what counts in them beside the topic."""

INT32 = st.integers(-(2**31), 2**31 - 1)
NAMES = st.text(max_size=9)
ENTRIES = st.lists(st.tuples(NAMES, st.lists(INT32, max_size=6)), max_size=5)
TOPICS = st.lists(st.none() | NAMES, max_size=4)
USER_DATA = (
    st.none()
    | st.binary(max_size=9)
    | st.builds(encode_generation, st.integers(-1, 5), st.integers(1, 3))
    | st.builds(
        encode_sticky, st.dictionaries(NAMES, st.lists(INT32, max_size=3), max_size=3), st.integers(-1, 5)
    )
)
SUBSCRIPTIONS = st.builds(
    subscription,
    st.integers(-1, 4),
    TOPICS,
    user_data=USER_DATA,
    owned=ENTRIES.map(partition_list),
    generation=INT32,
    rack=st.none() | NAMES,
)
ASSIGNMENTS = st.builds(
    lambda version, entries, user_data, more: (
        struct.pack(">h", version) + partition_list(entries) + user_data + more
    ),
    st.integers(-1, 4),
    ENTRIES,
    st.just(NULL) | st.binary(max_size=5).map(lambda data: struct.pack(">i", len(data)) + data),
    st.just(b"") | st.binary(max_size=5),
)


@st.composite
def damaged(draw: st.DrawFn, intact: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that were right until some were changed, cut off, left out or put in."""
    raw = bytearray(draw(intact))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(raw)))
        stop = draw(st.sampled_from([start, start + 1, start + 2, start + 4, len(raw)]))
        few = st.sampled_from([b"\0", b"\1", b"\x7f", b"\x80", b"\xff", b"\xff\xff", b"\x7f\xff\xff\xff"])
        raw[start:stop] = draw(st.just(b"") | few | st.binary(max_size=4))
    return bytes(raw)


def any_of(intact: st.SearchStrategy[bytes]) -> st.SearchStrategy[list[bytes]]:
    return st.lists(intact | damaged(intact) | st.binary(max_size=40), max_size=6)
