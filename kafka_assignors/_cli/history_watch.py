"""`kafka-assignors history watch GROUP`: the rebalances of a live group as they happen."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from kafka.errors import KafkaError

from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import exit_status
from kafka_assignors._cli.history_watch_text import watched_lines
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors.history._watch import watch_group

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from kafka_assignors._groups.rebalances import Rebalance


def run(options: argparse.Namespace) -> int:
    """Watch until Ctrl-C.

    Args:
        options: `group`, `bootstrap_servers`, `command_config` (a path or None) and `json`.

    Returns:
        The exit status: 0 after Ctrl-C, which is how it ends; 1 the cluster did not say, 2 wrong settings.
    """

    def watch() -> int:
        with open_admin(options) as admin:
            watched = watch_group(admin, options.group, ready=lambda: _say(options.group))
            show_rebalances(watched, as_json=options.json)
        return 0

    try:
        return exit_status(
            "history watch",
            watch,
            wrong=(CommandConfigError, ValueError),
            failed=(ClusterError, KafkaError),
        )
    except KeyboardInterrupt:
        return 0


def _say(group: str) -> None:
    print(f"watching {group}; Ctrl-C ends it", file=sys.stderr, flush=True)


def show_rebalances(rebalances: Iterable[Rebalance], *, as_json: bool) -> None:
    """Print each as it comes; as JSON one on a line."""
    for rebalance in rebalances:
        if as_json:
            print(json.dumps({**rebalance.row(), "quiet": rebalance.quiet}, default=str), flush=True)
        else:
            print("\n".join(watched_lines(rebalance)), flush=True)
