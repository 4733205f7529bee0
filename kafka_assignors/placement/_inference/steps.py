"""How few steps explain a topic: its creation, and additions of partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable


class Run(Protocol):
    """Rows that one step explains."""

    @property
    def end(self) -> int:
        """The first row that it does not explain."""


AnyRun = TypeVar("AnyRun", bound=Run)


def fewest(
    first: AnyRun, read_from: Callable[[int], AnyRun], rows: int
) -> tuple[list[tuple[int, AnyRun]], int]:
    """The fewest steps that explain the rows, with their beginnings, and how many rows they explain."""
    steps = [(0, first)]
    reach, tried = first.end, 1
    while 0 < reach < rows:
        # A step may have begun before the first row that it alone explains.
        later = [(begin, read_from(begin)) for begin in range(tried, reach + 1)]
        begin, run = max(later, key=lambda one: (one[1].end, -one[0]))
        if run.end <= reach:
            break
        steps.append((begin, run))
        tried, reach = reach + 1, run.end
    return steps, reach
