"""Groups of both protocols in virtual time: what makes them rebalance, and what it costs, without Kafka.

What their coordinators say is held beside Kafka's own in tests/oracle: test_java_classic_group.py and
test_java_consumer_group.py.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any
from uuid import UUID

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
from kafka_assignors._timelines.events import Assigned, Failed, Led, Lost, Revoked
from kafka_assignors.coordinator._simulator import target_assignment
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.consumer_group import HostedConsumerGroup
from kafka_assignors.coordinator._simulator.messages import (
    JOIN,
    LEAVE,
    ConsumerHeartbeat,
    Error,
    TopicIdPartition,
)
from kafka_assignors.coordinator._simulator.rounds import State
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.simulation import ConsumerGroupSimulation, NotStableError
from kafka_assignors.coordinator._simulator.target_assignment import ASSIGNORS, TargetTopic, partitions_of
from tests.support.scale import examples
from tests.support.simulations import (
    QUICK,
    QUICK_BROKER,
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


@pytest.mark.parametrize("assignor", [*ALL, *ASSIGNORS])
def test_a_group_lives_as_on_a_broker(assignor: Any) -> None:
    has_epochs = assignor in ASSIGNORS
    group: Any = by_epochs(assignor) if has_epochs else classic(assignor)
    gathered(group, "abc")
    assert loads(group.run_until_stable()) == {"a": 4, "b": 4, "c": 4}
    if not has_epochs:
        # Three seconds for more members than the first, and three more since some came.
        assert 6 < group.now < 6.2
        assert group.group.generation == 1
    group.join("d")
    assert loads(group.run_until_stable()) == {"a": 3, "b": 3, "c": 3, "d": 3}
    group.members["b"].crash()
    crashed = group.now
    assert loads(group.run_until_stable()) == {"a": 4, "c": 4, "d": 4}
    assert 6 - 0.3 < group.now - crashed < 6 + (2 if has_epochs else 0.6)
    group.members["d"].leave()
    assert loads(group.run_until_stable()) == {"a": 6, "c": 6}
    if has_epochs:
        group.grow("orders", 16)
        assert loads(group.run_until_stable()) == {"a": 8, "c": 8}
    hand_over = [again for again in triggers(group) if "joined again" in again]
    assert bool(hand_over) == (assignor is CooperativeStickyAssignor)
    assert [trigger for trigger in triggers(group) if trigger not in hand_over] == [
        *["member joined"] * (4 if has_epochs else 2),
        *("member lost", "member left"),
        *["topics changed"] * has_epochs,
    ]
    group.timeline.assert_never_owned_twice()
    if assignor in {StickyAssignor, CooperativeStickyAssignor}:
        group.timeline.assert_sticky()


def frozen_as_it_plans(group: Any) -> Any:
    """The leader of two members, as a third one joins; and the other."""
    leader, other = sorted(group.members.values(), key=lambda member: member.member_id != group.group.leader)
    group.join("c")
    while group.group.state != State.COMPLETING:
        group.run(0.001)
    leader.freeze()
    return leader, other


def test_a_member_that_is_removed_as_it_waits_for_its_assignment_gets_no_answer() -> None:
    group = at_rest(classic(member=replace(QUICK, max_poll_interval_ms=300_000)), "ab")
    leader, other = frozen_as_it_plans(group)
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


@pytest.mark.parametrize("simulated", [classic, by_epochs])
def test_a_member_may_have_any_name_and_its_successors_are_counted(simulated: Callable[..., Any]) -> None:
    group = simulated()
    for name in ("a.b", "1.5", ".7", "m3"):
        group.join(name)
    group.run_until_stable()
    for name in ("a.b", "a.b.2", "1.5", ".7"):
        group.restart(name)
    assert [*group.members][4:] == ["a.b.2", "a.b.3", "1.6", ".7.2"]


def test_a_member_without_a_name_gets_one_that_no_other_has() -> None:
    group = classic()
    for name in ("m2", None, None):
        group.join(name)
    assert [*group.members] == ["m2", "m3", "m4"]


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


@pytest.mark.parametrize("simulated", [classic, by_epochs])
def test_a_member_that_does_not_poll_leaves_by_itself_and_comes_back(simulated: Callable[..., Any]) -> None:
    group = at_rest(simulated(), "ab")
    hangs, before = group.members["b"], triggers(group)
    hangs.pause_polling()
    group.run(19)
    assert triggers(group) == before
    group.run(3)
    assert triggers(group)[-1] == "member left"
    assert len(group.members["a"].held) == 12
    member_id = hangs.member_id
    # Of the classic protocol it hears of that when it polls, and comes back as another.
    assert (len(hangs.held), bool(member_id)) == ((0, True) if simulated is by_epochs else (6, False))
    hangs.resume_polling()
    assert loads(group.run_until_stable()) == {"a": 6, "b": 6}
    assert (hangs.member_id == member_id) == (simulated is by_epochs)


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
    leader, _ = frozen_as_it_plans(group)
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


# Only of KIP-848 -------------------------------------------------------------------------------------------


def test_a_group_that_never_was_is_not_found_and_one_that_is_empty_is() -> None:
    group = HostedConsumerGroup(Clock(), {"orders": TargetTopic(UUID(int=7), 4)})

    def error(epoch: int, **said: Any) -> str:
        return group.heartbeat(ConsumerHeartbeat(member_id="a", epoch=epoch, **said)).error

    assert error(2) == error(LEAVE) == "GROUP_ID_NOT_FOUND"
    topics, owned = frozenset({"orders"}), frozenset[TopicIdPartition]()
    assert error(JOIN, topics=topics, rebalance_timeout_ms=10_000, owned=owned) == ""
    assert error(LEAVE) == ""
    assert error(2) == "UNKNOWN_MEMBER_ID"


def test_only_what_moves_is_ever_without_an_owner() -> None:
    group = gathered(by_epochs(), "abc")
    before = group.run_until_stable()
    stable = group.now
    group.join("d")
    after = group.run_until_stable()
    gaps = [gap for gap in group.timeline.gaps() if gap.start >= stable]
    assert {gap.partition for gap in gaps} == after["d"]
    assert all(after[name] < before[name] for name in "abc")


def test_a_member_that_gets_new_ones_waits_for_no_one_who_keeps_what_it_has() -> None:
    group = at_rest(by_epochs(), "abc")
    group.members["a"].pause_polling()
    group.join("d")
    group.run(5)
    # Two have let go of one each; the third does not poll, and holds nobody else up.
    assert loads({name: member.held for name, member in group.members.items()}) == {
        "a": 4,
        "b": 3,
        "c": 3,
        "d": 2,
    }
    group.members["a"].resume_polling()
    assert loads(group.run_until_stable()) == {"a": 3, "b": 3, "c": 3, "d": 3}
    assert "member did not revoke in time" not in triggers(group)


def test_a_static_member_that_was_killed_is_refused_while_its_session_lasts() -> None:
    group = at_rest(by_epochs(), "ab", static=True)
    group.restart("b", crash=True)
    group.run(1)
    assert not group.members["b.2"].running
    assert group.timeline.of(Failed)[-1].text == "UNRELEASED_INSTANCE_ID"
    group.run(6)
    group.join("b.3", instance_id="instance-b")
    assert loads(group.run_until_stable()) == {"a": 6, "b.3": 6}


@examples(60)
@given(st.integers(1, 8), st.integers(1, 30), st.sampled_from(ASSIGNORS), st.integers(0, 2**32))
def test_a_static_member_that_returns_has_its_partitions_back_and_nobody_else_is_touched(
    members: int, partitions: int, assignor: target_assignment.Assignor, seed: int
) -> None:
    group = ConsumerGroupSimulation({"orders": partitions}, assignor, seed=seed, broker=QUICK_BROKER)
    for number in range(members):
        group.join(f"m{number}", instance_id=f"i{number}")
    before = group.run_until_stable()
    epoch, back = group.group.epoch, f"m{seed % members}"
    group.run((seed % 7) / 10)
    others = len(group.timeline.of(Revoked, Lost, Assigned))
    group.restart(back)
    after = group.run_until_stable()
    assert after == {(f"{name}.2" if name == back else name): held for name, held in before.items()}
    assert group.group.epoch == epoch
    touched = group.timeline.of(Revoked, Lost, Assigned)[others:]
    assert {event.member for event in touched} <= {back, f"{back}.2"}


def test_a_restart_of_dynamic_members_makes_two_epochs_each_and_range_moves_more_than_uniform() -> None:
    uniform, by_range = (restarted(by_epochs(assignor)) for assignor in ASSIGNORS)
    assert uniform.generations == by_range.generations == 4 * 2
    assert uniform.moved == 2 * 12
    assert by_range.moved > uniform.moved


def test_static_members_that_are_killed_cost_a_session_that_the_classic_protocol_does_not_ask_for() -> None:
    kept, killed = (restarted(group, static=True, crash=True) for group in (classic(), by_epochs()))
    assert (kept.generations, killed.generations) == (0, 4 * 2)
    assert kept.longest < 2.2
    assert killed.longest > 6 - 0.3


def test_a_group_that_does_not_let_all_members_in_is_said() -> None:
    with pytest.raises(NotStableError, match=r"does not let \['m00001'\] in"):
        restarted(by_epochs(broker=BrokerSettings(max_size=1)), 2)
