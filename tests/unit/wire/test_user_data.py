"""The layouts of sticky user data. What holds of any bytes is in tests/unit/test_fuzz.py."""

import struct

import pytest

from kafka_assignors._wire.reader import UnreadableError
from kafka_assignors._wire.user_data import (
    decode_generation,
    decode_sticky,
    encode_sticky,
)
from tests.support.effort import with_memory

# t0-0 and t0-1 in generation 7; the other layouts in use are read in test_offsets_topic.py.
JAVA_V1 = bytes.fromhex("00000001 0002 7430 00000002 00000000 00000001 00000007")


def test_writes_javas_layout_with_topics_and_partitions_sorted() -> None:
    assert encode_sticky({"t0": [1, 0]}, 7) == JAVA_V1
    assert encode_sticky({"b": [], "a": [3]}, -1) == bytes.fromhex(
        "00000002 0001 61 00000001 00000003 0001 62 00000000 ffffffff"
    )


def test_a_topic_named_twice_counts_once_with_all_its_partitions() -> None:
    data = bytes.fromhex("00000002 0001 61 00000001 00000003 0001 61 00000001 00000005 00000001")
    assert decode_sticky(data).claims == {"a": [3, 5]}


IN_NO_LAYOUT = {
    "empty": b"",
    "one byte": b"\x00",
    "truncated": JAVA_V1[:-1],
    "a byte too many": JAVA_V1 + b"\x00",
    "weight cut off": JAVA_V1 + b"\x00" * 3,
    "a byte behind the weight": JAVA_V1 + b"\x00" * 5,
    "absurd topics": struct.pack(">i", 2**31 - 1),
    "negative topics": struct.pack(">i", -1),
    "negative name length": bytes.fromhex("00000001 ffff"),
    "name not utf-8": bytes.fromhex("00000001 0002 fffe 00000000 00000001"),
    "absurd partitions": bytes.fromhex("00000001 0001 61 7fffffff 00000000"),
    "negative partitions": bytes.fromhex("00000001 0001 61 80000000 00000000"),
    "unknown version": bytes.fromhex("0002 00000001 0002 7430 00000001 00000000 00000007"),
}


@pytest.mark.parametrize("data", IN_NO_LAYOUT.values(), ids=IN_NO_LAYOUT)
def test_bytes_in_no_layout_are_an_error_of_their_own(data: bytes) -> None:
    with pytest.raises(UnreadableError, match=f"{len(data)} bytes are no sticky user data"):
        decode_sticky(data)


def test_an_absurd_count_costs_no_memory() -> None:
    def refused() -> None:
        with pytest.raises(UnreadableError):
            decode_sticky(struct.pack(">i", 2**31 - 1) + b"\x00" * 1_000)

    assert with_memory(refused)[1] < 100_000


@pytest.mark.parametrize("data", [b"", b"\x00\x00\x00", b"\x00" * 5, bytes.fromhex("00000000 00000007")])
def test_other_user_data_is_no_generation(data: bytes) -> None:
    assert decode_generation(data) is None
