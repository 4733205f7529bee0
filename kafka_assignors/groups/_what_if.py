"""What a rolling restart of a group would cost with each assignor, from a simulation."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from kafka_assignors._cluster.groups import EpochGroup, find_hidden, hidden_error
from kafka_assignors._cluster.handle import Cluster, connect
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.plain import fields_of
from kafka_assignors._common.strategies import RESTARTED, STRATEGIES, load
from kafka_assignors._groups.account import MemberAccount
from kafka_assignors.coordinator import (
    BrokerSettings,
    ConsumerGroupSimulation,
    MemberSettings,
    Simulation,
)
from kafka_assignors.coordinator._simulator.what_if import Cost, rolling_restart
from kafka_assignors.groups._live import LiveGroup, NoSuchGroupError, read_group

_CLIENTS: Final = MemberSettings()


class WhatIfError(KafkaAssignorsError, ValueError):
    """A rolling restart that cannot be simulated; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartCost:
    """What a rolling restart costs with one assignor, of dynamic or of static members (KIP-345)."""

    assignor: str
    static: bool
    cost: Cost

    def to_json(self) -> dict[str, Any]:
        """For machines: the cost's fields beside the others."""
        return {"assignor": self.assignor, "static": self.static, **fields_of(self.cost)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestarts:
    """What a rolling restart of a group costs with each assignor, of dynamic and of static members.

    So many members, which subscribe to so many partitions, are restarted one after the other: closed, or
    killed in a `crash`. Each is away for `down_seconds`.
    """

    members: int
    partitions: int
    crash: bool
    down_seconds: float
    session_timeout_ms: int
    costs: tuple[RestartCost, ...]

    @property
    def least_unowned(self) -> RestartCost:
        """With the least time without an owner."""
        return min(self.costs, key=lambda one: (one.cost.unowned, one.cost.moved))

    @property
    def least_moved(self) -> RestartCost:
        """With the fewest moves of partitions."""
        return min(self.costs, key=lambda one: (one.cost.moved, one.cost.unowned))

    def to_json(self) -> list[Any]:
        return [*self.costs]


def what_if(
    source: Cluster | Mapping[str, int],
    group: str | int,
    assignors: Sequence[str] = RESTARTED,
    *,
    down_seconds: float = 10.0,
    crash: bool = False,
    session_timeout_ms: int | None = None,
    heartbeat_interval_ms: int = _CLIENTS.heartbeat_interval_ms,
) -> RollingRestarts:
    """What a rolling restart of a group would cost; nothing is restarted.

    Args:
        source: The cluster of a running group. Of a group that does not exist: topic -> how many partitions.
        group: The id of a running group, of the classic protocol. Else how many members there are, each of
            which subscribes to all topics.
        assignors: Strategies to restart it with: `range`, `roundrobin`, `sticky`, `cooperative-sticky`,
            `kip848:uniform`, `kip848:range`.
        down_seconds: How long each member is away.
        crash: Whether members are killed; else their consumers are closed.
        session_timeout_ms: The members' session timeout; None for that of the group's record, or the
            clients' default.
        heartbeat_interval_ms: The members' heartbeat interval, which no record has.

    Raises:
        NoSuchGroupError: There is no such group of the classic protocol.
        WhatIfError: The group or an assignor cannot be simulated; the message says why.
        ClusterError: The cluster does not say, as if the user may not describe a topic.
        NotStableError: The simulated group does not come to rest.
    """
    if isinstance(source, Cluster) and isinstance(group, str):
        settings, topics, subscriptions = _running(source, group)
    elif not isinstance(source, Cluster) and isinstance(group, int) and group > 0:
        settings, topics, subscriptions = _CLIENTS, {**source}, [source.keys()] * group
    else:
        raise WhatIfError(f"the group is {group!r}: give its id on a cluster, or its number of members")
    session = settings.session_timeout_ms if session_timeout_ms is None else session_timeout_ms
    member = replace(settings, session_timeout_ms=session, heartbeat_interval_ms=heartbeat_interval_ms)
    if heartbeat_interval_ms >= session:
        raise WhatIfError(
            f"heartbeat.interval.ms {heartbeat_interval_ms} is not below session.timeout.ms {session}:"
            " sessions would end between heartbeats; give a smaller heartbeat interval"
        )
    if unknown := [name for name in assignors if name not in RESTARTED]:
        raise WhatIfError(f"there is no assignor {unknown[0]!r}; choose one of {', '.join(RESTARTED)}")
    restart = partial(rolling_restart, subscriptions=subscriptions, down_seconds=down_seconds, crash=crash)
    return RollingRestarts(
        members=len(subscriptions),
        partitions=sum(topics.values()),
        crash=crash,
        down_seconds=down_seconds,
        session_timeout_ms=session,
        costs=tuple(
            RestartCost(
                assignor=name, static=static, cost=restart(_simulated(topics, name, member), static=static)
            )
            for name in assignors
            for static in (False, True)
        ),
    )


def _simulated(
    topics: Mapping[str, int], assignor: str, member: MemberSettings
) -> Simulation | ConsumerGroupSimulation:
    """A group whose brokers take the members' session timeout."""
    strategy, session, default = STRATEGIES[assignor], member.session_timeout_ms, BrokerSettings()
    broker = BrokerSettings(
        min_session_timeout_ms=min(default.min_session_timeout_ms, session),
        max_session_timeout_ms=max(default.max_session_timeout_ms, session),
        session_timeout_ms=session,
        heartbeat_interval_ms=member.heartbeat_interval_ms,
    )
    if strategy.kip848:
        return ConsumerGroupSimulation(topics, strategy.kip848, broker=broker, member=member)
    return Simulation(topics, [load(strategy.assignor or "")], broker=broker, member=member)


def _running(cluster: Cluster, group_id: str) -> tuple[MemberSettings, dict[str, int], list[Collection[str]]]:
    """The longest timeouts of a group's members, its topics, and what each member subscribes to."""
    with connect(cluster) as admin:
        live = read_group(admin, group_id, records=1)
        members = _members(live)
        wanted = {topic for one in members for topic in one.topics}
        hidden = find_hidden(admin, wanted - live.topics.keys())
    if hidden:
        raise hidden_error(hidden)
    topics = {topic: len(live.topics[topic]) for topic in sorted(wanted & live.topics.keys())}
    settings = MemberSettings(
        session_timeout_ms=max(one.session_timeout_ms for one in members),
        # Records of version 0 have none, and Kafka takes the session timeout.
        max_poll_interval_ms=max(
            one.session_timeout_ms if one.rebalance_timeout_ms < 0 else one.rebalance_timeout_ms
            for one in members
        ),
    )
    return settings, topics, [topics.keys() & {*one.topics} for one in members]


def _members(live: LiveGroup) -> Sequence[MemberAccount]:
    group_id = live.group.group_id
    if isinstance(live.group, EpochGroup):
        raise NoSuchGroupError(
            f"group {group_id!r} is not one of the classic protocol, but of KIP-848's"
            " (group.protocol=consumer)"
        )
    if not live.records:
        raise WhatIfError(f"no record with the settings of its members is left of group {group_id!r}")
    members = live.explain().account.members
    if not members:
        raise WhatIfError(f"group {group_id!r} has no members to restart")
    return members
