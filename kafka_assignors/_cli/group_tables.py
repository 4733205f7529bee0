"""How groups and their rolling restarts look on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors._cli.group_parts import fitted, lag_cell, seconds_cells
from kafka_assignors._cli.output import count, table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_assignors.groups._status import GroupStatus
    from kafka_assignors.groups._what_if import RestartCost, RollingRestarts


def listed_lines(groups: Sequence[GroupStatus]) -> Iterator[str]:
    """Groups, the worst first, below how many there are."""
    errors, warnings = (
        sum(any(problem.severity == severity for problem in group.problems) for group in groups)
        for severity in ("error", "warning")
    )
    lag = sum(group.lag.total for group in groups if group.lag is not None)
    unknown = sum(group.lag_known is False for group in groups)
    more = f"; that of {count(unknown, 'group')} is not known, or not all of it" if unknown else ""
    yield (
        f"{count(len(groups), 'group')}, {errors:,} with errors, {warnings:,} with warnings; lag:"
        f" {count(lag, 'record')}{more}"
    )
    if groups:
        yield ""
        yield from fitted(
            {
                "group": [group.group_id for group in groups],
                "type": [group.kind for group in groups],
                "state": [group.state for group in groups],
                "members": ["?" if group.members is None else f"{group.members:,}" for group in groups],
                "lag": [
                    "?" if group.lag is None and group.lag_known is False else lag_cell(group.lag)
                    for group in groups
                ],
                "lag s": seconds_cells([group.lag for group in groups]),
                "problem": [_worst(group) for group in groups],
            },
            left={"group", "type", "state", "problem"},
            cut=("problem", "group"),
        )


def _worst(group: GroupStatus) -> str:
    """Its worst problem, and how many more there are; a note is none."""
    wrong = [problem for problem in group.problems if problem.severity != "note"]
    if not wrong:
        return ""
    more = f" (+{len(wrong) - 1})" if len(wrong) > 1 else ""
    return f"{wrong[0].severity}{more}: {wrong[0].text}"


def restarts_lines(found: RollingRestarts) -> Iterator[str]:
    """What rolling restarts cost, and with which assignors they cost the least."""
    yield (
        f"a rolling restart of {count(found.members, 'member')}, each"
        f" {'killed' if found.crash else 'closed'} and {found.down_seconds:g} s away;"
        f" {count(found.partitions, 'partition')}; session.timeout.ms {found.session_timeout_ms}"
    )
    yield ""
    rows = [["assignor", "members", "generations", "moved", "partition-s", "longest s", "took s"]]
    for one in found.costs:
        cost = one.cost
        seconds = (f"{value:.1f}" for value in (cost.unowned, cost.longest, cost.seconds))
        rows.append([one.assignor, _members(one), str(cost.generations), str(cost.moved), *seconds])
    yield from table(rows, left=(0, 1))
    yield ""
    unowned, moved = found.least_unowned, found.least_moved
    yield f"least time without an owner: {unowned.assignor}, {_members(unowned)} members"
    yield f"least partitions moved: {moved.assignor}, {_members(moved)} members"
    yield "a partition-second is one partition without an owner for one second"


def _members(one: RestartCost) -> str:
    return "static" if one.static else "dynamic"
