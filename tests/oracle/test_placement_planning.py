"""Plans of replica moves against oracles that are no flows, and what must hold of all of them."""

import builtins
from collections import Counter
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._planning.moves import MovePlan, plan_moves
from kafka_assignors.placement._planning.spread import least_squares
from tests.support.placement_oracle import Case, Oracle, Solved, random_case, reached, sets_of
from tests.support.scale import block, examples, scaled

NO_RACKS: dict[int, str | None] = {0: None, 1: None, 2: None}
SEEDS = st.integers(0, 2**32)


def replicas(plan: MovePlan) -> dict[tuple[str, int], list[int]]:
    return {(topic, p): brokers for topic, of in plan.after.items() for p, brokers in of.items()}


def check(seed: int, case: Case, oracle: type[Oracle | Solved]) -> None:
    after = replicas(case.plan())
    for problem in filter(None, case.problems()):
        for key in problem:
            assert tuple(sorted(after[key])) in sets_of(case, key), f"random_case({seed}): {case}"
        best = oracle(case, problem).best(after)
        assert reached(case, problem, after) == best, f"random_case({seed}): {case}"


@pytest.mark.parametrize("seeds", [block(number, 750) for number in range(4)], ids=str)
def test_balance_moves_and_leaders_are_those_of_trying_all_placements(seeds: range) -> None:
    for seed in seeds:
        check(seed, random_case(seed), Oracle)


@pytest.mark.parametrize("seeds", [block(number, 15) for number in range(4)], ids=str)
def test_balance_moves_and_leaders_of_more_partitions_are_those_of_cp_sat(seeds: range) -> None:
    for seed in seeds:
        check(seed, random_case(seed, brokers=9, partitions=20), Solved)


def test_the_two_oracles_agree() -> None:
    for seed in range(scaled(100)):
        case = random_case(seed)
        after = replicas(case.plan())
        for problem in filter(None, case.problems()):
            found = Oracle(case, problem).best(after)
            assert found == Solved(case, problem).best(after), f"random_case({seed})"


@given(SEEDS)
@examples(200)
def test_a_plan_is_valid_and_says_what_it_does(seed: int) -> None:
    case = random_case(seed)
    plan = case.plan()
    after = replicas(plan)
    added: Counter[tuple[str, int]] = Counter()
    for move in plan.moves:
        present = case.topics[move.topic][move.partition]
        now = after[move.topic, move.partition]
        assert move.target in now
        assert move.target not in present
        assert move.source is None or (move.source in present and move.source not in now)
        assert move.size == (case.sizes[move.topic, move.partition] if case.sizes else None)
        added[move.topic, move.partition] += 1
    for topic, partition in case.planned:
        now, present = after[topic, partition], case.topics[topic][partition]
        assert len(now) == len(set(now)) == case.factor(topic, partition)
        assert set(now) <= set(case.allowed)
        assert added[topic, partition] == len(set(now) - set(present))
        followers = [broker for broker in present if broker in now[1:]]
        assert now[1:] == followers + sorted(set(now[1:]) - set(present))
    sources = [(move.topic, move.partition, move.source) for move in plan.moves if move.source is not None]
    assert len(set(sources)) == len(sources)
    assert plan.before == case.topics
    for topic in case.fixed:
        assert plan.after[topic] == case.topics[topic]
    count = Counter(broker for brokers in after.values() for broker in brokers)
    assert plan.replica_loads == {broker: count[broker] for broker in case.allowed}
    leaders = Counter(brokers[0] for brokers in after.values())
    assert plan.leader_loads == {broker: leaders[broker] for broker in case.allowed}
    assert plan.leaders_changed == sum(after[t, p][0] != case.topics[t][p][0] for t, p in case.planned)
    forced = sum(
        min(len(set(brokers) - set(case.topics[t][p])) for brokers in sets_of(case, (t, p)))
        for t, p in case.planned
    )
    assert plan.replicas_forced == forced <= plan.replicas_moved


@given(SEEDS, SEEDS)
@examples(200)
def test_the_order_in_which_arguments_come_does_not_matter(seed: int, order: int) -> None:
    case = random_case(seed)
    assert case.shuffled(Random(order)).plan() == case.plan()


@given(SEEDS)
@examples(200)
def test_what_is_planned_is_left_alone_when_planned_again(seed: int) -> None:
    case = random_case(seed)
    plan = case.plan()
    again = replace(case, topics=plan.after, replication_factor=None).plan()
    assert again.after == plan.after
    assert again.moves == ()


@given(SEEDS, st.randoms(use_true_random=False))
@examples(200)
def test_a_plan_beside_what_is_under_way_is_as_good_as_the_plan_that_began_it(
    seed: int, order: Random
) -> None:
    case = random_case(seed)
    plan = case.plan()
    planned = order.sample(case.planned, len(case.planned))
    done = planned[: order.randint(0, len(planned))]
    begun = planned[len(done) :][: order.randint(0, len(planned))]
    now = {topic: {p: [*replicas] for p, replicas in placed.items()} for topic, placed in case.topics.items()}
    for topic, partition in done:
        now[topic][partition] = plan.after[topic][partition]
    under_way: dict[str, dict[int, list[int]]] = {}
    for topic, partition in begun:
        under_way.setdefault(topic, {})[partition] = plan.after[topic][partition]
    again = replace(case, topics=now, under_way=under_way).plan()
    assert {one: again.after[one[0]][one[1]] for one in begun} == {
        one: plan.after[one[0]][one[1]] for one in begun
    }
    loads = [sum(load**2 for load in one.replica_loads.values()) for one in (plan, again)]
    assert case.per_topic or loads[0] == loads[1]
    assert again.before == now
    rest = [move for move in plan.moves if (move.topic, move.partition) not in done]
    copied = [sum(1 if move.size is None else move.size for move in moves) for moves in (again.moves, rest)]
    assert copied[0] <= copied[1]


def test_what_is_under_way_to_an_invalid_placement_is_planned_as_all_else_is() -> None:
    topics = {"t": {0: [1, 2], 1: [1, 2]}}
    racks = {1: "a", 2: "b", 3: "b"}
    for invalid in ([1], [1, 4], [2, 3], [1, 1]):
        assert plan_moves(topics, racks, under_way={"t": {0: invalid}}) == plan_moves(topics, racks)
    plan = plan_moves(topics, racks, under_way={"t": {0: [3, 1]}, "gone": {0: [1]}})
    assert plan.after == {"t": {0: [3, 1], 1: [1, 2]}}
    assert [(move.partition, move.target, move.source) for move in plan.moves] == [(0, 3, 2)]


def test_moving_less_wins_over_leaders_and_the_plan_says_so() -> None:
    # Each broker has 3 replicas, but broker 0 has them alone and leads them all.
    alone = {0: [0], 1: [0], 2: [0]}
    topics = {"alone": alone, "together": {0: [1, 2, 3], 1: [2, 3, 1], 2: [3, 1, 2]}}
    plan = plan_moves(topics, dict.fromkeys(range(4)))
    assert plan.moves == ()
    assert plan.leader_loads == {0: 3, 1: 1, 2: 1, 3: 1}
    assert (plan.leaders_squares, plan.leaders_bound, plan.leaders_best) == (12, 10, False)


def test_moving_less_wins_over_leaders_beside_what_is_fixed() -> None:
    # Broker 7 would lead the topic's only partition if that moved to it, and replicas would be as balanced.
    topics = {"fixed": {0: [8, 7], 1: [8, 7]}, "t": {0: [8]}}
    plan = plan_moves(topics, {7: None, 8: None}, fixed=["fixed"])
    assert plan.moves == ()
    assert (plan.leaders_squares, plan.leaders_bound, plan.leaders_best) == (9, 5, False)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=6), st.integers(0, 30))
def test_the_least_squares_are_those_of_filling_the_lowest(held: list[int], amount: int) -> None:
    loads = list(held)
    for _ in range(amount):
        loads[loads.index(min(loads))] += 1
    assert least_squares(np.array(held), amount) == sum(load**2 for load in loads)


def test_sizes_of_terabytes_are_exact() -> None:
    topic = {p: [0] for p in range(40)}
    sizes = {("t", p): 2**50 + p for p in range(40)}
    plan = plan_moves({"t": topic}, {0: None, 1: None}, sizes=sizes)
    assert plan.bytes_moved == sum(2**50 + p for p in range(20))
    assert sorted(move.partition for move in plan.moves) == list(range(20))


def test_a_source_is_one_of_the_same_rack_if_there_is_one() -> None:
    racks = {0: "a", 1: "b", 2: "a", 3: "b"}
    plan = plan_moves({"t": {0: [0, 1]}}, racks, brokers=[2, 3])
    assert [(move.target, move.source) for move in plan.moves] == [(2, 0), (3, 1)]


def test_lopsided_racks_are_balanced_as_far_as_racks_allow() -> None:
    racks = {0: "small", **dict.fromkeys(range(1, 41), "large")}
    plan = plan_moves({"t": {p: [1, 2] for p in range(400)}}, racks)
    assert plan.replica_loads == {0: 400, **dict.fromkeys(range(1, 41), 10)}
    assert plan.leaders_best


@given(
    existing=st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=3, unique=True), max_size=9),
    count=st.integers(0, 12),
    factor=st.integers(1, 4),
    racks=st.lists(st.sampled_from("abc"), min_size=6, max_size=6),
)
@examples(200)
def test_new_partitions_fill_up_what_is_there(
    existing: list[list[int]], count: int, factor: int, racks: list[str]
) -> None:
    old = dict(enumerate(existing))
    of_broker: dict[int, str | None] = dict(enumerate(racks))
    # Partitions that are nowhere end up as those that are anywhere, but for moves.
    nowhere, anywhere = (
        plan_moves(
            {"t": old, "": {p: list(range(held)) for p in range(100, 100 + count)}},
            of_broker,
            replication_factor=factor,
            fixed=["t"],
        )
        for held in (0, factor)
    )
    placed = nowhere.after[""]
    assert list(placed) == list(range(100, 100 + count))
    assert nowhere.after["t"] == old
    assert all(len({*brokers}) == factor for brokers in placed.values())
    both = Counter(broker for brokers in [*existing, *placed.values()] for broker in brokers)
    assert nowhere.replica_loads == {broker: both[broker] for broker in of_broker}
    assert sorted(nowhere.replica_loads.values()) == sorted(anywhere.replica_loads.values())


def test_nothing_to_plan_is_no_plan() -> None:
    plan = plan_moves({}, {})
    assert (plan.after, plan.moves, plan.leaders_best) == ({}, (), True)
    assert plan_moves({"t": {0: [0]}}, NO_RACKS, fixed=["t"]).moves == ()


WRONG: list[tuple[dict[str, Any], str]] = [
    (
        {"replication_factor": 4},
        "t-0 is to have 4 replicas, but at most 3 brokers may hold them (0, 1, 2): allow",
    ),
    (
        {"brokers": [1]},
        "t-0 is to have 2 replicas, but at most 1 brokers may hold them (1): allow more, or",
    ),
    ({"brokers": []}, "t-0 is to have 2 replicas, but at most 0 brokers may hold them (none): allow"),
    ({"brokers": [1, 2, 8, 7]}, "brokers has 7, 8, and racks does not: add them there"),
    ({"racks": {0: "a", 2: None, 1: None}}, "brokers 1, 2 are without a rack, and others have one: name"),
    ({"replication_factor": 0}, "t-0 is to have 0 replicas: give a replication factor of 1 or more"),
    ({"topics": {"t": {5: []}}}, "t-5 is to have 0 replicas"),
    (
        {"sizes": {("t", 0): 2**62}, "racks": {**NO_RACKS, 3: None}},
        f"a partition has {2**62} bytes, and with so many partitions at most ",
    ),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG, ids=[message for _, message in WRONG])
def test_an_argument_that_cannot_be_is_named_with_a_way_out(wrong: dict[str, Any], message: str) -> None:
    arguments = {"topics": {"t": {0: [0, 1]}}, "racks": NO_RACKS, **wrong}
    topics, racks = arguments.pop("topics"), arguments.pop("racks")
    with pytest.raises(PlacementError) as raised:
        plan_moves(topics, racks, **arguments)
    assert message in str(raised.value)


def test_without_or_tools_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("ortools"):
            raise ImportError(f"No module named {name!r}")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'kafka-assignors\[placement\]'"):
        plan_moves({"t": {0: [0, 1]}}, NO_RACKS)
