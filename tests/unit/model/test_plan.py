"""What a `Plan` says of itself, and what `check` finds."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from kafka_assignors._model.group import NOBODY, Group, IntArray, Member
from kafka_assignors._model.plan import InvalidPlanError, Plan, check


def ints(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, dtype=np.int64)


@pytest.fixture
def group() -> Group:
    """Members k (a), l (a, b), m (b); partitions 0..3 are a-10, a-21, b-0, b-1; l owns a-21, m owns b-0."""
    return Group.of(
        {"a": [10, 21], "b": [0, 1]},
        [
            Member(member_id="k", topics=frozenset("a")),
            Member(member_id="l", topics=frozenset("ab"), claims={"a": [21]}, generation=1),
            Member(member_id="m", topics=frozenset("b"), claims={"b": [0]}, generation=1),
        ],
    )


def test_a_members_partitions_are_named_by_topic_and_id(group: Group) -> None:
    plan = Plan.from_owner(group, ints(1, 1, 1, 1))
    assert plan.of(1) == {"a": [10, 21], "b": [0, 1]}
    assert plan.of(0) == {}
    assert list(plan.of(1)) == ["a", "b"]


def test_every_member_has_an_entry_in_the_assignments(group: Group) -> None:
    plan = Plan.from_owner(group, ints(0, NOBODY, 2, 1))
    assert plan.assignments() == {"k": {"a": [10]}, "l": {"b": [1]}, "m": {"b": [0]}}
    nothing = Plan.from_owner(group, ints(NOBODY, NOBODY, NOBODY, NOBODY))
    assert nothing.assignments() == {"k": {}, "l": {}, "m": {}}


def test_named_ids_are_pythons_own_integers(group: Group) -> None:
    # The client's encoder and json know no others.
    ids = Plan.from_owner(group, ints(1, 1, 1, 1)).of(1)["a"]
    assert [type(number) for number in ids] == [int, int]


@pytest.mark.parametrize(
    ("owner", "moved"),
    [
        ([1, 1, 2, 2], []),
        ([0, 0, 2, 2], [1]),
        ([0, 0, 1, 1], [1, 2]),
        ([0, NOBODY, NOBODY, 1], [1, 2]),
    ],
)
def test_moved_are_the_partitions_that_their_owner_does_not_keep(
    group: Group, owner: list[int], moved: list[int]
) -> None:
    plan = Plan.from_owner(group, ints(*owner))
    assert plan.moved.tolist() == moved
    assert plan.moves == len(moved)


@pytest.mark.parametrize("owner", ["k", "l"])
def test_nothing_moved_if_the_owner_shares_its_partition(owner: str) -> None:
    group = Group.of(
        {"a": [0, 1]},
        [
            Member(member_id=name, topics=frozenset("a"), claims={"a": [0]} if name == owner else {})
            for name in "kl"
        ],
    )
    shared = Plan(group, ints(0, 0), ints(0, 1, 2))
    assert shared.moves == 0
    assert shared.unassigned.tolist() == [1]


@given(st.data())
def test_a_plan_gives_back_the_owners_that_it_was_made_of(data: st.DataObject) -> None:
    size, count = data.draw(st.integers(0, 12)), data.draw(st.integers(1, 4))
    group = Group.of(
        {"a": range(size)}, [Member(member_id=str(number), topics=frozenset("a")) for number in range(count)]
    )
    owner = data.draw(st.lists(st.integers(NOBODY, count - 1), min_size=size, max_size=size))
    plan = Plan.from_owner(group, ints(*owner))
    check(plan, plan.group, held_back=plan.unassigned)
    assert plan.owner.tolist() == owner
    assert plan.loads.tolist() == [owner.count(number) for number in range(count)]
    for number in range(count):
        mine = [partition for partition in range(size) if owner[partition] == number]
        assert plan.of(number) == ({"a": mine} if mine else {})


def test_only_partitions_that_are_held_back_may_be_left_out(group: Group) -> None:
    plan = Plan.from_owner(group, ints(0, NOBODY, NOBODY, 2))
    check(plan, group, held_back=ints(1, 2))
    for held_back in (None, ints(), ints(2), ints(2, 0)):
        with pytest.raises(InvalidPlanError, match=r"^the plan assigns a-21 to no member$"):
            check(plan, group, held_back=held_back)


def test_a_plan_for_another_group_is_refused(group: Group) -> None:
    with pytest.raises(InvalidPlanError, match=r"^the plan is for another group$"):
        check(Plan.from_owner(group, ints(0, 0, 2, 2)), Group.of({}, []))


@pytest.mark.parametrize(
    ("owner", "fault"),
    [
        (ints(0, 0, 2), "owners of shape (3,) for a group of 4 partitions"),
        (ints(0, 0, 2, 2, 2), "owners of shape (5,) for a group of 4 partitions"),
        (ints(0, 0, 2, 3), "owners from 0 to 3 for a group of 3 members"),
        (ints(0, -7, 2, 2), "owners from -7 to 2 for a group of 3 members"),
    ],
)
def test_owners_that_are_none_make_no_plan(group: Group, owner: IntArray, fault: str) -> None:
    with pytest.raises(InvalidPlanError) as caught:
        Plan.from_owner(group, owner)
    assert str(caught.value) == fault


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(
    ("partitions", "bounds", "fault"),
    [
        ([0], [0, 1], "the plan does not have one entry for each of 3 members"),
        ([0], [0, 1, 1, 1, 1], "the plan does not have one entry for each of 3 members"),
        ([0], [1, 1, 1, 1], "the plan does not have one entry for each of 3 members"),
        ([0], [0, 0, 0, 0], "the plan does not have one entry for each of 3 members"),
        ([0, 1], [0, 2, 1, 2], "the plan does not have one entry for each of 3 members"),
        ([-1], [0, 1, 1, 1], "the plan holds partitions that do not exist: there are 4"),
        ([4], [0, 1, 1, 1], "the plan holds partitions that do not exist: there are 4"),
        ([1, 1], [0, 2, 2, 2], "the plan assigns a-21 more than once"),
        ([2, 2], [0, 0, 0, 2], "the plan assigns b-0 more than once"),
        ([0, 2], [0, 2, 2, 2], "the plan assigns k partitions of b, which it does not subscribe to"),
        ([0], [0, 0, 0, 1], "the plan assigns m partitions of a, which it does not subscribe to"),
    ],
)
def test_faults_are_found(
    group: Group, partitions: list[int], bounds: list[int], fault: str, *, shared: bool
) -> None:
    with pytest.raises(InvalidPlanError) as caught:
        check(Plan(group, ints(*partitions), ints(*bounds)), group, shared=shared)
    assert str(caught.value) == fault


def test_only_a_shared_plan_may_give_a_partition_to_two_members(group: Group) -> None:
    plan = Plan(group, ints(0, 1, 1, 2, 3), ints(0, 2, 4, 5))
    check(plan, group, shared=True)
    with pytest.raises(InvalidPlanError, match=r"^the plan assigns a-21 more than once$"):
        check(plan, group)
