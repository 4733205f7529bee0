"""Placements that are drawn; that they are Java's is in tests/oracle/test_java_placement.py."""

import re
from collections.abc import Callable

import pytest

from kafka_assignors._wire.java.random import JavaRandom
from kafka_assignors.placement._generators import place_rack_aware
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._striped import place_striped

NINE = {broker: f"rack{broker // 3 + 1}" for broker in range(9)}


def test_start_index_and_shift_are_drawn_in_this_order() -> None:
    random = JavaRandom(7)
    start, shift = random.next_int(9), random.next_int(9)
    brokers = range(9)
    drawn = place_rack_aware(20, 3, dict.fromkeys(brokers), seed=7)
    assert drawn == place_rack_aware(20, 3, dict.fromkeys(brokers), start_index=start, shift=shift)
    other = place_rack_aware(20, 3, dict.fromkeys(brokers), shift=shift + 1, seed=7)
    assert other == place_rack_aware(20, 3, dict.fromkeys(brokers), start_index=start, shift=shift + 1)
    assert place_rack_aware(20, 3, NINE, shift=shift, seed=7) == place_rack_aware(20, 3, NINE, seed=7)


def test_without_a_seed_placements_differ() -> None:
    generators: list[Callable[[], dict[int, list[int]]]] = [
        lambda: place_rack_aware(1, 3, dict.fromkeys(range(1000))),
        lambda: place_rack_aware(1, 3, {broker: f"rack{broker % 7}" for broker in range(1000)}),
        lambda: place_striped(1, 3, {broker: f"rack{broker % 7}" for broker in range(1000)}),
    ]
    for generate in generators:
        assert len({str(generate()) for _ in range(10)}) > 1


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (
            lambda: place_rack_aware(0, 1, {1: None}),
            "partitions is 0: there is nothing to place; ask for 1 or more",
        ),
        (
            lambda: place_rack_aware(1, -1, {1: "a"}),
            "replication_factor is -1: each partition has a leader; ask for 1 or more",
        ),
        (
            lambda: place_rack_aware(1, 3, dict.fromkeys([1, 2])),
            (
                "replication_factor is 3, but there are 2 brokers, and each takes one replica of a "
                "partition: ask for at most 2, or give more brokers"
            ),
        ),
        (lambda: place_rack_aware(1, 1, {-1: None}), "broker -1 cannot be: ids are 0 or more"),
        (
            lambda: place_rack_aware(1, 1, {1: None}, start_index=-1),
            "start_index is -1: give 0 or more, or leave it out",
        ),
        (lambda: place_rack_aware(1, 1, {1: "a"}, shift=-2), "shift is -2: give 0 or more, or leave it out"),
        (
            lambda: place_rack_aware(1, 1, {1: "a"}, first_partition=-3),
            "first_partition is -3: give 0 or more, or leave it out",
        ),
        (
            lambda: place_rack_aware(1, 1, {3: None, 1: "a", 2: None}),
            (
                "brokers 2, 3 are without a rack, and others have one: name the rack of each (ID=RACK), or "
                "place without racks: --disable-rack-aware, create --generator rack-unaware, in Python "
                "None for all"
            ),
        ),
        (
            lambda: place_striped(1, 1, {1: "a", 2: "b"}, fenced=[1, 2, 2]),
            "all 2 brokers are fenced, and a leader must not be: leave at least one out of fenced",
        ),
    ],
)
def test_what_cannot_be_placed_says_why_and_the_way_out(place: Callable[[], object], message: str) -> None:
    with pytest.raises(PlacementError, match=f"^{re.escape(message)}$"):
        place()


@pytest.mark.parametrize("bound", [0, -1, 2**31])
def test_java_draws_below_a_bound_in_its_int_range_only(bound: int) -> None:
    with pytest.raises(ValueError, match=f"bound is {bound}"):
        JavaRandom(1).next_int(bound)
