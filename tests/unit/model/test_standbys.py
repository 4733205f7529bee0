"""Who takes part in a topic, held to a filter of members that says it in the plainest way."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from kafka_assignors import proofs
from kafka_assignors._model.group import Group, Member
from kafka_assignors._model.plan import InvalidPlanError, Plan, check
from kafka_assignors._model.standbys import of_first, of_highest_priority
from kafka_assignors.planners import plan_exact
from tests.support.random_groups import Case, random_case

SEEDS = st.integers(0, 100_000)
SOME = st.lists(st.sampled_from([-1000, -1, 0, 0, 1, 1000]), min_size=7, max_size=7)
"""Priorities of up to 7 members."""


def with_priorities(case: Case, priorities: list[int]) -> Case:
    members = [
        replace(member, priority=priority) for member, priority in zip(case.members, priorities, strict=False)
    ]
    return replace(case, members=members)


def without_standbys(case: Case) -> Case:
    """The group in which members do not subscribe to topics of which they are standbys."""
    highest = {
        topic: max(member.priority for member in case.members if topic in member.topics)
        for topic in {topic for member in case.members for topic in member.topics}
    }
    members = [
        replace(
            member,
            topics=frozenset(topic for topic in member.topics if member.priority == highest[topic]),
            priority=0,
        )
        for member in case.members
    ]
    return replace(case, members=members)


@given(SEEDS, SOME)
def test_a_group_with_priorities_is_the_one_in_which_standbys_do_not_subscribe(
    seed: int, priorities: list[int]
) -> None:
    case = with_priorities(random_case(seed), priorities)
    group, expected = case.group, without_standbys(case).group
    assert group.topics == expected.topics
    assert group.subscriptions == expected.subscriptions
    assert group.subscribed.tuples() == expected.subscribed.tuples()
    assert group.subscription_of.tolist() == expected.subscription_of.tolist()
    assert group.claims.subscribed.tolist() == expected.claims.subscribed.tolist()
    assert group.owner.tolist() == expected.owner.tolist()
    plan = plan_exact(group)
    check(plan, group)
    assert plan.assignments() == plan_exact(expected).assignments()
    assert proofs.certify(plan).optimal


@given(SEEDS, st.integers(-1000, 1000))
def test_members_of_one_priority_are_as_members_without(seed: int, priority: int) -> None:
    case = random_case(seed)
    group = with_priorities(case, [priority] * 7).group
    assert group.subscriptions == case.group.subscriptions
    assert group.owner.tolist() == case.group.owner.tolist()
    subscriptions = group.sent
    assert of_highest_priority(subscriptions, group.members.priorities)[0] is subscriptions  # at no cost


@given(SEEDS, SOME)
def test_what_members_sent_stays_known(seed: int, priorities: list[int]) -> None:
    case = random_case(seed)
    group = with_priorities(case, priorities).group
    subscribed, subscription_of = group.sent
    assert [subscribed.tuples()[number] for number in subscription_of] == [*case.group.subscriptions]
    assert group.members.wanted == case.group.members.wanted


@given(SEEDS, st.just([0] * 7) | SOME, st.integers(1, 4))
def test_the_first_of_a_topic_are_those_that_come_first_among_its_subscribers(
    seed: int, priorities: list[int], most: int
) -> None:
    group = with_priorities(random_case(seed), priorities).group
    order = np.random.default_rng(seed).permutation(len(group.members))
    fewer = group.with_subscriptions(of_first((group.subscribed, group.subscription_of), order, most))
    for topic, subscribers in enumerate(group.subscribers):
        first = [member for member in order.tolist() if member in subscribers][:most]
        assert fewer.subscribers[topic] == tuple(sorted(first))
    named = dict.fromkeys(fewer.subscription_of.tolist())
    assert [*named] == [*range(len(fewer.subscribed))]  # sets in the order of members
    plan = plan_exact(fewer)
    check(plan, fewer)
    assert proofs.certify(plan).optimal


@pytest.mark.parametrize("priority", [-1001, 1001])
def test_a_priority_out_of_range_is_refused(priority: int) -> None:
    member = Member(member_id="m", topics=frozenset("t"), priority=priority)
    with pytest.raises(ValueError, match=f"the priority of m must be from -1000 to 1000, not {priority}"):
        Group.of({"t": [0]}, [member])


def test_a_standby_gets_nothing_but_what_it_keeps_in_a_round() -> None:
    standby = Member(member_id="a", topics=frozenset("t"))
    active = Member(member_id="b", topics=frozenset("t"), priority=1)
    other = Member(member_id="c", topics=frozenset("u"))
    group = Group.of({"t": [0], "u": [0]}, [standby, active, other])
    given = Plan.from_owner(group, np.array([0, 2]))
    with pytest.raises(
        InvalidPlanError, match="the plan assigns a partitions of t, which it does not subscribe"
    ):
        check(given, group)
    check(given, group, held_back=np.empty(0, dtype=np.int64))
    with pytest.raises(
        InvalidPlanError, match="the plan assigns c partitions of t, which it does not subscribe"
    ):
        check(Plan.from_owner(group, np.array([2, 2])), group, held_back=np.empty(0, dtype=np.int64))
