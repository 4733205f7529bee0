"""Properties of the planners on random groups.

What range, round robin and `kip54` plan is held beside Java's in tests/oracle/test_java_conformance.py.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from kafka_assignors._model.group import NOBODY, Group, Member
from kafka_assignors._model.plan import Plan, check
from kafka_assignors.planners import hand_over
from kafka_assignors.planners._broadcast import plan_broadcast
from kafka_assignors.planners._cooperative import awaited_holders
from kafka_assignors.planners._kip54 import plan_kip54
from kafka_assignors.planners._kip848_range import plan_kip848_range
from kafka_assignors.planners._kip848_uniform import plan_kip848_uniform
from kafka_assignors.planners._random import plan_random
from kafka_assignors.planners._range import plan_range
from kafka_assignors.planners._round_robin import plan_round_robin
from tests.support.random_groups import Case, random_case, settled

Planner = Callable[[Group], Plan]
Partition = tuple[str, int]
CASES = st.integers(0, 2**32).map(random_case)


def with_equal_subscriptions(case: Case) -> Case:
    everything = frozenset(case.topics)
    return replace(case, members=[replace(member, topics=everything) for member in case.members])


def partitions_of(assignment: Mapping[str, list[int]]) -> set[Partition]:
    return {(topic, number) for topic, ids in assignment.items() for number in ids}


def receivers(plan: Plan) -> dict[Partition, str]:
    """Who gets each partition that a plan gives away."""
    return {partition: name for name, mine in plan.assignments().items() for partition in partitions_of(mine)}


def check_complete(case: Case, plan: Plan) -> None:
    """Valid, and every partition that somebody subscribes to is given away once."""
    check(plan, plan.group)
    given_away = Counter(
        partition for mine in plan.assignments().values() for partition in partitions_of(mine)
    )
    assert given_away == Counter(
        (topic, number)
        for topic, ids in case.topics.items()
        if any(topic in member.topics for member in case.members)
        for number in ids
    )


def test_range_in_racks_keeps_topics_co_partitioned() -> None:
    # Topic a alone would go k: 1, l: 0; but b's replicas lie otherwise, and equal ids stay together.
    racks = {
        ("a", 0): frozenset({"west"}),
        ("a", 1): frozenset({"east"}),
        ("b", 0): frozenset({"east"}),
        ("b", 1): frozenset({"west"}),
    }
    members = [
        Member(member_id="k", topics=frozenset("ab"), rack="east"),
        Member(member_id="l", topics=frozenset("ab"), rack="west"),
    ]
    together = plan_range(Group.of({"a": [0, 1], "b": [0, 1]}, members, racks))
    assert together.assignments() == {"k": {"a": [0], "b": [0]}, "l": {"a": [1], "b": [1]}}
    alone = plan_range(Group.of({"a": [0, 1]}, members, racks))
    assert alone.assignments() == {"k": {"a": [1]}, "l": {"a": [0]}}


@given(CASES)
def test_broadcast_gives_every_member_all_of_its_topics(case: Case) -> None:
    plan = plan_broadcast(case.group)
    check(plan, plan.group, shared=True)
    assert plan.assignments() == {
        member.member_id: {topic: ids for topic, ids in case.topics.items() if ids and topic in member.topics}
        for member in case.members
    }


@given(CASES, st.integers(0, 2**32))
def test_random_gives_each_partition_to_one_subscriber_and_the_same_for_one_seed(
    case: Case, seed: int
) -> None:
    plan = plan_random(case.group, np.random.default_rng(seed))
    check_complete(case, plan)
    again = plan_random(case.group, np.random.default_rng(seed))
    assert plan.assignments() == again.assignments()


def test_random_draws_every_subscriber_equally_often_and_independently() -> None:
    names = ["k", "l", "m"]
    members = [Member(member_id=name, topics=frozenset("ab")) for name in names]
    members.append(Member(member_id="n", topics=frozenset("b")))
    group = Group.of({"a": range(2), "b": range(1)}, members)
    generator = np.random.default_rng(54)
    draws = 9000
    pairs: Counter[tuple[int, int]] = Counter()
    singles: Counter[int] = Counter()
    for _ in range(draws):
        first, second, third = plan_random(group, generator).owner.tolist()
        pairs[first, second] += 1
        singles[third] += 1
    # Chi-square, at the 0.1 % quantile of 8 and 3 degrees of freedom.
    expected = draws / 9
    assert sum((pairs[a, b] - expected) ** 2 / expected for a in range(3) for b in range(3)) < 26.1
    assert sum(pairs.values()) == sum(pairs[a, b] for a in range(3) for b in range(3))
    expected = draws / 4
    assert sum((singles[a] - expected) ** 2 / expected for a in range(4)) < 16.3


@given(CASES, st.randoms(use_true_random=False))
def test_hand_over_gives_what_nobody_else_holds_and_all_of_that(case: Case, rng: Random) -> None:
    group = case.group
    drawn = [rng.choice([*group.subscribers[topic], NOBODY]) for topic in group.topic_of.tolist()]
    plan = Plan.from_owner(group, np.array(drawn, dtype=np.int64))
    wished = receivers(plan)
    rounded = hand_over(plan)
    check(rounded, group, held_back=rounded.unassigned)
    got = receivers(rounded)

    valid = settled(group)
    held_by: dict[Partition, set[str]] = {}
    for member in case.members:
        if member.holds:
            for partition in partitions_of({topic: list(ids) for topic, ids in member.claims.items()}):
                held_by.setdefault(partition, set()).add(member.member_id)
    generation = {member.member_id: member.generation for member in case.members}

    def in_the_way(partition: Partition, name: str) -> set[str]:
        """The other members that hold it and are not known to be behind its valid owner."""
        return {
            holder
            for holder in held_by.get(partition, set()) - {name}
            if valid.get(partition) != name or generation[holder] >= generation[name]
        }

    waited_for = {partition: in_the_way(partition, name) for partition, name in wished.items()}
    assert got == {partition: name for partition, name in wished.items() if not waited_for[partition]}
    named = [
        (group.name_of(partition), group.members[holder].member_id)
        for partition, holder in awaited_holders(plan).tolist()
    ]
    assert Counter(named) == Counter(
        (partition, holder) for partition, holders in waited_for.items() for holder in holders
    )


def test_hand_over_gives_the_same_plan_if_nobody_holds_what_others_get() -> None:
    plan = plan_kip54(Group.of({"t": range(3)}, [Member(member_id="a", topics=frozenset("t"))]))
    assert hand_over(plan) is plan


def rounds(case: Case, planner: Planner) -> Iterator[Plan]:
    """The plans of the rebalances that follow each other until nothing is held back; no more than ten."""
    for _ in range(10):
        goal = planner(case.group)
        plan = hand_over(goal)
        check(plan, plan.group, held_back=plan.unassigned)
        yield plan
        if plan.partitions.size == goal.partitions.size:
            return
        case = case.after(plan)
    pytest.fail("the group does not settle")


@pytest.mark.parametrize("planner", [plan_range, plan_round_robin, plan_kip54])
@given(case=CASES)
def test_a_cooperative_group_settles_in_two_rebalances(planner: Planner, case: Case) -> None:
    if planner is plan_kip54:  # with other subscriptions in some more
        case = with_equal_subscriptions(case)
    plans = list(rounds(case, planner))
    assert len(plans) <= 2
    check_complete(case, plans[-1])
    if planner is plan_kip54:
        assert len(plans) == 1 or plans[-1].moves == 0
    else:
        assert plans[-1].assignments() == planner(case.group).assignments()


def test_kip54_ends_where_kafkas_algorithm_goes_round_for_ever() -> None:
    """n2 joins with both topics. Apache Kafka 4.3's class does not return from this group."""
    owned = {
        "m2": {"a": [2, 3, 4]},
        "n1": {"a": [0, 1]},
        "m3": {"b": [0, 2, 4, 6, 8, 10]},
        "m4": {"b": [1, 3, 5, 7, 9]},
    }
    members = [
        Member(member_id=name, topics=frozenset(claims), claims=claims, generation=5)
        for name, claims in owned.items()
    ]
    newcomer = Member(member_id="n2", topics=frozenset("ab"))
    group = Group.of({"a": range(5), "b": range(11)}, [*members, newcomer])
    plan = plan_kip54(group)
    check(plan, group)
    assert sorted(plan.loads.tolist()) == [2, 2, 4, 4, 4]


@given(CASES)
def test_a_cooperative_sticky_group_settles(case: Case) -> None:
    check_complete(case, [*rounds(case, plan_kip54)][-1])


@pytest.mark.parametrize("planner", [plan_kip848_uniform, plan_kip848_range])
def test_standbys_get_nothing_of_the_planners_of_kip848(planner: Planner) -> None:
    members = [
        Member(member_id=name, topics=frozenset("t"), priority=priority)
        for name, priority in {"a": 1, "b": 0, "c": 1}.items()
    ]
    plan = planner(Group.of({"t": range(4)}, members))
    check(plan, plan.group)
    assert {name: len(mine.get("t", ())) for name, mine in plan.assignments().items()} == {
        "a": 2,
        "b": 0,
        "c": 2,
    }
