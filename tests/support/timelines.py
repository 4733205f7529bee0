"""Events made by hand, for tests of timelines."""

from collections.abc import Mapping
from typing import Any

from kafka import TopicPartition

from kafka_assignors._timelines.events import Consumed, Event, read_event
from kafka_assignors._timelines.timeline import Timeline

P0, P1, P2 = (TopicPartition("t", number) for number in range(3))


def event(time: float, member: str, kind: str, *partitions: TopicPartition, **rest: Any) -> Event:
    about = {"partitions": partitions} if partitions else {}
    return read_event(member, {"event": kind, "time": time, **about, **rest})


def lived(*events: Event, end: float | None = None) -> Timeline:
    return Timeline(events, end=end)


def joined(time: float, member: str, generation: int, *partitions: TopicPartition) -> list[Event]:
    """What an eager member reports of a rebalance that gives it these partitions."""
    return [
        event(time - 0.5, member, "metadata"),
        event(time, member, "assignment", *partitions, generation=generation),
        event(time, member, "assigned", *partitions, generation=generation),
    ]


def records(time: float, member: str, *ranges: tuple[TopicPartition, int, int]) -> Event:
    return Consumed(time, member, records=ranges)


def start(time: float, member: str, *topics: str, instance_id: str | None = None) -> list[Event]:
    """What a member of any client reports when it starts."""
    return [
        event(time, member, "started", instance_id=instance_id),
        event(time, member, "subscribed", topics=list(topics), pattern=None),
    ]


def told(time: float, generation: int, assignments: Mapping[str, str], *, topic: str = "t") -> list[Event]:
    """What members of any client report of a generation: {"a": "01"} gives a the partitions 0 and 1."""
    found = []
    for number, (member, digits) in enumerate(assignments.items()):
        partitions = [TopicPartition(topic, int(digit)) for digit in digits]
        found += [
            event(time + number / 100, member, "assignment", *partitions, generation=generation),
            event(time + number / 100, member, "assigned", *partitions, generation=generation),
        ]
    return found


def history(*generations: Mapping[str, str], topic: str = "t") -> Timeline:
    """A group that subscribes to one topic, a second for each generation; revoked is what does not stay."""
    members = dict.fromkeys(member for assignments in generations for member in assignments)
    events = [one for member in members for one in start(0, member, topic)]
    had: Mapping[str, str] = {}
    for number, assignments in enumerate(generations, start=1):
        for member, digits in had.items():
            gone = [
                TopicPartition(topic, int(one)) for one in digits if one not in assignments.get(member, "")
            ]
            events += [event(number - 0.1, member, "revoked", *gone)] if gone else []
        events += told(number, number, assignments, topic=topic)
        had = assignments
    return Timeline(events, end=len(generations) + 1)
