"""What follows from the events of a group: who owned what when, its generations and its records."""

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping
from copy import copy
from functools import cached_property
from typing import Self, TypeVar

from kafka import TopicPartition

from kafka_assignors._timelines.events import (
    NO_GENERATION,
    Assigned,
    Consumed,
    Event,
    Lost,
    Processed,
    Revoked,
    Started,
    identities,
)
from kafka_assignors._timelines.lines import line, lines_of
from kafka_assignors._timelines.marks import find_marks
from kafka_assignors._timelines.ownership import (
    Gap,
    Overlap,
    Ownership,
    Reading,
    by_partition,
    owned_by_callback,
    owned_by_generation,
)
from kafka_assignors._timelines.rebalances import PartitionMove, SeenRebalance, find_rebalances
from kafka_assignors._timelines.records import (
    Deliveries,
    find_deliveries,
    find_longest_silence,
    runs_of,
)

Kind = TypeVar("Kind", bound=Event)


class TimelineFacts:
    """What follows from the events of a group; `Timeline` has the arguments and the attributes."""

    def __init__(self, events: Iterable[Event], *, end: float | None = None) -> None:
        self.events = tuple(sorted(events, key=lambda event: event.time))
        self.begin = self.events[0].time if self.events else 0.0
        if end is None:
            end = self.events[-1].time if self.events else 0.0
        self.end = end
        self.identity: Mapping[str, str] = identities(self.events)

    def ending(self, end: float) -> Self:
        """The same record until another end. What was found out already is not found out again."""
        other = copy(self)
        other.end = end
        return other

    @property
    def members(self) -> tuple[str, ...]:
        """The members by their first events."""
        return tuple(self._by_member)

    @cached_property
    def _by_member(self) -> Mapping[str, list[Event]]:
        found: dict[str, list[Event]] = defaultdict(list)
        for event in self.events:
            found[event.member].append(event)
        return found

    def of(self, *kinds: type[Kind], member: str | None = None) -> tuple[Kind, ...]:
        """The events of these types, of one member or of all."""
        among = self.events if member is None else self._by_member.get(member, ())
        return tuple(event for event in among if isinstance(event, kinds))

    # Ownership

    @cached_property
    def callbacks(self) -> Mapping[tuple[str, TopicPartition], list[Assigned | Revoked | Lost]]:
        """By member and partition, how an application got and gave up the partition, by time."""
        found: dict[tuple[str, TopicPartition], list[Assigned | Revoked | Lost]] = defaultdict(list)
        for event in self.events:
            if isinstance(event, Assigned | Revoked | Lost):
                for partition in event.partitions:
                    found[event.member, partition].append(event)
        return found

    @cached_property
    def rebalances(self) -> tuple[SeenRebalance, ...]:
        """The generations in ascending order. Those that no member lived to see assigned are left out."""
        return find_rebalances(self.events, self.identity)

    def ownership(self, reading: Reading = "callback") -> tuple[Ownership, ...]:
        """Who had what when, by start time."""
        return self._by_callback if reading == "callback" else self._by_generation

    @cached_property
    def _by_callback(self) -> tuple[Ownership, ...]:
        return owned_by_callback(self.events)

    @cached_property
    def _by_generation(self) -> tuple[Ownership, ...]:
        return owned_by_generation(self.events, self.identity)

    def overlaps(self, reading: Reading = "callback") -> tuple[Overlap, ...]:
        """The times at which two members had one partition, by start time."""
        found = []
        for partition, ones in by_partition(self.ownership(reading)).items():
            held: list[Ownership] = []
            for second in ones:
                start = second.start
                held = [one for one in held if one.ended(self.end) > start]
                for first in held:
                    seconds = min(first.ended(self.end), second.ended(self.end)) - start
                    if seconds > 0:
                        members = first.member, second.member
                        found.append(
                            Overlap(partition=partition, members=members, start=start, seconds=seconds)
                        )
                held.append(second)
        return tuple(sorted(found, key=lambda overlap: (overlap.start, overlap.partition)))

    def gaps(self, reading: Reading = "callback") -> tuple[Gap, ...]:
        """The times without an owner, after a partition's first owner, by start time."""
        found = []
        for partition, ones in by_partition(self.ownership(reading)).items():
            covered = ones[0].start
            for start, end in (*((one.start, one.ended(self.end)) for one in ones), (self.end, self.end)):
                if start > covered:
                    found.append(Gap(partition=partition, start=covered, seconds=start - covered))
                covered = max(covered, end)
        return tuple(sorted(found, key=lambda gap: (gap.start, gap.partition)))

    def double_assigned(self) -> Mapping[int, frozenset[TopicPartition]]:
        """The partitions that a generation gave to two members; generations without any are left out.

        With an exclusive assignor this is always empty. It does not depend on times: also an assignment that
        lasted for an instant counts.
        """
        found: dict[int, frozenset[TopicPartition]] = {}
        for rebalance in self.rebalances:
            owners: dict[TopicPartition, str] = {}
            twice = [
                one
                for member, partitions in rebalance.assignments.items()
                for one in partitions
                if owners.setdefault(one, self.identity[member]) != self.identity[member]
            ]
            if twice:
                found[rebalance.generation] = frozenset(twice)
        return found

    def moves(self, *, after: int = NO_GENERATION) -> tuple[PartitionMove, ...]:
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
            for target, partitions in rebalance.assignments.items():
                for one in sorted(partitions):
                    source, number = last.get(one, target), rebalance.generation
                    if self.identity[source] != self.identity[target] and number > after:
                        move = PartitionMove(partition=one, generation=number, source=source, target=target)
                        found.append(move)
                    last[one] = target
        return tuple(found)

    # Records

    @cached_property
    def deliveries(self) -> Deliveries:
        """Partition -> first offset, last offset, time and member of each poll's records."""
        return find_deliveries(self.of(Consumed))

    @cached_property
    def processing(self) -> frozenset[str]:
        """The members whose applications say what they have processed: `Seat.processed`."""
        clients = {event.member: event.client for event in self.of(Started)}
        reporting = {event.member for event in self.of(Processed)}
        # One that crashes before its first word is no less of a client that says so.
        speaking = {clients[member] for member in reporting if clients.get(member)}
        return frozenset(reporting | {member for member, client in clients.items() if client in speaking})

    @cached_property
    def handled(self) -> Deliveries:
        """As `deliveries`, of what counts for losses: of members in `processing` what they processed."""
        return find_deliveries(
            one
            for one in self.of(Consumed, Processed)
            if isinstance(one, Processed) or one.member not in self.processing
        )

    def consumed(self) -> Mapping[TopicPartition, tuple[tuple[int, int], ...]]:
        """The offsets that were reported by anybody: partition -> (first, last) of each run, ascending."""
        return runs_of(self.deliveries)

    def missing(self, produced: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, tuple[int, ...]]:
        """The offsets that nobody handled; partitions without any are left out.

        Args:
            produced: Partition -> the number of its records, whose offsets are 0 to that number less one.
        """
        runs = runs_of(self.handled)
        found = {}
        for partition, count in produced.items():
            holes: list[int] = []
            expected = 0
            for first, last in (*runs.get(partition, ()), (count, count)):
                holes += range(expected, min(first, count))
                expected = max(expected, last + 1)
            if holes:
                found[partition] = tuple(holes)
        return found

    def duplicates(self) -> Mapping[TopicPartition, int]:
        """How many deliveries came on top of each record's first; partitions without any are left out."""
        runs, found = runs_of(self.handled), {}
        for partition, reports in self.handled.items():
            reported = sum(len(one.offsets) for one in reports)
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
        for partition, reports in self.deliveries.items():
            start, end = find_longest_silence(reports, since=since, until=until)
            found[partition] = end - start
        return found

    # For people

    @cached_property
    def marks(self) -> tuple[Event, ...]:
        """What was done to members or what they did to the group: joins, crashes, freezes..."""
        return find_marks(self.events)

    def describe(self, last: int | None = None) -> str:
        """The events as text, a line each, times counted from the first event.

        Where many in a row are of records and commits, there is one line for each member and kind; `line` has
        each event.

        Args:
            last: How many lines to show, from the end; all by default.
        """
        lines = lines_of(self.events, self.begin)
        return "\n".join(lines if last is None else deque(lines, last))

    def at(self, time: float) -> str:
        """A moment as messages have it: "at 1.234 s"."""
        return f"at {time - self.begin:.3f} s"

    def line(self, event: Event) -> str:
        """One event as `describe` shows it."""
        return line(event, self.begin)
