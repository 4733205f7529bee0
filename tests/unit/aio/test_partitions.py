"""The assignment that lasts: what stays keeps its state, what goes is given up, what is withheld waits."""

import asyncio
import math
from types import SimpleNamespace

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import IllegalStateError

from kafka_assignors.aio import _partitions
from kafka_assignors.aio._partitions import GONE, LastingAssignment, LastingState

A, B, C = (TopicPartition("t", number) for number in range(3))


@pytest.fixture
async def state() -> LastingState:
    made = LastingState()
    made.subscribe({"t"})
    made.assign_from_subscribed({A, B})
    made.subscription.assignment.confirm(math.inf)
    return made


async def test_partitions_that_stay_keep_position_pause_and_the_assignment_itself(
    state: LastingState,
) -> None:
    before = state.subscription.assignment
    state.seek(A, 7)
    state.pause(A)
    state.assign_from_subscribed({A, C})
    assert state.subscription.assignment is before
    assert before.active
    assert before.state_value(A).position == 7
    assert state.paused_partitions() == {A}
    assert state.assigned_partitions() == {A, C}


async def test_whoever_waits_for_a_partition_that_goes_waits_no_more(state: LastingState) -> None:
    assignment = state.subscription.assignment
    committed = assignment.state_value(B).fetch_committed()
    position = asyncio.ensure_future(assignment.state_value(B).wait_for_position())
    state.assign_from_subscribed({A})
    assert (await committed).offset == GONE
    await position
    # Fetches in flight find a state, and no answer fits it.
    assert assignment.state_value(B).position == GONE
    for change, arguments in ((state.seek, (B, 0)), (state.pause, (B,)), (state.resume, (B,))):
        with pytest.raises(IllegalStateError, match=r"partition=1\)\] are not assigned: wait"):
            change(*arguments)


async def test_a_partition_that_comes_back_begins_anew(state: LastingState) -> None:
    state.seek(B, 9)
    state.assign_from_subscribed({A})
    state.assign_from_subscribed({A, B})
    assert not state.subscription.assignment.state_value(B).has_valid_position


async def test_what_is_withheld_is_not_fetched_until_it_is_released_and_is_not_paused_for_the_user(
    state: LastingState,
) -> None:
    assignment = state.subscription.assignment
    one = assignment.state_value(A)
    assert (one.paused, state.paused_partitions()) == (True, set())
    waiting = one.resume_fut
    assignment.release({A, C})
    assert (one.paused, waiting.done()) == (False, True)
    assignment.withhold({A})
    state.pause(A)
    assignment.release({A})
    assert (one.paused, state.paused_partitions()) == (True, {A})
    paused = one.resume_fut
    state.resume(A)
    assert (one.paused, paused.done()) == (False, True)


async def test_all_is_withheld_from_when_it_is_in_doubt_until_it_is_certain_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 10.0
    monkeypatch.setattr(_partitions, "time", SimpleNamespace(monotonic=lambda: now))
    assignment = LastingAssignment()
    assignment.change({A, B})
    assignment.release({A, B})
    one = assignment.state_value(A)
    assert one.paused  # nobody has confirmed it yet
    assignment.confirm(15)
    assignment.confirm(12)
    assert not one.paused
    now = 15.0
    assert one.paused
    assert assignment.state_value(B).paused
    waiting = one.resume_fut
    assignment.confirm(15)  # an answer that is too old
    assert not waiting.done()
    assignment.confirm(20)
    assert waiting.done()
    assert not one.paused


async def test_a_changed_list_takes_the_assignment_over_and_unsubscribing_ends_it(
    state: LastingState,
) -> None:
    before, first = state.subscription.assignment, state.subscription
    state.subscribe({"t", "u"})
    assert not first.active
    assert state.subscription.assignment is before
    assert not state.reassignment_in_progress
    state.unsubscribe()
    assert not before.active
    state.subscribe({"t"})
    assert state.subscription.assignment is None
    assert state.reassignment_in_progress


async def test_a_call_that_is_cancelled_is_over(state: LastingState) -> None:
    with pytest.raises(asyncio.CancelledError), state.fetch_context():  # noqa: PT012
        assert state.fetcher_idle_time == 0
        raise asyncio.CancelledError
    await asyncio.sleep(0.01)
    assert state.fetcher_idle_time > 0
