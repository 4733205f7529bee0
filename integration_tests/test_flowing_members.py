"""kafka-python's consumer with records in rebalances, simulated and on a real broker: the same lives.

Its coordinator's code is the same in both. What the simulator puts around it is held here.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import pytest

from integration_tests.support.driven_consumer import (
    SECONDS,
    DrivenConsumer,
    bring_in,
    driven_group,
    settle,
)
from integration_tests.support.membership import expel
from integration_tests.support.waiting import wait_for
from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors._timelines.events import Assigned, AssignmentReceived, Event, Joining, Lost, Revoked
from kafka_assignors.coordinator._simulator.messages import Error
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation
from tests.lab.clients.flowing_member import FlowingMember
from tests.lab.clients.real_member import close

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_assignors.testing import Cluster

    Drive = Callable[[str], DrivenConsumer]

NEVER_MS = 10**9
SPARSE = MemberSettings(session_timeout_ms=45_000, heartbeat_interval_ms=3000, work_ms=NEVER_MS)
"""As of the driven consumers; a poll only where a test has it."""

COMPARED = (Assigned, AssignmentReceived, Joining, Lost, Revoked)

_AT_A_TIME = threading.RLock()


class SimulatedConsumer(DrivenConsumer):
    """A simulated consumer that is driven poll by poll. Time passes while a test polls, or looks at it."""

    def __init__(self, group: Simulation, name: str) -> None:
        self.name = name
        self.group_id = "simulated"
        self.assignor = None
        self.group = group
        self._member = cast("Any", group.join(name, client=FlowingMember, settings=SPARSE))
        self.coordinator = self._member._coordinator

    @property
    def events(self) -> list[Event]:  # type: ignore[override]
        return [one for one in self.group.timeline.events if one.member == self.name]

    @property
    def held(self) -> Any:
        return self._member.held

    @property
    def must_rejoin(self) -> bool:
        self._pass(1)
        return super().must_rejoin

    @property
    def exchange_is_over(self) -> bool:
        self._pass(1)
        return super().exchange_is_over

    @property
    def is_listed(self) -> bool:
        return self.member_id in self.group.group.member_ids

    def poll(self, milliseconds: int) -> None:
        with _AT_A_TIME:
            self._member.settings = replace(SPARSE, poll_ms=milliseconds)
            if not self._member._polls:
                self._member._poll_now()
            self._pass(milliseconds + 1)

    def _pass(self, milliseconds: int) -> None:
        with _AT_A_TIME:
            self.group.run(milliseconds / 1000)


@pytest.fixture(params=["real", "simulated"])
def drive(request: pytest.FixtureRequest) -> Iterator[Drive]:
    """Makes consumers of one group, with six partitions of two topics."""
    if request.param == "simulated":
        group = Simulation(
            {"t": 3, "u": 3}, [CooperativeStickyAssignor], broker=BrokerSettings(initial_rebalance_delay_ms=0)
        )
        yield lambda name: SimulatedConsumer(group, name)
        close(group)
        return
    cluster: Cluster = request.getfixturevalue("kafka_cluster")
    topic_factory = request.getfixturevalue("topic_factory")
    topics = [topic_factory(3), topic_factory(3)]
    with driven_group(cluster.access, topics, CooperativeStickyAssignor) as make:
        yield lambda name: make(name, heartbeat_interval_ms=SPARSE.heartbeat_interval_ms)


def lived(consumer: DrivenConsumer, mark: int) -> list[tuple[str, int]]:
    """What it heard since then, with the generations. The simulator says first that an assignment came."""
    said = [one for one in consumer.since(mark) if isinstance(one, COMPARED)]
    for place in range(1, len(said)):
        if isinstance(said[place], AssignmentReceived) and isinstance(said[place - 1], Revoked):
            said[place - 1 : place + 1] = said[place], said[place - 1]
    return [
        (one.kind, one.claimed_generation if isinstance(one, Joining) else getattr(one, "generation", -1))
        for one in said
    ]


def two_and_a_third(drive: Drive) -> tuple[DrivenConsumer, DrivenConsumer, DrivenConsumer]:
    """Two members that have heard of a third, and have not joined with it."""
    first, second = drive("first"), drive("second")
    settle(first)
    settle(first, second)
    assert (len(first.held), len(second.held)) == (3, 3)
    third = drive("third")
    bring_in(third, first, second)
    return first, second, third


def test_a_join_that_ends_between_two_polls_is_taken_by_the_next(drive: Drive) -> None:
    """Its application hears in that poll what is revoked, before the same poll sends the next JoinGroup."""
    first, second, third = two_and_a_third(drive)
    mark, generation = len(second.events), second.generation
    second.begin_join()
    first.begin_join()
    wait_for("the exchange to be over", lambda: second.exchange_is_over, SECONDS)
    assert lived(second, mark) == [("metadata", generation)]
    assert len(second.held) == 3
    second.poll(50)
    assert lived(second, mark) == [
        ("metadata", generation),
        ("assignment", generation + 1),
        ("revoked", generation + 1),
        ("metadata", generation + 1),
    ]
    settle(first, second, third)
    assert [len(one.held) for one in (first, second, third)] == [2, 2, 2]
    assert lived(second, mark)[4:] == [("assignment", generation + 2)]
    assert lived(third, 0)[-2:] == [("assignment", generation + 2), ("assigned", generation + 2)]


def expel_member(consumer: DrivenConsumer) -> None:
    if isinstance(consumer, SimulatedConsumer):
        assert consumer.group.group.leave(consumer.member_id) == Error.NONE
    else:
        expel(consumer.access, consumer.group_id, consumer.member_id)


def test_a_member_that_is_expelled_while_it_joins_loses_all_with_its_next_poll(drive: Drive) -> None:
    first, second, _ = two_and_a_third(drive)
    held, mark = second.held, len(second.events)
    second.begin_join()
    expel_member(second)

    def heard() -> bool:
        first.must_rejoin  # noqa: B018 - time passes
        return second.generation == -1

    wait_for("the consumer to hear of it", heard, SECONDS)
    second.poll(50)
    assert [kind for kind, _ in lived(second, mark)][:3] == ["metadata", "lost", "metadata"]
    assert second.since(mark, Lost)[0].partitions == held
    assert second.held == frozenset()
