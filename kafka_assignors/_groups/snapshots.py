"""A group's records as snapshots: who was in it, and who had what, after each rebalance.

Whatever compares a group with what it was (reasons, metrics, what-if, watching) works on these; what only
reads record by record (the tables) does not need them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._wire.claims_of import claims_of
from kafka_assignors._wire.codec import read_partition_lists, read_subscriptions
from kafka_assignors._wire.offsets_topic import (
    RecordError,
    decode_assignment,
    decode_subscription,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors._model.claims import ClaimTable
    from kafka_assignors._wire.codec import Subscriptions
    from kafka_assignors._wire.offsets_topic import GroupMetadataValue, MemberMetadata

_INT16: Final = 2
_INT32: Final = 4
_NO_LIST: Final = bytes(4)

Partitions = frozenset[tuple[str, int]]
"""Partitions by topic and id."""

EAGER_STRATEGIES: Final = frozenset({"range", "roundrobin", "sticky"})
"""Kafka's strategies by which members let go of everything before they join."""


class ArchivedRecord(NamedTuple):
    """A record of `__consumer_offsets` as it was; times are in microseconds since 1970.

    Attributes:
        key: Its key.
        value: Its value; None for a tombstone.
        partition: Its partition.
        offset: Its offset there.
        time_us: When the broker wrote it.
        leader_epoch: The partition's leader epoch: it rises when the coordinator moves; None if not known.
        snapshot: What it says, if it was decoded already, with others at once; then it needs no bytes.
    """

    key: bytes
    value: bytes | None
    partition: int
    offset: int
    time_us: int
    leader_epoch: int | None
    snapshot: Snapshot | None = None


class SnapshotMember(NamedTuple):
    """A member in a snapshot. A tuple: of all objects here these are the most, and made the most often.

    Attributes:
        member_id: Its id.
        instance_id: Of a static member.
        client_id: Its client's name.
        host: Where it connected from.
        rack: The rack that it names.
        topics: What it subscribes to; empty if that cannot be read.
        claims: What it said it had when it joined, by topic.
        claimed_generation: The generation of that; -1 if it did not say.
        assignment: What it was given.
        session_timeout_ms: How long it may be silent; -1 if that is not told.
        rebalance_timeout_ms: How long others wait for it; -1 if that is not told.
    """

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    host: str = ""
    rack: str | None = None
    topics: frozenset[str] = frozenset()
    claims: Mapping[str, tuple[int, ...]] = {}
    claimed_generation: int = NO_GENERATION
    assignment: Partitions = frozenset()
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1

    @property
    def identity(self) -> str:
        """What it is the same by after a restart: its instance id, if it has one."""
        return self.instance_id or self.member_id


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A group after one of its records.

    Attributes:
        group: The group.
        generation: Its generation; of KIP-848 the epoch of its assignment.
        time_us: When the broker wrote the record, in microseconds since 1970.
        state_time_us: When the coordinator had all members' joins, by its own clock; of KIP-848 when the
            group's epoch rose to this generation or beyond; None if it is not told.
        partition: The partition of `__consumer_offsets`.
        offset: The record's offset there.
        leader_epoch: The leader epoch of that partition; None if it is not known.
        protocol_type: "consumer"; "connect" and others of those who are not consumers; "kip848".
        strategy: What it is assigned by; None without members.
        leader: The leader's member id; None without members, and of KIP-848.
        members: Its members, sorted by identity.
        settled: Whether every member has what it is to have. Only KIP-848 tells of groups on their way; of a
            classic group that hands over cooperatively see `Snapshot.given_up`.
    """

    group: str
    generation: int
    time_us: int
    state_time_us: int | None = None
    partition: int = 0
    offset: int = 0
    leader_epoch: int | None = None
    protocol_type: str = "consumer"
    strategy: str | None = None
    leader: str | None = None
    members: tuple[SnapshotMember, ...] = ()
    settled: bool = True

    @cached_property
    def by_identity(self) -> dict[str, SnapshotMember]:
        """The members by identity; of two of one identity the last by member id."""
        return {member.instance_id or member.member_id: member for member in self.members}

    @cached_property
    def by_member_id(self) -> dict[str, SnapshotMember]:
        """The members by member id."""
        return {member.member_id: member for member in self.members}

    @cached_property
    def by_name(self) -> dict[str, set[str]]:
        """The member ids by instance id, or by client id of dynamic members."""
        named: dict[str, set[str]] = {}
        for member in self.members:
            named.setdefault(member.instance_id or member.client_id, set()).add(member.member_id)
        return named

    @cached_property
    def owners(self) -> dict[tuple[str, int], str]:
        """The owner of each partition that has one, by identity; of two, the last by identity."""
        found: dict[tuple[str, int], str] = {}
        for member in self.members:
            found.update(dict.fromkeys(member.assignment, member.instance_id or member.member_id))
        return found

    @cached_property
    def owned(self) -> Partitions:
        """The partitions that have an owner."""
        # A set of sets knows their hashes: comparing two takes a quarter of what the keys of `owners` do.
        return frozenset[tuple[str, int]]().union(*[member.assignment for member in self.members])

    @cached_property
    def exclusive(self) -> bool:
        """Whether each partition has one owner at most, and each identity one member."""
        given = sum([len(member.assignment) for member in self.members])
        return given == len(self.owned) and len(self.by_identity) == len(self.members)

    @cached_property
    def owned_topics(self) -> frozenset[str]:
        """The topics of which somebody owns a partition."""
        return frozenset[str]().union(*[_topics_of(member.assignment) for member in self.members])

    @cached_property
    def topics(self) -> frozenset[str]:
        """All topics that members subscribe to."""
        # Most often all members' topics are one and the same object, which is hashed once.
        return frozenset[str]().union(*{member.topics for member in self.members})

    @cached_property
    def claimed(self) -> Partitions:
        """What members said they had when they joined."""
        return frozenset(
            (topic, partition)
            for member in self.members
            for topic, partitions in member.claims.items()
            for partition in partitions
        )

    @property
    def cooperative(self) -> bool:
        """Whether members keep what they have while they join (KIP-429).

        By its strategy's name; of strategies that are not Kafka's by whether members own partitions when
        they join, which eager ones do not.
        """
        if self.strategy in EAGER_STRATEGIES:
            return False
        return self.strategy == "cooperative-sticky" or bool(self.claimed)

    @cached_property
    def given_up(self) -> Partitions:
        """What members of a cooperative group had when they joined, and nobody has now.

        They let go of it as they see their assignments, and join again, so that the next generation can give
        it to others.
        """
        return self.claimed - self.owned if self.cooperative else frozenset()

    @property
    def patience_us(self) -> int:
        """How long a rebalance may wait for these members at most, in microseconds."""
        return 1000 * max(
            (max(member.rebalance_timeout_ms, member.session_timeout_ms) for member in self.members),
            default=0,
        )


@lru_cache(maxsize=1024)
def _topics_of(partitions: Partitions) -> frozenset[str]:
    return frozenset({topic for topic, _ in partitions})


def classic_snapshot(record: ArchivedRecord, group: str, value: GroupMetadataValue) -> Snapshot:
    """The snapshot that a record of a classic group is.

    Members whose bytes cannot be read are there, without topics or without partitions.
    """
    said: Sequence[_Said] = [_Said()] * len(value.members)
    if value.protocol_type == "consumer":
        said = _said_at_once(value) or _said_one_by_one(value)
    members = [_member(member, its) for member, its in zip(value.members, said, strict=True)]
    return Snapshot(
        group=group,
        generation=value.generation,
        time_us=record.time_us,
        state_time_us=value.current_state_timestamp * 1000 if value.current_state_timestamp >= 0 else None,
        partition=record.partition,
        offset=record.offset,
        leader_epoch=record.leader_epoch,
        protocol_type=value.protocol_type,
        strategy=value.protocol,
        leader=value.leader,
        members=tuple(sorted(members, key=lambda member: (member.identity, member.member_id))),
    )


class _Said(NamedTuple):
    """What a member said when it joined, and what it was given."""

    rack: str | None = None
    topics: frozenset[str] = frozenset()
    claims: Mapping[str, tuple[int, ...]] = {}
    generation: int = NO_GENERATION
    assignment: Partitions = frozenset()


def _member(member: MemberMetadata, said: _Said) -> SnapshotMember:
    return SnapshotMember(
        member_id=member.member_id,
        instance_id=member.group_instance_id or None,
        client_id=member.client_id,
        host=member.client_host,
        rack=said.rack,
        topics=said.topics,
        claims=said.claims,
        claimed_generation=said.generation,
        assignment=said.assignment,
        session_timeout_ms=member.session_timeout,
        rebalance_timeout_ms=member.rebalance_timeout,
    )


def _said_one_by_one(value: GroupMetadataValue) -> list[_Said]:
    return [_said(member, value) for member in value.members]


def _said(member: MemberMetadata, value: GroupMetadataValue) -> _Said:
    said = _Said()
    try:
        subscription = decode_subscription(member.subscription)
    except RecordError:
        pass
    else:
        claims, (generation,) = _claims(value.protocol, read_subscriptions([member.subscription]))
        said = _Said(
            rack=subscription.rack_id or None,
            topics=frozenset(subscription.topics),
            claims=claims[0],
            generation=generation,
        )
    try:
        assigned = decode_assignment(member.assignment)
    except RecordError:
        return said
    if assigned is None:
        return said
    return said._replace(
        assignment=frozenset(
            (topic, partition)
            for topic, partitions in assigned.assigned_partitions.items()
            for partition in partitions
        )
    )


def _said_at_once(value: GroupMetadataValue) -> list[_Said] | None:
    """The same for all members by the compiled codec, 4 times as fast; None if anything is unusual."""
    subscriptions = read_subscriptions([member.subscription for member in value.members])
    if subscriptions.unreadable or subscriptions.strange:
        return None
    assigned = _assigned_at_once([member.assignment for member in value.members])
    if assigned is None:
        return None
    claims, generations = _claims(value.protocol, subscriptions)
    topics = [subscriptions.topics[number] for number in subscriptions.topics_of.tolist()]
    return [
        _Said(*each) for each in zip(subscriptions.racks, topics, claims, generations, assigned, strict=True)
    ]


def _claims(
    strategy: str | None, subscriptions: Subscriptions
) -> tuple[list[dict[str, tuple[int, ...]]], list[int]]:
    """What each member claims, and as of which generation."""
    claimed, _ = claims_of(strategy, subscriptions)
    return _by_topic(claimed.table), claimed.generations.tolist()


def _assigned_at_once(assignments: list[bytes]) -> list[Partitions] | None:
    lists = read_partition_lists([one[_INT16:] or _NO_LIST for one in assignments])
    ends = lists.lengths + _INT16
    sizes = [len(one) for one in assignments]
    for end, size, user_data, assignment in zip(
        ends.tolist(), sizes, lists.tails[:, 0].tolist(), assignments, strict=True
    ):
        fits = end > _INT16 and end + _INT32 + max(0, user_data) <= size
        if size and (not fits or user_data < -1 or assignment[0] & 0x80):
            return None
    return [
        frozenset((topic, partition) for topic, partitions in each.items() for partition in partitions)
        for each in _by_topic(lists.table)
    ]


def _by_topic(table: ClaimTable) -> list[dict[str, tuple[int, ...]]]:
    found: list[dict[str, tuple[int, ...]]] = [{} for _ in range(table.claimants)]
    ids = table.ids.tolist()
    at = 0
    for number, topic, size in zip(
        table.claimant.tolist(), table.topic.tolist(), table.sizes.tolist(), strict=True
    ):
        mine, name = found[number], table.names[topic]
        mine[name] = (*mine.get(name, ()), *ids[at : at + size])
        at += size
    return found
