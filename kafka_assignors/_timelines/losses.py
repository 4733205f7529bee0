"""Why records were left out or came twice: by what members polled, processed and committed."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka import TopicPartition

from kafka_assignors._timelines.events import (
    Assigned,
    AssignmentReceived,
    Closed,
    CommitFailed,
    Committed,
    Configured,
    Consumed,
    Crashed,
    Exited,
    Processed,
    name_of,
)
from kafka_assignors._timelines.records import Delivery, find_deliveries, merged

if TYPE_CHECKING:
    from kafka_assignors._timelines.facts import TimelineFacts

__tracebackhide__ = True

_RANGES_SHOWN: Final = 10
_COMMITS_SHOWN: Final = 3
_ENDS: Final = {"crashed": "crashed", "closed": "closed its consumer", "exited": "ended"}


def what_counts(timeline: "TimelineFacts") -> tuple[str, str]:
    """The word for what counts for losses and duplicates, and what that is."""
    if not timeline.processing:
        return "consumed", "what counts is what polls returned"
    if timeline.processing >= {*timeline.members}:
        return "processed", "what counts is what applications say"
    return "processed", "what counts is what applications say, and what polls returned to the others"


def why_missing(timeline: "TimelineFacts", partition: TopicPartition, offsets: Sequence[int]) -> list[str]:
    """What became of records that nobody processed, or nobody polled: a sentence for each who had them."""
    left, by = {*offsets}, dict[int, str]()
    for report in timeline.deliveries.get(partition, ()):
        by |= dict.fromkeys(left.intersection(report.offsets), report.member)
    polled: dict[str | None, list[int]] = defaultdict(list)
    for offset in offsets:
        polled[by.get(offset)].append(offset)
    return [
        _never_polled(timeline, partition, found)
        if member is None
        else _polled_only(timeline, partition, member, found)
        for member, found in polled.items()
    ]


def _polled_only(
    timeline: "TimelineFacts", partition: TopicPartition, member: str, offsets: Sequence[int]
) -> str:
    text, them = f"{member} polled {_these(offsets)}", "them" if len(offsets) > 1 else "it"
    committed = [one for one in _commits(timeline, partition) if one.member == member]
    past = _committed_past([one.positions[partition] for one in committed], offsets)
    if past:
        text += f" and committed {past} before it had processed {them}"
    end = _end_of(timeline, member)
    text += f"; {end}" if end else "" if past else f", and has not processed {them}"
    later = [
        one for one in timeline.deliveries[partition] if one.first > offsets[-1] and one.member != member
    ]
    return f"{text}; {later[0].member} went on at {later[0].first}" if later else text


def _committed_past(positions: Sequence[int], offsets: Sequence[int]) -> str:
    """By which committed position each of these offsets was passed, the first such commit of each."""
    found: dict[int, list[int]] = {}
    for offset in offsets:
        if (position := next((one for one in positions if one > offset), None)) is not None:
            found.setdefault(position, []).append(offset)
    if len(found) == 1 and [*found.values()] == [[*offsets]]:
        return str(*found)
    shown = [f"{position} past {in_ranges(passed)}" for position, passed in found.items()]
    return ", ".join([*shown[:_COMMITS_SHOWN], *(["…"] if len(shown) > _COMMITS_SHOWN else [])])


def _never_polled(timeline: "TimelineFacts", partition: TopicPartition, offsets: Sequence[int]) -> str:
    text = f"no member polled {_these(offsets)}"
    later = [one for one in timeline.deliveries.get(partition, ()) if one.first > offsets[0]]
    commits = _commits(timeline, partition)
    if later:
        next_one = min(later, key=lambda one: one.first)
        text += f"; {next_one.member} went on at {next_one.first}"
        # What it committed itself since it got the partition follows from where it began.
        began = _assigned_at(timeline, next_one.member, partition, next_one.time)
        commits = [one for one in commits if one.time <= began]
    if not commits and later:
        settings = timeline.of(Configured, member=next_one.member)
        reset = settings[-1].auto_offset_reset if settings else ""
        how = f"and auto_offset_reset={reset}" if reset else "see auto_offset_reset"
        return f"{text}; nothing of it was committed, {how}"
    if not commits:
        return f"{text}; nothing of it was committed"
    last = commits[-1]
    return f"{text}; the last commit before was {last.positions[partition]}, by {last.member}"


def are_committed_past(timeline: "TimelineFacts", missing: Mapping[TopicPartition, Iterable[int]]) -> bool:
    """Whether the last commit of each partition is beyond these offsets, so that none of them comes again."""
    last: dict[TopicPartition, int] = {}
    for one in timeline.of(Committed):
        last |= one.positions
    return all(max(offsets) < last.get(partition, 0) for partition, offsets in missing.items())


def longest_processing(timeline: "TimelineFacts") -> float:
    """Seconds that a record took at most from a member's poll until that member had processed it."""
    longest = 0.0
    for partition, reports in timeline.handled.items():
        polled = {
            (one.member, offset): one.time
            for one in timeline.deliveries.get(partition, ())
            for offset in one.offsets
        }
        for done in reports:
            longest = max(longest, done.time - polled.get((done.member, done.first), done.time))
    return longest


def left_undone(timeline: "TimelineFacts", member: str) -> Mapping[TopicPartition, int]:
    """What a member had polled and had not processed at its end: partition -> the first such offset.

    Empty for one whose application does not say what it has processed. After the end of a member that raised
    at a record, the first of them is most often that record.
    """
    if member not in timeline.processing:
        return {}
    done = find_deliveries(timeline.of(Processed, member=member))
    polled = find_deliveries(timeline.of(Consumed, member=member))
    found = {}
    for partition, reports in polled.items():
        processed = {offset for one in done.get(partition, ()) for offset in one.offsets}
        left = (offset for one in reports for offset in one.offsets if offset not in processed)
        if (first := next(left, None)) is not None:
            found[partition] = first
    return found


Record = tuple[TopicPartition, int]
"""A partition and an offset in it."""


def ended_in_turn(
    timeline: "TimelineFacts", ended: Sequence[str]
) -> Mapping[Record, list[tuple[float, str]]]:
    """Records at which several members ended by themselves, one after the other: when, and who."""
    at: dict[Record, list[tuple[float, str]]] = defaultdict(list)
    for member in ended:
        time = min((one.time for one in timeline.of(Exited, member=member)), default=timeline.end)
        for record in left_undone(timeline, member).items():
            at[record].append((time, member))
    return {record: sorted(deaths) for record, deaths in sorted(at.items()) if len(deaths) > 1}


def may_end_others(timeline: "TimelineFacts", ended: Sequence[str]) -> bool:
    """Whether a record at which members ended has not been processed since, and so may end others, too."""
    suspects = {record for member in ended for record in left_undone(timeline, member).items()}
    done = timeline.handled
    return any(
        not any(offset in one.offsets for one in done.get(partition, ())) for partition, offset in suspects
    )


def find_backward(timeline: "TimelineFacts") -> dict[TopicPartition, list[tuple[Delivery, Delivery]]]:
    """Reports of records at or before which the same member was already, each behind the report before it."""
    given: dict[tuple[TopicPartition, str], list[float]] = defaultdict(list)
    for event in timeline.of(Assigned):
        for partition in event.partitions:
            given[partition, event.member].append(event.time)
    found: dict[TopicPartition, list[tuple[Delivery, Delivery]]] = defaultdict(list)
    for partition, reports in sorted(timeline.handled.items()):
        latest: dict[str, Delivery] = {}
        for now in reports:
            before = latest.get(now.member)
            again = before and any(before.time < time <= now.time for time in given[partition, now.member])
            if before and now.first <= before.last and not again:
                found[partition].append((before, now))
            latest[now.member] = now
    return found


def why_backward(
    timeline: "TimelineFacts", pairs: Sequence[tuple[Delivery, Delivery]]
) -> tuple[str, list[str]]:
    """How often a member went back in a partition, and the first time in words."""
    before, now = pairs[0]
    words = ", and ".join(
        f"{_these(one.offsets)} at {one.time - timeline.begin:.3f} s" for one in (before, now)
    )
    return f"{len(pairs)} times", [f"{now.member} came to {words}"]


class _Again(NamedTuple):
    """Records of one member that another got again, or itself; first at `time`."""

    before: str
    now: str
    time: float
    offsets: list[int]


def why_twice(timeline: "TimelineFacts", partition: TopicPartition) -> list[str]:
    """Who had not committed what another got again: a sentence for each pair of members."""
    had: dict[int, str] = {}
    found: dict[tuple[str, str], _Again] = {}
    for report in timeline.handled.get(partition, ()):
        for offset in report.offsets:
            if offset in had:
                pair = had[offset], report.member
                found.setdefault(pair, _Again(*pair, report.time, [])).offsets.append(offset)
            had[offset] = report.member
    return [_described(timeline, partition, again) for again in found.values()]


def _described(timeline: "TimelineFacts", partition: TopicPartition, again: _Again) -> str:
    before, now, time, offsets = again
    done = "processed" if before in timeline.processing else "consumed"
    at = f"{time - timeline.begin:.3f} s"
    if before == now:
        return f"{now} {done} {_these(offsets)} twice, again at {at}"
    polled = [
        one.time
        for one in timeline.deliveries.get(partition, ())
        if one.member == now and offsets[0] in one.offsets and one.time <= time
    ]
    had = [one for one in timeline.handled[partition] if one.member == before]
    if polled and any(offsets[0] in one.offsets and one.time > polled[-1] for one in had):
        return (
            f"{now}, which had polled {_these(offsets)} at {polled[-1] - timeline.begin:.3f} s, processed"
            f" them at {at}, when {before} had {done} them"
        )
    commits = [one for one in _commits(timeline, partition) if one.time <= time]
    last = commits[-1].positions[partition] if commits else None
    if last is None:
        what = "and had committed nothing"
    elif last > min(offsets):
        what = f"and {last} was committed"
    else:
        what = f"and had not committed them (the last commit was {last}, by {commits[-1].member})"
    text = f"{before} had {done} {_these(offsets)} {what} when {now} got them at {at}"
    failed = _failed_commit(timeline, partition, before, time)
    return f"{text}; {failed}" if failed else text


def _failed_commit(timeline: "TimelineFacts", partition: TopicPartition, member: str, time: float) -> str:
    """Why a member had not committed when another got its records: its last commit until then, or the next.

    The next, because one that was frozen or worked too long commits when others have its partitions.
    """
    failed = [
        one
        for one in timeline.of(CommitFailed, member=member)
        if not one.positions or partition in one.positions
    ]
    if not failed:
        return ""
    one = next((one for one in reversed(failed) if one.time <= time), failed[0])
    text = f"its commit at {one.time - timeline.begin:.3f} s"
    received = [had for had in timeline.of(AssignmentReceived, member=member) if had.time <= one.time]
    if not received:
        return f"{text} failed: {one.text}"
    generation = received[-1].generation
    newer = [had for had in timeline.rebalances if had.generation > generation and had.end <= one.time]
    group = f"; the group was in generation {newer[-1].generation} by then" if newer else ""
    return f"{text}, as of generation {generation}, failed: {one.text}{group}"


def _commits(timeline: "TimelineFacts", partition: TopicPartition) -> list[Committed]:
    return [one for one in timeline.of(Committed) if partition in one.positions]


def _assigned_at(timeline: "TimelineFacts", member: str, partition: TopicPartition, until: float) -> float:
    """When a member got a partition for the last time before `until`; `until`, where nothing says so."""
    found = (one.time for one in timeline.of(Assigned, member=member) if partition in one.partitions)
    return max((at for at in found if at <= until), default=until)


def _end_of(timeline: "TimelineFacts", member: str) -> str:
    """How a member ended and when, or nothing. That it was killed may be reported after its end."""
    for kind in (Crashed, Closed, Exited):
        for event in timeline.of(kind, member=member):
            return f"it {_ENDS[event.kind]} at {event.time - timeline.begin:.3f} s"
    return ""


def _these(offsets: Sequence[int]) -> str:
    return f"offset{'s' if len(offsets) > 1 else ''} {in_ranges(offsets)}"


def in_ranges(offsets: Iterable[int]) -> str:
    """Offsets in short: "3..5, 9"."""
    runs = merged((one, one) for one in offsets)
    shown = [
        f"{first}..{last}" if last > first else str(first)
        for first, last in itertools.islice(runs, _RANGES_SHOWN)
    ]
    return ", ".join([*shown, "…"] if next(runs, None) else shown)


def named(partition: TopicPartition, count: str, reasons: Sequence[str]) -> str:
    """A line of a message: the partition, how many, and why."""
    return ": ".join([name_of(partition), count, *(["; and ".join(reasons)] if reasons else [])])
