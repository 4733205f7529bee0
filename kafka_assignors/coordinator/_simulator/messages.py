"""What members and their coordinator say to each other; errors under Kafka's names."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple, TypeVar
from uuid import UUID


class Error(StrEnum):
    """Errors of answers, under Kafka's names. No error is false."""

    NONE = ""
    FENCED_INSTANCE_ID = "FENCED_INSTANCE_ID"
    FENCED_MEMBER_EPOCH = "FENCED_MEMBER_EPOCH"
    GROUP_ID_NOT_FOUND = "GROUP_ID_NOT_FOUND"
    GROUP_MAX_SIZE_REACHED = "GROUP_MAX_SIZE_REACHED"
    ILLEGAL_GENERATION = "ILLEGAL_GENERATION"
    INCONSISTENT_GROUP_PROTOCOL = "INCONSISTENT_GROUP_PROTOCOL"
    INVALID_REQUEST = "INVALID_REQUEST"
    INVALID_SESSION_TIMEOUT = "INVALID_SESSION_TIMEOUT"
    MEMBER_ID_REQUIRED = "MEMBER_ID_REQUIRED"
    NOT_COORDINATOR = "NOT_COORDINATOR"
    REBALANCE_IN_PROGRESS = "REBALANCE_IN_PROGRESS"
    UNKNOWN_MEMBER_ID = "UNKNOWN_MEMBER_ID"
    UNRELEASED_INSTANCE_ID = "UNRELEASED_INSTANCE_ID"
    UNSUPPORTED_ASSIGNOR = "UNSUPPORTED_ASSIGNOR"


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """JoinGroup.

    Protocols are its strategies and its subscription for each, the preferred first.
    """

    member_id: str
    client_id: str
    instance_id: str | None
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    """The answer to a join.

    If it skips the assignment, the leader is a static one that came back: the assignment is there (KIP-814).
    """

    error: Error = Error.NONE
    member_id: str = ""
    generation: int = -1
    strategy: str = ""
    leader: str = ""
    members: Sequence[tuple[str, str | None, bytes]] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Sync:
    """SyncGroup; assignments come from the leader only."""

    member_id: str
    generation: int
    instance_id: str | None
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """The answer to a sync."""

    error: Error = Error.NONE
    assignment: bytes = b""


JoinReply = Callable[[Joined], None]
SyncReply = Callable[[Synced], None]

_Answer = TypeVar("_Answer", Joined, Synced)


def reply_to(held: dict[str, Callable[[_Answer], None]], member_id: str, answer: _Answer) -> None:
    """Answer a member's request that is held until the round is complete, if it waits for that."""
    if (reply := held.pop(member_id, None)) is not None:
        reply(answer)


JOIN: Final = 0
"""The epoch that asks to join, or to join again, in KIP-848."""

LEAVE: Final = -1
"""The epoch that says good-bye in KIP-848."""

LEAVE_STATIC: Final = -2
"""The epoch by which a static member says in KIP-848 that it will be back."""


class TopicIdPartition(NamedTuple):
    """A partition as KIP-848's requests name it."""

    topic_id: UUID
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat (KIP-848): all that a member ever asks. What is None did not change.

    The epoch is that which it has, or `JOIN`, `LEAVE` or `LEAVE_STATIC`.
    """

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int | None = None
    topics: frozenset[str] | None = None
    assignor: str | None = None
    owned: frozenset[TopicIdPartition] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeatAnswer:
    """The answer to a `ConsumerHeartbeat`, which comes at once.

    The assignment is all that it may have now, and None if that did not change.
    """

    error: Error = Error.NONE
    epoch: int = 0
    assignment: frozenset[TopicIdPartition] | None = None
