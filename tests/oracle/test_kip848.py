"""What holds of KIP-848's assignors on any group; that plans are Java's is in test_java_kip848.py."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from random import Random
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafka_assignors._model.group import Group, Member
from kafka_assignors._model.plan import Plan, check
from kafka_assignors.planners import plan_exact
from kafka_assignors.planners._kip848_range import plan_kip848_range
from kafka_assignors.planners._kip848_uniform import plan_kip848_uniform
from kafka_assignors.planners._range import plan_range
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


# Arguments --------------------------------------------------------------------------------------------------


def test_who_is_not_listed_comes_last_of_a_bin() -> None:
    """Aa and BB have one hash."""
    group = Group.of({"a": range(1)}, members("Aa", "BB", topics="a", claims={}))
    assert plan_kip848_uniform(group).assignments() == {"Aa": {}, "BB": {"a": [0]}}
    assert plan_kip848_uniform(group, listed=["gone", "BB"]).assignments() == {"Aa": {"a": [0]}, "BB": {}}


def test_an_id_is_needed_for_every_topic_or_for_none() -> None:
    group = Group.of({"a": range(1), "b": range(1)}, members("m0", topics="ab", claims={}))
    with pytest.raises(
        ValueError, match=r"topic_ids has none for \['b'\]: give the id of every topic, or no"
    ):
        plan_kip848_uniform(group, topic_ids={"a": UUID(int=1)})


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
