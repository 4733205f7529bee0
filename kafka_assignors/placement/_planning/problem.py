"""What is asked of the planner, checked: the partitions to be placed, and the brokers that may hold them."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kafka_assignors._common.words import first_of
from kafka_assignors._model.arrays import IntArray
from kafka_assignors.placement._placement import Placement, PlacementError, Racks, check_racks
from kafka_assignors.placement._planning.spread import rack_bounds

_SHOWN = 10
"""How many brokers an error names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """A partition to be placed."""

    topic: str  # empty if it is not known
    partition: int
    present: tuple[int, ...]  # none if it is new
    factor: int
    size: int | None  # bytes, if they count

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}" if self.topic else f"partition {self.partition}"


def wanted_partitions(
    topics: Mapping[str, Placement],
    *,
    fixed: Collection[str],
    replication_factor: int | None,
    sizes: Mapping[tuple[str, int], int] | None,
) -> list[Wanted]:
    """All partitions to be placed, by topic and id; arguments as of `plan_moves`."""
    return [
        Wanted(
            topic=topic,
            partition=partition,
            present=tuple(present),
            factor=len(present) if replication_factor is None else replication_factor,
            size=None if sizes is None else sizes[topic, partition],
        )
        for topic, placement in sorted(topics.items())
        if topic not in fixed
        for partition, present in sorted(placement.items())
    ]


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerSet:
    """The brokers that may hold replicas."""

    brokers: list[int]  # n ids, ascending
    rack: IntArray  # (n,) the numbers of their racks; all 0 without racks

    @classmethod
    def of(cls, racks: Racks, brokers: Collection[int] | None) -> "BrokerSet":
        """The cluster; arguments as of `plan_moves`."""
        check_racks(racks)
        allowed = sorted(racks if brokers is None else set(brokers))
        unknown = [broker for broker in allowed if broker not in racks]
        if unknown:
            raise PlacementError(
                f"brokers has {first_of(unknown, _SHOWN)}, and racks does not: add them there, with None if "
                "brokers have no racks, or leave them out"
            )
        names = sorted({racks[broker] or "" for broker in allowed})
        number = {name: at for at, name in enumerate(names)}
        rack = np.array([number[racks[broker] or ""] for broker in allowed], dtype=np.int64)
        return cls(brokers=allowed, rack=rack)

    def check(self, planned: Iterable[Wanted]) -> None:
        """Raise a `PlacementError` for a replication factor that cannot be had."""
        for wanted in planned:
            if wanted.factor < 1:
                raise PlacementError(
                    f"{wanted.name} is to have {wanted.factor} replicas: give a replication factor of 1 or "
                    "more"
                )
            if wanted.factor > len(self.brokers):
                known = first_of(self.brokers, _SHOWN) or "none"
                raise PlacementError(
                    f"{wanted.name} is to have {wanted.factor} replicas, but at most {len(self.brokers)} "
                    f"brokers may hold them ({known}): allow more, or lower the replication factor"
                )

    def allows(self, wanted: Wanted, replicas: Sequence[int]) -> bool:
        """Whether a partition may be on these brokers: as many as it is to have, spread over the racks."""
        number = {broker: at for at, broker in enumerate(self.brokers)}
        if len(replicas) != wanted.factor or len({*replicas} & number.keys()) != wanted.factor:
            return False
        in_rack = np.bincount(self.rack)
        low, high = rack_bounds(in_rack, wanted.factor)
        found = np.bincount(self.rack[[number[broker] for broker in replicas]], minlength=in_rack.size)
        return bool((low <= found).all() and (found <= high).all())

    def load(self, placements: Iterable[Placement]) -> tuple[IntArray, IntArray]:
        """How many replicas placements put on the brokers, and how many leaders: (n,) each."""
        found = [replicas for placement in placements for replicas in placement.values() if replicas]
        replicas = self.count(broker for replicas in found for broker in replicas)
        return replicas, self.count(replicas[0] for replicas in found)

    def count(self, brokers: Iterable[int]) -> IntArray:
        """(n,) how often each broker comes."""
        times = Counter(brokers)
        return np.array([times[broker] for broker in self.brokers], dtype=np.int64)
