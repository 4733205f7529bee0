"""What members send of what they measured. What holds of any bytes is in tests/unit/test_fuzz.py."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given, strategies as st

from kafka_assignors._wire.measured import (
    LIMIT,
    MOST,
    ONE_BY_ONE,
    Measured,
    decode_measured,
    encode_measured,
)

UNKNOWN = st.just(math.nan)
MEASURED = st.builds(
    Measured, *(st.floats(0, float(np.float32(most * 0.99)), width=32) | UNKNOWN for most in MOST)
)
MEASURES = st.dictionaries(st.tuples(st.text(max_size=90), st.integers(0, 2**31 - 1)), MEASURED, max_size=150)


def test_each_number_is_where_the_layout_has_it() -> None:
    measured = {("t", 7): Measured(0.5, 1024, 2), ("t", 8): Measured()}
    assert encode_measured(measured) == bytes.fromhex(
        "0001 0001 0001 74 bf800000 bf800000 bf800000 0002"
        "00000007 3f000000 44800000 40000000 00000008 bf800000 bf800000 bf800000"
    )
    assert encode_measured({}) == b""


@given(MEASURES)
def test_what_is_written_is_bounded_and_read_again(measured: dict[tuple[str, int], Measured]) -> None:
    raw = encode_measured(measured)
    assert len(raw) <= LIMIT
    assert raw == encode_measured(dict(reversed(measured.items())))
    topics, fault = decode_measured(raw)
    assert fault is None
    assert sum(one.ids.size for one in topics) <= ONE_BY_ONE
    for one in topics:
        alone = set(one.ids.tolist())
        for number, numbers in zip(one.ids.tolist(), one.numbers, strict=True):
            np.testing.assert_array_equal(numbers, np.array(measured[one.name, number], dtype=">f4"))
        others = [
            value for (name, number), value in measured.items() if name == one.name and number not in alone
        ]
        for column, mean in enumerate(one.others):
            known = [value[column] for value in others if not math.isnan(value[column])]
            assert math.isnan(mean) if not known else mean == pytest.approx(np.mean(known), rel=1e-6)


def test_the_partitions_with_the_most_work_stand_one_by_one_and_the_rest_as_the_mean_of_their_topic() -> None:
    measured = {("t", number): Measured(1.0, number, 0.0) for number in range(300)}
    measured["long" * 60, 0] = Measured(1.0, 1e6, 0.0)
    first, second = decode_measured(encode_measured(measured))[0]
    assert (first.name, first.ids.tolist()) == ("long" * 60, [0])
    assert (second.ids.tolist(), second.others[1]) == ([*range(201, 300)], 100.0)


def test_without_room_for_all_topics_those_with_the_most_work_are_sent() -> None:
    measured = {(f"{number:0200}", 0): Measured(1.0, number, 0.0) for number in range(60)}
    sent = [int(one.name) for one in decode_measured(encode_measured(measured))[0]]
    assert sent == [*range(60 - len(sent), 60)]
    assert len(sent) == (LIMIT - 4) // (2 + 200 + 12 + 2 + 16)


@pytest.mark.parametrize("bad", [-0.5, math.inf, -math.inf, 1e5, 3e38])
def test_a_number_that_cannot_be_counts_as_unknown_and_is_named(bad: float) -> None:
    good, other = encode_measured({("t", 0): Measured(0.25, 9, 1)}), struct.pack(">f", 0.25)
    (topic,), fault = decode_measured(good.replace(other, struct.pack(">f", bad)))
    assert fault == f"{np.float32(bad):g} is no cost, lag or rate"
    np.testing.assert_array_equal(topic.numbers, [[math.nan, 9, 1]])
    assert (
        decode_measured(good.replace(other, struct.pack(">f", math.nan)))[1] == "nan is no cost, lag or rate"
    )


@pytest.mark.parametrize(
    ("raw", "fault"),
    [
        (b"\0", "the version needs 2 bytes, 1 are left"),
        (b"\0\0\0\0", "there is no version 0 of measures"),
        (b"\xff\xff\0\0", "there is no version -1"),
        (b"\0\1\xff\xff", "the number of topics is -1"),
        (b"\0\1\0\2", "the length of a topic's name needs 2 bytes, 0 are left"),
        (b"\0\1\0\1\0\1\xff", "a topic's name b'\\xff' is not UTF-8"),
        (b"\0\1\0\1\0\1t" + bytes(12) + b"\xff\xff", "partitions is negative (-16)"),
        (b"\0\1\0\1\0\1t" + bytes(12) + b"\x7f\xff", "partitions needs 524272 bytes, 0 are left"),
        (b"\0\1" + bytes(LIMIT), f"{LIMIT + 2} bytes are more than the {LIMIT} that are read"),
    ],
)
def test_what_cannot_be_read_counts_as_not_there_and_is_named(raw: bytes, fault: str) -> None:
    assert decode_measured(raw) == ([], fault)


def test_what_stands_before_the_fault_counts() -> None:
    whole = encode_measured({("a", 0): Measured(1, 2, 3), ("b", 0): Measured(4, 5, 6)})
    for end in range(1, len(whole)):
        topics, fault = decode_measured(whole[:end])
        assert fault is not None
        assert [one.name for one in topics] == (["a"] if end >= 4 + 3 + 12 + 2 + 16 else [])


def test_what_later_versions_append_is_not_read() -> None:
    raw = encode_measured({("t", 0): Measured(1, 2, 3)})
    topics, fault = decode_measured(b"\0\2" + raw[2:] + b"more")
    assert (topics[0].name, fault) == ("t", None)
