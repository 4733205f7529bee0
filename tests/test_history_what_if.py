"""What-if: courses of groups, replays through assignors, and scenarios."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_assignors import (
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors.coordinator import Simulation
from kafka_assignors.group import Group
from kafka_assignors.history.snapshots import ArchivedRecord, Snapshot, SnapshotMember, classic_snapshot
from kafka_assignors.history.what_if.assignors import NAMES, leader_of
from kafka_assignors.history.what_if.course import UNKNOWN_SECONDS, Course
from kafka_assignors.history.what_if.replay import ACTUAL, Rebalanced, Replay, replay, replay_course
from kafka_assignors.history.what_if.scenarios import AS_IT_WAS, Scenario
from kafka_assignors.members import Member
from kafka_assignors.planners import plan_range

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kafka_assignors.assignors import Assignor

SECOND = 1_000_000


def member(
    name: str,
    partitions: Mapping[str, Collection[int]] | None = None,
    *,
    topics: Collection[str] = ("t",),
    claims: Mapping[str, tuple[int, ...]] | None = None,
    instance: str | None = None,
    client: str | None = None,
    host: str = "/h",
    session: int = 45_000,
) -> SnapshotMember:
    return SnapshotMember(
        member_id=name,
        instance_id=instance,
        client_id=name if client is None else client,
        host=host,
        topics=frozenset(topics),
        claims=claims or {},
        assignment=frozenset(
            (topic, partition) for topic, each in (partitions or {}).items() for partition in each
        ),
        session_timeout_ms=session,
    )


def snapshot(
    generation: int,
    at: float,
    *members: SnapshotMember,
    strategy: str = "range",
    took: float | None = 1.0,
) -> Snapshot:
    """A generation whose assignments were written at a second, so long after all had joined."""
    return Snapshot(
        group="g",
        generation=generation,
        time_us=round(at * SECOND),
        state_time_us=None if took is None else round((at - took) * SECOND),
        offset=round(at * 1000),
        strategy=strategy if members else None,
        members=tuple(sorted(members, key=lambda each: each.identity)),
    )


def owned(course: Course, one: Replay) -> list[dict[str, set[tuple[str, int]]]]:
    """What each member has after each rebalance."""
    sizes = np.diff(course.bounds).tolist()
    names = [
        (topic, number) for topic, size in zip(course.topics, sizes, strict=True) for number in range(size)
    ]
    found = []
    for rebalance in one.rebalances:
        assert rebalance.owners is not None
        found.append(
            {
                course.identities[who]: {names[place] for place in np.flatnonzero(rebalance.owners == who)}
                for who in set(rebalance.owners.tolist()) - {-1}
            }
        )
    return found


def without_owners(one: Replay) -> list[Rebalanced]:
    return [replace(rebalance, owners=None) for rebalance in one.rebalances]


# A simulated life


def life(
    assignor: type[Assignor], acts: Sequence[Callable[[Simulation], object]], topics: Mapping[str, int]
) -> tuple[Simulation, list[Snapshot]]:
    """A group's snapshots, one for each time that it was stable with another generation."""
    simulation = Simulation(topics, [assignor], seed=7)
    snapshots: list[Snapshot] = []
    lead = simulation.group.sync

    def sync(request: object, reply: object) -> None:
        was = simulation.group.state
        lead(request, reply)  # type: ignore[arg-type]
        if was == "CompletingRebalance" and simulation.group.state == "Stable":
            note()

    def note() -> None:
        record = ArchivedRecord(b"", b"", 0, len(snapshots), round(simulation.now * SECOND), None)
        snapshots.append(classic_snapshot(record, "g", simulation.group.record()))

    simulation.group.sync = sync  # type: ignore[method-assign]
    for act in acts:
        act(simulation)
        simulation.run_until_stable()
    return simulation, snapshots


def join_three(simulation: Simulation) -> None:
    for _ in range(3):
        simulation.join()


ACTS: tuple[Callable[[Simulation], object], ...] = (
    join_three,
    lambda simulation: simulation.join("late"),
    lambda simulation: simulation.members["m1"].leave(),
    lambda simulation: simulation.members["m2"].crash(),
    lambda simulation: (simulation.join("a"), simulation.join("b")),
    lambda simulation: simulation.members["a"].leave(),
)

OURS = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


@pytest.mark.parametrize("strategy", OURS)
def test_a_life_replayed_with_its_own_assignor_is_what_happened(strategy: str) -> None:
    simulation, snapshots = life(OURS[strategy], ACTS, {"orders": 13, "payments": 8})
    course = AS_IT_WAS.apply(Course.of(snapshots))

    actual, again = replay_course(course, [ACTUAL, strategy], owners=True)

    assert len(actual.rebalances) >= len(ACTS)
    assert owned(course, actual) == owned(course, again)
    assert without_owners(actual) == without_owners(again)
    assert again.failed == 0
    running = [each for each in simulation.members.values() if each.running]
    assert owned(course, again)[-1] == {each.member_id: set(each.held) for each in running}
