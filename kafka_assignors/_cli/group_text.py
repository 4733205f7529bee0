"""How groups, and what their rolling restarts cost, look on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_assignors._cli.group_parts import (
    fitted,
    generations,
    lag_cell,
    lag_lines,
    seconds_cells,
    when,
    wrapped,
)
from kafka_assignors._cli.output import count, filled, table
from kafka_assignors._common.strategies import STICKY
from kafka_assignors._common.words import first_of, partitions_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_assignors._cluster.groups import EpochMember
    from kafka_assignors._groups.account import Epochs, GroupAccount
    from kafka_assignors._groups.moved import OwnerMove
    from kafka_assignors._groups.problems import Problem
    from kafka_assignors.groups._explain import ExplainedGroup
    from kafka_assignors.groups._status import GroupStatus
    from kafka_assignors.groups._what_if import RestartCost, RollingRestarts

CLIENT_NAMES: Final[Mapping[str, str]] = {
    "java": "Java (or this library)",
    "librdkafka": "librdkafka",
    "kafka-python": "kafka-python's own class",
    "aiokafka": "aiokafka's own class",
}
"""What to call clients that lead."""

_NAMED: Final = 10
_MOVES_SHOWN: Final = 20  # all of them are in the JSON


def explained_lines(explained: ExplainedGroup) -> Iterator[str]:
    account, joining = explained.account, explained.joining
    names = {member.member_id: member.name for member in account.members}
    yield from _head(explained, names)
    if account.members:
        yield ""
        yield from _members(explained)
        if explained.epochs is not None:
            yield from _behind(explained.epochs)
        yield ""
        best = (
            "the best possible"
            if account.imbalance == account.best_imbalance
            else f"{account.best_imbalance} is possible"
        )
        yield f"loads differ by {account.imbalance}: {best}"
        if explained.epochs is not None:
            yield from _moving(account, names)
        elif joining is None:
            yield from _would_move(account, names)
    yield ""
    yield from lag_lines(explained.lag, names)
    yield from _problems(explained.problems)


def _head(explained: ExplainedGroup, names: Mapping[str, str]) -> Iterator[str]:
    """Its state, its coordinator, and what was decided there last."""
    account, epochs, coordinator = explained.account, explained.epochs, explained.coordinator
    if epochs is not None:
        version = f", epoch {epochs.epoch}"
        if epochs.epoch != epochs.assignment_epoch:
            version += f", whose assignment is of epoch {epochs.assignment_epoch}"
        version += " (KIP-848)"
    elif account.generation >= 0:
        version = f", generation {account.generation}"
    else:
        version = "; no record of a generation is left"
    yield f"{account.group_id}: {explained.state}{version}"
    yield from wrapped(
        f"coordinator: {coordinator}: the hash of the group's id, of"
        f" {count(coordinator.partitions, 'partition')}"
    )
    if epochs is not None:
        if epochs.assignor:
            yield f"assignor of the coordinator: {epochs.assignor}"
        if epochs.seen_seconds:
            yield f"it has been on its way for {epochs.seen_seconds:.0f} s at least"
        return
    if account.leader:
        yield f"leader: {names.get(account.leader, account.leader)}"
    if account.strategy:
        yield from wrapped(
            f"strategy: {account.strategy}, which all members know and most preferred; what else they know,"
            " the coordinator does not say"
        )
    yield f"record: {account.record_bytes:,} bytes of {account.record_limit:,} that it may have"
    yield from _joining(explained)
    yield from _why(explained)


def _joining(explained: ExplainedGroup) -> Iterator[str]:
    found = explained.joining
    if found is None:
        return
    began = (
        "it is the group's first"
        if found.last_generation_ms is None
        else f"it began after {when(found.last_generation_ms)}, when the last generation was written"
    )
    yield from wrapped(
        f"a rebalance is on, for {found.seen_seconds:.0f} s at least; {began}; what follows is from before it"
    )
    if found.joined:
        yield from wrapped(f"have joined: {first_of(found.joined, _NAMED)}", 2)
    if found.missing is not None:
        yield from wrapped(
            f"has not joined: {found.missing}, unless a new member has yet to come back with its id", 2
        )
    elif found.unsure:
        who = (
            "one or more have not joined, and the coordinator does not say who"
            if found.unbroken
            else "the coordinator does not say who has joined"
        )
        yield from wrapped(f"{who}, of: {first_of(found.unsure, _NAMED)}", 2)
    if found.gone:
        yield from wrapped(f"are gone since the last generation: {first_of(found.gone, _NAMED)}", 2)
    if found.state == "CompletingRebalance":
        yield from wrapped(f"the leader ({found.leader or 'not known'}) has yet to send the assignment", 2)
    if found.until_ms is None or found.patience_ms is None:
        yield from wrapped("until when they are waited for is not known: no record has their timeouts", 2)
    else:
        yield from wrapped(
            f"waited for until {when(found.until_ms)} at the latest, unless a new member allows longer: the"
            f" longest max.poll.interval.ms is {found.patience_ms:,}; then who is missing is removed",
            2,
        )


def _why(explained: ExplainedGroup) -> Iterator[str]:
    for last in explained.rebalances[-1:]:
        ended = f"{generations(last)}: {when(last.time_ms)}"
        if last.seconds is None:
            yield from wrapped(f"{ended}; no record of one before it is left in the log")
            return
        yield f"{ended}, {last.seconds:.1f} s after the one before"
        yield from (f"  {change.text}" for change in last.changes)
        for words in last.advice:
            yield from filled(f"{words.title}: {words.meaning} {words.todo}", "    ", "    ")


def _members(explained: ExplainedGroup) -> Iterator[str]:
    """The members of the last generation, and new ones, of which only the coordinator says something."""
    known, lags = explained.account.members, explained.lag.by_member()
    new = explained.joining.new if explained.joining else ()
    modern = explained.epochs.members if explained.epochs else ()
    members = [*known, *new]
    topics = [_subscription(one) for one in modern] or [", ".join(account.topics) for account in members]
    same = len({*topics[: len(known)]}) == 1
    if same:
        yield from wrapped(f"all members subscribe to {topics[0] or 'nothing'}")
    timeouts = {(account.session_timeout_ms, account.rebalance_timeout_ms) for account in known}
    if len(timeouts) == 1 and all(min(pair) >= 0 for pair in timeouts):
        ((session, poll),) = timeouts
        yield f"session.timeout.ms is {session:,}, max.poll.interval.ms {poll:,}"
    differ = len(timeouts) > 1
    mixed = any(one.protocol == "classic" for one in modern)
    columns: dict[str, list[str]] = {
        "member": [f"{account.name}{' (leads)' if account.leads else ''}" for account in members],
        "host": [account.host for account in members],
        "rack": [account.rack or "-" for account in members] if any(one.rack for one in members) else [],
        "protocol": [one.protocol or "-" for one in modern] if mixed else [],
        "topics": [] if same else topics,
        "session s": [_seconds(account.session_timeout_ms) for account in members] if differ else [],
        "max poll s": [_seconds(account.rebalance_timeout_ms) for account in members] if differ else [],
        "epoch": ["away" if one.epoch < 0 else str(one.epoch) for one in modern],
        "had": [] if modern else [str(len(account.claims)) if account.claims else "-" for account in members],
        "has": [str(len(account.assignment)) for account in known] + ["-"] * len(new),
        "to have": [str(len(one.target)) for one in modern],
        "lag": [lag_cell(lags.get(account.member_id)) for account in members],
        "partitions": [account.partitions for account in known] + ["none yet"] * len(new),
    }
    yield from fitted(
        columns,
        left={"member", "host", "rack", "protocol", "topics", "partitions"},
        cut=("partitions", "topics", "host", "member"),
    )


def _subscription(member: EpochMember) -> str:
    matching = [] if member.expression is None else [f"what matches {member.expression}"]
    return " and ".join([", ".join(member.topics)] * bool(member.topics) + matching) or "nothing"


def _seconds(milliseconds: int) -> str:
    return "-" if milliseconds < 0 else f"{milliseconds / 1000:g}"


def _would_move(found: GroupAccount, names: Mapping[str, str]) -> Iterator[str]:
    if found.strategy not in {"range", "roundrobin", "sticky", "cooperative-sticky"}:
        return
    known = {client: moves for client, moves in found.predictions.items() if moves is not None}
    client = found.leader_client
    if len(known) == len(found.predictions) and len({*known.values()}) <= 1:
        by = ""  # all clients would do the same
    elif client is None:
        yield from wrapped(
            "in a rebalance now so many partitions would move, by the client that leads, which is not known"
            f" (--leader-client): {_by_client(found)}"
        )
        return
    else:
        yield from wrapped(
            f"its leader is taken for {CLIENT_NAMES[client]}, by what it sent; by the client that leads, so"
            f" many partitions would move now: {_by_client(found)}"
        )
        if client not in known:
            return
        by = f", by {CLIENT_NAMES[client]}"
    if not found.would_move:
        yield f"in a rebalance now nothing would move{by}"
    else:
        yield f"in a rebalance now {count(len(found.would_move), 'partition')} would move{by}:"
        yield from _moves(found.would_move, names)
    if found.would_move and found.strategy in STICKY:
        yield from wrapped(
            "as the assignors of this library plan it; other clients balance as well, and may move others",
            2,
        )
    if found.strategy == "range" and any(account.rack for account in found.members):
        yield "  members name racks, which are left out of account"


def _by_client(found: GroupAccount) -> str:
    return ", ".join(
        f"{CLIENT_NAMES[client]} {'is not known' if moves is None else len(moves) or 'none'}"
        for client, moves in found.predictions.items()
    )


def _behind(found: Epochs) -> Iterator[str]:
    for one in found.behind:
        words = [f"is at epoch {one.epoch} of {found.epoch}"] if one.epoch < found.epoch else []
        if one.lets_go:
            words.append(f"has yet to revoke {partitions_in_words(one.lets_go)}")
        if one.takes:
            words.append(f"has yet to get {partitions_in_words(one.takes)}")
        if one.waits_for:
            has = "has" if len(one.waits_for) == 1 else "have"
            words.append(f"which {', '.join(one.waits_for)} {has} still")
        yield from wrapped(f"{one.member} {', '.join(words)}", 2)


def _moving(account: GroupAccount, names: Mapping[str, str]) -> Iterator[str]:
    if not account.would_move:
        yield "all have what the coordinator has decided: nothing is to move"
        return
    verb = "is" if len(account.would_move) == 1 else "are"
    yield f"{count(len(account.would_move), 'partition')} {verb} to move:"
    yield from _moves(account.would_move, names)


def _moves(moves: Sequence[OwnerMove], names: Mapping[str, str]) -> Iterator[str]:
    for move in moves[:_MOVES_SHOWN]:
        source, target = (names.get(one or "", one or "nobody") for one in (move.source, move.target))
        yield f"  {move.topic}-{move.partition}: {source} -> {target}"
    if len(moves) > _MOVES_SHOWN:
        yield f"  and {len(moves) - _MOVES_SHOWN:,} more: see --json"


def _problems(problems: Sequence[Problem]) -> Iterator[str]:
    if problems:
        yield ""
    for problem in problems:
        yield from wrapped(f"{problem.severity}: {problem.text}")
        yield from filled(problem.advice, "  ", "  ")


def listed_lines(groups: Sequence[GroupStatus]) -> Iterator[str]:
    """Groups, the worst first, below how many there are."""
    errors, warnings = (
        sum(any(problem.severity == severity for problem in group.problems) for group in groups)
        for severity in ("error", "warning")
    )
    lag = sum(group.lag.total for group in groups if group.lag is not None)
    unknown = sum(group.lag_known is False for group in groups)
    more = f"; that of {count(unknown, 'group')} is not known, or not all of it" if unknown else ""
    yield (
        f"{count(len(groups), 'group')}, {errors:,} with errors, {warnings:,} with warnings; lag:"
        f" {count(lag, 'record')}{more}"
    )
    if groups:
        yield ""
        yield from fitted(
            {
                "group": [group.group_id for group in groups],
                "type": [group.kind for group in groups],
                "state": [group.state for group in groups],
                "members": ["?" if group.members is None else f"{group.members:,}" for group in groups],
                "lag": [
                    "?" if group.lag is None and group.lag_known is False else lag_cell(group.lag)
                    for group in groups
                ],
                "lag s": seconds_cells([group.lag for group in groups]),
                "problem": [_worst(group) for group in groups],
            },
            left={"group", "type", "state", "problem"},
            cut=("problem", "group"),
        )


def _worst(group: GroupStatus) -> str:
    """Its worst problem, and how many more there are; a note is none."""
    wrong = [problem for problem in group.problems if problem.severity != "note"]
    if not wrong:
        return ""
    more = f" (+{len(wrong) - 1})" if len(wrong) > 1 else ""
    return f"{wrong[0].severity}{more}: {wrong[0].text}"


def restarts_lines(found: RollingRestarts) -> Iterator[str]:
    yield (
        f"a rolling restart of {count(found.members, 'member')}, each"
        f" {'killed' if found.crash else 'closed'} and {found.down_seconds:g} s away;"
        f" {count(found.partitions, 'partition')}; session.timeout.ms {found.session_timeout_ms}"
    )
    yield ""
    rows = [["assignor", "members", "generations", "moved", "partition-s", "longest s", "took s"]]
    for one in found.costs:
        cost = one.cost
        seconds = (f"{value:.1f}" for value in (cost.unowned, cost.longest, cost.seconds))
        rows.append([one.assignor, _membership(one), str(cost.generations), str(cost.moved), *seconds])
    yield from table(rows, left=(0, 1))
    yield ""
    unowned, moved = found.least_unowned, found.least_moved
    yield f"least time without an owner: {unowned.assignor}, {_membership(unowned)} members"
    yield f"least partitions moved: {moved.assignor}, {_membership(moved)} members"
    yield "a partition-second is one partition without an owner for one second"


def _membership(one: RestartCost) -> str:
    return "static" if one.static else "dynamic"
