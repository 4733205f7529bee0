"""A group of a running cluster explained: who has what and why, how far it is behind, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from kafka_assignors._cluster.groups import find_extents
from kafka_assignors._cluster.handle import connect
from kafka_assignors._common.plain import fields_of
from kafka_assignors._common.words import partitions_in_words
from kafka_assignors._groups.epochs import explain_epochs
from kafka_assignors._groups.explanation import explain as explain_record
from kafka_assignors._groups.joining import joining_problem
from kafka_assignors._groups.lag import find_lag, lag_partitions
from kafka_assignors._groups.problems import find_lag_problems, in_order
from kafka_assignors.groups._lag_seconds import with_seconds
from kafka_assignors.groups._live import (
    LiveEpochGroup,
    LiveGroup,
    OtherProtocolError,
    read_epoch_group,
    read_group,
    read_rebalances,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors._cluster.groups import EpochGroup, Extent, Partition
    from kafka_assignors._cluster.handle import Cluster
    from kafka_assignors._groups.account import GroupAccount
    from kafka_assignors._groups.epochs import Behind
    from kafka_assignors._groups.joining import OngoingRebalance
    from kafka_assignors._groups.lag import GroupLag
    from kafka_assignors._groups.prediction import Client
    from kafka_assignors._groups.problems import Problem
    from kafka_assignors.groups._coordinator import GroupCoordinator
    from kafka_assignors.groups._live import NotedRebalance

    Extents = Callable[[Collection[Partition]], Mapping[Partition, Extent]]
    """Asks where partitions begin and end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedClassicGroup:
    """A group of the classic protocol, explained.

    Attributes:
        state: Its state by its coordinator's word: "Stable", "Empty", "PreparingRebalance", ...
        coordinator: Its coordinator.
        account: Its members, what each has, and how good that is, by its newest record. Nothing is predicted
            during a rebalance.
        joining: The rebalance that is on; None if none is.
        rebalances: Why it rebalanced, as far as its records go back; the newest last.
        lag: How far it is behind.
        problems: What is wrong, the worst first.
    """

    state: str
    coordinator: GroupCoordinator
    account: GroupAccount
    joining: OngoingRebalance | None
    rebalances: tuple[NotedRebalance, ...]
    lag: GroupLag
    problems: tuple[Problem, ...]

    @classmethod
    def of(cls, live: LiveGroup, extents: Extents, leader_client: Client | None = None) -> Self:
        """Explain a group that was read."""
        found = explain_record(
            live.group_id,
            live.value,
            live.partition_ids,
            committed={topic for topic, _ in live.committed},
            record_limit=live.record_limit,
            leader_client=leader_client,
        )
        lag = _lag(live, found.account, extents)
        joining, account = live.joining, found.account
        if joining is not None:
            account = replace(account, would_move=(), predictions={})
        return cls(
            state=live.state,
            coordinator=live.coordinator,
            account=account,
            joining=joining,
            rebalances=read_rebalances(live),
            lag=lag,
            problems=in_order(
                [
                    *([] if joining is None else [joining_problem(joining)]),
                    *found.problems,
                    *find_lag_problems(lag, members=bool(found.account.members)),
                ]
            ),
        )

    def to_json(self) -> dict[str, Any]:
        """For machines: the account's fields beside the others, and each member with its lag."""
        account, lags = self.account, self.lag.by_member()
        return {
            "group": account.group_id,
            "type": "classic",
            **fields_of(self, without=("account",)),
            **fields_of(account, "imbalance", "best_imbalance", without=("group_id",)),
            "members": [
                {**fields_of(member, "partitions"), **_lag_of(lags.get(member.member_id))}
                for member in account.members
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedConsumerGroup:
    """A group of KIP-848, explained.

    Attributes:
        coordinator: Its coordinator.
        group: What that describes.
        seen_seconds: For how long it was seen to be on its way.
        account: The same as of a classic group, as far as it is described. Its generation is the epoch of the
            assignment. What would move is what the coordinator has decided and is not done yet.
        behind: Members that are not yet where the coordinator wants them.
        lag: How far it is behind.
        problems: What is wrong, the worst first.
    """

    coordinator: GroupCoordinator
    group: EpochGroup
    seen_seconds: float
    account: GroupAccount
    behind: tuple[Behind, ...]
    lag: GroupLag
    problems: tuple[Problem, ...]

    @classmethod
    def of(cls, live: LiveEpochGroup, extents: Extents) -> Self:
        """Explain a group that was read."""
        found = explain_epochs(
            live.looks, live.partition_ids, committed={topic for topic, _ in live.committed}
        )
        lag = _lag(live, found.account, extents)
        more = find_lag_problems(lag, members=bool(found.account.members))
        return cls(
            coordinator=live.coordinator,
            group=found.group,
            seen_seconds=found.seen_seconds,
            account=found.account,
            behind=found.behind,
            lag=lag,
            problems=in_order([*found.problems, *more]),
        )

    def to_json(self) -> dict[str, Any]:
        """For machines: each member with its epoch, its target and its lag."""
        group, account, lags = self.group, self.account, self.lag.by_member()
        return {
            "group": group.group_id,
            "type": "consumer",
            "state": group.state,
            "epoch": group.epoch,
            "assignment_epoch": group.assignment_epoch,
            "assignor": group.assignor,
            **fields_of(self, without=("group", "account")),
            "would_move": account.would_move,
            "members": [
                {
                    "name": known.name,
                    **{key: value for key, value in member._asdict().items() if key != "speaks"},
                    "protocol": member.speaks,
                    "partitions": partitions_in_words(member.assignment),
                    **_lag_of(lags.get(member.member_id)),
                }
                for known, member in zip(account.members, group.members, strict=True)
            ],
            "loads": account.loads,
            "imbalance": account.imbalance,
            "best_imbalance": account.best_imbalance,
        }


def explain(
    cluster: Cluster,
    group_id: str,
    *,
    observe: float = 5.0,
    leader_client: Client | None = None,
    max_lag_seconds: float | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> ExplainedClassicGroup | ExplainedConsumerGroup:
    """Explain a group: who has what and why, how far it is behind, and what is wrong.

    Of a classic group its records in `__consumer_offsets` are read, from the end of the log backwards.

    Args:
        cluster: The cluster.
        group_id: The group.
        observe: For how many seconds to look at a group that is in a rebalance.
        leader_client: The client that leads a classic group; None to guess.
        max_lag_seconds: For how many seconds records may wait to be committed; `math.inf` for any, None not
            to ask. See `list_groups`.
        watch: Gets how many records of the log were read, and how many there are, during the reading.

    Raises:
        NoSuchGroupError: There is no such group; `OtherProtocolError` if it is of another protocol than the
            classic one and KIP-848's.
        ClusterError: The cluster does not say, as if the client may not read `__consumer_offsets`.
    """
    with connect(cluster) as admin:
        live: LiveGroup | LiveEpochGroup
        explained: ExplainedClassicGroup | ExplainedConsumerGroup
        try:
            live = read_group(admin, group_id, observe=observe, watch=watch)
            explained = ExplainedClassicGroup.of(live, _extents(admin, live), leader_client)
        except OtherProtocolError:
            live = read_epoch_group(admin, group_id, observe=observe)
            explained = ExplainedConsumerGroup.of(live, _extents(admin, live))
        if max_lag_seconds is not None:
            (explained,) = with_seconds(admin, live.topics, [explained], max_lag_seconds)
        return explained


def _extents(admin: Admin, live: LiveGroup | LiveEpochGroup) -> Extents:
    return lambda partitions: find_extents(admin, partitions, live.topics)


def _lag(live: LiveGroup | LiveEpochGroup, account: GroupAccount, extents: Extents) -> GroupLag:
    """How far a group is behind; only the extents of partitions that it has to do with are asked for."""
    known = (account.owned, account.subscribed, live.partition_ids, live.committed)
    return find_lag(*known, extents(lag_partitions(*known)))


def _lag_of(own: GroupLag | None) -> dict[str, Any]:
    """Of a member; nothing is known of a member that has nothing."""
    counts = {} if own is None else own.counts()
    names = {"lag": "total", "lag_seconds": "seconds", "uncommitted": "uncommitted", "unknown": "unknown"}
    return {name: counts.get(count) for name, count in names.items()}
