"""KIP-848's assignors on examples worked out by hand and on random groups; test_java_kip848.py asks Java."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafka_assignors._model.group import Group, Member
from kafka_assignors._model.plan import Plan, check
from kafka_assignors._wire.java.orders import uuid_hash, uuid_order
from kafka_assignors.planners import plan_exact, plan_kip848_range, plan_kip848_uniform, plan_range
from tests.support.random_groups import Case, random_case
from tests.support.scale import examples

same_each_run = examples(500)
seeds = st.integers(0, 10**6)


def case_of(seed: int) -> Case:
    """Without weights and racks, which the coordinator's assignors do not look at."""
    case = random_case(seed)
    return Case(case.topics, [replace(member, weight=1, rack=None) for member in case.members])


def equal_case(seed: int) -> Case:
    case = case_of(seed)
    topics = frozenset(case.topics)
    return Case(case.topics, [replace(member, topics=topics) for member in case.members])


def members(*ids: str, topics: Iterable[str], claims: Mapping[str, Mapping[str, list[int]]]) -> list[Member]:
    return [Member(member_id=each, topics=frozenset(topics), claims=claims.get(each, {})) for each in ids]


def after(plan: Plan, case: Case) -> Case:
    """The group with the plan carried out."""
    assigned = plan.assignments()
    return Case(
        case.topics,
        [
            replace(member, claims=assigned[member.member_id], generation=9, holds=True)
            for member in case.members
        ],
    )


# Examples: hashes of m0, m1, ... ascend, so that members come in this order. ------------------------------


def test_a_new_group_is_filled_up_member_by_member_and_the_last_ones_get_more() -> None:
    group = Group.of({"a": range(3), "b": range(2)}, members("m0", "m1", topics="ab", claims={}))
    assert plan_kip848_uniform(group).assignments() == {"m0": {"a": [0, 1]}, "m1": {"a": [2], "b": [0, 1]}}


def test_partitions_that_nobody_had_go_before_those_that_are_let_go_of() -> None:
    claims = {"m0": {"a": [0, 1, 2, 3]}}
    group = Group.of({"a": range(6)}, members("m0", "m1", "m2", topics="a", claims=claims))
    assert plan_kip848_uniform(group).assignments() == {
        "m0": {"a": [0, 1]},
        "m1": {"a": [4, 5]},
        "m2": {"a": [2, 3]},
    }


def test_the_extra_partition_stays_with_the_member_that_has_one() -> None:
    claims = {"m0": {"a": [0]}, "m1": {"a": [1]}, "m2": {"a": [2, 3]}}
    group = Group.of({"a": range(4)}, members("m0", "m1", "m2", topics="a", claims=claims))
    assert plan_kip848_uniform(group).assignments() == claims


def test_who_is_not_listed_comes_last_of_a_bin() -> None:
    """Aa and BB have one hash."""
    group = Group.of({"a": range(1)}, members("Aa", "BB", topics="a", claims={}))
    assert plan_kip848_uniform(group).assignments() == {"Aa": {}, "BB": {"a": [0]}}
    assert plan_kip848_uniform(group, listed=["gone", "BB"]).assignments() == {"Aa": {"a": [0]}, "BB": {}}


def test_of_partition_ids_in_one_bin_the_last_one_claimed_is_let_go_of() -> None:
    """Sixteen bins: 1, 17 and 33 share one."""
    claims = {"m0": {"a": [33, 1, 17, 2]}}
    group = Group.of({"a": [1, 2, 17, 33]}, members("m0", "m1", topics="a", claims=claims))
    assert plan_kip848_uniform(group).assignments() == {"m0": {"a": [1, 33]}, "m1": {"a": [2, 17]}}


def test_topics_come_in_the_order_of_their_hashes_in_the_map() -> None:
    group = Group.of({"a": range(1), "b": range(1)}, members("m0", "m1", topics="ab", claims={}))
    ids = {"a": UUID(int=7), "b": UUID(int=3)}
    assert plan_kip848_uniform(group, topic_ids=ids).assignments() == {"m0": {"b": [0]}, "m1": {"a": [0]}}


def test_with_different_subscriptions_the_topic_with_most_partitions_a_subscriber_comes_first() -> None:
    group = Group.of(
        {"a": range(1), "b": range(3)},
        [*members("m0", topics="ab", claims={}), *members("m1", topics="b", claims={})],
    )
    # First b, half to each, then a.
    assert plan_kip848_uniform(group).assignments() == {"m0": {"a": [0], "b": [0]}, "m1": {"b": [1, 2]}}


def test_a_topic_that_does_not_exist_makes_subscriptions_different() -> None:
    listed = members("m0", "m1", topics="a", claims={})
    group = Group.of({"a": range(4)}, listed)
    assert plan_kip848_uniform(group).assignments() == {"m0": {"a": [0, 1]}, "m1": {"a": [2, 3]}}
    group = Group.of({"a": range(4)}, [listed[0], replace(listed[1], topics=frozenset({"a", "missing"}))])
    assert plan_kip848_uniform(group).assignments() == {"m0": {"a": [0, 2]}, "m1": {"a": [1, 3]}}


def test_range_puts_static_members_first_and_keeps_nothing() -> None:
    claims = {"m0": {"a": [0, 1]}, "m1": {"a": [2]}}
    listed = members("m0", "m1", topics="ab", claims=claims)
    group = Group.of({"a": range(3), "b": range(3)}, [listed[0], replace(listed[1], instance_id="i")])
    assert plan_kip848_range(group).assignments() == {
        "m1": {"a": [0, 1], "b": [0, 1]},
        "m0": {"a": [2], "b": [2]},
    }


def test_an_id_is_needed_for_every_topic_or_for_none() -> None:
    group = Group.of({"a": range(1), "b": range(1)}, members("m0", topics="ab", claims={}))
    with pytest.raises(
        ValueError, match=r"topic_ids has none for \['b'\]: give the id of every topic, or no"
    ):
        plan_kip848_uniform(group, topic_ids={"a": UUID(int=1)})


def test_javas_uuids_have_signed_halves() -> None:
    ids = [UUID(int=0), UUID(int=1 << 127), UUID(int=1 << 63), UUID(int=(1 << 127) - 1)]
    assert sorted(ids, key=uuid_order) == [ids[1], ids[2], ids[0], ids[3]]
    assert uuid_hash(UUID("00000001-0000-0002-0000-000400000008")) == 1 ^ 2 ^ 4 ^ 8


# Properties -------------------------------------------------------------------------------------------------


@same_each_run
@given(seeds)
def test_plans_are_valid(seed: int) -> None:
    group = random_case(seed).group  # with racks and weights
    check(plan_kip848_uniform(group), group)
    check(plan_kip848_range(group), group)


@same_each_run
@given(seeds)
def test_equal_subscriptions_get_the_best_balance_with_the_fewest_moves(seed: int) -> None:
    group = equal_case(seed).group
    plan, best = plan_kip848_uniform(group), plan_exact(group)
    assert sorted(plan.loads) == sorted(best.loads)
    assert plan.moves == best.moves


@same_each_run
@given(seeds)
def test_nothing_moves_if_nothing_changes(seed: int) -> None:
    case = case_of(seed)
    plan = plan_kip848_uniform(case.group)
    again = after(plan, case)
    assert plan_kip848_uniform(again.group).assignments() == plan.assignments()


@same_each_run
@given(seeds, st.randoms(use_true_random=False))
def test_the_order_in_which_a_group_is_told_makes_no_difference(seed: int, rng: Random) -> None:
    case = case_of(seed)
    assert (
        plan_kip848_uniform(case.group).assignments()
        == plan_kip848_uniform(case.shuffled(rng).group).assignments()
    )


@same_each_run
@given(seeds)
def test_with_different_subscriptions_no_single_move_helps(seed: int) -> None:
    plan = plan_kip848_uniform(case_of(seed).group)
    for partition, owner in enumerate(plan.owner.tolist()):
        for other in plan.group.subscribers[plan.group.topic_of[partition]]:
            assert plan.loads[owner] - plan.loads[other] <= 1


@same_each_run
@given(seeds)
def test_range_is_the_clients_without_racks(seed: int) -> None:
    group = case_of(seed).group
    assert plan_kip848_range(group).assignments() == plan_range(group).assignments()
