"""The worked examples of the published descriptions that the project implements, by document and number.

000: a reading of the Java sources, algorithm by algorithm; 002: an article on Kafka 2.8's strategies;
004: notes on consumer strategies and the coordinator.

Two examples of the sticky strategy contradict Kafka's present classes, which go round the members where the
examples give to the least loaded. Loads and moves are the same. `kip54` gives the plan of the examples,
`exact` that of Java.
"""

from functools import partial
from typing import Any

import pytest

from kafka_assignors import (
    BroadcastAssignor,
    CooperativeStickyAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from tests.support.by_hand import HandGroup, names


def group_of(assignor: Any, sizes: dict[str, int], members: dict[str, str] | list[str]) -> HandGroup:
    """A group of members with an assignor each; members subscribe to all topics unless said."""
    group = HandGroup({topic: range(size) for topic, size in sizes.items()})
    for member in members:
        topics = members[member].split() if isinstance(members, dict) else None
        group.join(member, assignor(), topics)
    return group


TWO_BY_THREE = {"t0": 3, "t1": 3}
FOUR_BY_TWO = {"t0": 2, "t1": 2, "t2": 2, "t3": 2}
FOUR_BY_TWO_FROM_ONE = {"t1": 2, "t2": 2, "t3": 2, "t4": 2}
UNEQUAL = {"t1": 1, "t2": 2, "t3": 2}
UNEQUAL_MEMBERS = {"c1": "t1", "c2": "t1 t2", "c3": "t1 t2 t3"}


FIRST_REBALANCES = {
    "seed 000, example 1: range gives the first consumers one more": (
        *(RangeAssignor, {"a": 5}, ["consumer_0", "consumer_1", "consumer_2"]),
        {"consumer_0": "ap0 ap1", "consumer_1": "ap2 ap3", "consumer_2": "ap4"},
    ),
    "seeds 004 and 002, example 2: range divides each topic by itself": (
        *(RangeAssignor, TWO_BY_THREE, ["C0", "C1"]),
        {"C0": "t0p0 t0p1 t1p0 t1p1", "C1": "t0p2 t1p2"},
    ),
    "seeds 004 and 002, example 3: round robin deals out all partitions": (
        *(RoundRobinAssignor, TWO_BY_THREE, ["C0", "C1"]),
        {"C0": "t0p0 t0p2 t1p1", "C1": "t0p1 t1p0 t1p2"},
    ),
    "seed 004, example 4: round robin skips those who do not subscribe": (
        *(RoundRobinAssignor, {"t0": 1, "t1": 2, "t2": 3}, {"C0": "t0", "C1": "t0 t1", "C2": "t0 t1 t2"}),
        {"C0": "t0p0", "C1": "t1p0", "C2": "t1p1 t2p0 t2p1 t2p2"},
    ),
    "seed 002, example 5: round robin with unequal subscriptions": (
        *(RoundRobinAssignor, UNEQUAL, UNEQUAL_MEMBERS),
        {"c1": "t1p0", "c2": "t2p0", "c3": "t2p1 t3p0 t3p1"},
    ),
    "seed 002, example 6: sticky balances unequal subscriptions": (
        *(StickyAssignor, UNEQUAL, UNEQUAL_MEMBERS),
        {"c1": "t1p0", "c2": "t2p0 t2p1", "c3": "t3p0 t3p1"},
    ),
    "seed 002, example 6, cooperative": (
        *(CooperativeStickyAssignor, UNEQUAL, UNEQUAL_MEMBERS),
        {"c1": "t1p0", "c2": "t2p0 t2p1", "c3": "t3p0 t3p1"},
    ),
}


@pytest.mark.parametrize(
    ("assignor", "sizes", "members", "expected"), FIRST_REBALANCES.values(), ids=FIRST_REBALANCES
)
def test_a_first_rebalance_is_that_of_the_example(
    assignor: Any, sizes: dict[str, int], members: Any, expected: dict[str, str]
) -> None:
    assert names(group_of(assignor, sizes, members).rebalance()) == expected


LEAVING = {
    "seeds 004 and 002, examples 7 and 8: sticky keeps what the remaining members have": (
        FOUR_BY_TWO,
        {"C0": "t0p0 t1p1 t3p0", "C1": "t0p1 t2p0 t3p1", "C2": "t1p0 t2p1"},
        "C1",
        {
            "kip54": {"C0": "t0p0 t1p1 t2p0 t3p0", "C2": "t0p1 t1p0 t2p1 t3p1"},
            "exact": {"C0": "t0p0 t0p1 t1p1 t3p0", "C2": "t1p0 t2p0 t2p1 t3p1"},
        },
    ),
    "seed 002, example 9: sticky when the first consumer leaves": (
        FOUR_BY_TWO_FROM_ONE,
        {"c1": "t1p0 t2p1 t4p0", "c2": "t1p1 t3p0 t4p1", "c3": "t2p0 t3p1"},
        "c1",
        {
            "kip54": {"c2": "t1p1 t2p1 t3p0 t4p1", "c3": "t1p0 t2p0 t3p1 t4p0"},
            "exact": {"c2": "t1p0 t1p1 t3p0 t4p1", "c3": "t2p0 t2p1 t3p1 t4p0"},
        },
    ),
}


@pytest.mark.parametrize("assignor", [StickyAssignor, CooperativeStickyAssignor])
@pytest.mark.parametrize("planner", ["kip54", "exact"])
@pytest.mark.parametrize(("sizes", "before", "leaves", "after"), LEAVING.values(), ids=LEAVING)
def test_sticky_plans_as_the_example_when_a_member_leaves(
    assignor: Any, planner: str, sizes: dict[str, int], before: dict[str, str], *, leaves: str, after: Any
) -> None:
    group = group_of(partial(assignor, planner=planner), sizes, [*before])
    assert names(group.rebalance()) == before
    group.leave(leaves)
    assert names(group.rebalance()) == after[planner]


def test_seed_002_example_10_round_robin_when_the_first_consumer_leaves() -> None:
    group = group_of(RoundRobinAssignor, FOUR_BY_TWO_FROM_ONE, ["c1", "c2", "c3"])
    group.rebalance()
    group.leave("c1")
    assert names(group.rebalance()) == {"c2": "t1p0 t2p0 t3p0 t4p0", "c3": "t1p1 t2p1 t3p1 t4p1"}


def test_seed_002_example_11_cooperative_takes_away_first_and_gives_in_the_next_round() -> None:
    group = group_of(CooperativeStickyAssignor, {"t": 3}, ["c1", "c2"])
    assert names(group.rebalance()) == {"c1": "tp0 tp2", "c2": "tp1"}
    group.join("c3", CooperativeStickyAssignor())
    assert names(group.rebalance()) == {"c1": "tp0", "c2": "tp1", "c3": ""}
    assert names(group.rebalance()) == {"c1": "tp0", "c2": "tp1", "c3": "tp2"}


def test_seed_004_example_12_random_gives_every_partition_to_one_subscriber() -> None:
    """With equal chances: test_planners.py."""
    members = {"C0": "t0", "C1": "t0", "C2": "t0 t1"}
    assigned = group_of(RandomAssignor, {"t0": 30, "t1": 10}, members).rebalance()
    given = sorted((topic, one) for mine in assigned.values() for topic, ids in mine.items() for one in ids)
    assert given == [("t0", one) for one in range(30)] + [("t1", one) for one in range(10)]


def test_seed_004_example_13_broadcast_gives_every_member_every_partition_of_its_topics() -> None:
    members = {"C0": "t0", "C1": "t0 t1", "C2": "t1"}
    group = group_of(BroadcastAssignor, {"t0": 2, "t1": 1}, members)
    assert names(group.rebalance()) == {"C0": "t0p0 t0p1", "C1": "t0p0 t0p1 t1p0", "C2": "t1p0"}
