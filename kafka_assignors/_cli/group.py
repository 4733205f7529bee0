"""Groups and their coordinators, from the command line."""

import argparse
import sys
from dataclasses import asdict
from typing import Any, Final

from kafka.errors import KafkaError

from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import exit_status
from kafka_assignors._cli.group_text import explained_lines, partitions_of
from kafka_assignors._cli.group_what_if import what_if
from kafka_assignors._cli.output import show, show_json
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


def run(options: argparse.Namespace) -> int:
    """Run one of the commands; see the parser.

    Returns:
        The exit status: 0 done, 1 the cluster did not say or something is wrong, 2 what cannot be asked for.
    """
    return exit_status(
        f"group {options.verb}",
        lambda: _VERBS[options.verb](options),
        wrong=(CommandConfigError, ValueError),
        failed=(ClusterError, KafkaError),
    )


def _find(options: argparse.Namespace) -> int:
    if options.bootstrap_servers is None:
        partition = partition_for_group(options.group, options.partitions)
        found = {"partition": partition, "partitions": options.partitions}
        text = f"{GROUPS_TOPIC}-{partition}, of {options.partitions}"
    else:
        with open_admin(options) as admin:
            coordinator = find_coordinator(admin, options.group)
        found, text = asdict(coordinator), str(coordinator)
    if options.json:
        show_json(found)
    else:
        show(text)
    return 0


def _elect(options: argparse.Namespace) -> int:
    preferences: dict[str, list[str]] = {}
    for text in options.members:
        member, equals, strategies = text.partition("=")
        if not (member and equals and strategies) or member in preferences:
            raise ValueError(f"{text!r} is not MEMBER=STRATEGY[,...] of a member that was not named before")
        preferences[member] = strategies.split(",")
    election = elect_strategy(preferences)
    leader = elect_leader(preferences, leader=next(iter(preferences)))
    if options.json:
        show_json({**asdict(election), "tied": election.tied, "leader": leader})
    else:
        show(f"{election}\nleader: {leader}, the first to join")
    return 0


def _explain(options: argparse.Namespace) -> int:
    with open_admin(options) as admin:
        live = read_group(admin, options.group, watch=_say_how_far if sys.stderr.isatty() else None)
    found = explain(
        live.group_id,
        live.records[-1].value,
        live.topics,
        committed=live.committed,
        record_limit=live.record_limit,
    )
    rebalances = read_rebalances(live)
    if options.json:
        show_json(_to_json(live, found, rebalances))
    else:
        show("\n".join(explained_lines(live, found, rebalances)))
    wrong = any(problem.severity != "note" for problem in found.problems)
    return 1 if options.check and wrong else 0


def _what_if(options: argparse.Namespace) -> int:
    described = options.members is not None and options.topic
    running = options.group is not None and options.bootstrap_servers is not None
    if bool(described) == running:
        options.parser.error("give GROUP and --bootstrap-servers, or --members and --topic")
    if described:
        return what_if(options, None)
    with open_admin(options) as admin:
        live = read_group(admin, options.group, records=1)
    return what_if(options, live)


def _say_how_far(read: int, there_are: int) -> None:
    end = "\n" if read == there_are else ""
    print(
        f"\r{GROUPS_TOPIC}: looked at {read:,} of {there_are:,} records", end=end, file=sys.stderr, flush=True
    )


_VERBS: Final = {"elect": _elect, "explain": _explain, "find": _find, "what-if": _what_if}


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
