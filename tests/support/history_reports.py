"""Hand-made rows and snapshots for reports."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from kafka_assignors._groups.moved import OwnerMove
from kafka_assignors._groups.reasons import Change
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.saving import WhatIf
from kafka_assignors._groups.snapshots import Snapshot, SnapshotMember
from kafka_assignors.history._metrics import GroupSummary
from kafka_assignors.history._report.drawing import ReportedGroup, draw
from kafka_assignors.history._report.page import render

MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
HOSTILE = "\"><script>alert(1)</script><img src=x onerror=alert(2)>'{{ 7 * 7 }}"


def joined(member: str) -> Change:
    return Change(kind="member joined", member=member, text=f"{member} joined")


def gone(member: str) -> Change:
    return Change(kind="member gone", member=member, text=f"{member} left, or was lost")


def rebalance(minute: float, *reasons: Change, **changes: Any) -> Rebalance:
    """A rebalance that ends so many minutes after midnight."""
    ended = MIDNIGHT + timedelta(minutes=minute)
    values: dict[str, Any] = {
        "group": "orders",
        "first_generation": 1,
        "generation": 1,
        "began": ended - timedelta(seconds=3),
        "ended": ended,
        "seconds": 3.0,
        "strategy": "range",
        "reasons": reasons or (joined("a/1"),),
        "members": 2,
        "joined": 1,
        "gone": 0,
        "returned": 0,
        "partitions": 4,
        "moved": 2,
        "least_moved": 1,
        "imbalance": 0,
        "best_imbalance": 0,
        "unowned_seconds": 12.0,
        "moves": (OwnerMove(topic="t", partition=0, source="a", target="b"),),
    }
    return Rebalance(**{**values, **changes})


def summary(group: str = "orders", **changes: Any) -> GroupSummary:
    values: dict[str, Any] = {
        "group": group,
        "since": MIDNIGHT,
        "until": MIDNIGHT + timedelta(days=1),
        "rebalances": 2,
        "per_day": 2.0,
        "moved": 4,
        "least_moved": 2,
        "needless": 2,
        "unowned_seconds": 24.0,
        "longest_seconds": 3.0,
        "members": 2,
        "seen_members": 3,
        "returned": 0,
        "reasons": {"member joined": 2},
    }
    return GroupSummary(**{**values, **changes})


def what_if(assignor: str, scenario: str = "as it was", **changes: Any) -> WhatIf:
    values: dict[str, Any] = {
        "group": "orders",
        "rebalances": 41,
        "moved": 100,
        "imbalance": 0.5,
        "worst_imbalance": 2,
        "failed": 0,
    }
    return WhatIf(**{**values, "assignor": assignor, "scenario": scenario, **changes})


def snapshot(
    minute: float,
    owned: Mapping[str, Iterable[int]],
    *,
    ids: Mapping[str, str] | None = None,
    **changes: Any,
) -> Snapshot:
    """A group whose members have these partitions of t; a member id is its name unless told otherwise."""
    time = MIDNIGHT + timedelta(minutes=minute)
    members = tuple(
        SnapshotMember(
            member_id=(ids or {}).get(name, name),
            **{
                "client_id": name,
                "host": "/10.0.0.1",
                "claims": {},
                "assignment": frozenset(("t", number) for number in numbers),
                **changes,
            },
        )
        for name, numbers in owned.items()
    )
    return Snapshot(
        group="orders",
        generation=1,
        time_us=round(time.timestamp() * 1_000_000),
        offset=round(minute * 100),
        members=members,
    )


class History(NamedTuple):
    """What is drawn of a group."""

    group: str
    rebalances: Sequence[Rebalance] = ()
    snapshots: Sequence[Snapshot] = ()


def report(
    groups: Iterable[GroupSummary], histories: Iterable[History] = (), rows: Iterable[WhatIf] = ()
) -> list[ReportedGroup]:
    drawings = {one.group: draw(one.rebalances, one.snapshots) for one in histories}
    return [
        ReportedGroup(
            summary=one,
            what_if=[row for row in rows if row.group == one.group],
            drawing=drawings.get(one.group),
        )
        for one in groups
    ]


def html_of(groups: Sequence[ReportedGroup], source: str = "cluster mercury") -> str:
    """The page on groups."""
    return render(groups, source=source, made=MIDNIGHT + timedelta(days=1, minutes=5))


def small_report(*groups: str) -> list[ReportedGroup]:
    """Each group with a course of its own: a consumer that joins, and one that is gone."""
    histories = [
        History(
            group=group,
            rebalances=[rebalance(60, joined("b/2")), rebalance(120, gone("a/1"))],
            snapshots=[
                snapshot(0, {"a": range(4)}),
                snapshot(60, {"a": (0, 1), "b": (2, 3)}),
                snapshot(120, {"b": range(4)}),
            ],
        )
        for group in groups
    ]
    rows = [
        what_if(name, scenario, group=group, rebalances=count)
        for group in groups
        for name, scenario, count in (("actual", "as it was", 2), ("range", "static members", 1))
    ]
    return report([summary(group) for group in groups], histories, rows)


def hostile_report(name: str = HOSTILE) -> list[ReportedGroup]:
    """Every text that comes from strangers is markup, or this name."""
    member: dict[str, Any] = {
        "client_id": name,
        "host": name,
        "assignment": frozenset({(name, 0), (name, 1)}),
    }
    kind: Any = name
    history = History(
        group=name,
        rebalances=[
            rebalance(
                60,
                Change(kind=kind, member=name, text=name),
                strategy=name,
                moves=(OwnerMove(topic=name, partition=0, source=name, target=name),),
            )
        ],
        snapshots=[snapshot(60, {"a": ()}, **member)],
    )
    changes = {"reasons": {name: 1}, "flapping": [name], "rebalances": 1}
    rows = [
        what_if("actual", group=name),
        what_if(name, name, group=name, rebalances=1),
    ]
    return report([summary(name, **changes)], [history], rows)
