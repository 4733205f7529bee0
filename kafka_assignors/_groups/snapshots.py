"""Snapshots of a group: who was in it, and who had what, after each of its records.

All that compares a group with what it was (reasons, metrics, what-if, watching) works on these. What only
reads record by record (the tables) does not need them. `classic` and `kip848` make them of records.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from operator import attrgetter
from typing import Final, NamedTuple, Self

Partitions = frozenset[tuple[str, int]]
"""Partitions by topic and id."""

EAGER_STRATEGIES: Final = frozenset({"range", "roundrobin", "sticky"})
"""Kafka's strategies by which members revoke everything before they join."""


STREAMS: Final = "stream"
"""The strategy of Kafka Streams, whose members are given tasks: a partition of each of several topics."""

KIP848: Final = "kip848"
"""What stands for the protocol type of a group of KIP-848."""

_CONSUMERS: Final = frozenset({"consumer", KIP848})


class ArchivedRecord(NamedTuple):
    """A record of `__consumer_offsets` as it was; times are in microseconds since 1970.

    Its value is None for a tombstone. The leader epoch rises when the coordinator moves. A record that was
    decoded already, with others at once, has a `snapshot` and needs no bytes.
    """

    key: bytes
    value: bytes | None
    partition: int
    offset: int
    time_us: int
    leader_epoch: int | None
    snapshot: "Snapshot | None" = None

    def at(self, time_us: int) -> Self:
        snapshot = None if self.snapshot is None else replace(self.snapshot, time_us=time_us)
        return self._replace(time_us=time_us, snapshot=snapshot)


class SnapshotMember(NamedTuple):
    """A member in a snapshot. A tuple: of all objects here these are the most, and made the most often.

    `topics` are empty if the subscription cannot be read. `claims` are what it said it had when it joined;
    see `keep_claims`. Numbers are -1 if they are unknown, and timeouts in milliseconds.
    """

    member_id: str
    instance_id: str | None = None
    client_id: str = ""
    host: str = ""
    rack: str | None = None
    topics: frozenset[str] = frozenset()
    claims: Mapping[str, tuple[int, ...]] = {}
    assignment: Partitions = frozenset()
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1

    @property
    def identity(self) -> str:
        """What it is the same by after a restart: its instance id, if it has one."""
        return self.instance_id or self.member_id


_INSTANCE_ID: Final = attrgetter("instance_id")
_ASSIGNMENT: Final = attrgetter("assignment")

make_member: Final = partial(tuple.__new__, SnapshotMember)
"""A member of all its fields in their order: what `SnapshotMember._make` does, in a third of the time."""


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A group after one of its records. Times are in microseconds since 1970; what is not known is None.

    Of KIP-848 the `generation` is the epoch of the assignment. `time_us` is when the broker wrote the record,
    `state_time_us` when the coordinator had all members' joins, by its own clock. Of KIP-848 that is when the
    group's epoch rose to this generation or beyond. `partition`, `offset` and `leader_epoch` are those of
    `__consumer_offsets`. `protocol_type` is "consumer"; "connect" and others of those who are not consumers;
    or "kip848". `members` are sorted by identity. Once `settled`, every member has what it is to have. Only
    KIP-848 shows groups on their way; of a classic group that hands over cooperatively see `given_up`.
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
    members: tuple[SnapshotMember, ...] = ()
    settled: bool = True

    @cached_property
    def by_identity(self) -> dict[str, SnapshotMember]:
        """The members by identity; of two of one identity the last by member id."""
        if not self.instances:
            return self.by_member_id
        return {member.instance_id or member.member_id: member for member in self.members}

    @cached_property
    def instances(self) -> frozenset[str]:
        return frozenset(filter(None, map(_INSTANCE_ID, self.members)))

    @cached_property
    def by_member_id(self) -> dict[str, SnapshotMember]:
        return {member.member_id: member for member in self.members}

    @cached_property
    def names(self) -> list[str]:
        """Its members' instance ids, of dynamic ones their client ids."""
        return [member.instance_id or member.client_id for member in self.by_member_id.values()]

    @cached_property
    def owners(self) -> dict[tuple[str, int], str]:
        """The owner of each partition that has one, by identity; of two, the last by identity."""
        found: dict[tuple[str, int], str] = {}
        for member in self.members:
            found.update(dict.fromkeys(member.assignment, member.instance_id or member.member_id))
        return found

    @cached_property
    def owned(self) -> Partitions:
        """The partitions that have an owner; most often the same object as of other snapshots."""
        return _known(Partitions().union(*self.assignments))

    @cached_property
    def assignments(self) -> frozenset[Partitions]:
        return frozenset(map(_ASSIGNMENT, self.members))

    @cached_property
    def exclusive(self) -> bool:
        """Whether each partition has one owner at most, and each identity one member."""
        given = sum([len(member.assignment) for member in self.members])
        return given == len(self.owned) and len(self.by_identity) == len(self.members)

    def is_of_generation(self, last: "Snapshot") -> bool:
        """Whether it is of the last one's generation; a deleted group may begin where it ended."""
        return (
            last.generation == self.generation
            and last.protocol_type == self.protocol_type
            and bool(last.members or not self.members)
        )

    @cached_property
    def assignable(self) -> bool:
        """Whether an assignor of consumers could assign it: they are no others, and share no partition."""
        if not self.members:
            return True
        return self.protocol_type in _CONSUMERS and self.strategy != STREAMS and self.exclusive

    @cached_property
    def owned_topics(self) -> frozenset[str]:
        return _topics_of(self.owned)

    @cached_property
    def subscriptions(self) -> frozenset[frozenset[str]]:
        return frozenset([member.topics for member in self.members])

    @cached_property
    def topics(self) -> frozenset[str]:
        return frozenset[str]().union(*self.subscriptions)

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

        They revoke it as they see their assignments, and join again, so that the next generation can assign
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


def keep_claims(last: Snapshot, snapshot: Snapshot) -> Snapshot:
    """A snapshot in which a static member that came back to its generation claims what it claimed before.

    Its new process claims nothing. What it gave up when the generation began is still on its way to others.
    """
    if not snapshot.is_of_generation(last) or last.claimed <= snapshot.claimed:
        return snapshot
    old = last.by_identity
    members = [
        one if one.claims or one.identity not in old else one._replace(claims=old[one.identity].claims)
        for one in snapshot.members
    ]
    return replace(snapshot, members=tuple(members))


def keep_owned(last: Snapshot, snapshot: Snapshot) -> None:
    """Let a snapshot have the `owned` of the last, the same object, if what some gave up others were given.

    That is much less to look at than all that members have, or to compare.
    """
    given_up, given = last.assignments - snapshot.assignments, snapshot.assignments - last.assignments
    if Partitions().union(*given_up) == Partitions().union(*given):
        vars(snapshot)["owned"] = last.owned  # as `cached_property` does


@lru_cache(maxsize=8)
def _known(partitions: Partitions) -> Partitions:
    """The same partitions as one object, by which what is compared or looked up is found sooner."""
    return partitions


@lru_cache(maxsize=8)
def _topics_of(partitions: Partitions) -> frozenset[str]:
    return frozenset({topic for topic, _ in partitions})
