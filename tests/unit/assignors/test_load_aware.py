"""The load-aware strategy driven by hand: what a leader makes of measures, and when members ask for more."""

import copy
import math
import pickle
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any
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
from kafka_assignors._assignors._measured_load import Known, learn, load_of, measured_in, speeds
from kafka_assignors._assignors._measures import Measures, Standing
from kafka_assignors._assignors._membership.host import calls
from kafka_assignors._assignors._uneven import Uneven
from kafka_assignors._model.claims import Extra
from kafka_assignors._wire.measured import Measured, encode_measured
from kafka_assignors._wire.user_data import UNFINISHED, encode_sticky
from tests.support.by_hand import HandGroup, HandHost, cluster_of, joined, partitions_in

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


def join(group: HandGroup, *names: str, **options: Any) -> None:
    """Eager members, so that one round is a whole rebalance."""
    for name in names:
        group.join(name, LoadAwareAssignor(cooperative=False, **options))


def group_of(count: int, partitions: int, **options: Any) -> HandGroup:
    group = HandGroup({"t": range(partitions)})
    join(group, *(f"m{number}" for number in range(count)), **options)
    return group


def lags(partitions: int, some: Mapping[int, float], others: float = 1_000) -> Works:
    """Each record takes 10 ms; so many wait in some partitions, and in each of the others."""
    return {("t", one): Measured(0.01, some.get(one, others), 0) for one in range(partitions)}


def sizes(assigned: Mapping[str, Mapping[str, list[int]]]) -> list[int]:
    return sorted(map(len, ids(assigned).values()))


def measure(group: HandGroup, works: Works, slower: Mapping[str, float] | None = None) -> None:
    """Have members measure what their partitions cost; slow ones so many times as much."""
    for name, assignor in group.assignors.items():
        times = (slower or {}).get(name, 1.0)
        own = {one: work._replace(cost=work.cost * times) for one, work in works.items()}
        assignor._work.measures = Says(own)


def ids(assigned: Mapping[str, Mapping[str, list[int]]]) -> dict[str, set[int]]:
    return {member: {*topics.get("t", [])} for member, topics in assigned.items()}


def test_without_measures_loads_are_as_even_as_those_of_sticky() -> None:
    assert sizes(group_of(3, 8).rebalance()) == [2, 3, 3]


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


COSTS: dict[str, Any] = {
    "mapping": {"u": 9},
    "function": lambda topic, _: 9 if topic == "u" else 1,
    "numpy": {"t": np.float32(1), "u": np.int64(9)},
}


@pytest.mark.parametrize("cost", COSTS.values(), ids=COSTS)
def test_costs_by_hand_come_before_what_is_measured(cost: Any) -> None:
    group, given = HandGroup({"t": range(9), "u": range(1)}), copy.copy(cost)
    join(group, "a", "b", cost=given)
    if isinstance(given, dict):  # which counts as it was
        given["u"] = "much"
    assert sorted(sorted(one) for one in group.rebalance().values()) == [["t"], ["u"]]


def test_costs_by_hand_count_where_records_are_handed_to_threads() -> None:
    group = HandGroup({"t": range(9), "u": range(1)})
    join(group, "a", "b", cost={"u": 9})
    group.rebalance()
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
    some = {**dict.fromkeys(before["m0"], 100 * gain), heavy: 3_000 - 100 * gain}
    measure(group, lags(4, some, others=100))
    after = ids(group.rebalance())
    assert len(before["m0"] - after["m0"]) == moves


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        (lambda _, number: math.nan if number else 1, "nan"),
        (lambda topic, number: {("t", 0): 1}[topic, number], "KeyError(('t', 1))"),
    ],
)
def test_a_function_that_gives_no_cost_counts_as_1_with_one_warning(
    cost: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert sizes(group_of(2, 4, cost=cost).rebalance()) == [2, 2]
    assert [one for one in caplog.messages if "cost" in one] == [
        f"A cost must be a number from 1e-9 to 1e9: of t-1 it is {said}, and counts as 1"
    ]


def test_a_plan_that_is_not_ready_in_time_moves_nothing_and_gives_free_partitions_by_load(
    clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    group = group_of(2, 6)
    hot = min(ids(group.rebalance())["m0"])
    measure(group, lags(6, {hot: 14_000}))
    placed = ids(group.rebalance())
    assert placed == {"m0": {hot}, "m1": {*range(6)} - {hot}}
    clock.now += 1
    group.topics["t"] = range(8)  # each counts as the mean, 3,167
    group.assignors["m0"]._time_limit = 1e-9
    assert ids(group.rebalance()) == {"m0": {hot}, "m1": {*range(8)} - {hot}}
    assert "A plan by load of 8 partitions for 2 members was not ready after 1e-09 s" in caplog.text


def test_what_moved_for_load_stays_for_a_time_unless_members_come(clock: Clock) -> None:
    group = group_of(2, 4, settle=300)
    before = ids(group.rebalance())
    one, other = sorted(before["m0"])
    measure(group, lags(4, {one: 9_000}))
    moved = ids(group.rebalance())
    assert (moved["m0"] & {one, other}, len(moved["m0"])) == ({one}, 1)
    measure(group, lags(4, {other: 9_000}))
    clock.now += 299
    assert other in ids(group.rebalance())["m1"]
    assert ids(group.rebalance())["m1"] >= {other}
    clock.now += 2
    assert [owned for owned in ids(group.rebalance()).values() if other in owned] == [{other}]


def test_who_joins_gets_its_share_of_what_has_just_moved(clock: Clock) -> None:
    group = group_of(2, 8, settle=300)
    before = ids(group.rebalance())
    heavy, *others = sorted(before["m0"])
    measure(group, lags(8, {heavy: 7_000}))
    assert ids(group.rebalance()) == {"m0": {heavy}, "m1": {*range(8)} - {heavy}}
    clock.now += 1
    join(group, "m2")
    measure(group, lags(8, dict.fromkeys(others, 9_000), others=10))
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
    assert sizes(group.rebalance()) == [6, 6]
    join(group, "m9")
    assert sorted(map(len, refused(group).values())) == [4, 4, 4]
    assert sizes(group.rebalance()) == [4, 4, 4]


def test_what_moved_by_a_plan_that_did_not_reach_the_group_does_not_stay(clock: Clock) -> None:
    group = group_of(2, 4)
    before = ids(group.rebalance())
    heavy = min(before["m0"])
    measure(group, lags(4, {heavy: 9_000}))
    planned = refused(group)
    assert planned["m0"] == {heavy}
    clock.now += 1
    assert ids(group.rebalance()) == planned


def test_what_a_member_that_left_had_measured_is_remembered() -> None:
    group = group_of(3, 6)
    before = ids(group.rebalance())
    hot, middle = min(before["m2"]), {min(before["m0"]), min(before["m1"])}
    measure(group, lags(6, {hot: 50_000, **dict.fromkeys(middle, 25_000)}, others=10))
    assert ids(group.rebalance()) == before
    group.leave("m2")
    after = ids(group.rebalance())
    assert sorted(owned & {hot, *middle} for owned in after.values()) == [{hot}, middle]


def test_what_standbys_have_measured_counts_when_a_higher_priority_takes_over() -> None:
    group = group_of(2, 6)
    group.rebalance()
    measure(group, lags(6, {0: 5_000}))
    join(group, "m2", "m3", priority=1)
    assert sorted(ids(group.rebalance()).values(), key=len) == [set(), set(), {0}, {1, 2, 3, 4, 5}]


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
    hot, even = lags(4, {0: 9_000, 1: 9_000}, others=10), lags(4, {}, others=10)
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
    works = lags(4, {})
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
    assert [one._work.mean[0] > 1e38 for one in group.assignors.values()] == [True] * 2


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
    group = group_of(2, 6)
    group.rebalance()
    group.assignors["m1"].tell_claim = lambda claim: encode_sticky(
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


def test_a_member_is_believed_of_its_own_partitions_only_as_fast_as_it_is() -> None:
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
    known, speed, _ = learn(Known.nothing(group))  # costs of a member of speed 1
    assert (speed[0] / speed[1], known.numbers[0, 0]) == pytest.approx((2, known.numbers[1, 0]))


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
    assert speeds(group, costs).tolist() == [1, 0.5, 1.5]


def test_what_is_not_known_is_the_mean_of_its_topic_or_of_all() -> None:
    group, _ = costs_of([0, 0, 1, 1, 2, 2, 2], [1] * 7)
    numbers = np.full((7, 3), math.nan)
    numbers[0], numbers[1] = (2, 10, 1), (4, math.nan, 3)
    known = replace(Known.nothing(group), numbers=numbers)
    load = load_of(known, np.ones(3), np.zeros(7, dtype=np.bool_))
    assert load.waiting.tolist() == [20, 40, *[30] * 5]
    assert load.arriving.tolist() == [2, 12, *[6] * 5]


@pytest.mark.parametrize(
    ("options", "standby"), [({"priority": 0}, {"priority": -1}), ({"max_active": 2}, {})]
)
def test_each_member_hears_of_the_mean_load_of_those_who_take_part(
    options: dict[str, Any], standby: dict[str, Any]
) -> None:
    group = group_of(2, 4, **options)
    join(group, "c", "d", **standby)
    group.rebalance()
    assert [one._work.mean for one in group.assignors.values()] == [(0, 0)] * 4  # nothing is measured yet
    measure(group, {("t", one): Measured(0.5, 100, 0.25) for one in range(4)})
    assert sizes(group.rebalance()) == [0, 0, 2, 2]
    assert [one._work.mean for one in group.assignors.values()] == [(100.0, 0.25)] * 4


def given(assignor: LoadAwareAssignor, told: bytes | None, *partitions: int) -> None:
    had = [TopicPartition("t", one) for one in partitions]
    assignor.on_assignment(SimpleNamespace(partitions=lambda: had, user_data=told), 1)


@pytest.mark.parametrize(
    ("told", "mean"),
    [
        (None, (0, 0)),
        (b"", (0, 0)),
        (b"load", (0, 0)),
        (UNFINISHED * 3, (0, 0)),
        (b"load" + b"\x7f\xff" * 8, (0, 0)),
        (b"load" + b"\xff" * 16, (0, 0)),
        (_MEAN.pack(_MARK, 40, 2), (40, 2)),
        (UNFINISHED + _MEAN.pack(_MARK, 40, 2), (40, 2)),  # as static members hear it
    ],
)
def test_the_mean_is_what_an_assignment_says_if_it_can_be(
    told: bytes | None, mean: tuple[float, float]
) -> None:
    assignor = LoadAwareAssignor()
    given(assignor, told)
    assert assignor._work.mean == mean


def test_a_plan_is_not_remembered_if_another_leader_planned_in_its_place() -> None:
    host, leader = HandHost(), LoadAwareAssignor()
    with calls(host):
        leader.assign(cluster_of({"t": range(4)}), [joined("a", leader.metadata({"t"}))])
        leader.metadata({"t"})
        given(leader, b"", 0)
    assert leader._work.given is None


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


MEAN = 0, 40 / 60
"""Of 60 s the mean member needs 40 s."""


def uneven(cool_down: float = 600) -> Uneven:
    one = Uneven(uneven_for=60, at_least=1.5, cool_down=cool_down)
    one.rebalanced(0, MEAN, changed=True)
    return one


def test_a_member_asks_once_after_the_same_for_long_enough_and_after_the_cool_down() -> None:
    one = uneven()
    reasons = {now: reason for now in range(0, 1300, 5) if (reason := one.look(now, 80))}
    said = "for 60 s this member had 80 s of work for the next 60 s, 2 times the mean"
    assert reasons == {600: said, 1200: said}


@pytest.mark.parametrize(("mine", "arrives"), [(29, 1 / 60), (80, 54 / 60), (59, 40 / 60)])
def test_a_member_does_not_ask_that_has_little_to_do_or_not_much_more_than_others(
    mine: float, arrives: float
) -> None:
    one = uneven()
    one.rebalanced(0, (0, arrives), changed=True)
    assert not any(one.look(now, mine) for now in range(1000, 2000, 5))


def test_what_waited_for_the_mean_member_is_worked_off_meanwhile() -> None:
    one = uneven(cool_down=0)
    one.rebalanced(1000, (200, 0.25), changed=True)
    # The mean is 65 s from when 50 s wait: at 1200. This member asks when it has had more for 60 s.
    assert [now for now in range(1000, 1300, 5) if one.look(now, 1.5 * 65)] == [1260]


def test_a_moment_of_rest_and_a_rebalance_begin_the_time_anew() -> None:
    one = uneven()
    looks = [(1000, 80), (1055, 80), (1058, 40), (1059, 80), (1118, 80)]
    assert not any(one.look(now, mine) for now, mine in looks)
    one.rebalanced(1118, (0, 0), changed=True)
    assert not any(one.look(now, 80) for now in (1119, 1200, 1717))
    assert str(one.look(1719, 80)).endswith(", the mean member nothing")


def test_the_cool_down_doubles_while_rebalances_that_it_asked_for_change_nothing_for_it() -> None:
    one, at = uneven(), list[int]()
    for now in range(0, 20_000, 5):
        if one.look(now, 80):
            at.append(now)
            one.rebalanced(now, MEAN, changed=len(at) == 4)
            one.rebalanced(now, MEAN, changed=False)  # which another member wanted
    assert at == [600, 1800, 4200, 9000, 9600, 10800, 13200, 18000]


def test_without_a_cool_down_and_for_ever_pauses_have_bounds() -> None:
    one, pauses = uneven(cool_down=0), []
    for now in (100_000.0 * day for day in range(1, 20)):
        if [reason for later in (0, 60) if (reason := one.look(now + later, 80))]:
            one.rebalanced(now + 60, MEAN, changed=False)
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


WHEN = partial(rebalance_when, Asked(CooperativeStickyAssignor()))
USUAL = {"uneven_for": 60, "at_least": 1.5, "cool_down": 600}


@pytest.mark.parametrize(
    ("asking", "error"),
    [
        (
            partial(enforce_rebalance, SimpleNamespace(_coordinator=None), ""),
            "no group coordinator",
        ),
        (partial(enforce_rebalance, Asked(group_id=None), ""), "is in no group: give it a group_id"),
        (partial(enforce_rebalance, Asked(subscribes=False), ""), "the consumer subscribes to no topics"),
        (
            partial(WHEN, **USUAL | {"uneven_for": 0}),
            "uneven_for must be more than 0, not 0",
        ),
        (partial(WHEN, **USUAL | {"at_least": 1}), "at_least must be more than 1, not 1"),
        (
            partial(WHEN, **USUAL | {"cool_down": -1}),
            "cool_down must be 0 s or more, not -1",
        ),
        (
            partial(WHEN, **USUAL),
            r"no LoadAwareAssignor among its .* \(cooperative-sticky\)",
        ),
    ],
)
def test_what_cannot_be_asked_for_is_an_error(asking: Callable[[], None], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        asking()


@dataclass
class Busy:
    """A member that needs 96 s for its work of 60 s, and asks from twice the mean on."""

    clock: Clock
    cool_down: float
    host: HandHost = field(default_factory=HandHost)
    assignor: LoadAwareAssignor = field(default_factory=LoadAwareAssignor)

    def __post_init__(self) -> None:
        self.host.partitions = frozenset({TopicPartition("t", 0)})
        self.assignor._work.measures = Says({("t", 0): Measured(0.01, 9_000, 10)})
        rebalance_when(Asked(self.assignor), uneven_for=60, at_least=2, cool_down=self.cool_down)

    def polls(self, seconds: float) -> int:
        """How often it has asked after so many seconds more."""
        end = self.clock.now + seconds
        with calls(self.host):
            while self.clock.now < end:
                self.clock.now += 5
                self.assignor._work.measures.stand([])
        return self.host.rejoins


def test_a_member_with_too_much_of_the_load_asks_while_it_polls(clock: Clock) -> None:
    member = Busy(clock, cool_down=600)
    assert (member.polls(590), member.polls(20)) == (0, 1)  # it does not know the mean
    for number, (mean, rejoins) in enumerate(((40, 2), (50, 2), (40, 3))):
        given(member.assignor, _MEAN.pack(_MARK, 0.0, mean / 60), 0, number + 1)
        assert member.polls(700) == rejoins
    given(member.assignor, _MEAN.pack(_MARK, 0.0, 40 / 60), 0, 3)  # it changed nothing
    assert (member.polls(1190), member.polls(20)) == (3, 4)


def test_a_member_does_not_ask_while_it_joins_or_another_strategy_is_chosen(clock: Clock) -> None:
    member = Busy(clock, cool_down=0)
    member.host.generation = 1
    with calls(member.host):
        member.assignor.metadata({"t"})
    began = member.host.rejoins
    assert member.polls(600) == began
    given(member.assignor, b"")
    assert member.polls(120) == began + 1
