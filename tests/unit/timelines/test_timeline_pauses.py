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


def cause(timeline: Timeline, start: float, end: float) -> str:
    """The one thing that is named."""
    (only,) = why_paused(timeline, start, end)
    return only


def test_a_member_that_did_not_poll_for_too_long_is_named_with_the_generation_without_it() -> None:
    timeline = group(
        event(7, "b", "revoked", P1), told(7.1, 2, {"b": "01"}), event(8.2, "a", "polled late", seconds=6.2)
    )
    assert cause(timeline, 2, 7.1) == (
        "a did not poll for 6.2 s, until 8.200 s, more than max_poll_interval_ms=5000;"
        " generation 2, without it, was there at 7.100 s"
    )


def test_a_member_that_worked_for_less_than_it_may_is_what_a_rebalance_waited_for() -> None:
    worked = "a did not poll for 3.0 s, until 5.000 s (it may for max_poll_interval_ms=5000)"
    late = event(5, "a", "polled late", seconds=3)
    assert cause(group(event(3, "b", "metadata"), late), 2.5, 5) == f"{worked}; a rebalance waits for that"
    assert cause(group(late), 2.5, 5) == worked  # nobody joined meanwhile


def test_who_still_does_not_poll_at_the_end_is_named_too() -> None:
    asked = StateReported(20, "a", silent=4)
    assert cause(group(event(17, "b", "metadata"), asked), 15, 20) == (
        "a did not poll for 4.0 s, to 20.000 s (it may for max_poll_interval_ms=5000);"
        " a rebalance waits for that"
    )
    paused = group(event(12, "a", "paused"), asked)
    assert cause(paused, 15, 20) == (
        "a did not poll for 8.0 s, to 20.000 s, more than max_poll_interval_ms=5000"
    )


def test_a_member_that_polled_again_since_is_not_named_for_its_silence() -> None:
    timeline = group(event(20, "a", "polled late", seconds=4), StateReported(20, "a", silent=3))
    assert len(why_paused(timeline, 15, 20)) == 1


def test_a_long_listener_is_named() -> None:
    timeline = group(event(6, "b", "listener", callback="on_partitions_revoked", seconds=2.5))
    assert why_paused(timeline, 3, 6) == ["b spent 2.5 s in its on_partitions_revoked, until 6.000 s"]


def test_a_leader_that_plans_for_long_is_named() -> None:
    led = event(6, "a", "assign", generation=2, claims={}, plan={}, seconds=3.1)
    assert why_paused(group(led), 2, 6) == ["a planned generation 2 for 3.1 s, as its leader"]


def test_a_frozen_member_is_named_with_its_session_timeout_if_it_was_longer() -> None:
    short = group(event(2, "a", "frozen"), event(4, "a", "thawed"))
    assert why_paused(short, 2, 5) == ["a was frozen at 2.000 s for 2.0 s"]
    long = group(event(2, "a", "frozen"), told(8.5, 2, {"b": "01"}), event(12, "a", "thawed"))
    assert cause(long, 2, 8.5) == (
        "a was frozen at 2.000 s, longer than session_timeout_ms=6000;"
        " generation 2, without it, was there at 8.500 s"
    )


def test_a_session_that_began_before_a_member_was_cut_off_ends_sooner() -> None:
    timeline = group(event(2, "a", "cut off"), told(6.5, 2, {"b": "01"}), event(9, "a", "reconnected"))
    assert cause(timeline, 2, 6.5) == (
        "a was cut off at 2.000 s, longer than session_timeout_ms=6000;"
        " generation 2, without it, was there at 6.500 s"
    )


def test_a_member_that_ended_without_leaving_keeps_its_partitions_for_its_session_timeout() -> None:
    timeline = group(
        event(2, "a", "crashed"), event(2.1, "a", "exited", status=-9), told(8.2, 2, {"b": "01"})
    )
    assert cause(timeline, 2, 8.2) == (
        "a ended at 2.000 s without leaving the group, which keeps its partitions for"
        " session_timeout_ms=6000; generation 2, without it, was there at 8.200 s"
    )


def test_a_member_that_left_is_no_cause() -> None:
    left = group(event(2, "a", "closed", reason="left"), event(2.1, "a", "exited", status=0))
    assert why_paused(left, 2, 8) == []


def test_the_longest_comes_first_and_what_took_little_of_a_pause_is_left_out() -> None:
    timeline = group(
        event(6, "a", "listener", callback="on_partitions_revoked", seconds=1),
        event(9, "b", "polled late", seconds=3),
        event(9.5, "a", "listener", callback="on_partitions_assigned", seconds=0.5),
    )
    assert [reason.split(" for")[0].split(" in")[0] for reason in why_paused(timeline, 2, 10)] == [
        "b did not poll",
        "a spent 1.0 s",
    ]


def test_a_pause_in_which_nothing_lasted_has_no_cause() -> None:
    assert why_paused(group(), 2, 8) == []


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


# Groups that do not come to rest ----------------------------------------------------------------------


def subscriptions(*times: float) -> list[Event]:
    return [event(time, "b", "subscribed", topics=["t"]) for time in times]


def test_who_subscribes_again_and_again_is_named_with_the_generations_that_followed() -> None:
    generations = [told(3 + number, 2 + number, {"a": "01"}) for number in range(4)]
    timeline = group(subscriptions(2, 4, 6, 8), *generations)
    assert cause(timeline, 1.5, 10) == (
        "b subscribed 4 times, from 2.000 s to 8.000 s; generations 2 to 5 followed"
    )


def test_subscriptions_outside_the_pause_do_not_count() -> None:
    assert why_paused(group(subscriptions(2, 4, 6, 12)), 1.5, 10) == []
    assert why_paused(group(subscriptions(2, 4, 6)), 1.5, 10) == []


def of_one_id(first_ends: float | None) -> Timeline:
    """Two members of one static instance id, the second one from 5 s on."""
    made = [event(time, name, "configured", instance_id="i") for time, name in ((1, "c"), (5, "d"))]
    ends = [] if first_ends is None else [event(first_ends, "c", "closed")]
    return Timeline([*made, *ends], end=20)


@pytest.mark.parametrize("first_ends", [None, 6])
def test_two_members_at_once_of_one_instance_id_are_named(first_ends: float | None) -> None:
    assert cause(of_one_id(first_ends), 5, 15) == (
        "d has the instance id 'i' from 4.000 s on, which c had; the coordinator fences the one that came"
        " first"
    )


def test_a_static_member_after_the_other_is_not_named() -> None:
    assert why_paused(of_one_id(4), 5, 15) == []


# By KIP-848 the session timeout is the broker's, and no client says how long it is.


def of_the_broker(*events: Event | Iterable[Event]) -> Timeline:
    """As `group`, but the session timeout is the broker's."""
    own = [event(0.5, name, "configured", session_timeout_ms=0, max_poll_interval_ms=5000) for name in "ab"]
    return group(own, *events)


@pytest.mark.parametrize(
    ("begins", "ends", "how"), [("frozen", "thawed", "was frozen"), ("cut off", "reconnected", "was cut off")]
)
def test_a_member_unheard_of_for_longer_than_the_broker_waits_is_named(
    begins: str, ends: str, how: str
) -> None:
    timeline = of_the_broker(event(2, "a", begins), told(8.5, 2, {"b": "01"}), event(12, "a", ends))
    assert cause(timeline, 2, 8.5) == (
        f"a {how} at 2.000 s, longer than the broker's group.consumer.session.timeout.ms;"
        " generation 2, without it, was there at 8.500 s"
    )
    assert (
        cause(of_the_broker(event(2, "a", begins), event(4, "a", ends)), 2, 5)
        == f"a {how} at 2.000 s for 2.0 s"
    )


def test_a_member_that_ended_keeps_its_partitions_until_the_broker_misses_it() -> None:
    timeline = of_the_broker(event(2, "a", "crashed"), told(8.5, 2, {"b": "01"}))
    said = (
        "a ended at 2.000 s without leaving the group, which keeps its partitions for the broker's"
        " group.consumer.session.timeout.ms; generation 2, without it, was there at 8.500 s"
    )
    assert cause(timeline, 2, 8.5) == said
    assert why_paused(timeline, 9, 12) == []
