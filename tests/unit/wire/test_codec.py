"""The consumer protocol's bytes in bulk: compiled, in Python, and as kafka-python writes and reads them.

That both ways read and write the same, and each as if it were alone, is in tests/unit/test_fuzz.py. What is
read of odd bytes is in test_offsets_topic.py and test_user_data.py: all of it with one reader.
"""

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from kafka_assignors._wire import codec
from kafka_assignors._wire.codec import UNREADABLE
from kafka_assignors._wire.reader import Reader
from tests.support.effort import assert_takes, with_memory
from tests.support.wire import (
    ENTRIES,
    INT32,
    NAMES,
    SUBSCRIPTIONS,
    TOPICS,
    Entries,
    Subscription,
    partition_list,
    read_lists,
    read_subscriptions,
    subscription,
)

IN_PYTHON = None
needs_compiler = pytest.mark.skipif(codec._compiled is None, reason="installed without a compiler")


@contextmanager
def using(way: Any) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(codec, "_compiled", way)
        yield


@pytest.fixture(
    scope="class",
    params=[
        pytest.param(codec._compiled, id="compiled", marks=needs_compiler),
        pytest.param(IN_PYTHON, id="python"),
    ],
)
def way(request: pytest.FixtureRequest) -> Iterator[None]:
    with using(request.param):
        yield


each_way = pytest.mark.usefixtures("way")


NO_TOPICS = Subscription(frozenset())
LONGEST = "ä" * 16383 + "x"


def write_lists(lists: list[Entries]) -> list[bytes]:
    """Write lists in which no topic comes twice in a row."""
    names = sorted({name for entries in lists for name, _ in entries})
    rows = [
        (names.index(name), partition)
        for entries in lists
        for name, partitions in entries
        for partition in partitions
    ]
    sizes = [sum(len(partitions) for _, partitions in entries) for entries in lists]
    columns = np.array(rows, dtype=np.int64).reshape(-1, 2)
    return codec.write_partition_lists(
        names,
        columns[:, 0].copy(),
        columns[:, 1].copy(),
        np.concatenate(([0], np.cumsum(sizes, dtype=np.int64))),
        head=b"",
        tail=b"",
    )


def merged(entries: Entries) -> Entries:
    by_topic: dict[str, list[int]] = {}
    for name, ids in entries:
        by_topic.setdefault(name, []).extend(ids)
    return list(by_topic.items())


def tail_of(behind: bytes) -> list[int]:
    """The two integers that begin these bytes, 0 for each that does not stand there."""
    whole = behind[: len(behind) // 4 * 4][:8]
    return [number for (number,) in struct.iter_unpack(">i", whole.ljust(8, b"\0"))]


REFUSED: tuple[Entries, int, list[int]] = ([], UNREADABLE, [0, 0])


@each_way
class TestReadingPartitionLists:
    @given(st.lists(st.tuples(ENTRIES, st.binary(max_size=8)), max_size=5))
    def test_what_stands_there_is_read_and_what_follows_is_not(
        self, sent: list[tuple[Entries, bytes]]
    ) -> None:
        raw = [partition_list(entries) for entries, _ in sent]
        blobs = [one + tail for one, (_, tail) in zip(raw, sent, strict=True)]
        expected = [
            (merged(entries), len(one), tail_of(tail)) for one, (entries, tail) in zip(raw, sent, strict=True)
        ]
        assert read_lists(blobs) == expected

    def test_many_names_are_told_apart(self) -> None:
        """More than any first guess of how many there are, alike but for a byte, of all short lengths."""
        names = ["x" * length + f"{number}" for length in range(20) for number in range(100)]
        entries = [(name, [number]) for number, name in enumerate(dict.fromkeys(names))]
        blobs = [partition_list(entries), partition_list(entries[::-1]), partition_list(entries[::7])]
        assert read_lists(blobs) == [
            (expected, len(blob), [0, 0])
            for expected, blob in zip((entries, entries[::-1], entries[::7]), blobs, strict=True)
        ]

    def test_a_name_may_have_32767_bytes(self) -> None:
        raw = partition_list([(LONGEST, [1])])
        assert read_lists([raw, raw[:-1]]) == [([(LONGEST, [1])], len(raw), [0, 0]), REFUSED]


@each_way
class TestWritingPartitionLists:
    def test_the_same_topic_at_the_end_of_a_list_and_at_the_start_of_the_next_stands_in_both(self) -> None:
        lists: list[Entries] = [[], [("t", [0, 1])], [("t", [2])], [], [("t", [3]), ("u", [0])], []]
        assert write_lists(lists) == [partition_list(one) for one in lists]

    def test_a_name_has_up_to_32767_bytes(self) -> None:
        assert write_lists([[(LONGEST, [1])]]) == [partition_list([(LONGEST, [1])])]
        with pytest.raises(ValueError, match="a string of 32768 bytes is too long"):
            write_lists([[("ä" * 16384, [1])]])


@needs_compiler
@pytest.mark.parametrize(
    ("topics", "ids", "bounds"),
    [
        ([0], [0], [0, 2]),
        ([0], [0], [1, 1]),
        ([0, 0], [0, 0], [0, 2, 1, 2]),
        ([0], [0, 1], [0, 1]),
        ([1], [0], [0, 1]),
        ([-1], [0], [0, 1]),
        ([], [], []),
    ],
)
def test_compiled_nothing_is_written_of_arrays_that_do_not_fit(
    topics: list[int], ids: list[int], bounds: list[int]
) -> None:
    columns = [np.array(each, dtype=np.int64) for each in (topics, ids, bounds)]
    with pytest.raises(ValueError, match="do not fit each other"):
        codec._compiled.write_partitions([b"t"], *columns, b"", b"")


@needs_compiler
def test_compiled_what_is_no_bytes_or_no_array_is_an_error() -> None:
    nothing = np.empty(0, dtype=np.int64)
    bounds = np.zeros(1, dtype=np.int64)
    with pytest.raises(TypeError):
        codec._compiled.write_partitions(["t"], nothing, nothing, bounds, b"", b"")
    with pytest.raises(TypeError):
        codec._compiled.write_partitions([], nothing, None, bounds, b"", b"")
    for read in (
        codec._compiled.read_partitions,
        codec._compiled.read_subscriptions,
        codec._compiled.read_assignments,
    ):
        with pytest.raises(TypeError, match="blobs must be a list of bytes"):
            read((b"",))
        with pytest.raises(TypeError):
            read([b"\0\0\0\0", "text"])


@each_way
class TestReadingSubscriptions:
    @given(st.integers(0, 3), TOPICS, ENTRIES, st.data())
    def test_subscriptions_are_kafka_pythons_byte_by_byte(
        self, version: int, topics: list[str | None], owned: Entries, data: st.DataObject
    ) -> None:
        user_data = data.draw(st.none() | st.binary(max_size=9))
        generation, rack = data.draw(INT32), data.draw(st.none() | NAMES)
        names = [topic for topic in topics if topic is not None]
        theirs = ConsumerProtocolSubscription(
            version=version,
            topics=names,
            user_data=user_data,
            owned_partitions=[
                ConsumerProtocolSubscription.TopicPartition(topic=topic, partitions=ids)
                for topic, ids in owned
            ],
            generation_id=generation,
            rack_id=rack,
        ).encode()
        ours, with_nulls = (
            subscription(
                version,
                listed,
                user_data=user_data,
                owned=partition_list(owned),
                generation=generation,
                rack=rack,
            )
            for listed in (names, topics)
        )
        assert ours == theirs
        expected = Subscription(
            topics=frozenset(names),
            user_data=user_data or b"",
            owned=tuple(merged(owned)) if version >= 1 else (),
            generation=generation if version >= 2 else None,
            rack=(rack or None) if version >= 3 else None,
        )
        assert read_subscriptions([theirs, with_nulls]) == [expected, expected]

    @given(SUBSCRIPTIONS)
    def test_what_ends_among_the_topics_cannot_be_read_and_what_ends_behind_them_can(
        self, raw: bytes
    ) -> None:
        whole = read_subscriptions([raw])[0]
        assert (whole is None) == (raw[:2] == b"\xff\xff")
        cut = read_subscriptions([raw[:end] for end in range(len(raw))])
        if whole is None:
            assert cut == [None] * len(raw)
            return
        reader = Reader(raw)
        reader.version()
        for _ in range(reader.int32("the topics")):
            reader.string("a topic")
        assert cut[: reader.offset] == [None] * reader.offset
        assert [one and one.topics for one in cut[reader.offset :]] == [whole.topics] * (
            len(raw) - reader.offset
        )

    def test_equal_topics_have_one_number(self) -> None:
        read = codec.read_subscriptions(
            [
                subscription(0, ["t", "u"]),
                subscription(0, ["u"]),
                subscription(3, ["t", "u"], user_data=b"u", generation=4, rack="r"),
            ]
        )
        assert read.topics_of.tolist() == [0, 1, 0]
        assert list(read.topics) == [{"t", "u"}, {"u"}]

    def test_topics_that_begin_with_anothers_topics_are_told_apart(self) -> None:
        """As bytes, each of these lists of topics and user data begins as the one before."""
        lists: list[list[str | None]] = [["a"], ["a", "b"], ["a", "b", "c"], ["a", "b"], ["a"], [], ["a"]]
        found = read_subscriptions([subscription(0, one) for one in lists])
        assert [each and each.topics for each in found] == [frozenset(one) for one in lists]


OWNS = "0003 00000000 ffffffff 00000001 0001 74"
NO_RACK = "0003 00000000 ffffffff 00000000 00000000 7fff"
ABSURD: dict[str, tuple[Callable[[list[bytes]], Any], str, Any]] = {
    "lists": (read_lists, "7fffffff", REFUSED),
    "partitions": (read_lists, "00000001 0001 74 7fffffff", REFUSED),
    "partitions of 2 GiB": (read_lists, "00000001 0001 74 20000000", REFUSED),
    "partitions that wrap to 4 bytes": (read_lists, "00000001 0001 74 40000001", REFUSED),
    "name": (read_lists, "00000001 7fff", REFUSED),
    "topics": (read_subscriptions, "0003 7fffffff", None),
    "topic": (read_subscriptions, "0003 00000001 7fff", None),
    "user data": (read_subscriptions, "0003 00000000 7fffffff", NO_TOPICS),
    "owned": (read_subscriptions, "0003 00000000 ffffffff 7fffffff", NO_TOPICS),
    "owned partitions": (read_subscriptions, f"{OWNS} 7fffffff", NO_TOPICS),
    "owned partitions of 4 GiB": (read_subscriptions, f"{OWNS} 40000000", NO_TOPICS),
    "rack": (read_subscriptions, NO_RACK, NO_TOPICS._replace(generation=0)),
}


@each_way
@pytest.mark.parametrize("name", ABSURD)
def test_an_absurd_count_takes_neither_memory_nor_time(name: str) -> None:
    read, head, expected = ABSURD[name]
    blobs = [bytes.fromhex(head) + b"\0" * 4_000] * 50
    found, peak = with_memory(lambda: read(blobs))
    assert found == [expected] * 50
    assert peak < 1_000_000
    assert_takes(lambda: read(blobs), million_steps=100)


@needs_compiler
@pytest.mark.parametrize(
    "odd",
    [
        b"\0",
        subscription(0, [b"\xff"]),
        subscription(3, ["t", None], owned=partition_list([("t", [5])]), generation=-(2**31)),
        subscription(3, [], rack=b"\xff"),
        subscription(1, ["u"], owned=b"\xff\xff\xff\xff"),
    ],
    ids=["unreadable", "topic not UTF-8", "null topic", "rack not UTF-8", "null owned partitions"],
)
def test_an_odd_one_does_not_make_others_slow(odd: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """The Python version takes 100 times as long; it reads the odd one alone."""
    good = [subscription(3, ["t", "u"], owned=partition_list([("u", [2])]), generation=7, rack="\ufffd")] * 9
    one_by_one: list[bytes] = []
    read = codec._read_subscription

    def look(blob: bytes) -> Any:
        one_by_one.append(blob)
        return read(blob)

    monkeypatch.setattr(codec, "_read_subscription", look)
    found = read_subscriptions([*good, odd, *good])
    assert set(one_by_one) <= {odd}
    with using(IN_PYTHON):
        assert found == read_subscriptions([*good, odd, *good])
