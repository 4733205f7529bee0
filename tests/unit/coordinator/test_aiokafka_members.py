"""aiokafka's own code in virtual time, on a client and a loop that are simulated."""

from typing import Any

import pytest

from kafka_assignors import CooperativeStickyAssignor, RangeAssignor
from kafka_assignors._timelines.events import Failed, Lost, Revoked
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation
from tests.lab.clients.aiokafka_members import AiokafkaMember, CooperativeAioMember
from tests.lab.clients.real_member import close

QUICK = MemberSettings(session_timeout_ms=6000, heartbeat_interval_ms=500, max_poll_interval_ms=10_000)
AT_ONCE = BrokerSettings(initial_rebalance_delay_ms=0)

STOCK = (AiokafkaMember, RangeAssignor)
COOPERATIVE = (CooperativeAioMember, CooperativeStickyAssignor)
EAGER = (CooperativeAioMember, RangeAssignor)


def group_of(kind: Any, assignor: Any, *names: str, **options: Any) -> Simulation:
    group = Simulation({"t": 6}, [assignor], member=QUICK, broker=AT_ONCE)
    for name in names:
        group.join(name, client=kind, **options)
    group.run_until_stable()
    return group


def loads(group: Simulation) -> dict[str, int]:
    return {name: len(held) for name, held in group.run_until_stable().items()}


@pytest.mark.parametrize(("kind", "assignor"), [STOCK, COOPERATIVE, EAGER])
def test_a_group_on_aiokafka_lives_as_on_a_broker(kind: Any, assignor: Any) -> None:
    group = group_of(kind, assignor, "a", "b")
    assert loads(group) == {"a": 3, "b": 3}
    group.join("c", client=kind)
    assert loads(group) == {"a": 2, "b": 2, "c": 2}
    group.members["b"].crash()
    assert loads(group) == {"a": 3, "c": 3}
    group.members["a"].leave()
    assert loads(group) == {"c": 6}
    group.grow("t", 8)
    group.run(301)
    assert loads(group) == {"c": 8}
    group.timeline.assert_never_owned_twice()
    assert group.timeline.of(Failed) == ()
    close(group)


@pytest.mark.parametrize(("kind", "assignor", "told"), [(*STOCK, Revoked), (*COOPERATIVE, Lost)])
def test_who_does_not_poll_leaves_and_comes_back_when_it_polls(kind: Any, assignor: Any, told: Any) -> None:
    group = group_of(kind, assignor, "a", "b")
    group.members["b"].pause_polling()
    group.run(12)
    assert len(group.members["a"].held) == 6
    mark = group.now
    group.members["b"].resume_polling()
    assert loads(group) == {"a": 3, "b": 3}
    heard = [event for event in group.timeline.of(Revoked, Lost, member="b") if event.time > 5]
    assert [type(event) for event in heard] == [told]
    assert (heard[0].time >= mark) == (told is Lost)
    close(group)


def test_a_frozen_member_does_what_was_due_when_it_is_thawed() -> None:
    group = group_of(*COOPERATIVE, "a", "b")
    group.members["b"].freeze()
    group.run(8)
    assert len(group.members["a"].held) == 6
    assert len(group.members["b"].held) == 3
    group.members["b"].thaw()
    assert loads(group) == {"a": 3, "b": 3}
    assert [event.member for event in group.timeline.of(Lost)] == ["b"]
    close(group)
