"""What a rolling restart of a group would cost, from the command line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_assignors._cli.group_parser import RESTARTED
from kafka_assignors._cli.output import count, show, show_json, table
from kafka_assignors._groups.explanation import explain
from kafka_assignors.assignors import (
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors.coordinator import ConsumerBrokerSettings, MemberSettings, rolling_restart

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from kafka_assignors.coordinator import Cost
    from kafka_assignors.coordinator._live import LiveGroup

_ASSIGNORS: Final[Mapping[str, Any]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
    "kip848-uniform": "uniform",
    "kip848-range": "range",
}
_SESSION_MS: Final = 45_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    topics: Mapping[str, int]
    subscriptions: Sequence[Collection[str]]
    session_timeout_ms: int


def what_if(options: argparse.Namespace, live: LiveGroup | None) -> int:
    """Print what a rolling restart costs with each assignor, with dynamic and with static members.

    Args:
        options: See the parser.
        live: The running group; None if the options describe one.

    Raises:
        ValueError: A topic is not NAME=PARTITIONS, or the group has no members.
    """
    group = _described(options) if live is None else _running(live)
    session = options.session_timeout_ms or group.session_timeout_ms
    costs = {
        (name, static): _cost(name, group, options, session, static=static)
        for name in options.assignor or RESTARTED
        for static in (False, True)
    }
    if options.json:
        rows = [
            {"assignor": name, "static": static, **asdict(cost)} for (name, static), cost in costs.items()
        ]
        show_json(rows)
    else:
        show("\n".join(_lines(group, options, session, costs)))
    return 0


def _described(options: argparse.Namespace) -> _Group:
    topics: dict[str, int] = {}
    for text in options.topic:
        name, _, partitions = text.rpartition("=")
        if not (name and partitions.isascii() and partitions.isdigit() and int(partitions)):
            raise ValueError(f"{text!r} is not NAME=PARTITIONS")
        topics[name] = int(partitions)
    return _Group(
        topics=topics, subscriptions=[topics.keys()] * options.members, session_timeout_ms=_SESSION_MS
    )


def _running(live: LiveGroup) -> _Group:
    found = explain(live.group_id, live.records[-1].value, live.topics).account
    if not found.members:
        raise ValueError(f"group {live.group_id!r} has no members to restart")
    wanted = {topic for account in found.members for topic in account.topics} & live.topics.keys()
    return _Group(
        topics={topic: len(live.topics[topic]) for topic in sorted(wanted)},
        subscriptions=[wanted.intersection(account.topics) for account in found.members],
        session_timeout_ms=max(account.session_timeout_ms for account in found.members),
    )


def _cost(name: str, group: _Group, options: argparse.Namespace, session_ms: int, *, static: bool) -> Cost:
    assignor = _ASSIGNORS[name]
    beat = options.heartbeat_interval_ms
    return rolling_restart(
        group.topics,
        group.subscriptions,
        assignor,
        static=static,
        down_seconds=options.down,
        crash=options.crash,
        member=MemberSettings(session_timeout_ms=session_ms, heartbeat_interval_ms=beat),
        broker=ConsumerBrokerSettings(session_timeout_ms=session_ms, heartbeat_interval_ms=beat)
        if isinstance(assignor, str)
        else None,
    )


def _lines(
    group: _Group, options: argparse.Namespace, session_ms: int, costs: Mapping[tuple[str, bool], Cost]
) -> Iterator[str]:
    how = "killed" if options.crash else "closed"
    yield (
        f"a rolling restart of {count(len(group.subscriptions), 'member')}, each {how} and {options.down:g} s"
        f" away; {count(sum(group.topics.values()), 'partition')}; session.timeout.ms {session_ms}"
    )
    yield ""
    rows = [["assignor", "members", "generations", "moved", "unowned partition-s", "longest s", "took s"]]
    for (name, static), cost in costs.items():
        rows.append(
            [
                name,
                "static" if static else "dynamic",
                str(cost.generations),
                str(cost.moved),
                f"{cost.unowned:.1f}",
                f"{cost.longest:.1f}",
                f"{cost.seconds:.1f}",
            ]
        )
    yield from table(rows, left=(0, 1))
    yield ""
    least_unowned = min(costs, key=lambda case: (costs[case].unowned, costs[case].moved))
    least_moved = min(costs, key=lambda case: (costs[case].moved, costs[case].unowned))
    for what, (name, static) in (("time without an owner", least_unowned), ("partitions moved", least_moved)):
        yield f"least {what}: {name}, {'static' if static else 'dynamic'} members"
    yield "a partition-second is one partition without an owner for one second"
