"""What applications held for their partitions, by their own word, when these were taken from them."""

from collections.abc import Iterable
from typing import NamedTuple

from kafka import TopicPartition

from kafka_assignors._timelines.events import (
    Closed,
    Crashed,
    Event,
    Exited,
    Holding,
    Lost,
    Released,
    Revoked,
)


class Held(NamedTuple):
    """What one member held for one partition."""

    member: str
    what: str
    partition: TopicPartition


class Kept(NamedTuple):
    """Something that a member held when its listener had returned.

    `until` is None if it never released it.
    """

    held: Held
    time: float
    kind: str
    until: float | None


def find_kept(events: Iterable[Event]) -> list[Kept]:
    """What was held too long, by the time at which partitions were taken."""
    held: set[Held] = set()
    kept: dict[Held, Kept] = {}
    done: list[Kept] = []
    for event in events:
        match event:
            case Holding():
                held.update(_each(event))
            case Released():
                for one in _each(event):
                    held.discard(one)
                    if one in kept:
                        done.append(kept.pop(one)._replace(until=event.time))
            case Revoked() | Lost():
                for one in sorted(held):
                    if one.member == event.member and one.partition in event.partitions:
                        kept.setdefault(one, Kept(one, event.time, event.kind, None))
            case Closed() | Crashed() | Exited():
                held = {one for one in held if one.member != event.member}
    return sorted([*done, *kept.values()], key=lambda one: one.time)


def _each(event: Holding | Released) -> Iterable[Held]:
    return (Held(event.member, event.what, one) for one in event.partitions)
