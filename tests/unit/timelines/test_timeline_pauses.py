"""Why a group stood still: what a message on a pause says that members did meanwhile."""

from collections.abc import Iterable

import pytest

from kafka_assignors._timelines.events import Event, StateReported
from kafka_assignors._timelines.pauses import why_paused
from kafka_assignors._timelines.timeline import Timeline
from tests.support.timelines import P0, P1, event, told


def group(*events: Event | Iterable[Event], end: float = 20) -> Timeline:
    """Members a and b, with session timeouts of 6 s and 5 s between polls at most; a has t-0 from 1 s on."""
    found: list[Event] = []
    for name in "ab":
        found += [
            event(0, name, "started"),
            event(0, name, "configured", session_timeout_ms=6000, max_poll_interval_ms=5000),
        ]
    found += told(1, 1, {"a": "0", "b": "1"})
    for one in events:
        found += [one] if isinstance(one, Event) else one
    return Timeline(found, end=end)


def of_the_broker(*events: Event | Iterable[Event]) -> Timeline:
    """By KIP-848 the session timeout is the broker's, and no client says how long it is."""
    own = [event(0.5, name, "configured", session_timeout_ms=0, max_poll_interval_ms=5000) for name in "ab"]
    return group(own, *events)


def subscriptions(*times: float) -> list[Event]:
    return [event(time, "b", "subscribed", topics=["t"]) for time in times]


def of_one_id(*first_ends: float) -> Timeline:
    """Two members of one static instance id, the second one from 5 s on."""
    made = [event(time, name, "configured", instance_id="i") for time, name in ((1, "c"), (5, "d"))]
    return Timeline([*made, *(event(end, "c", "closed") for end in first_ends)], end=20)


WITHOUT = "; generation 2, without it, was there at"
ENDED = "a ended at 2.000 s without leaving the group, which keeps its partitions for"
WAITS = "; a rebalance waits for that"
BY_BROKER = "the broker's group.consumer.session.timeout.ms"
LATE = event(5, "a", "polled late", seconds=3)
WORKED = "a did not poll for 3.0 s, until 5.000 s (it may for max_poll_interval_ms=5000)"
ASKED = StateReported(20, "a", silent=4)
FENCED = (
    "d has the instance id 'i' from 4.000 s on, which c had; the coordinator fences the one that came first"
)
CAUSES: dict[str, tuple[Timeline, float, float, list[str]]] = {
    "did not poll for too long": (
        group(
            event(7, "b", "revoked", P1),
            told(7.1, 2, {"b": "01"}),
            event(8.2, "a", "polled late", seconds=6.2),
        ),
        *(2, 7.1),
        [f"a did not poll for 6.2 s, until 8.200 s, more than max_poll_interval_ms=5000{WITHOUT} 7.100 s"],
    ),
    "a rebalance waits for work": (
        group(event(3, "b", "metadata"), LATE),
        *(2.5, 5),
        [f"{WORKED}{WAITS}"],
    ),
    "work, and nobody joined meanwhile": (group(LATE), 2.5, 5, [WORKED]),
    "still does not poll at the end": (
        group(event(17, "b", "metadata"), ASKED),
        *(15, 20),
        [f"a did not poll for 4.0 s, to 20.000 s (it may for max_poll_interval_ms=5000){WAITS}"],
    ),
    "paused to the end": (
        group(event(12, "a", "paused"), ASKED),
        *(15, 20),
        ["a did not poll for 8.0 s, to 20.000 s, more than max_poll_interval_ms=5000"],
    ),
    "polled again since": (
        group(event(20, "a", "polled late", seconds=4), StateReported(20, "a", silent=3)),
        *(15, 20),
        ["a did not poll for 4.0 s, until 20.000 s (it may for max_poll_interval_ms=5000)"],
    ),
    "a long listener": (
        group(event(6, "b", "listener", callback="on_partitions_revoked", seconds=2.5)),
        *(3, 6),
        ["b spent 2.5 s in its on_partitions_revoked, until 6.000 s"],
    ),
    "a long plan": (
        group(event(6, "a", "assign", generation=2, claims={}, plan={}, seconds=3.1)),
        *(2, 6),
        ["a planned generation 2 for 3.1 s, as its leader"],
    ),
    "frozen for a moment": (
        group(event(2, "a", "frozen"), event(4, "a", "thawed")),
        *(2, 5),
        ["a was frozen at 2.000 s for 2.0 s"],
    ),
    "frozen for longer than its session": (
        group(event(2, "a", "frozen"), told(8.5, 2, {"b": "01"}), event(12, "a", "thawed")),
        *(2, 8.5),
        [f"a was frozen at 2.000 s, longer than session_timeout_ms=6000{WITHOUT} 8.500 s"],
    ),
    "cut off in a session that began before": (
        group(event(2, "a", "cut off"), told(6.5, 2, {"b": "01"}), event(9, "a", "reconnected")),
        *(2, 6.5),
        [f"a was cut off at 2.000 s, longer than session_timeout_ms=6000{WITHOUT} 6.500 s"],
    ),
    "ended without leaving": (
        group(event(2, "a", "crashed"), event(2.1, "a", "exited", status=-9), told(8.2, 2, {"b": "01"})),
        *(2, 8.2),
        [f"{ENDED} session_timeout_ms=6000{WITHOUT} 8.200 s"],
    ),
    "left": (group(event(2, "a", "closed", reason="left"), event(2.1, "a", "exited", status=0)), 2, 8, []),
    "the longest first, and what took little left out": (
        group(
            event(6, "a", "listener", callback="on_partitions_revoked", seconds=1),
            event(9, "b", "polled late", seconds=3),
            event(9.5, "a", "listener", callback="on_partitions_assigned", seconds=0.5),
        ),
        *(2, 10),
        [
            "b did not poll for 3.0 s, until 9.000 s (it may for max_poll_interval_ms=5000)",
            "a spent 1.0 s in its on_partitions_revoked, until 6.000 s",
        ],
    ),
    "nothing lasted": (group(), 2, 8, []),
    "subscribes again and again": (
        group(
            subscriptions(2, 4, 6, 8),
            *(told(3 + number, 2 + number, {"a": "01"}) for number in range(4)),
        ),
        *(1.5, 10),
        ["b subscribed 4 times, from 2.000 s to 8.000 s; generations 2 to 5 followed"],
    ),
    "three times in the pause": (group(subscriptions(2, 4, 6, 12)), 1.5, 10, []),
    "two of one instance id": (of_one_id(), 5, 15, [FENCED]),
    "two of one instance id, one of which ends": (of_one_id(6), 5, 15, [FENCED]),
    "a static member after the other": (of_one_id(4), 5, 15, []),
    **{
        f"{begins} for longer than the broker waits": (
            of_the_broker(event(2, "a", begins), told(8.5, 2, {"b": "01"}), event(12, "a", ends)),
            *(2, 8.5),
            [f"a was {begins} at 2.000 s, longer than {BY_BROKER}{WITHOUT} 8.500 s"],
        )
        for begins, ends in (("frozen", "thawed"), ("cut off", "reconnected"))
    },
    "cut off for a moment": (
        of_the_broker(event(2, "a", "cut off"), event(4, "a", "reconnected")),
        *(2, 5),
        ["a was cut off at 2.000 s for 2.0 s"],
    ),
    "ended, and the broker misses it": (
        of_the_broker(event(2, "a", "crashed"), told(8.5, 2, {"b": "01"})),
        *(2, 8.5),
        [f"{ENDED} {BY_BROKER}{WITHOUT} 8.500 s"],
    ),
    "ended long before": (of_the_broker(event(2, "a", "crashed"), told(8.5, 2, {"b": "01"})), 9, 12, []),
}
"""Timelines with a pause from one moment to another, and what is said of it."""


@pytest.mark.parametrize(("timeline", "start", "end", "reasons"), CAUSES.values(), ids=[*CAUSES])
def test_who_kept_a_group_waiting_is_named(
    timeline: Timeline, start: float, end: float, reasons: list[str]
) -> None:
    assert why_paused(timeline, start, end) == reasons


def test_the_message_says_it_once_for_all_partitions_that_stood_still_for_it() -> None:
    timeline = group(
        event(3, "a", "revoked", P0),
        event(3, "b", "revoked", P1),
        event(6.5, "a", "listener", callback="on_partitions_revoked", seconds=3.5),
        told(7, 2, {"a": "0", "b": "1"}),
    )
    with pytest.raises(AssertionError) as caught:
        timeline.assert_paused_at_most(3000)
    assert str(caught.value).splitlines()[:3] == [
        "partitions were without an owner for longer than 3000 ms:",
        "  t-1: 4010 ms, from 3.000 s: a spent 3.5 s in its on_partitions_revoked, until 6.500 s",
        "  t-0: 4000 ms, from 3.000 s",
    ]
