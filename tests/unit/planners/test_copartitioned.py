"""Which partitions belong together, and how they are planned."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest

from kafka_assignors._model.group import Group, Member
from kafka_assignors._model.plan import InvalidPlanError, Plan, check
from kafka_assignors._model.units import Units
from kafka_assignors.planners._cooperative import first_round
from kafka_assignors.planners._copartitioned import digest, plan_copartitioned, units_of

SETS = [("ads", "clicks")]
BOTH = frozenset({"ads", "clicks"})


def members(*names: str, topics: frozenset[str] = BOTH) -> list[Member]:
    return [Member(member_id=name, topics=topics) for name in names]


def after(plan: Plan, members: Sequence[Member] = ()) -> list[Member]:
    """Members that have what a plan gave them, and others that are new."""
    given = plan.assignments()
    before = [
        replace(member, claims=given[member.member_id], generation=1, holds=True)
        for member in plan.group.members
    ]
    return [*before, *members]


def together(group: Group, sets: Sequence[tuple[str, ...]] | None) -> list[list[str]]:
    """The units of more than one partition."""
    units, _ = units_of(group, sets)
    named = [
        [
            f"{topic}-{number}"
            for topic, number in map(group.name_of, np.flatnonzero(units.of == unit).tolist())
        ]
        for unit in range(units.first.size)
    ]
    return [unit for unit in named if len(unit) > 1]


def test_by_default_topics_of_one_count_and_the_same_subscribers_belong_together() -> None:
    group = Group.of(
        {"a": range(2), "b": range(2), "c": range(3), "d": range(2)},
        [
            *members("m1", topics=frozenset("abcd")),
            *members("m2", topics=frozenset("abc")),
        ],
    )
    assert together(group, None) == [["a-0", "b-0"], ["a-1", "b-1"]]
    assert units_of(group, None)[1] == {}


def test_partitions_of_one_id_belong_together_whatever_ids_there_are() -> None:
    group = Group.of({"ads": [1, 4, 9], "clicks": [4, 9, 11], "other": [4]}, members("m1"))
    units, odd = units_of(group, SETS)
    assert together(group, SETS) == [["ads-4", "clicks-4"], ["ads-9", "clicks-9"]]
    assert (units.sizes.tolist(), odd) == ([1, 2, 2, 1], {})


@pytest.mark.parametrize("absent", [{}, {"clicks": []}], ids=["not there", "no partitions"])
def test_a_topic_of_a_set_may_be_missing(absent: Mapping[str, list[int]]) -> None:
    group = Group.of({"ads": range(2), **absent}, members("m1", "m2"))
    assert plan_copartitioned(group, SETS).loads.tolist() == [1, 1]


def test_a_topic_that_others_subscribe_to_leaves_its_set_with_their_names() -> None:
    topics = {name: range(4) for name in "abc"}
    everything = frozenset(topics)
    group = Group.of(
        topics, [*members("m1", "m2", topics=everything), *members("m3", topics=frozenset("ac"))]
    )
    _, odd = units_of(group, [("a", "b", "c")])
    assert odd == {"b": "it is left out of its set with a, c, as these members do not subscribe to both: m3"}
    plan = plan_copartitioned(group, [("a", "b", "c")])
    assert all(plan.of(number)["a"] == plan.of(number)["c"] for number in range(3))
    # Of two topics the one with fewer subscribers is left out.
    assert units_of(group, [("a", "b")])[1].keys() == {"b"}


def test_a_message_names_ten_members_at_most() -> None:
    few = members(*(f"m{number:02}" for number in range(12)), topics=frozenset({"ads"}))
    group = Group.of({"ads": [0], "clicks": [0]}, [*few, *members("n")])
    assert units_of(group, SETS)[1]["clicks"].endswith(" m08, m09 and 2 more")


def test_of_unequal_topics_the_rest_of_the_longer_one_is_by_itself() -> None:
    group = Group.of({"ads": range(6), "clicks": range(4)}, members("m1", "m2"))
    units, odd = units_of(group, SETS)
    assert units.sizes.tolist() == [2, 2, 2, 2, 1, 1]
    assert odd == {
        "ads, clicks": "they have 6, 4 partitions; what only the longer ones have is joined with nothing"
    }
    assert plan_copartitioned(group, SETS).loads.tolist() == [5, 5]


@pytest.mark.parametrize("first", ["ads", "clicks"])
@pytest.mark.parametrize("sizes", [(4, 6), (4, 8), (6, 7), (3, 12)])
def test_growing_one_topic_and_then_the_other_moves_nothing(first: str, sizes: tuple[int, int]) -> None:
    small, large = sizes
    before = {"ads": range(small), "clicks": range(small)}
    plan = plan_copartitioned(Group.of(before, members("m1", "m2", "m3")), SETS)
    for topics in ({**before, first: range(large)}, {name: range(large) for name in before}):
        plan = plan_copartitioned(Group.of(topics, after(plan)), SETS)
        assert plan.moves == 0
        sent, awaited = first_round(plan)
        assert (sent is plan, awaited.size) == (True, 0)
    loads = plan.loads.tolist()
    assert max(loads) - min(loads) <= 2


def test_the_owner_of_most_of_a_unit_gets_all_of_it_once_all_holders_have_revoked_it() -> None:
    # Of several with as many the first one gets it. What nobody holds of a unit waits with the rest.
    claims = {"m1": {"a": [0, 1]}, "m2": {"a": [2], "b": [0, 1, 2], "c": [1, 2]}}
    held = [
        replace(member, claims=claims[member.member_id], generation=1, holds=True)
        for member in members("m1", "m2", topics=frozenset("abc"))
    ]
    plan = plan_copartitioned(Group.of({name: range(3) for name in "abc"}, held))
    assert plan.assignments() == {
        "m1": {name: [0] for name in "abc"},
        "m2": {name: [1, 2] for name in "abc"},
    }
    sent, awaited = first_round(plan)
    assert sent.assignments() == {"m1": {}, "m2": {name: [2] for name in "abc"}}
    assert sent.units is plan.units
    waits = {(plan.group.name_of(partition), member) for partition, member in awaited.tolist()}
    assert waits == {(("a", 0), 0), (("b", 0), 1), (("a", 1), 0), (("b", 1), 1), (("c", 1), 1)}


def test_a_unit_is_in_the_racks_of_all_of_its_partitions() -> None:
    racks = {("ads", 0): {"r1", "r2"}, ("clicks", 0): {"r2"}, ("ads", 1): {"r1"}, ("clicks", 1): {"r1", "r2"}}
    topics = {"ads": range(2), "clicks": range(2)}
    group = Group.of(
        topics,
        [replace(member, rack=f"r{number}") for number, member in enumerate(members("m1", "m2"), 1)],
        {key: frozenset(names) for key, names in racks.items()},
    )
    assert plan_copartitioned(group, SETS).of(0) == {"ads": [1], "clicks": [1]}


def test_options_count_what_belongs_together_once() -> None:
    topics = {"ads": range(6), "clicks": range(6)}
    plan = plan_copartitioned(Group.of(topics, members("m1")), SETS)
    group = Group.of(topics, after(plan, members("m2")))
    assert [plan_copartitioned(group, SETS, max_moves=limit).loads.tolist() for limit in (0, 1, 9)] == [
        [12, 0],
        [10, 2],
        [6, 6],
    ]
    assert plan_copartitioned(group, SETS, max_skew=1).loads.tolist() == [8, 4]


@pytest.mark.parametrize("limit", [0, 1, 3])
def test_what_may_move_is_shared_by_sizes(limit: int) -> None:
    topics = {"ads": range(8), "clicks": range(4)}
    plan = plan_copartitioned(Group.of(topics, members("m1")), SETS)
    again = plan_copartitioned(Group.of(topics, after(plan, members("m2"))), SETS, max_moves=limit)
    assert again.units is not None
    assert len({*again.units.of[again.moved].tolist()}) == limit


def test_a_plan_that_separates_what_belongs_together_is_not_sent() -> None:
    group = Group.of({"ads": range(2), "clicks": range(2)}, members("m1", "m2"))
    units, _ = units_of(group, SETS)
    plan = Plan.from_owner(group, np.array([0, 1, 1, 1]), units=units)
    with pytest.raises(InvalidPlanError, match=r"^the plan separates clicks-0 from ads-0$"):
        check(plan, group)


@pytest.mark.parametrize(("topics", "names"), [({}, ["m"]), ({"ads": range(2)}, []), ({}, [])])
def test_groups_without_members_or_topics_have_a_plan(topics: Mapping[str, range], names: list[str]) -> None:
    group = Group.of(topics, members(*names))
    assert plan_copartitioned(group, SETS).assignments() == {name: {} for name in names}


@pytest.mark.parametrize(
    ("sizes", "spread"),
    [
        ([], 0),
        ([2, 2], 2),
        ([2, 1], 2),
        ([3, 2], 3),
        ([4, 3], 5),
        ([6, 4, 3], 7),
        ([6, 3, 2], 6),
        ([5, 4, 3], 7),
    ],
)
def test_loads_are_apart_by_the_largest_size_or_more_if_one_does_not_divide_it(
    sizes: list[int], spread: int
) -> None:
    assert Units.by(np.arange(len(sizes), dtype=np.int64).repeat(sizes)).spread == spread


def test_sets_are_the_same_in_any_order() -> None:
    assert digest([("a", "b"), ("c", "d")]) == digest([["d", "c"], {"b", "a"}])
    assert len({digest(None), digest([]), digest([("a", "b")]), digest([("a", "b"), ("c", "d")])}) == 4
    assert (len(digest([])), digest(None)) == (4, b"")
