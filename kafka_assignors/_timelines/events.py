"""What members of a group report, one event at a time, and how it is shown in text."""

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Self

from kafka import TopicPartition

NO_GENERATION: Final = -1

ENDS: Final = frozenset({"unsubscribed", "closed", "crashed", "exited"})
"""After these events a member owns nothing."""

_NOT_SHOWN: Final = frozenset({"member_id", "pid", "seconds", "version"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to one member.

    Attributes:
        time: When, in seconds.
        member: The name of the member; a restarted member has a new name.
        kind: What: one of the kinds in `kafka_assignors.testing._groups.worker`, or what was done to the
            member from outside: "crashed", "frozen", "thawed", "exited".
        generation: The generation that the member was in; -1 if in none or if the kind does not say.
        partitions: The partitions that the event is about.
        records: For "records": (partition, first offset, last offset), ranges without holes.
        details: Everything else, as reported.
    """

    time: float
    member: str
    kind: str
    generation: int = NO_GENERATION
    partitions: frozenset[TopicPartition] = frozenset()
    records: tuple[tuple[TopicPartition, int, int], ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_report(cls, member: str, report: Mapping[str, Any]) -> Self:
        """Read an event as a member's process writes it.

        Args:
            member: The member that wrote it.
            report: The decoded JSON object.
        """
        rest = dict(report)
        return cls(
            time=rest.pop("time"),
            member=member,
            kind=rest.pop("event"),
            generation=rest.pop("generation", NO_GENERATION),
            partitions=frozenset(TopicPartition(*pair) for pair in rest.pop("partitions", ())),
            records=tuple(
                (TopicPartition(topic, partition), first, last)
                for topic, partition, first, last in rest.pop("ranges", ())
            ),
            details=rest,
        )

    def __str__(self) -> str:
        parts = [f"{self.member:<10} {self.kind}"]
        if self.generation != NO_GENERATION:
            parts.append(f"generation {self.generation}")
        if self.kind in {"assignment", "assigned", "revoked", "lost"}:
            parts.append(format_partitions(self.partitions))
        parts += [f"{tp.topic}-{tp.partition}: {first}..{last}" for tp, first, last in self.records]
        parts += [
            f"{key} {_in_short(key, value)}"
            for key, value in self.details.items()
            if value not in (None, "", -1, [], {}) and key not in _NOT_SHOWN
        ]
        return " ".join(parts)


def identities(events: Iterable[Event]) -> dict[str, str]:
    """Who each member is to the group: member -> the first member with its static instance id, or itself.

    A static member that restarts is a new process with a new name here; to the group it is the old member.
    """
    first: dict[str, str] = {}
    found: dict[str, str] = {}
    for event in events:
        instance = event.details.get("instance_id") if event.kind == "started" else None
        if instance:
            found[event.member] = first.setdefault(instance, event.member)
        else:
            found.setdefault(event.member, event.member)
    return found


def name_of(partition: TopicPartition) -> str:
    """A partition as people write it: "orders-3"."""
    return f"{partition.topic}-{partition.partition}"


def format_partitions(partitions: Iterable[TopicPartition]) -> str:
    """Partitions in short: "orders:0,1,4 events:2", or "none"."""
    topics = itertools.groupby(sorted(partitions), key=lambda partition: str(partition.topic))
    return (
        " ".join(f"{topic}:{','.join(str(one.partition) for one in group)}" for topic, group in topics)
        or "none"
    )


def _in_short(key: str, value: Any) -> str:
    """A detail of an event for people, who read partitions and not JSON."""
    match key:
        case "owned" | "partitions":
            return format_partitions(TopicPartition(*pair) for pair in value)
        case "plan" | "claims" if "undecodable" not in value:
            shown = "partitions" if key == "plan" else "owned"
            return ", ".join(f"({name}: {_in_short(shown, said[shown])})" for name, said in value.items())
        case _:
            return str(value)
