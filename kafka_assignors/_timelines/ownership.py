"""Who had a partition when, by two readings, and the times when nobody or two had it.

`callback`: the member's application got the partition and has not revoked or lost it yet. A frozen member
    goes on owning by this reading, so overlaps are possible and show how long two applications may both have
    worked on a partition.
`generation`: the group's word. In a generation a partition belongs to those to whom it was assigned, until
    the next generation begins. Commits of older generations are refused, so an overlap in this reading
    is an assignor's error, never bad luck.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from kafka import TopicPartition

from kafka_assignors._timelines.events import (
    NO_GENERATION,
    Assigned,
    AssignmentReceived,
    End,
    Event,
    Lost,
    Revoked,
)

Reading = Literal["callback", "generation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """A member has a partition from `start` until before `end`; `end` is None if it still has it."""

    partition: TopicPartition
    member: str
    start: float
    end: float | None
    generation: int

    def ended(self, until: float) -> float:
        """When it ends, at the end of the record at the latest."""
        return until if self.end is None else self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlap:
    """Two members have a partition at once, for `seconds`."""

    partition: TopicPartition
    members: tuple[str, str]
    start: float
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Nobody has a partition that somebody had before, for `seconds`."""

    partition: TopicPartition
    start: float
    seconds: float


def owned_by_callback(events: Iterable[Event]) -> tuple[Ownership, ...]:
    """Who had what when, by the listeners of members' applications."""
    done: list[Ownership] = []
    held: dict[str, dict[TopicPartition, Ownership]] = defaultdict(dict)
    for event in events:
        mine = held[event.member]
        gone: frozenset[TopicPartition] = frozenset()
        match event:
            case Assigned():
                mine |= {one.partition: one for one in _begun(event, event.partitions - mine.keys())}
            case Revoked() | Lost():
                gone = event.partitions & mine.keys()
            case _ if isinstance(event, End):
                gone = frozenset(mine)
        done += [replace(mine.pop(partition), end=event.time) for partition in gone]
    return _in_order((*done, *(one for mine in held.values() for one in mine.values())))


def owned_by_generation(events: Iterable[Event], identity: Mapping[str, str]) -> tuple[Ownership, ...]:
    """Who had what when, by the group's word."""
    done: list[Ownership] = []
    held: dict[str, list[Ownership]] = {}
    newest = NO_GENERATION

    def end(who: str, time: float) -> None:
        done.extend(replace(one, end=time) for one in held.pop(who, ()))

    for event in events:
        who = identity[event.member]
        if isinstance(event, AssignmentReceived) and event.generation >= newest:
            # A static member that comes back takes its place in the same generation.
            for other in [*held] if event.generation > newest else [who]:
                end(other, event.time)
            newest = event.generation
            held[who] = [*_begun(event, event.partitions)]
        elif isinstance(event, End) and any(one.member == event.member for one in held.get(who, ())):
            end(who, event.time)
    return _in_order((*done, *itertools.chain.from_iterable(held.values())))


def by_partition(owned: Iterable[Ownership]) -> Mapping[TopicPartition, list[Ownership]]:
    found: dict[TopicPartition, list[Ownership]] = defaultdict(list)
    for one in owned:
        found[one.partition].append(one)
    return found


def _begun(event: Event, partitions: Iterable[TopicPartition]) -> Iterator[Ownership]:
    for partition in partitions:
        yield Ownership(
            partition=partition,
            member=event.member,
            start=event.time,
            end=None,
            generation=event.generation,
        )


def _in_order(owned: Iterable[Ownership]) -> tuple[Ownership, ...]:
    return tuple(sorted(owned, key=lambda one: (one.start, one.partition, one.member)))
