"""What happened in a consumer group, worked out from the events that its members reported.

All data here is plain and all functions are pure: a `Timeline` is made from `Event`s, whoever recorded them.
Who owned a partition has two readings:

`callback`: the member's application was told that it has the partition and not yet that it has not. A frozen
    member goes on owning by this reading, so overlaps are possible and show how long two applications may
    both have worked on a partition.
`generation`: the group's word. In a generation a partition belongs to those to whom it was assigned, until
    the next generation begins. Commits of older generations are refused, so an overlap in this reading
    is an assignor's error, never bad luck.

Times are seconds on the clock of the events (`time.monotonic()` where `group` records them).
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self

from kafka import TopicPartition

Reading = Literal["callback", "generation"]

NO_GENERATION = -1

_NOT_SHOWN = frozenset({"member_id", "pid", "seconds", "version"})

_ENDS = frozenset({"unsubscribed", "closed", "crashed", "exited"})
"""After these events a member owns nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened to one member.

    Attributes:
        time: When, in seconds.
        member: The name of the member; a restarted member has a new name.
        kind: What: one of the kinds in `kafka_assignors.testing.member`, or what was done to the member from
            outside: "crashed", "frozen", "thawed", "exited".
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """A member has a partition from `start` until before `end`; `end` is None if it still has it."""

    partition: TopicPartition
    member: str
    start: float
    end: float | None
    generation: int


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """In `generation` a partition has another owner than the last it had."""

    partition: TopicPartition
    generation: int
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """One generation of the group, as its members came to it.

    Attributes:
        generation: Its number.
        start: When the first of its members asked to join.
        end: When the last of its members had its assignment.
        leader: The member that assigned, None if that was not seen.
        claims: What each member told the leader, by member id, as the leader reported it.
        assignments: The partitions of each member.
    """

    generation: int
    start: float
    end: float
    leader: str | None
    claims: Mapping[str, Mapping[str, Any]]
    assignments: Mapping[str, frozenset[TopicPartition]]


class Timeline:
    """All events of a group in the order of time, and what follows from them.

    Args:
        events: The events of all members, in any order.
        end: When the record ends, for what lasts until then; by default the last event's time.
    """

    def __init__(self, events: Iterable[Event], *, end: float | None = None) -> None:
        self.events = tuple(sorted(events, key=lambda event: event.time))
        if end is None:
            end = self.events[-1].time if self.events else 0.0
        self.end = end

    def of(self, *kinds: str, member: str | None = None) -> tuple[Event, ...]:
        """The events of these kinds, of one member or of all."""
        return tuple(event for event in self.events if event.kind in kinds and member in (None, event.member))

    @cached_property
    def rebalances(self) -> tuple[Rebalance, ...]:
        """The generations in ascending order. Those that no member lived to see assigned are left out."""
        asked: dict[str, float] = {}
        starts: dict[int, float] = {}
        ends: dict[int, float] = {}
        leaders: dict[int, Event] = {}
        assignments: dict[int, dict[str, frozenset[TopicPartition]]] = defaultdict(dict)
        for event in self.events:
            number = event.generation
            match event.kind:
                case "metadata":
                    asked.setdefault(event.member, event.time)
                case "assign":
                    leaders[number] = event
                case "assignment":
                    start = asked.pop(event.member, event.time)
                    starts[number] = min(start, starts.get(number, start))
                    ends[number] = event.time
                    assignments[number][event.member] = event.partitions
        return tuple(
            Rebalance(
                generation=number,
                start=starts[number],
                end=ends[number],
                leader=leaders[number].member if number in leaders else None,
                claims=leaders[number].details.get("claims", {}) if number in leaders else {},
                assignments=assignments[number],
            )
            for number in sorted(assignments)
        )

    @cached_property
    def _instances(self) -> Mapping[str, str]:
        """Member -> its static instance id, for static members."""
        return {
            event.member: event.details["instance_id"]
            for event in self.events
            if event.kind == "started" and event.details.get("instance_id")
        }

    def _same_instance(self, first: str, second: str) -> bool:
        """Whether two members are one to the group: a static member before and after its restart."""
        instance = self._instances.get(first)
        return first == second or (instance is not None and instance == self._instances.get(second))

    def ownership(self, reading: Reading = "callback") -> tuple[Ownership, ...]:
        """Who had what when, by start time."""
        owned = self._by_callback if reading == "callback" else self._by_generation
        return tuple(sorted(owned, key=lambda one: (one.start, one.partition, one.member)))

    @cached_property
    def _by_callback(self) -> tuple[Ownership, ...]:
        done: list[Ownership] = []
        held: dict[str, dict[TopicPartition, Ownership]] = defaultdict(dict)
        for event in self.events:
            mine = held[event.member]
            if event.kind == "assigned":
                for partition in event.partitions - mine.keys():
                    mine[partition] = Ownership(
                        partition=partition,
                        member=event.member,
                        start=event.time,
                        end=None,
                        generation=event.generation,
                    )
                continue
            if event.kind in {"revoked", "lost"}:
                gone = event.partitions & mine.keys()
            else:
                gone = frozenset(mine) if event.kind in _ENDS else frozenset()
            done += [replace(mine.pop(partition), end=event.time) for partition in gone]
        return (*done, *(one for mine in held.values() for one in mine.values()))

    @cached_property
    def _by_generation(self) -> tuple[Ownership, ...]:
        done: list[Ownership] = []
        held: dict[str, list[Ownership]] = defaultdict(list)
        newest = NO_GENERATION

        def end(member: str, time: float) -> None:
            done.extend(replace(one, end=time) for one in held.pop(member, ()))

        for event in self.events:
            if event.kind == "assignment" and event.generation >= newest:
                if event.generation > newest:
                    newest = event.generation
                    for member in tuple(held):
                        end(member, event.time)
                # A static member that comes back takes its place in the same generation.
                for member in tuple(held):
                    if self._same_instance(member, event.member):
                        end(member, event.time)
                held[event.member] = [
                    Ownership(
                        partition=partition,
                        member=event.member,
                        start=event.time,
                        end=None,
                        generation=event.generation,
                    )
                    for partition in event.partitions
                ]
            elif event.kind in _ENDS:
                end(event.member, event.time)
        return (*done, *itertools.chain.from_iterable(held.values()))

    def overlaps(self, reading: Reading = "callback") -> tuple[Overlap, ...]:
        """The times at which two members had one partition, by start time."""
        found = []
        for partition, owned in _by_partition(self.ownership(reading)).items():
            for first, second in itertools.combinations(owned, 2):
                start = max(first.start, second.start)
                end = min(self._end(first), self._end(second))
                if first.member != second.member and start < end:
                    found.append(
                        Overlap(
                            partition=partition,
                            members=(first.member, second.member),
                            start=start,
                            seconds=end - start,
                        )
                    )
        return tuple(sorted(found, key=lambda overlap: (overlap.start, overlap.partition)))

    def gaps(self, reading: Reading = "callback") -> tuple[Gap, ...]:
        """The times without an owner, after a partition's first owner, by start time."""
        found = []
        for partition, owned in _by_partition(self.ownership(reading)).items():
            covered = owned[0].start
            for one in owned:
                if one.start > covered:
                    found.append(Gap(partition=partition, start=covered, seconds=one.start - covered))
                covered = max(covered, self._end(one))
            if covered < self.end:
                found.append(Gap(partition=partition, start=covered, seconds=self.end - covered))
        return tuple(sorted(found, key=lambda gap: (gap.start, gap.partition)))

    def _end(self, one: Ownership) -> float:
        return self.end if one.end is None else one.end

    def double_assigned(self) -> Mapping[int, frozenset[TopicPartition]]:
        """The partitions that a generation gave to two members; generations without any are left out.

        With an exclusive assignor this is empty, whatever members do. It does not depend on times: also an
        assignment that lasted for an instant counts.
        """
        found: dict[int, frozenset[TopicPartition]] = {}
        for rebalance in self.rebalances:
            twice: frozenset[TopicPartition] = frozenset()
            for first, second in itertools.combinations(rebalance.assignments, 2):
                if not self._same_instance(first, second):
                    twice |= rebalance.assignments[first] & rebalance.assignments[second]
            if twice:
                found[rebalance.generation] = twice
        return found

    def moves(self, *, after: int = NO_GENERATION) -> tuple[Move, ...]:
        """The partitions that changed hands, generation by generation. For exclusive assignments.

        A partition that nobody owns for a generation, as on its way in a cooperative rebalance, moves when it
        has an owner again. A static member's restart moves nothing.

        Args:
            after: Only moves in generations above this one; a group that gathers member by member moves
                much at first.
        """
        found = []
        last: dict[TopicPartition, str] = {}
        for rebalance in self.rebalances:
            for member, partitions in rebalance.assignments.items():
                for partition in sorted(partitions):
                    source = last.get(partition, member)
                    if not self._same_instance(source, member):
                        found.append(
                            Move(
                                partition=partition,
                                generation=rebalance.generation,
                                source=source,
                                target=member,
                            )
                        )
                    last[partition] = member
        return tuple(move for move in found if move.generation > after)

    @cached_property
    def _deliveries(self) -> Mapping[TopicPartition, list[tuple[int, int, float]]]:
        """Partition -> (first offset, last offset, time) of each report."""
        found: dict[TopicPartition, list[tuple[int, int, float]]] = defaultdict(list)
        for event in self.events:
            for partition, first, last in event.records:
                found[partition].append((first, last, event.time))
        return found

    def consumed(self) -> Mapping[TopicPartition, tuple[tuple[int, int], ...]]:
        """The offsets that were reported by anybody: partition -> (first, last) of each run, ascending."""
        return {
            partition: tuple(_merged((first, last) for first, last, _ in deliveries))
            for partition, deliveries in self._deliveries.items()
        }

    def missing(self, produced: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, tuple[int, ...]]:
        """The offsets that nobody reported; partitions without any are left out.

        Args:
            produced: Partition -> the number of its records, whose offsets are 0 to that number less one.
        """
        consumed = self.consumed()
        found = {}
        for partition, count in produced.items():
            holes: list[int] = []
            expected = 0
            for first, last in (*consumed.get(partition, ()), (count, count)):
                holes += range(expected, min(first, count))
                expected = max(expected, last + 1)
            if holes:
                found[partition] = tuple(holes)
        return found

    def duplicates(self) -> Mapping[TopicPartition, int]:
        """How many deliveries came on top of each record's first; partitions without any are left out."""
        runs = self.consumed()
        found = {}
        for partition, deliveries in self._deliveries.items():
            reported = sum(last - first + 1 for first, last, _ in deliveries)
            distinct = sum(last - first + 1 for first, last in runs[partition])
            if reported > distinct:
                found[partition] = reported - distinct
        return found

    def longest_silence(
        self, *, since: float | None = None, until: float | None = None
    ) -> Mapping[TopicPartition, float]:
        """The longest time in seconds between two reports of a partition's records.

        Args:
            since: Where to begin to count; by default each partition's first report.
            until: Where to end; by default each partition's last report.
        """
        found = {}
        for partition, deliveries in self._deliveries.items():
            times = [time for _, _, time in deliveries]
            begin = times[0] if since is None else since
            end = max(begin, times[-1]) if until is None else until
            marks = [begin, *(time for time in times if begin < time < end), end]
            found[partition] = max(later - earlier for earlier, later in itertools.pairwise(marks))
        return found

    def describe(self, last: int | None = None) -> str:
        """The events as text, a line each, times counted from the first event.

        Args:
            last: How many to show, from the end; all by default.
        """
        begin = self.events[0].time if self.events else 0.0
        shown = self.events if last is None else self.events[-last:]
        return "\n".join(f"{event.time - begin:8.3f} {event}" for event in shown)


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


def _by_partition(owned: Iterable[Ownership]) -> Mapping[TopicPartition, list[Ownership]]:
    found: dict[TopicPartition, list[Ownership]] = defaultdict(list)
    for one in owned:
        found[one.partition].append(one)
    return found


def _merged(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Ranges (first, last) in any order as ascending runs that neither touch nor overlap."""
    run: tuple[int, int] | None = None
    for first, last in sorted(ranges):
        if run is None:
            run = first, last
        elif first <= run[1] + 1:
            run = run[0], max(run[1], last)
        else:
            yield run
            run = first, last
    if run is not None:
        yield run
