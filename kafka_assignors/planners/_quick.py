"""A plan in little time, for when the exact one takes too long."""

from collections.abc import Iterator

import numpy as np

from kafka_assignors._model.arrays import NOBODY, IntArray, before_in_run
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan

_FEW = 4


def plan_quickly(group: Group) -> Plan:
    """Keep what members owned up to the mean load, rounded up, and level the rest of each topic.

    The mean is that of the members that take part in a topic: standbys can take nothing.

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
    takers = np.count_nonzero(np.diff(group.subscribed.bounds)[group.subscription_of])
    owner[owned[place >= -(-group.size // takers)]] = NOBODY
    loads = np.bincount(owner[owner != NOBODY], minlength=members)
    free = np.flatnonzero(owner == NOBODY)
    bounds = np.searchsorted(free, group.topic_bounds).tolist()
    for topic, subscribers in _narrow_first(group):
        wanted = free[bounds[topic] : bounds[topic + 1]]
        if wanted.size:
            gets = _fill(loads[subscribers], wanted.size)
            owner[wanted] = subscribers[gets]
            np.add.at(loads, subscribers[gets], 1)
    return Plan.from_owner(group, owner)


def _narrow_first(group: Group) -> Iterator[tuple[int, IntArray]]:
    """Topics and the numbers of their subscribers, ascending; topics with the fewest first."""
    subscribed, subscription_of = group.subscribed, group.subscription_of
    if not subscribed.is_dense:
        for topic in sorted(range(len(group.topics)), key=lambda topic: len(group.subscribers[topic])):
            yield topic, np.array(group.subscribers[topic])
        return
    table = np.ascontiguousarray(subscribed.table.T)
    size_of = np.bincount(subscription_of, minlength=len(subscribed))
    sizes = np.bincount(
        subscribed.numbers,
        weights=np.repeat(size_of, np.diff(subscribed.bounds)),
        minlength=subscribed.topics,
    )
    last, subscribers = b"", np.empty(0, dtype=np.int64)
    for topic in np.argsort(sizes, kind="stable").tolist():
        row = table[topic]
        if row.tobytes() != last:
            last, subscribers = row.tobytes(), np.flatnonzero(row[subscription_of])
        yield topic, subscribers


def _fill(loads: IntArray, units: int) -> IntArray:
    """Which load gets each of some units, ascending, if they are poured in like water; changes `loads`."""
    if units <= _FEW:
        chosen = []
        for _ in range(units):
            lowest = int(loads.argmin())
            loads[lowest] += 1
            chosen.append(lowest)
        return np.array(sorted(chosen))
    ascending = np.sort(loads)
    # Up to which level the lowest n loads can be raised with the units that there are.
    levels = (np.cumsum(ascending) + units) // np.arange(1, loads.size + 1)
    level = int(levels.min())
    gets = np.maximum(level - loads, 0)
    rest = units - int(gets.sum())
    gets[np.flatnonzero(loads <= level)[:rest]] += 1
    return np.repeat(np.arange(loads.size), gets)
