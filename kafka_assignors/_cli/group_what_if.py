"""What a rolling restart of a group would cost, from the command line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.errors import KafkaError

from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.group_options import RESTARTED
from kafka_assignors._cli.output import Answer, count, table
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors._groups.explanation import explain
from kafka_assignors.assignors import (
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors.coordinator import (
    BrokerSettings,
    ConsumerBrokerSettings,
    MemberSettings,
    NotStableError,
    rolling_restart,
)
from kafka_assignors.coordinator._live import read_group

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from kafka_assignors._cli.arguments import ClusterClient
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
_CLIENTS: Final = MemberSettings()
_BROKERS: Final = BrokerSettings()


ERRORS: Final = Errors(
    wrong=(CommandConfigError, ValueError), failed=(ClusterError, KafkaError, NotStableError)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RestartedGroup:
    topics: Mapping[str, int]
    subscriptions: Sequence[Collection[str]]
    session_timeout_ms: int = _CLIENTS.session_timeout_ms
    max_poll_interval_ms: int = _CLIENTS.max_poll_interval_ms


class _Restart(NamedTuple):
    """How members are restarted."""

    down: float
    crash: bool
    session_timeout_ms: int
    heartbeat_interval_ms: int


def what_if(
    *,
    client: ClusterClient,
    group: str | None,
    members: int | None,
    topic: Sequence[str],
    assignor: Sequence[str] | None,
    down: float,
    crash: bool,
    session_timeout_ms: int | None,
    heartbeat_interval_ms: int,
) -> Answer:
    """What a rolling restart costs with each assignor, with dynamic and with static members.

    The group is a running one; or one of `members`, each subscribed to all of `topic`, "name=partitions".

    Raises:
        ValueError: A topic is something else, the group has no members, or sessions end between heartbeats.
        NotStableError: The group does not come to rest.
    """
    if members is None:
        with open_admin(client) as admin:
            restarted = _running(read_group(admin, str(group), records=1))
    else:
        restarted = _described(topic, members)
    how = _Restart(down, crash, session_timeout_ms or restarted.session_timeout_ms, heartbeat_interval_ms)
    if how.heartbeat_interval_ms >= how.session_timeout_ms:
        raise ValueError(
            f"heartbeat.interval.ms {how.heartbeat_interval_ms} is not below session.timeout.ms"
            f" {how.session_timeout_ms}: sessions would end between heartbeats; give a smaller"
            " --heartbeat-interval-ms"
        )
    costs = {
        (name, static): _cost(name, restarted, how, static=static)
        for name in assignor or RESTARTED
        for static in (False, True)
    }
    return Answer(
        lambda: [
            {"assignor": name, "static": static, **asdict(cost)} for (name, static), cost in costs.items()
        ],
        _lines(restarted, how, costs),
    )


def _described(named: Sequence[str], members: int) -> _RestartedGroup:
    topics: dict[str, int] = {}
    for text in named:
        name, _, partitions = text.rpartition("=")
        if not (name and partitions.isascii() and partitions.isdigit() and int(partitions)):
            raise ValueError(f"{text!r} is not NAME=PARTITIONS")
        topics[name] = int(partitions)
    return _RestartedGroup(topics=topics, subscriptions=[topics.keys()] * members)


def _running(live: LiveGroup) -> _RestartedGroup:
    if not live.records:
        raise ValueError(f"of group {live.group_id!r} no record is left that has its members' settings")
    found = explain(live.group_id, live.value, live.partition_ids).account
    if not found.members:
        raise ValueError(f"group {live.group_id!r} has no members to restart")
    wanted = {topic for account in found.members for topic in account.topics} & live.topics.keys()
    return _RestartedGroup(
        topics={topic: len(live.topics[topic].ids) for topic in sorted(wanted)},
        subscriptions=[wanted.intersection(account.topics) for account in found.members],
        session_timeout_ms=max(account.session_timeout_ms for account in found.members),
        # Records of version 0 have none, and Kafka takes the session timeout.
        max_poll_interval_ms=max(
            account.session_timeout_ms if account.rebalance_timeout_ms < 0 else account.rebalance_timeout_ms
            for account in found.members
        ),
    )


def _cost(name: str, group: _RestartedGroup, how: _Restart, *, static: bool) -> Cost:
    assignor = _ASSIGNORS[name]
    session, beat = how.session_timeout_ms, how.heartbeat_interval_ms
    return rolling_restart(
        group.topics,
        group.subscriptions,
        assignor,
        static=static,
        down_seconds=how.down,
        crash=how.crash,
        member=MemberSettings(
            session_timeout_ms=session,
            heartbeat_interval_ms=beat,
            max_poll_interval_ms=group.max_poll_interval_ms,
        ),
        broker=ConsumerBrokerSettings(session_timeout_ms=session, heartbeat_interval_ms=beat)
        if isinstance(assignor, str)
        else BrokerSettings(
            min_session_timeout_ms=min(_BROKERS.min_session_timeout_ms, session),
            max_session_timeout_ms=max(_BROKERS.max_session_timeout_ms, session),
        ),
    )


def _lines(group: _RestartedGroup, how: _Restart, costs: Mapping[tuple[str, bool], Cost]) -> Iterator[str]:
    yield (
        f"a rolling restart of {count(len(group.subscriptions), 'member')}, each"
        f" {'killed' if how.crash else 'closed'} and {how.down:g} s away;"
        f" {count(sum(group.topics.values()), 'partition')}; session.timeout.ms {how.session_timeout_ms}"
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
