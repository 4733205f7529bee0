"""Groups in virtual time, of either protocol, that read twelve partitions of one topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka_assignors._assignors import CooperativeStickyAssignor
from kafka_assignors.coordinator._simulator.consumer_simulation import ConsumerGroupSimulation
from kafka_assignors.coordinator._simulator.settings import ConsumerBrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors._assignors import Assignor
    from kafka_assignors.coordinator._simulator import target_assignment

QUICK: Final = MemberSettings(session_timeout_ms=6000, heartbeat_interval_ms=300, max_poll_interval_ms=20_000)
QUICK_BROKER: Final = ConsumerBrokerSettings(session_timeout_ms=6000, heartbeat_interval_ms=300)
TOPICS: Final = {"orders": 12}


def classic(assignor: type[Assignor] = CooperativeStickyAssignor, **options: Any) -> Simulation:
    return Simulation(**{"topics": TOPICS, "assignors": [assignor], "member": QUICK, "seed": 7, **options})


def by_epochs(assignor: target_assignment.Assignor | None = None, **options: Any) -> ConsumerGroupSimulation:
    settings = {"topics": TOPICS, "broker": QUICK_BROKER, "member": QUICK, "seed": 7, **options}
    return ConsumerGroupSimulation(assignor=assignor, **settings)


Group = TypeVar("Group", Simulation, ConsumerGroupSimulation)


def gathered(group: Group, names: str, *, static: bool = False) -> Group:
    """A group that members of these names of one letter join."""
    for name in names:
        group.join(name, instance_id=f"instance-{name}" if static else None)
    return group


def loads(assignments: Mapping[str, frozenset[Any]]) -> dict[str, int]:
    return {member: len(partitions) for member, partitions in assignments.items()}


def triggers(simulation: Simulation | ConsumerGroupSimulation) -> list[str]:
    return [cause.trigger for cause in simulation.group.causes]
