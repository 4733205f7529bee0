"""Hand-made rows and snapshots for reports."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

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


def html_of(groups: Sequence[ReportedGroup], source: str = "cluster mercury") -> str:
    """The page on groups."""
    return render(groups, source=source, made=MIDNIGHT + timedelta(days=1, minutes=5))


def small_report(*groups: str) -> list[ReportedGroup]:
    """Groups of one course: a consumer joins, and one is gone."""
    course = draw(
        [rebalance(60, joined("b/2")), rebalance(120, gone("a/1"))],
        [
            snapshot(0, {"a": range(4)}),
            snapshot(60, {"a": (0, 1), "b": (2, 3)}),
            snapshot(120, {"b": range(4)}),
        ],
    )
    return [
        ReportedGroup(
            summary=summary(group),
            what_if=[
                what_if("actual", group=group, rebalances=2),
                what_if("range", "static members", group=group, rebalances=1),
            ],
            drawing=course,
        )
        for group in groups
    ]


def hostile_report(name: str = HOSTILE) -> list[ReportedGroup]:
    """Every text that comes from strangers is markup, or this name."""
    kind: Any = name
    move = OwnerMove(topic=name, partition=0, source=name, target=name)
    owned = frozenset({(name, 0), (name, 1)})
    return [
        ReportedGroup(
            summary=summary(name, reasons={name: 1}, flapping=[name], rebalances=1),
            what_if=[what_if("actual", group=name), what_if(name, name, group=name, rebalances=1)],
            drawing=draw(
                [rebalance(60, Change(kind=kind, member=name, text=name), strategy=name, moves=(move,))],
                [snapshot(60, {"a": ()}, client_id=name, host=name, assignment=owned)],
            ),
        )
    ]
