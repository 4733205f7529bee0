"""A group's history as a few columns to draw, and what was put together for that."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from kafka_assignors._common.times import moment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors.history._snapshots import Snapshot, SnapshotMember
    from kafka_assignors.history.report._model import GroupHistory, ReportLimits

_HALF_WIDTH_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A time in which a group is drawn as it was at last.

    Attributes:
        begin: When it begins: with a record of the group, or with the end of a rebalance.
        end: When the next begins.
        owners: Who had each partition.
        loads: How many partitions each consumer had that was in the group.
        rebalances: Those that ended in it; several if they were too near each other to be drawn one by one.
        states: How many states of the group it stands for.
    """

    begin: datetime
    end: datetime
    owners: Mapping[tuple[str, int], str]
    loads: Mapping[str, int]
    rebalances: Sequence[Rebalance]
    states: int

    @property
    def moved(self) -> int:
        """How many partitions went from one consumer to another."""
        return sum(one.moved for one in self.rebalances)

    @property
    def needless(self) -> int:
        """How many of these moves were not needed, as far as that is known."""
        return sum(one.needless for one in self.rebalances)

    @property
    def unowned_seconds(self) -> float:
        """Partition-seconds without an owner."""
        return sum(one.unowned_seconds for one in self.rebalances)

    @property
    def weight(self) -> float:
        """How wide it is drawn: ten times the time makes it one step wider, so that bursts keep room."""
        return 1 + math.log10(1 + (self.end - self.begin).total_seconds() / _HALF_WIDTH_SECONDS)


def consumer_names(snapshots: Sequence[Snapshot]) -> dict[str, str]:
    """What consumers are called by member id: the same name after a restart, where that is known.

    An instance id; else client id and host, unless two members had these at the same time: then with the
    end of the member id.
    """
    shared: set[str] = set()
    for snapshot in snapshots:
        seen: set[str] = set()
        for member in snapshot.members:
            (shared if _name(member) in seen else seen).add(_name(member))
    return {
        member.member_id: f"{_name(member)} …{member.member_id[-6:]}"
        if _name(member) in shared
        else _name(member)
        for snapshot in snapshots
        for member in snapshot.members
    }


def _name(member: SnapshotMember) -> str:
    return member.instance_id or f"{member.client_id}{member.host}"


def columns(history: GroupHistory, until: datetime, limits: ReportLimits) -> list[Column]:
    """A history in at most so many columns, parted where the most time passed between two changes."""
    snapshots = sorted(history.snapshots, key=lambda one: (one.time_us, one.offset))
    names = consumer_names(snapshots)
    rebalances = sorted(history.rebalances, key=lambda one: one.ended)
    changes = _changes(snapshots, rebalances)
    if not changes:
        return []
    kept = _parted(changes, limits.columns)
    ends = [one.ended for one in rebalances]
    moments = [_time(one) for one in snapshots]
    found = []
    for begin, end in zip(kept, [*kept[1:], max(until, changes[-1])], strict=True):
        last = begin == kept[-1]
        low = bisect_right(ends, begin - timedelta(microseconds=1))
        high = len(ends) if last else bisect_right(ends, end - timedelta(microseconds=1))
        newest = (len(moments) if last else bisect_right(moments, end - timedelta(microseconds=1))) - 1
        state = snapshots[newest] if newest >= 0 else None
        first = bisect_right(changes, begin - timedelta(microseconds=1))
        after = len(changes) if last else bisect_right(changes, end - timedelta(microseconds=1))
        found.append(
            Column(
                begin=begin,
                end=end,
                owners={} if state is None else _owners(state, names),
                loads={}
                if state is None
                else {names[member.member_id]: len(member.assignment) for member in state.members},
                rebalances=rebalances[low:high],
                states=after - first,
            )
        )
    return found


def _changes(snapshots: Sequence[Snapshot], rebalances: Sequence[Rebalance]) -> list[datetime]:
    """When members or owners were others than before, or a rebalance ended."""
    found = {one.ended for one in rebalances}
    before: Snapshot | None = None
    for snapshot in snapshots:
        if before is None or (
            snapshot.owners != before.owners
            or [one.identity for one in snapshot.members] != [one.identity for one in before.members]
        ):
            found.add(_time(snapshot))
        before = snapshot
    return sorted(found)


def _parted(changes: Sequence[datetime], most: int) -> list[datetime]:
    """Of these times the first, and those with the longest time before them."""
    gaps = sorted(range(1, len(changes)), key=lambda at: changes[at - 1] - changes[at])
    return [changes[at] for at in sorted([0, *gaps[: most - 1]])]


def _owners(snapshot: Snapshot, names: Mapping[str, str]) -> dict[tuple[str, int], str]:
    return {one: names[member.member_id] for member in snapshot.members for one in member.assignment}


def _time(snapshot: Snapshot) -> datetime:
    return moment(snapshot.time_us)


def listed_rebalances(rebalances: Sequence[Rebalance], most: int) -> list[Rebalance]:
    """So many rebalances, the latest first: half of them the latest, and of the rest those that cost most."""
    ordered = sorted(rebalances, key=lambda one: one.ended, reverse=True)
    latest = ordered[: most // 2]
    costly = sorted(ordered[most // 2 :], key=lambda one: (-one.unowned_seconds, -one.moved, -one.seconds))
    return sorted([*latest, *costly[: most - len(latest)]], key=lambda one: one.ended, reverse=True)
