"""Start indexes and shifts read back from placements that Kafka's `AdminUtils` made, step by step.

A topic is created from a start index and a shift that are drawn. The shift grows by one at every partition
whose id is a multiple of the number of brokers. When partitions were added, `AdminZkClient.addPartitions`
took one position for both: among the brokers by id, that of the first not below the first partition's leader.
So a step has one unknown less than the creation: nothing is free in it but where it begins.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

from kafka_assignors.placement._generators import BrokerRing, shift_at
from kafka_assignors.placement._inference.steps import Run

Row = tuple[int, Sequence[int]]
"""A partition's number, by id or by position, and its replicas."""


def read_run(ring: BrokerRing, rows: Sequence[Row], begin: int) -> Run:
    """Follow the rows as far as one step from `begin` explains them: the creation if that is 0."""
    if begin:
        # Java's indexWhere says -1 where none is found, and becomes 0.
        start = bisect.bisect_left(sorted(ring.brokers), rows[0][1][0]) % len(ring.brokers)
        return _follow(ring, rows, begin, start, (start % ring.modulus,))
    first, replicas = rows[0]
    if replicas[0] not in ring.brokers:
        return Run(0, 0)
    start = (ring.brokers.index(replicas[0]) - first) % len(ring.brokers)
    return _follow(ring, rows, 0, start, tuple(range(ring.modulus)))


def _follow(ring: BrokerRing, rows: Sequence[Row], begin: int, start: int, shifts: tuple[int, ...]) -> Run:
    """Follow the rows as far as this start index and any of these shifts explain them."""
    # One replica shows no shift: all fit if one does.
    shows_shift = len(rows[begin][1]) > 1
    for end, (partition, found) in enumerate(rows[begin:], begin):
        fitting = tuple(
            shift
            for shift in (shifts if shows_shift else shifts[:1])
            if ring.replicas(partition, start, shift_at(partition, rows[begin][0], shift, len(ring.brokers)))
            == [*found]
        )
        if not fitting:
            return Run(end, start, shifts)
        if shows_shift:
            shifts = fitting
    return Run(len(rows), start, shifts)
