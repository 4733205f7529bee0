"""How an explained group looks on a terminal."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kafka_assignors.cli.placement_text import table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_assignors.coordinator.explanation import Explanation, Partitions
    from kafka_assignors.coordinator.live import LiveGroup
    from kafka_assignors.coordinator.reasons import Change

MOVES_SHOWN: Final = 20
"""How many partitions that would move are listed; all of them are in the JSON."""

_PARTITIONS_SHOWN: Final = 60  # letters of a member's partitions
_WIDTH: Final = 100


def explained_lines(live: LiveGroup, found: Explanation, changes: Sequence[Change]) -> Iterator[str]:
    """All that there is to say of a group."""
    names = {account.member_id: account.client_id for account in found.members}
    strategy = f" by {found.strategy}" if found.strategy else ""
    leader = f", led by {names.get(found.leader, found.leader)}" if found.leader else ""
    yield f"{live.group_id}: {live.state}, generation {found.generation}{strategy}{leader}"
    yield (
        f"coordinator: {live.coordinator}, as it leads __consumer_offsets-{live.partition}"
        f" (the hash of the group's id, of {live.partitions} partitions)"
    )
    yield f"record: {found.record_bytes:,} bytes of {found.record_limit:,} that it may have"
    if live.state in {"PreparingRebalance", "CompletingRebalance"}:
        yield "a rebalance is on: what follows is from before it"
    yield from _why(live, changes)
    if found.members:
        yield ""
        yield from _members(found)
        yield ""
        best = (
            "the best possible"
            if found.imbalance == found.best_imbalance
            else f"{found.best_imbalance} is possible"
        )
        yield f"loads differ by {found.imbalance}: {best}"
        yield from _would_move(found, names)
    if found.problems:
        yield ""
    for problem in found.problems:
        yield from textwrap.wrap(f"{problem.severity}: {problem.text}", _WIDTH, subsequent_indent="  ")
        yield from textwrap.wrap(problem.advice, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def partitions_of(partitions: Partitions) -> str:
    """Partitions in short: "orders 0 1 4, events 2"."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return ", ".join(f"{topic} {' '.join(map(str, ids))}" for topic, ids in topics.items()) or "none"


def _why(live: LiveGroup, changes: Sequence[Change]) -> Iterator[str]:
    *before, newest = live.records
    when = datetime.fromtimestamp(newest.time_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if not before:
        yield f"since {when}; the record of the generation before is no longer in the log"
        return
    later = (newest.time_ms - before[-1].time_ms) / 1000
    yield f"since {when}, {later:.0f} s after generation {before[-1].value.generation}:"
    yield from (f"  {change.text}" for change in changes)


def _members(found: Explanation) -> Iterator[str]:
    racked = any(account.rack for account in found.members)
    head = [
        "member",
        "host",
        *(["rack"] if racked else []),
        "session s",
        "max poll s",
        "had",
        "has",
        "partitions",
    ]
    rows = [head]
    for account in found.members:
        shown = partitions_of(account.assignment)
        if len(shown) > _PARTITIONS_SHOWN:
            shown = f"{shown[: _PARTITIONS_SHOWN - 3]}..."
        rows.append(
            [
                f"{account.instance_id or account.client_id}{' (leads)' if account.leads else ''}",
                account.host,
                *([account.rack or "-"] if racked else []),
                f"{account.session_timeout_ms / 1000:g}",
                f"{account.rebalance_timeout_ms / 1000:g}",
                str(len(account.claims)) if account.claims else "-",
                str(len(account.assignment)),
                shown,
            ]
        )
    yield from table(rows, left=(0, 1, len(head) - 1))


def _would_move(found: Explanation, names: dict[str, str]) -> Iterator[str]:
    if found.strategy not in {"range", "roundrobin", "sticky", "cooperative-sticky"}:
        return
    count = len(found.would_move)
    if not count:
        yield "in a rebalance now nothing would move"
        return
    yield f"in a rebalance now {count} partition{'' if count == 1 else 's'} would move:"
    for move in found.would_move[:MOVES_SHOWN]:
        source = "nobody" if move.source is None else names.get(move.source, move.source)
        yield f"  {move.topic}-{move.partition}: {source} -> {names.get(move.target, move.target)}"
    if count > MOVES_SHOWN:
        yield f"  and {count - MOVES_SHOWN} more: see --json"
