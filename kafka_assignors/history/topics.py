"""How many partitions topics had, as far as the cluster was asked."""

from __future__ import annotations

from bisect import bisect_right
from itertools import groupby
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_ALWAYS = -(2**63)


class TopicsSeen:
    """The number of partitions of topics over time.

    Args:
        counts: Topic -> since when, in microseconds since 1970, it has had so many; 0 for none any more.
            Ascending in time.
    """

    def __init__(self, counts: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        self._counts = {topic: tuple(seen) for topic, seen in counts.items()}

    @classmethod
    def always(cls, counts: Mapping[str, int]) -> Self:
        """Topics that never changed."""
        return cls({topic: [(_ALWAYS, count)] for topic, count in counts.items()})

    @classmethod
    def of_captures(cls, seen: Iterable[tuple[int, str, int]]) -> Self:
        """What captures saw.

        Args:
            seen: When, in microseconds since 1970, a topic, and how many partitions it had; in any order. A
                topic that the next capture does not name was deleted by then.
        """
        counts: dict[str, list[tuple[int, int]]] = {}
        now: dict[str, int] = {}
        for time_us, rows in groupby(sorted(seen), key=lambda row: row[0]):
            before, now = now, {topic: count for _, topic, count in rows}
            for topic in before.keys() | now.keys():
                if before.get(topic, 0) != now.get(topic, 0):
                    counts.setdefault(topic, []).append((time_us, now.get(topic, 0)))
        return cls(counts)

    def count(self, topic: str, time_us: int) -> int:
        """How many partitions a topic had, by what was seen last until then; 0 if it was not seen."""
        seen = self._counts.get(topic, ())
        place = bisect_right(seen, time_us, key=lambda one: one[0])
        return seen[place - 1][1] if place else 0
