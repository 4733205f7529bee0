"""What would a deployment cost? Rolling restarts, simulated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_assignors.coordinator.simulator.simulation import Simulation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.coordinator.simulator.classic_group import BrokerSettings
    from kafka_assignors.coordinator.simulator.member import MemberSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a change of a group costs, from its first act until the group is stable again.

    Attributes:
        generations: How many generations there were.
        moved: How often a partition changed its owner.
        unowned: Partition-seconds without an owner: one partition that nobody consumes for two seconds and
            two that nobody consumes for one count as much.
        longest: The longest time that a partition had no owner, in seconds.
        seconds: How long it took.
    """

    generations: int
    moved: int
    unowned: float
    longest: float
    seconds: float


def rolling_restart(
    topics: Mapping[str, int],
    members: int,
    assignor: Callable[[], Assignor],
    *,
    static: bool = False,
    down_seconds: float = 5.0,
    crash: bool = False,
    member: MemberSettings | None = None,
    broker: BrokerSettings | None = None,
    seed: int = 0,
) -> Cost:
    """Restart all members of a group, one after the other, each once the group is stable again.

    Args:
        topics: Topic -> how many partitions.
        members: How many members.
        assignor: Makes their assignors.
        static: Whether they are static members (KIP-345).
        down_seconds: How long each is away.
        crash: Whether they are killed; else their consumers are closed.
        member: Their consumers' settings.
        broker: The broker's settings.
        seed: See `Simulation`.
    """
    group = Simulation(topics, [assignor], seed=seed, broker=broker, member=member)
    for number in range(members):
        group.join(f"m{number:05}", instance_id=f"instance-{number}" if static else None)
    group.run_until_stable()
    began, generation = group.now, group.group.generation
    for name in list(group.members):
        old = group.members[name]
        if crash:
            old.crash()
        else:
            old.leave()
        group.run(down_seconds)
        group.join(f"{name}.2", instance_id=old.instance_id)
        group.run_until_stable()
    timeline = group.timeline
    gaps = [gap for gap in timeline.gaps("callback") if gap.start + gap.seconds > began]
    return Cost(
        generations=group.group.generation - generation,
        moved=len(timeline.moves(after=generation)),
        unowned=sum(gap.seconds for gap in gaps),
        longest=max((gap.seconds for gap in gaps), default=0.0),
        seconds=group.now - began,
    )
