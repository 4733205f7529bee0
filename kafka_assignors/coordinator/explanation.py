"""A group explained: who is in it and has what, how good that is, and what is wrong with it.

All is worked out from the record that its coordinator keeps of it, and from what topics there are.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from kafka_assignors.group import Group, Member
from kafka_assignors.planners import plan_exact, plan_range, plan_round_robin
from kafka_assignors.protocol.offsets_topic import (
    RecordError,
    batch_size,
    decode_assignment,
    decode_prior_assignment,
    decode_subscription,
    encode_group_metadata,
    group_metadata_key,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from kafka_assignors.plan import Plan
    from kafka_assignors.protocol.offsets_topic import GroupMetadataValue, MemberMetadata

RECORD_LIMIT: Final = 1_048_588
"""`max.message.bytes` of `__consumer_offsets` unless somebody changed it."""

Kind = Literal[
    "nothing to do",
    "unread topic",
    "missing topic",
    "no owner",
    "two owners",
    "double claim",
    "unreadable member",
    "foreign user data",
    "no memory",
    "timeouts",
    "record size",
    "uneven",
    "eager",
]
"""What can be wrong."""

Partitions = frozenset[tuple[str, int]]
"""Partitions by topic and id."""

_NEAR: Final = 0.7  # of the limit of a record
_MANY: Final = 3  # members, from which on eager rebalances are worth a word
_NAMED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that is wrong, or will be.

    Attributes:
        kind: What.
        severity: "error" if records are not consumed, or not rightly; "warning" if they may not be; "note"
            if it could be better.
        text: What it is.
        advice: What to do.
    """

    kind: Kind
    severity: Literal["error", "warning", "note"]
    text: str
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAccount:
    """A member as its coordinator has it.

    Attributes:
        member_id: Its id.
        client_id: Its client's name.
        host: Where it is.
        instance_id: Of a static member.
        leads: Whether it leads the group.
        rack: The rack that it named.
        topics: What it subscribes to.
        version: The version of its subscription.
        claims: What it said it had when it joined.
        claimed_generation: The generation of that, -1 if it did not say.
        assignment: What it has.
        session_timeout_ms: How long it may send no heartbeat.
        rebalance_timeout_ms: How long others wait for it in a rebalance: its `max.poll.interval.ms`.
    """

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    leads: bool
    rack: str | None
    topics: tuple[str, ...]
    version: int
    claims: Partitions
    claimed_generation: int
    assignment: Partitions
    session_timeout_ms: int
    rebalance_timeout_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A partition that would go elsewhere; `source` is None if nobody has it."""

    topic: str
    partition: int
    source: str | None
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A group, explained.

    Attributes:
        group_id: Its id.
        generation: Its generation.
        strategy: What it assigns by; None of an empty group.
        leader: The leader's member id.
        members: Its members, by client id.
        loads: Member id -> how many partitions it has.
        best_loads: The loads of the best balance that the subscriptions allow, in ascending order.
        would_move: What would move if the group rebalanced now, by its own strategy.
        record_bytes: The size of its record.
        record_limit: How large that may be.
        problems: What is wrong, the worst first.
    """

    group_id: str
    generation: int
    strategy: str | None
    leader: str | None
    members: tuple[MemberAccount, ...]
    loads: Mapping[str, int]
    best_loads: tuple[int, ...]
    would_move: tuple[Move, ...]
    record_bytes: int
    record_limit: int
    problems: tuple[Problem, ...]

    @property
    def imbalance(self) -> int:
        """The largest load less the smallest."""
        return max(self.loads.values(), default=0) - min(self.loads.values(), default=0)

    @property
    def best_imbalance(self) -> int:
        """The same of the best balance."""
        return max(self.best_loads, default=0) - min(self.best_loads, default=0)


def explain(
    group_id: str,
    value: GroupMetadataValue,
    topics: Mapping[str, Collection[int]],
    *,
    committed: Collection[str] = (),
    record_limit: int = RECORD_LIMIT,
) -> Explanation:
    """Explain a group of the classic protocol.

    Args:
        group_id: Its id.
        value: Its newest record.
        topics: The partition ids of each topic that exists.
        committed: The topics of which it has committed offsets.
        record_limit: How large its record may be.
    """
    problems: list[Problem] = []
    accounts = [_account(member, value, problems) for member in value.members]
    accounts.sort(key=lambda account: (account.client_id, account.member_id))
    group = _group(accounts, topics, value.generation)
    best = plan_exact(group)
    size = batch_size(group_metadata_key(group_id), encode_group_metadata(value))
    found = Explanation(
        group_id=group_id,
        generation=value.generation,
        strategy=value.protocol,
        leader=value.leader,
        members=tuple(accounts),
        loads={account.member_id: len(account.assignment) for account in accounts},
        best_loads=tuple(sorted(int(load) for load in best.loads)),
        would_move=_moves(group, _own_plan(value.protocol, group, best)),
        record_bytes=size,
        record_limit=record_limit,
        problems=(),
    )
    problems += _find_problems(found, topics, committed)
    order = {"error": 0, "warning": 1, "note": 2}
    problems.sort(key=lambda problem: order[problem.severity])
    return Explanation(
        **{name: getattr(found, name) for name in Explanation.__slots__ if name != "problems"},
        problems=tuple(problems),
    )


def _account(member: MemberMetadata, value: GroupMetadataValue, problems: list[Problem]) -> MemberAccount:
    topics: tuple[str, ...] = ()
    rack, version, generation = None, -1, -1
    claims: Partitions = frozenset()
    assignment: Partitions = frozenset()
    try:
        subscription = decode_subscription(member.subscription)
        topics, version = subscription.topics, subscription.version
        rack, generation = subscription.rack_id or None, subscription.generation_id
        claims = _flat(subscription.owned_partitions)
        prior = decode_prior_assignment(value.protocol, subscription.user_data)
        if prior is not None:
            claims = claims or _flat(prior.claims)
            generation = max(generation, prior.generation)
    except RecordError as error:
        problems.append(_unreadable(member, str(error)))
    try:
        assigned = decode_assignment(member.assignment)
        assignment = frozenset() if assigned is None else _flat(assigned.assigned_partitions)
    except RecordError as error:
        problems.append(_unreadable(member, str(error)))
    return MemberAccount(
        member_id=member.member_id,
        client_id=member.client_id,
        host=member.client_host,
        instance_id=member.group_instance_id,
        leads=member.member_id == value.leader,
        rack=rack,
        topics=topics,
        version=version,
        claims=claims,
        claimed_generation=generation,
        assignment=assignment,
        session_timeout_ms=member.session_timeout,
        rebalance_timeout_ms=member.rebalance_timeout,
    )


def _unreadable(member: MemberMetadata, why: str) -> Problem:
    name = member.group_instance_id or f"{member.client_id}{member.client_host}"
    return Problem(
        kind="unreadable member",
        severity="error",
        text=f"what {name} or its leader sent cannot be read: {why}",
        advice="find out what client it is: leaders of kafka-python fail on such members, and ours give them"
        " nothing",
    )


def _group(
    accounts: Sequence[MemberAccount], topics: Mapping[str, Collection[int]], generation: int
) -> Group:
    """The group as a leader would see it if all joined again now."""
    return Group.of(
        topics,
        [
            Member(
                member_id=account.member_id,
                instance_id=account.instance_id,
                topics=frozenset(account.topics),
                rack=account.rack,
                claims=_nested(account.assignment),
                generation=generation,
            )
            for account in accounts
        ],
    )


def _own_plan(strategy: str | None, group: Group, best: Plan) -> Plan | None:
    """What the group's own strategy would plan; None of one that is not known."""
    if strategy in {"sticky", "cooperative-sticky"}:
        return best
    if strategy == "range":
        return plan_range(group)
    return plan_round_robin(group) if strategy == "roundrobin" else None


def _moves(group: Group, plan: Plan | None) -> tuple[Move, ...]:
    if plan is None:
        return ()
    before = {
        (topic, partition): member.member_id
        for member in group.members
        for topic, ids in member.claims.items()
        for partition in ids
    }
    return tuple(
        Move(topic=topic, partition=partition, source=before.get((topic, partition)), target=member)
        for member, assigned in plan.assignments().items()
        for topic, ids in sorted(assigned.items())
        for partition in sorted(ids)
        if before.get((topic, partition)) != member
    )


def _find_problems(
    found: Explanation, topics: Mapping[str, Collection[int]], committed: Collection[str]
) -> list[Problem]:
    return [
        *_about_partitions(found, topics, committed),
        *_about_members(found),
        *_about_claims(found),
        *_about_timeouts(found),
        *_about_record(found),
    ]


def _about_partitions(
    found: Explanation, topics: Mapping[str, Collection[int]], committed: Collection[str]
) -> list[Problem]:
    problems: list[Problem] = []
    wanted = {topic for account in found.members for topic in account.topics}
    existing = {(topic, partition) for topic in wanted & topics.keys() for partition in topics[topic]}
    owners = Counter(partition for account in found.members for partition in account.assignment)
    if missing := sorted(wanted - topics.keys()):
        problems.append(
            Problem(
                kind="missing topic",
                severity="warning",
                text=f"{', '.join(missing)} is subscribed to and does not exist",
                advice="create it, or correct the subscription: kafka-python's leaders wait for such topics",
            )
        )
    if free := sorted(existing - owners.keys()):
        problems.append(
            Problem(
                kind="no owner",
                severity="error",
                text=f"nobody has {_some([f'{topic}-{partition}' for topic, partition in free])}",
                advice="in a rebalance that passes; else the strategy left it out: see who subscribes to it",
            )
        )
    if found.strategy != "broadcast" and (twice := sorted(one for one, count in owners.items() if count > 1)):
        problems.append(
            Problem(
                kind="two owners",
                severity="error",
                text=f"two members have {_some([f'{topic}-{partition}' for topic, partition in twice])}",
                advice="the leader's assignor is wrong: its records are processed twice",
            )
        )
    if unread := sorted({*committed} & topics.keys() - wanted) if found.members else []:
        problems.append(
            Problem(
                kind="unread topic",
                severity="warning",
                text=f"the group has offsets of {', '.join(unread)}, and no member subscribes to it",
                advice="if that is meant, delete the offsets; else look for the members that are missing",
            )
        )
    return problems


def _about_members(found: Explanation) -> list[Problem]:
    problems: list[Problem] = []
    idle = [account.client_id for account in found.members if not account.assignment]
    if idle:
        few = len(found.members) > sum(found.loads.values())
        problems.append(
            Problem(
                kind="nothing to do",
                severity="note" if few else "warning",
                text=f"{_some(idle)} has no partitions",
                advice=f"there are {sum(found.loads.values())} partitions for {len(found.members)} members"
                if few
                else "see what it subscribes to; range gives nothing to the last members of small topics",
            )
        )
    if found.strategy != "broadcast" and found.imbalance > found.best_imbalance:
        problems.append(
            Problem(
                kind="uneven",
                severity="note",
                text=f"loads differ by {found.imbalance}, where {found.best_imbalance} is possible",
                advice="a sticky strategy balances over all topics, range topic by topic",
            )
        )
    eager = found.strategy in {"range", "roundrobin", "sticky"}
    if eager and len(found.members) >= _MANY:
        problems.append(
            Problem(
                kind="eager",
                severity="note",
                text=f"{found.strategy} is eager: in each rebalance all members let go of everything",
                advice="cooperative-sticky takes away only what moves; two rolling restarts lead to it",
            )
        )
    return problems


def _about_claims(found: Explanation) -> list[Problem]:
    if found.strategy not in {"sticky", "cooperative-sticky"}:
        return []
    problems: list[Problem] = []
    claimed: dict[tuple[tuple[str, int], int], list[str]] = {}
    for account in found.members:
        for claim in account.claims:
            claimed.setdefault((claim, account.claimed_generation), []).append(account.client_id)
    double = sorted((key[0], members) for key, members in claimed.items() if len(members) > 1)
    if double:
        (topic, partition), members = double[0]
        problems.append(
            Problem(
                kind="double claim",
                severity="warning",
                text=f"{' and '.join(members)} said that they had {topic}-{partition} in one generation"
                + (f", and {len(double) - 1} more such" if len(double) > 1 else ""),
                advice="one of them missed a rebalance; such claims do not count, and the partition may move",
            )
        )
    forgetful = [account.client_id for account in found.members if account.version == 0]
    if forgetful and found.strategy == "cooperative-sticky":
        problems.append(
            Problem(
                kind="no memory",
                severity="error",
                text=f"{_some(forgetful)} cannot say what it has: its subscription is of version 0",
                advice="its client is too old for a cooperative rebalance: update it",
            )
        )
    return problems


def _about_timeouts(found: Explanation) -> list[Problem]:
    problems = [
        Problem(
            kind="timeouts",
            severity="warning",
            text=f"{account.client_id} has max.poll.interval.ms {account.rebalance_timeout_ms}, less than its"
            f" session.timeout.ms {account.session_timeout_ms}",
            advice="it is thrown out for a slow poll sooner than for being dead: raise the first",
        )
        for account in found.members
        if 0 < account.rebalance_timeout_ms < account.session_timeout_ms
    ]
    sessions = {account.session_timeout_ms for account in found.members}
    if len(sessions) > 1:
        problems.append(
            Problem(
                kind="timeouts",
                severity="note",
                text=f"members have session timeouts from {min(sessions)} to {max(sessions)} ms",
                advice="some are missed later than others: give all the same, unless that is meant",
            )
        )
    return problems


def _about_record(found: Explanation) -> list[Problem]:
    if found.record_bytes < _NEAR * found.record_limit:
        return []
    over = found.record_bytes > found.record_limit
    return [
        Problem(
            kind="record size",
            severity="error" if over else "warning",
            text=f"the group's record has {found.record_bytes:,} bytes of {found.record_limit:,}",
            advice="above that the group never settles: raise max.message.bytes of __consumer_offsets, or use"
            " fewer members or a strategy without user data",
        )
    ]


def _flat(partitions: Mapping[str, Collection[int]]) -> Partitions:
    return frozenset((topic, partition) for topic, ids in partitions.items() for partition in ids)


def _nested(partitions: Partitions) -> dict[str, list[int]]:
    nested: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        nested.setdefault(topic, []).append(partition)
    return nested


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
