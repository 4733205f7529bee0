"""Start indexes and shifts read back from placements that Kafka's `AdminUtils` made, step by step.

A topic is created from a start index and a shift that are drawn. The shift grows by one at every partition
whose id is a multiple of the number of brokers. When partitions were added, `AdminZkClient.addPartitions`
took one position for both: among the brokers by id, that of the first not below the first partition's leader.
So a step has one unknown less than the creation: nothing is free in it but where it begins.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_assignors.placement._generators import AlternatedBrokers, rack_unaware_replicas, shift_at
from kafka_assignors.placement._inference.steps import Run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from kafka_assignors.placement._placement import Racks

Row = tuple[int, Sequence[int]]
"""A partition's number, by id or by position, and its replicas."""


@dataclass(frozen=True, slots=True)
class ShiftGenerator:
    """One of the two generators of `AdminUtils`, for given brokers and one replication factor."""

    brokers: Sequence[int]  # in the order in which leaders go round
    modulus: int  # shifts that differ by a multiple of this give the same
    replicas: Callable[[int, int, int], list[int]]  # partition, start index, shift there

    @classmethod
    def rack_unaware(cls, brokers: Collection[int], replication_factor: int) -> ShiftGenerator:
        """The generator that knows no racks."""
        order = sorted(brokers)

        def replicas(partition: int, start: int, shift: int) -> list[int]:
            return rack_unaware_replicas(partition, replication_factor, order, start, shift)

        return cls(order, max(1, len(order) - 1), replicas)

    @classmethod
    def rack_aware(cls, racks: Racks, replication_factor: int) -> ShiftGenerator:
        """The generator that goes by racks; every broker must have one."""
        alternated = AlternatedBrokers(racks, replication_factor)
        others = max(1, len(racks) - 1)
        # What counts is the shift times the number of racks.
        modulus = others // math.gcd(len({*racks.values()}), others)
        return cls(alternated.brokers, modulus, alternated.replicas)


def read_run(generator: ShiftGenerator, rows: Sequence[Row], begin: int) -> Run:
    """Follow the rows as far as one step from `begin` explains them: the creation if that is 0."""
    if begin:
        # Java's indexWhere says -1 where none is found, and becomes 0.
        start = bisect.bisect_left(sorted(generator.brokers), rows[0][1][0]) % len(generator.brokers)
        return _follow(generator, rows, begin, start, (start % generator.modulus,))
    first, replicas = rows[0]
    if replicas[0] not in generator.brokers:
        return Run(0, 0)
    start = (generator.brokers.index(replicas[0]) - first) % len(generator.brokers)
    return _follow(generator, rows, 0, start, tuple(range(generator.modulus)))


def _follow(
    generator: ShiftGenerator, rows: Sequence[Row], begin: int, start: int, shifts: tuple[int, ...]
) -> Run:
    """Follow the rows as far as this start index and any of these shifts explain them."""
    # One replica shows no shift: all fit if one does.
    shows_shift = len(rows[begin][1]) > 1
    for end, (partition, found) in enumerate(rows[begin:], begin):
        fitting = tuple(
            shift
            for shift in (shifts if shows_shift else shifts[:1])
            if generator.replicas(
                partition, start, shift_at(partition, rows[begin][0], shift, len(generator.brokers))
            )
            == [*found]
        )
        if not fitting:
            return Run(end, start, shifts)
        if shows_shift:
            shifts = fitting
    return Run(len(rows), start, shifts)
