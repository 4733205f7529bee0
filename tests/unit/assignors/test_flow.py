"""kafka-python's consumer that reads on while it joins, in virtual time; see tests/lab/clients."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import (
    CommitFailedError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
)
from kafka.future import Future
from kafka.protocol.consumer import JoinGroupRequest
from kafka.structs import OffsetAndMetadata

from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors._assignors._membership.phases import Phase
from kafka_assignors._timelines.events import Assigned, AssignmentReceived, Failed, Joining, Lost
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation
from tests.lab.clients.flowing_member import FlowingMember
from tests.lab.clients.real_member import close

SESSION, BEAT, POLLS = 6.0, 0.5, 20.0
"""Seconds: the session timeout, between heartbeats, and the longest between two polls."""


@pytest.fixture
def group() -> Iterator[Simulation]:
    simulated = Simulation(
        {"t": 2, "u": 2}, [CooperativeStickyAssignor], broker=BrokerSettings(initial_rebalance_delay_ms=0)
    )
    yield simulated
    close(simulated)


@pytest.fixture
def join(group: Simulation) -> Callable[..., Any]:
    """Has a member join, with `work` seconds between two polls."""

    def join(name: str, *topics: str, work: float = 0, polls: float = POLLS, **options: Any) -> Any:
        settings = MemberSettings(
            session_timeout_ms=round(1000 * SESSION),
            heartbeat_interval_ms=round(1000 * BEAT),
            max_poll_interval_ms=round(1000 * polls),
            poll_ms=5,
            work_ms=round(1000 * work),
        )
        return group.join(name, topics=topics or None, client=FlowingMember, settings=settings, **options)

    return join


def until(group: Simulation, condition: Callable[[], bool], seconds: float = 60) -> None:
    """Let time pass, to the millisecond, until something is so."""
    for _ in range(round(1000 * seconds)):
        if condition():
            return
        group.run(0.001)
    raise AssertionError(f"not within {seconds} s:\n{group.timeline}")


def told(group: Simulation, name: str, *kinds: type[Any]) -> list[tuple[str, int]]:
    """What a member was told, and in which generation."""
    return [
        (one.kind, getattr(one, "generation", -1))
        for one in group.timeline.events
        if one.member == name and isinstance(one, kinds)
    ]


@pytest.fixture
def between_polls(group: Simulation, join: Callable[..., Any]) -> Callable[..., tuple[Any, Any]]:
    """Makes a member that has `t`, and another one whose join for `u` has ended between two polls."""

    def made(*, static: bool = False) -> tuple[Any, Any]:
        first = join("first", "t")
        group.run(1)
        second = join("second", "u", work=3, instance_id="second" if static else None)
        until(group, lambda: second._is_flowing and phase_of(second) is Phase.ASSIGNED and not second._polls)
        return first, second

    return made


STATIC = pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
"""A static member's first JoinGroup is its only one: it began before records were to flow."""


@STATIC
def test_a_new_member_that_works_for_longer_than_its_session_stays_in_the_group(
    group: Simulation, join: Callable[..., Any], static: bool
) -> None:
    join("first", "t")
    group.run(1)
    join("slow", "u", work=SESSION + 3, instance_id="slow" if static else None)
    group.run(3 * SESSION)
    assert told(group, "slow", AssignmentReceived, Lost) == [("assignment", 2)]
    assert group.generation == 2


@STATIC
def test_who_does_not_poll_after_its_join_leaves_and_takes_nothing_of_what_is_others(
    group: Simulation, between_polls: Callable[..., Any], static: bool
) -> None:
    first, second = between_polls(static=static)
    second.pause_polling()
    first.subscribe(["t", "u"])
    until(group, lambda: {one.topic for one in first.held} == {"t", "u"})
    second.resume_polling()
    until(group, lambda: bool(second.held))
    (assigned,) = (one for one in group.timeline.of(Assigned) if one.member == "second")
    assert assigned.generation == group.generation
    assert group.timeline.overlaps("callback") == ()


@STATIC
def test_who_was_frozen_after_its_join_asks_before_it_takes_what_others_may_have(
    group: Simulation, between_polls: Callable[..., Any], static: bool
) -> None:
    first, second = between_polls(static=static)
    second.freeze()
    first.subscribe(["t", "u"])
    until(group, lambda: {one.topic for one in first.held} == {"t", "u"})
    second.thaw()
    until(group, lambda: bool(second.held))
    group.run(SESSION)
    assert group.timeline.overlaps("callback") == ()
    assert told(group, "second", Lost) == []


def test_who_was_frozen_for_a_moment_after_its_join_takes_its_assignment(
    group: Simulation, between_polls: Callable[..., Any]
) -> None:
    _, second = between_polls()
    second.freeze()
    group.run(SESSION - 1)
    second.thaw()
    until(group, lambda: bool(second.held))
    assert told(group, "second", Joining, AssignmentReceived) == [
        ("metadata", -1),
        ("metadata", -1),
        ("assignment", 2),
    ]


# Commits


class Committing:
    """A commit of a member, as its application gives it; `outcome` is "done", or the error."""

    def __init__(self, member: Any, offset: int, *partitions: TopicPartition) -> None:
        self.outcome: Any = None
        self._offsets = {one: OffsetAndMetadata(offset, "", -1) for one in partitions}
        self._member = member
        member.do(self._commit)

    async def _commit(self) -> None:
        try:
            await self._member._coordinator._send_offset_commit_request(self._offsets)
            self.outcome = "done"
        except KafkaError as error:
            self.outcome = error


T0, T1 = (TopicPartition("t", number) for number in (0, 1))


@pytest.fixture
def alone(group: Simulation, join: Callable[..., Any]) -> Any:
    """A member of a group of its own, which has both partitions of `t`."""
    member = join("first", "t")
    group.run(2)
    assert member.held == {T0, T1}
    assert member.delivers
    return member


def phase_of(member: Any) -> Phase:
    phase: Phase = member._coordinator._flow.phase
    return phase


def test_a_commit_while_the_leader_plans_is_sent_when_the_assignment_is_there(
    group: Simulation, join: Callable[..., Any], alone: Any
) -> None:
    join("second", "u")
    until(group, lambda: phase_of(alone) is Phase.SYNCING)
    commit = Committing(alone, 7, T0)
    assert alone._client.committed == []
    until(group, lambda: commit.outcome is not None, 1)
    assert commit.outcome == "done"
    assert alone._client.committed == [{("t", 0): 7}]
    assert group.generation == 2


def test_a_commit_while_it_waits_for_others_to_join_is_sent_at_once(
    group: Simulation, join: Callable[..., Any], alone: Any
) -> None:
    join("slow", "u", work=3)
    group.run(4)
    join("third", "u")
    until(group, lambda: phase_of(alone) is Phase.JOINING)
    commit = Committing(alone, 7, T0)
    group.run(0.003)
    assert phase_of(alone) is Phase.JOINING
    assert commit.outcome == "done"


def overtaken(
    group: Simulation, join: Callable[..., Any], alone: Any, *partitions: TopicPartition
) -> Committing:
    """A commit whose answer comes when a join is over that began after it was sent: it is refused (22)."""
    join("second", "u")
    until(group, lambda: phase_of(alone) is Phase.JOINING)
    alone._client._latency_ms = 3  # of what is sent now; the join is answered before
    commit = Committing(alone, 7, *partitions)
    alone._client._latency_ms = 1
    return commit


def test_a_commit_that_a_join_overtook_is_sent_again_and_is_no_end_of_a_membership(
    group: Simulation, join: Callable[..., Any], alone: Any
) -> None:
    commit = overtaken(group, join, alone, T0, T1)
    until(group, lambda: commit.outcome is not None, 1)
    assert commit.outcome == "done"
    assert alone._client.committed == [{("t", 0): 7, ("t", 1): 7}]
    group.run(2)
    assert told(group, "first", Lost) == []


def test_commits_follow_one_another_though_an_earlier_one_is_sent_again(
    group: Simulation, join: Callable[..., Any], alone: Any
) -> None:
    first = overtaken(group, join, alone, T0)
    second = Committing(alone, 8, T0)
    until(group, lambda: second.outcome is not None, 1)
    assert (first.outcome, second.outcome) == ("done", "done")
    assert alone._client.committed == [{("t", 0): 7}, {("t", 0): 8}]
    assert alone._coordinator._flow.commits == []


def test_what_is_revoked_before_a_commit_is_sent_again_is_named_and_the_rest_is_committed(
    group: Simulation, join: Callable[..., Any], alone: Any
) -> None:
    join("second", "t")
    until(group, lambda: phase_of(alone) is Phase.SYNCING)
    commit = Committing(alone, 7, T0, T1)
    alone._subscription.assign_from_subscribed([T0])
    until(group, lambda: commit.outcome is not None, 1)
    assert isinstance(commit.outcome, CommitFailedError)
    assert "revoked meanwhile, so not committed: t-1" in str(commit.outcome)
    assert alone._client.committed == [{("t", 0): 7}]


def test_a_commit_of_who_was_expelled_fails_and_it_joins_again(group: Simulation, alone: Any) -> None:
    group.group.leave(alone.member_id)
    commit = Committing(alone, 7, T0)
    until(group, lambda: commit.outcome is not None, 1)
    assert isinstance(commit.outcome, CommitFailedError)
    assert phase_of(alone) is Phase.OUT
    until(group, lambda: told(group, "first", Lost) == [("lost", -1)], 1)
    until(group, lambda: alone.held == {T0, T1})


def test_the_answer_to_a_commit_of_a_former_membership_says_nothing_of_the_present_one(
    group: Simulation, alone: Any
) -> None:
    alone._client._latency_ms = 2000
    commit = Committing(alone, 7, T0)
    alone._client._latency_ms = 1
    group.group.leave(alone.member_id)
    until(group, lambda: told(group, "first", Lost) != [])
    until(group, lambda: alone.held == {T0, T1})
    until(group, lambda: commit.outcome is not None, 3)
    assert isinstance(commit.outcome, CommitFailedError)
    assert "moved on without this consumer, which joins again: its offsets are not committed" in str(
        commit.outcome
    )
    group.run(2)
    assert told(group, "first", Lost) == [("lost", -1)]


def test_partitions_that_are_assigned_by_hand_are_committed_without_a_membership(
    group: Simulation, join: Callable[..., Any]
) -> None:
    member = join("first", "t")
    group.run(0.5)
    member._subscription.unsubscribe()
    member._subscription.assign_from_user([T0])
    group.group.leave(member.member_id)
    commit = Committing(member, 7, T0)
    group.run(0.1)
    assert commit.outcome == "done"
    assert member._client.committed == [{("t", 0): 7}]


# How it joins


def times(group: Simulation, name: str, kind: type[Any], since: float = 0.0) -> list[int]:
    """When something was told, in ms since then."""
    begin = group.timeline.begin
    found = [one.time - begin for one in group.timeline.of(kind) if one.member == name]
    return [round(1000 * (one - since)) for one in found if one >= since]


def refuse_joins(member: Any, code: int, count: int) -> list[int]:
    """Let the next joins of a member be refused; returns what will have when they were sent, in ms."""
    client, sent = member._client, list[int]()
    performed = client._performed

    def perform(request: Any) -> Any:
        if not isinstance(request, JoinGroupRequest):
            return performed(request)
        sent.append(member._clock.now)
        if len(sent) > count:
            return performed(request)
        return lambda reply: reply(SimpleNamespace(error_code=code))

    client._performed = perform
    return sent


@pytest.mark.parametrize(("code", "pause"), [(14, 100), (27, 0)], ids=["loading", "rebalancing"])
def test_a_join_that_is_refused_for_now_follows_after_a_pause_if_the_error_wants_one(
    group: Simulation, alone: Any, code: int, pause: int
) -> None:
    sent = refuse_joins(alone, code, 3)
    alone._coordinator.request_rejoin()
    until(group, lambda: len(sent) == 4, 5)
    gaps = [later - before for before, later in pairwise(sent)]
    assert [gap >= pause for gap in gaps] == [True] * 3
    assert max(gaps) < pause + 60
    group.run(1)
    assert told(group, "first", Lost) == []
    assert alone._coordinator._flow.phase is Phase.STABLE


def test_an_error_that_no_other_try_mends_comes_out_of_the_poll(group: Simulation, alone: Any) -> None:
    refuse_joins(alone, 30, 1)  # GROUP_AUTHORIZATION_FAILED
    alone._coordinator.request_rejoin()
    group.run(1)
    (failed,) = group.timeline.of(Failed)
    assert failed.text.startswith("GroupAuthorizationFailedError")
    assert told(group, "first", Lost) == []


def test_who_is_fenced_loses_all_before_its_application_hears_why(group: Simulation, alone: Any) -> None:
    refuse_joins(alone, 82, 1)
    alone._coordinator.request_rejoin()
    member_id = alone.member_id
    group.run(1)
    assert told(group, "first", Lost, Failed) == [("lost", -1), ("error", -1)]
    assert alone._coordinator._generation.member_id == member_id


def test_heartbeats_follow_a_rebalance_at_once_and_then_ever_later(group: Simulation, alone: Any) -> None:
    sent = list[int]()
    heartbeat = alone._client._heartbeat

    def beats(*who: Any) -> Any:
        sent.append(alone._clock.now)
        return heartbeat(*who)

    alone._client._heartbeat = beats
    alone._coordinator.request_rejoin()
    before = len(times(group, "first", AssignmentReceived))
    until(group, lambda: len(times(group, "first", AssignmentReceived)) > before)
    taken = times(group, "first", AssignmentReceived)[-1]
    group.run(0.8)
    after = [one - taken for one in sent if one >= taken]
    # The one every 500 ms comes beside them; each is sent when the one before is answered, after 2 ms.
    for wanted in (0, 52, 154, 356, 758):
        assert any(abs(one - wanted) <= 3 for one in after), (wanted, after)


def test_a_leader_that_waits_for_metadata_asks_again_without_a_poll(
    group: Simulation, join: Callable[..., Any]
) -> None:
    leader = join("leader", "t", "missing", work=5)
    until(group, lambda: len(times(group, "leader", Joining)) > 4, 2)
    joined = times(group, "leader", Joining)
    gaps = [later - before for before, later in pairwise(joined[1:])]
    assert all(100 <= gap < 110 for gap in gaps), gaps
    assert leader._poll is not None  # it is at work
    assert told(group, "leader", AssignmentReceived) == []
    until(group, lambda: leader.held == {T0, T1}, 20)


@pytest.mark.parametrize("narrows", [False, True])
def test_a_join_whose_sync_was_refused_begins_again_without_a_poll_if_nothing_is_to_be_given_up(
    group: Simulation, join: Callable[..., Any], alone: Any, narrows: bool
) -> None:
    slow = join("slow", "u", work=8)
    until(group, lambda: slow.held != frozenset(), 30)
    join("third", "t")
    until(group, lambda: phase_of(alone) is Phase.JOINING)
    alone.freeze()  # it leads, and its plan does not come
    until(group, lambda: phase_of(slow) is Phase.SYNCING and not slow._polls, 30)
    if narrows:
        slow._subscription.subscription = {"t"}
    since = group.now
    join("fourth", "t")
    group.run(1)
    assert phase_of(slow) is (Phase.RETRYING if narrows else Phase.JOINING)
    assert len(times(group, "slow", Joining, since)) == (0 if narrows else 1)


@pytest.mark.parametrize(
    "error", [KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, RequestTimedOutError]
)
def test_after_a_join_that_could_not_connect_none_is_apart_until_one_succeeds(
    group: Simulation, alone: Any, error: type[KafkaError]
) -> None:
    manager = alone._coordinator._manager
    assert manager.apart
    sent = list[Any]()
    send = alone._client.send

    def sends(request: Any, node_id: Any = None, request_timeout_ms: Any = None) -> Any:
        if isinstance(request, JoinGroupRequest):
            sent.append(node_id)
            if str(node_id).endswith("-joins") and len(sent) == 1:
                return Future().failure(error())
        return send(request, node_id, request_timeout_ms)

    alone._client.send = sends
    alone._coordinator.request_rejoin()
    until(group, lambda: len(sent) == 2, 5)
    assert not manager.apart
    group.run(1)
    assert manager.apart
    assert [str(one).endswith("-joins") for one in sent] == [True, False]


# Membership


def test_who_is_asked_to_join_again_before_it_takes_its_assignment_takes_it_and_joins(
    group: Simulation, between_polls: Callable[..., Any]
) -> None:
    _, slow = between_polls()
    slow._coordinator.request_rejoin()
    joined = len(times(group, "second", Joining))
    until(group, lambda: slow.held != frozenset())
    group.run(4)
    assert len(times(group, "second", Joining)) == joined + 1


def test_a_join_on_its_way_fails_with_its_coordinator(
    group: Simulation, join: Callable[..., Any], alone: Any
) -> None:
    join("slow", "u", work=8)
    group.run(9)
    join("third", "t")
    until(group, lambda: phase_of(alone) is Phase.JOINING)
    since = group.now + 0.001
    alone.do(lambda: alone._coordinator.coordinator_dead("it is gone"))
    group.run(0.5)
    assert len(times(group, "first", Joining, since)) == 1
    assert phase_of(alone) is Phase.JOINING
    assert told(group, "first", Lost) == []


def test_who_does_not_poll_is_out_as_soon_as_it_asks_to_leave(group: Simulation, alone: Any) -> None:
    phases: list[tuple[Phase, bool]] = []
    leave = alone._client._leave

    def leaves(member_id: str) -> Any:
        phases.append((phase_of(alone), alone.delivers))
        return leave(member_id)

    alone._client._leave = leaves
    alone.pause_polling()
    group.run(POLLS + 1)
    assert phases == [(Phase.OUT, False)]


def test_what_comes_of_a_join_that_was_given_up_by_leaving_is_no_error_of_a_poll(
    group: Simulation, alone: Any
) -> None:
    sent = refuse_joins(alone, 30, 1)
    alone._client._latency_ms = 200
    alone._coordinator.request_rejoin()
    until(group, lambda: len(sent) == 1, 5)
    alone.do(alone._coordinator.maybe_leave_group_async)
    group.run(3)
    assert group.timeline.of(Failed) == ()
    assert told(group, "first", Lost) == [("lost", -1)]
    assert alone.held == {T0, T1}


def test_heartbeats_while_the_leader_plans_are_no_word_that_nobody_waits_for_this_member(
    group: Simulation, join: Callable[..., Any], alone: Any
) -> None:
    member = join("second", "u", polls=4)
    group.run(5)
    assert member.delivers
    join("third", "t")
    until(group, lambda: phase_of(alone) is Phase.JOINING)
    alone.freeze()  # it leads, and its plan does not come
    until(group, lambda: phase_of(member) is Phase.SYNCING)
    group.run(3)
    assert member.delivers
    group.run(1.5)
    assert phase_of(member) is Phase.SYNCING
    assert not member.delivers


def test_heartbeats_that_an_error_ended_begin_anew_when_nothing_is_certain_any_more(
    group: Simulation, alone: Any
) -> None:
    coordinator = alone._coordinator

    async def fails() -> None:
        del coordinator._do_heartbeat
        raise ZeroDivisionError

    coordinator._do_heartbeat = fails
    group.run(SESSION + 1)
    alone.do(lambda: None)  # a poll; by itself none is simulated
    group.run(1)
    assert told(group, "first", Lost) == [("lost", -1)]
    assert alone.held == {T0, T1}
    assert alone.delivers
