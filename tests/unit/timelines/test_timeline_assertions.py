"""Assertions on timelines: where they hold, where they do not, and what they say then."""

from collections.abc import Callable, Mapping

import pytest
from kafka import TopicPartition

from kafka_assignors._timelines import assertions
from kafka_assignors._timelines.events import CommitFailed, Committed, Event, Noted, Processed, Raised
from kafka_assignors._timelines.losses import ended_in_turn, left_undone, may_end_others
from kafka_assignors._timelines.timeline import Timeline
from tests.support.timelines import P0, P1, P2, event, history, joined, lived, records, start, told


def message(assertion: Callable[[], None]) -> str:
    with pytest.raises(AssertionError) as caught:
        assertion()
    return str(caught.value)


def two(*more: Event, instance_id: str | None = None) -> Timeline:
    """First a has the partitions 0 and 1, and b 2 and 3; then these events."""
    first = [*start(0, "a", "t", instance_id=instance_id), *start(0, "b", "t")]
    return Timeline([*first, *told(1, 1, {"a": "01", "b": "23"}), *more])


# Balance ----------------------------------------------------------------------------------------------


def two_topics(assignments: dict[str, tuple[str, str]]) -> Timeline:
    """A group in which a subscribes to s and t, and b only to t."""
    events = [*start(0, "a", "s", "t"), *start(0, "b", "t")]
    for member, (s, t) in assignments.items():
        owned = [TopicPartition("s", int(one)) for one in s] + [TopicPartition("t", int(one)) for one in t]
        events += joined(1, member, 1, *owned)
    return Timeline(events, end=2)


BALANCED = {
    "loads that differ by one": history({"a": "012", "b": "34"}),
    "the newest generation alone": history({"a": "01", "b": ""}, {"a": "0", "b": "1"}),
    "as subscriptions allow": two_topics({"a": ("012", ""), "b": ("", "0")}),
    "a static member that restarts counts once": lived(
        *start(0, "a", "t", instance_id="one"),
        *start(0, "b", "t", instance_id="two"),
        *told(1, 1, {"a": "0", "b": "1"}),
        event(2, "a", "closed"),
        *start(3, "a.2", "t", instance_id="one"),
        *told(4, 1, {"a.2": "0"}),
    ),
}


@pytest.mark.parametrize("timeline", BALANCED.values(), ids=[*BALANCED])
def test_loads_are_as_close_as_subscriptions_allow(timeline: Timeline) -> None:
    timeline.assert_balanced()


def test_generation_partitions_and_weights_can_be_named() -> None:
    timeline = history({"a": "01", "b": ""}, {"a": "0", "b": "1"})
    assert "loads of 1, 1, and it has 2, 0" in message(lambda: timeline.assert_balanced(at=1))
    unknown = "no member was in a generation 7: they saw generations 1, 2"
    assert unknown in message(lambda: timeline.assert_balanced(at=7))
    timeline = history({"a": "0", "b": "1"}, {"a": "0", "b": ""})
    timeline.assert_balanced(partitions=[P0])  # the other one was deleted
    assert "t-2 was given to nobody" in message(lambda: timeline.assert_balanced(partitions=[P0, P2]))
    timeline = history({"a": "0123", "b": "45"})
    timeline.assert_balanced(weights={"a": 2})
    assert "loads of 3, 3, and it has 4, 2" in message(timeline.assert_balanced)
    assert "is not balanced" in message(lambda: timeline.assert_balanced(weights={"b": 2}))
    uneven = two_topics({"a": ("012", "0"), "b": ("", "1")})
    assert "loads of 3, 2, and it has 4, 1" in message(uneven.assert_balanced)


def test_loads_that_could_be_closer_are_not_balanced() -> None:
    said = message(history({"a": "0123", "b": "4"}).assert_balanced)
    assert said.splitlines()[:4] == [
        "generation 1 is not balanced: the subscriptions allow loads of 3, 2, and it has 4, 1:",
        "  it would be balanced if t:3 went to others",
        "  a has 4",
        "  b has 1",
    ]
    # The rows, and the events of the generation.
    assert f"t-4        {49 * '.'}{40 * 'B'}\nA a   B b   . nobody" in said
    assert "   1.000 a          assignment generation 1 t:0,1,2,3" in said


def test_the_loads_of_many_members_are_counted() -> None:
    members = "bcdefghijkl"
    said = message(history({**dict.fromkeys(members, ""), "a": "0123"}).assert_balanced)
    assert "the subscriptions allow loads of 4 x 1, 8 x 0, and it has 1 x 4, 11 x 0:" in said
    assert said.splitlines()[2] == "  a has 4"
    assert said.splitlines()[11] == "  … and 3 more"


def test_a_partition_for_nobody_or_for_two_is_not_balanced() -> None:
    said = message(history({"a": "0", "b": "1"}, {"a": "0", "b": "0"}).assert_balanced)
    assert said.splitlines()[:3] == [
        "generation 2 does not give each partition to one member:",
        "  t-0 was given to a and b",
        "  t-1 was given to nobody",
    ]


def test_what_a_member_asked_for_goes_before_what_it_was_told() -> None:
    # It is told of another topic while the generation of the old ones is under way.
    events = [
        *start(0, "a", "s", "t"),
        event(0.4, "a", "metadata", topics=["s", "t"]),
        *start(0, "b", "s", "t"),
        event(0.5, "b", "metadata", topics=["t"]),
        event(0.6, "b", "subscribed", topics=["s", "t"], pattern=None),
        event(1, "a", "assignment", TopicPartition("s", 0), TopicPartition("s", 1), generation=1),
        event(1, "b", "assignment", generation=1),
    ]
    (rebalance,) = Timeline(events).rebalances
    assert rebalance.subscriptions == {"a": {"s"}, "b": frozenset()}
    Timeline(events).assert_balanced()


def test_a_pattern_is_matched_from_the_start_of_topics_that_anybody_had() -> None:
    events = [
        event(0, "a", "subscribed", topics=[], pattern="ord"),
        event(0, "b", "subscribed", topics=["words", "orders", "__internal"], pattern=None),
        event(0, "c", "subscribed", topics=[], pattern=".*"),
        event(1, "a", "assignment", TopicPartition("orders", 0), generation=1),
        event(
            1, "b", "assignment", TopicPartition("words", 0), TopicPartition("__internal", 0), generation=1
        ),
        event(1, "c", "assignment", generation=1),
        event(1, "d", "assignment", generation=1),
    ]
    (rebalance,) = Timeline(events).rebalances
    everything = {"orders", "words", "__internal"}
    assert rebalance.subscriptions == {
        "a": {"orders"},
        "b": everything,
        "c": {"orders", "words"},
        "d": everything,
    }


# Stickiness -------------------------------------------------------------------------------------------


def restarted(after: dict[str, str]) -> Timeline:
    """The static member a restarts at rest; then there is another generation."""
    return two(
        event(2, "a", "closed"),
        *start(3, "a.2", "t", instance_id="one"),
        *told(3.5, 1, {"a.2": "01"}),
        *told(4, 2, after),
        instance_id="one",
    )


def dying(planned_for: str) -> Timeline:
    """A leader plans for these members, and c dies before it sees the plan."""
    claims: dict[str, object] = {one: {"owned": []} for one in planned_for}
    return lived(
        *(one for name in "abc" for one in start(0, name, "t")),
        *told(1, 1, {"a": "01", "b": "23", "c": ""}),
        event(2, "a", "assign", generation=2, claims=claims, plan={}),
        event(2.1, "c", "crashed"),
        *told(2.2, 2, {"a": "0", "b": "2"}),  # 1 and 3 are c's now
        *told(3, 3, {"a": "03", "b": "12"}),
    )


STICKY = {
    "a group that gathers": history(
        {"a": "012345"}, {"a": "012", "b": "345"}, {"a": "01", "b": "34", "c": "25"}
    ),
    "what a member that is gone had": history({"a": "01", "b": "23", "c": "45"}, {"a": "014", "b": "235"}),
    "a hand-over of two generations": history({"a": "0123"}, {"a": "01", "b": ""}, {"a": "01", "b": "23"}),
    "what is taken and given back": history(
        {"a": "01", "b": "23"}, {"a": "0", "b": "23"}, {"a": "01", "b": "23"}
    ),
    # b was to get 2 to 5 and crashed; what nobody holds then may go to anybody.
    "a hand-over that is overtaken": history(
        {"a": "012", "c": "345"}, {"a": "01", "c": "34", "b": ""}, {"a": "015", "c": "342"}
    ),
    "what is lost in the middle of a hand-over": two(
        *told(2, 2, {"a": "0", "b": "2"}), event(2.5, "a", "lost", P0), *told(3, 3, {"a": "13", "b": "02"})
    ),
    # With all ten partitions to begin with, a could have kept its four.
    "a topic that grows in the middle of a hand-over": history(
        {"a": "0123"}, {"a": "01", "b": ""}, {"a": "01456", "b": "23789"}
    ),
    "a topic that a member gave up": lived(
        *start(0, "a", "t"),
        *start(0, "b", "t"),
        *told(1, 1, {"a": "01", "b": "2"}),
        event(1.5, "a", "subscribed", topics=["s"], pattern=None),
        *told(2, 2, {"a": "", "b": "012"}),
    ),
    "a static member that restarts": restarted({"a.2": "01", "b": "23"}),
    "a static member that restarts into a rebalance": two(
        event(2, "a", "crashed"),
        *start(3, "a.2", "t", instance_id="one"),
        *start(3, "c", "t"),
        *told(4, 2, {"a.2": "1", "b": "23", "c": "0"}),
        instance_id="one",
    ),
    "a plan for a member that dies meanwhile": dying("abc"),
}
NOT_STICKY = {
    "beside what a member that is gone had": (
        "moved 2, least possible 0: t-1 a → b, t-3 b → a",
        history({"a": "01", "b": "23", "c": "45"}, {"a": "034", "b": "125"}),
    ),
    "a hand-over that moves too much": (
        "generations 2, 3, 4: moved 2, least possible 0: t-0 a → b, t-3 b → a",
        history({"a": "01", "b": "23"}, {"a": "1", "b": "2"}, {"a": "1", "b": "2"}, {"a": "13", "b": "20"}),
    ),
    "a topic that was deleted": (
        "generation 2: moved 2, least possible 0",
        lived(
            *start(0, "a", "s", "t"),
            *start(0, "b", "s", "t"),
            event(1, "a", "assignment", P0, TopicPartition("s", 0), generation=1),
            event(1, "b", "assignment", P1, P2, generation=1),
            event(2, "a", "assignment", P1, generation=2),
            event(2, "b", "assignment", P0, P2, generation=2),
        ),
    ),
    "a static member that restarts": (
        "generation 2: moved 2, least possible 0: t-1 a.2 → b, t-2 b → a.2",
        restarted({"a.2": "02", "b": "13"}),
    ),
    "what a restarted static member is told again": (
        "generation 2: moved 2, least possible 0",
        two(
            *told(2, 2, {"a": "02", "b": "13"}),
            event(3, "a", "closed"),
            *start(4, "a.2", "t", instance_id="one"),
            *told(5, 2, {"a.2": "02"}),
            instance_id="one",
        ),
    ),
    # Nothing moved in the end, but twice on the way.
    "there and back again": (
        "generation 3: moved 2, least possible 0",
        history({"a": "01", "b": "23"}, {"a": "03", "b": "21"}, {"a": "01", "b": "23"}),
    ),
    # Without c they were held back on their way, and went astray.
    "a plan without the member that dies": (
        "generations 2, 3: moved 2, least possible 0: t-1 a → b, t-3 b → a",
        dying("ab"),
    ),
}


@pytest.mark.parametrize("timeline", STICKY.values(), ids=[*STICKY])
def test_no_rebalance_moves_more_than_the_best_balance_wants(timeline: Timeline) -> None:
    timeline.assert_sticky()


@pytest.mark.parametrize(("said", "timeline"), NOT_STICKY.values(), ids=[*NOT_STICKY])
def test_what_moved_beyond_that_is_named(said: str, timeline: Timeline) -> None:
    assert said in message(timeline.assert_sticky)


def test_only_rebalances_after_a_generation_count_if_it_is_named_and_weights_count() -> None:
    timeline = history({"a": "01", "b": "23"}, {"a": "23", "b": "01"}, {"a": "23", "b": "01"})
    for said in (message(timeline.assert_sticky), message(lambda: timeline.assert_sticky(after=1))):
        assert "generation 2: moved 4" in said
    timeline.assert_sticky(after=2)
    lost = event(2, "a", "lost", P0, P1)
    two(lost, *told(3, 2, {"b": "0123"}), *told(4, 3, {"b": "01", "a": "23"})).assert_sticky(after=1)
    weighted = history({"a": "012", "b": "345"}, {"a": "0123", "b": "45"})
    weighted.assert_sticky(weights={"a": 2})
    assert "moved 1, least possible 0" in message(weighted.assert_sticky)


def test_more_moves_than_needed_are_told_with_what_was_possible() -> None:
    timeline = history({"a": "01", "b": "23", "c": "45"}, {"a": "04", "b": "125", "c": "3"})
    said = message(timeline.assert_sticky)
    assert said.splitlines()[:2] == [
        "more partitions moved than had to:",
        "  generation 2: moved 4, least possible 0: t-1 a → b, t-3 b → c, t-4 c → a, t-5 c → b",
    ]
    assert f"t-1        {6 * '.'}{67 * 'A'}{8 * '.'}{8 * 'B'}" in said
    assert "t-2  " not in said  # it stayed
    assert "   2.000 a          assignment generation 2 t:0,4" in said


# Two owners -------------------------------------------------------------------------------------------


def frozen() -> Timeline:
    """a freezes; b gets its partition; a learns of it when it is thawed."""
    return lived(
        *start(0, "a", "t"),
        *start(0, "b", "t"),
        *told(1, 1, {"a": "0"}),
        event(2, "a", "frozen"),
        *told(5, 2, {"b": "0"}),
        event(7, "a", "thawed"),
        event(8, "a", "lost", P0),
        end=10,
    )


def test_an_overlap_of_a_frozen_member_counts_by_callback_only() -> None:
    frozen().assert_never_owned_twice()
    said = message(lambda: frozen().assert_never_owned_twice("callback"))
    assert said.splitlines()[:2] == [
        "two members' applications had the same partitions at once:",
        "  t-0: a and b for 3000 ms, from 5.000 s",
    ]
    assert "##########" in said
    assert "   7.000 a          thawed" in said
    assert "started" not in said  # long before


def test_a_partition_given_to_two_members_of_a_generation_counts() -> None:
    timeline = history({"a": "01", "b": "2"}, {"a": "01", "b": "12"})
    assert message(timeline.assert_never_owned_twice).splitlines()[:2] == [
        "two members of a generation were given the same partitions:",
        "  t-1: a and b in generation 2",
    ]


# Pauses -----------------------------------------------------------------------------------------------


def crash() -> Timeline:
    return lived(
        *told(1, 1, {"a": "0", "b": "1"}),
        records(1.5, "a", (P0, 0, 0), (P1, 0, 0)),
        event(2, "a", "crashed"),
        *told(5, 2, {"b": "01"}),
        records(5.5, "b", (P0, 1, 1), (P1, 1, 1)),
        records(6, "b", (P1, 2, 2)),
        end=8,
    )


def test_a_pause_is_a_time_without_an_owner() -> None:
    crash().assert_paused_at_most(3000)
    said = message(lambda: crash().assert_paused_at_most(2999))
    assert said.splitlines()[:2] == [
        "partitions were without an owner for longer than 2999 ms:",
        "  t-0: 3000 ms, from 1.000 s",
    ]
    assert "AA...." in said
    assert "   1.000 a          crashed" in said
    assert "records" not in said


def test_pauses_are_looked_for_between_two_moments() -> None:
    crash().assert_paused_at_most(1000, since=4)
    assert "t-0: 1000 ms" in message(lambda: crash().assert_paused_at_most(999, since=4))
    assert "t-0: 500 ms" in message(lambda: crash().assert_paused_at_most(499, until=2.5))
    crash().assert_paused_at_most(0, since=5)
    crash().assert_paused_at_most(500, by="records", since=5)
    assert "t-0: 2500 ms" in message(
        lambda: crash().assert_paused_at_most(2000, by="records", since=5, until=8)
    )


def test_a_partition_that_falls_silent_for_good_is_found_by_the_others_of_its_topic() -> None:
    timeline = Timeline(
        [records(time, "a", (P0, time, time)) for time in range(10)]
        + [records(time, "a", (P1, time, time)) for time in range(3)]
    )
    assert "t-1: 7000 ms, from 2.000 s" in message(lambda: timeline.assert_paused_at_most(2000, by="records"))


def test_no_records_at_all_since_a_moment_are_a_pause() -> None:
    timeline = Timeline([records(time, "a", (P0, time, time)) for time in range(3)], end=10)
    timeline.assert_paused_at_most(1000, by="records")
    said = message(lambda: timeline.assert_paused_at_most(1000, by="records", since=4))
    assert said.splitlines()[:2] == [
        "partitions were without records for longer than 1000 ms:",
        "  t-0: 6000 ms, from 4.000 s",
    ]


# Records ----------------------------------------------------------------------------------------------


def test_all_that_was_produced_is_consumed_or_counted() -> None:
    timeline = Timeline(
        [*told(0, 1, {"a": "01"}), records(1, "a", (P0, 0, 9), (P1, 0, 2), (P1, 5, 5), (P1, 7, 9))]
    )
    timeline.assert_all_consumed({P0: 10})
    said = message(lambda: timeline.assert_all_consumed({P0: 10, P1: 11, P2: 1}))
    assert said.splitlines()[:3] == [
        "5 of 22 records were not consumed (what counts is what polls returned):",
        (
            "  t-1: 4 of 11, offsets 3..4, 6, 10: no member polled offsets 3..4, 6, 10; a went on at 5;"
            " nothing of it was committed, see auto_offset_reset"
        ),
        "  t-2: 1 of 1, offsets 0: no member polled offset 0; nothing of it was committed",
    ]
    assert "t-2        ..." in said


def test_records_that_come_twice_are_counted() -> None:
    Timeline([records(1, "a", (P0, 0, 9))]).assert_no_duplicates()
    timeline = Timeline([records(1, "a", (P0, 0, 9)), records(2, "b", (P0, 8, 12))])
    assert message(timeline.assert_no_duplicates).splitlines()[:2] == [
        "2 records were consumed more than once (what counts is what polls returned):",
        "  t-0: 2: a had consumed offsets 8..9 and had committed nothing when b got them at 1.000 s",
    ]
    timeline.assert_no_duplicates(at_most=2)
    assert message(lambda: timeline.assert_no_duplicates(at_most=1)).startswith(
        "2 records were consumed more than once, and at most 1 may be ("
    )


def test_a_member_that_goes_back_in_a_partition_is_named_unless_it_was_given_it_again() -> None:
    begun = [event(0, "a", "assigned", P0, P1), records(1, "a", (P0, 0, 4), (P1, 0, 0))]
    lived(*begun, records(2, "a", (P0, 5, 9), (P1, 7, 8))).assert_in_order()
    lived(*begun, event(1.5, "b", "assigned", P0), records(2, "b", (P0, 3, 4))).assert_in_order()
    again = event(1.5, "a", "assigned", P0), records(2, "a", (P0, 3, 4))
    lived(*begun, *again).assert_in_order()
    wrong = lived(*begun, *again, records(2.5, "a", (P0, 4, 4)), records(3, "a", (P0, 2, 3)))
    assert message(wrong.assert_in_order).splitlines()[:2] == [
        "records of a partition were consumed out of order (what counts is what polls returned):",
        "  t-0: 2 times: a came to offsets 3..4 at 2.000 s, and offset 4 at 2.500 s",
    ]


def processed(time: float, member: str, *ranges: tuple[TopicPartition, int, int], thread: str = "") -> Event:
    return Processed(time, member, records=ranges, thread=thread)


def committed(time: float, member: str, **positions: int) -> Event:
    return Committed(
        time, member, positions={TopicPartition("t", int(one[1:])): at for one, at in positions.items()}
    )


def service(*members: str, client: str = "service:billing") -> list[Event]:
    """Members of one application, which have t-0 one after the other."""
    return [event(0, member, "started", client=client) for member in members]


def test_what_was_committed_before_it_was_processed_is_lost_by_whom() -> None:
    timeline = lived(
        *service("a", "b"),
        records(1, "a", (P0, 0, 9)),
        committed(1.1, "a", p0=10),
        processed(1.2, "a", (P0, 0, 3)),
        event(2, "a", "crashed"),
        records(3, "b", (P0, 10, 11)),
        processed(3, "b", (P0, 10, 11)),
    )
    assert timeline.processing == {"a", "b"}
    assert timeline.missing({P0: 12}) == {P0: (4, 5, 6, 7, 8, 9)}
    said = message(lambda: timeline.assert_all_consumed({P0: 12}))
    assert said.splitlines()[:2] == [
        "6 of 12 records were not processed (what counts is what applications say):",
        (
            "  t-0: 6 of 12, offsets 4..9: a polled offsets 4..9 and committed 10 before it had processed"
            " them; it crashed at 2.000 s; b went on at 10"
        ),
    ]


def test_each_record_that_was_committed_before_it_was_processed_is_named_with_its_commit() -> None:
    timeline = Timeline(
        [
            *service("a"),
            records(1, "a", (P0, 0, 26)),
            *(committed(at / 10, "a", p0=at) for at in (10, 20, 27)),
            processed(3, "a", (P0, 0, 2), (P0, 4, 12), (P0, 14, 22), (P0, 24, 26)),
        ]
    )
    assert message(lambda: timeline.assert_all_consumed({P0: 27})).splitlines()[1] == (
        "  t-0: 3 of 27, offsets 3, 13, 23: a polled offsets 3, 13, 23 and committed 10 past 3, 20 past 13,"
        " 27 past 23 before it had processed them"
    )


def test_a_member_that_crashes_before_its_first_word_is_judged_as_its_likes() -> None:
    timeline = lived(
        *service("a", "b"),
        *service("kit", client="kafka-python"),
        records(1, "a", (P0, 0, 9)),
        event(2, "a", "crashed"),
        records(3, "kit", (P1, 0, 1)),
        processed(4, "b", (P2, 0, 0)),
    )
    assert timeline.processing == {"a", "b"}
    timeline.assert_all_consumed({P1: 2, P2: 1})
    said = message(lambda: timeline.assert_all_consumed({P0: 10, P1: 2, P2: 1}))
    assert said.splitlines()[:2] == [
        (
            "10 of 13 records were not processed (what counts is what applications say, and what polls"
            " returned to the others):"
        ),
        "  t-0: 10 of 10, offsets 0..9: a polled offsets 0..9; it crashed at 2.000 s",
    ]


def test_records_that_are_processed_and_not_yet_lost_are_named_by_who_has_them() -> None:
    timeline = Timeline([*service("a"), records(1, "a", (P0, 0, 1)), processed(2, "a", (P0, 0, 0))])
    assert "a polled offset 1, and has not processed it" in message(
        lambda: timeline.assert_all_consumed({P0: 2})
    )


def test_who_had_not_committed_what_another_consumed_again_is_named() -> None:
    timeline = lived(
        *service("a", "b"),
        records(1, "a", (P0, 0, 9)),
        committed(1.5, "a", p0=10),
        records(2, "a", (P0, 10, 35)),
        CommitFailed(2.5, "a", positions={P0: 36}, text="CommitFailedError: not a member"),
        records(3, "b", (P0, 10, 40)),
        committed(4, "b", p0=41),
    )
    said = message(timeline.assert_no_duplicates)
    assert said.splitlines()[1] == (
        "  t-0: 26: a had consumed offsets 10..35 and had not committed them (the last commit was 10,"
        " by a at 1.500 s) when b got them at 3.000 s; its commit at 2.500 s failed: CommitFailedError:"
        " not a member"
    )
    assert "   2.500 a          commit_failed t-0: 36 CommitFailedError: not a member" in said


def test_a_commit_that_is_refused_when_others_have_the_partition_is_named_with_generations() -> None:
    timeline = lived(
        *told(0, 3, {"a": "0"}),
        records(1, "a", (P0, 0, 9)),
        processed(1.5, "a", (P0, 0, 4)),
        *told(2.5, 4, {"b": "0"}),
        records(3, "b", (P0, 0, 9)),
        processed(4, "b", (P0, 0, 9)),
        processed(5, "a", (P0, 5, 9)),
        CommitFailed(6, "a", positions={P0: 10}, text="IllegalGenerationError"),
    )
    said = message(timeline.assert_no_duplicates)
    assert said.splitlines()[1] == (
        "  t-0: 10: a had processed offsets 0..4 and had committed nothing when b got them at 4.000 s;"
        " its commit at 6.000 s, as of generation 3, failed: IllegalGenerationError;"
        " the group was in generation 4 by then;"
        " and a, which had polled offsets 5..9 at 1.000 s, processed them at 5.000 s,"
        " when b had processed them"
    )


def test_one_that_begins_behind_a_commit_consumes_twice() -> None:
    reset = Timeline([records(0, "a", (P0, 0, 9)), committed(1, "a", p0=10), records(2, "b", (P0, 0, 0))])
    assert "a had consumed offset 0 and the last commit was 10, by a at 1.000 s, when b got them" in message(
        reset.assert_no_duplicates
    )


# What applications hold -------------------------------------------------------------------------------


def test_what_is_held_when_the_listener_has_returned_is_named() -> None:
    events = [
        event(1, "a", "holds", P0, what="cache"),
        event(1, "a", "holds", P1, what="cache"),
        event(1, "a", "holds", P0, what="lock"),
        event(1.9, "a", "releases", P0, what="cache"),
        event(2, "a", "revoked", P0, P1),
        event(3, "a", "releases", P1, what="cache"),
    ]
    Timeline(events[:1] + events[3:5]).assert_released_on_revoke()
    timeline = Timeline(events)
    assert message(timeline.assert_released_on_revoke).splitlines()[:3] == [
        "members held on to what they had for partitions that were taken from them:",
        "  t-1: a held its cache when the partition was revoked at 1.000 s, and released it at 2.000 s",
        "  t-0: a held its lock when the partition was revoked at 1.000 s, and never released it",
    ]
    assert "lock" not in message(lambda: timeline.assert_released_on_revoke("cache")).partition("seconds")[0]


def test_other_members_other_partitions_and_ended_members_are_not_blamed() -> None:
    lived(
        event(1, "a", "holds", P0, what="cache"),
        event(1, "b", "holds", P1, what="cache"),
        event(2, "a", "lost", P1),
        event(2, "b", "crashed"),
        event(3, "b", "revoked", P1),
    ).assert_released_on_revoke()


def test_nothing_held_is_nothing_judged() -> None:
    timeline = Timeline(
        [event(1, "a", "holds", P0, what="cache"), event(2, "a", "releases", P0, what="cache")]
    )
    timeline.assert_released_on_revoke()
    said = message(lambda: timeline.assert_released_on_revoke("lock"))
    assert said == "no application held lock: call seat.holds(partition, what) in it"


def test_a_rule_of_ones_own_is_asserted_on_notes() -> None:
    timeline = Timeline([*told(0, 1, {"a": "0"}), event(1, "a", "note", name="open files", value=3)], end=2)

    def all_closed(timeline: Timeline) -> list[str]:
        return [f"{one.member} has {one.value} {one.name}" for one in timeline.of(Noted) if one.value]

    timeline.assert_that(lambda _: [], "never")
    said = message(lambda: timeline.assert_that(all_closed, "files are still open"))
    assert said.splitlines()[:2] == ["files are still open:", "  a has 3 open files"]
    assert "   1.000 a          note name open files value 3" in said


# Nothing to judge ---------------------------------------------------------------------------------------

NOBODY = Timeline([])
WITHOUT_TOPIC = Timeline([*start(0, "a", "t"), *told(1, 1, {"a": ""})], end=9)
"""A member of a topic that does not exist."""

NO_PARTITION = (
    "no member ever had a partition: wait until the group is stable, and look whether its topics exist"
)
NO_RECORD = "no poll ever returned a record: put the group under load, and wait until it has consumed"


@pytest.mark.parametrize(
    ("assertion", "said"),
    [
        (Timeline.assert_balanced, NO_PARTITION),
        (Timeline.assert_sticky, NO_PARTITION),
        (Timeline.assert_never_owned_twice, NO_PARTITION),
        (lambda timeline: timeline.assert_never_owned_twice("callback"), NO_PARTITION),
        (lambda timeline: timeline.assert_paused_at_most(1), NO_PARTITION),
        (lambda timeline: timeline.assert_paused_at_most(1, by="records"), NO_RECORD),
        (Timeline.assert_no_duplicates, NO_RECORD),
        (Timeline.assert_in_order, NO_RECORD),
    ],
)
def test_an_assertion_refuses_a_timeline_that_gives_it_nothing_to_judge(
    assertion: Callable[[Timeline], None], said: str
) -> None:
    assert message(lambda: assertion(WITHOUT_TOPIC)) == said
    if assertion is not Timeline.assert_balanced:  # which then says that there is no generation
        assert message(lambda: assertion(NOBODY)) == said


def test_without_any_generation_none_can_be_the_last() -> None:
    WITHOUT_TOPIC.assert_no_rebalance(after=1)
    assert message(lambda: NOBODY.assert_no_rebalance(after=1)) == (
        "no member was ever assigned anything: wait until the group is stable"
    )


@pytest.mark.parametrize("produced", [{}, {P0: 0}])
def test_of_a_load_that_produced_nothing_none_can_be_lost(produced: Mapping[TopicPartition, int]) -> None:
    timeline = Timeline([*told(0, 1, {"a": "0"}), records(1, "a", (P0, 0, 9))])
    assert message(lambda: timeline.assert_all_consumed(produced)) == (
        "nothing was produced: wait until load.produced has records, or give what load.stop() returns"
    )


# What is shown ----------------------------------------------------------------------------------------


def test_of_many_events_the_first_and_the_last_are_shown() -> None:
    events = [event(1 + number / 1000, "a", "error", text=str(number)) for number in range(100)]
    timeline = Timeline([*told(0, 1, {"a": "0"}), *events, event(3, "a", "crashed")], end=4)
    timeline = Timeline([*timeline.events, *told(0.5, 2, {"b": "0"})], end=4)
    lines = message(lambda: timeline.assert_never_owned_twice("callback")).splitlines()
    (hole,) = [number for number, line in enumerate(lines) if "more events" in line]
    assert lines[hole].split() == ["…", "63", "more", "events", "…"]
    assert lines[hole - 1].endswith("error text 17")
    assert lines[hole + 1].endswith("error text 81")
    assert lines[-1].endswith("crashed")


def test_of_many_partitions_the_first_are_explained_and_the_rest_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    explained = list[float]()

    def why_paused(_timeline: Timeline, start: float, _end: float) -> list[str]:
        explained.append(start)
        return []

    monkeypatch.setattr(assertions, "why_paused", why_paused)
    owned = [TopicPartition("t", number) for number in range(50)]
    again = [event(3 + number / 10, "b", "assigned", one) for number, one in enumerate(owned)]
    timeline = lived(event(0, "a", "assigned", *owned), event(1, "a", "lost", *owned), *again)
    lines = message(lambda: timeline.assert_paused_at_most(1000)).splitlines()
    assert [line.split(":")[0].strip() for line in lines[1:12]] == [
        *(f"t-{number}" for number in range(49, 39, -1)),
        "… and 40 more",
    ]
    assert explained == [1.0] * 10
    assert [line.split()[0] for line in lines[15:27]] == [f"t-{number}" for number in range(38, 50)]


# Errors -----------------------------------------------------------------------------------------------


def test_listeners_and_polls_that_raised_are_listed_in_the_order_of_time() -> None:
    timeline = lived(
        *told(0, 1, {"a": "0"}),
        event(1, "a", "error", type="CorruptRecordError", text="bad crc"),
        event(2, "b", "listener", callback="on_revoke", seconds=0.1, error="KeyError: 3"),
        event(3, "b", "error", command="subscribe", type="ValueError", text="no topics"),
    )
    assert message(timeline.assert_no_errors).splitlines()[:4] == [
        "applications of members raised:",
        "  a, at 1.000 s: its poll raised CorruptRecordError: bad crc",
        "  b, at 2.000 s: its on_revoke raised KeyError: 3",
        "  b, at 3.000 s: its subscribe raised ValueError: no topics",
    ]


def test_long_listeners_and_failed_commits_are_no_errors() -> None:
    lived(
        event(1, "a", "listener", callback="on_revoke", seconds=9),
        event(2, "a", "commit_failed", positions=[], text="RebalanceInProgressError"),
    ).assert_no_errors()


def test_a_rebalance_that_was_not_to_be_says_who_brought_it_about() -> None:
    again = [event(time, "b", "subscribed", topics=["t"]) for time in (2, 3, 4, 5)]
    generations = [one for number in range(4) for one in told(2.5 + number, 2 + number, {"a": "0"})]
    timeline = Timeline([*told(0, 1, {"a": "0"}), *again, *generations])
    said = message(lambda: timeline.assert_no_rebalance(after=1)).splitlines()
    assert (said[0], said[2]) == (
        "the group rebalanced after generation 1:",
        "  generation 2, from 2.500 s: a",
    )
    assert said[1].startswith("  b subscribed 4 times")


# Causes -----------------------------------------------------------------------------------------------


def first_fault(assertion: Callable[[], None]) -> str:
    return message(assertion).splitlines()[1].strip()


def test_what_is_processed_when_the_partition_was_revoked_is_named_unless_it_came_back() -> None:
    begun = [
        *service("a", "b"),
        event(1, "a", "assigned", P0),
        records(1.5, "a", (P0, 0, 3)),
        processed(1.6, "a", (P0, 0, 1)),
        event(2, "a", "revoked", P0),
        event(2.1, "b", "assigned", P0),
        records(2.2, "b", (P0, 0, 3)),
        processed(2.3, "b", (P0, 0, 3)),
    ]
    timeline = lived(*begun, processed(2.8, "a", (P0, 2, 2)), processed(2.9, "a", (P0, 3, 3)))
    assert first_fault(timeline.assert_no_duplicates) == (
        "t-0: 4: a had processed offsets 0..1 and had committed nothing when b got them at 2.300 s; and a,"
        " which had polled offsets 2..3 at 1.500 s, processed them at 2.800 s, when b had processed them;"
        " a processed offsets 2..3 at 2.800 s and later, when the partition had been revoked 0.800 s before,"
        " at 2.000 s"
    )
    assert first_fault(timeline.assert_in_order) == (
        "t-0: 2 times: b came to offsets 0..3 at 2.300 s, and a to offset 2 at 2.800 s; a processed offset 2"
        " at 2.800 s, when the partition had been revoked 0.800 s before, at 2.000 s"
    )
    again = lived(*begun, event(2.5, "a", "assigned", P0), processed(2.8, "a", (P0, 2, 3)))
    assert "revoked" not in first_fault(again.assert_no_duplicates)
    again.assert_in_order()


@pytest.mark.parametrize(("to", "word"), [(6, "offset 6"), (-1, "the end")])
def test_a_record_that_was_sought_past_is_named_with_the_seek(to: int, word: str) -> None:
    timeline = lived(
        event(0, "a", "assigned", P0),
        event(0.5, "a", "sought", positions=[["t", 0, 3]]),
        event(1, "b", "assigned", P0),
        committed(1.1, "a", p0=5),
        event(1.2, "b", "sought", positions=[["t", 0, to]], callback="on_partitions_assigned"),
        records(2, "b", (P0, 6, 9)),
        records(3, "a", (P0, 0, 4)),
    )
    assert first_fault(lambda: timeline.assert_all_consumed({P0: 10})) == (
        "t-0: 1 of 10, offsets 5: no member polled offset 5; b went on at 6;"
        f" b sought {word} in its on_partitions_assigned at 1.200 s"
    )


def test_records_that_were_sought_back_to_are_named_with_the_seek_and_others_are_not() -> None:
    rewound = lived(
        records(0, "a", (P0, 0, 9)),
        event(1, "a", "sought", positions=[["t", 0, -2]]),
        records(2, "a", (P0, 0, 0)),
    )
    assert first_fault(rewound.assert_no_duplicates) == (
        "t-0: 1: a consumed offset 0 twice, again at 2.000 s; a sought the beginning at 1.000 s"
    )
    assert first_fault(rewound.assert_in_order) == (
        "t-0: once: a came to offsets 0..9 at 0.000 s, and offset 0 at 2.000 s; a sought the beginning"
        " at 1.000 s"
    )
    # There was no such offset: the client began elsewhere.
    beyond = lived(
        records(0, "a", (P0, 0, 9)),
        event(1, "a", "sought", positions=[["t", 0, 99]]),
        records(2, "a", (P0, 0, 3)),
        records(3, "a", (P0, 4, 9)),
    )
    assert "; a sought offset 99 at 1.000 s" in first_fault(beyond.assert_no_duplicates)
    before = lived(
        event(0, "a", "sought", positions=[["t", 0, 0]]),
        records(1, "a", (P0, 0, 9)),
        records(2, "a", (P0, 0, 0)),
    )
    assert "sought" not in first_fault(before.assert_no_duplicates)


def test_records_that_a_member_gets_again_with_their_partition_are_named_with_the_commit() -> None:
    def got_again(*commits: Event) -> str:
        timeline = lived(
            event(0, "a", "assigned", P0),
            records(1, "a", (P0, 0, 9)),
            *commits,
            event(3, "a", "assigned", P0),
            records(4, "a", (P0, 5, 9)),
        )
        return first_fault(timeline.assert_no_duplicates)

    twice = (
        "t-0: 5: a consumed offsets 5..9 twice, again at 4.000 s; it got the partition again at 3.000 s, when"
    )
    assert got_again(committed(2, "a", p0=5)) == f"{twice} the last commit was 5, by a at 2.000 s"
    assert got_again() == f"{twice} nothing was committed"


def test_several_threads_in_one_consumer_are_named_before_those_that_only_process() -> None:
    def fault(*polled_in: str) -> str:
        polls = [
            event(time, "a", "records", records=[["t", 0, 2 * time, 2 * time + 1]], thread=thread)
            for time, thread in enumerate(polled_in)
        ]
        done = [processed(4, "a", (P0, 2, 3), thread="x"), processed(5, "a", (P0, 0, 1), thread="y")]
        return first_fault(lived(*service("a"), *polls, *done).assert_in_order)

    came = "t-0: once: a came to offsets 2..3 at 4.000 s, and offsets 0..1 at 5.000 s; a"
    assert (
        fault("x", "y") == f"{came} polled its consumer in 2 threads or tasks (x, y): a consumer is for one"
    )
    assert fault("x", "x") == f"{came} processed the partition's records in 2 threads or tasks (x, y)"


def raised(
    time: float, member: str, where: str, text: str, *ranges: tuple[TopicPartition, int, int]
) -> Event:
    return Raised(time, member, where=where, text=text, records=ranges)


def test_what_was_raised_over_a_record_that_is_lost_is_named() -> None:
    def fault(*more: Event) -> str:
        timeline = lived(
            *service("a"),
            records(1, "a", (P0, 0, 3), (P1, 0, 1)),
            processed(1.1, "a", (P0, 0, 1)),
            *more,
            committed(1.5, "a", p0=4),
            records(2, "a", (P1, 2, 2)),
            processed(2.1, "a", (P1, 0, 2)),
            raised(2.2, "a", "log", "KeyError: 3"),
        )
        return first_fault(lambda: timeline.assert_all_consumed({P0: 4, P1: 3}))

    lost = (
        "t-0: 2 of 4, offsets 2..3: a polled offsets 2..3 and committed 4 before it had processed them; 4 is"
        " the end of its poll at 1.000 s, of whose 6 records it had processed 2"
    )
    assert fault() == lost
    logged = raised(1.2, "a", "log", "ValueError: x"), raised(1.3, "a", "log", "ValueError: y")
    assert fault(*logged) == f"{lost}; a logged ValueError: x, at 1.200 s, the first of 2"
    handled = raised(1.4, "a", "handler", "OSError: z", (P0, 3, 3))
    assert fault(*logged, handled) == f"{lost}; a had from its handler OSError: z at offset 3, at 1.400 s"
    assert fault(raised(1.4, "a", "handler", "OSError: z", (P0, 1, 1))) == lost


def test_a_record_at_which_a_poll_raised_is_named_and_was_left_undone() -> None:
    failed = event(2, "a", "error", type="ValueError", text="x\ny", records=[["t", 0, 3, 3]])
    past = [records(1, "a", (P0, 0, 2)), committed(1.5, "a", p0=3), failed]
    timeline = lived(*past)
    assert first_fault(lambda: timeline.assert_all_consumed({P0: 5})) == (
        "t-0: 2 of 5, offsets 3..4: no member polled offsets 3..4; a's poll at 1.000 s raised ValueError: x"
        " at offset 3; the last commit before was 3, by a at 0.500 s"
    )
    assert left_undone(timeline, "a") == {P0: 3}
    assert left_undone(lived(*past, records(3, "a", (P0, 4, 4))), "a") == {}
    assert left_undone(lived(records(3, "b", (P2, 0, 1))), "b") == {}
    assert str(failed) == "a          error type ValueError text x\ny"


# Ends -------------------------------------------------------------------------------------------------


def test_a_record_at_which_members_ended_is_named_and_may_end_others_until_one_processes_it() -> None:
    past = [
        records(1, "a", (P1, 0, 4), (P0, 0, 9)),
        processed(2, "a", (P0, 0, 6)),
        event(3, "a", "exited", status=1),
        # It has processed what the first one had not, but for the record at which that ended.
        records(4, "b", (P1, 0, 4), (P0, 7, 9)),
        processed(5, "b", (P1, 0, 4)),
        event(6, "b", "exited", status=1),
    ]
    timeline = Timeline(past)
    assert ended_in_turn(timeline, ["a", "b"]) == {(P0, 7): [(3, "a"), (6, "b")]}
    assert ended_in_turn(timeline, ["a"]) == {}
    assert may_end_others(timeline, ["a", "b"])
    assert not may_end_others(Timeline([*past, processed(7, "c", (P0, 7, 9))]), ["a", "b"])
    assert not may_end_others(timeline, [])
