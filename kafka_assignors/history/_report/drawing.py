"""A group's history as a few columns to draw, and what was put together for that."""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, NamedTuple

from kafka_assignors._common.times import moment
from kafka_assignors._groups.reasons import name_of
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.saving import WhatIf
from kafka_assignors._groups.snapshots import EAGER_STRATEGIES, Snapshot
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._metrics import GroupSummary

_HALF_WIDTH_SECONDS: Final = 10.0


class Column(NamedTuple):
    """A time in which a group is drawn as it was at last; it ends where the next begins.

    If each partition has a lane, `owners` are those of all, empty of nobody; `free` is how many had nobody.
    `loads` are by consumer that was in the group. `ended` are rebalances too near each other to be drawn one
    by one. Partitions without an owner meanwhile are all if it `stopped`, else those that moved (`without`,
    their numbers in the drawing). It stands for so many `states` of the group.
    """

    begin: datetime
    end: datetime
    owners: Sequence[str]
    free: int
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
    """What a report draws of a group, and says of its rebalances; listed ones are without their moves.

    Its last column ends with the last change. Partitions, such as orders-7, had an owner in any column.
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


def draw(rebalances: Sequence[Rebalance], snapshots: Sequence[Snapshot] = ()) -> Drawing:
    """What is drawn of a group; without snapshots there is no picture of who owned what."""
    rebalances = sorted(rebalances, key=lambda one: one.ended)
    listed = listed_rebalances(rebalances, limits.REBALANCES_LISTED)
    drawn, partitions = columns(rebalances, sorted(snapshots, key=lambda one: (one.time_us, one.offset)))
    return Drawing(
        columns=drawn,
        partitions=[f"{topic}-{number}" for topic, number in partitions],
        listed=[replace(one, moves=()) for one in listed],
        strategy=next((one.strategy for one in reversed(rebalances) if one.strategy), None),
    )


def consumer_names(snapshots: Sequence[Snapshot]) -> dict[str, str]:
    """What consumers are called by member id: the same after a restart, unless two had one name at a time."""
    names: dict[str, str] = {}
    for snapshot in reversed(snapshots):
        names.update((one.member_id, name_of(one)) for one in snapshot.members if one.member_id not in names)
    shared: set[str] = set()
    for snapshot in snapshots:
        here = [names[one.member_id] for one in snapshot.members]
        if len({*here}) < len(here):
            shared.update(name for name, times in Counter(here).items() if times > 1)
    return {who: f"{name} …{who[-6:]}" if name in shared else name for who, name in names.items()}


def columns(
    rebalances: Sequence[Rebalance], snapshots: Sequence[Snapshot]
) -> tuple[list[Column], list[tuple[str, int]]]:
    """A history in few columns, parted where the most time passed between changes; partitions with owners."""
    names = consumer_names(snapshots)
    changes = _changes(snapshots, rebalances)
    if not changes:
        return [], []
    gaps = sorted(range(1, len(changes)), key=lambda at: changes[at - 1] - changes[at])
    kept = [changes[at] for at in sorted([0, *gaps[: limits.COLUMNS - 1]])]
    times = [one.ended for one in rebalances], [moment(one.time_us) for one in snapshots], changes
    bounds = [[bisect_left(each, begin) for each in times] for begin in kept] + [[*map(len, times)]]
    members = [snapshots[number - 1].members if number else () for _, number, _ in bounds[1:]]
    owned = [{one: names[who.member_id] for who in there for one in who.assignment} for there in members]
    partitions = sorted(set().union(*owned))
    few = len(partitions) <= limits.LANES
    found = []
    for number, (begin, end) in enumerate(zip(kept, [*kept[1:], changes[-1]], strict=True)):
        (before, _, since), (after, _, until) = bounds[number : number + 2]
        its = rebalances[before:after]
        eager = [one for one in its if one.strategy in EAGER_STRATEGIES]
        moved = {(move.topic, move.partition) for one in its for move in one.moves if move.source}
        found.append(
            Column(
                begin=begin,
                end=end,
                owners=[owned[number].get(one, "") for one in partitions] if few else (),
                free=len(partitions) - len(owned[number]),
                loads={names[one.member_id]: len(one.assignment) for one in members[number]},
                ended=[one.ended for one in its],
                moved=sum(one.moved for one in its),
                needless=sum(one.needless for one in its),
                # Who was there before, revoked everything.
                stopped=any(one.members + one.gone > one.joined for one in eager),
                without=[place for place, one in enumerate(partitions) if one in moved],
                states=until - since,
            )
        )
    return found, partitions


def _changes(snapshots: Sequence[Snapshot], rebalances: Sequence[Rebalance]) -> list[datetime]:
    """When members, or what they owned, were others than before, or a rebalance ended."""
    found = {one.ended for one in rebalances}
    before: object = None
    for snapshot in snapshots:
        owned = [(one.identity, one.assignment) for one in snapshot.members]
        if owned != before:
            found.add(moment(snapshot.time_us))
        before = owned
    return sorted(found)


def listed_rebalances(rebalances: Sequence[Rebalance], most: int) -> list[Rebalance]:
    """So many rebalances, the latest first: half are the latest, and of the rest those that moved most."""
    ordered = sorted(rebalances, key=lambda one: one.ended, reverse=True)
    latest = ordered[: most // 2]
    costly = sorted(ordered[most // 2 :], key=lambda one: (-one.moved, -one.seconds))
    return sorted([*latest, *costly[: most - len(latest)]], key=lambda one: one.ended, reverse=True)
