"""Groups and their coordinators, from the command line."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from kafka.errors import KafkaError

from kafka_assignors._cli.arguments import ClusterClient
from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.group_text import explained_lines, partitions_of
from kafka_assignors._cli.output import Answer
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors._groups.explanation import Explanation, explain
from kafka_assignors.coordinator._election import elect_leader, elect_strategy
from kafka_assignors.coordinator._finding import GROUPS_TOPIC, partition_for_group
from kafka_assignors.coordinator._live import (
    LiveGroup,
    NotedChange,
    find_coordinator,
    read_group,
    read_rebalances,
)

ERRORS: Final = Errors(wrong=(CommandConfigError, ValueError), failed=(ClusterError, KafkaError))


def find(*, client: ClusterClient, group: str, partitions: int) -> Answer:
    """The partition that a group belongs to, and its coordinator if there is a cluster to ask."""
    if client.bootstrap_servers is None:
        partition = partition_for_group(group, partitions)
        return Answer(
            lambda: {"partition": partition, "partitions": partitions},
            [f"{GROUPS_TOPIC}-{partition}, of {partitions}"],
        )
    with open_admin(client) as admin:
        coordinator = find_coordinator(admin, group)
    return Answer(lambda: asdict(coordinator), [str(coordinator)])


def elect(*, members: Sequence[str]) -> Answer:
    """The strategy that members elect, and the leader.

    Args:
        members: "member=strategy,strategy" of each, in the order of joining.

    Raises:
        ValueError: One is something else, or named twice; or they know no common strategy.
    """
    preferences: dict[str, list[str]] = {}
    for text in members:
        member, equals, strategies = text.partition("=")
        if not (member and equals and strategies) or member in preferences:
            raise ValueError(f"{text!r} is not MEMBER=STRATEGY[,...] of a member that was not named before")
        preferences[member] = strategies.split(",")
    election = elect_strategy(preferences)
    leader = elect_leader(preferences, leader=next(iter(preferences)))
    return Answer(
        lambda: {**asdict(election), "tied": election.tied, "leader": leader},
        [*str(election).split("\n"), f"leader: {leader}, the first to join"],
    )


def explain_group(*, client: ClusterClient, group: str, check: bool) -> Answer:
    """Who has what in a group, why, and what is wrong; with `check` the status 1 if something is."""
    with open_admin(client) as admin:
        live = read_group(admin, group, watch=_say_how_far if sys.stderr.isatty() else None)
    found = explain(
        live.group_id,
        live.records[-1].value,
        live.topics,
        committed=live.committed,
        record_limit=live.record_limit,
    )
    rebalances = read_rebalances(live)
    wrong = any(problem.severity != "note" for problem in found.problems)
    return Answer(
        lambda: _to_json(live, found, rebalances),
        explained_lines(live, found, rebalances),
        1 if check and wrong else 0,
    )


def _say_how_far(read: int, there_are: int) -> None:
    end = "\n" if read == there_are else ""
    print(
        f"\r{GROUPS_TOPIC}: looked at {read:,} of {there_are:,} records", end=end, file=sys.stderr, flush=True
    )


def _to_json(live: LiveGroup, found: Explanation, rebalances: tuple[NotedChange, ...]) -> dict[str, Any]:
    members = [
        {
            **asdict(account),
            "claims": sorted(account.claims),
            "assignment": sorted(account.assignment),
            "partitions": partitions_of(account.assignment),
        }
        for account in found.account.members
    ]
    return {
        "group": live.group_id,
        "state": live.state,
        "coordinator": asdict(live.coordinator),
        "rebalances": [asdict(rebalanced) for rebalanced in rebalances],
        **{
            name: value
            for name, value in asdict(found.account).items()
            if name not in {"group_id", "members"}
        },
        "problems": [asdict(problem) for problem in found.problems],
        "members": members,
        "imbalance": found.account.imbalance,
        "best_imbalance": found.account.best_imbalance,
    }
