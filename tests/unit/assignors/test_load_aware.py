"""The load-aware strategy driven by hand: what a leader makes of measures, and when members ask for more."""

from __future__ import annotations

import copy
import math
import pickle
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from uuid import UUID

import numpy as np
import pytest
from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import TopicPartition

from kafka_assignors import (
    CooperativeStickyAssignor,
    Group,
    LoadAwareAssignor,
    Member,
    enforce_rebalance,
    rebalance_when,
)
from kafka_assignors._assignors._adapter import _OVERHEAD, RECORD_LIMIT
from kafka_assignors._assignors._load_aware import _MARK, _MEAN
from kafka_assignors._assignors._measured_load import (
    Known,
    known_now,
    load_of,
    measured_in,
    place_load,
    speeds,
)
from kafka_assignors._assignors._measures import Measures, Standing
from kafka_assignors._assignors._membership.host import calls
from kafka_assignors._assignors._uneven import Uneven
from kafka_assignors._model.arrays import NOBODY
from kafka_assignors._model.claims import Extra
from kafka_assignors._model.plan import check
from kafka_assignors._wire.measured import Measured, encode_measured
from kafka_assignors._wire.user_data import UNFINISHED, encode_sticky
from kafka_assignors.planners._load import Load
from tests.support.by_hand import HandGroup, HandHost, cluster_of, joined, partitions_in

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


Works = dict[tuple[str, int], Measured]


class Says(Measures):
    """Measures that are what a test says."""

    def __init__(self, works: Works) -> None:
        super().__init__()
        self.works = works

    def of(self, partitions: Mapping[str, Collection[int]]) -> Works:
        claimed = {(topic, number) for topic, numbers in partitions.items() for number in numbers}
        return {one: measured for one, measured in self.works.items() if one in claimed}


class Clock:
    """The leader's time."""

    now = 1000.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    turned = Clock()
    monkeypatch.setattr(
        "kafka_assignors._assignors._load_aware.time", SimpleNamespace(monotonic=lambda: turned.now)
    )
    return turned


def group_of(count: int, partitions: int, **options: Any) -> HandGroup:
    """Eager members, so that one round is a whole rebalance."""
    group = HandGroup({"t": range(partitions)})
    for number in range(count):
        group.join(f"m{number}", LoadAwareAssignor(cooperative=False, **options))
    return group


def measure(group: HandGroup, works: Works, slower: Mapping[str, float] | None = None) -> None:
    """Have members measure what their partitions cost; slow ones so many times as much."""
    for name, assignor in group.assignors.items():
        times = (slower or {}).get(name, 1.0)
        own = {one: work._replace(cost=work.cost * times) for one, work in works.items()}
        assignor._work.measures = Says(own)


def ids(assigned: Mapping[str, Mapping[str, list[int]]]) -> dict[str, set[int]]:
    return {member: {*topics.get("t", [])} for member, topics in assigned.items()}


def test_without_measures_loads_are_as_even_as_those_of_sticky() -> None:
    assert sorted(map(len, ids(group_of(3, 8).rebalance()).values())) == [2, 3, 3]


def test_two_hot_partitions_are_shared_out_and_nothing_moves_again() -> None:
    group = group_of(3, 12)
    before = ids(group.rebalance())
    hot = [*sorted(before["m0"])[:2]]
    works = {("t", one): Measured(0.01, 10_000 if one in hot else 1_000, 1) for one in range(12)}
    measure(group, works)
    after = ids(group.rebalance())
    owners = [next(name for name, owned in after.items() if one in owned) for one in hot]
    assert len({*owners}) == 2
    measure(group, works)
    assert ids(group.rebalance()) == after


def test_a_member_at_a_third_of_the_speed_gets_a_third_of_the_work() -> None:
    group = group_of(3, 70)
    group.rebalance()
    measure(group, {("t", one): Measured(0.01, 100, 1) for one in range(70)}, slower={"m1": 3.0})
    sizes = {name: len(owned) for name, owned in ids(group.rebalance()).items()}
    assert sizes == {"m0": 30, "m1": 10, "m2": 30}


def test_costs_by_hand_come_before_what_is_measured() -> None:
    for cost in ({"t": 1, "u": 9}, lambda topic, _: 9 if topic == "u" else 1):
        group = HandGroup({"t": range(9), "u": range(1)})
        for name in "ab":
            group.join(name, LoadAwareAssignor(cooperative=False, cost=cost))
        given = group.rebalance()
        assert sorted(sorted(one) for one in given.values()) == [["t"], ["u"]]


def test_costs_by_hand_count_where_records_are_handed_to_threads() -> None:
    group = HandGroup({"t": range(9), "u": range(1)})
    for name in "ab":
        group.join(name, LoadAwareAssignor(cooperative=False, cost={"u": 9}))
    assert sorted(sorted(one) for one in group.rebalance().values()) == [["t"], ["u"]]
    measure(group, {("t", one): Measured(5e-6, 200, 20) for one in range(9)})
    for one in group.assignors.values():
        one._work.measures.works["u", 0] = Measured(5e-6, 100, 10)
    given = group.rebalance()
    assert sorted(len(owned["t"]) for owned in given.values() if "u" in owned) == [2]
    # What members compare themselves with is the work as it is, in the unit that measures have as their mean.
    unit = 5e-6 / 9**0.1
    for one in group.assignors.values():
        assert one._work.mean == pytest.approx((unit * 2700 / 2, unit * 270 / 2))


@pytest.mark.parametrize(("gain", "moves"), [(5.6, 0), (5.8, 1)])
def test_a_move_for_load_has_to_save_a_tenth_of_a_minute(gain: float, moves: int) -> None:
    group = group_of(2, 4)
    before = ids(group.rebalance())
    heavy = min(before["m0"])
    # One has 30 s of work. Each partition counts as 0.3 s at the least for what arrives.
    lags = {**dict.fromkeys(before["m1"], 1.0), **dict.fromkeys(before["m0"], gain), heavy: 30 - gain}
    measure(group, {("t", one): Measured(1, lag, 0) for one, lag in lags.items()})
    after = ids(group.rebalance())
    assert len(before["m0"] - after["m0"]) == moves


def test_a_function_that_gives_no_cost_counts_as_1_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    group = group_of(2, 4, cost=lambda _, number: math.nan if number else 1)
    assert sorted(map(len, ids(group.rebalance()).values())) == [2, 2]
    assert "of t-1 it is nan, and counts as 1" in caplog.text


def test_a_function_of_costs_that_raises_counts_as_1_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    group = group_of(2, 4, cost=lambda topic, number: {("t", 0): 1}[topic, number])
    assert sorted(map(len, ids(group.rebalance()).values())) == [2, 2]
    assert [one for one in caplog.messages if "cost" in one] == [
        "A cost must be a number from 1e-9 to 1e9: of t-1 it is KeyError(('t', 1)), and counts as 1"
    ]


def test_costs_by_hand_may_be_of_numpy_and_those_of_a_mapping_are_as_it_was() -> None:
    costs: dict[str, Any] = {"t": np.float32(1), "u": np.int64(9)}
    group = HandGroup({"t": range(9), "u": range(1)})
    for name in "ab":
        group.join(name, LoadAwareAssignor(cooperative=False, cost=costs))
    costs["u"] = "much"
    assert sorted(sorted(one) for one in group.rebalance().values()) == [["t"], ["u"]]


def test_a_plan_that_takes_too_long_gives_way_to_a_quick_one(caplog: pytest.LogCaptureFixture) -> None:
    group = group_of(2, 40, time_limit=1e-9)
    group.rebalance()
    measure(group, {("t", one): Measured(0.01, 10 * one, 1) for one in range(40)})
    assert sorted(map(len, ids(group.rebalance()).values())) == [20, 20]
    assert "A plan by load of 40 partitions for 2 members was not ready after 1e-09 s" in caplog.text


def test_a_quick_plan_moves_nothing_and_gives_free_partitions_by_load(clock: Clock) -> None:
    group = group_of(2, 6)
    hot = min(ids(group.rebalance())["m0"])
    measure(group, {("t", one): Measured(0.01, 14_000 if one == hot else 1_000, 0) for one in range(6)})
    placed = ids(group.rebalance())
    assert placed == {"m0": {hot}, "m1": {*range(6)} - {hot}}
    clock.now += 1
    group.topics["t"] = range(8)  # each counts as the mean, 3,167
    group.assignors["m0"]._time_limit = 1e-9
    assert ids(group.rebalance()) == {"m0": {hot}, "m1": {*range(8)} - {hot}}


def test_a_quick_plan_gives_free_partitions_to_subscribers_that_are_done_soonest() -> None:
    for seed in range(50):
        rng = Random(seed)
        topics = {name: range(rng.randint(1, 9)) for name in "tuv"}
        members = [
            Member(
                member_id=f"m{number}",
                topics=frozenset(rng.sample("tuv", rng.randint(1, 3))) | ({"t"} if number else {*"tuv"}),
                claims={"t": [number]},
                weight=rng.randint(1, 3),
            )
            for number in range(rng.randint(1, 5))
        ]
        group = Group.of(topics, members)
        cost = np.array([rng.choice([1, 2, 8]) for _ in range(group.size)], dtype=np.float64)
        load = Load(
            arriving=np.zeros(group.size),
            waiting=cost,
            speed=np.ones(len(members)),
            stays=np.zeros(group.size, dtype=np.bool_),
        )
        plan = place_load(group, load)
        check(plan, group)
        assert plan.moves == 0
        # When a member was given its last one, nobody who might have it instead had less to do.
        speed = group.weights / group.weights.mean()
        done = np.bincount(plan.owner, weights=cost, minlength=len(members)) / speed
        given = np.flatnonzero(group.owner == NOBODY)
        for member in {*plan.owner[given].tolist()}:
            last = max(given[plan.owner[given] == member].tolist(), key=lambda one: (-cost[one], one))
            others = [*group.subscribers[group.topic_of[last]]]
            assert done[member] - cost[last] / speed[member] <= done[others].min() + 1e-9, (seed, group)


def test_what_moved_for_load_stays_for_a_time_unless_members_come(clock: Clock) -> None:
    group = group_of(2, 4, settle=300)
    before = ids(group.rebalance())
    one, other = sorted(before["m0"])

    def heavy(number: int) -> Works:
        return {("t", each): Measured(0.01, 9_000 if each == number else 1_000, 0) for each in range(4)}

    measure(group, heavy(one))
    moved = ids(group.rebalance())
    assert (moved["m0"] & {one, other}, len(moved["m0"])) == ({one}, 1)
    measure(group, heavy(other))
    clock.now += 299
    assert other in ids(group.rebalance())["m1"]
    assert ids(group.rebalance())["m1"] >= {other}
    clock.now += 2
    assert [owned for owned in ids(group.rebalance()).values() if other in owned] == [{other}]


def test_who_joins_gets_its_share_of_what_has_just_moved(clock: Clock) -> None:
    group = group_of(2, 8, settle=300)
    before = ids(group.rebalance())
    heavy, *others = sorted(before["m0"])
    measure(group, {("t", one): Measured(0.01, 7_000 if one == heavy else 1_000, 0) for one in range(8)})
    assert ids(group.rebalance()) == {"m0": {heavy}, "m1": {*range(8)} - {heavy}}
    clock.now += 1
    group.join("m2", LoadAwareAssignor(cooperative=False))
    measure(group, {("t", one): Measured(0.01, 9_000 if one in others else 10, 0) for one in range(8)})
    assert [len(owned.intersection(others)) for owned in ids(group.rebalance()).values()] == [1, 1, 1]


def refused(group: HandGroup) -> dict[str, set[int]]:
    """What the leader plans if its SyncGroup is answered that another rebalance has begun."""
    members = [joined(name, one.metadata(group.subscriptions[name])) for name, one in group.assignors.items()]
    assigned = next(iter(group.assignors.values())).assign(cluster_of(group.topics), members)
    return ids({name: partitions_in(one) for name, one in assigned.items()})


def test_who_joins_gets_its_share_though_the_first_plan_with_it_did_not_reach_the_group() -> None:
    group = group_of(2, 12)
    group.rebalance()
    measure(group, {("t", one): Measured(1e-4, one % 2, 0.1) for one in range(12)})
    assert sorted(map(len, ids(group.rebalance()).values())) == [6, 6]
    group.join("m9", LoadAwareAssignor(cooperative=False))
    assert sorted(map(len, refused(group).values())) == [4, 4, 4]
    assert sorted(map(len, ids(group.rebalance()).values())) == [4, 4, 4]


def test_what_moved_by_a_plan_that_did_not_reach_the_group_does_not_stay(clock: Clock) -> None:
    group = group_of(2, 4)
    before = ids(group.rebalance())
    heavy = min(before["m0"])
    measure(group, {("t", one): Measured(0.01, 9_000 if one == heavy else 1_000, 0) for one in range(4)})
    planned = refused(group)
    assert planned["m0"] == {heavy}
    clock.now += 1
    assert ids(group.rebalance()) == planned


def test_what_a_member_that_left_had_measured_is_remembered() -> None:
    group = group_of(3, 6)
    before = ids(group.rebalance())
    hot, middle = min(before["m2"]), {min(before["m0"]), min(before["m1"])}
    lags = {hot: 50_000, **dict.fromkeys(middle, 25_000)}
    works = {("t", one): Measured(0.01, lags.get(one, 10), 0) for one in range(6)}
    measure(group, works)
    assert ids(group.rebalance()) == before
    group.leave("m2")
    after = ids(group.rebalance())
    assert sorted(owned & {hot, *middle} for owned in after.values()) == [{hot}, middle]


def test_what_standbys_have_measured_counts_when_a_higher_priority_takes_over() -> None:
    group = HandGroup({"t": range(6)})
    for name in "ab":
        group.join(name, LoadAwareAssignor(cooperative=False))
    group.rebalance()
    lags = dict.fromkeys(range(6), 1_000.0) | {0: 5_000.0}
    measure(group, {("t", one): Measured(0.01, lag, 0) for one, lag in lags.items()})
    for name in "cd":
        group.join(name, LoadAwareAssignor(cooperative=False, priority=1))
    given = ids(group.rebalance())
    assert (given["a"], given["b"]) == (set(), set())
    assert sorted([given["c"], given["d"]], key=len) == [{0}, {1, 2, 3, 4, 5}]


def test_members_say_the_same_until_they_have_their_assignment(clock: Clock) -> None:
    assignor = LoadAwareAssignor()
    given = SimpleNamespace(partitions=lambda: [TopicPartition("t", 0)], user_data=b"")
    assignor.on_assignment(given, 1)
    assignor._work.measures = Says({("t", 0): Measured(1, 2, 3)})
    said = assignor.metadata({"t"}).encode()
    assert encode_measured({("t", 0): Measured(1, 2, 3)}) in said
    assignor._work.measures = Says({("t", 0): Measured(4, 5, 6)})
    clock.now += 100_000
    assert assignor.metadata({"t"}).encode() == said
    assignor.on_assignment(given, 2)
    assert encode_measured({("t", 0): Measured(4, 5, 6)}) in assignor.metadata({"t"}).encode()


def one_round(
    host: HandHost, leader: LoadAwareAssignor, claims: Mapping[str, list[int]], works: Works
) -> dict[str, set[int]]:
    """The next round of a cooperative rebalance of members that claim to hold partitions."""
    host.generation += 1
    members = []
    for name, owned in claims.items():
        member = LoadAwareAssignor()
        member._work.measures = Says(works)
        member.on_assignment(ConsumerProtocolAssignment(1, [("t", owned)], b""), host.generation - 1)
        members.append(joined(name, member.metadata({"t"})))
    with calls(host):
        leader.metadata({"t"})
        assigned = leader.assign(cluster_of({"t": range(4)}), members)
        leader.on_assignment(ConsumerProtocolAssignment(1, [], b""), host.generation)
    return ids({name: partitions_in(one) for name, one in assigned.items()})


def test_the_second_round_of_a_rebalance_plans_by_the_load_of_the_first(clock: Clock) -> None:
    # A member measures what it has revoked no more, so that in the second round nobody does.
    host, leader = HandHost(), LoadAwareAssignor()
    hot = {("t", number): Measured(0.01, 9_000 if number < 2 else 10, 0) for number in range(4)}
    even = {("t", number): Measured(0.01, 10, 0) for number in range(4)}
    assert one_round(host, leader, {"a": [0, 1], "b": [2, 3]}, even) == {"a": {0, 1}, "b": {2, 3}}
    clock.now += 1
    first = one_round(host, leader, {"a": [0, 1], "b": [2, 3]}, hot)
    assert (len(first["a"]), first["b"]) == (1, {2, 3})
    # A member that has not heard of it claims all that it had, and is asked again.
    clock.now += 1
    assert one_round(host, leader, {"a": [0, 1], "b": [2, 3]}, even) == first
    # What is measured now would give "a" back what it has revoked.
    second = one_round(host, leader, {name: sorted(owned) for name, owned in first.items()}, even)
    assert second == {"a": first["a"], "b": {0, 1, 2, 3} - first["a"]}


def test_the_second_round_of_a_rebalance_plans_by_the_costs_of_the_first() -> None:
    costs = [9, 9, 1, 1, 1, 1, 1, 99]  # they differ each time
    host, leader = HandHost(), LoadAwareAssignor(cost=lambda _, __: costs.pop(0))
    works = {("t", number): Measured(0.01, 1000, 0) for number in range(4)}
    first = one_round(host, leader, {"a": [0, 1], "b": [2, 3]}, works)
    assert (len(first["a"]), first["b"]) == (1, {3})
    second = one_round(host, leader, {name: sorted(owned) for name, owned in first.items()}, works)
    # Each has one that costs 9.
    assert {name: sorted(one // 2 for one in owned) for name, owned in second.items()} == {
        name: [0, 1] for name in "ab"
    }


def test_a_mean_of_any_load_is_told() -> None:
    group = group_of(2, 20, cost=lambda _, number: 1e9 if number else 1e-9)
    group.rebalance()
    measure(group, {("t", 0): Measured(86_400, 1e15, 1e9)})
    group.rebalance()
    assert [one._work.mean[0] > 1e38 for one in group.assignors.values()] == [True, True]


def test_measures_leave_room_for_350_members_in_a_groups_record() -> None:
    group, name = HandGroup({"orders": range(100)}), f"billing-1-{UUID(int=7)}"
    group.join(name, LoadAwareAssignor())
    group.rebalance()
    measure(group, {("orders", one): Measured(0.01, 1000 + one, 7) for one in range(100)})
    member = group.assignors[name]
    sent = member.metadata({"orders"}).encode()
    given = member.assign(cluster_of(group.topics), [joined(name, sent)])[name].encode()
    size = len(sent) + len(given) + _OVERHEAD + 2 * len(name)
    assert RECORD_LIMIT // size >= 350


ONE = encode_measured({("t", 0): Measured(1, 2, 3)})
ODD = {
    "not a number": ONE.replace(b"\x3f\x80", b"\x7f\xff"),
    "minus infinity": ONE.replace(b"\x3f\x80", b"\xff\x80"),
}
HOSTILE = {
    "nothing": b"",
    "noise": bytes(range(256)) * 8,
    "a megabyte": b"\0\1\0\1\0\1t" + bytes(1_000_000),
    "costs of 0": encode_measured({("t", one): Measured(0, 1e15, 1e9) for one in range(6)}),
    "the most there can be": encode_measured({("t", one): Measured(86_400, 1e15, 1e9) for one in range(6)}),
    **ODD,
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_a_group_has_all_its_partitions_whatever_a_member_sends(
    raw: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    group = HandGroup({"t": range(6)})
    for name in "ab":
        group.join(name, LoadAwareAssignor(cooperative=False))
    group.rebalance()
    group.assignors["b"].tell_claim = lambda claim: encode_sticky(
        claim.partitions, claim.generation, 1, Extra(0, raw)
    )
    measure(group, {("t", one): Measured(0.01, 10, 1) for one in range(6)})
    for _ in range(3):
        given = ids(group.rebalance())
        assert sorted(one for owned in given.values() for one in owned) == [*range(6)]
    named = [one for one in caplog.messages if "measured counts as unknown" in one]
    assert len(named) == (
        raw in {HOSTILE[name] for name in ("noise", "a megabyte", "not a number", "minus infinity")}
    )


def test_a_member_is_believed_of_its_own_partitions_only() -> None:
    def measured(cost: float) -> bytes:
        return encode_measured({("t", number): Measured(cost, 5, 5) for number in range(3)})

    members = [
        Member(
            member_id=name,
            topics=frozenset("t"),
            claims={"t": [own]},
            data=encode_measured({("t", 0): Measured(own + 1, 5, 5), ("t", 1): Measured(own + 1, 5, 5)}),
        )
        for name, own in (("a", 0), ("b", 1))
    ]
    group = Group.of({"t": range(3)}, members)
    numbers, faults = measured_in(group)
    assert (numbers[:2, 0].tolist(), faults) == ([1, 2], {})
    assert np.isnan(numbers[2]).all()


def costs_of(
    owners: list[int], costs: list[float], weights: tuple[int, ...] = (1, 1, 1)
) -> tuple[Group, Any]:
    members = [
        Member(
            member_id=f"m{number}",
            topics=frozenset({"t", "u"}),
            claims={
                "t": [one for one in range(6) if owners[one] == number],
                "u": [0] if owners[6] == number else [],
            },
            weight=weight,
        )
        for number, weight in enumerate(weights)
    ]
    return Group.of({"t": range(6), "u": range(1)}, members), np.array(costs, dtype=np.float64)


@pytest.mark.parametrize(
    ("owners", "costs", "expected"),
    [
        ([0, 0, 1, 1, 2, 2, 0], [1, 1, 1, 1, 1, 1, 1], [1, 1, 1]),
        ([0, 0, 0, 1, 1, 2, 2], [1, 1, 10, 1, 1, 1, 50], [1, 1, 1]),  # one partition is dear, not its owner
        ([0, 0, 1, 1, 2, 2, 2], [1, 1, 3, 3, 1, 1, 7], [9 / 7, 3 / 7, 9 / 7]),
        ([0, 0, 1, 1, 2, 2, 2], [1, 1, 3, 3, math.nan, math.nan, 7], [3 / 2.5, 1 / 2.5, 2 / 2.5]),
        ([0, 0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1, 9], [1, 1, 1]),  # no topic in common
        ([0, 0, 1, 1, 2, 2, 2], [1e-9, 1e-9, 1, 1, 1, 1, 1], None),
    ],
)
def test_speeds_are_compared_where_members_have_partitions_of_one_topic(
    owners: list[int], costs: list[float], expected: list[float] | None
) -> None:
    found = speeds(*costs_of(owners, costs))
    assert found.mean() == pytest.approx(1)
    if expected is None:
        assert found.max() / found.min() <= 16 * 16
    else:
        assert found.tolist() == pytest.approx([one / np.mean(expected) for one in expected])


def test_weights_that_differ_are_the_speeds() -> None:
    group, costs = costs_of([0, 0, 1, 1, 2, 2, 2], [1, 1, 3, 3, 1, 1, 7], (2, 1, 3))
    speed = speeds(group, costs)
    assert speed.tolist() == [1, 0.5, 1.5]
    numbers = np.column_stack((costs, costs, costs))
    known = known_now(group, numbers, speed, Known.nothing(group))
    assert known.numbers[:, 0].tolist() == [1, 1, 1.5, 1.5, 1.5, 1.5, 10.5]
    load = load_of(known, speed, np.zeros(7, dtype=np.bool_))
    assert load.speed.tolist() == [1, 1, 1]  # the planner multiplies by the weights


def test_what_is_not_known_is_the_mean_of_its_topic_or_of_all() -> None:
    group, _ = costs_of([0, 0, 1, 1, 2, 2, 2], [1] * 7)
    numbers = np.full((7, 3), math.nan)
    numbers[0], numbers[1] = (2, 10, 1), (4, math.nan, 3)
    known = replace(Known.nothing(group), numbers=numbers)
    load = load_of(known, np.ones(3), np.zeros(7, dtype=np.bool_))
    assert load.waiting.tolist() == [20, 40, *[30] * 5]
    assert load.arriving.tolist() == [2, 12, *[6] * 5]


def test_each_member_hears_of_the_mean_load_once_something_is_measured() -> None:
    group = group_of(2, 4)
    group.rebalance()
    assert [one._work.mean for one in group.assignors.values()] == [None, None]
    measure(group, {("t", one): Measured(0.5, 100, 0.25) for one in range(4)})
    group.rebalance()
    assert [one._work.mean for one in group.assignors.values()] == [(100.0, 0.25)] * 2


@pytest.mark.parametrize(
    ("options", "standby"), [({"priority": 0}, {"priority": -1}), ({"max_active": 2}, {})]
)
def test_members_that_stand_by_are_left_out_of_the_mean(
    options: dict[str, Any], standby: dict[str, Any]
) -> None:
    group = HandGroup({"t": range(4)})
    for name, taken in (("a", options), ("b", options), ("c", standby), ("d", standby)):
        group.join(name, LoadAwareAssignor(cooperative=False, **taken))
    group.rebalance()
    measure(group, {("t", one): Measured(0.5, 100, 0.25) for one in range(4)})
    assert sorted(map(len, ids(group.rebalance()).values())) == [0, 0, 2, 2]
    assert [one._work.mean for one in group.assignors.values()] == [(100.0, 0.25)] * 4


@pytest.mark.parametrize(
    "told", [None, b"", b"load", b"unfinished", b"load" + b"\x7f\xff" * 4, b"load" + b"\xff" * 8]
)
def test_an_assignment_without_a_mean_is_taken_all_the_same(told: bytes | None) -> None:
    assignor = LoadAwareAssignor()
    assignor.on_assignment(SimpleNamespace(partitions=list, user_data=told), 1)
    assert assignor._work.mean is None


def test_eager_consumers_have_the_strategy_by_an_option() -> None:
    eager, both = [RebalanceProtocol.EAGER], [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]
    assert LoadAwareAssignor().supported_protocols() == both
    assert LoadAwareAssignor(cooperative=False).supported_protocols() == eager


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tolerance": 1.0}, "tolerance must be 0 or more and below 1, not 1.0"),
        ({"tolerance": math.nan}, "tolerance must be"),
        ({"settle": -1}, "settle must be 0 s or more, not -1"),
        ({"cost": {"t": 0}}, "the cost of 't' must be a number from 1e-9 to 1e9, not 0"),
        ({"cost": {"t": True}}, "the cost of 't' must be a number from 1e-9 to 1e9, not True"),
        ({"cost": 5}, "cost must be a mapping of topics, or a function of topic and partition id, not 5"),
        ({"cost": {"t": "2"}}, "the cost of 't' must be a number from 1e-9 to 1e9, not '2'"),
    ],
)
def test_options_out_of_range_are_named(options: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        LoadAwareAssignor(**options)


@pytest.mark.parametrize("copied", [copy.copy, lambda one: pickle.loads(pickle.dumps(one))])  # noqa: S301
def test_a_copy_has_the_options_and_has_measured_nothing(copied: Any) -> None:
    assignor = LoadAwareAssignor(cost={"t": 2}, settle=7)
    assignor._work.measures.stand([(TopicPartition("t", 0), Standing(1, 2))])
    made = copied(assignor)
    assert (made._cost, made._settle, made._work.measures.of({"t": [0]})) == ({"t": 2}, 7, {})


def uneven(asked: list[str]) -> Uneven:
    one = Uneven(uneven_for=60, at_least=1.5, cool_down=600, ask=asked.append)
    one.rebalanced(0, changed=True)
    return one


def test_a_member_asks_once_after_the_same_for_long_enough_and_after_the_cool_down() -> None:
    asked: list[str] = []
    one = uneven(asked)
    for now in range(0, 1300, 5):
        one.look(now, mine=80, mean=40)
        assert len(asked) == (now >= 600) + (now >= 1200)
    assert asked[0] == "for 60 s this member had 80 s of work for the next 60 s, 2 times the mean"


@pytest.mark.parametrize(("mine", "mean"), [(29, 1), (80, 54), (59, 40)])
def test_a_member_does_not_ask_that_has_little_to_do_or_not_much_more_than_others(
    mine: float, mean: float
) -> None:
    asked: list[str] = []
    one = uneven(asked)
    for now in range(1000, 2000, 5):
        one.look(now, mine, mean)
    assert asked == []


def test_a_moment_of_rest_and_a_rebalance_begin_the_time_anew() -> None:
    asked: list[str] = []
    one = uneven(asked)
    for now in (1000, 1055):
        one.look(now, 80, 40)
    one.look(1058, 40, 40)
    for now in (1059, 1118):
        one.look(now, 80, 40)
    one.rebalanced(1118, changed=True)
    for now in (1119, 1200, 1717):
        one.look(now, 80, 40)
    assert asked == []
    one.look(1719, 80, 0)
    assert asked == ["for 60 s this member had 80 s of work for the next 60 s, of which no mean is known yet"]


def test_the_cool_down_doubles_while_rebalances_that_it_asked_for_change_nothing_for_it() -> None:
    asked: list[str] = []
    one, at = uneven(asked), list[int]()
    for now in range(0, 20_000, 5):
        one.look(now, mine=80, mean=40)
        if len(asked) > len(at):
            at.append(now)
            one.rebalanced(now, changed=len(at) == 4)
            one.rebalanced(now, changed=False)  # which another member wanted
    assert at == [600, 1800, 4200, 9000, 9600, 10800, 13200, 18000]


def test_without_a_cool_down_and_for_ever_pauses_have_bounds() -> None:
    one = Uneven(uneven_for=60, at_least=1.5, cool_down=0, ask=lambda _: one.rebalanced(now, changed=False))
    pauses = []
    for now in (100_000.0 * day for day in range(1, 20)):
        for later in (0, 60):
            one.look(now + later, 80, 40)
        pauses.append(one.pause)
    assert (pauses[:3], pauses[-1]) == ([120, 240, 480], 86_400)


class Asked:
    """A consumer as far as it is asked to rebalance."""

    def __init__(self, *assignors: Any, subscribes: bool = True, group_id: str | None = "g") -> None:
        self.asked = 0
        self._subscription = SimpleNamespace(partitions_auto_assigned=lambda: subscribes)
        self._assignors = {one.name: one for one in assignors}
        self.group_id = group_id
        self._coordinator = self

    def request_rejoin(self) -> None:
        self.asked += 1


def test_an_enforced_rebalance_is_logged_with_its_reason(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    consumer = Asked()
    enforce_rebalance(consumer, "the cache is warm")
    assert consumer.asked == 1
    assert caplog.messages == ["Asking for a rebalance of group g: the cache is warm"]


@pytest.mark.parametrize(
    ("consumer", "error"),
    [
        (SimpleNamespace(_coordinator=None), "has no group coordinator: start it first"),
        (Asked(group_id=None), "is in no group: give it a group_id"),
        (Asked(subscribes=False), "the consumer subscribes to no topics"),
    ],
)
def test_a_consumer_that_cannot_rebalance_is_an_error(consumer: Any, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        enforce_rebalance(consumer, "")


@pytest.mark.parametrize(
    ("numbers", "error"),
    [
        ({"uneven_for": 0}, "uneven_for must be more than 0, not 0"),
        ({"at_least": 1}, "at_least must be more than 1, not 1"),
        ({"cool_down": -1}, "cool_down must be 0 s or more, not -1"),
        ({}, r"no LoadAwareAssignor among its strategies \(cooperative-sticky\)"),
    ],
)
def test_what_rebalance_when_cannot_do_is_an_error(numbers: dict[str, float], error: str) -> None:
    usual = {"uneven_for": 60, "at_least": 1.5, "cool_down": 600}
    with pytest.raises(ValueError, match=error):
        rebalance_when(Asked(CooperativeStickyAssignor()), **{**usual, **numbers})


def test_a_member_with_too_much_of_the_load_asks_while_it_polls(clock: Clock) -> None:
    assignor, host = LoadAwareAssignor(), HandHost()
    measures = assignor._work.measures = Says({("t", 0): Measured(0.01, 9_000, 10)})
    host.partitions = frozenset({TopicPartition("t", 0)})
    rebalance_when(Asked(assignor), uneven_for=60, at_least=2, cool_down=600)

    def polls_until(end: float) -> int:
        with calls(host):
            while clock.now < end:
                clock.now += 5
                measures.stand([])
        return host.rejoins

    def given(told: bytes, *partitions: int) -> None:
        had = [TopicPartition("t", one) for one in partitions]
        assignor.on_assignment(SimpleNamespace(partitions=lambda: had, user_data=told), 1)

    # It needs 96 s of 60 s. At first it does not know the mean; then that is 40 s, then 50 s.
    began = clock.now
    assert (polls_until(began + 590), polls_until(began + 610)) == (0, 1)
    for number, (mean, rejoins) in enumerate(((40, 2), (50, 2), (40, 3))):
        given(_MEAN.pack(_MARK, mean, 0.0), 0, number + 1)
        assert polls_until(clock.now + 700) == rejoins
    # It changed nothing.
    given(_MEAN.pack(_MARK, 40, 0.0), 0, 3)
    assert (polls_until(clock.now + 1190), polls_until(clock.now + 20)) == (3, 4)


@pytest.mark.parametrize(("mean", "rejoins"), [(None, 0), (40, 1), (50, 0)])
def test_a_static_member_keeps_the_mean_when_it_is_told_something_else(
    mean: float | None, rejoins: int, clock: Clock
) -> None:
    assignor, host = LoadAwareAssignor(), HandHost()
    measures = assignor._work.measures = Says({("t", 0): Measured(0.01, 9_000, 10)})
    host.partitions = frozenset({TopicPartition("t", 0)})
    rebalance_when(Asked(assignor), uneven_for=60, at_least=2, cool_down=0)

    def told(note: bytes) -> None:
        assignor.on_assignment(
            SimpleNamespace(partitions=lambda: [TopicPartition("t", 0)], user_data=note), 1
        )

    def polls() -> None:
        with calls(host):
            for _ in range(2):
                clock.now += 61
                measures.stand([])

    if mean is not None:
        told(_MEAN.pack(_MARK, mean, 0.0))
    told(UNFINISHED)
    polls()
    assert host.rejoins == 0
    told(b"waits" + bytes(4))
    polls()
    assert host.rejoins == rejoins


def test_a_member_does_not_ask_while_it_joins_or_another_strategy_is_chosen(clock: Clock) -> None:
    assignor, host = LoadAwareAssignor(), HandHost()
    host.partitions = frozenset({TopicPartition("t", 0)})
    host.generation = 1
    with calls(host):
        assignor.metadata({"t"})
        measures = assignor._work.measures = Says({("t", 0): Measured(0.01, 9_000, 10)})
        rebalance_when(Asked(assignor), uneven_for=60, at_least=2, cool_down=0)
        began = host.rejoins
        for _ in range(10):
            clock.now += 61
            measures.stand([])
        assert host.rejoins == began
        assignor.on_assignment(SimpleNamespace(partitions=list, user_data=b""), 1)
        for _ in range(2):
            clock.now += 61
            measures.stand([])
        assert host.rejoins == began + 1
