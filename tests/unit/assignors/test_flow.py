"""kafka-python's consumer that reads on while it joins, in virtual time; see tests/lab/clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors._assignors._membership.phases import Phase
from kafka_assignors._timelines.events import Assigned, AssignmentReceived, Joining, Lost
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation
from tests.lab.clients.flowing_member import FlowingMember
from tests.lab.clients.real_member import close

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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

    def join(name: str, *topics: str, work: float = 0, **options: Any) -> Any:
        settings = MemberSettings(
            session_timeout_ms=round(1000 * SESSION),
            heartbeat_interval_ms=round(1000 * BEAT),
            max_poll_interval_ms=round(1000 * POLLS),
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


def assigned_and_at_work(member: Any) -> bool:
    """Whether its join has ended between two polls."""
    return member._is_flowing and member._coordinator._flow.phase is Phase.ASSIGNED and not member._polls


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
    group: Simulation, join: Callable[..., Any], static: bool
) -> None:
    first = join("first", "t")
    group.run(1)
    second = join("second", "u", work=3, instance_id="second" if static else None)
    until(group, lambda: assigned_and_at_work(second))
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
    group: Simulation, join: Callable[..., Any], static: bool
) -> None:
    first = join("first", "t")
    group.run(1)
    second = join("second", "u", work=3, instance_id="second" if static else None)
    until(group, lambda: assigned_and_at_work(second))
    second.freeze()
    first.subscribe(["t", "u"])
    until(group, lambda: {one.topic for one in first.held} == {"t", "u"})
    second.thaw()
    until(group, lambda: bool(second.held))
    group.run(SESSION)
    assert group.timeline.overlaps("callback") == ()
    assert told(group, "second", Lost) == []


def test_who_was_frozen_for_a_moment_after_its_join_takes_its_assignment(
    group: Simulation, join: Callable[..., Any]
) -> None:
    join("first", "t")
    group.run(1)
    second = join("second", "u", work=3)
    until(group, lambda: assigned_and_at_work(second))
    second.freeze()
    group.run(SESSION - 1)
    second.thaw()
    until(group, lambda: bool(second.held))
    assert told(group, "second", Joining, AssignmentReceived) == [
        ("metadata", -1),
        ("metadata", -1),
        ("assignment", 2),
    ]
