"""Why a reassignment does not get on, and what to do about it."""

import time
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from kafka import TopicPartition

from kafka_assignors._common.words import named, size
from kafka_assignors.placement._cluster.logs import Logs
from kafka_assignors.placement._cluster.throttle import Throttles
from kafka_assignors.placement._cluster.topics import Brokers, PartitionState

_CANCEL: Final = "or break off with `placement cancel`"


class Reason(NamedTuple):
    """Why partitions wait, with their names, and what to do."""

    why: str
    way_out: str


class StallSituation(NamedTuple):
    """What there is to know of a reassignment that is under way."""

    adding: Mapping[TopicPartition, Sequence[int]]  # the brokers that get a replica
    states: Mapping[TopicPartition, PartitionState]
    brokers: Brokers
    logs: Logs
    throttles: Throttles

    def behind(self) -> dict[tuple[TopicPartition, int], int | None]:
        """Of each replica that is being added and not in sync, the bytes that its leader has and it has not.

        None where a broker does not say.
        """
        found: dict[tuple[TopicPartition, int], int | None] = {}
        for tp, targets in self.adding.items():
            state = self.states[tp]
            for broker in targets:
                if broker in state.in_sync:
                    continue
                leader = -1 if state.leader is None else state.leader
                led = self.logs.sizes.get((tp.topic, tp.partition, leader))
                has = self.logs.sizes.get((tp.topic, tp.partition, broker), 0)
                found[tp, broker] = None if led is None or broker in self.logs.silent else max(0, led - has)
        return found


class Pace:
    """Whether a reassignment gets on."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self._done = 0
        self._missing: dict[tuple[TopicPartition, int], int] = {}

    def look(self, done: int, behind: Mapping[tuple[TopicPartition, int], int | None]) -> None:
        """Compare with the look before: more partitions done, or fewer bytes of a replica missing."""
        known = {key: missing for key, missing in behind.items() if missing is not None}
        least = {key: min(missing, self._missing.get(key, missing)) for key, missing in known.items()}
        less = any(least[key] < self._missing.get(key, least[key]) for key in least)
        if less or done > self._done or self._missing.keys() - behind.keys():
            self.since = time.monotonic()
        self._done = done
        self._missing = {key: self._missing[key] for key in behind if key in self._missing} | least


def reasons(situation: StallSituation, *, stalled: bool) -> list[Reason]:
    """Why the partitions that are under way are not done; `stalled` if none has got on for a while."""
    waiting: dict[tuple[str, str], list[TopicPartition]] = {}
    copied: dict[tuple[int, int | None], list[tuple[TopicPartition, int | None]]] = {}
    for (tp, broker), missing in sorted(situation.behind().items()):
        state = situation.states[tp]
        if state.leader is None:
            holders = ", ".join(str(one) for one in state.replicas if one not in situation.adding[tp])
            key = "there is no leader to copy from", f"start a broker that has a replica ({holders})"
        elif broker in situation.brokers.down:
            key = f"broker {broker} is fenced", f"start it, {_CANCEL}"
        elif broker not in situation.brokers.up:
            key = f"broker {broker} is gone", f"start it if it still exists, {_CANCEL}"
        elif broker in situation.logs.silent:
            key = f"broker {broker} does not answer", f"see whether it runs, {_CANCEL}"
        else:
            rate = situation.throttles.rate(tp, state.leader, broker)
            copied.setdefault((broker, rate), []).append((tp, missing))
            continue
        waiting.setdefault(key, []).append(tp)
    return [
        *(Reason(f"{why}: {named(tps)} cannot continue", way_out) for (why, way_out), tps in waiting.items()),
        *(_copied(broker, rate, found, stalled=stalled) for (broker, rate), found in copied.items()),
    ]


def _copied(
    broker: int, rate: int | None, found: Sequence[tuple[TopicPartition, int | None]], *, stalled: bool
) -> Reason:
    """What there is to say of replicas that one broker copies at one rate."""
    missing = sum(one or 0 for _, one in found)
    limit = "" if rate is None else f", throttled to {size(rate)}/s"
    why = f"broker {broker} is {size(missing)} behind in {named([tp for tp, _ in found])}{limit}"
    if rate is not None:
        remedy = "the throttle is too low: begin again with a higher --throttle"
    else:
        remedy = f"see the logs of broker {broker} and of the leaders, {_CANCEL}"
    return Reason(why, remedy if stalled else f"if that does not shrink, {remedy}")
