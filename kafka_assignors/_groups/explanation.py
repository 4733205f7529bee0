"""A group explained: who is in it and has what, how good that is, and what is wrong with it.

All is worked out from the record that its coordinator keeps of it, and from what topics there are.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kafka_assignors._cluster.groups import EpochMember
from kafka_assignors._common.strategies import CLIENTS, STICKY, Client
from kafka_assignors._common.words import by_topic
from kafka_assignors._groups.account import RECORD_LIMIT, Epochs, GroupAccount, MemberAccount
from kafka_assignors._groups.classic import decode_members, flat
from kafka_assignors._groups.moved import OwnerMove
from kafka_assignors._groups.prediction import guess_client, predict
from kafka_assignors._groups.problems import Problem, find_problems
from kafka_assignors._groups.snapshots import SnapshotMember
from kafka_assignors._model.group import Group, Member
from kafka_assignors._model.plan import Plan
from kafka_assignors._wire.offsets_topic import (
    GroupMetadataValue,
    MemberMetadata,
    RecordError,
    batch_size,
    decode_assignment,
    decode_prior_assignment,
    decode_subscription,
    encode_group_metadata,
    group_metadata_key,
)
from kafka_assignors._wire.user_data import layout_of
from kafka_assignors.planners import plan_exact

CONSUMERS: Final = "consumer"
"""The protocol type of groups whose members are consumers; others may send each other anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A group, explained: who is in it, how good that is, and what is wrong, the worst first.

    `epochs` are of a group of KIP-848 alone.
    """

    account: GroupAccount
    problems: tuple[Problem, ...]
    epochs: Epochs | None = None


def explain(
    group_id: str,
    value: GroupMetadataValue,
    topics: Mapping[str, Collection[int]],
    *,
    committed: Collection[str] = (),
    record_limit: int = RECORD_LIMIT,
    leader_client: Client | None = None,
) -> Explanation:
    """Explain a group of the classic protocol by its newest record; of one of no consumers, who is in it.

    `committed` are the topics of which it has committed offsets. Without a `leader_client` its client is
    guessed.
    """
    listed = read_accounts(value)
    accounts = sorted(listed, key=lambda account: (account.client_id, account.member_id))
    best = plan_now(accounts, topics, value.generation)
    standbys = dict(zip(best.group.members.ids, best.group.standbys.tolist(), strict=True))
    accounts = [replace(account, stands_by=standbys[account.member_id]) for account in accounts]
    consumers = value.protocol_type == CONSUMERS
    client = leader_client or (guess_client(value) if consumers else None)
    before = {one: account.member_id for account in accounts for one in account.assignment}
    predictions = _predictions(value.protocol, listed, topics, before)
    would_move = predictions.get(client or "java") or ()
    if value.protocol in STICKY:
        assigned = best.assignments().items()
        would_move = _moved(before, {one: member for member, given in assigned for one in flat(given)})
    size = batch_size(group_metadata_key(group_id), encode_group_metadata(value))
    group_account = GroupAccount(
        group_id=group_id,
        generation=value.generation,
        strategy=value.protocol,
        leader=value.leader,
        members=tuple(accounts),
        loads={account.member_id: len(account.assignment) for account in accounts},
        best_loads=tuple(sorted(int(load) for load in best.loads[~best.group.standbys])),
        would_move=would_move,
        leader_client=client,
        predictions=predictions,
        record_bytes=size,
        record_limit=record_limit,
    )
    problems = find_problems(group_account, topics, committed) if consumers else ()
    return Explanation(account=group_account, problems=problems)


def read_accounts(value: GroupMetadataValue) -> list[MemberAccount]:
    """The members of a classic group as its record has them, in its order."""
    members, generations = decode_members(value)
    names = member_names(members)
    return [
        _account(value, sent, member, names[member.member_id], generation)
        for sent, member, generation in zip(value.members, members, generations, strict=True)
    ]


def member_names(members: Iterable[SnapshotMember | EpochMember]) -> dict[str, str]:
    """By member id, the shortest name of each member that is nobody else's: of its ids, client and host."""
    choices = {
        one.member_id: (one.instance_id or one.client_id, f"{one.client_id}{one.host}", one.member_id)
        for one in members
    }
    counts = Counter(name for names in choices.values() for name in names)
    return {
        member_id: next((name for name in names if counts[name] == 1), member_id)
        for member_id, names in choices.items()
    }


def _account(
    value: GroupMetadataValue, sent: MemberMetadata, member: SnapshotMember, name: str, generation: int
) -> MemberAccount:
    version, layout, unreadable, priority = -1, None, None, 0
    if value.protocol_type == CONSUMERS:
        try:
            subscription = decode_subscription(sent.subscription)
            version, unreadable = subscription.version, subscription.fault
            if prior := decode_prior_assignment(value.protocol, subscription.user_data):
                priority = prior.extra.priority
            if value.protocol == "sticky" and subscription.user_data:
                layout = layout_of(subscription.user_data)
        except RecordError as error:
            unreadable = str(error)
        try:
            decode_assignment(sent.assignment)
        except RecordError as error:
            unreadable = str(error)
    same = {**member._asdict(), "topics": tuple(sorted(member.topics)), "claims": flat(member.claims)}
    return MemberAccount(
        **same,
        name=name,
        leads=member.member_id == value.leader,
        version=version,
        layout=layout,
        claimed_generation=generation,
        priority=priority,
        unreadable=unreadable,
    )


def plan_now(
    accounts: Sequence[MemberAccount], topics: Mapping[str, Collection[int]], generation: int
) -> Plan:
    """The best that a leader could do if all joined again now."""
    members = [
        Member(
            member_id=account.member_id,
            instance_id=account.instance_id,
            topics=frozenset(account.topics),
            rack=account.rack,
            claims=by_topic(account.assignment),
            generation=generation,
            priority=account.priority,
        )
        for account in accounts
    ]
    return plan_exact(Group.of(topics, members))


def _predictions(
    strategy: str | None,
    accounts: Iterable[MemberAccount],
    topics: Mapping[str, Collection[int]],
    before: Mapping[tuple[str, int], str],
) -> dict[Client, tuple[OwnerMove, ...] | None]:
    """What would move by each client that could lead; nothing of strategies in which they do not differ."""
    if strategy not in {"range", "roundrobin"}:
        return {}
    members = [
        Member(member_id=one.member_id, instance_id=one.instance_id, topics=frozenset(one.topics))
        for one in accounts
    ]
    owners = {client: predict(strategy, members, topics, client) for client in CLIENTS}
    return {client: None if found is None else _moved(before, found) for client, found in owners.items()}


def _moved(
    before: Mapping[tuple[str, int], str], owners: Mapping[tuple[str, int], str]
) -> tuple[OwnerMove, ...]:
    return tuple(
        OwnerMove(*one, source=before.get(one), target=member)
        for one, member in sorted(owners.items())
        if before.get(one) != member
    )
