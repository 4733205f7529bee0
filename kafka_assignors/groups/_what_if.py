"""What a rolling restart of a group would cost with each assignor, from a simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_assignors._cluster.groups import EpochGroup, find_hidden, hidden_error
from kafka_assignors._cluster.handle import connect
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.plain import fields_of
from kafka_assignors._common.strategies import RESTARTED, STRATEGIES, load
from kafka_assignors.coordinator import (
    BrokerSettings,
    ConsumerBrokerSettings,
    MemberSettings,
    rolling_restart,
)
from kafka_assignors.groups._live import LiveGroup, NoSuchGroupError, read_group

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kafka_assignors._cluster.handle import Cluster
    from kafka_assignors.coordinator._simulator.what_if import Cost

_CLIENTS: Final = MemberSettings()
_BROKERS: Final = BrokerSettings()


class WhatIfError(KafkaAssignorsError, ValueError):
    """A rolling restart that cannot be simulated; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartCost:
    """What a rolling restart costs with one assignor.

    Attributes:
        assignor: The strategy.
        static: Whether members are static (KIP-345).
        cost: What it costs.
    """

    assignor: str
    static: bool
    cost: Cost

    def to_json(self) -> dict[str, Any]:
        """For machines: the cost's fields beside the others."""
        return {"assignor": self.assignor, "static": self.static, **fields_of(self.cost)}


@dataclass(frozen=True, slots=True, kw_only=True)
class RollingRestarts:
    """What a rolling restart of a group costs.

    Attributes:
        members: How many members are restarted, one after the other.
        partitions: How many partitions they subscribe to.
        crash: Whether members are killed instead of closed.
        down_seconds: How long each is away.
        session_timeout_ms: The members' session timeout.
        costs: The cost with each assignor, of dynamic and of static members.
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
        """For machines: the costs."""
        return [*self.costs]


def what_if(
    cluster: Cluster,
    group_id: str,
    assignors: Sequence[str] = RESTARTED,
    *,
    down_seconds: float = 10.0,
    crash: bool = False,
    session_timeout_ms: int | None = None,
    heartbeat_interval_ms: int = _CLIENTS.heartbeat_interval_ms,
) -> RollingRestarts:
    """What a rolling restart of a running group would cost; nothing is restarted.

    Args:
        cluster: The cluster.
        group_id: A group of the classic protocol.
        assignors: Strategies to restart it with: `range`, `roundrobin`, `sticky`, `cooperative-sticky`,
            `kip848:uniform`, `kip848:range`.
        down_seconds: How long each member is away.
        crash: Whether members are killed; else their consumers are closed.
        session_timeout_ms: The members' session timeout; None for that of the group's record.
        heartbeat_interval_ms: The members' heartbeat interval, which no record has.

    Raises:
        NoSuchGroupError: There is no such group of the classic protocol.
        WhatIfError: The group has no members or no record, or sessions end between heartbeats.
        ClusterError: The cluster does not say, as if the user may not describe a topic.
        NotStableError: The simulated group does not come to rest.
    """
    with connect(cluster) as admin:
        live = read_group(admin, group_id, records=1)
        members, subscriptions = _running(live)
        wanted = set[str]().union(*subscriptions)
        hidden = find_hidden(admin, wanted - live.topics.keys())
    if hidden:
        raise hidden_error(hidden)
    topics = {topic: len(live.topics[topic]) for topic in sorted(wanted & live.topics.keys())}
    return _restarts(
        topics,
        [one & topics.keys() for one in subscriptions],
        assignors,
        down_seconds=down_seconds,
        crash=crash,
        member=MemberSettings(
            session_timeout_ms=session_timeout_ms or members.session_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
            max_poll_interval_ms=members.max_poll_interval_ms,
        ),
    )


def what_if_described(
    topics: Mapping[str, int],
    members: int,
    assignors: Sequence[str] = RESTARTED,
    *,
    down_seconds: float = 10.0,
    crash: bool = False,
    session_timeout_ms: int | None = None,
    heartbeat_interval_ms: int = _CLIENTS.heartbeat_interval_ms,
) -> RollingRestarts:
    """The same of a group that does not exist; see `what_if`.

    Args:
        topics: Topic -> how many partitions.
        members: How many members; each subscribes to all topics.
        assignors: See `what_if`, as the others.
        down_seconds: See there.
        crash: See there.
        session_timeout_ms: The members' session timeout; None for the clients' default.
        heartbeat_interval_ms: See there.

    Raises:
        WhatIfError: Sessions end between heartbeats.
        NotStableError: The simulated group does not come to rest.
    """
    return _restarts(
        topics,
        [topics.keys()] * members,
        assignors,
        down_seconds=down_seconds,
        crash=crash,
        member=MemberSettings(
            session_timeout_ms=session_timeout_ms or _CLIENTS.session_timeout_ms,
            heartbeat_interval_ms=heartbeat_interval_ms,
        ),
    )


def _running(live: LiveGroup) -> tuple[MemberSettings, list[frozenset[str]]]:
    """The longest timeouts of a group's members, and what each of them subscribes to."""
    group_id = live.group.group_id
    if isinstance(live.group, EpochGroup):
        raise NoSuchGroupError(
            f"group {group_id!r} is not one of the classic protocol, but of KIP-848's"
            " (group.protocol=consumer)"
        )
    if not live.records:
        raise WhatIfError(f"of group {group_id!r} no record is left that has its members' settings")
    members = live.explain().account.members
    if not members:
        raise WhatIfError(f"group {group_id!r} has no members to restart")
    settings = MemberSettings(
        session_timeout_ms=max(one.session_timeout_ms for one in members),
        # Records of version 0 have none, and Kafka takes the session timeout.
        max_poll_interval_ms=max(
            one.session_timeout_ms if one.rebalance_timeout_ms < 0 else one.rebalance_timeout_ms
            for one in members
        ),
    )
    return settings, [frozenset(one.topics) for one in members]


def _restarts(
    topics: Mapping[str, int],
    subscriptions: Sequence[Collection[str]],
    assignors: Sequence[str],
    *,
    down_seconds: float,
    crash: bool,
    member: MemberSettings,
) -> RollingRestarts:
    session, beat = member.session_timeout_ms, member.heartbeat_interval_ms
    if beat >= session:
        raise WhatIfError(
            f"heartbeat.interval.ms {beat} is not below session.timeout.ms {session}: sessions would end"
            " between heartbeats; give a smaller heartbeat interval"
        )
    classic = BrokerSettings(
        min_session_timeout_ms=min(_BROKERS.min_session_timeout_ms, session),
        max_session_timeout_ms=max(_BROKERS.max_session_timeout_ms, session),
    )
    epochs = ConsumerBrokerSettings(session_timeout_ms=session, heartbeat_interval_ms=beat)

    def cost(name: str, *, static: bool) -> Cost:
        strategy = STRATEGIES[name]
        return rolling_restart(
            topics,
            subscriptions,
            strategy.kip848 or load(strategy.assignor or ""),
            static=static,
            down_seconds=down_seconds,
            crash=crash,
            member=member,
            broker=epochs if strategy.kip848 else classic,
        )

    if unknown := [name for name in assignors if name not in RESTARTED]:
        raise WhatIfError(f"there is no assignor {unknown[0]!r}; choose of {', '.join(RESTARTED)}")
    return RollingRestarts(
        members=len(subscriptions),
        partitions=sum(topics.values()),
        crash=crash,
        down_seconds=down_seconds,
        session_timeout_ms=session,
        costs=tuple(
            RestartCost(assignor=name, static=static, cost=cost(name, static=static))
            for name in assignors
            for static in (False, True)
        ),
    )
