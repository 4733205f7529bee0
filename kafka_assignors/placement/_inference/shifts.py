"""Start indexes and shifts read back from placements that Kafka's `AdminUtils` made, step by step.

A topic is created from a start index and a shift that are drawn. The shift grows by one at every partition
whose id is a multiple of the number of brokers. When partitions were added, `AdminZkClient.addPartitions`
took one position for both: among the brokers by id, that of the first not below the first partition's leader.
So a step has one unknown less than the creation: nothing is free in it but where it begins.
"""

import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from kafka_assignors.placement._generators import BrokerRing, shift_at

Row = tuple[int, Sequence[int]]
"""A partition's number, by id or by position, and its replicas."""

_BY_CHANCE: Final = 100
"""How many rows of a step the one before may explain as well. All rows before would take minutes."""


@dataclass(frozen=True, slots=True)
class Run:
    """What the partitions of one step show of what was drawn for it; see `InferenceStep`."""

    end: int  # the first row that does not fit
    start: int
    shifts: tuple[int, ...] = ()
    offsets: Mapping[str | None, int] = field(default_factory=dict)


def fewest(read_from: Callable[[int], Run], rows: int) -> tuple[list[tuple[int, Run]], int]:
    """The fewest steps that explain the rows, with their beginnings, and how many rows they explain."""
    first = read_from(0)
    steps = [(0, first)]
    reach, tried = first.end, 1
    while 0 < reach < rows:
        later = [(begin, read_from(begin)) for begin in range(max(tried, reach - _BY_CHANCE), reach + 1)]
        begin, run = max(later, key=lambda one: (one[1].end, -one[0]))
        if run.end <= reach:
            break
        steps.append((begin, run))
        tried, reach = reach + 1, run.end
    return steps, reach


def read_run(ring: BrokerRing, rows: Sequence[Row], begin: int) -> Run:
    """Follow the rows as far as one step from `begin` explains them: the creation if that is 0."""
    size = len(ring.brokers)
    first, replicas = rows[0]
    if begin:
        # Java's indexWhere says -1 where none is found, and becomes 0.
        start = bisect.bisect_left(sorted(ring.brokers), replicas[0]) % size
        shifts: tuple[int, ...] = (start % ring.modulus,)
    elif replicas[0] in ring.brokers:
        start = (ring.brokers.index(replicas[0]) - first) % size
        shifts = tuple(range(ring.modulus))
    else:
        return Run(0, 0)
    # One replica shows no shift: all fit if one does.
    shows_shift = len(rows[begin][1]) > 1
    for end in range(begin, len(rows)):
        partition, found = rows[end]
        fitting = tuple(
            shift
            for shift in (shifts if shows_shift else shifts[:1])
            if ring.replicas(partition, start, shift_at(partition, rows[begin][0], shift, size)) == [*found]
        )
        if not fitting:
            return Run(end, start, shifts)
        if shows_shift:
            shifts = fitting
    return Run(len(rows), start, shifts)
