"""What members and their coordinator say to each other; errors under Kafka's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Error = Literal[
    "",
    "FENCED_INSTANCE_ID",
    "GROUP_MAX_SIZE_REACHED",
    "ILLEGAL_GENERATION",
    "INCONSISTENT_GROUP_PROTOCOL",
    "INVALID_SESSION_TIMEOUT",
    "MEMBER_ID_REQUIRED",
    "NOT_COORDINATOR",
    "REBALANCE_IN_PROGRESS",
    "UNKNOWN_MEMBER_ID",
]
"""Empty if all is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """JoinGroup.

    Attributes:
        member_id: The id that the coordinator gave, empty at first.
        client_id: New ids begin with it.
        instance_id: `group.instance.id` of a static member, None for others.
        session_timeout_ms: How long it may send no heartbeat.
        rebalance_timeout_ms: How long it may take to join again: `max.poll.interval.ms`.
        protocols: Its strategies and its subscription for each, the preferred first.
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

    Attributes:
        error: What was wrong.
        member_id: The member's id; with MEMBER_ID_REQUIRED, to join again with.
        generation: The generation that it is in.
        strategy: What the group assigns by.
        leader: The leader's member id.
        members: Only for the leader: member id, instance id and subscription of each.
        skip_assignment: The leader is a static one that came back: the assignment is there already
            (KIP-814).
    """

    error: Error = ""
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

    error: Error = ""
    assignment: bytes = b""


JoinReply = Callable[[Joined], None]
SyncReply = Callable[[Synced], None]
