"""What would a deployment cost? Rolling restarts, simulated."""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from kafka_assignors._timelines.ownership import by_partition
from kafka_assignors._timelines.timeline import Timeline
from kafka_assignors.coordinator._simulator.consumer import SimulatedConsumer
from kafka_assignors.coordinator._simulator.simulation import (
    ConsumerGroupSimulation,
    NotStableError,
    Simulation,
)

_STEP_SECONDS = 0.05
_PATIENCE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a change of a group costs, from its first act until the group is stable again.

    Attributes:
        generations: How many generations there were; of a KIP-848 group: group epochs.
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
    group: Simulation | ConsumerGroupSimulation,
    subscriptions: Sequence[Collection[str]],
    *,
    static: bool = False,
    down_seconds: float = 5.0,
    crash: bool = False,
) -> Cost:
    """Let members join, and restart one after the other, each once the group is stable again.

    A member that is refused is started again after the same time. That happens until the session of a killed
    predecessor is over. In a KIP-848 group static members are refused, in a full classic group all are.

    Args:
        group: The group, without members.
        subscriptions: What each member subscribes to.
        static: Whether they are static members (KIP-345).
        down_seconds: How long each is away.
        crash: Whether they are killed; else their consumers are closed.

    Raises:
        NotStableError: The broker's settings do not let all members in, or not in again.
    """
    for number, subscription in enumerate(subscriptions):
        group.join(f"m{number:05}", topics=subscription, instance_id=f"instance-{number}" if static else None)
    group.run_until_stable()
    refused = [each.name for each in group.members.values() if not each.running]
    if refused:
        raise NotStableError(f"the group does not let {refused} in: look at the broker's settings")
    began, generation = group.now, group.generation
    for name in list(group.members):
        _restart(group, name, down_seconds, crash=crash)
    timeline = group.timeline
    gaps = [gap for gap in timeline.gaps("callback") if gap.start + gap.seconds > began]
    return Cost(
        generations=group.generation - generation,
        moved=_count_moves(timeline, began),
        unowned=sum(gap.seconds for gap in gaps),
        longest=max((gap.seconds for gap in gaps), default=0.0),
        seconds=group.now - began,
    )


def _restart(
    group: Simulation | ConsumerGroupSimulation, name: str, down_seconds: float, *, crash: bool
) -> None:
    """Have a member back, and the group stable."""
    old = group.members[name]
    if crash:
        old.crash()
    else:
        old.leave()
    deadline = group.now + down_seconds + _PATIENCE_SECONDS
    for start in itertools.count(2):
        group.run(down_seconds)
        new = group.join(f"{name}.{start}", topics=old.topics, instance_id=old.instance_id)
        if not _is_refused(group, new):
            break
        if group.now > deadline:
            raise NotStableError(
                f"the group does not let {name} in again within {_PATIENCE_SECONDS:g} s: look at the"
                " session timeout and the broker's settings"
            )
    group.run_until_stable()


def _is_refused(group: Simulation | ConsumerGroupSimulation, member: SimulatedConsumer) -> bool:
    """Whether a new member ends because the coordinator does not let it in."""
    deadline = group.now + _PATIENCE_SECONDS
    while member.running and member.generation <= 0 and group.now < deadline:
        group.run(_STEP_SECONDS)
    return not member.running


def _count_moves(timeline: Timeline, after: float) -> int:
    """How often partitions changed hands, as applications were told."""
    return sum(
        timeline.identity[first.member] != timeline.identity[second.member] and second.start > after
        for owned in by_partition(timeline.ownership("callback")).values()
        for first, second in itertools.pairwise(owned)
    )
