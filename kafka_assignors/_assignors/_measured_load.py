"""What a leader makes of its members' measures: what each partition costs, and how fast each member is.

A partition is measured by its owner, in the owner's own seconds. How fast members are shows where several
have partitions of one topic: a topic's usual record costs a slow member more seconds. So a member's speed is
how many times less than the others' its records cost, as the geometric mean over topics. Of a topic's
partitions with a member the median counts, as one may be dearer than the others by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from heapq import heapreplace
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from kafka_assignors._model.arrays import NOBODY, BoolArray
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors._wire.measured import Measured, MeasuredTopic, decode_measured
from kafka_assignors.planners._load import HORIZON, Load

FASTEST: Final = 16.0
"""How many times as fast as the mean a member may be, or as slow, whatever it sends."""

_NOTHING_KNOWN: Final = Measured(cost=1.0, lag=1.0, arriving=1e-3)
"""What partitions count as where nothing at all is known: alike."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """What is known of the partitions of a group, to be found again in a later one.

    `numbers` (N, 3) are as in `Measured`, costs being those of a member of speed 1; NaN is not known.
    `moved` (N,) is when each was moved for load, -inf for never. `said` (N,) is the relative work of a record
    by hand, which must not change in a rebalance; NaN where nobody was asked.
    """

    group: Group
    numbers: NDArray[np.float64]
    moved: NDArray[np.float64]
    said: NDArray[np.float64]

    @classmethod
    def nothing(cls, group: Group) -> Self:
        return cls(
            group=group,
            numbers=np.full((group.size, 3), np.nan),
            moved=np.full(group.size, -np.inf),
            said=np.full(group.size, np.nan),
        )

    def of(self, group: Group) -> "Known":
        """The same of a later group."""
        place = self.group.existing.places_of(group.existing)
        found = Known.nothing(group)
        there = place >= 0
        found.numbers[there] = self.numbers[place[there]]
        found.moved[there] = self.moved[place[there]]
        found.said[there] = self.said[place[there]]
        return found


def with_standbys(group: Group) -> Group:
    """The group with the owners by what members sent: standbys have measured what they hold, too."""
    return group if group.claims.subscribed.all() else group.with_subscriptions(group.sent)


def measured_in(group: Group) -> tuple[NDArray[np.float64], Mapping[str, str]]:
    """What the owner of each partition has measured, (N, 3) as in `Measured`.

    What somebody sends of partitions that another member owns does not count. Second, what is wrong with what
    members sent, by member id.
    """
    numbers, faults = np.full((group.size, 3), np.nan), {}
    existing, topic_count = group.existing, len(group.topics)
    others: dict[int, NDArray[np.float64]] = {}  # by member * T + topic
    singles: list[tuple[int, int, MeasuredTopic]] = []
    for member, extra in group.members.extras.items():
        topics, fault = decode_measured(extra.data)
        if fault is not None:
            faults[group.members.ids[member]] = fault
        for one in topics:
            if (topic := existing.topics.get(one.name)) is not None:
                others[member * topic_count + topic] = one.others
                singles.append((member, topic, one))
    if not singles:
        return numbers, faults
    keys = np.array(sorted(others))
    wanted = np.where(group.owner == NOBODY, -1, group.owner * topic_count + group.topic_of)
    at = np.minimum(keys.searchsorted(wanted), keys.size - 1)
    told = keys[at] == wanted
    numbers[told] = np.array([others[key] for key in keys.tolist()])[at[told]]
    members, of_topic = (np.array([one[column] for one in singles]) for column in (0, 1))
    sizes = np.array([one.ids.size for _, _, one in singles])
    place = existing.find(of_topic, sizes, np.concatenate([one.ids for _, _, one in singles]))
    mine = (place >= 0) & (group.owner[place] == members.repeat(sizes))
    numbers[place[mine]] = np.concatenate([one.numbers for _, _, one in singles])[mine]
    return numbers, faults


def speeds(group: Group, costs: NDArray[np.float64]) -> NDArray[np.float64]:
    """(M,) how fast each member is, by what a record costs its owner, (N,); the mean is 1.

    Members that cannot be compared have the mean speed. If members have weights, these are the speeds.
    """
    count, topics = len(group.members), len(group.topics)
    if _is_weighted(group):
        return np.asarray(group.weights / group.weights.mean())
    known = np.flatnonzero((costs > 0) & (group.owner != NOBODY))
    speed = np.ones(count)
    if not known.size:
        return speed
    key = group.topic_of[known] * count + group.owner[known]
    order = np.lexsort((costs[known], key))
    runs, first, sizes = np.unique(key[order], return_index=True, return_counts=True)
    logs = np.log(costs[known][order])
    usual = (logs[first + (sizes - 1) // 2] + logs[first + sizes // 2]) / 2
    topic, member = runs // count, runs % count
    several = np.bincount(topic, minlength=topics)[topic] > 1
    if not several.any():
        return speed
    mean = np.bincount(topic, weights=usual, minlength=topics) / np.maximum(
        np.bincount(topic, minlength=topics), 1
    )
    times = np.bincount(member[several], minlength=count)
    slower = np.bincount(member[several], weights=(usual - mean[topic])[several], minlength=count)
    compared = times > 0
    found = np.exp(-slower[compared] / times[compared])
    speed[compared] = np.clip(found / found.mean(), 1 / FASTEST, FASTEST)
    return np.asarray(speed / speed.mean())


def _is_weighted(group: Group) -> bool:
    return bool(group.weights.size) and group.weights.min() != group.weights.max()


def known_now(
    group: Group, measured: NDArray[np.float64], speed: NDArray[np.float64], before: Known
) -> Known:
    """What members measured now, and what is remembered of partitions that nobody measured."""
    numbers = measured.copy()
    owned = group.owner != NOBODY
    numbers[owned, 0] *= speed[group.owner[owned]]
    return Known(
        group=group,
        numbers=np.where(np.isnan(numbers), before.numbers, numbers),
        moved=before.moved,
        said=np.full(group.size, np.nan),
    )


def load_of(known: Known, speed: NDArray[np.float64], stays: BoolArray) -> Load:
    """What a plan goes by. What is not known of a partition is the mean of its topic, or of all.

    Args:
        known: What is known of the partitions.
        speed: (M,) how fast members are.
        stays: (N,) what stays with its owner.
    """
    group, numbers, said = known.group, known.numbers.copy(), known.said
    if group.size and not np.isnan(said).any():
        # What is measured tells the unit, as the geometric mean.
        measured = numbers[:, 0] > 0
        unit = np.exp(np.log(numbers[measured, 0] / said[measured]).mean()) if measured.any() else 1.0
        numbers[:, 0] = said * unit
    for column, default in enumerate(_NOTHING_KNOWN):
        _fill(group, numbers[:, column], default)
    seconds, lag, rate = numbers.T
    if _is_weighted(group):
        speed = np.ones(speed.size)  # the planner multiplies speeds by the weights
    return Load(arriving=seconds * rate, waiting=seconds * lag, speed=speed, stays=stays)


def half_busy(load: Load) -> Load:
    """The same load, or so many times as much that members need half of their time for it.

    Where costs are said by hand, what is measured can be the time in which records are handed to others. By
    that a plan would find hardly any work, and balance counts.
    """
    seconds = load.arriving.sum() + load.waiting.sum() / HORIZON
    times = max(1.0, 0.5 * load.speed.sum() / seconds) if seconds > 0 else 1.0
    return replace(load, arriving=load.arriving * times, waiting=load.waiting * times)


def place_load(group: Group, load: Load) -> Plan:
    """A plan in little time: partitions stay with their owners, free ones go to who is done soonest."""
    speed = load.weighted(group.weights).speed
    cost = load.waiting + HORIZON * load.arriving
    cost = np.maximum(cost, 0.01 * cost.mean() if cost.any() else 1.0)
    owner = group.owner.copy()
    has = owner != NOBODY
    done = (np.bincount(owner[has], weights=cost[has], minlength=speed.size) / speed).tolist()
    heaps: dict[int, list[tuple[float, int]]] = {}
    for members in group.subscribers:
        heaps.setdefault(id(members), sorted((done[member], member) for member in members))
    free = np.flatnonzero(~has)
    free = free[np.argsort(-cost[free], kind="stable")]
    for partition, topic in zip(free.tolist(), group.topic_of[free].tolist(), strict=True):
        heap = heaps[id(group.subscribers[topic])]
        while heap[0][0] != done[heap[0][1]]:  # it has got something by another heap since
            heapreplace(heap, (done[heap[0][1]], heap[0][1]))
        member = heap[0][1]
        owner[partition] = member
        done[member] += cost[partition] / speed[member]
        heapreplace(heap, (done[member], member))
    return Plan.from_owner(group, owner)


def _fill(group: Group, values: NDArray[np.float64], default: float) -> None:
    known = ~np.isnan(values)
    if known.all():
        return
    topics = len(group.topics)
    counts = np.bincount(group.topic_of[known], minlength=topics)
    sums = np.bincount(group.topic_of[known], weights=values[known], minlength=topics)
    overall = sums.sum() / counts.sum() if counts.sum() else default
    means = np.where(counts > 0, sums / np.maximum(counts, 1), overall)
    values[~known] = means[group.topic_of[~known]]
