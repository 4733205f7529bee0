"""The racks of partitions' replicas, as columns, and when they matter (KIP-881)."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Self, overload

import numpy as np

from kafka_assignors._model.arrays import IntArray
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors._model.topic_sets import Numbers

Racks = frozenset[str]

RacksOfTopic = Callable[[str, Sequence[int]], Iterable[Racks]]
"""The racks of the replicas of some partitions of a topic."""

KnownRacks = Mapping[tuple[str, int], Racks] | RacksOfTopic
"""The racks of the replicas of each topic and partition id."""

_NOWHERE = Racks()


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplicaRacks(Sequence[Racks]):
    """For each of N partitions the racks of its replicas: different `sets`, and which of them, `which` (N,).

    Few sets are different, as partitions share brokers. As a sequence it has the set of each partition.
    """

    sets: tuple[Racks, ...]
    which: IntArray

    @classmethod
    def of(
        cls,
        ids: Mapping[str, Sequence[int]],
        known: KnownRacks | None,
        tick: Tick = go_on,
    ) -> Self | None:
        """Those of topics' partitions, as far as known; None of None. For the tick see `Group.of`."""
        if known is None:
            return None
        numbers = Numbers[Racks]()
        which = [np.empty(0, dtype=np.int64)]
        for topic, partitions in ids.items():
            sets = (
                map(known.get, zip(repeat(topic), partitions), repeat(_NOWHERE))
                if isinstance(known, Mapping)
                else known(topic, partitions)
            )
            which.append(np.fromiter(map(numbers.__getitem__, sets), dtype=np.int64, count=len(partitions)))
            tick()
        return cls(sets=tuple(numbers), which=np.concatenate(which))

    def within(self, racks: Racks) -> Self:
        """The same with these racks only."""
        numbers = Numbers[Racks]()
        number = np.array([numbers[each & racks] for each in self.sets], dtype=np.int64)
        return type(self)(sets=tuple(numbers), which=number[self.which])

    def __len__(self) -> int:
        return self.which.size

    @overload
    def __getitem__(self, number: int) -> Racks: ...
    @overload
    def __getitem__(self, number: slice) -> list[Racks]: ...
    def __getitem__(self, number: int | slice) -> Racks | list[Racks]:
        if isinstance(number, slice):
            return [self.sets[each] for each in self.which[number].tolist()]
        return self.sets[int(self.which[number])]

    def __iter__(self) -> Iterator[Racks]:
        return iter(self[:])


def racks_matter(member_racks: Collection[str], partition_racks: Collection[Racks]) -> bool:
    """KIP-881's rule of when to look at racks (Kafka's AbstractPartitionAssignor.useRackAwareAssignment).

    Members and replicas share a rack, and the partitions differ in their racks. If every partition is in
    every rack, any plan is as good as another. Members of unknown racks are left out.
    """
    everywhere = Racks().union(*partition_racks)
    return not everywhere.isdisjoint(member_racks) and any(racks != everywhere for racks in partition_racks)
