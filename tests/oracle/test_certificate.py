"""Certificates against an independent solver: they prove what is best, and their witnesses are true."""

import json
from collections.abc import Callable, Iterator
from functools import partial
from random import Random

import numpy as np
import pytest

from kafka_assignors._model.group import NOBODY, Group, Member
from kafka_assignors._model.plan import Goal, Plan, check
from kafka_assignors.planners import hand_over
from kafka_assignors.planners._broadcast import plan_broadcast
from kafka_assignors.planners._kip54 import plan_kip54
from kafka_assignors.planners._range import plan_range
from kafka_assignors.proofs import certify
from kafka_assignors.proofs._findings import Certificate, Finding
from tests.support.oracle import Oracle
from tests.support.random_groups import random_case
from tests.support.scale import block, few, scaled

BEST = Goal()
Goals = Callable[[Random], Goal]
GOALS = {"budget", "narrowest window", "moves", "racks", "balance"}


def drawn(rng: Random, group: Group, goal: Goal) -> Plan:
    """Any valid plan."""
    owner = [rng.choice(group.subscribers[topic]) for topic in group.topic_of.tolist()]
    return Plan.from_owner(group, np.array(owner, dtype=np.int64), goal)


def all_kept(rng: Random, group: Group, goal: Goal) -> Plan:
    owner = np.where(group.owner == NOBODY, drawn(rng, group, goal).owner, group.owner)
    return Plan.from_owner(group, owner, goal)


def disturbed(rng: Random, plan: Plan) -> Plan:
    """The plan with one to three partitions given to somebody, or two partitions exchanged."""
    group, owner = plan.group, plan.owner.copy()
    for partition in rng.choices(range(group.size), k=rng.randint(1, 3)):
        owner[partition] = rng.choice(group.subscribers[group.topic_of[partition]])
    if rng.random() < 0.5:
        topic = group.topic_of[rng.randrange(group.size)]
        one, other = rng.choices(group.partitions_of(topic), k=2)
        owner = plan.owner.copy()
        owner[[one, other]] = owner[[other, one]]
    return Plan.from_owner(group, owner, plan.goal)


def applied(plan: Plan, finding: Finding) -> Plan:
    """The plan after the moves of a witness, each of which has to start where the plan has the partition."""
    group = plan.group
    names = {group.name_of(partition): partition for partition in range(group.size)}
    numbers = {member.member_id: number for number, member in enumerate(group.members)}
    owner = plan.owner.copy()
    assert len({(move.topic, move.partition) for move in finding.witness}) == len(finding.witness)
    for move in finding.witness:
        partition = names[move.topic, move.partition]
        assert owner[partition] == numbers[move.source]
        owner[partition] = numbers[move.target]
    better = Plan.from_owner(group, owner, plan.goal)
    check(better, group)
    return better


def default_objective(oracle: Oracle, plan: Plan) -> dict[str, object]:
    """What counts, the first goal first; less is better."""
    reached = oracle.reached(plan)
    racks = {"racks": -reached.local} if oracle.racks else {}
    return {"balance": reached.balance, **racks, "moves": reached.moves}


def window_objective(oracle: Oracle, plan: Plan, skew: int) -> dict[str, object]:
    reached = oracle.reached(plan)
    racks = {"racks": -reached.local} if oracle.racks else {}
    outside = sum(
        max(lowest - load, 0, load - highest)
        for load, (lowest, highest) in zip(plan.loads.tolist(), oracle.window(skew), strict=True)
    )
    return {"window": outside, "moves": reached.moves, **racks, "balance": reached.balance}


def first_difference(mine: dict[str, object], best: dict[str, object]) -> str | None:
    return next((name for name in mine if mine[name] != best[name]), None)


def failed(certificate: Certificate) -> Finding | None:
    """The goal that is missed; those before it are proved, and those behind it not looked at."""
    states = [finding.proved for finding in certificate.goals]
    if certificate.optimal:
        assert states == [True] * len(states)
        return None
    place = states.index(False)
    assert states == [True] * place + [False] + [None] * (len(states) - place - 1)
    return certificate.goals[place]


def some_plans(rng: Random, best: Plan) -> Iterator[Plan]:
    group, goal = best.group, best.goal
    yield best
    if group.size:
        yield disturbed(rng, best)
        yield disturbed(rng, plan := disturbed(rng, best))
        yield disturbed(rng, plan)
        yield drawn(rng, group, goal)
        yield all_kept(rng, group, goal)
        yield Plan.from_owner(group, plan_kip54(group).owner, goal)
        yield Plan.from_owner(group, plan_range(group).owner, goal)


def tried(seeds: range, some: Goals) -> Iterator[tuple[str, Oracle, Plan, Plan]]:
    """Some plans for random groups with a goal: where, the oracle, its best plan, the plan."""
    for seed in seeds:
        group, rng = random_case(seed).group, Random(seed)
        oracle = Oracle(group, goal := some(rng))
        best = oracle.plan()
        for place, plan in enumerate(some_plans(rng, best)):
            yield f"seed {seed}, {goal}, plan {place}", oracle, best, plan


def check_missed(
    plan: Plan, best: dict[str, object], objective: Callable[[Plan], dict[str, object]], where: str
) -> Certificate:
    """The first goal that a plan misses is the oracle's, and the witness reaches more of it."""
    mine = objective(plan)
    missed = first_difference(mine, best)
    certificate = certify(plan)
    where = f"{where}: {mine}, best {best}\n{certificate}"
    finding = failed(certificate)
    assert (finding.name if finding else None) == missed, where
    if finding:
        better = objective(applied(plan, finding))
        assert first_difference(mine, better) == missed, where
        assert tuple(better.values()) < tuple(mine.values()), where
    return certificate


@pytest.mark.parametrize("number", range(4))
def test_the_first_goal_that_a_plan_misses_is_the_oracles_and_the_witness_reaches_more_of_it(
    number: int,
) -> None:
    wrong = 0
    for where, oracle, best_plan, plan in tried(block(number, 1000), lambda _: BEST):
        objective = partial(default_objective, oracle)
        certificate = check_missed(plan, objective(best_plan), objective, where)
        mine = objective(plan)
        assert {finding.name: finding.value for finding in certificate.goals} == {
            name: -value if name == "racks" and isinstance(value, int) else value
            for name, value in mine.items()
        }, where
        assert [finding.name for finding in certificate.goals] == list(mine), where
        wrong += not certificate.optimal
    assert few() or wrong > scaled(1000)


@pytest.mark.parametrize("number", range(2))
def test_windows_are_checked_as_the_oracle_has_them(number: int) -> None:
    wrong = 0

    def some(rng: Random) -> Goal:
        return Goal(max_skew=rng.choice([0, 0, 1, 1, 2, 3, 100]))

    for where, oracle, best_plan, plan in tried(block(number, 500), some):
        objective = partial(window_objective, oracle, skew=oracle.skew)
        certificate = check_missed(plan, objective(best_plan), objective, where)
        assert certificate.skew == plan.goal.max_skew
        assert [bounds[1:] for bounds in certificate.allowed] == oracle.window(oracle.skew), where
        wrong += not certificate.optimal
    assert few() or wrong > scaled(500)


@pytest.mark.parametrize("number", range(2))
def test_budgets_are_checked_as_the_oracle_has_them(number: int) -> None:
    wrong: set[str] = set()

    def some(rng: Random) -> Goal:
        most = rng.choice([0, 0, 1, 1, 2, 3, 5])
        return Goal(max_moves=most, max_skew=rng.choice([None, None, 0, 1, 2]))

    for where, oracle, best_plan, plan in tried(block(number, 500), some):
        objective = partial(window_objective, oracle, skew=oracle.skew)
        certificate = certify(plan)
        assert certificate.optimal == (objective(plan) == objective(best_plan)), f"{where}\n{certificate}"
        if finding := failed(certificate):
            wrong.add(finding.name)
            check_budget_witness(oracle, plan, certificate, finding)
        else:
            assert certificate.skew == oracle.skew, f"{where}\n{certificate}"
    assert wrong <= GOALS
    assert few() or wrong == GOALS


def check_budget_witness(oracle: Oracle, plan: Plan, certificate: Certificate, finding: Finding) -> None:
    skew, budget = certificate.skew, plan.goal.max_moves
    assert skew is not None
    assert budget is not None
    better = applied(plan, finding)
    if finding.name == "budget":
        assert better.moves <= budget < plan.moves
    elif finding.name == "narrowest window":
        assert better.moves <= budget
        assert window_objective(oracle, better, skew - 1)["window"] == 0
    else:
        mine, other = window_objective(oracle, plan, skew), window_objective(oracle, better, skew)
        assert first_difference(mine, other) == finding.name
        assert tuple(other.values()) < tuple(mine.values())


CHAIN = Group.of(
    {"t1": range(6), "t2": range(3)},
    [
        Member(member_id="c1", topics=frozenset({"t1"}), claims={"t1": range(6)}, generation=1),
        Member(member_id="c2", topics=frozenset({"t1", "t2"}), claims={"t2": range(3)}, generation=1),
        Member(member_id="c3", topics=frozenset({"t2"})),
    ],
)


def given_to(group: Group, owner: list[int], goal: Goal = BEST) -> Plan:
    return Plan.from_owner(group, np.array(owner, dtype=np.int64), goal)


def test_a_certificate_names_the_whole_chain_of_moves() -> None:
    plan = given_to(CHAIN, [0, 0, 0, 0, 1, 1, 1, 2, 2])
    assert str(certify(plan)).splitlines() == [
        "not optimal: the first goal that it misses is balance",
        "1. balance: 2 to 4 partitions a member, sum of load^2 / weight 29 - could be better",
        "   load^2 / weight would sum up to 27 instead of 29; c1 has 4, c2 has 3, c3 has 2",
        "   t1-0 could go from c1 to c2",
        "   t2-0 could go from c2 to c3",
        "2. moves: 4 of 9 partitions move - not checked",
        "   not looked at, as balance comes first",
        "searched 2 kinds of partitions, 14 arcs, 12 rounds",
    ]


def test_a_certificate_states_the_window_and_the_budget() -> None:
    plan = given_to(CHAIN, [0, 0, 0, 0, 1, 1, 1, 2, 2], Goal(max_moves=3))
    certificate = certify(plan)
    assert certificate.skew == 1
    assert certificate.allowed == (("c1", 2, 4), ("c2", 2, 4), ("c3", 2, 4))
    assert str(certificate).splitlines()[1:5] == [
        "loads may be up to 1 away from best balance: 2 to 4 partitions, each member in its own range",
        "at most 3 partitions may move, in the narrowest window that allows it",
        "1. budget: 4 partitions move, 3 may - could be better",
        "   1 too many; nothing needs to move in a wider window",
    ]


def test_json_holds_plain_types() -> None:
    members = [
        Member(member_id="k", topics=frozenset("a"), weight=2),
        Member(member_id="l", topics=frozenset("a"), weight=3),
    ]
    group = Group.of({"a": range(4)}, members)
    told = certify(given_to(group, [0, 0, 0, 1], Goal(max_skew=0))).as_json()
    assert json.loads(json.dumps(told)) == told
    assert told["optimal"] is False
    assert told["allowed"] == [
        {"member": "k", "lowest": 2, "highest": 2},
        {"member": "l", "lowest": 2, "highest": 2},
    ]
    assert told["goals"][0]["witness"] == [{"topic": "a", "partition": 0, "source": "k", "target": "l"}]
    assert told["goals"][2]["value"] == pytest.approx(9 / 2 + 1 / 3)


def test_only_complete_plans_have_certificates() -> None:
    holding = [
        Member(member_id="k", topics=frozenset("a"), claims={"a": range(4)}, generation=1, holds=True),
        Member(member_id="l", topics=frozenset("a")),
    ]
    group = Group.of({"a": range(4)}, holding)
    with pytest.raises(ValueError, match=r"a-2 to no member; there are certificates only for complete plans"):
        certify(hand_over(plan_kip54(group)))
    with pytest.raises(ValueError, match=r"a-0 more than once; there are certificates only"):
        certify(plan_broadcast(group))
    with pytest.raises(ValueError, match="which it does not subscribe to"):
        certify(given_to(CHAIN, [0, 0, 0, 0, 0, 0, 0, 1, 2]))


def test_the_search_for_a_narrower_window_gives_up_rather_than_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = given_to(CHAIN, [0, 0, 0, 0, 0, 1, 1, 1, 2], Goal(max_moves=4))
    assert getattr(failed(certify(plan)), "name", "") == "narrowest window"
    monkeypatch.setattr("kafka_assignors.proofs._certificate._PATIENCE", 0)
    certificate = certify(plan)
    assert not certificate.optimal
    assert [finding.proved for finding in certificate.goals] == [True, True, None, True]
    assert str(certificate).startswith("not proved to be optimal")
    assert "gave up" in str(certificate)


def test_a_million_partitions_of_two_kinds_are_checked_in_seconds() -> None:
    topics = {f"t{number:04}": range(500) for number in range(2000)}
    names = frozenset(topics)
    members = [Member(member_id=f"m{number:04}", topics=names) for number in range(1999)]
    half = Member(member_id="half", topics=frozenset(sorted(names)[:1000]))
    group = Group.of(topics, [*members, half])
    # Topics that the last member has not first: everybody gets 500 of what is there in turn.
    owner = np.empty(group.size, dtype=np.int64)
    last = next(number for number, member in enumerate(group.members) if member.member_id == "half")
    others = np.delete(np.arange(2000), last)
    owner[:500] = last
    owner[500:] = others[np.arange(group.size - 500) % 1999]
    certificate = certify(Plan.from_owner(group, owner))
    assert certificate.optimal
    assert certificate.cells == 2
    owner[0] = others[0]
    finding = failed(certify(Plan.from_owner(group, owner)))
    assert finding
    assert [(move.partition, move.target) for move in finding.witness] == [(0, "half")]
