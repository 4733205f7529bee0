"""The generations of a group as its members came to them: who had and wanted what, and what moved."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from kafka import TopicPartition

from kafka_assignors._timelines.events import AssignmentReceived, Claims, Event, Joining, Led, Subscribed

_Topics = Subscribed | Joining
"""An event in which a member named its topics."""

Holdings = Mapping[str, frozenset[TopicPartition]]
"""The partitions of each member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMove:
    """In `generation` a partition has another owner than the last it had."""

    partition: TopicPartition
    generation: int
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenRebalance:
    """One generation of the group, as its members came to it.

    Attributes:
        generation: Its number.
        start: When the first of its members asked to join; of clients that do not say, when the first of
            them had its assignment.
        end: When the last of its members had its assignment; a restarted static member has it again later.
        leader: The member that assigned, None if that was not seen.
        claims: What each member sent to the leader, by member id, as the leader reported it.
        assignments: The partitions of each member.
        subscriptions: The topics of each member, as far as anybody ever had partitions of them.
    """

    generation: int
    start: float
    end: float
    leader: str | None
    claims: Claims
    assignments: Holdings
    subscriptions: Mapping[str, frozenset[str]] = field(default_factory=dict)


def find_rebalances(events: Iterable[Event], identity: Mapping[str, str]) -> tuple[SeenRebalance, ...]:
    """The generations in ascending order. Those that no member lived to see assigned are left out.

    A member subscribes to what it named when it asked to join, or else to what it was asked to subscribe to.
    If neither was reported, it subscribes to all topics. Events are in the order of time; `identity` tells
    who each member is to the group.
    """
    asked: dict[str, float] = {}
    topics: dict[str, _Topics] = {}
    starts: dict[int, float] = {}
    ends: dict[int, float] = {}
    leaders: dict[int, Led] = {}
    assignments: dict[int, dict[str, frozenset[TopicPartition]]] = defaultdict(dict)
    there: dict[int, set[str]] = defaultdict(set)
    subscribed: dict[int, dict[str, _Topics | None]] = defaultdict(dict)
    for event in events:
        number, member = event.generation, event.member
        match event:
            case Subscribed() if isinstance(topics.get(member), Subscribed | None):
                topics[member] = event
            case Joining():
                asked.setdefault(member, event.time)
                if event.topics is not None:
                    topics[member] = event
            case Led():
                leaders[number] = event
            case AssignmentReceived():
                start = asked.pop(member, event.time)
                if identity[member] not in there[number]:
                    there[number].add(identity[member])
                    starts[number] = min(start, starts.get(number, start))
                    ends[number] = event.time
                elif assignments[number].get(member, event.partitions) != event.partitions:
                    # By KIP-848 a member has an epoch's assignment bit by bit, as others let go.
                    ends[number] = event.time
                assignments[number][member] = event.partitions
                subscribed[number][member] = topics.get(member)
    found = []
    known: frozenset[str] = frozenset()
    for number in sorted(assignments):
        known |= {one.topic for partitions in assignments[number].values() for one in partitions}
        leader = leaders.get(number)
        found.append(
            SeenRebalance(
                generation=number,
                start=starts[number],
                end=ends[number],
                leader=leader.member if leader else None,
                claims=leader.claims if leader else {},
                assignments=assignments[number],
                subscriptions={member: _among(known, event) for member, event in subscribed[number].items()},
            )
        )
    return tuple(found)


def _among(known: frozenset[str], event: _Topics | None) -> frozenset[str]:
    """Those of the known topics that a member named, in the event in which it named them."""
    if event is None:
        return known
    if isinstance(event, Subscribed) and event.pattern is not None:
        matches = re.compile(event.pattern).match
        return frozenset(topic for topic in known if not topic.startswith("__") and matches(topic))
    return known.intersection(event.topics or ())
