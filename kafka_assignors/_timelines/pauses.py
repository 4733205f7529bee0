"""What kept a group waiting: members that were busy, frozen or gone, and leaders that planned for long."""

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import Final, NamedTuple

from kafka_assignors._timelines import events
from kafka_assignors._timelines.facts import Kind, TimelineFacts
from kafka_assignors._timelines.rebalances import SeenRebalance

_SHARE: Final = 0.1
"""Of a pause: what took less of it is no cause worth naming."""

_SHOWN: Final = 3

_OF_BROKER: Final = "the broker's group.consumer.session.timeout.ms"

_STORM: Final = 4
"""Subscriptions of one member in one pause that are worth a word: each of them is a rebalance."""


class _Cause(NamedTuple):
    """Something that took a member's time, and with it the group's, in a sentence without its end."""

    start: float
    end: float
    text: str


def why_paused(timeline: TimelineFacts, start: float, end: float) -> list[str]:
    """What members did in a time in which a group, or a partition, stood still: a sentence each.

    What took most of that time comes first. Nothing, if no member reported anything that lasts.
    """
    own = itertools.chain.from_iterable(_Member(timeline, name).causes() for name in timeline.members)
    causes = [*own, *_storms(timeline, start, end), *_of_one_instance_id(timeline)]
    within = [(min(cause.end, end) - max(cause.start, start), cause) for cause in causes]
    found = [(took, cause) for took, cause in within if took > 0 and took >= _SHARE * (end - start)]
    found.sort(key=lambda one: (-one[0], one[1].start))
    return [cause.text for _, cause in found[:_SHOWN]]


class _Member:
    """What took the time of one member."""

    def __init__(self, timeline: TimelineFacts, name: str) -> None:
        self.timeline, self.name = timeline, name
        settings = (self.of(events.Configured) or (events.Configured(0, name),))[-1]
        self.session_ms, self.poll_ms = settings.session_timeout_ms, settings.max_poll_interval_ms
        # By KIP-848 the broker's session timeout counts. If nothing was reported, none is known.
        self.by_broker = not self.session_ms and self.poll_ms > 0

    def of(self, *kinds: type[Kind]) -> tuple[Kind, ...]:
        return self.timeline.of(*kinds, member=self.name)

    def causes(self) -> Iterator[_Cause]:
        for late in self.of(events.PolledLate):
            yield self._not_polling(late.time - late.seconds, late.time, "until")
        yield from self._silent_to_the_end()
        for called in self.of(events.ListenerReturned):
            until = f"until {_at(self.timeline, called.time)}"
            text = f"{self.name} spent {called.seconds:.1f} s in its {called.callback}, {until}"
            yield _Cause(called.time - called.seconds, called.time, text)
        for led in self.of(events.Led):
            took = f"{self.name} planned generation {led.generation} for {led.seconds:.1f} s, as its leader"
            yield _Cause(led.time - led.seconds, led.time, took)
        for frozen, thawed in self._spans(events.Frozen, events.Thawed):
            yield self._unheard(frozen, thawed, "was frozen")
        for cut, mended in self._spans(events.CutOff, events.Reconnected):
            yield self._unheard(cut, mended, "was cut off")
        yield from self._gone()

    def _not_polling(self, start: float, end: float, until: str) -> _Cause:
        text = f"{self.name} did not poll for {end - start:.1f} s, {until} {_at(self.timeline, end)}"
        limit = self.poll_ms
        if limit and 1000 * (end - start) > limit:
            text += f", more than max_poll_interval_ms={limit}{self._without(start + limit / 1000)}"
        elif limit:
            text += f" (it may for max_poll_interval_ms={limit})"
            others = (one for one in self.timeline.of(events.Joining) if one.member != self.name)
            if any(start < one.time <= end for one in others):
                text += "; a rebalance waits for that"
        return _Cause(start, end, text)

    def _silent_to_the_end(self) -> Iterator[_Cause]:
        """That it had still not polled when it was asked last, or that it was made not to."""
        for paused, resumed in self._spans(events.Paused, events.Resumed):
            if resumed is None:
                yield self._not_polling(paused, self.timeline.end, "to")
                return
        polls = [event.time for event in self.of(events.PolledLate)]
        for state in self.of(events.StateReported)[-1:]:
            if state.silent >= events.LONG and state.time > max(polls, default=state.time - 1):
                yield self._not_polling(state.time - state.silent, state.time, "to")

    def _unheard(self, start: float, end: float | None, how: str) -> _Cause:
        text = f"{self.name} {how} {self.timeline.at(start)}"
        last = self.timeline.end if end is None else end
        # Its session began with its last heartbeat: it may be over before this has lasted for as long.
        without = self._without(start)
        if self.session_ms and 1000 * (last - start) > self.session_ms:
            text += f", longer than session_timeout_ms={self.session_ms}{without}"
        elif self.by_broker and without:
            text += f", longer than {_OF_BROKER}{without}"
        elif end is not None:
            text += f" for {end - start:.1f} s"
        return _Cause(start, last, text)

    def _gone(self) -> Iterator[_Cause]:
        """That it ended without a word to the coordinator, which misses it after its session timeout."""
        limit = self.session_ms
        ends = self.of(events.Crashed, events.Exited)
        if not ends or not (limit or self.by_broker) or self.of(events.Closed):
            return
        ended = min(event.time for event in ends)
        text = (
            f"{self.name} ended {self.timeline.at(ended)} without leaving the group, which keeps its"
            f" partitions for {f'session_timeout_ms={limit}' if limit else _OF_BROKER}"
        )
        # How long a broker's timeout is nobody reports: it was over when a generation was there without it.
        missed = self._generation_without(ended)
        over = ended + limit / 1000 if limit else self.timeline.end if missed is None else missed.end
        yield _Cause(ended, over, text + self._without(ended))

    def _without(self, since: float) -> str:
        """From when on there was a generation without it, if anybody saw one."""
        one = self._generation_without(since)
        if one is None:
            return ""
        return f"; generation {one.generation}, without it, was there {self.timeline.at(one.end)}"

    def _generation_without(self, since: float) -> SeenRebalance | None:
        identity = self.timeline.identity
        for one in self.timeline.rebalances:
            if one.end >= since and identity[self.name] not in {identity[other] for other in one.assignments}:
                return one
        return None

    def _spans(
        self, begins: type[events.Frozen | events.CutOff | events.Paused], ends: type[object]
    ) -> Iterator[tuple[float, float | None]]:
        """From when to when a state of it lasted; None for what lasts."""
        since: float | None = None
        for event in self.of(events.Event):
            if isinstance(event, begins) and since is None:
                since = event.time
            elif isinstance(event, (ends, events.Crashed, events.Exited)) and since is not None:
                yield since, event.time
                since = None
        if since is not None:
            yield since, None


def _storms(timeline: TimelineFacts, start: float, end: float) -> Iterator[_Cause]:
    """Members that came again and again: one that makes a consumer for each batch, or changes its topics."""
    for member in timeline.members:
        times = [
            one.time for one in timeline.of(events.Subscribed, member=member) if start <= one.time <= end
        ]
        if len(times) < _STORM:
            continue
        generations = [one.generation for one in timeline.rebalances if times[0] <= one.start <= end]
        first, last = _at(timeline, times[0]), _at(timeline, times[-1])
        text = f"{member} subscribed {len(times)} times, from {first} to {last}"
        if len(generations) > 1:
            text += f"; generations {generations[0]} to {generations[-1]} followed"
        # Between two of them the group had no time to come to rest.
        yield _Cause(times[0], end, text)


def _of_one_instance_id(timeline: TimelineFacts) -> Iterator[_Cause]:
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
                text = (
                    f"{now.member} has the instance id {instance_id!r} from {_at(timeline, now.time)} on,"
                    f" which {before.member} had; the coordinator fences the one that came first"
                )
                yield _Cause(now.time, timeline.end, text)


def _at(timeline: TimelineFacts, time: float) -> str:
    return f"{time - timeline.begin:.3f} s"
