"""A group of KIP-848, explained by what its coordinator describes."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from kafka_assignors._cluster.groups import EpochGroup, EpochMember
from kafka_assignors._groups.account import Behind, Epochs, GroupAccount, MemberAccount
from kafka_assignors._groups.explanation import Explanation, member_names, plan_now
from kafka_assignors._groups.moved import OwnerMove
from kafka_assignors._groups.problems import Problem, find_problems, have, in_order

SETTLED: Final = frozenset({"Stable", "Empty", "Dead"})
"""The states in which such a group has nothing to do."""


def explain_epochs(
    group: EpochGroup,
    topics: Mapping[str, Collection[int]],
    *,
    committed: Collection[str] = (),
    seen_seconds: float = 0.0,
) -> Explanation:
    """Explain such a group by its newest description; see `explain`.

    The account's generation is the epoch of the assignment. What would move is what the coordinator has
    decided and is not done yet.
    """
    names = member_names(group.members)
    matched = _matched(group.members)
    accounts = [_account(member, names[member.member_id], matched) for member in group.members]
    best = plan_now(accounts, topics, group.assignment_epoch)
    account = GroupAccount(
        group_id=group.group_id,
        generation=group.assignment_epoch,
        strategy=(group.assignor or None) if group.members else None,
        members=tuple(accounts),
        loads={one.member_id: len(one.assignment) for one in accounts},
        best_loads=tuple(sorted(int(load) for load in best.loads)),
        would_move=_pending(group.members),
    )
    behind = tuple(_behind(group, names))
    problems = [*find_problems(account, topics, committed)]
    if group.state not in SETTLED:
        problems = [one for one in problems if one.kind not in {"uneven", "nothing to do"}]
        problems += _about_the_way(group, behind, seen_seconds)
    return Explanation(
        account=account,
        problems=in_order(problems),
        epochs=Epochs(
            epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            assignor=group.assignor,
            seen_seconds=seen_seconds,
            behind=behind,
            members=group.members,
        ),
    )


def _matched(members: Sequence[EpochMember]) -> dict[str | None, frozenset[str]]:
    """By expression, the topics of which its members are to have something: no others are told."""
    found: dict[str | None, set[str]] = defaultdict(set)
    for member in members:
        found[member.expression].update(topic for topic, _ in member.target)
    return {expression: frozenset(topics) for expression, topics in found.items() if expression is not None}


def _account(member: EpochMember, name: str, matched: Mapping[str | None, frozenset[str]]) -> MemberAccount:
    return MemberAccount(
        name=name,
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.host,
        instance_id=member.instance_id,
        rack=member.rack,
        topics=tuple(sorted({*member.topics, *matched.get(member.expression, ())})),
        assignment=member.assignment,
    )


def _pending(members: Sequence[EpochMember]) -> tuple[OwnerMove, ...]:
    owner = {one: member.member_id for member in members for one in member.assignment}
    return tuple(
        OwnerMove(*one, source=owner.get(one), target=member.member_id)
        for member in members
        for one in sorted(member.target - member.assignment)
    )


def _behind(group: EpochGroup, names: Mapping[str, str]) -> Iterator[Behind]:
    owners: dict[tuple[str, int], list[str]] = defaultdict(list)
    for member in group.members:
        for one in member.assignment:
            owners[one].append(member.member_id)
    for member in group.members:
        takes = member.target - member.assignment
        if member.epoch >= group.epoch and member.target == member.assignment:
            continue
        others = {owner for one in takes for owner in owners[one] if owner != member.member_id}
        yield Behind(
            member=names[member.member_id],
            epoch=member.epoch,
            lets_go=member.assignment - member.target,
            takes=takes,
            waits_for=tuple(sorted(names[other] for other in others)),
        )


def _about_the_way(group: EpochGroup, behind: Sequence[Behind], seconds: float) -> Iterator[Problem]:
    def problem(text: str, advice: str) -> Problem:
        text = f"{text}, for {seconds:.0f} s at least"
        return Problem(kind="behind", severity="error", text=text, advice=advice)

    if group.assignment_epoch < group.epoch:
        yield problem(
            f"the group is at epoch {group.epoch}, and its assignment at {group.assignment_epoch}",
            "the coordinator has yet to work out an assignment: look at its log",
        )
    if holders := [one.member for one in behind if one.lets_go]:
        yield problem(
            f"{have(holders)} partitions that others are to have",
            "a member revokes them in its next poll, when its listener has returned: look at what"
            " it does. It is fenced after its max.poll.interval.ms",
        )
    elif late := [one.member for one in behind if one.epoch < group.epoch]:
        yield problem(
            f"{have(late)} yet to take epoch {group.epoch}",
            "a member takes it at its next heartbeat (group.consumer.heartbeat.interval.ms, 5 s); one"
            " that is dead is fenced after the session timeout (group.consumer.session.timeout.ms, 45 s)",
        )
    elif waiting := [one.member for one in behind]:
        yield problem(
            f"{have(waiting)} yet to take partitions",
            "a member takes them at its next heartbeat (group.consumer.heartbeat.interval.ms, 5 s)",
        )
