"""Groups and their coordinators, from the command line."""

import argparse
import json
import sys
from dataclasses import asdict
from typing import Any

from kafka.errors import KafkaError

from kafka_assignors.cli.group_text import explained_lines, partitions_of
from kafka_assignors.cluster.admin import Admin, ClusterError
from kafka_assignors.cluster.command_config import CommandConfigError, read_command_config
from kafka_assignors.coordinator.explanation import Explanation, explain
from kafka_assignors.coordinator.finding import GROUPS_TOPIC, partition_for_group
from kafka_assignors.coordinator.live import LiveGroup, NoSuchGroupError, read_group
from kafka_assignors.coordinator.reasons import Change, find_changes


def run(options: argparse.Namespace) -> int:
    """Run one of the commands; see the parser.

    Returns:
        The exit status: 0 done, 1 the cluster did not say or something is wrong, 2 what cannot be asked for.
    """
    try:
        return _find(options) if options.verb == "find" else _explain(options)
    except (NoSuchGroupError, CommandConfigError, ValueError) as error:
        print(f"kafka-assignors group {options.verb}: {error}", file=sys.stderr)
        return 2
    except (ClusterError, KafkaError) as error:
        print(f"kafka-assignors group {options.verb}: {error}", file=sys.stderr)
        return 1


def _find(options: argparse.Namespace) -> int:
    if options.bootstrap_servers is None:
        partition, partitions, broker = (
            partition_for_group(options.group, options.partitions),
            options.partitions,
            None,
        )
    else:
        with _admin(options) as admin:
            live = read_group(admin, options.group, records=1)
        partition, partitions, broker = live.partition, live.partitions, live.coordinator
    if options.json:
        print(json.dumps({"partition": partition, "partitions": partitions, "coordinator": broker}, indent=2))
    else:
        print(f"{GROUPS_TOPIC}-{partition}" + ("" if broker is None else f", led by {broker}"))
    return 0


def _explain(options: argparse.Namespace) -> int:
    with _admin(options) as admin:
        live = read_group(admin, options.group)
    *before, newest = live.records
    found = explain(
        live.group_id, newest.value, live.topics, committed=live.committed, record_limit=live.record_limit
    )
    changes = find_changes(before[-1].snapshot, newest.snapshot) if before else ()
    if options.json:
        print(json.dumps(_to_json(live, found, changes), indent=2))
    else:
        print("\n".join(explained_lines(live, found, changes)))
    wrong = any(problem.severity != "note" for problem in found.problems)
    return 1 if options.check and wrong else 0


def _admin(options: argparse.Namespace) -> Admin:
    settings = {} if options.command_config is None else read_command_config(options.command_config)
    return Admin(options.bootstrap_servers.split(","), settings)


def _to_json(live: LiveGroup, found: Explanation, changes: "tuple[Change, ...]") -> dict[str, Any]:
    members = [
        {
            **asdict(account),
            "claims": sorted(account.claims),
            "assignment": sorted(account.assignment),
            "partitions": partitions_of(account.assignment),
        }
        for account in found.members
    ]
    return {
        "group": live.group_id,
        "state": live.state,
        "coordinator": live.coordinator,
        "partition": live.partition,
        "partitions": live.partitions,
        "since_ms": live.records[-1].time_ms,
        "changes": [asdict(change) for change in changes],
        **{name: value for name, value in asdict(found).items() if name not in {"group_id", "members"}},
        "members": members,
        "imbalance": found.imbalance,
        "best_imbalance": found.best_imbalance,
    }
