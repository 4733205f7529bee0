"""What a report is made of: what tasks find of each group."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.saving import WhatIf
    from kafka_assignors.history._metrics import GroupSummary

_HALF_WIDTH_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A time in which a group is drawn as it was at last.

    Attributes:
        begin: When it begins: with a record of the group, or with the end of a rebalance.
        end: When the next begins.
        owners: Who had each partition.
        loads: How many partitions each consumer had that was in the group.
        ended: When rebalances ended in it; several if they were too near each other to be drawn one by one.
        moved: How many partitions went from one consumer to another.
        needless: How many of these moves were not needed, as far as that is known.
        unowned_seconds: Partition-seconds without an owner.
        stopped: Whether all partitions were without an owner.
        without: Otherwise those that were, and moved.
        states: How many states of the group it stands for.
    """

    begin: datetime
    end: datetime
    owners: Mapping[tuple[str, int], str]
    loads: Mapping[str, int]
    ended: Sequence[datetime]
    moved: int
    needless: int
    unowned_seconds: float
    stopped: bool
    without: frozenset[tuple[str, int]]
    states: int

    @property
    def weight(self) -> float:
        """How wide it is drawn: ten times the time makes it one step wider, so that bursts keep room."""
        return 1 + math.log10(1 + (self.end - self.begin).total_seconds() / _HALF_WIDTH_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """What a report draws of a group, and says of its rebalances.

    Attributes:
        columns: What its timeline shows; the last one ends with the last change.
        listed: The rebalances that are listed; without their moves.
        causes: How many had each kind of reason.
        restarts: How many are the doing of a consumer that restarted.
        strategy: The last that the group was assigned by; None if it is not known.
    """

    columns: Sequence[Column]
    listed: Sequence[Rebalance]
    causes: Mapping[str, int]
    restarts: int
    strategy: str | None

    @property
    def ended(self) -> list[datetime]:
        """When its rebalances ended."""
        return [time for one in self.columns for time in one.ended]

    def columns_until(self, until: datetime) -> list[Column]:
        """The columns, the last of which ends then, or with the last change."""
        return [*self.columns[:-1], *(replace(one, end=max(until, one.end)) for one in self.columns[-1:])]


@dataclass(slots=True, kw_only=True)
class ReportedGroup:
    """All that a report wants to know of a group; the drawing is None where others are more restless."""

    summary: GroupSummary
    what_if: Sequence[WhatIf] = ()
    drawing: Drawing | None = None

    @property
    def restlessness(self) -> tuple[float, float, str]:
        """The most rebalances come first; of as many, the longest time without an owner."""
        one = self.summary
        return -one.rebalances, -one.unowned_seconds, one.group
