"""What the coordinator's record says of a group: its members, what each has, and how good that is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kafka_assignors._cluster.groups import EpochMember
from kafka_assignors._common.strategies import Client
from kafka_assignors._common.words import partitions_in_words
from kafka_assignors._groups.moved import OwnerMove
from kafka_assignors._groups.snapshots import Partitions
from kafka_assignors._wire.user_data import Layout

RECORD_LIMIT: Final = 1_048_588
"""`max.message.bytes` of `__consumer_offsets` unless somebody changed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAccount:
    """A member as its coordinator has it. Numbers are -1 if they are not known, as of KIP-848.

    Its `name` is what to call it: its instance id, or its client id. If others have the same, it is that with
    its host, or its member id. `layout` is that of its sticky user data. `claims` are what it said it had
    when it joined, in `claimed_generation`. It `stands_by` if others of its topics have a higher `priority`.
    `rebalance_timeout_ms` is its `max.poll.interval.ms`. `unreadable` says why what it or its leader sent
    cannot be read.
    """

    name: str
    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    leads: bool = False
    rack: str | None
    topics: tuple[str, ...]
    version: int = -1
    layout: Layout | None = None
    claims: Partitions = frozenset()
    claimed_generation: int = -1
    priority: int = 0
    stands_by: bool = False
    assignment: Partitions
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    unreadable: str | None = None

    @property
    def partitions(self) -> str:
        """What it has, in words."""
        return "stands by" if self.idles else partitions_in_words(self.assignment)

    @property
    def idles(self) -> bool:
        """Whether it stands by, and has nothing, as it should."""
        return self.stands_by and not self.assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAccount:
    """A group as its coordinator has it, and how good its assignment is.

    `strategy` is None of an empty group; `leader` is a member id. `loads` are by member id, `best_loads`
    those of the best balance that the subscriptions allow, in ascending order, without standbys. `would_move`
    is what would move if the group rebalanced now, by its own strategy and the client that probably leads it,
    `leader_client`. It is empty if that is not known. `predictions` have the same by each client that could
    lead, of strategies in which clients differ; None where it is not known.
    """

    group_id: str
    generation: int
    strategy: str | None
    leader: str | None = None
    members: tuple[MemberAccount, ...]
    loads: Mapping[str, int]
    best_loads: tuple[int, ...]
    would_move: tuple[OwnerMove, ...]
    leader_client: Client | None = None
    predictions: Mapping[Client, tuple[OwnerMove, ...] | None] = field(default_factory=dict)
    record_bytes: int = 0
    record_limit: int = RECORD_LIMIT

    @property
    def subscribed(self) -> set[str]:
        return {topic for member in self.members for topic in member.topics}

    @property
    def imbalance(self) -> int:
        """The largest load less the smallest; standbys that have nothing do not count."""
        loads = [self.loads[member.member_id] for member in self.members if not member.idles]
        return max(loads, default=0) - min(loads, default=0)

    @property
    def best_imbalance(self) -> int:
        """The same of the best balance."""
        return max(self.best_loads, default=0) - min(self.best_loads, default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """A member that has yet to do what the coordinator wants of it.

    It still has what it `lets_go`, and does not have what it `takes` yet. `waits_for` names the others that
    have that still.
    """

    member: str
    epoch: int
    lets_go: Partitions
    takes: Partitions
    waits_for: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Epochs:
    """What only a group of KIP-848 has; `assignor` is "" if it is not known.

    It was seen to be on its way for `seen_seconds`. `behind` are members that are not yet where the
    coordinator wants them. `members` are as they are described, in the order of the account's.
    """

    epoch: int
    assignment_epoch: int
    assignor: str
    seen_seconds: float
    behind: tuple[Behind, ...]
    members: tuple[EpochMember, ...]
