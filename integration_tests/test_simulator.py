"""The simulator beside a real broker: the same lives have the same generations and assignments."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from kafka import TopicPartition

from kafka_assignors._assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._timelines.events import AssignmentReceived, Joining
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation
from kafka_assignors.testing import (
    Cluster,
    ConsumerGroup,
    Timeline,
    create_topic,
    grow_topic,
)

SESSION_MS = 6000
STATIC_MS = 45_000
"""Longer than a laden machine takes to start a process again."""

PARTITIONS = 10

Where = tuple[int, dict[str, list[int]]]
"""A generation, and the partitions of each member."""

LIFE: Sequence[tuple[str, str]] = (
    ("join", "a"),
    ("join", "b"),
    ("join", "c"),
    ("join", "d"),
    ("crash", "b"),
    ("leave", "a"),
    ("grow", ""),
    ("move the coordinator", ""),
    ("join static", "e"),
    ("join static", "f"),
    ("restart", "f"),
    ("restart", "e"),
    ("leave", "d"),
)
"""What happens to a group; each step once it is stable after the last."""


def life_on_a_broker(kafka: Cluster, assignor: type[Assignor]) -> tuple[list[Where], Timeline]:
    topic = create_topic(kafka, PARTITIONS)
    settings = {"session_timeout_ms": SESSION_MS, "metadata_max_age_ms": 500}
    passed: list[Where] = []
    with ConsumerGroup(kafka, topic, [assignor], settings=settings, timeout=60) as group:
        for act, name in LIFE:
            if act == "grow":
                grow_topic(kafka, topic, PARTITIONS + 3)
            elif act == "move the coordinator":
                kafka.move_coordinator(group.group_id)
            elif act == "join static":
                of_static = {"session_timeout_ms": STATIC_MS}
                group.join(name, instance_id=f"instance-{name}", settings=of_static)
            elif act == "join":
                group.join(name)
            else:
                getattr(group.members[name], act)()
            stable = group.wait_stable()
            passed.append((stable.generation, owned(stable.assignments)))
        return passed, group.timeline


def owned(assignments: Mapping[str, Collection[TopicPartition]]) -> dict[str, list[int]]:
    """The partition ids of each member, which restarts under its name."""
    return {
        member.partition(".")[0]: sorted(one.partition for one in partitions)
        for member, partitions in assignments.items()
    }


def drawn_by_the_broker(timeline: Timeline) -> Iterator[str]:
    """The UUIDs of member ids, in the order in which members were first assigned something by them."""
    ids = (event.member_id for event in timeline.events if isinstance(event, AssignmentReceived))
    return (member_id[-36:] for member_id in dict.fromkeys(ids))


def simulated_life(assignor: type[Assignor], new_id: Callable[[], str]) -> list[Where]:
    member = MemberSettings(session_timeout_ms=SESSION_MS, heartbeat_interval_ms=300)
    static = replace(member, session_timeout_ms=STATIC_MS)
    group = Simulation(
        {"t": PARTITIONS},
        [assignor],
        member=member,
        broker=BrokerSettings(initial_rebalance_delay_ms=0),
        metadata_max_age_ms=500,
        new_id=new_id,
    )
    passed: list[Where] = []
    for act, name in LIFE:
        if act == "grow":
            group.grow("t", PARTITIONS + 3)
            group.run(1)
        elif act == "move the coordinator":
            group.move_coordinator()
            group.run(10)
        elif act == "join static":
            group.join(name, instance_id=f"instance-{name}", settings=static)
        elif act == "join":
            group.join(name)
        elif act == "restart":
            group.restart(name)
        else:
            getattr(group.members[name], act)()
        stable = group.run_until_stable()
        passed.append((group.group.generation, owned(stable)))
    return passed


def begun_anew(timeline: Timeline) -> set[int]:
    """Generations that a member left for the next before it had its assignment.

    On a laden machine kafka-python's leader seems to hear of a rebalance twice: by its join, and by
    a late answer to a heartbeat from before it. Then it joins once more: a generation more for all.
    """
    found: set[int] = set()
    for name in timeline.members:
        joining: int | None = None
        assigned: set[int] = set()
        for event in timeline.events:
            if event.member != name:
                continue
            if isinstance(event, Joining) and event.generation > 0 and event.generation not in assigned:
                joining = event.generation
            elif isinstance(event, AssignmentReceived):
                assigned.add(event.generation)
                if joining is not None and event.generation > joining:
                    found.add(joining)
                joining = None
    return found


@pytest.mark.parametrize(
    "assignor", [RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor]
)
def test_a_simulated_life_is_the_real_one(three_brokers: Cluster, assignor: type[Assignor]) -> None:
    real, timeline = life_on_a_broker(three_brokers, assignor)
    simulated = simulated_life(assignor, drawn_by_the_broker(timeline).__next__)
    anew = begun_anew(timeline)
    for step, (generation, assignments), there in zip(LIFE, real, simulated, strict=True):
        here = generation - sum(one < generation for one in anew), assignments
        assert here == there, f"{step}\n{timeline.chart()}\n" + "\n".join(map(str, timeline.events))
