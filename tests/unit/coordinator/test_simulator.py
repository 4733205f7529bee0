"""Groups in virtual time: what makes them rebalance, and what it costs, without Kafka.

Their coordinator says what Kafka's own says: tests/oracle/test_java_classic_group.py.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, strategies as st
from kafka import TopicPartition

from kafka_assignors._assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._timelines.events import Failed, Led, Lost
from kafka_assignors.coordinator._simulator import target_assignment
from kafka_assignors.coordinator._simulator.messages import Error
from kafka_assignors.coordinator._simulator.rounds import State
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.simulation import NotStableError
from kafka_assignors.coordinator._simulator.target_assignment import ASSIGNORS, partitions_of
from tests.support.scale import examples
from tests.support.simulations import (
    QUICK,
    at_rest,
    by_epochs,
    classic,
    gathered,
    loads,
    random_life,
    restarted,
    triggers,
)

ALL = (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)


@pytest.mark.parametrize("assignor", ALL)
def test_a_group_lives_as_on_a_broker(assignor: type[Assignor]) -> None:
    group = gathered(classic(assignor), "abc")
    assert loads(group.run_until_stable()) == {"a": 4, "b": 4, "c": 4}
    # Three seconds for more members than the first, and three more since some came.
    assert 6 < group.now < 6.2
    assert group.group.generation == 1
    group.join("d")
    assert loads(group.run_until_stable()) == {"a": 3, "b": 3, "c": 3, "d": 3}
    group.members["b"].crash()
    crashed = group.now
    assert loads(group.run_until_stable()) == {"a": 4, "c": 4, "d": 4}
    assert 6 - 0.3 < group.now - crashed < 6 + 0.6
    group.members["d"].leave()
    assert loads(group.run_until_stable()) == {"a": 6, "c": 6}
    cooperative = assignor is CooperativeStickyAssignor
    joined, *others = triggers(group)
    assert joined == "member joined"
    hand_over = [again for again in others if "joined again" in again]
    assert bool(hand_over) == cooperative
    assert [trigger for trigger in others if trigger not in hand_over] == [
        "member joined",
        "member lost",
        "member left",
    ]
    group.timeline.assert_never_owned_twice()
    if assignor in {StickyAssignor, CooperativeStickyAssignor}:
        group.timeline.assert_sticky()


def test_a_member_that_is_removed_as_it_waits_for_its_assignment_gets_no_answer() -> None:
    group = at_rest(classic(member=replace(QUICK, max_poll_interval_ms=300_000)), "ab")
    leader, other = sorted(group.members.values(), key=lambda member: member.member_id != group.group.leader)
    group.join("c")
    while group.group.state != State.COMPLETING:
        group.run(0.001)
    leader.freeze()
    group.run(0.01)
    removed, held, removed_at = other.member_id, other.held, group.now
    assert group.group.leave(removed) == Error.NONE
    group.run(29)
    assert (other.member_id, other.held) == (removed, held)
    group.run(1.5)
    assert other.member_id not in {removed, ""}
    leader.thaw()
    assert loads(group.run_until_stable()) == {"a": 4, "b": 4, "c": 4}
    assert removed_at + 30 < group.now


def test_a_static_leader_that_comes_back_does_not_assign_again() -> None:
    group = gathered(classic(), "ab", static=True)
    before = group.run_until_stable()
    leader = next(name for name in "ab" if group.members[name].member_id == group.group.leader)
    group.restart(leader)
    after = group.run_until_stable()
    assert after[f"{leader}.2"] == before[leader]
    assert len(group.timeline.of(Led)) == 1


def test_one_instance_given_to_two_members_ends_the_first() -> None:
    group = classic()
    group.join("a", instance_id="one")
    group.run_until_stable()
    group.join("b", instance_id="one")
    group.run(2)
    assert not group.members["a"].running
    assert group.timeline.of(Failed)[-1].text == "FENCED_INSTANCE_ID"
    assert loads(group.run_until_stable()) == {"b": 12}


def test_a_frozen_member_is_lost_and_comes_back_as_another() -> None:
    group = at_rest(classic(), "ab")
    frozen = group.members["b"]
    old_id = frozen.member_id
    frozen.freeze()
    group.run(10)
    assert group.members["a"].held == {TopicPartition("orders", p) for p in range(12)}
    frozen.thaw()
    assert loads(group.run_until_stable()) == {"a": 6, "b": 6}
    assert frozen.member_id != old_id
    assert [event.member for event in group.timeline.of(Lost)] == ["b"]
    # To the group nothing had two owners; two applications worked on the zombie's partitions.
    group.timeline.assert_never_owned_twice()
    assert {overlap.members for overlap in group.timeline.overlaps("callback")} == {("b", "a")}


def test_a_commit_renews_a_session_and_without_a_member_is_for_empty_groups() -> None:
    group = classic()
    assert group.group.commit("", None, -1) == Error.NONE
    at_rest(group, "ab")
    assert group.group.commit("", None, -1) == Error.UNKNOWN_MEMBER_ID
    frozen = group.members["b"]
    frozen.freeze()
    group.run(5)
    assert group.group.commit(frozen.member_id, None, group.group.generation) == Error.NONE
    group.run(5)
    assert triggers(group) == ["member joined"]
    group.run(2)
    assert triggers(group) == ["member joined", "member lost"]


def test_a_member_that_does_not_poll_leaves_by_itself() -> None:
    group = at_rest(classic(), "ab")
    group.members["b"].pause_polling()
    group.run(19)
    assert triggers(group) == ["member joined"]
    group.run(3)
    assert triggers(group)[-1] == "member left"
    assert len(group.members["a"].held) == 12
    group.members["b"].resume_polling()
    assert loads(group.run_until_stable()) == {"a": 6, "b": 6}


def test_a_member_that_does_not_poll_in_a_rebalance_is_left_behind() -> None:
    group = at_rest(classic(), "ab")
    group.members["b"].pause_polling()
    group.join("c")
    group.run(19)
    assert group.group.state == "PreparingRebalance"
    group.run(3)
    assert loads({name: group.members[name].held for name in "ac"}) == {"a": 6, "c": 6}


def test_new_partitions_are_the_leaders_to_find() -> None:
    group = at_rest(classic(metadata_max_age_ms=5000), "ab")
    group.grow("orders", 16)
    group.run(4)
    assert loads(group.run_until_stable()) == {"a": 6, "b": 6}
    group.run(2)
    assert loads(group.run_until_stable()) == {"a": 8, "b": 8}
    assert triggers(group) == ["member joined", "leader joined again"]


@pytest.mark.parametrize(
    ("simulated", "begun"),
    [(classic, "member joined again with other metadata"), (by_epochs, "member changed its subscription")],
)
def test_a_changed_subscription_makes_a_round(simulated: Callable[..., Any], begun: str) -> None:
    group = at_rest(simulated(topics={"orders": 6, "payments": 6}), "ab")
    group.members["b"].subscribe(["payments"])
    after = group.run_until_stable()
    assert {partition.topic for partition in after["b"]} == {"payments"}
    assert begun in triggers(group)


@pytest.mark.parametrize("assignor", ALL)
def test_a_group_at_rest_does_not_notice_that_its_coordinator_moved(assignor: type[Assignor]) -> None:
    group = classic(assignor)
    group.join("a")
    group.join("b", instance_id="inst-b")
    before = group.run_until_stable()
    group.move_coordinator(away=2)
    group.run(30)
    assert group.run_until_stable() == before
    assert (group.group.generation, triggers(group)) == (1, ["member joined"])
    # The new coordinator knows static members, too.
    group.restart("b")
    group.run_until_stable()
    assert group.group.generation == 1


@pytest.mark.parametrize("assignor", ALL)
def test_a_rebalance_is_begun_anew_when_the_coordinator_moves_in_it(assignor: type[Assignor]) -> None:
    slow = MemberSettings(session_timeout_ms=6000, heartbeat_interval_ms=3000)
    group = at_rest(classic(assignor, member=slow), "ab")
    group.join("c")
    group.run(0.1)
    # a and b have not heard of the rebalance, and c has never been in a generation: it comes as new again.
    assert group.group.state == "PreparingRebalance"
    group.move_coordinator()
    assert (group.group.state, group.group.generation) == ("Stable", 1)
    for state in ("PreparingRebalance", "CompletingRebalance"):
        while group.group.state != state:
            group.run(0.001)
    # All have joined, and the leader's assignment is cut off.
    group.move_coordinator()
    after = group.run_until_stable()
    assert loads(after) == {"a": 4, "b": 4, "c": 4}
    assert triggers(group)[:4] == ["member joined", "member joined", "member joined", "coordinator moved"]
    group.timeline.assert_never_owned_twice()


def test_who_waits_for_an_assignment_hears_that_the_coordinator_moved() -> None:
    group = at_rest(classic(), "ab")
    (leader,) = [one for one in group.members.values() if one.member_id == group.group.leader]
    group.join("c")
    while group.group.state != State.COMPLETING:
        group.run(0.001)
    leader.freeze()
    group.run(0.1)
    group.move_coordinator()
    group.run(2)
    assert triggers(group)[-1] == "coordinator moved"
    leader.thaw()
    assert loads(group.run_until_stable()) == {"a": 4, "b": 4, "c": 4}


@pytest.mark.parametrize(("first", "second"), [((1, 0.5), 5), ((5, 0), 1)])
def test_moves_that_overlap_are_over_with_the_one_that_ends_last(
    first: tuple[float, float], second: float
) -> None:
    group = at_rest(classic(), "a")
    member_id = group.members["a"].member_id
    group.move_coordinator(away=first[0])
    group.run(first[1])
    group.move_coordinator(away=second)
    group.run(4.999)
    assert group.group.heartbeat(member_id, None, 1) == Error.NOT_COORDINATOR
    group.run(0.001)
    assert group.group.heartbeat(member_id, None, 1) == Error.NONE


@pytest.mark.parametrize(
    ("options", "second", "error"),
    [
        ({}, {"assignors": [RangeAssignor]}, "INCONSISTENT_GROUP_PROTOCOL"),
        ({}, {"settings": replace(QUICK, session_timeout_ms=1000)}, "INVALID_SESSION_TIMEOUT"),
        ({"broker": BrokerSettings(max_size=1)}, {}, "GROUP_MAX_SIZE_REACHED"),
    ],
)
def test_a_member_that_its_coordinator_refuses_ends(
    options: dict[str, Any], second: dict[str, Any], error: str
) -> None:
    group = at_rest(classic(**options), "a")
    group.join("b", **second)
    group.run(2)
    assert not group.members["b"].running
    assert group.timeline.of(Failed)[-1].text == error


def test_an_eager_round_stops_everyone_and_a_cooperative_one_only_what_moves() -> None:
    pauses = {}
    for assignor in (StickyAssignor, CooperativeStickyAssignor):
        group = gathered(classic(assignor), "abc")
        group.run_until_stable()
        group.join("d")
        group.run_until_stable()
        pauses[assignor.name] = {gap.partition for gap in group.timeline.gaps("callback")}
    assert len(pauses["sticky"]) == 12
    assert len(pauses["cooperative-sticky"]) == 3


@pytest.mark.parametrize("simulated", [classic, by_epochs])
def test_a_group_that_does_not_come_to_rest_is_said(simulated: Callable[..., Any]) -> None:
    group = simulated()
    group.join("a").freeze()
    with pytest.raises(NotStableError, match="the group is Empty after 5 s: a not stable"):
        group.run_until_stable(timeout=5)


@pytest.mark.parametrize("simulated", [classic, by_epochs])
def test_the_same_seed_gives_the_same_life(simulated: Callable[..., Any]) -> None:
    lives = []
    for seed in (1, 1, 2):
        group = gathered(simulated(seed=seed), "abc")
        group.run_until_stable()
        group.members["a"].crash()
        group.run_until_stable()
        lives.append(
            (group.now, [str(event) for event in group.timeline.events], group.members["b"].member_id)
        )
    assert lives[0] == lives[1]
    assert lives[0][2] != lives[2][2]


@examples(120)
@given(st.sampled_from([*ALL, *ASSIGNORS]), st.integers(0, 2**32))
def test_whatever_happens_nothing_has_two_owners_and_in_the_end_all_is_owned(
    assignor: type[Assignor] | target_assignment.Assignor, seed: int
) -> None:
    group: Any
    if isinstance(assignor, str):
        group = by_epochs(assignor, seed=seed)
    else:
        group = classic(assignor, seed=seed, metadata_max_age_ms=2000)
    counts = []
    for count in random_life(group, Random(seed)):
        counts.append(count)
        if isinstance(assignor, str):
            members = group.group.members.values()
            owned = [one for member in members for one in (*member.assigned, *member.pending_revocation)]
            assert len(owned) == len(set(owned))
    group.run(30)
    after = group.run_until_stable()
    held = [partition for partitions in after.values() for partition in partitions]
    assert sorted(held) == [TopicPartition("orders", number) for number in range(counts[-1])]
    assert max(loads(after).values()) - min(loads(after).values()) <= 1
    if not isinstance(assignor, str):
        group.timeline.assert_never_owned_twice()
        return
    for member_id, member in group.group.members.items():
        assert (member.epoch, member.state) == (group.group.epoch, "STABLE")
        assert member.assigned.keys() == partitions_of(group.group.targets[member_id])


def test_static_members_are_restarted_without_a_rebalance() -> None:
    dynamic = restarted(classic(CooperativeStickyAssignor))
    static = restarted(classic(CooperativeStickyAssignor), static=True)
    assert (static.generations, static.moved) == (0, 0)
    # Each of the 12 partitions waits for its owner.
    assert 12 * 2 <= static.unowned < 12 * 2.2
    assert static.longest < 2.2
    # One generation for each that leaves, two for each that comes back and gets what others had.
    assert dynamic.generations == 4 * 3
    # What a member leaves moves to others, and as much back to the one in its place.
    assert dynamic.moved == 2 * 12


def test_an_eager_restart_takes_everything_from_everyone() -> None:
    eager = restarted(classic(StickyAssignor))
    assert eager.generations == 4 * 2
    assert eager.moved == 2 * 12


def test_a_killed_member_of_a_full_group_is_started_again_until_its_old_session_is_over() -> None:
    killed = restarted(classic(RangeAssignor, broker=BrokerSettings(max_size=3)), 3, crash=True)
    # One generation for each that is lost, and one for each that comes back: in the end all three are in.
    assert killed.generations == 3 * 2
    # At 2 and 4 s each is refused.
    assert 3 * 6 < killed.seconds < 3 * (6 + 2)


def test_a_killed_member_that_a_full_group_never_lets_in_again_is_said() -> None:
    member = replace(QUICK, session_timeout_ms=10_000_000)
    broker = BrokerSettings(max_size=3, max_session_timeout_ms=10_000_000)
    with pytest.raises(NotStableError) as raised:
        restarted(classic(RangeAssignor, member=member, broker=broker), 3, crash=True, down_seconds=60)
    assert str(raised.value) == (
        "the group does not let m00000 in again within 3600 s: look at the session timeout and the broker's"
        " settings"
    )
