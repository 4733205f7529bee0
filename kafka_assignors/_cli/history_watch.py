"""`kafka-assignors history watch GROUP`: the rebalances of a live group as they happen."""

from __future__ import annotations

import json
import sys
from glob import escape
from typing import TYPE_CHECKING, Any

from kafka_assignors._cli.history_watch_text import now_lines, watched_lines
from kafka_assignors._cli.output import count, joined
from kafka_assignors._common.escaping import escaped
from kafka_assignors.groups import list_groups
from kafka_assignors.history import watch_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from kafka_assignors.groups import Cluster
    from kafka_assignors.groups._status import GroupStatus
    from kafka_assignors.history import Rebalance


def watch(cluster: Cluster, group: str, *, as_json: bool) -> None:
    """Watch a group until Ctrl-C, which is how it ends."""
    try:
        with cluster:

            def look() -> GroupStatus | None:
                return next(iter(list_groups(cluster, [escape(group)], observe=0)), None)

            def begin() -> None:
                now = look()
                missing = "" if now is not None else ", which does not exist yet"
                print(f"watching {escaped(group)}{missing}; Ctrl-C ends it", file=sys.stderr, flush=True)
                if now is not None and not as_json:
                    members = "? members" if now.members is None else count(now.members, "member")
                    print(joined([f"now: {now.state}, {members}", *now_lines(now)]), flush=True)

            show_rebalances(watch_group(cluster, group, ready=begin), as_json=as_json, look=look)
    except KeyboardInterrupt:
        pass


def show_rebalances(
    rebalances: Iterable[Rebalance], *, as_json: bool, look: Callable[[], GroupStatus | None] = lambda: None
) -> None:
    """Print each as it comes, with what the group is like then; as JSON one on a line.

    `look` says what the group is like now; None if it is gone.
    """
    for rebalance in rebalances:
        now = look()
        if as_json:
            told = {**rebalance.row(), "quiet": rebalance.quiet, **_to_json(now)}
            print(json.dumps(told, default=str), flush=True)
        else:
            lines = [*watched_lines(rebalance), *([] if now is None else now_lines(now))]
            print(joined(lines), flush=True)


def _to_json(now: GroupStatus | None) -> dict[str, Any]:
    lag = None if now is None else now.lag
    unowned = None if now is None else now.unowned
    return {"lag": None if lag is None else lag.to_json(), "unowned": unowned}
