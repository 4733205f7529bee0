"""A classic group in a rebalance: who has joined, who may not have, and until when they are waited for.

DescribeGroups says who is a member, and nothing of who has joined. docs/coordinator.md ("A group that is
stuck") has what follows all the same, and why. The coordinator waits for as long as the longest rebalance
timeout (`max.poll.interval.ms`) of its members. When it began is not known: not before the last generation
was written, and not after the group was seen in that state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, Literal, NamedTuple

from kafka_assignors._cluster.groups import ClassicGroup, EpochGroup
from kafka_assignors._common.plain import fields_of
from kafka_assignors._common.words import first_of
from kafka_assignors._groups.account import MemberAccount
from kafka_assignors._groups.explanation import read_accounts
from kafka_assignors._groups.problems import Problem
from kafka_assignors._wire.offsets_topic import GroupMetadataValue

REBALANCING: Final = frozenset({"PreparingRebalance", "CompletingRebalance"})
"""The states of a classic group in a rebalance."""

_NAMED: Final = 5


class Look(NamedTuple):
    """A group as it was described, and when, in milliseconds since 1970."""

    time_ms: int
    group: ClassicGroup | EpochGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class OngoingRebalance:
    """A rebalance that is on. Members are named as in `MemberAccount.name`.

    In "PreparingRebalance" members are waited for, in "CompletingRebalance" the leader is. It began after the
    last generation, which was written at `last_generation_ms` since 1970; None if there was none. It is
    waited for until `until_ms` at the latest, None if no member's rebalance timeout is known. `patience_ms`
    is the longest of these timeouts, of the last generation's members that are there still. It is `unbroken`
    if surely no round was broken off since that generation. Otherwise nothing is known of who has joined
    while members are waited for. `new` are members that were in no generation, `gone` are members of that
    generation that are no members any more.
    """

    state: Literal["PreparingRebalance", "CompletingRebalance"]
    seen_seconds: float
    last_generation_ms: int | None
    until_ms: int | None
    patience_ms: int | None
    unbroken: bool
    joined: tuple[str, ...]
    unsure: tuple[str, ...]
    new: tuple[MemberAccount, ...]
    gone: tuple[str, ...]
    leader: str | None

    @property
    def missing(self) -> str | None:
        """The one that has not joined, if it can be no other, unless a new one has yet to come back."""
        return self.unsure[0] if self.unbroken and len(self.unsure) == 1 else None

    def to_json(self) -> dict[str, Any]:
        return fields_of(self, "missing")


def find_joining(
    looks: Sequence[Look], last: GroupMetadataValue | None, last_ms: int | None
) -> OngoingRebalance | None:
    """What is known of the rebalance of a classic group that is on; None if none is.

    The group was described at least once, the newest last; `last` is its newest record.
    """
    now = looks[-1]
    if not isinstance(now.group, ClassicGroup) or now.group.state not in REBALANCING:
        return None
    *_, since = takewhile(lambda look: look.group.state == now.group.state, reversed(looks))
    before = {member.member_id: member for member in last.members} if last is not None else {}
    there = {member.member_id: member for member in now.group.value.members}
    accounts = read_accounts(now.group.value)
    names = {account.member_id: account.name for account in accounts}
    old = [member for member_id, member in before.items() if member_id in there]
    patience = max((member.rebalance_timeout for member in old), default=-1)
    completing = now.group.state == "CompletingRebalance"
    unbroken = any(one.assignment and there[one.member_id].assignment == one.assignment for one in old)
    joined = {member_id for member_id in there if completing or (unbroken and member_id not in before)}
    instances = {member.group_instance_id for member in there.values()} - {None}
    gone = [
        member.group_instance_id or f"{member.client_id}{member.client_host}"
        for member_id, member in before.items()
        if member_id not in there and member.group_instance_id not in instances
    ]
    known = {member.group_instance_id for member in before.values()} - {None}
    new = [
        one
        for one in accounts
        if last is not None and one.member_id not in before and one.instance_id not in known
    ]
    return OngoingRebalance(
        state="CompletingRebalance" if completing else "PreparingRebalance",
        seen_seconds=(now.time_ms - since.time_ms) / 1000,
        last_generation_ms=last_ms,
        until_ms=since.time_ms + patience if patience >= 0 else None,
        patience_ms=patience if patience >= 0 else None,
        unbroken=unbroken,
        joined=tuple(sorted(names[member_id] for member_id in joined)),
        unsure=tuple(sorted(names[member_id] for member_id in there.keys() - joined)),
        new=tuple(sorted(new, key=lambda account: account.name)),
        gone=tuple(sorted(gone)),
        leader=None if last is None or last.leader is None else names.get(last.leader),
    )


def joining_problem(found: OngoingRebalance) -> Problem:
    """That the group rebalances, and whose doing it may be."""
    seconds = f"for {found.seen_seconds:.0f} s at least"
    if found.state == "CompletingRebalance":
        return Problem(
            kind="rebalancing",
            severity="error",
            text=f"all members have joined, and {seconds} the assignment of the leader"
            f" {f'({found.leader}) ' if found.leader else ''}is waited for",
            advice="look at the leader's log: its assignor hangs or fails, or it cannot reach the"
            " coordinator",
        )
    others = (
        "a new member has yet to come back with its id, or the first rebalance of an empty group is"
        " delayed (group.initial.rebalance.delay.ms)"
    )
    who = (
        f"{found.missing} has not joined, unless a new member has yet to come back with its id"
        if found.missing is not None
        else f"one or more of {first_of(found.unsure, _NAMED)} have not joined"
        if found.unbroken
        else f"some of {first_of(found.unsure, _NAMED)} have not joined, or {others}"
        if found.unsure
        else others
    )
    return Problem(
        kind="rebalancing",
        severity="error",
        text=f"a rebalance has been on {seconds}: {who}",
        advice="look at what such a member does: it hangs, works on records for long, or was stopped and its"
        " session is not over yet. A member that does not come within its max.poll.interval.ms is removed",
    )
