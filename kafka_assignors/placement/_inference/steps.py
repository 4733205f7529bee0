"""How few steps explain a topic: its creation, and additions of partitions."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


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
        # A step may have begun before the first row that it alone explains.
        later = [(begin, read_from(begin)) for begin in range(tried, reach + 1)]
        begin, run = max(later, key=lambda one: (one[1].end, -one[0]))
        if run.end <= reach:
            break
        steps.append((begin, run))
        tried, reach = reach + 1, run.end
    return steps, reach
