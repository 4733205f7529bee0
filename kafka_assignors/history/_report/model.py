"""What a report is made of: what tasks find of each group."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.saving import WhatIf
    from kafka_assignors.history._metrics import GroupSummary

_HALF_WIDTH_SECONDS: Final = 10.0


class Column(NamedTuple):
    """A time in which a group is drawn as it was at last.

    It begins with a record of the group, or with the end of a rebalance, and ends where the next begins.
    `owners` are by partition of the drawing, empty of nobody; `loads` by consumer that was in the group.
    `ended` are rebalances too near each other to be drawn one by one. Partitions without an owner meanwhile
    are all if it `stopped`, else those that moved (`without`, their numbers in the drawing). It stands for so
    many `states` of the group.
    """

    begin: datetime
    end: datetime
    owners: Sequence[str]
    loads: Mapping[str, int]
    ended: Sequence[datetime]
    moved: int
    needless: int
    stopped: bool
    without: Sequence[int]
    states: int

    @property
    def weight(self) -> float:
        """How wide it is drawn: ten times the time makes it one step wider, so that bursts keep room."""
        return 1 + math.log10(1 + (self.end - self.begin).total_seconds() / _HALF_WIDTH_SECONDS)


class Drawing(NamedTuple):
    """What a report draws of a group, and says of its rebalances.

    Its last column ends with the last change. Partitions are those that had an owner in any column, such as
    orders-7. Listed rebalances are without their moves.
    """

    columns: Sequence[Column]
    partitions: Sequence[str]
    listed: Sequence[Rebalance]
    strategy: str | None

    @property
    def ended(self) -> list[datetime]:
        """When its rebalances ended."""
        return [time for one in self.columns for time in one.ended]

    def columns_until(self, until: datetime) -> list[Column]:
        """The columns, the last of which ends then, or with the last change."""
        return [*self.columns[:-1], *(one._replace(end=max(until, one.end)) for one in self.columns[-1:])]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedGroup:
    """All that a report wants to know of a group; the drawing is None where others are more restless."""

    summary: GroupSummary
    what_if: Sequence[WhatIf] = ()
    drawing: Drawing | None = None


def restlessness(one: GroupSummary) -> tuple[int, int, str]:
    """The most rebalances come first; of as many, the most moves."""
    return -one.rebalances, -one.moved, one.group
