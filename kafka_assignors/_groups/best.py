"""What the best assignment after a rebalance would have been, by the library's own exact planner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from kafka_assignors._groups.kip848 import PROTOCOL_TYPE
from kafka_assignors._model.group import NOBODY, Group, Member
from kafka_assignors.planners import plan_exact

if TYPE_CHECKING:
    from kafka_assignors._groups.snapshots import Snapshot
    from kafka_assignors._groups.topics import TopicsSeen


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """What was possible.

    Attributes:
        partitions: How many partitions there were to assign.
        moved: How many of them had to go to another member than they had before; None if it cannot be told.
        imbalance: The largest load less the smallest; None if it cannot be told.
    """

    partitions: int
    moved: int | None
    imbalance: int | None


def find_best(before: Snapshot, end: Snapshot, topics: TopicsSeen) -> Best:
    """The best balance with the fewest moves, by the subscriptions of the end and the owners before.

    It cannot be told of groups that are not consumers', whose members cannot all be read, or where two
    members have one partition, as with broadcast.

    Args:
        before: The group before.
        end: The group after.
        topics: How many partitions topics had; those that were assigned before or after count anyway.
    """
    kept = {topic for topic, _ in end.owners}
    wanted: dict[str, set[int]] = {
        topic: set(range(topics.count(topic, end.time_us))) for topic in end.topics
    }
    for topic, partition in before.owners.keys() | end.owners.keys():
        if topic in wanted and topic in kept:
            wanted[topic].add(partition)
    size = sum(map(len, wanted.values()))
    if not _can_be_told(end):
        return Best(partitions=size, moved=None, imbalance=None)
    claims: dict[str, dict[str, list[int]]] = {}
    owned = 0
    for (topic, partition), identity in before.owners.items():
        if partition in wanted.get(topic, ()):
            owned += 1
            claims.setdefault(identity, {}).setdefault(topic, []).append(partition)
    members = [
        Member(
            member_id=member.identity,
            topics=member.topics,
            claims=claims.get(member.identity, {}),
            generation=0,
        )
        for member in end.members
    ]
    group = Group.of(wanted, members)
    plan = plan_exact(group)
    settled = group.owner != NOBODY
    taken = int(np.count_nonzero(settled & (plan.owner != group.owner)))
    forced = owned - int(np.count_nonzero(settled)) if members else 0
    loads = plan.loads
    return Best(
        partitions=size,
        moved=taken + forced,
        imbalance=int(loads.max() - loads.min()) if loads.size else 0,
    )


def _can_be_told(end: Snapshot) -> bool:
    if end.members and end.protocol_type not in {"consumer", PROTOCOL_TYPE}:
        return False
    read = all(topic in member.topics for member in end.members for topic, _ in member.assignment)
    single = sum(len(member.assignment) for member in end.members) == len(end.owners)
    return read and single and len({member.identity for member in end.members}) == len(end.members)
