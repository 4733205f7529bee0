"""Groups in virtual time, of either protocol, that read twelve partitions of one topic."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final, TypeVar

from kafka_assignors._assignors import Assignor, CooperativeStickyAssignor
from kafka_assignors.coordinator._simulator import target_assignment
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.simulation import ConsumerGroupSimulation, Simulation
from kafka_assignors.coordinator._simulator.what_if import Cost, rolling_restart

QUICK: Final = MemberSettings(session_timeout_ms=6000, heartbeat_interval_ms=300, max_poll_interval_ms=20_000)
QUICK_BROKER: Final = BrokerSettings(session_timeout_ms=6000, heartbeat_interval_ms=300)
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


def at_rest(group: Group, names: str, *, static: bool = False) -> Group:
    """The same, and the group is stable."""
    gathered(group, names, static=static).run_until_stable()
    return group


def loads(assignments: Mapping[str, frozenset[Any]]) -> dict[str, int]:
    return {member: len(partitions) for member, partitions in assignments.items()}


def restarted(group: Simulation | ConsumerGroupSimulation, members: int = 4, **how: Any) -> Cost:
    """What it costs to restart members one by one, each two seconds away."""
    return rolling_restart(group, [{"orders"}] * members, **{"down_seconds": 2, **how})


def triggers(simulation: Simulation | ConsumerGroupSimulation) -> list[str]:
    return [cause.trigger for cause in simulation.group.causes]


def random_life(group: Any, rng: Random) -> Iterator[int]:
    """Let all sorts of things happen to a group; yields after each how many partitions there are."""
    partitions = TOPICS["orders"]
    group.join()
    acts = ["join", "join", "leave", "crash", "freeze", "thaw", "restart", "grow", "pause"]
    acts += ["move"] if isinstance(group, Simulation) else []
    for _ in range(rng.randint(3, 15)):
        awake = [member for member in group.members.values() if member.running and not member.frozen]
        act = rng.choice(acts)
        if act == "join" or len(awake) < 2:
            group.join(instance_id=f"i{len(group.members)}" if rng.random() < 0.3 else None)
        elif act in {"leave", "crash", "freeze"}:
            getattr(rng.choice(awake), act)()
        elif act == "thaw":
            thaw_all(group)
        elif act == "restart":
            group.restart(rng.choice(awake).name, crash=rng.random() < 0.4)
        elif act == "pause":
            member = rng.choice(awake)
            member.pause_polling()
            group.run(rng.choice([1, 10, 25]))
            if member.running:
                member.resume_polling()
        elif act == "move":
            group.move_coordinator(away=rng.choice([0.1, 2]))
        else:
            partitions += 1
            group.grow("orders", partitions)
        group.run(rng.choice([0, 0.05, 1, 8]))
        yield partitions
    thaw_all(group)
    group.join()
    yield partitions


def thaw_all(group: Any) -> None:
    for member in group.members.values():
        if member.frozen:
            member.thaw()
