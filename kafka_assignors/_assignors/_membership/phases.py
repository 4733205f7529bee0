"""The phases of a cooperative member (KIP-429), and which of the coordinator's answers count in them.

A member keeps its partitions through a rebalance. So it delivers records, commits and sends heartbeats while
its JoinGroup and SyncGroup wait for other members. `NEXT` says what each event leads to, `verdict` what an
answer to a commit or heartbeat means that a join may have overtaken.

What a coordinator answers was seen on Kafka 4.3.1 (error codes; 22 is ILLEGAL_GENERATION, 27
REBALANCE_IN_PROGRESS):

| the group is in     | commit, generation before | commit, new one | heartbeat, before | heartbeat, new |
|---------------------|---------------------------|-----------------|-------------------|----------------|
| PreparingRebalance  | 0                         | -               | 27                | -              |
| CompletingRebalance | 22                        | 27              | 22                | 0              |
| Stable              | 22                        | 0               | 22                | 0              |
"""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

ILLEGAL_GENERATION: Final = 22
UNKNOWN_MEMBER_ID: Final = 25
REBALANCE_IN_PROGRESS: Final = 27
FENCED_INSTANCE_ID: Final = 82

_FOR_GOOD: Final = frozenset({UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID})
"""True of each generation: no JoinGroup makes the member id known again."""

_OVERTAKABLE: Final = frozenset({ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS}) | _FOR_GOOD


class Phase(Enum):
    """Where a member is between two assignments."""

    OUT = "in no generation: what it held may be another member's"
    ENTERING = "joins from outside of the group"
    STABLE = "has taken the assignment of its generation"
    JOINING = "its JoinGroup waits for other members"
    RETRYING = "its join failed, and the next has not begun"
    SYNCING = "in the next generation, for whose assignment its SyncGroup waits"
    ASSIGNED = "has that assignment, which no poll has taken"

    @property
    def is_member(self) -> bool:
        """Whether it is in a generation: only then are there partitions to deliver from, and heartbeats."""
        return self not in {Phase.OUT, Phase.ENTERING}

    @property
    def waits_for_others(self) -> bool:
        """Whether a member is in a join that lasts until others have joined, and the leader has planned."""
        return self in {Phase.JOINING, Phase.SYNCING}

    @property
    def holds_commits(self) -> bool:
        """Whether a commit would be refused, and is sent when the assignment is there."""
        return self is Phase.SYNCING


class Event(Enum):
    """What happens to a member."""

    JOIN_SENT = "JoinGroup is sent"
    JOIN_ANSWERED = "JoinGroup is answered with a generation"
    SYNC_ANSWERED = "SyncGroup is answered with an assignment"
    TAKEN = "a poll takes the assignment"
    FAILED = "the join ends otherwise"
    FELL_OUT = "the coordinator does not know the member, or it leaves"


NEXT: Final[Mapping[Event, Mapping[Phase, Phase]]] = MappingProxyType(
    {
        Event.JOIN_SENT: {
            Phase.OUT: Phase.ENTERING,
            **dict.fromkeys((Phase.STABLE, Phase.RETRYING, Phase.SYNCING, Phase.ASSIGNED), Phase.JOINING),
        },
        Event.JOIN_ANSWERED: dict.fromkeys((Phase.ENTERING, Phase.JOINING), Phase.SYNCING),
        Event.SYNC_ANSWERED: {Phase.SYNCING: Phase.ASSIGNED},
        Event.TAKEN: {Phase.ASSIGNED: Phase.STABLE},
        Event.FAILED: {
            Phase.ENTERING: Phase.OUT,
            **dict.fromkeys((Phase.JOINING, Phase.SYNCING, Phase.ASSIGNED), Phase.RETRYING),
        },
        Event.FELL_OUT: dict.fromkeys(Phase, Phase.OUT),
    }
)
"""What each event leads to. A phase that is not listed stays: the event speaks of a join that is over."""


def after(phase: Phase, event: Event) -> Phase:
    """The phase that an event leads to."""
    return NEXT[event].get(phase, phase)


class Sender(Enum):
    """As whom a request was sent that is answered now."""

    CURRENT = "in the generation in which the member is"
    OLDER = "in an earlier generation"
    FORMER = "as a member that it is no longer"


class Verdict(Enum):
    """What the answer to a commit or heartbeat means."""

    COUNTS = "the client acts by it"
    OVERTAKEN = "a join came in between: a commit is sent again, a heartbeat is ignored"
    VOID = "it says nothing of the present membership: a commit fails, a heartbeat is ignored"


def verdict(error_code: int, sender: Sender, phase: Phase) -> Verdict:
    """What the coordinator's answer to a commit or heartbeat means.

    Clients take ILLEGAL_GENERATION and UNKNOWN_MEMBER_ID for the end of their membership, and
    REBALANCE_IN_PROGRESS for a reason to join. JoinGroup and SyncGroup go over a connection of their own. So
    such an answer may be older than the member's present generation.
    """
    if error_code not in _OVERTAKABLE:
        return Verdict.COUNTS
    if sender is Sender.FORMER or not phase.is_member:
        return Verdict.VOID
    if error_code in _FOR_GOOD:
        return Verdict.COUNTS
    if sender is Sender.OLDER or phase in {Phase.JOINING, Phase.SYNCING}:
        return Verdict.OVERTAKEN
    # The group has moved on beyond a JoinGroup whose answer was lost. Nobody has got its partitions by that.
    return Verdict.VOID if phase is Phase.RETRYING else Verdict.COUNTS
