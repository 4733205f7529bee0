"""The plan that is taken when the exact one takes too long."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from kafka_assignors._model.group import NOBODY, Group, Member
from kafka_assignors._model.plan import check
from kafka_assignors.planners._quick import plan_quickly
from tests.support.random_groups import random_case

SEEDS = range(500)


def share(group: Group) -> int:
    """The mean load, rounded up, of the members that can take something."""
    takers = {member for subscribers in group.subscribers for member in subscribers}
    return -(-group.size // max(len(takers), 1))


def one_by_one(group: Group) -> list[int]:
    """The loads if free partitions go one by one to the least loaded subscriber, narrow topics first."""
    loads, free = [0] * len(group.members), []
    most = share(group)
    for partition, owner in enumerate(group.owner.tolist()):
        if owner != NOBODY and loads[owner] < most:
            loads[owner] += 1
        else:
            free.append(int(group.topic_of[partition]))
    for topic in sorted(free, key=lambda topic: (len(group.subscribers[topic]), topic)):
        loads[min(group.subscribers[topic], key=lambda member: loads[member])] += 1
    return loads


def test_each_member_keeps_what_it_owned_up_to_the_mean() -> None:
    for seed in SEEDS:
        group = random_case(seed).group
        plan = plan_quickly(group)
        for member in range(len(group.members)):
            owned = [partition for partition, owner in enumerate(group.owner.tolist()) if owner == member]
            kept = owned[: share(group)]
            assert set(kept) <= {*plan.partitions[plan.bounds[member] : plan.bounds[member + 1]].tolist()}, (
                seed
            )


@pytest.mark.parametrize(
    "others",
    [
        pytest.param({"topics": frozenset({"t"})}, id="standbys"),
        pytest.param({"topics": frozenset({"gone"}), "priority": 1}, id="of a topic that is gone"),
        pytest.param({"topics": frozenset()}, id="without topics"),
    ],
)
def test_members_that_can_take_nothing_move_nothing(others: dict[str, Any]) -> None:
    owned = {"a": range(0, 10, 2), "b": range(1, 10, 2)}
    members = [
        Member(member_id=name, topics=frozenset({"t"}), claims={"t": ids}, generation=1, priority=1)
        for name, ids in owned.items()
    ]
    members += [Member(member_id=name, **others) for name in "cd"]
    assert plan_quickly(Group.of({"t": range(10)}, members)).moves == 0


def test_a_group_that_subscribes_to_nothing_gets_nothing() -> None:
    for topics in (frozenset[str](), frozenset({"gone"})):
        group = Group.of({"t": range(3)}, [Member(member_id="a", topics=topics)])
        assert plan_quickly(group).assignments() == {"a": {}}


def test_what_is_free_goes_to_the_least_loaded_subscribers_of_the_narrowest_topics_first() -> None:
    for seed in SEEDS:
        group = random_case(seed).group
        plan = plan_quickly(group)
        check(plan, group)
        assert plan.loads.tolist() == one_by_one(group), seed


def test_the_same_group_in_any_order_gets_the_same_plan() -> None:
    for seed in SEEDS:
        case = random_case(seed)
        expected = plan_quickly(case.group).assignments()
        assert plan_quickly(case.shuffled(Random(seed)).group).assignments() == expected, seed


def test_weights_and_racks_are_not_looked_at() -> None:
    for seed in SEEDS:
        case = random_case(seed)
        plain = [replace(member, weight=1, rack=None) for member in case.members]
        expected = plan_quickly(Group.of(case.topics, plain)).assignments()
        assert plan_quickly(case.group).assignments() == expected, seed
