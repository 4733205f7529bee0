"""A plan in little time, for when the exact one takes too long."""

import numpy as np

from kafka_assignors.arrays import NOBODY, IntArray, before_in_run
from kafka_assignors.group import Group
from kafka_assignors.plan import Plan


def plan_quickly(group: Group) -> Plan:
    """Keep what members owned up to the mean load, rounded up, and level the rest of each topic.

    Topics with the fewest subscribers come first; what is free of each fills up its least loaded ones. Valid,
    sticky, and balanced as far as one pass can: a load that only a chain of moves would even out stays
    uneven. Weights and racks are not looked at. The time grows with partitions + subscriptions.
    """
    members = len(group.members)
    if not members or not group.size:
        return Plan.from_owner(group, np.full(group.size, NOBODY, dtype=np.int64))
    owner = group.owner.copy()
    owned = np.flatnonzero(owner != NOBODY)
    owned = owned[np.argsort(owner[owned], kind="stable")]
    place = before_in_run(owner[owned], np.ones_like(owned))
    owner[owned[place >= -(-group.size // members)]] = NOBODY
    loads = np.bincount(owner[owner != NOBODY], minlength=members)
    for topic in sorted(range(len(group.topics)), key=lambda topic: len(group.subscribers[topic])):
        partitions = np.arange(group.topic_bounds[topic], group.topic_bounds[topic + 1])
        free = partitions[owner[partitions] == NOBODY]
        if free.size:
            subscribers = np.array(group.subscribers[topic])
            gets = _fill(loads[subscribers], free.size)
            owner[free] = np.repeat(subscribers, gets)
            loads[subscribers] += gets
    return Plan.from_owner(group, owner)


def _fill(loads: IntArray, units: int) -> IntArray:
    """How many of some units each load gets if they are poured in like water."""
    ascending = np.sort(loads)
    # Up to which level the lowest n loads can be raised with the units that there are.
    levels = (np.cumsum(ascending) + units) // np.arange(1, loads.size + 1)
    level = int(levels.min())
    gets = np.maximum(level - loads, 0)
    rest = units - int(gets.sum())
    gets[np.flatnonzero(loads <= level)[:rest]] += 1
    return gets
