"""New partitions for a topic, placed as the ones that it has."""

from dataclasses import dataclass
from typing import Literal

from kafka_assignors._cluster.handle import Cluster
from kafka_assignors.placement._cluster import topics as live
from kafka_assignors.placement._cluster.source import Topics, opened
from kafka_assignors.placement._generators import BrokerRing, shift_at
from kafka_assignors.placement._inference.infer import Fit, infer
from kafka_assignors.placement._placement import PlacementError, Racks
from kafka_assignors.placement._planning.moves import plan_moves
from kafka_assignors.placement._reassignment_file import Placements

How = Literal["rack-unaware", "rack-aware", "balanced"]
"""What placed new partitions: the generator whose pattern continues, or "balanced"."""


@dataclass(frozen=True, slots=True)
class ExpandedTopic:
    """New partitions of a topic -> their brokers, what placed them and why, and whether they were added."""

    executed: bool
    how: How
    why: str
    added: dict[int, list[int]]


def expand(
    source: Cluster | Placements,
    topic: str,
    partitions: int,
    *,
    balanced: bool = False,
    rack_aware: bool = True,
    execute: bool = False,
) -> ExpandedTopic:
    """Place further partitions of a topic as its own are, or balanced; on a cluster also add them.

    If a pattern of the topic is found, it continues: the generator of `AdminUtils` that made it, from the
    same start index. Its shift grows as if the topic had been created with all its partitions. Else, as for
    topics that KRaft placed, whose draws nobody knows, the new partitions are placed so that the brokers are
    best balanced.

    Args:
        source: The cluster, or placements.
        topic: The topic's name.
        partitions: How many there are to be in all.
        balanced: Balance the brokers, and do not continue the topic's pattern.
        rack_aware: Whether each partition spreads over the racks; all brokers need one then, or none.
        execute: Add them to the running cluster.

    Raises:
        PlacementError: There is no such topic, it has as many partitions, or its replication factor is more
            than there are brokers.
        ClusterError: The cluster does not add them.
        ImportError: Balancing needs OR-tools, which is not installed.
    """
    with opened(source, rack_aware=rack_aware) as cluster:
        if topic not in cluster.topics:
            if cluster.admin is not None:
                live.read_topics(cluster.admin, [topic])  # raises if there is none, or it is hidden
                raise PlacementError(f"{topic} is internal: Kafka relies on the number of its partitions")
            raise PlacementError(f"there is no topic {topic!r}")
        present = cluster.topics[topic]
        if partitions <= len(present):
            raise PlacementError(
                f"{topic} has {len(present)} partitions already, and cannot have fewer than it has:"
                f" --partitions is {partitions}"
            )
        racks = cluster.brokers.up
        how, why, added = _place(cluster.topics, topic, partitions, racks, keep_pattern=not balanced)
        admin = cluster.admin if execute else None
        if admin is not None:
            live.add_partitions(admin, topic, partitions, added)
    return ExpandedTopic(admin is not None, how, why, added)


def _place(
    topics: Topics, topic: str, partitions: int, racks: Racks, *, keep_pattern: bool
) -> tuple[How, str, dict[int, list[int]]]:
    """What places the new partitions, why, and where."""
    present = topics[topic]
    new = range(max(present) + 1, max(present) + 1 + partitions - len(present))
    factor = len(present[min(present)])  # as Kafka takes it; one that is being reassigned has more replicas
    why = "its pattern is not to be kept"
    if keep_pattern:
        fits = infer(present, racks=racks).fits
        fit = next((fit for fit in fits if fit.generator != "striped"), None)
        if fit is None:
            why = "no generator with a start index and a shift fits it"
        elif gone := sorted({*fit.brokers} - racks.keys()):
            why = f"its pattern goes over broker {', '.join(map(str, gone))}, which is not up"
        else:
            return _continue(fit, factor, new, racks)
    # What there is stays and counts as load; the new partitions are a topic beside it.
    wanted: Topics = {**topics, "": {partition: [] for partition in new}}
    plan = plan_moves(wanted, racks, replication_factor=factor, fixed=topics)
    return "balanced", why, plan.after[""]


def _continue(fit: Fit, factor: int, new: range, racks: Racks) -> tuple[How, str, dict[int, list[int]]]:
    """Go on with the last step of a pattern."""
    step = fit.steps[-1]
    shift = step.shift
    assert shift is not None  # noqa: S101 - for the type checker: only the striped generator has none
    aware = fit.generator == "rack-aware"
    ring = BrokerRing({broker: racks[broker] if aware else None for broker in fit.brokers}, factor)
    why = f"start index {step.start_index}, shift {shift} continues"
    if left_out := sorted(racks.keys() - {*fit.brokers}):
        why += f"; broker {', '.join(map(str, left_out))} is no part of the pattern and gets nothing"
    # By position, the next number is how many there are.
    first = sum(one.partitions for one in fit.steps) if fit.by_position else new[0]
    added = {}
    for number, partition in enumerate(new, first):
        now = shift_at(number, step.first_partition, shift, len(fit.brokers))
        added[partition] = ring.replicas(number, step.start_index, now)
    return "rack-aware" if aware else "rack-unaware", why, added
