"""The plans of KIP-848's assignors by themselves.

tests/oracle/test_java_consumer_group.py compares them with Kafka's.
"""

from random import Random
from uuid import UUID

import pytest
from hypothesis import given, strategies as st

from kafka_assignors._model.group import Group, Member
from kafka_assignors._model.plan import check
from kafka_assignors.planners._kip848_range import plan_kip848_range
from kafka_assignors.planners._kip848_uniform import plan_kip848_uniform
from tests.support.random_groups import random_case
from tests.support.scale import examples


def test_who_is_not_listed_comes_last_of_a_bin() -> None:
    """Aa and BB have one hash."""
    members = [Member(member_id=name, topics=frozenset("a")) for name in ("Aa", "BB")]
    group = Group.of({"a": range(1)}, members)
    assert plan_kip848_uniform(group).assignments() == {"Aa": {}, "BB": {"a": [0]}}
    assert plan_kip848_uniform(group, listed=["gone", "BB"]).assignments() == {"Aa": {"a": [0]}, "BB": {}}


def test_an_id_is_needed_for_every_topic_or_for_none() -> None:
    group = Group.of({"a": range(1), "b": range(1)}, [Member(member_id="m0", topics=frozenset("ab"))])
    with pytest.raises(
        ValueError, match=r"topic_ids has none for \['b'\]: give the id of every topic, or no"
    ):
        plan_kip848_uniform(group, topic_ids={"a": UUID(int=1)})


@examples(500)
@given(st.integers(0, 10**6), st.randoms(use_true_random=False))
def test_plans_are_valid_and_the_order_in_which_a_group_is_described_makes_no_difference(
    seed: int, order: Random
) -> None:
    case = random_case(seed)  # with racks and weights, which the coordinator does not look at
    for planner in (plan_kip848_uniform, plan_kip848_range):
        group = case.group
        plan = planner(group)
        check(plan, group)
        assert planner(case.shuffled(order).group).assignments() == plan.assignments()
