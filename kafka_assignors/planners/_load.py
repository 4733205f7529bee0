"""Plans by load: a stand-in that the planner of load replaces."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kafka_assignors._model.arrays import NOBODY, BoolArray, IntArray
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors._model.tick import Tick, go_on


@dataclass(frozen=True, kw_only=True, eq=False)
class Load:
    """What partitions cost and how fast members are."""

    arriving: NDArray[np.float64]
    waiting: NDArray[np.float64]
    speed: NDArray[np.float64]
    stays: BoolArray


def drain_time(owner: IntArray, load: Load) -> float:
    has = owner != NOBODY
    count = load.speed.size
    waiting = np.bincount(owner[has], weights=load.waiting[has], minlength=count) / load.speed
    arriving = np.bincount(owner[has], weights=load.arriving[has], minlength=count) / load.speed
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(waiting > 0, np.where(arriving < 1, waiting / (1 - arriving), np.inf), 0.0)
    return float(times.max(initial=0.0))


def _cost(owner: IntArray, load: Load) -> NDArray[np.float64]:
    has = owner != NOBODY
    work = load.waiting + 60 * load.arriving
    return np.bincount(owner[has], weights=work[has], minlength=load.speed.size) / load.speed


def plan_load(
    group: Group, load: Load, *, tolerance: float = 0.1, max_moves: int | None = None, tick: Tick = go_on
) -> Plan:
    if not len(group.members) or not group.size:
        return Plan.from_owner(group, group.owner)
    owner = group.owner.copy()
    work = load.waiting + 60 * load.arriving
    left = np.inf if max_moves is None else max_moves

    def best(partition: int, costs: NDArray[np.float64]) -> int:
        may = [m for m in range(len(group.members)) if group.topic_of[partition] in group.subscriptions[m]]
        return min(may, key=lambda m: (costs[m] + work[partition] / load.speed[m], m), default=NOBODY)

    for partition in sorted(np.flatnonzero(owner == NOBODY), key=lambda p: -work[p]):
        owner[partition] = best(partition, _cost(owner, load))
    start = owner.copy()
    while left > 0:
        tick()
        costs = _cost(owner, load)
        slow = int(costs.argmax())
        found = None
        for partition in np.flatnonzero((owner == slow) & ~load.stays):
            to = best(partition, costs)
            after = max(
                costs[to] + work[partition] / load.speed[to], costs[slow] - work[partition] / load.speed[slow]
            )
            if (
                to not in {slow, NOBODY}
                and after < costs[slow] * 0.999
                and (found is None or after < found[0])
            ):
                found = after, partition, to
        if found is None:
            break
        owner[found[1]] = found[2]
        left -= 1
    if _cost(owner, load).max(initial=0) > (1 - tolerance) * _cost(start, load).max(initial=0):
        owner = start
    return Plan.from_owner(group, owner)
