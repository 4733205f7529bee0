"""Numbering, and the settlement of claims, of one rebalance's `Group`."""

from typing import Any

import numpy as np
import pytest

from kafka_assignors._model.arrays import sums
from kafka_assignors._model.group import Group, Member
from kafka_assignors.planners import plan_exact
from kafka_assignors.planners._quick import plan_quickly
from tests.support.random_groups import random_case


def member(name: str, *topics: str, instance: str | None = None, **claim: Any) -> Member:
    """A member of `topics`; `claims`, `generation`, `holds` and `rack` as in `Member`."""
    return Member(member_id=name, topics=frozenset(topics), instance_id=instance, **claim)


def names(group: Group) -> list[str]:
    return [member.member_id for member in group.members]


def test_static_members_come_first_by_instance_id_then_dynamic_ones_by_member_id() -> None:
    static = member("d", "a", instance="i2"), member("e", "a", instance="i1")
    assert names(Group.of({"a": [0]}, [member("c", "a"), *static, member("b", "a")])) == ["e", "d", "b", "c"]


@pytest.mark.parametrize("ids", ["z\U0001f600\ue000", "\ud800\ue000"], ids=["characters", "a lone surrogate"])
def test_members_are_ordered_by_utf16_units(ids: str) -> None:
    assert names(Group.of({"a": [0]}, [member(one, "a") for one in reversed(ids)])) == [*ids]


def test_two_members_with_one_id_are_refused() -> None:
    with pytest.raises(ValueError, match=r"member ids must differ, but \['m'\] is there more than once"):
        Group.of({"a": [0]}, [member("m", "a"), member("n", "a"), member("m", "b")])


def test_partitions_are_numbered_by_topic_and_id_with_gaps_and_duplicates() -> None:
    group = Group.of({"b": [33, 10, 40, 21, 10], "a": [7]}, [member("m", "a", "b")])
    named = [("a", 7), ("b", 10), ("b", 21), ("b", 33), ("b", 40)]
    assert [group.name_of(partition) for partition in range(group.size)] == named
    assert [group.topics[topic] for topic in group.topic_of] == [topic for topic, _ in named]
    assert group.partition_ids.tolist() == [number for _, number in named]
    assert group.topic_bounds.tolist() == [0, 1, 5]
    assert group.partitions_of(1) == range(1, 5)


def test_topics_are_those_that_have_partitions_and_subscribers_who_are_numbered_both_ways() -> None:
    for seed in range(300):
        case = random_case(seed)
        group = case.group
        wanted = [member.topics for member in group.members]
        topics = [
            one for one in sorted(case.topics) if case.topics[one] and any(one in each for each in wanted)
        ]
        assert [*group.topics] == topics, seed
        of = [tuple(n for n, one in enumerate(topics) if one in each) for each in wanted]
        assert [*group.subscriptions] == of, seed
        by = [tuple(n for n, each in enumerate(wanted) if one in each) for one in topics]
        assert [*group.subscribers] == by, seed
        assert group.uniform == (len({*of}) <= 1), seed


@pytest.mark.parametrize(
    ("rack", "known"), [("r1", [frozenset({"r1"}), frozenset()]), (None, None), ("", None)], ids=str
)
def test_replica_racks_are_kept_if_a_member_has_a_rack(rack: str | None, known: Any) -> None:
    racks = {("a", 10): frozenset({"r1"}), ("other", 0): frozenset({"r2"})}
    found = Group.of({"a": [10, 21]}, [member("k", "a", rack=rack), member("l", "a")], racks).replica_racks
    assert (found and [*found]) == known


class EnoughError(Exception):
    """It takes too long."""


def test_a_group_can_be_given_up_at_any_tick_and_is_the_same_with_ticks() -> None:
    for seed in range(50):
        case, ticks = random_case(seed), list[None]()
        group = Group.of(case.topics, case.members, case.replica_racks, tick=lambda: ticks.append(None))  # noqa: B023
        assert len(ticks) >= 5, seed
        assert group.owner.tolist() == case.group.owner.tolist(), seed
        for last in range(len(ticks)):
            left = [None] * last

            def tick(left: list[None] = left) -> None:
                if not left:
                    raise EnoughError
                left.pop()

            with pytest.raises(EnoughError):
                Group.of(case.topics, case.members, case.replica_racks, tick=tick)


@pytest.mark.parametrize("count", [10, 100])
def test_ticks_come_for_each_set_of_topics_and_each_claim(count: int) -> None:
    topics = [f"t{number}" for number in range(count)]
    members = [
        member(f"m{number}", *topics[: number + 1], claims={topic: [0]}, generation=1)
        for number, topic in enumerate(topics)
    ]
    ticks: list[None] = []
    Group.of(dict.fromkeys(topics, range(2)), members, tick=lambda: ticks.append(None))
    assert len(ticks) >= 2 * count


@pytest.mark.parametrize("density", [0, 16, 10**6])
def test_groups_and_plans_are_the_same_by_tables_and_by_sorting(
    density: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def told(seed: int) -> list[Any]:
        group = random_case(seed).group
        subscribed = group.subscribed.tuples(), group.subscription_of.tolist(), group.owner.tolist()
        plans = plan_exact(group), plan_exact(group, max_skew=1), plan_quickly(group)
        return [subscribed, *(plan.owner.tolist() for plan in plans)]

    expected = [told(seed) for seed in range(300)]
    monkeypatch.setattr("kafka_assignors._model.topic_sets._DENSE", density)
    for seed, each in enumerate(expected):
        assert told(seed) == each, seed


def test_sums_of_many_numbers_are_those_of_few() -> None:
    rng = np.random.default_rng(1)
    for share in (0.0, 0.01, 0.9):
        index = rng.integers(0, 50, 30_000)
        values = np.where(rng.random(index.size) < share, rng.integers(-5, 100, index.size), 0)
        expected = np.zeros(60, dtype=np.int64)
        np.add.at(expected, index, values)
        assert sums(index, values, 60).tolist() == expected.tolist()
