"""`kafka-assignors history watch GROUP`: the rebalances of a live group as they happen."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

from kafka.errors import KafkaError

from kafka_assignors._cli.client import open_admin
from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.history_watch_text import watched_lines
from kafka_assignors._cli.output import escaped, joined
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.command_config import CommandConfigError
from kafka_assignors.history._watch import watch_group

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka_assignors._cli.arguments import ClusterClient
    from kafka_assignors._groups.rebalances import Rebalance


ERRORS: Final = Errors(wrong=(CommandConfigError, ValueError), failed=(ClusterError, KafkaError))


def watch(*, client: ClusterClient, group: str, as_json: bool) -> int:
    """Watch a group until Ctrl-C, which is how it ends."""
    try:
        with open_admin(client) as admin:
            watched = watch_group(admin, group, ready=lambda: _say(group))
            show_rebalances(watched, as_json=as_json)
    except KeyboardInterrupt:
        pass
    return 0


def _say(group: str) -> None:
    print(f"watching {escaped(group)}; Ctrl-C ends it", file=sys.stderr, flush=True)


def show_rebalances(rebalances: Iterable[Rebalance], *, as_json: bool) -> None:
    """Print each as it comes; as JSON one on a line."""
    for rebalance in rebalances:
        if as_json:
            print(json.dumps({**rebalance.row(), "quiet": rebalance.quiet}, default=str), flush=True)
        else:
            print(joined(watched_lines(rebalance)), flush=True)
