"""What members reported of records: which offsets, how often, and how long none came."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kafka import TopicPartition

from kafka_assignors._timelines.events import OfRecords


class Delivery(NamedTuple):
    """A member's report of one partition's records, offsets `first` to `last`, at `time`."""

    first: int
    last: int
    time: float
    member: str
    thread: str = ""

    @property
    def offsets(self) -> range:
        return range(self.first, self.last + 1)


Deliveries = Mapping[TopicPartition, list[Delivery]]
"""The reports of each partition that has any, in the order of time."""

Runs = Mapping[TopicPartition, tuple[tuple[int, int], ...]]
"""Partition -> (first, last) offset of each run without holes, ascending."""


def find_deliveries(events: Iterable[OfRecords]) -> Deliveries:
    found: dict[TopicPartition, list[Delivery]] = defaultdict(list)
    for event in events:
        for partition, first, last in event.records:
            found[partition].append(Delivery(first, last, event.time, event.member, event.thread))
    return found


def runs_of(deliveries: Deliveries) -> Runs:
    return {
        partition: tuple(merged((one.first, one.last) for one in reports))
        for partition, reports in deliveries.items()
    }


def find_longest_silence(
    reports: Iterable[Delivery], *, since: float | None = None, until: float | None = None
) -> tuple[float, float]:
    """Start and end of the longest time between two reports of one partition.

    By default from the first report to the last.
    """
    times = [one.time for one in reports]
    begin = times[0] if since is None else since
    end = max(begin, times[-1] if until is None else until)
    marks = [begin, *(time for time in times if begin < time < end), end]
    return max(itertools.pairwise(marks), key=lambda pause: pause[1] - pause[0])


def merged(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges (first, last) in any order as ascending runs that neither touch nor overlap."""
    run: tuple[int, int] | None = None
    for first, last in sorted(ranges):
        if run is None:
            run = first, last
        elif first <= run[1] + 1:
            run = run[0], max(run[1], last)
        else:
            yield run
            run = first, last
    if run is not None:
        yield run
