"""What another member's subscription may do to kafka-python's leader, and no longer does.

Of any bytes it is in tests/unit/test_fuzz.py.
"""

import struct
from typing import Any

import pytest
from hypothesis import given, strategies as st

from kafka_assignors._wire.repair import read_repaired
from tests.support.effort import with_memory
from tests.support.wire import ODD, partition_list, subscription

NOTHING = bytes.fromhex("0001 00000000 00000000 00000000")
"""Version 1; no topics, no user data, nothing owned."""

LEGAL = st.from_regex(r"[a-zA-Z0-9_-][a-zA-Z0-9._-]{0,8}", fullmatch=True)


def repaired(raw: bytes) -> tuple[bytes, str] | None:
    """What is put in place of a subscription between others that are fine, and why."""
    good = [subscription(3, ["t"]), subscription(0, ["u"])]
    _, found = read_repaired([good[0], raw, good[1]])
    assert found.keys() <= {1}
    return (found[1].subscription, found[1].fault) if found else None


@pytest.mark.parametrize(
    "raw",
    [b"", bytes.fromhex("0003 7fffffff"), subscription(0, [b"\xff"])],
    ids=["no bytes", "absurd count", "topic not UTF-8"],
)
def test_what_cannot_be_read_is_nothing(raw: bytes) -> None:
    assert repaired(raw) == (NOTHING, f"gets nothing: its subscription ({len(raw)} bytes) cannot be read")


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a b", "ü", "t\n", "x" * 250, "x" * 32_767], ids=lambda name: name[:9]
)
@pytest.mark.parametrize("version", range(4))
def test_names_that_no_topic_can_have_are_left_out_and_the_rest_stays(version: int, name: str) -> None:
    legal = ["...", "-", "A.b_c-9", "x" * 249]
    rest: dict[str, Any] = {
        "user_data": b"u",
        "owned": partition_list([("a/b", [3])]),
        "generation": 7,
        "rack": "r",
    }
    found = repaired(subscription(version, [*legal, name], **rest))
    assert found is not None
    assert found[0] == subscription(
        1 if version < 2 else 3,
        sorted(legal),
        user_data=b"u",
        owned=partition_list([("a/b", [3])] if version else []),
        generation=7,
        rack="r" if version == 3 else None,
    )
    assert found[1].startswith("subscribes to what cannot be a topic, ['")
    assert len(found[1]) < 100


@pytest.mark.parametrize("name", ODD)
def test_what_kafka_never_writes_does_not_count(name: str) -> None:
    raw, rest = ODD[name]
    fault = "names a null as a topic, or cannot be read behind its topics: that does not count"
    counts = {"user_data": b"", **rest, "owned": partition_list(rest.get("owned", ()))}
    assert repaired(raw) == (subscription(3 if "generation" in rest else 1, ["t"], **counts), fault)


@given(
    st.lists(
        st.builds(
            subscription,
            st.integers(0, 9),
            st.lists(LEGAL, max_size=4),
            user_data=st.none() | st.binary(max_size=9),
            owned=st.lists(st.tuples(st.text(max_size=9), st.just([0])), max_size=3).map(partition_list),
            rack=st.none() | st.text(max_size=3),
        )
    )
)
def test_what_is_right_is_left_alone(blobs: list[bytes]) -> None:
    assert read_repaired(blobs)[1] == {}


def test_a_megabyte_of_names_takes_megabytes() -> None:
    raw = subscription(3, [struct.pack(">I", number).hex() for number in range(100_000)] + [""])
    found, peak = with_memory(lambda: read_repaired([raw])[1])
    assert len(found[0].subscription) == len(raw) - 2
    assert peak < 50 * len(raw)
