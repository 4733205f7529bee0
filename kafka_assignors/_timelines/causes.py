"""Why records were lost, came twice or out of order: what a member did with them, and why it polled them."""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Final

from kafka import TopicPartition

from kafka_assignors._timelines import events
from kafka_assignors._timelines.facts import TimelineFacts
from kafka_assignors._timelines.records import Delivery, merged

_RANGES_SHOWN: Final = 10
_THREADS_SHOWN: Final = 3
_ENDS: Final = {-1: "the end", -2: "the beginning"}


class PartitionRecords:
    """The records of one partition: who had it, and who polled, processed and committed them.

    What became of them is said in a list of sentences, which is empty where nothing is known.
    """

    def __init__(self, timeline: TimelineFacts, partition: TopicPartition) -> None:
        self.timeline, self.partition, self.at = timeline, partition, timeline.at
        self.polled: Sequence[Delivery] = timeline.deliveries.get(partition, ())
        self.handled: Sequence[Delivery] = timeline.handled.get(partition, ())

    @cached_property
    def commits(self) -> list[events.Committed]:
        return [one for one in self.timeline.of(events.Committed) if self.partition in one.positions]

    def last_commit(self, until: float) -> tuple[int, str]:
        """The last committed position until then, and in words whose it is; empty if there is none."""
        commits = [one for one in self.commits if one.time <= until]
        if not commits:
            return -1, ""
        position = commits[-1].positions[self.partition]
        return position, f"{position}, by {commits[-1].member} {self.at(commits[-1].time)}"

    def _calls(self, member: str, until: float) -> list[events.Assigned | events.Revoked | events.Lost]:
        called = self.timeline.callbacks.get((member, self.partition), [])
        return called[: bisect_right(called, until, key=lambda one: one.time)]

    def assigned_at(self, member: str, until: float, default: float = -math.inf) -> float:
        """When a member last got the partition until then; the default, where nothing says so."""
        called = reversed(self._calls(member, until))
        return next((one.time for one in called if isinstance(one, events.Assigned)), default)

    def taken_from(self, member: str, at: float) -> events.Revoked | events.Lost | None:
        """How a member no longer had the partition at that time; None if it had it."""
        called = self._calls(member, at)
        return None if not called or isinstance(called[-1], events.Assigned) else called[-1]

    def processed_late(self, member: str, offsets: Sequence[int]) -> list[str]:
        """That a member processed some of these records when the partition had been taken from it."""
        late: list[int] = []
        first: tuple[Delivery, events.Revoked | events.Lost] | None = None
        for report in self.handled if member in self.timeline.processing else ():
            taken = self.taken_from(member, report.time) if report.member == member else None
            if taken is not None and (found := _between(offsets, report.first, report.last)):
                late += found
                first = first or (report, taken)
        if first is None:
            return []
        report, taken = first
        text = f"{member} processed {these(sorted({*late}))} {self.at(report.time)}"
        text += " and later" if report.last < late[-1] else ""
        before = f"{report.time - taken.time:.3f} s before, {self.at(taken.time)}"
        return [f"{text}, when the partition had been {taken.kind} {before}"]

    def raised_at(self, member: str, offsets: Sequence[int]) -> list[str]:
        """What a member's application raised over these records, and swallowed: the first.

        Of what it logged nothing says to which record it belongs. It is what came between the poll that
        returned the record and the next one.
        """
        raised = self.timeline.of(events.Raised, member=member)
        found: list[events.Raised] = [one for one in raised if self._are_in(one, offsets)]
        if not found:
            polls = self.timeline.of(events.Consumed, member=member)
            for poll, after in itertools.zip_longest(polls, polls[1:]):
                if self._are_in(poll, offsets):
                    until = math.inf if after is None else after.time
                    found += [one for one in raised if one.where == "log" and poll.time <= one.time < until]
        if not found:
            return []
        first = found[0]
        offset = f" at offset {first.records[0][1]}" if first.records else ""
        more = f", the first of {len(found)}" if len(found) > 1 else ""
        verb = "logged" if first.where == "log" else "had from its handler"
        return [f"{member} {verb} {first.text}{offset}, {self.at(first.time)}{more}"]

    def failed_polls(self, offsets: Sequence[int]) -> list[str]:
        """That a poll raised at one of these records: a sentence for each member."""
        failed = (one for one in reversed(self.timeline.of(events.Failed)) if self._are_in(one, offsets))
        return [
            f"{member}'s poll {self.at(one.time)} raised {error_of(one)} at offset {one.records[0][1]}"
            for member, one in reversed({one.member: one for one in failed}.items())
        ]

    def poll_committed_whole(self, member: str, offsets: Sequence[int]) -> list[str]:
        """That a member committed the end of a poll of which it had processed a part: its position."""
        polls = [
            (poll, last + 1)
            for poll in self.timeline.of(events.Consumed, member=member)
            for one, first, last in poll.records
            if one == self.partition and first <= offsets[0] <= last
        ]
        commits = [(one.time, one.positions[self.partition]) for one in self.commits if one.member == member]
        for poll, end in polls:
            until = next((at for at, to in commits if at >= poll.time and to == end), -math.inf)
            done = sum(
                max(0, min(last, one.last) + 1 - max(first, one.first))
                for at, first, last in poll.records
                for one in self.timeline.handled.get(at, ())
                if one.member == member and poll.time <= one.time <= until
            )
            if done:
                total = sum(last + 1 - first for _, first, last in poll.records)
                poll_of = f"its poll {self.at(poll.time)}, of whose {total} records it had processed {done}"
                return [f"{end} is the end of {poll_of}"]
        return []

    def in_several_threads(self, member: str) -> list[str]:
        """That several threads or tasks of a member polled its consumer, or processed these records."""
        polled = _threads(self.polled, member)
        if len(polled) > 1:
            return [f"{member} polled its consumer in {_counted(polled)}: a consumer is for one"]
        processed = _threads(self.handled, member)
        if member in self.timeline.processing and len(processed) > 1:
            return [f"{member} processed the partition's records in {_counted(processed)}"]
        return []

    def how_it_came_to(self, member: str, offset: int, *, time: float, since: float = -math.inf) -> list[str]:
        """That the application of a member had it poll this offset, by a seek since then."""
        since = max(since, self.assigned_at(member, time))
        polled = [one.time for one in self.polled if one.member == member]
        sought = [
            one
            for one in self.timeline.of(events.Sought, member=member)
            if since <= one.time <= time
            and self.partition in one.positions
            # The first poll after it, also if there was no such record and the client had to look elsewhere.
            and (one.positions[self.partition] <= offset or not any(one.time < at < time for at in polled))
        ]
        if not sought:
            return []
        last = sought[-1]
        to = last.positions[self.partition]
        by = f" in its {last.callback}" if last.callback else ""
        return [f"{member} sought {_ENDS.get(to, f'offset {to}')}{by} {self.at(last.time)}"]

    def _are_in(self, event: events.Consumed | events.Failed | events.Raised, offsets: Sequence[int]) -> bool:
        """Whether an event is about one of these records."""
        return any(
            one == self.partition and _between(offsets, first, last) for one, first, last in event.records
        )


def error_of(failed: events.Failed) -> str:
    return f"{failed.type}: {failed.text}".partition("\n")[0]


def these(offsets: Sequence[int]) -> str:
    """Offsets in words."""
    return f"offset{'s' if len(offsets) > 1 else ''} {in_ranges(offsets)}"


def in_ranges(offsets: Iterable[int]) -> str:
    """Offsets in short: "3..5, 9"."""
    runs = merged((one, one) for one in offsets)
    shown = [
        f"{first}..{last}" if last > first else str(first)
        for first, last in itertools.islice(runs, _RANGES_SHOWN)
    ]
    return ", ".join([*shown, "…"] if next(runs, None) else shown)


def _between(offsets: Sequence[int], first: int, last: int) -> Sequence[int]:
    """Those of ascending offsets that are in a range."""
    return offsets[bisect_left(offsets, first) : bisect_right(offsets, last)]


def _threads(reports: Iterable[Delivery], member: str) -> list[str]:
    return [*dict.fromkeys(one.thread for one in reports if one.member == member and one.thread)]


def _counted(threads: Sequence[str]) -> str:
    more = ", …" if len(threads) > _THREADS_SHOWN else ""
    return f"{len(threads)} threads or tasks ({', '.join(threads[:_THREADS_SHOWN])}{more})"
