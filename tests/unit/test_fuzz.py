"""What the fuzzer looks at for long, for a moment: its seeds, these damaged, and what it ever found."""

import pytest
from hypothesis import given, strategies as st

from tests.fuzz.__main__ import NAMES
from tests.fuzz.targets import SEPARATOR, STRATEGIES, TARGETS, check_leader
from tests.support.wire import SUBSCRIPTIONS, any_of, damaged

FOUND = [
    # A tag for sequences before a scalar, the letters of which were then taken for its items.
    ("group-file", b"yaml\ntopics: {t: 3}\nmembers:\n  c1:\n    topics: !!seq 'text'\n"),
    ("group-file", b"yaml\ntopics: !!map 'text'\nmembers: {c1: }\n"),
    ("group-file", b"yaml\ntopics: !!str [t]\nmembers: !!int {c1: }\n"),
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


@given(st.sampled_from(range(len(STRATEGIES))), any_of(SUBSCRIPTIONS))
def test_a_leader_holds_with_members_of_every_kind(strategy: int, blobs: list[bytes]) -> None:
    check_leader(bytes([strategy]) + SEPARATOR.join(blobs))
