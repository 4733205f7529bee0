"""How an explained group looks on a terminal."""

from __future__ import annotations

import textwrap
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from kafka_assignors._cli.output import escaped, table
from kafka_assignors._groups.advice import reason_words
from kafka_assignors._groups.reasons import HAND_OVER
from kafka_assignors.assignors._membership import by_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_assignors._groups.account import GroupAccount
    from kafka_assignors._groups.explanation import Explanation
    from kafka_assignors._groups.snapshots import Partitions
    from kafka_assignors.coordinator._live import LiveGroup, NotedChange

MOVES_SHOWN: Final = 20
"""How many partitions that would move are listed; all of them are in the JSON."""

_LETTERS: Final = 60  # of a member's partitions or topics
_WIDTH: Final = 100


def explained_lines(live: LiveGroup, found: Explanation, rebalances: Sequence[NotedChange]) -> Iterator[str]:
    """All that there is to say of a group."""
    group = found.account
    names = {account.member_id: account.name for account in group.members}
    yield f"{live.group_id}: {live.state}, generation {group.generation}"
    count = live.coordinator.partitions
    yield f"coordinator: {live.coordinator}: the hash of the group's id, of {count} partitions"
    if group.leader:
        yield f"leader: {names.get(group.leader, group.leader)}"
    if group.strategy:
        yield (
            f"strategy: {group.strategy}, which all members know and most preferred; what else they know, the"
            " coordinator does not tell"
        )
    yield f"record: {group.record_bytes:,} bytes of {group.record_limit:,} that it may have"
    if live.state in {"PreparingRebalance", "CompletingRebalance"}:
        yield "a rebalance is on: what follows is from before it"
    yield from _why(rebalances)
    if group.members:
        yield ""
        subscriptions = {account.topics for account in group.members}
        if len(subscriptions) == 1:
            yield f"all members subscribe to {', '.join(*subscriptions) or 'nothing'}"
        yield from _members(group, subscriptions=len(subscriptions) > 1)
        yield ""
        best = (
            "the best possible"
            if group.imbalance == group.best_imbalance
            else f"{group.best_imbalance} is possible"
        )
        yield f"loads differ by {group.imbalance}: {best}"
        yield from _would_move(group, names)
    if found.problems:
        yield ""
    for problem in found.problems:
        yield from textwrap.wrap(
            escaped(f"{problem.severity}: {problem.text}"), _WIDTH, subsequent_indent="  "
        )
        yield from textwrap.wrap(problem.advice, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def partitions_of(partitions: Partitions) -> str:
    """Partitions in short: "orders 0 1 4, events 2"."""
    listed = by_topic(partitions).items()
    return ", ".join(f"{topic} {' '.join(map(str, ids))}" for topic, ids in listed) or "none"


def _why(rebalances: Sequence[NotedChange]) -> Iterator[str]:
    """Why the group rebalanced last: of all generations of that rebalance."""
    for last in reversed(rebalances):
        when = datetime.fromtimestamp(last.time_ms / 1000, tz=UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        if last.seconds is None:
            yield f"generation {last.generation}: {when}; no record of one before it is left in the log"
            return
        yield f"generation {last.generation}: {when}, {last.seconds:.1f} s after the one before"
        yield from (f"  {change.text}" for change in last.changes)
        for kind in dict.fromkeys(change.kind for change in last.changes if change.kind != HAND_OVER):
            words = reason_words(kind)
            yield from textwrap.wrap(
                f"{words.title}: {words.meaning} {words.todo}",
                _WIDTH,
                initial_indent="    ",
                subsequent_indent="    ",
            )
        if last.begins:
            return


def _members(found: GroupAccount, *, subscriptions: bool) -> Iterator[str]:
    racked = any(account.rack for account in found.members)
    columns = {
        "member": [f"{account.name}{' (leads)' if account.leads else ''}" for account in found.members],
        "host": [account.host for account in found.members],
        "rack": [account.rack or "-" for account in found.members] if racked else [],
        "topics": [_short(", ".join(account.topics)) for account in found.members] if subscriptions else [],
        "session s": [f"{account.session_timeout_ms / 1000:g}" for account in found.members],
        "max poll s": [f"{account.rebalance_timeout_ms / 1000:g}" for account in found.members],
        "had": [str(len(account.claims)) if account.claims else "-" for account in found.members],
        "has": [str(len(account.assignment)) for account in found.members],
        "partitions": [_short(partitions_of(account.assignment)) for account in found.members],
    }
    shown = {name: cells for name, cells in columns.items() if cells}
    texts = {"member", "host", "rack", "topics", "partitions"}
    yield from table(
        zip(*([name, *cells] for name, cells in shown.items()), strict=True),
        left=[number for number, name in enumerate(shown) if name in texts],
    )


def _short(text: str) -> str:
    text = escaped(text)
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 3]}..."


def _would_move(found: GroupAccount, names: dict[str, str]) -> Iterator[str]:
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
