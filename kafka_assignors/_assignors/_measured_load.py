"""What a leader makes of its members' measures: what each partition costs, and how fast each member is.

A partition is measured by its owner, in the owner's own seconds. How fast members are shows where several
have partitions of one topic: a topic's usual record costs a slow member more seconds. So a member's speed is
how many times less than the others' its records cost, as the geometric mean over topics. Of a topic's
partitions with a member the median counts, as one may be dearer than the others by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np

from kafka_assignors._model.arrays import NOBODY, BoolArray, FloatArray
from kafka_assignors._model.group import Group
from kafka_assignors._wire.measured import Measured, MeasuredTopic, decode_measured
from kafka_assignors.planners._load import HORIZON, Load

FASTEST: Final = 16.0
"""How many times as fast as the mean a member may be, or as slow, whatever it sends."""

_NOTHING_KNOWN: Final = Measured(cost=1.0, lag=1.0, arriving=1e-3)
"""What partitions count as where nothing at all is known: alike."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Known:
    """What is known of the partitions of a group, to be found again in a later one; NaN is what is not known.

    `numbers` (N, 3) are as in `Measured`, costs being those of a member of speed 1. `moved` (N,) is when each
    was moved for load. `said` (N,) is the relative work of a record by hand, which must not change in a
    rebalance.
    """

    group: Group
    numbers: FloatArray
    moved: FloatArray
    said: FloatArray

    @classmethod
    def nothing(cls, group: Group) -> Self:
        numbers, moved, said = (np.full(shape, np.nan) for shape in ((group.size, 3), group.size, group.size))
        return cls(group=group, numbers=numbers, moved=moved, said=said)

    def of(self, group: Group) -> "Known":
        """The same of a later group."""
        place = self.group.existing.places_of(group.existing)
        there, found = place >= 0, Known.nothing(group)
        for name in ("numbers", "moved", "said"):
            getattr(found, name)[there] = getattr(self, name)[place[there]]
        return found


def measured_in(group: Group) -> tuple[FloatArray, Mapping[str, str]]:
    """What the owner of each partition has measured, (N, 3) as in `Measured`.

    What somebody sends of partitions that another member owns does not count. Second, what is wrong with what
    members sent, by member id.
    """
    faults: dict[str, str] = {}
    existing, topic_count = group.existing, len(group.topics)
    others: dict[int, FloatArray] = {}  # by member * T + topic
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
        return np.full((group.size, 3), np.nan), faults
    keys, which = np.unique(group.owner * topic_count + group.topic_of, return_inverse=True)
    numbers = np.array([others.get(key, Measured()) for key in keys.tolist()])[which]
    members, of_topic = (np.array([one[column] for one in singles]) for column in (0, 1))
    sizes = np.array([one.ids.size for _, _, one in singles])
    place = existing.find(of_topic, sizes, np.concatenate([one.ids for _, _, one in singles]))
    mine = (place >= 0) & (group.owner[place] == members.repeat(sizes))
    numbers[place[mine]] = np.concatenate([one.numbers for _, _, one in singles])[mine]
    return numbers, faults


def speeds(group: Group, costs: FloatArray) -> FloatArray:
    """(M,) how fast each member is, by what a record costs its owner, (N,); the mean is 1.

    Members that cannot be compared have the mean speed. If members have weights, these are the speeds.
    """
    count = len(group.members)
    if group.weights.size and group.weights.min() != group.weights.max():
        return np.asarray(group.weights / group.weights.mean())
    known = np.flatnonzero((costs > 0) & (group.owner != NOBODY))
    key = group.topic_of[known] * count + group.owner[known]
    order = np.lexsort((costs[known], key))
    runs, first, sizes = np.unique(key[order], return_index=True, return_counts=True)
    logs = np.log(costs[known][order])
    usual = (logs[first + (sizes - 1) // 2] + logs[first + sizes // 2]) / 2
    topic, member = runs // count, runs % count
    members = np.bincount(topic)[topic]  # beside each, how many have partitions of its topic
    dearer = usual - np.bincount(topic, weights=usual)[topic] / members
    times = np.bincount(member[members > 1], minlength=count)
    compared = times > 0
    if not compared.any():
        return np.ones(count)
    found, speed = np.exp(-np.bincount(member, dearer, count)[compared] / times[compared]), np.ones(count)
    speed[compared] = np.clip(found / found.mean(), 1 / FASTEST, FASTEST)
    return np.asarray(speed / speed.mean())


def learn(before: Known) -> tuple[Known, FloatArray, Mapping[str, str]]:
    """What is known now, how fast members are (M,), and what is wrong with what they sent, by member id.

    What nobody measures any more is as before. Standbys have measured what they hold, too.
    """
    group = before.group
    if not group.claims.subscribed.all():
        group = group.with_subscriptions(group.sent)
    numbers, faults = measured_in(group)
    speed = speeds(group, numbers[:, 0])
    numbers[:, 0] *= speed[group.owner]  # what nobody owns, nobody has measured
    numbers = np.where(np.isnan(numbers), before.numbers, numbers)
    return replace(before, numbers=numbers, said=np.full(group.size, np.nan)), speed, faults


def load_of(known: Known, speed: FloatArray, stays: BoolArray) -> Load:
    """What a plan goes by. What is not known of a partition is the mean of its topic, or of all."""
    group, numbers, said = known.group, known.numbers.copy(), known.said
    if group.size and not np.isnan(said).any():
        # What is measured tells the unit, as the geometric mean.
        measured = numbers[:, 0] > 0
        unit = np.exp(np.log(numbers[measured, 0] / said[measured]).mean()) if measured.any() else 1.0
        numbers[:, 0] = said * unit
    for column, default in enumerate(_NOTHING_KNOWN):
        _fill(group, numbers[:, column], default)
    seconds, lag, rate = numbers.T
    return Load(arriving=seconds * rate, waiting=seconds * lag, speed=speed, stays=stays)


def half_busy(load: Load) -> Load:
    """The same load, or so many times as much that members need half of their time for it.

    Where costs are said by hand, what is measured can be the time in which records are handed to others. By
    that a plan would find hardly any work, and balance counts.
    """
    seconds = load.arriving.sum() + load.waiting.sum() / HORIZON
    times = max(1.0, 0.5 * load.speed.sum() / seconds) if seconds > 0 else 1.0
    return replace(load, arriving=load.arriving * times, waiting=load.waiting * times)


def _fill(group: Group, values: FloatArray, default: float) -> None:
    known = ~np.isnan(values)
    if known.all():
        return
    topics = len(group.topics)
    counts = np.bincount(group.topic_of[known], minlength=topics)
    sums = np.bincount(group.topic_of[known], weights=values[known], minlength=topics)
    overall = sums.sum() / counts.sum() if counts.sum() else default
    means = np.where(counts > 0, sums / np.maximum(counts, 1), overall)
    values[~known] = means[group.topic_of[~known]]
