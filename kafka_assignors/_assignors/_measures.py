"""What a member measures of its own work, without a request more: costs of records, lags and arrivals.

A consumer says when its application comes for records, which records it gets, and where its partitions stand.
From when records are given until the application comes again, it works on them. This time goes to their
partitions in proportion to their records. What the application does elsewhere, in other threads or tasks, is
not seen.

All are averages in which what is a minute old counts for a third: sums that fade, each divided by the time or
the records that faded with it. So a pause changes no cost.
"""

import math
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import Final, NamedTuple

from kafka.structs import TopicPartition

from kafka_assignors._wire.measured import Measured

MEMORY: Final = 60.0
"""Seconds after which what was measured counts for 1/e."""

SAMPLED: Final = 1.0
"""Seconds between two looks at where partitions stand."""


class Standing(NamedTuple):
    """Where a partition stands: the next offset to be read, and the offset that the next record will have."""

    position: int | None
    end: int | None


@dataclass(slots=True)
class _Mean:
    """A ratio of two sums that fade whenever something is added: by time alone they would fade to nothing."""

    at: float = 0.0
    amount: float = 0.0
    divisor: float = 0.0

    def add(self, now: float, amount: float, divisor: float) -> None:
        kept = math.exp((self.at - now) / MEMORY)
        self.at = now
        self.amount = self.amount * kept + amount
        self.divisor = self.divisor * kept + divisor

    @property
    def value(self) -> float:
        return self.amount / self.divisor if self.divisor > 0 else math.nan


@dataclass(slots=True)
class _Sums:
    """Of one partition, `seen` last: seconds of work a record, records a second, and where it stood."""

    seen: float
    cost: _Mean = field(default_factory=_Mean)
    arriving: _Mean = field(default_factory=_Mean)
    lag: float = math.nan
    end: tuple[int, float] | None = None


class Measures:
    """What one consumer measures. Its application and its I/O may be in different threads.

    `watch` is called after each look at where partitions stand.

    Args:
        clock: Seconds that never go back; `time.monotonic` if not given.
    """

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._clock = clock or (lambda: time.monotonic())  # noqa: PLW0108 - it may be replaced later
        self._lock = Lock()
        self._sums: dict[TopicPartition, _Sums] = {}
        self._out: Mapping[TopicPartition, int] = {}
        self._since = 0.0
        self._sampled = -math.inf
        self.watch: Callable[[], None] = lambda: None

    def came(self) -> None:
        """The application comes for records: it has done with those that it got before."""
        now = self._clock()
        with self._lock:
            out, self._out = self._out, {}
            count = sum(out.values())
            for partition, records in out.items():
                busy = max(0.0, now - self._since) * records / count
                self._of(partition, now).cost.add(now, busy, records)

    def gave(self, records: Mapping[TopicPartition, int]) -> None:
        """The application gets so many records of these partitions."""
        out = {partition: count for partition, count in records.items() if count > 0}
        with self._lock:
            self._out, self._since = out, self._clock()

    @property
    def is_due(self) -> bool:
        """Whether it is time for `stand`."""
        return self._clock() - self._sampled >= SAMPLED

    def stand(self, standing: Iterable[tuple[TopicPartition, Standing]]) -> None:
        """Where the partitions stand that the consumer has now; others are forgotten in a while."""
        now = self._clock()
        with self._lock:
            self._sampled = now
            for partition, (position, end) in standing:
                sums = self._of(partition, now)
                sums.lag = math.nan if position is None or end is None else max(0, end - position)
                if end is None:
                    continue
                if sums.end is not None and end >= sums.end[0]:
                    sums.arriving.add(now, end - sums.end[0], now - sums.end[1])
                sums.end = end, now
            self._sums = {one: sums for one, sums in self._sums.items() if now - sums.seen < 10 * MEMORY}
        self.watch()

    def of(self, partitions: Mapping[str, Collection[int]]) -> dict[tuple[str, int], Measured]:
        """What is known of these partitions, by topic and id."""
        with self._lock:
            found = {
                (topic, number): Measured(sums.cost.value, sums.lag, sums.arriving.value)
                for topic, numbers in partitions.items()
                for number in numbers
                if (sums := self._sums.get(TopicPartition(topic, number)))
            }
        return {one: measured for one, measured in found.items() if not all(map(math.isnan, measured))}

    def _of(self, partition: TopicPartition, now: float) -> _Sums:
        sums = self._sums.setdefault(partition, _Sums(now))
        sums.seen = now
        return sums
