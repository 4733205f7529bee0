"""How an explained group of KIP-848 looks on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka_assignors._cli.group_parts import (
    balance_line,
    coordinator_lines,
    fitted,
    lag_cell,
    lag_lines,
    moves_lines,
    partitions_of,
    problem_lines,
    wrapped,
)
from kafka_assignors._cli.output import count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_assignors._groups.account import GroupAccount
    from kafka_assignors._groups.epochs import Behind, EpochExplanation
    from kafka_assignors._groups.lag import GroupLag
    from kafka_assignors._groups.problems import Problem
    from kafka_assignors.coordinator._epochs import LiveEpochGroup


def epochs_lines(
    live: LiveEpochGroup, found: EpochExplanation, lag: GroupLag, problems: Sequence[Problem]
) -> Iterator[str]:
    """All that there is to say of a group."""
    group, account = found.group, found.account
    names = {member.member_id: member.name for member in account.members}
    assignment = (
        ""
        if group.epoch == group.assignment_epoch
        else f", whose assignment is of epoch {group.assignment_epoch}"
    )
    yield f"{group.group_id}: {group.state}, epoch {group.epoch}{assignment} (KIP-848)"
    yield from coordinator_lines(live.coordinator)
    if group.assignor:
        yield f"assignor of the coordinator: {group.assignor}"
    if found.seen_seconds:
        yield f"it has been on its way for {found.seen_seconds:.0f} s at least"
    if group.members:
        yield ""
        yield from _members(found, lag)
        for one in found.behind:
            yield from wrapped(_behind(one, group.epoch), 2)
        yield ""
        yield balance_line(account)
        yield from _moving(account, names)
        yield ""
    yield from lag_lines(lag, names)
    yield from problem_lines(problems)


def _members(found: EpochExplanation, lag: GroupLag) -> Iterator[str]:
    members = [*zip(found.account.members, found.group.members, strict=True)]
    subscriptions = {(member.topics, member.expression) for _, member in members}
    if len(subscriptions) == 1:
        yield from wrapped(f"all members subscribe to {_subscription(*next(iter(subscriptions)))}")
    classic = any(member.speaks == "classic" for _, member in members)
    lags = lag.by_member()
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
            "partitions": [partitions_of(member.assignment) for _, member in members],
        },
        left={"member", "host", "rack", "protocol", "topics", "partitions"},
        cut=("partitions", "topics", "host", "member"),
    )


def _subscription(topics: Sequence[str], expression: str | None) -> str:
    matching = [] if expression is None else [f"what matches {expression}"]
    return " and ".join([", ".join(topics)] * bool(topics) + matching) or "nothing"


def _behind(one: Behind, epoch: int) -> str:
    words = [f"is at epoch {one.epoch} of {epoch}"] if one.epoch < epoch else []
    if one.lets_go:
        words.append(f"has yet to revoke {partitions_of(one.lets_go)}")
    if one.takes:
        words.append(f"has yet to get {partitions_of(one.takes)}")
    if one.waits_for:
        words.append(f"which {', '.join(one.waits_for)} {'has' if len(one.waits_for) == 1 else 'have'} still")
    return f"{one.member} {', '.join(words)}"


def _moving(account: GroupAccount, names: dict[str, str]) -> Iterator[str]:
    if not account.would_move:
        yield "all have what the coordinator has decided: nothing is to move"
        return
    verb = "is" if len(account.would_move) == 1 else "are"
    yield f"{count(len(account.would_move), 'partition')} {verb} to move:"
    yield from moves_lines(account.would_move, names)
