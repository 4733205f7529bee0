"""A group explained, from the command line: who has what and why, how far it is behind, and what is wrong."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaError

from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.group_epochs_text import epochs_lines
from kafka_assignors._cli.group_parts import partitions_of
from kafka_assignors._cli.group_text import explained_lines
from kafka_assignors._cli.output import Answer
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors._groups.epochs import explain_epochs
from kafka_assignors._groups.explanation import explain
from kafka_assignors._groups.joining import joining_problem
from kafka_assignors._groups.problems import find_lag_problems, in_order
from kafka_assignors.coordinator._epochs import read_epoch_group, read_lag
from kafka_assignors.coordinator._finding import GROUPS_TOPIC
from kafka_assignors.coordinator._live import OtherProtocolError, read_group, read_rebalances

if TYPE_CHECKING:
    from kafka_assignors._cli.arguments import ClusterClient
    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors._groups.account import GroupAccount
    from kafka_assignors._groups.epochs import EpochExplanation
    from kafka_assignors._groups.lag import GroupLag
    from kafka_assignors._groups.prediction import Client
    from kafka_assignors._groups.problems import Problem
    from kafka_assignors.coordinator._epochs import LiveEpochGroup
    from kafka_assignors.coordinator._live import LiveGroup, NotedChange

ERRORS: Final = Errors(wrong=(CommandConfigError, ValueError), failed=(ClusterError, KafkaError))


def explain_group(
    *, client: ClusterClient, group: str, observe: float, leader_client: Client | None, check: bool
) -> Answer:
    """Who has what in a group, why, and what is wrong; with `check` the status 1 if something is.

    Args:
        client: The cluster.
        group: The group.
        observe: For how many seconds to look at a group that is in a rebalance.
        leader_client: The client that leads the group; None to guess.
        check: Whether an error or a warning makes the status 1.
    """
    with open_admin(client) as admin:
        try:
            live = read_group(
                admin, group, observe=observe, watch=_say_how_far if sys.stderr.isatty() else None
            )
        except OtherProtocolError:
            return _explain_epochs(admin, group, observe=observe, check=check)
        found = explain(
            live.group_id,
            live.value,
            live.partition_ids,
            committed={topic for topic, _ in live.committed},
            record_limit=live.record_limit,
            leader_client=leader_client,
        )
        lag = read_lag(admin, found.account, live.topics, live.committed)
    joining = live.joining
    problems = in_order(
        [
            *([] if joining is None else [joining_problem(joining)]),
            *found.problems,
            *find_lag_problems(lag, members=bool(found.account.members)),
        ]
    )
    rebalances = read_rebalances(live)
    return Answer(
        lambda: _to_json(live, found.account, lag, problems, rebalances),
        explained_lines(live, found.account, lag, problems, rebalances),
        _status(problems, check=check),
    )


def _explain_epochs(admin: Admin, group: str, *, observe: float, check: bool) -> Answer:
    live = read_epoch_group(admin, group, observe=observe)
    found = explain_epochs(live.looks, live.partition_ids, committed={topic for topic, _ in live.committed})
    lag = read_lag(admin, found.account, live.topics, live.committed)
    problems = in_order([*found.problems, *find_lag_problems(lag, members=bool(found.account.members))])
    return Answer(
        lambda: _epochs_to_json(live, found, lag, problems),
        epochs_lines(live, found, lag, problems),
        _status(problems, check=check),
    )


def _status(problems: tuple[Problem, ...], *, check: bool) -> int:
    return 1 if check and any(problem.severity != "note" for problem in problems) else 0


def _say_how_far(read: int, there_are: int) -> None:
    """One line, written again and again, and erased when all is read."""
    line = "\x1b[K" if read == there_are else f"{GROUPS_TOPIC}: looked at {read:,} of {there_are:,} records"
    print(f"\r{line}", end="", file=sys.stderr, flush=True)


def _to_json(
    live: LiveGroup,
    account: GroupAccount,
    lag: GroupLag,
    problems: tuple[Problem, ...],
    rebalances: tuple[NotedChange, ...],
) -> dict[str, Any]:
    joining, lags = live.joining, lag.by_member()
    members = [
        {
            **asdict(member),
            "claims": sorted(member.claims),
            "assignment": sorted(member.assignment),
            "partitions": partitions_of(member.assignment),
            **_lag_of(lags.get(member.member_id)),
        }
        for member in account.members
    ]
    return {
        "group": live.group_id,
        "type": "classic",
        "state": live.state,
        "coordinator": asdict(live.coordinator),
        "joining": None if joining is None else {**asdict(joining), "missing": joining.missing},
        "rebalances": [asdict(rebalanced) for rebalanced in rebalances],
        **{name: value for name, value in asdict(account).items() if name not in {"group_id", "members"}},
        "problems": [asdict(problem) for problem in problems],
        "members": members,
        "imbalance": account.imbalance,
        "best_imbalance": account.best_imbalance,
        "lag": lag.to_json(),
    }


def _epochs_to_json(
    live: LiveEpochGroup, found: EpochExplanation, lag: GroupLag, problems: tuple[Problem, ...]
) -> dict[str, Any]:
    account, lags = found.account, lag.by_member()
    return {
        "group": found.group.group_id,
        "type": "consumer",
        "state": found.group.state,
        "epoch": found.group.epoch,
        "assignment_epoch": found.group.assignment_epoch,
        "assignor": found.group.assignor,
        "coordinator": asdict(live.coordinator),
        "seen_seconds": found.seen_seconds,
        "behind": [
            {**asdict(one), "lets_go": sorted(one.lets_go), "takes": sorted(one.takes)}
            for one in found.behind
        ],
        "would_move": [asdict(move) for move in account.would_move],
        "problems": [asdict(problem) for problem in problems],
        "members": [
            {
                "name": known.name,
                "member_id": member.member_id,
                "instance_id": member.instance_id,
                "client_id": member.client_id,
                "host": member.host,
                "rack": member.rack,
                "epoch": member.epoch,
                "protocol": member.speaks,
                "topics": member.topics,
                "expression": member.expression,
                "assignment": sorted(member.assignment),
                "target": sorted(member.target),
                "partitions": partitions_of(member.assignment),
                **_lag_of(lags.get(member.member_id)),
            }
            for known, member in zip(account.members, found.group.members, strict=True)
        ],
        "loads": dict(account.loads),
        "imbalance": account.imbalance,
        "best_imbalance": account.best_imbalance,
        "lag": lag.to_json(),
    }


def _lag_of(own: GroupLag | None) -> dict[str, int | None]:
    """Of a member; nothing is known of a member that has nothing."""
    return {
        "lag": None if own is None else own.total,
        "uncommitted": None if own is None else len(own.uncommitted),
        "unknown": None if own is None else len(own.unknown),
    }
