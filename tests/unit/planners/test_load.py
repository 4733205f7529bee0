"""The planner of load, on groups by hand and at random; the best plans are in tests/oracle/test_load.py."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from kafka_assignors._model.group import NOBODY, Group, Member
from kafka_assignors._model.plan import Plan, check
from kafka_assignors.planners import plan_exact
from kafka_assignors.planners._load import HORIZON, Load, least_time, place_load, plan_load, work_times
from tests.support.load_oracle import random_load
from tests.support.random_groups import random_case
from tests.support.scale import sampled


def load_of(arriving: list[float], speed: list[float], waiting: float = 0.0) -> Load:
    """Seconds of work that arrive a second, and that wait in each partition."""
    count = len(arriving)
    return Load(
        arriving=np.array(arriving),
        waiting=np.full(count, waiting),
        speed=np.array(speed),
        stays=np.zeros(count, dtype=np.bool_),
    )


def random_loads() -> Iterator[tuple[int, Group, Load]]:
    """Random groups that have partitions, and their loads."""
    for seed in sampled(150):
        group = random_case(seed).group
        if group.size:
            yield seed, group, random_load(group, Random(seed))


def group_of(owners: list[list[int]], partitions: int) -> Group:
    """Members m0, m1... that own these."""
    members = [
        Member(
            member_id=f"m{number}",
            topics=frozenset("t"),
            claims={"t": owned},
            generation=1,
        )
        for number, owned in enumerate(owners)
    ]
    return Group.of({"t": range(partitions)}, members)


def owned_after(plan: Plan) -> Group:
    """The group once the plan is carried out."""
    return replace(plan.group, owner=plan.owner)


def test_what_gains_less_than_the_tolerance_does_not_move() -> None:
    group = group_of([[0, 1], [2, 3]], 4)
    within = load_of([0.105, 0.1, 0.09, 0.09], [1.0, 1.0])
    assert plan_load(group, within, tolerance=0.1).moves == 0
    idle = load_of([0.02, 0.02, 0.0, 0.0], [1.0, 1.0])  # all of it in seconds a minute
    assert plan_load(group, idle, least_gain=6).moves == 0
    beyond = load_of([0.4, 0.2, 0.09, 0.01], [1.0, 1.0])
    plan = plan_load(group, beyond, tolerance=0.1)
    assert plan.moved.tolist() == [1]
    assert plan_load(owned_after(plan), beyond).moves == 0


def test_what_was_moved_lately_stays_unless_its_owner_is_gone() -> None:
    load = load_of([0.4, 0.4, 0.01, 0.01], [1.0, 1.0])
    group = group_of([[0, 1], [2, 3]], 4)
    assert plan_load(group, load).moves == 1
    assert plan_load(group, replace(load, stays=np.array([True, True, False, False]))).moves == 0
    left = group_of([[0], [2, 3]], 4)
    assert plan_load(left, replace(load, stays=np.ones(4, dtype=np.bool_))).owner.tolist() == [0, 1, 1, 1]


def test_racks_come_before_moves_and_after_the_time() -> None:
    racks = {("t", number): frozenset({"a" if number < 4 else "b"}) for number in range(8)}
    members = [Member(member_id=f"m{rack}", topics=frozenset("t"), rack=rack) for rack in "ab"]
    group = Group.of({"t": range(8)}, members, racks)
    alike = load_of([0.06, 0.05, 0.05, 0.05, 0.07, 0.07, 0.05, 0.02], [1.0] * 2)
    assert plan_load(group, alike).owner.tolist() == [0] * 4 + [1] * 4
    hot = plan_load(group, load_of([0.3] * 4 + [0.1] * 4, [1.0] * 2))
    assert [hot.owner[:4].tolist().count(member) for member in (0, 1)] == [2, 2]


@pytest.mark.parametrize("budget", [0, 1, 2])
def test_no_more_move_than_may_and_each_that_does_helps(budget: int) -> None:
    for seed, group, load in random_loads():
        plan, staying = (plan_load(group, load, max_moves=most) for most in (budget, 0))
        check(plan, group)
        assert plan.moves <= budget, seed
        before, after = (work_times(each.owner, load).max() for each in (staying, plan))
        assert load.is_even(group) or after <= before * 1.02, seed


def test_equal_costs_are_planned_as_sticky_plans() -> None:
    for seed in sampled(150):
        group = random_case(seed).group
        load = load_of([0.1] * group.size, group.weights.tolist())
        assert plan_load(group, load).assignments() == plan_exact(group).assignments(), seed


def test_partitions_that_cost_nothing_are_shared_evenly() -> None:
    plan = plan_load(group_of([[], [], []], 12), load_of([0.0] * 12, [1.0, 1.0, 1.001]))
    assert plan.loads.tolist() == [4, 4, 4]
    idle = plan_load(group_of([[], []], 11), load_of([0.3, *[0.0] * 10], [1.0] * 2))
    assert idle.loads.min() >= 1


@pytest.mark.parametrize("hot", [1.2, 0.9])
def test_beside_one_partition_that_no_plan_relieves_the_others_are_balanced(hot: float) -> None:
    group = group_of([[0], [*range(1, 12)], []], 12)
    plan = plan_load(group, load_of([hot, *[0.08] * 11], [1.0] * 3))
    assert (sorted(plan.loads.tolist()), plan.moves) == ([1, 5, 6], 5)
    assert plan.owner[0] == 0


def test_members_that_may_not_have_a_partition_are_not_in_the_way_of_others() -> None:
    # 70 busy members of one topic, and 70 idle ones of another.
    members = [
        Member(
            member_id=f"m{number:03}", topics=frozenset("t"), claims={"t": range(4 * number, 4 * number + 4)}
        )
        for number in range(70)
    ]
    idle = [Member(member_id=f"x{number:03}", topics=frozenset("x")) for number in range(70)]
    costs = np.random.default_rng(7).uniform(0.05, 0.2, 280)
    moves = []
    for others in ([], idle):
        group = Group.of({"t": range(280), "x": range(1)}, [*members, *others])
        cost = [*costs, *[0.01] * (group.size - 280)]
        moves.append(plan_load(group, load_of(cost, [1.0] * len(group.members))).moves)
    assert moves[1] <= 1.2 * moves[0], moves


def test_the_order_of_members_and_partitions_does_not_matter() -> None:
    for seed, group, load in random_loads():
        again = random_case(seed).shuffled(Random(seed)).group
        assert plan_load(again, load).assignments() == plan_load(group, load).assignments(), seed


def test_a_group_is_at_rest_once_what_moves_was_revoked_and_given_away() -> None:
    for seed, group, load in random_loads():
        rounds, held = 0, group
        while (plan := plan_load(held, load)).moves:
            rounds += 1
            owner = plan.owner.copy()
            owner[plan.moved] = NOBODY
            held = replace(held, owner=owner)
            assert rounds <= 3, seed


def test_in_little_time_nothing_moves_and_free_partitions_go_where_they_are_done_soonest() -> None:
    for seed, group, load in random_loads():
        plan = place_load(group, load)
        check(plan, group)
        assert plan.moves == 0, seed
        sizes = load.counted(group).within(HORIZON)
        done = np.bincount(plan.owner, sizes, load.speed.size) / load.speed
        free = np.flatnonzero(group.owner == NOBODY)
        for member in {*plan.owner[free].tolist()}:
            last = max(free[plan.owner[free] == member].tolist(), key=lambda one: (-sizes[one], one))
            others = [*group.subscribers[group.topic_of[last]]]
            assert done[member] <= (done + sizes[last] / load.speed)[others].min() + 1e-9, seed


def test_in_little_time_no_rack_has_its_only_member_take_more_than_a_share() -> None:
    members = [
        Member(member_id=f"m{one}", topics=frozenset("t"), rack="b" if one else "a") for one in range(10)
    ]
    racks = {("t", one): frozenset("ab"[one % 2]) for one in range(12_010)}
    group = Group.of({"t": range(12_010)}, members, racks)
    alike = np.ones(group.size)
    load = Load(arriving=alike / 60, waiting=alike, speed=np.ones(10), stays=alike < 0)
    assert place_load(group, load).loads.tolist() == [1201] * 10


def test_many_partitions_of_services_of_their_own_are_near_the_bound() -> None:
    rng = np.random.default_rng(3)
    topics = {f"t{number}": range(400) for number in range(15)}
    members = [Member(member_id=f"m{n:03}", topics=frozenset({f"t{n % 15}"})) for n in range(150)]
    group = Group.of(topics, members)
    costs = rng.pareto(2, group.size)
    load = Load(
        arriving=costs * 50 / costs.sum(),
        waiting=costs,
        speed=rng.choice([0.5, 1.0, 2.0], 150),
        stays=np.zeros(group.size, dtype=np.bool_),
    )
    plan = plan_load(group, load)
    check(plan, group)
    assert work_times(plan.owner, load).max() <= 1.02 * least_time(group, load)
    worse = replace(load, speed=np.where(np.arange(150) == 7, 0.3, load.speed))
    again = plan_load(owned_after(plan), worse)
    assert 0 < again.moves < 60
    assert work_times(again.owner, worse).max() <= 1.1 * least_time(group, worse)


def test_planning_stops_when_the_tick_raises() -> None:
    class LateError(Exception):
        pass

    def tick() -> None:
        raise LateError

    with pytest.raises(LateError):
        plan_load(group_of([[0]], 2), load_of([0.1, 0.2], [1.0]), tick=tick)
