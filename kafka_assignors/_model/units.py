"""Partitions that belong together: units, and the group in which each unit is one partition."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from kafka_assignors._model.arrays import NOBODY, IntArray, distinct, places
from kafka_assignors._model.claims import Claims
from kafka_assignors._model.group import Group
from kafka_assignors._model.racks import Racks, ReplicaRacks
from kafka_assignors._model.topic_sets import Numbers, TopicNumbers, TopicSets


@dataclass(frozen=True, kw_only=True, eq=False)
class Units:
    """The units of a group. Each partition is in one; all topics of a unit have the same subscribers.

    `of` (N,) is the unit of each partition, `first` (U,) the lowest partition of each unit, ascending.
    """

    of: IntArray
    first: IntArray

    @classmethod
    def by(cls, keys: IntArray) -> Self:
        """The units of partitions that have one key (N,)."""
        first, number = distinct(keys)
        order = np.argsort(first)
        return cls(of=places(order, first.size)[number], first=first[order])

    @cached_property
    def sizes(self) -> IntArray:
        """(U,) how many partitions each has."""
        return np.bincount(self.of, minlength=self.first.size)

    @cached_property
    def spread(self) -> int:
        """How many partitions loads are apart at most, for members with equal topics and weights.

        Without options, which allow for more; `planners/_copartitioned.py` has the proof.
        """
        sizes = {*self.sizes.tolist()}
        return max(
            (
                size if all(larger % size == 0 for larger in sizes if larger > size) else 2 * size - 1
                for size in sizes
            ),
            default=0,
        )

    def whole(self, partitions: IntArray) -> IntArray:
        """All partitions of the units that some are in, ascending."""
        there = np.zeros(self.first.size, dtype=np.bool_)
        there[self.of[partitions]] = True
        return np.flatnonzero(there[self.of])

    def agreed(self, partitions: IntArray, members: IntArray) -> IntArray:
        """(U,) the one member beside all partitions of each unit; `NOBODY` if there are several, or none."""
        unit, lowest = self.of[partitions], np.full(self.first.size, np.iinfo(np.int64).max)
        highest = np.full(self.first.size, NOBODY)
        np.minimum.at(lowest, unit, members)
        np.maximum.at(highest, unit, members)
        return np.where(lowest == highest, highest, NOBODY)

    def owners(self, group: Group) -> IntArray:
        """(U,) the valid owner of most of each unit's partitions, of several the first; or `NOBODY`."""
        owned, size = np.flatnonzero(group.owner != NOBODY), max(len(group.members), 1)
        pairs, counts = np.unique(self.of[owned] * size + group.owner[owned], return_counts=True)
        pairs = pairs[np.lexsort((-pairs, counts))]
        owner = np.full(self.first.size, NOBODY)
        owner[pairs // size] = pairs % size  # of several the last one written stays
        return owner

    def as_group(self, group: Group, chosen: IntArray | None = None) -> Group:
        """The group in which units, all or some by their numbers, are partitions.

        A unit has the topic and the id of its first partition, and is in the racks that all of its partitions
        are in. Owners are as `owners` says; there are no claims.
        """
        if chosen is None:
            chosen = np.arange(self.first.size)
        first, owner = self.first[chosen], self.owners(group)[chosen]
        topic = group.topic_of[first]
        kept, number = np.unique(topic, return_inverse=True)
        names = {group.topics[each]: place for place, each in enumerate(kept.tolist())}
        sets = TopicSets(names=group.topics, bounds=group.subscribed.bounds, entries=group.subscribed.numbers)
        subscribed, which = TopicNumbers.of(sets, names)
        nothing = first[:0]
        return Group(
            members=group.members,
            topics=tuple(names),
            partition_ids=group.partition_ids[first],
            topic_bounds=np.searchsorted(number, np.arange(kept.size + 1)),
            subscribed=subscribed,
            subscription_of=which[group.subscription_of],
            claims=Claims(
                partition=nothing,
                member=nothing,
                generation=nothing,
                subscribed=nothing.astype(np.bool_),
                held=nothing.astype(np.bool_),
            ),
            owner=owner,
            replica_racks=None if group.replica_racks is None else self._racks(group.replica_racks, chosen),
        )

    def _racks(self, racks: ReplicaRacks, chosen: IntArray) -> ReplicaRacks:
        common = [racks[first] for first in self.first.tolist()]
        for unit, its in zip(self.of.tolist(), racks, strict=True):
            common[unit] &= its
        numbers = Numbers[Racks]()
        which = np.array([numbers[common[unit]] for unit in chosen.tolist()], dtype=np.int64)
        return ReplicaRacks(sets=tuple(numbers), which=which)
