"""Why records were lost, came twice or out of order: what a member did with them, and why it polled them."""

import itertools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Final

from kafka import TopicPartition

from kafka_assignors._timelines import events
from kafka_assignors._timelines.facts import TimelineFacts
from kafka_assignors._timelines.records import Delivery, merged

_RANGES_SHOWN: Final = 10
_THREADS_SHOWN: Final = 3
_ENDS: Final = {-1: "the end", -2: "the beginning"}


def assigned_at(timeline: TimelineFacts, member: str, partition: TopicPartition, until: float) -> float:
    """When a member got a partition for the last time until then; -inf, where nothing says so."""
    called = timeline.callbacks.get((member, partition), ())
    return max(
        (one.time for one in called if isinstance(one, events.Assigned) and one.time <= until),
        default=-math.inf,
    )


def taken_from(
    timeline: TimelineFacts, member: str, partition: TopicPartition, at: float
) -> events.Revoked | events.Lost | None:
    """How a member no longer had a partition at that time; None if it had it."""
    called = [one for one in timeline.callbacks.get((member, partition), ()) if one.time <= at]
    return None if not called or isinstance(called[-1], events.Assigned) else called[-1]


def processed_late(
    timeline: TimelineFacts, partition: TopicPartition, member: str, offsets: Sequence[int]
) -> list[str]:
    """That a member processed some of these records when their partition had been taken from it."""
    late: list[int] = []
    first: tuple[Delivery, events.Revoked | events.Lost] | None = None
    for report in timeline.handled[partition] if member in timeline.processing else ():
        taken = taken_from(timeline, member, partition, report.time) if report.member == member else None
        if taken is not None and (found := _between(offsets, report.first, report.last)):
            late += found
            first = first or (report, taken)
    if first is None:
        return []
    report, taken = first
    text = f"{member} processed {these(sorted({*late}))} {timeline.at(report.time)}"
    text += " and later" if report.last < late[-1] else ""
    before = f"{report.time - taken.time:.3f} s before, {timeline.at(taken.time)}"
    return [f"{text}, when the partition had been {taken.kind} {before}"]


def raised_at(
    timeline: TimelineFacts, partition: TopicPartition, member: str, offsets: Sequence[int]
) -> list[str]:
    """What a member's application raised over these records, and swallowed: the first.

    Of what it logged nothing says to which record it belongs. It is what came between the poll that returned
    the record and the next one.
    """
    raised = timeline.of(events.Raised, member=member)
    found: list[events.Raised] = [one for one in raised if _is_about(one, partition, offsets)]
    if not found:
        polls = timeline.of(events.Consumed, member=member)
        for poll, after in itertools.zip_longest(polls, polls[1:]):
            if _is_about(poll, partition, offsets):
                until = math.inf if after is None else after.time
                found += [one for one in raised if one.where == "log" and poll.time <= one.time < until]
    if not found:
        return []
    first = found[0]
    at = f" at offset {first.records[0][1]}" if first.records else ""
    more = f", the first of {len(found)}" if len(found) > 1 else ""
    verb = "logged" if first.where == "log" else "had from its handler"
    return [f"{member} {verb} {first.text}{at}, {timeline.at(first.time)}{more}"]


def failed_polls(timeline: TimelineFacts, partition: TopicPartition, offsets: Sequence[int]) -> list[str]:
    """That a poll raised at one of these records: a sentence for each member."""
    found = {
        one.member: one for one in reversed(timeline.of(events.Failed)) if _is_about(one, partition, offsets)
    }
    return [
        f"{member}'s poll {timeline.at(one.time)} raised {error_of(one)} at offset {one.records[0][1]}"
        for member, one in reversed(found.items())
    ]


def error_of(failed: events.Failed) -> str:
    return f"{failed.type}: {failed.text}".partition("\n")[0]


def poll_committed_whole(
    timeline: TimelineFacts, partition: TopicPartition, member: str, offsets: Sequence[int]
) -> list[str]:
    """That a member committed the end of a poll of which it had processed a part: its consumer's position."""
    polls = [
        (poll, last + 1)
        for poll in timeline.of(events.Consumed, member=member)
        for one, first, last in poll.records
        if one == partition and first <= offsets[0] <= last
    ]
    commits = timeline.of(events.Committed, member=member) if polls else ()
    for poll, end in polls:
        of_end = (
            one.time for one in commits if one.time >= poll.time and one.positions.get(partition) == end
        )
        until = next(of_end, -math.inf)
        done = sum(
            max(0, min(last, one.last) + 1 - max(first, one.first))
            for at, first, last in poll.records
            for one in timeline.handled.get(at, ())
            if one.member == member and poll.time <= one.time <= until
        )
        if done:
            total = sum(last + 1 - first for _, first, last in poll.records)
            poll_of = f"its poll {timeline.at(poll.time)}, of whose {total} records it had processed {done}"
            return [f"{end} is the end of {poll_of}"]
    return []


def in_several_threads(timeline: TimelineFacts, partition: TopicPartition, member: str) -> list[str]:
    """That several threads or tasks of a member polled its consumer, or processed a partition's records."""
    polled = _threads(timeline.deliveries.get(partition, ()), member)
    if len(polled) > 1:
        return [f"{member} polled its consumer in {_counted(polled)}: a consumer is for one"]
    processed = _threads(timeline.handled.get(partition, ()), member)
    if member in timeline.processing and len(processed) > 1:
        return [f"{member} processed the partition's records in {_counted(processed)}"]
    return []


def how_it_came_to(
    timeline: TimelineFacts,
    partition: TopicPartition,
    member: str,
    offset: int,
    *,
    time: float,
    since: float = -math.inf,
) -> list[str]:
    """That the application of a member had it poll this offset, by a seek since then."""
    since = max(since, assigned_at(timeline, member, partition, time))
    polled = [one.time for one in timeline.deliveries.get(partition, ()) if one.member == member]
    sought = [
        one
        for one in timeline.of(events.Sought, member=member)
        if since <= one.time <= time
        and partition in one.positions
        # The first poll after it, also where there was no such record and the client had to look elsewhere.
        and (one.positions[partition] <= offset or not any(one.time < at < time for at in polled))
    ]
    if not sought:
        return []
    last = sought[-1]
    to = last.positions[partition]
    by = f" in its {last.callback}" if last.callback else ""
    return [f"{member} sought {_ENDS.get(to, f'offset {to}')}{by} {timeline.at(last.time)}"]


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


def _is_about(
    event: events.Consumed | events.Failed | events.Raised, partition: TopicPartition, offsets: Sequence[int]
) -> bool:
    return any(one == partition and _between(offsets, first, last) for one, first, last in event.records)


def _threads(reports: Iterable[Delivery], member: str) -> list[str]:
    return [*dict.fromkeys(one.thread for one in reports if one.member == member and one.thread)]


def _counted(threads: Sequence[str]) -> str:
    more = ", …" if len(threads) > _THREADS_SHOWN else ""
    return f"{len(threads)} threads or tasks ({', '.join(threads[:_THREADS_SHOWN])}{more})"
