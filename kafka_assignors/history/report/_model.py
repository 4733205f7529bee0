"""What a report is made of: rows of the history's tables and snapshots, as plain Python objects.

Nothing here knows Spark. `from_row` takes a row as a mapping, such as `Row.asDict(recursive=True)` of PySpark
or an entry of `to_pylist()` of pyarrow. Its names are those of `schemas.GROUPS`, `REBALANCES` and `WHAT_IF`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

from kafka_assignors._groups.rebalances import with_zones

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.saving import WhatIf
    from kafka_assignors._groups.snapshots import Snapshot


_HALF_WIDTH_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummary:
    """A row of `schemas.GROUPS`, whose comments say what the fields are; times are in UTC."""

    group: str
    since: datetime
    until: datetime
    rebalances: int
    per_day: float
    moved: int
    least_moved: int
    needless: int
    unowned_seconds: float
    longest_seconds: float
    members: int
    seen_members: int
    flapping: Sequence[str] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Self:
        """The row as an object.

        Raises:
            ValueError: A time is without a time zone.
        """
        values = with_zones(row, "since", "until")
        # A map is a dictionary to PySpark, and a list of pairs to pyarrow.
        values["reasons"] = dict(row["reasons"])
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHistory:
    """What a group's own part of the report shows.

    Attributes:
        group: The group.
        rebalances: Its rebalances.
        snapshots: The group after each of its records; without them there is no picture of who owned what.
    """

    group: str
    rebalances: Sequence[Rebalance]
    snapshots: Sequence[Snapshot] = ()


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
        group: The group.
        columns: What its timeline shows; the last one ends with the last change.
        ended: When its rebalances ended.
        listed: Those that are listed; without their moves.
        causes: How many had each kind of reason.
        restarts: How many are the doing of a consumer that restarted.
        strategy: The last that the group was assigned by; None if it is not known.
    """

    group: str
    columns: Sequence[Column]
    ended: Sequence[datetime]
    listed: Sequence[Rebalance]
    causes: Mapping[str, int]
    restarts: int
    strategy: str | None

    def columns_until(self, until: datetime) -> list[Column]:
        """The columns, the last of which ends then, or with the last change."""
        return [*self.columns[:-1], *(replace(one, end=max(until, one.end)) for one in self.columns[-1:])]


@dataclass(frozen=True, kw_only=True)
class ReportData:
    """All that a report shows.

    Attributes:
        source: What the history is of, for the title: a cluster's id or name.
        made: When the report was made, in UTC.
        since: Where the history begins, in UTC.
        until: Where it ends: how long the last state of a group is known to have lasted.
        groups: All groups, in any order.
        histories: Of groups that get a part of their own, in any order. Gone through once, one at a time, so
            that a generator may fetch each when it is asked for it.
        what_if: What the groups would have cost with other assignors and settings, in any order.
        drawings: What was drawn already, of other groups than `histories`.
    """

    source: str
    made: datetime
    since: datetime
    until: datetime
    groups: Sequence[GroupSummary]
    histories: Iterable[GroupHistory]
    what_if: Sequence[WhatIf] = ()
    drawings: Sequence[Drawing] = ()

    @property
    def span(self) -> tuple[datetime, datetime]:
        """From when to when everything in it was: no shorter than from `since` to `until`."""
        return (
            min([self.since, *(one.since for one in self.groups)]),
            max([self.until, *(one.until for one in self.groups)]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLimits:
    """How much a report shows; what is left out it says.

    Attributes:
        groups: How many groups get a part of their own, the most restless.
        rows: How many groups the overview lists, the most restless.
        columns: How many states of a group a timeline distinguishes.
        consumers: How many consumers a timeline gives a row and a colour of their own, at most 20.
        lanes: Up to how many partitions each has a lane; of more, a timeline shows how many each consumer
            had.
        rebalances: How many rebalances of a group are listed, half of them the latest, half those that cost
            most.
    """

    groups: int = 200
    rows: int = 2000
    columns: int = 64
    consumers: int = 16
    lanes: int = 20
    rebalances: int = 30


def restlessness(one: GroupSummary) -> tuple[float, float, str]:
    """Groups with the most rebalances come first; of as many, those that were longest without an owner."""
    return -one.rebalances, -one.unowned_seconds, one.group


def by_restlessness(groups: Iterable[GroupSummary]) -> list[GroupSummary]:
    """The groups, the most restless first."""
    return sorted(groups, key=restlessness)


def shown_groups(groups: Iterable[GroupSummary], limits: ReportLimits | None = None) -> list[str]:
    """The groups that get a part of their own: those whose `GroupHistory` a report wants."""
    return [one.group for one in by_restlessness(groups)[: (limits or ReportLimits()).groups]]
