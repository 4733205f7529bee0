"""A group of a running cluster explained: who has what and why, how far it is behind, and what is wrong."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Self

from kafka_assignors._cluster.groups import Extent, Partition, find_extents
from kafka_assignors._cluster.handle import Cluster, connect
from kafka_assignors._common.plain import fields_of
from kafka_assignors._common.strategies import Client
from kafka_assignors._groups.account import Epochs, GroupAccount
from kafka_assignors._groups.joining import OngoingRebalance, joining_problem
from kafka_assignors._groups.lag import GroupLag, find_lag, lag_owners
from kafka_assignors._groups.problems import Problem, find_lag_problems, in_order
from kafka_assignors.groups._completed import completed
from kafka_assignors.groups._coordinator import GroupCoordinator
from kafka_assignors.groups._live import LiveGroup, NotedRebalance, read_group, read_rebalances

Extents = Callable[[Collection[Partition]], Mapping[Partition, Extent]]
"""Asks where partitions begin and end."""

_LAGS: Final = {"lag": "total", "lag_seconds": "seconds", "uncommitted": "uncommitted", "unknown": "unknown"}
"""What a member's JSON has of its lag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedGroup:
    """A group, explained.

    Attributes:
        state: Its state by its coordinator's word: "Stable", "Empty", "PreparingRebalance", ...
        coordinator: Its coordinator.
        account: Its members, what each has, and how good that is. Nothing is predicted of a classic group
            during a rebalance.
        epochs: What only a group of KIP-848 has; None of a classic group.
        joining: The rebalance of a classic group that is on; None if none is.
        rebalances: A classic group's oldest record that was read, then each rebalance since.
        lag: How far it is behind.
        problems: What is wrong, the worst first.
    """

    state: str
    coordinator: GroupCoordinator
    account: GroupAccount
    epochs: Epochs | None
    joining: OngoingRebalance | None
    rebalances: tuple[NotedRebalance, ...]
    lag: GroupLag
    problems: tuple[Problem, ...]

    @classmethod
    def of(cls, live: LiveGroup, extents: Extents, leader_client: Client | None = None) -> Self:
        found = live.explain(leader_client)
        account, joining = found.account, live.joining
        owners = lag_owners(account.members, live.topics, live.committed)
        lag = find_lag(owners, live.committed, extents(owners.keys()))
        problems = [*found.problems, *find_lag_problems(lag, members=bool(account.members))]
        if joining is not None:
            account = replace(account, would_move=(), predictions={})
            problems.insert(0, joining_problem(joining))
        return cls(
            state=live.group.state,
            coordinator=live.coordinator,
            account=account,
            epochs=found.epochs,
            joining=joining,
            rebalances=read_rebalances(live),
            lag=lag,
            problems=in_order(problems),
        )

    def to_json(self) -> dict[str, Any]:
        """For machines: the account's fields beside the others, and each member with its lag."""
        account, lags = self.account, self.lag.by_member()
        members: list[dict[str, Any]]
        if self.epochs is None:
            kind, own = "classic", fields_of(self, without=("account", "epochs"))
            own |= fields_of(account, without=("group_id",))
            members = [fields_of(member, "partitions") for member in account.members]
        else:
            kind, own = "consumer", fields_of(self, without=("account", "joining", "rebalances", "epochs"))
            own |= fields_of(self.epochs, without=("members",))
            own |= {"would_move": account.would_move, "loads": account.loads}
            members = [
                {"name": known.name, **member._asdict(), "partitions": known.partitions}
                for known, member in zip(account.members, self.epochs.members, strict=True)
            ]
        for member in members:
            its = lags.get(member["member_id"])
            counts = {} if its is None else its.counts()  # nothing is known of a member that has nothing
            member |= {name: counts.get(count) for name, count in _LAGS.items()}
        return {
            "group": account.group_id,
            "type": kind,
            **own,
            "members": members,
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
) -> ExplainedGroup:
    """Explain a group: who has what and why, how far it is behind, and what is wrong.

    Of a classic group its three newest records are read, from the end of `__consumer_offsets` backwards.

    Args:
        cluster: The cluster.
        group_id: The group.
        observe: For how many seconds to look at a group that is in a rebalance.
        leader_client: The client that leads a classic group; None to guess.
        max_lag_seconds: For how many seconds records may wait to be committed, as for `list_groups`.
        watch: Gets how many records of the log were read, and how many there are, during the reading.

    Raises:
        NoSuchGroupError: There is no such group of the classic protocol, or of KIP-848.
        ClusterError: The cluster does not say, as if the client may not read `__consumer_offsets`.
    """
    with connect(cluster) as admin:
        live = read_group(admin, group_id, observe=observe, watch=watch)
        explained = ExplainedGroup.of(
            live, lambda partitions: find_extents(admin, partitions, live.topics), leader_client
        )
        return completed(admin, live.topics, [explained], max_lag_seconds)[0]
