"""What kept a group waiting: members that were busy, frozen or gone, and leaders that planned for long."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from kafka_assignors._timelines import events
from kafka_assignors._timelines.facts import TimelineFacts
from kafka_assignors._timelines.rebalances import SeenRebalance

_SHARE: Final = 0.1
"""Of a pause: what took less of it is no cause worth naming."""

_SHOWN: Final = 3

_OF_BROKER: Final = "the broker's group.consumer.session.timeout.ms"

_STORM: Final = 4
"""Subscriptions of one member in one pause that are worth a word: each of them is a rebalance."""


class PauseCause(NamedTuple):
    """Something that took a member's time, and with it the group's.

    Its text is a sentence without its subject and its end.
    """

    start: float
    end: float
    member: str
    text: str


def why_paused(timeline: TimelineFacts, start: float, end: float) -> list[str]:
    """What members did in a time in which a group, or a partition, stood still: a sentence each.

    What took most of that time comes first. Nothing, if no member reported anything that lasts.
    """
    causes = [*_causes(timeline), *_storms(timeline, start, end), *_of_one_instance_id(timeline)]
    within = [(min(cause.end, end) - max(cause.start, start), cause) for cause in causes]
    found = [(took, cause) for took, cause in within if took > 0 and took >= _SHARE * (end - start)]
    found.sort(key=lambda one: (-one[0], one[1].start))
    return [f"{cause.member} {cause.text}" for _, cause in found[:_SHOWN]]


def _causes(timeline: TimelineFacts) -> Iterator[PauseCause]:
    for member in timeline.members:
        settings = (timeline.of(events.Configured, member=member) or (events.Configured(0, member),))[-1]
        for late in timeline.of(events.PolledLate, member=member):
            yield _not_polling(timeline, settings, late.time - late.seconds, late.time, "until")
        yield from _silent_to_the_end(timeline, settings)
        for called in timeline.of(events.ListenerReturned, member=member):
            took = f"spent {called.seconds:.1f} s in its {called.callback}"
            until = f"{took}, until {_at(timeline, called.time)}"
            yield PauseCause(called.time - called.seconds, called.time, member, until)
        for led in timeline.of(events.Led, member=member):
            took = f"planned generation {led.generation} for {led.seconds:.1f} s, as its leader"
            yield PauseCause(led.time - led.seconds, led.time, member, took)
        for frozen, thawed in _spans(timeline, member, events.Frozen, events.Thawed):
            yield _unheard(timeline, settings, frozen, thawed, "was frozen")
        for cut, mended in _spans(timeline, member, events.CutOff, events.Reconnected):
            yield _unheard(timeline, settings, cut, mended, "was cut off")
        yield from _gone(timeline, settings)


def _storms(timeline: TimelineFacts, start: float, end: float) -> Iterator[PauseCause]:
    """Members that came again and again: one that makes a consumer for each batch, or changes its topics."""
    for member in timeline.members:
        times = [
            one.time for one in timeline.of(events.Subscribed, member=member) if start <= one.time <= end
        ]
        if len(times) < _STORM:
            continue
        generations = [one.generation for one in timeline.rebalances if times[0] <= one.start <= end]
        text = f"subscribed {len(times)} times, from {_at(timeline, times[0])} to {_at(timeline, times[-1])}"
        if len(generations) > 1:
            text += f"; generations {generations[0]} to {generations[-1]} followed"
        # Between two of them the group had no time to come to rest.
        yield PauseCause(times[0], end, member, text)


def _of_one_instance_id(timeline: TimelineFacts) -> Iterator[PauseCause]:
    """Members that run at the same time as one static member."""
    of_id: dict[str, list[events.Configured]] = defaultdict(list)
    for one in timeline.of(events.Configured):
        if one.instance_id:
            of_id[one.instance_id].append(one)
    for instance_id, made in of_id.items():
        for before, now in itertools.pairwise(made):
            ends = [
                one.time
                for one in timeline.of(events.Closed, events.Crashed, events.Exited, member=before.member)
            ]
            end = min(ends, default=timeline.end)
            if before.member != now.member and end > now.time:
                yield PauseCause(
                    now.time,
                    timeline.end,
                    now.member,
                    f"has the instance id {instance_id!r} from {_at(timeline, now.time)} on, which"
                    f" {before.member} had; the coordinator fences the one that came first",
                )


def _not_polling(
    timeline: TimelineFacts, settings: events.Configured, start: float, end: float, until: str
) -> PauseCause:
    text = f"did not poll for {end - start:.1f} s, {until} {_at(timeline, end)}"
    limit = settings.max_poll_interval_ms
    if limit and 1000 * (end - start) > limit:
        text += f", more than max_poll_interval_ms={limit}"
        text += _without(timeline, settings.member, start + limit / 1000)
    elif limit:
        text += f" (it may for max_poll_interval_ms={limit})"
        others = (one for one in timeline.of(events.Joining) if one.member != settings.member)
        if any(start < one.time <= end for one in others):
            text += "; a rebalance waits for that"
    return PauseCause(start, end, settings.member, text)


def _silent_to_the_end(timeline: TimelineFacts, settings: events.Configured) -> Iterator[PauseCause]:
    """A member that had still not polled when it was asked last, or that was made not to."""
    member = settings.member
    for paused, resumed in _spans(timeline, member, events.Paused, events.Resumed):
        if resumed is None:
            yield _not_polling(timeline, settings, paused, timeline.end, "to")
            return
    polls = [event.time for event in timeline.of(events.PolledLate, member=member)]
    for state in timeline.of(events.StateReported, member=member)[-1:]:
        if state.silent >= events.LONG and state.time > max(polls, default=state.time - 1):
            yield _not_polling(timeline, settings, state.time - state.silent, state.time, "to")


def _unheard(
    timeline: TimelineFacts, settings: events.Configured, start: float, end: float | None, how: str
) -> PauseCause:
    text = f"{how} at {_at(timeline, start)}"
    limit = settings.session_timeout_ms
    last = timeline.end if end is None else end
    # Its session began with its last heartbeat: it may be over before this has lasted for as long.
    without = _without(timeline, settings.member, start)
    if limit and 1000 * (last - start) > limit:
        text += f", longer than session_timeout_ms={limit}{without}"
    elif _by_broker(settings) and without:
        text += f", longer than {_OF_BROKER}{without}"
    elif end is not None:
        text += f" for {end - start:.1f} s"
    return PauseCause(start, last, settings.member, text)


def _gone(timeline: TimelineFacts, settings: events.Configured) -> Iterator[PauseCause]:
    """A member that ended without a word to the coordinator, which misses it after its session timeout."""
    member = settings.member
    limit = settings.session_timeout_ms
    ends = timeline.of(events.Crashed, events.Exited, member=member)
    if not ends or not (limit or _by_broker(settings)) or timeline.of(events.Closed, member=member):
        return
    ended = min(event.time for event in ends)
    text = (
        f"ended at {_at(timeline, ended)} without leaving the group, which keeps its partitions for"
        f" {f'session_timeout_ms={limit}' if limit else _OF_BROKER}"
    )
    # How long a broker's timeout is nobody reports: it was over when a generation was there without it.
    missed = _generation_without(timeline, member, ended)
    over = ended + limit / 1000 if limit else timeline.end if missed is None else missed.end
    yield PauseCause(ended, over, member, text + _without(timeline, member, ended))


def _by_broker(settings: events.Configured) -> bool:
    """Whether the broker's session timeout counts, as for members of KIP-848; not if nothing was reported."""
    return not settings.session_timeout_ms and settings.max_poll_interval_ms > 0


def _without(timeline: TimelineFacts, member: str, since: float) -> str:
    """From when on there was a generation without a member, if anybody saw one."""
    one = _generation_without(timeline, member, since)
    if one is None:
        return ""
    return f"; generation {one.generation}, without it, was there at {_at(timeline, one.end)}"


def _generation_without(timeline: TimelineFacts, member: str, since: float) -> SeenRebalance | None:
    identity = timeline.identity[member]
    for one in timeline.rebalances:
        if one.end >= since and identity not in {timeline.identity[other] for other in one.assignments}:
            return one
    return None


def _spans(
    timeline: TimelineFacts,
    member: str,
    begins: type[events.Frozen | events.CutOff | events.Paused],
    ends: type[object],
) -> Iterable[tuple[float, float | None]]:
    """From when to when a state of a member lasted; None for what lasts."""
    since: float | None = None
    for event in timeline.events:
        if event.member != member:
            continue
        if isinstance(event, begins) and since is None:
            since = event.time
        elif isinstance(event, (ends, events.Crashed, events.Exited)) and since is not None:
            yield since, event.time
            since = None
    if since is not None:
        yield since, None


def _at(timeline: TimelineFacts, time: float) -> str:
    return f"{time - timeline.begin:.3f} s"
