"""Why records were left out or came twice: by what members polled, processed and committed."""

import itertools
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from kafka import TopicPartition

from kafka_assignors._timelines import events
from kafka_assignors._timelines.causes import PartitionRecords, in_ranges, these
from kafka_assignors._timelines.facts import TimelineFacts
from kafka_assignors._timelines.records import Delivery

_COMMITS_SHOWN: Final = 3
_ENDS: Final = {"crashed": "crashed", "closed": "closed its consumer", "exited": "ended"}


def what_counts(timeline: TimelineFacts) -> tuple[str, str]:
    """The word for what counts for losses and duplicates, and what that is."""
    if not timeline.processing:
        return "consumed", "what counts is what polls returned"
    if timeline.processing >= {*timeline.members}:
        return "processed", "what counts is what applications say"
    return "processed", "what counts is what applications say, and what polls returned to the others"


def why_missing(
    timeline: TimelineFacts,
    missing: Mapping[TopicPartition, Sequence[int]],
    produced: Mapping[TopicPartition, int],
    word: str = "",
) -> Iterator[str]:
    """What became of records that nobody processed, or nobody polled: a line for each partition."""
    for partition, offsets in sorted(missing.items()):
        records = PartitionRecords(timeline, partition)
        left, by = {*offsets}, dict[int, str]()
        for report in records.polled:
            by |= dict.fromkeys(left.intersection(report.offsets), report.member)
        polled: dict[str | None, list[int]] = defaultdict(list)
        for offset in offsets:
            polled[by.get(offset)].append(offset)
        reasons = [
            _never_polled(records, found) if member is None else _polled_only(records, member, found)
            for member, found in polled.items()
        ]
        some = f"{len(offsets)} of {produced[partition]}{word}, offsets {in_ranges(offsets)}"
        yield named(partition, some, reasons)


def _polled_only(records: PartitionRecords, member: str, offsets: Sequence[int]) -> str:
    text, them = f"{member} polled {these(offsets)}", "them" if len(offsets) > 1 else "it"
    positions = [one.positions[records.partition] for one in records.commits if one.member == member]
    past = _committed_past(positions, offsets)
    if past:
        text += f" and committed {past} before it had processed {them}"
    end = _end_of(records.timeline, member)
    text += f"; {end}" if end else "" if past else f", and has not processed {them}"
    later = [one for one in records.polled if one.first > offsets[-1] and one.member != member]
    text += f"; {later[0].member} went on at {later[0].first}" if later else ""
    whole = records.poll_committed_whole(member, offsets) if past else []
    raised, threads = records.raised_at(member, offsets), records.in_several_threads(member)
    return "; ".join([text, *whole, *raised, *threads])


def _committed_past(positions: Sequence[int], offsets: Sequence[int]) -> str:
    """By which committed position each of these offsets was passed, the first such commit of each."""
    found: dict[int, list[int]] = {}
    # Up to each commit: where it first exceeds an offset, that commit is the first to do so.
    highest = [*itertools.accumulate(positions, max)]
    for offset in offsets:
        if (first := bisect_right(highest, offset)) < len(highest):
            found.setdefault(highest[first], []).append(offset)
    if len(found) == 1 and [*found.values()] == [[*offsets]]:
        return str(*found)
    shown = [f"{position} past {in_ranges(passed)}" for position, passed in found.items()]
    return ", ".join([*shown[:_COMMITS_SHOWN], *(["…"] if len(shown) > _COMMITS_SHOWN else [])])


def _never_polled(records: PartitionRecords, offsets: Sequence[int]) -> str:
    text = "; ".join([f"no member polled {these(offsets)}", *records.failed_polls(offsets)])
    later = [one for one in records.polled if one.first > offsets[0]]
    until, how = math.inf, ""
    if later:
        first, _, time, member, _ = min(later, key=lambda one: one.first)
        text += f"; {member} went on at {first}"
        if sought := records.how_it_came_to(member, first, time=time):
            return "; ".join([text, *sought])
        # What it committed itself since it got the partition follows from where it began.
        until = records.assigned_at(member, time, default=time)
        settings = records.timeline.of(events.Configured, member=member)
        reset = settings[-1].auto_offset_reset if settings else ""
        how = f", and auto_offset_reset={reset}" if reset else ", see auto_offset_reset"
    _, last = records.last_commit(until)
    return (
        f"{text}; the last commit before was {last}" if last else f"{text}; nothing of it was committed{how}"
    )


def are_committed_past(timeline: TimelineFacts, missing: Mapping[TopicPartition, Iterable[int]]) -> bool:
    """Whether the last commit of each partition is beyond these offsets, so that none of them comes again."""
    last: dict[TopicPartition, int] = {}
    for one in timeline.of(events.Committed):
        last |= one.positions
    return all(max(offsets) < last.get(partition, 0) for partition, offsets in missing.items())


def longest_processing(timeline: TimelineFacts) -> float:
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


def left_undone(timeline: TimelineFacts, member: str) -> Mapping[TopicPartition, int]:
    """What a member had polled and had not processed at its end: partition -> the first such offset.

    Empty for one whose application does not say what it has processed. After the end of a member that raised
    at a record, the first of them is most often that record. If its last poll raised at a record, it is that.
    """
    if last := failed_at_last(timeline, member):
        return {partition: first for partition, first, _ in last.records}
    found = {}
    for partition, polled in timeline.deliveries.items():
        handled = timeline.handled.get(partition, ())
        done = {offset for one in handled if one.member == member for offset in one.offsets}
        left = (offset for one in polled if one.member == member for offset in one.offsets)
        if (first := next((offset for offset in left if offset not in done), None)) is not None:
            found[partition] = first
    return found


def failed_at_last(timeline: TimelineFacts, member: str) -> events.Failed | None:
    """The failure of a member's last poll, if a deserializer raised in it."""
    polls = timeline.of(events.Failed, events.Consumed, member=member)
    return polls[-1] if polls and isinstance(polls[-1], events.Failed) and polls[-1].records else None


Record = tuple[TopicPartition, int]
"""A partition and an offset in it."""


def ended_in_turn(timeline: TimelineFacts, ended: Sequence[str]) -> Mapping[Record, list[tuple[float, str]]]:
    """Records at which several members ended by themselves, one after the other: when, and who."""
    at: dict[Record, list[tuple[float, str]]] = defaultdict(list)
    for member in ended:
        time = min((one.time for one in timeline.of(events.Exited, member=member)), default=timeline.end)
        for record in left_undone(timeline, member).items():
            at[record].append((time, member))
    return {record: sorted(deaths) for record, deaths in sorted(at.items()) if len(deaths) > 1}


def may_end_others(timeline: TimelineFacts, ended: Sequence[str]) -> bool:
    """Whether a record at which members ended has not been processed since, and so may end others, too."""
    suspects = {record for member in ended for record in left_undone(timeline, member).items()}
    done = timeline.handled
    return any(
        not any(offset in one.offsets for one in done.get(partition, ())) for partition, offset in suspects
    )


def find_backward(timeline: TimelineFacts) -> dict[TopicPartition, list[tuple[Delivery, Delivery]]]:
    """Reports of records that come too late, each behind the report before it.

    The same member was there already, or beyond. Or the partition was taken from the member, and another was.
    """
    found: dict[TopicPartition, list[tuple[Delivery, Delivery]]] = defaultdict(list)
    for partition, reports in sorted(timeline.handled.items()):
        records = PartitionRecords(timeline, partition)
        latest: dict[str, Delivery] = {}
        for now in reports:
            before = latest.get(now.member)
            given = records.assigned_at(now.member, now.time)
            if before and now.first <= before.last and given <= before.time:
                found[partition].append((before, now))
            elif taken := records.taken_from(now.member, now.time):
                ahead = [one for one in latest.values() if one.time > taken.time and one.last >= now.first]
                if others := [one for one in ahead if one.member != now.member]:
                    found[partition].append((others[0], now))
            latest[now.member] = now
    return found


def why_backward(
    timeline: TimelineFacts, partition: TopicPartition, pairs: Sequence[tuple[Delivery, Delivery]]
) -> tuple[str, list[str]]:
    """How often a partition's records came too late, and the first time in words, with its cause."""
    before, now = pairs[0]
    same = before.member == now.member
    words = [f"{these(one.offsets)} {timeline.at(one.time)}" for one in pairs[0]]
    came = f"{before.member} came to {words[0]}, and {'' if same else f'{now.member} to '}{words[1]}"
    records = PartitionRecords(timeline, partition)
    why = [
        *records.processed_late(now.member, now.offsets),
        *records.how_it_came_to(now.member, now.first, time=now.time, since=before.time),
        *(records.in_several_threads(now.member) if same else []),
    ]
    return f"{len(pairs)} times" if len(pairs) > 1 else "once", ["; ".join([came, *why])]


class _Again(NamedTuple):
    """Records of one member that another got again, or itself; first at `time`."""

    before: str
    now: str
    time: float
    offsets: list[int]


def why_twice(timeline: TimelineFacts, partition: TopicPartition) -> list[str]:
    """Who had not committed what another got again: a sentence for each pair of members."""
    records = PartitionRecords(timeline, partition)
    had: dict[int, str] = {}
    found: dict[tuple[str, str], _Again] = {}
    for report in records.handled:
        for offset in report.offsets:
            if offset in had:
                pair = had[offset], report.member
                found.setdefault(pair, _Again(*pair, report.time, [])).offsets.append(offset)
            had[offset] = report.member
    return [_described(records, again) for again in found.values()]


def _described(records: PartitionRecords, again: _Again) -> str:
    before, now, time, offsets = again
    at, done = records.at, _done(records.timeline, before)
    had = [one.time for one in records.handled if one.member == before and offsets[0] in one.offsets]
    polled = [
        one.time
        for one in records.polled
        if one.member == now and offsets[0] in one.offsets and one.time <= time
    ]
    came = polled[-1] if polled else time
    if before == now:
        text = _twice_by_itself(records, again, since=had[0], polls=len(polled))
    elif polled and had[-1] > came:
        text = (
            f"{now}, which had polled {these(offsets)} {at(came)}, processed them {at(time)}, when {before}"
            f" had {done} them"
        )
    else:
        text = _got_again(records, again)
    late = (records.processed_late(member, sorted(offsets)) for member in dict.fromkeys((before, now)))
    sought = records.how_it_came_to(now, offsets[0], time=came, since=had[0])
    threads = records.in_several_threads(now) if before == now else []
    return "; ".join([text, *itertools.chain(*late), *sought, *threads])


def _twice_by_itself(records: PartitionRecords, again: _Again, *, since: float, polls: int) -> str:
    _, member, time, offsets = again
    text = f"{member} {_done(records.timeline, member)} {these(offsets)} twice, again {records.at(time)}"
    given = records.assigned_at(member, time)
    if given > since:
        _, last = records.last_commit(given)
        commit = f"the last commit was {last}" if last else "nothing was committed"
        return f"{text}; it got the partition again {records.at(given)}, when {commit}"
    return f"{text}, of one poll" if polls == 1 and member in records.timeline.processing else text


def _got_again(records: PartitionRecords, again: _Again) -> str:
    before, now, time, offsets = again
    position, last = records.last_commit(records.assigned_at(now, time, default=time))
    if not last:
        what = "and had committed nothing"
    elif position > min(offsets):
        what = f"and the last commit was {last},"
    else:
        what = f"and had not committed them (the last commit was {last})"
    done = _done(records.timeline, before)
    text = f"{before} had {done} {these(offsets)} {what} when {now} got them {records.at(time)}"
    failed = _failed_commit(records, before, time)
    return f"{text}; {failed}" if failed else text


def _done(timeline: TimelineFacts, member: str) -> str:
    return "processed" if member in timeline.processing else "consumed"


def _failed_commit(records: PartitionRecords, member: str, time: float) -> str:
    """Why a member had not committed when another got its records: its last commit until then, or the next.

    The next, because one that was frozen or worked too long commits when others have its partitions.
    """
    timeline = records.timeline
    failed = [
        one
        for one in timeline.of(events.CommitFailed, member=member)
        if not one.positions or records.partition in one.positions
    ]
    if not failed:
        return ""
    one = next((one for one in reversed(failed) if one.time <= time), failed[0])
    text = f"its commit {records.at(one.time)}"
    received = [had for had in timeline.of(events.AssignmentReceived, member=member) if had.time <= one.time]
    if not received:
        return f"{text} failed: {one.text}"
    generation = received[-1].generation
    newer = [had for had in timeline.rebalances if had.generation > generation and had.end <= one.time]
    group = f"; the group was in generation {newer[-1].generation} by then" if newer else ""
    return f"{text}, as of generation {generation}, failed: {one.text}{group}"


def _end_of(timeline: TimelineFacts, member: str) -> str:
    """How a member ended and when, or nothing. That it was killed may be reported after its end."""
    for kind in (events.Crashed, events.Closed, events.Exited):
        for event in timeline.of(kind, member=member):
            return f"it {_ENDS[event.kind]} {timeline.at(event.time)}"
    return ""


def named(partition: TopicPartition, count: str, reasons: Sequence[str]) -> str:
    """A line of a message: the partition, how many, and why."""
    return ": ".join([events.name_of(partition), count, *(["; and ".join(reasons)] if reasons else [])])
