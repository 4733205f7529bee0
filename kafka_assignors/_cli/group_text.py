"""How an explained group looks on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka_assignors._cli.group_parts import (
    balance_line,
    coordinator_lines,
    fitted,
    generations,
    lag_cell,
    lag_lines,
    moves_lines,
    problem_lines,
    when,
    wrapped,
)
from kafka_assignors._cli.output import count, filled
from kafka_assignors._common.strategies import STICKY
from kafka_assignors._common.words import first_of, partitions_in_words
from kafka_assignors.groups import ExplainedConsumerGroup

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_assignors._groups.account import GroupAccount, MemberAccount
    from kafka_assignors._groups.lag import GroupLag
    from kafka_assignors.groups._explain import ExplainedClassicGroup

CLIENT_NAMES: Final[Mapping[str, str]] = {
    "java": "Java (or this library)",
    "librdkafka": "librdkafka",
    "kafka-python": "kafka-python's own class",
    "aiokafka": "aiokafka's own class",
}
"""What to call clients that lead."""

_NAMED: Final = 10


def explained_lines(explained: ExplainedClassicGroup | ExplainedConsumerGroup) -> Iterator[str]:
    if isinstance(explained, ExplainedConsumerGroup):
        return _epochs_lines(explained)
    return _classic_lines(explained)


def _classic_lines(explained: ExplainedClassicGroup) -> Iterator[str]:
    group, lag = explained.account, explained.lag
    names = {account.member_id: account.name for account in group.members}
    if group.generation >= 0:
        yield f"{group.group_id}: {explained.state}, generation {group.generation}"
    else:
        yield f"{group.group_id}: {explained.state}; no record of a generation is left"
    yield from coordinator_lines(explained.coordinator)
    if group.leader:
        yield f"leader: {names.get(group.leader, group.leader)}"
    if group.strategy:
        yield from wrapped(
            f"strategy: {group.strategy}, which all members know and most preferred; what else they know,"
            " the coordinator does not say"
        )
    yield f"record: {group.record_bytes:,} bytes of {group.record_limit:,} that it may have"
    yield from _joining(explained)
    yield from _why(explained)
    if group.members:
        yield ""
        subscriptions = {account.topics for account in group.members}
        if len(subscriptions) == 1:
            yield from wrapped(f"all members subscribe to {', '.join(*subscriptions) or 'nothing'}")
        new = explained.joining.new if explained.joining else ()
        yield from _members(group, lag, new, subscriptions=len(subscriptions) > 1)
        yield ""
        yield balance_line(group)
        if explained.joining is None:
            yield from _would_move(group, names)
    yield ""
    yield from lag_lines(lag, names)
    yield from problem_lines(explained.problems)


def _joining(explained: ExplainedClassicGroup) -> Iterator[str]:
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


def _why(explained: ExplainedClassicGroup) -> Iterator[str]:
    """Why the group rebalanced last."""
    for last in explained.rebalances[-1:]:
        ended = f"{generations(last)}: {when(last.time_ms)}"
        if last.seconds is None:
            yield from wrapped(f"{ended}; no record of one before it is left in the log")
            return
        yield f"{ended}, {last.seconds:.1f} s after the one before"
        yield from (f"  {change.text}" for change in last.changes)
        for words in last.advice:
            yield from filled(f"{words.title}: {words.meaning} {words.todo}", "    ", "    ")


def _members(
    found: GroupAccount, lag: GroupLag, new: Sequence[MemberAccount], *, subscriptions: bool
) -> Iterator[str]:
    """The members of the last generation, and new ones, of which only the coordinator says something."""
    members, lags = [*found.members, *new], lag.by_member()
    timeouts = {(account.session_timeout_ms, account.rebalance_timeout_ms) for account in found.members}
    if len(timeouts) == 1 and all(min(pair) >= 0 for pair in timeouts):
        ((session, poll),) = timeouts
        yield f"session.timeout.ms is {session:,}, max.poll.interval.ms {poll:,}"
    differ = len(timeouts) > 1
    columns = {
        "member": [f"{account.name}{' (leads)' if account.leads else ''}" for account in members],
        "host": [account.host for account in members],
        "rack": [account.rack or "-" for account in members] if any(one.rack for one in members) else [],
        "topics": [", ".join(account.topics) for account in members] if subscriptions else [],
        "session s": [_seconds(account.session_timeout_ms) for account in members] if differ else [],
        "max poll s": [_seconds(account.rebalance_timeout_ms) for account in members] if differ else [],
        "had": [str(len(account.claims)) if account.claims else "-" for account in members],
        "has": ["-" if account in new else str(len(account.assignment)) for account in members],
        "lag": [lag_cell(lags.get(account.member_id)) for account in members],
        "partitions": ["none yet" if account in new else account.partitions for account in members],
    }
    yield from fitted(
        columns,
        left={"member", "host", "rack", "topics", "partitions"},
        cut=("partitions", "topics", "host", "member"),
    )


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
        yield from moves_lines(found.would_move, names)
    if found.would_move and found.strategy in STICKY:
        yield from wrapped(
            "as the assignors of this library plan it; other clients balance as well, and may move others",
            2,
        )
    if found.strategy == "range" and any(account.rack for account in found.members):
        yield "  members name racks, which are left out of account"


def _by_client(found: GroupAccount) -> str:
    """How many would move by each client that could lead."""
    return ", ".join(
        f"{CLIENT_NAMES[client]} {'is not known' if moves is None else len(moves) or 'none'}"
        for client, moves in found.predictions.items()
    )


def _epochs_lines(found: ExplainedConsumerGroup) -> Iterator[str]:
    """A group of KIP-848."""
    group, account, lag = found.group, found.account, found.lag
    names = {member.member_id: member.name for member in account.members}
    assignment = (
        ""
        if group.epoch == group.assignment_epoch
        else f", whose assignment is of epoch {group.assignment_epoch}"
    )
    yield f"{group.group_id}: {group.state}, epoch {group.epoch}{assignment} (KIP-848)"
    yield from coordinator_lines(found.coordinator)
    if group.assignor:
        yield f"assignor of the coordinator: {group.assignor}"
    if found.seen_seconds:
        yield f"it has been on its way for {found.seen_seconds:.0f} s at least"
    if group.members:
        yield ""
        yield from _epoch_members(found)
        yield from _behind(found)
        yield ""
        yield balance_line(account)
        yield from _moving(account, names)
        yield ""
    yield from lag_lines(lag, names)
    yield from problem_lines(found.problems)


def _epoch_members(found: ExplainedConsumerGroup) -> Iterator[str]:
    members = [*zip(found.account.members, found.group.members, strict=True)]
    subscriptions = {(member.topics, member.expression) for _, member in members}
    if len(subscriptions) == 1:
        yield from wrapped(f"all members subscribe to {_subscription(*next(iter(subscriptions)))}")
    classic = any(member.speaks == "classic" for _, member in members)
    lags = found.lag.by_member()
    racks = any(member.rack for _, member in members)
    subscribed = [_subscription(member.topics, member.expression) for _, member in members]
    yield from fitted(
        {
            "member": [known.name for known, _ in members],
            "host": [member.host for _, member in members],
            "rack": [member.rack or "-" for _, member in members] if racks else [],
            "protocol": [member.speaks or "-" for _, member in members] if classic else [],
            "topics": subscribed if len(subscriptions) > 1 else [],
            "epoch": ["away" if member.epoch < 0 else str(member.epoch) for _, member in members],
            "has": [str(len(member.assignment)) for _, member in members],
            "to have": [str(len(member.target)) for _, member in members],
            "lag": [lag_cell(lags.get(member.member_id)) for _, member in members],
            "partitions": [partitions_in_words(member.assignment) for _, member in members],
        },
        left={"member", "host", "rack", "protocol", "topics", "partitions"},
        cut=("partitions", "topics", "host", "member"),
    )


def _subscription(topics: Sequence[str], expression: str | None) -> str:
    matching = [] if expression is None else [f"what matches {expression}"]
    return " and ".join([", ".join(topics)] * bool(topics) + matching) or "nothing"


def _behind(found: ExplainedConsumerGroup) -> Iterator[str]:
    epoch = found.group.epoch
    for one in found.behind:
        words = [f"is at epoch {one.epoch} of {epoch}"] if one.epoch < epoch else []
        if one.lets_go:
            words.append(f"has yet to revoke {partitions_in_words(one.lets_go)}")
        if one.takes:
            words.append(f"has yet to get {partitions_in_words(one.takes)}")
        if one.waits_for:
            has = "has" if len(one.waits_for) == 1 else "have"
            words.append(f"which {', '.join(one.waits_for)} {has} still")
        yield from wrapped(f"{one.member} {', '.join(words)}", 2)


def _moving(account: GroupAccount, names: dict[str, str]) -> Iterator[str]:
    if not account.would_move:
        yield "all have what the coordinator has decided: nothing is to move"
        return
    verb = "is" if len(account.would_move) == 1 else "are"
    yield f"{count(len(account.would_move), 'partition')} {verb} to move:"
    yield from moves_lines(account.would_move, names)
