"""The load-aware strategy with members that measure something, though nobody reads records."""

from collections.abc import Collection, Mapping
from random import Random
from typing import Any

from kafka_assignors._assignors import LoadAwareAssignor
from kafka_assignors._assignors._measures import Measures
from kafka_assignors._wire.measured import Measured


class _Drawn(Measures):
    """Something else each time it is asked; some partitions are hot, some are not known."""

    def __init__(self) -> None:
        super().__init__()
        self._asked = 0

    def of(self, partitions: Mapping[str, Collection[int]]) -> dict[tuple[str, int], Measured]:
        self._asked += 1
        claimed = ((topic, number) for topic in sorted(partitions) for number in sorted(partitions[topic]))
        drawn = {one: Random(f"{self._asked} {one}") for one in claimed}
        return {
            one: Measured(rng.random(), rng.paretovariate(0.5), rng.random())
            for one, rng in drawn.items()
            if rng.random() < 0.9
        }


class MeasuringAssignor(LoadAwareAssignor):
    """Each rebalance finds other loads than the last, so that each may move partitions."""

    def __init__(self, **options: Any) -> None:
        super().__init__(settle=1.0, **options)
        self._work.measures = _Drawn()
