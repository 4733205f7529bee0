"""What the fuzzer looks at for long, for a moment: its seeds, these damaged, and what it ever found."""

import math

import pytest
from hypothesis import given, strategies as st

from kafka_assignors._model.claims import Extra
from kafka_assignors._model.members import MAX_PRIORITY, MAX_WEIGHT
from kafka_assignors._wire.measured import Measured, encode_measured
from kafka_assignors._wire.offsets_topic import encode_group_metadata, group_metadata_key
from kafka_assignors._wire.user_data import encode_sticky
from tests.fuzz.__main__ import NAMES
from tests.fuzz.targets import NEXT, SEPARATOR, STRATEGIES, TARGETS, check_leader
from tests.support.offsets_topic import groups
from tests.support.wire import (
    ASSIGNMENTS,
    ENTRIES,
    INT32,
    NAMES as TOPIC_NAMES,
    SUBSCRIPTIONS,
    any_of,
    damaged,
    partition_list,
    subscription,
)

MEASURES = st.dictionaries(
    st.tuples(TOPIC_NAMES, st.integers(0, 6)),
    st.builds(Measured, *(st.floats(0, 1e30) | st.just(math.nan) for _ in range(3))),
    max_size=20,
)
CLAIMS = st.dictionaries(TOPIC_NAMES, st.lists(INT32, max_size=20), max_size=8)
KEY = group_metadata_key("g")
INTACT = groups().map(encode_group_metadata)
RECORDS = INTACT | damaged(INTACT)
DRAWN = {
    "partition-lists": any_of(ENTRIES.map(partition_list)),
    "subscriptions": any_of(SUBSCRIPTIONS),
    "user-data": any_of(
        st.builds(
            encode_sticky,
            CLAIMS,
            INT32,
            st.integers(1, MAX_WEIGHT),
            st.builds(Extra, st.integers(-MAX_PRIORITY, MAX_PRIORITY), st.binary(max_size=20)),
        )
    ),
    "measured": damaged(MEASURES.map(encode_measured)).map(lambda raw: [raw]),
    "read-assignments": any_of(ASSIGNMENTS),
    "offsets-topic": RECORDS.map(lambda raw: [KEY, raw]),
    "history-tables": st.lists(RECORDS, max_size=5).map(
        lambda some: [NEXT.join(KEY + SEPARATOR + raw for raw in some)]
    ),
}
"""By target: blobs like what members and brokers send, damaged, and any bytes."""

FOUND = [
    # A tag for sequences before a scalar, the letters of which were then taken for its items.
    ("group-file", b"yaml\ntopics: {t: 3}\nmembers:\n  c1:\n    topics: !!seq 'text'\n"),
    ("group-file", b"yaml\ntopics: !!map 'text'\nmembers: {c1: }\n"),
    ("group-file", b"yaml\ntopics: !!str [t]\nmembers: !!int {c1: }\n"),
    ("subscriptions", subscription(0, [""])),
    ("subscriptions", subscription(0, [None])),
    ("subscriptions", subscription(1, ["t"], owned=partition_list([(b"\xff", [])]))),
]
"""Target and input of every failure that fuzzing brought to light."""


def test_every_target_has_a_name_on_the_command_line() -> None:
    assert tuple(TARGETS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_seeds_hold(name: str) -> None:
    for seed in TARGETS[name].seeds():
        TARGETS[name].check(seed)


@pytest.mark.parametrize(("name", "data"), FOUND)
def test_what_was_found_holds(name: str, data: bytes) -> None:
    TARGETS[name].check(data)


@pytest.mark.parametrize("name", NAMES)
@given(st.data())
def test_damaged_seeds_hold(name: str, data: st.DataObject) -> None:
    seeds = st.sampled_from(TARGETS[name].seeds())
    TARGETS[name].check(data.draw(damaged(seeds) | st.binary(max_size=60)))


@pytest.mark.parametrize("name", DRAWN)
@given(st.data())
def test_what_is_drawn_holds(name: str, data: st.DataObject) -> None:
    TARGETS[name].check(SEPARATOR.join(data.draw(DRAWN[name])))


@given(st.sampled_from(range(len(STRATEGIES))), any_of(SUBSCRIPTIONS))
def test_a_leader_holds_with_members_of_every_kind(strategy: int, blobs: list[bytes]) -> None:
    check_leader(bytes([strategy]) + SEPARATOR.join(blobs))
