"""Timelines of hand-made events: what follows from them, figure by figure."""

import pytest
from kafka import TopicPartition

from kafka_assignors._timelines.ownership import Ownership
from kafka_assignors._timelines.timeline import Timeline
from tests.support.timelines import P0, P1, P2, event, joined, lived, records


def owned(
    partition: TopicPartition, member: str, start: float, end: float | None, generation: int
) -> Ownership:
    return Ownership(partition=partition, member=member, start=start, end=end, generation=generation)


# Rebalances


def test_a_rebalance_lasts_from_the_first_to_ask_until_the_last_to_know() -> None:
    timeline = lived(
        event(1.0, "a", "metadata"),
        event(1.1, "a", "metadata"),
        event(1.2, "b", "metadata"),
        event(1.3, "a", "assign", generation=1, claims={"a-1": {"owned": []}}),
        event(1.4, "a", "assignment", P0, generation=1),
        event(1.6, "b", "assignment", P1, generation=1),
    )
    (rebalance,) = timeline.rebalances
    assert (rebalance.generation, rebalance.start, rebalance.end) == (1, 1.0, 1.6)
    assert (rebalance.leader, rebalance.claims) == ("a", {"a-1": {"owned": []}})
    assert rebalance.assignments == {"a": {P0}, "b": {P1}}


def test_a_rebalance_by_epochs_lasts_until_a_member_has_the_last_partition_that_others_let_go_of() -> None:
    timeline = lived(
        event(1.0, "a", "assignment", P0, generation=2),
        event(1.1, "b", "assignment", generation=2),
        event(1.4, "b", "assignment", P1, generation=2),
        event(1.5, "b", "assignment", P1, generation=2),
    )
    (rebalance,) = timeline.rebalances
    assert (rebalance.start, rebalance.end) == (1.0, 1.4)
    assert rebalance.assignments == {"a": {P0}, "b": {P1}}


# Ownership: moment by moment in test_timeline_properties.py


def test_a_double_assignment_counts_also_if_one_of_the_members_was_dead_before_the_other_knew() -> None:
    timeline = Timeline([*joined(1, "a", 4, P0), event(1.2, "a", "crashed"), *joined(1.5, "b", 4, P0)])
    assert timeline.overlaps("generation") == ()
    assert timeline.double_assigned() == {4: {P0}}


@pytest.mark.parametrize("kind", ["started", "configured"])
def test_a_restarted_static_member_is_the_same_owner_whoever_chose_its_instance_id(kind: str) -> None:
    timeline = lived(
        event(0, "a", kind, instance_id="one"),
        *joined(1, "a", 1, P0),
        event(2, "a", "closed"),
        event(3, "a.2", kind, instance_id="one"),
        *joined(4, "a.2", 1, P0),
    )
    assert timeline.double_assigned() == {}
    assert timeline.moves() == ()
    assert timeline.ownership("generation") == (owned(P0, "a", 1, 2, 1), owned(P0, "a.2", 4, None, 1))
    # What it comes back to is an old generation.
    assert [(one.generation, one.start, one.end) for one in timeline.rebalances] == [(1, 0.5, 1)]


# Consumption


def test_consumed_offsets_are_merged_over_members_and_polls() -> None:
    timeline = lived(
        records(1, "a", (P0, 0, 3), (P1, 7, 7)),
        records(2, "b", (P0, 6, 8)),
        records(3, "a", (P0, 4, 4), (P0, 2, 3)),
    )
    assert timeline.consumed() == {P0: ((0, 4), (6, 8)), P1: ((7, 7),)}
    assert timeline.duplicates() == {P0: 2}


def test_missing_are_the_holes_and_the_end() -> None:
    timeline = Timeline([records(1, "a", (P0, 1, 2), (P0, 5, 5), (P1, 0, 2))])
    assert timeline.missing({P0: 8, P1: 3, P2: 1}) == {P0: (0, 3, 4, 6, 7), P2: (0,)}
    assert timeline.missing({P0: 1, P1: 2}) == {P0: (0,)}


def test_the_longest_silence_lies_between_two_reports() -> None:
    timeline = lived(
        records(1, "a", (P0, 0, 0)),
        records(2, "a", (P0, 1, 1)),
        records(5, "b", (P0, 2, 2)),
        records(6, "b", (P0, 3, 3), (P1, 0, 0)),
    )
    assert timeline.longest_silence() == {P0: 3, P1: 0}
    assert timeline.longest_silence(since=0, until=10) == {P0: 4, P1: 6}
    assert timeline.longest_silence(since=5.5) == {P0: 0.5, P1: 0.5}
    assert timeline.longest_silence(since=7) == {P0: 0, P1: 0}
    assert timeline.longest_silence(until=2.5) == {P0: 1, P1: 0}


# Text


def test_records_and_commits_in_a_row_are_summed_up_between_what_changes_the_group() -> None:
    events = [event(0, "a", "assigned", P0, P1, generation=1)]
    for number in range(1, 6):
        events += [
            records(number, "a", (P0, 10 * number, 10 * number + 9), (P1, number, number)),
            event(
                number + 0.5, "a", "committed", positions=[["t", 0, 10 * number + 10], ["t", 1, number + 1]]
            ),
        ]
    events += [records(7, "b", (P2, 0, 0)), event(8, "a", "revoked", P0, P1, generation=1)]
    events += [records(9, "a", (P0, 60, 60))]
    timeline = Timeline(events)
    assert timeline.describe().splitlines() == [
        "   0.000 a          assigned generation 1 t:0,1",
        "   5.000 a          records 5 times since 1.000 t-0: 10..59 t-1: 1..5",
        "   5.500 a          committed 5 times since 1.500 t-0: 60 t-1: 6",
        "   7.000 b          records t-2: 0..0",
        "   8.000 a          revoked generation 1 t:0,1",
        "   9.000 a          records t-0: 60..60",
    ]
    assert timeline.describe(last=2).splitlines() == timeline.describe().splitlines()[-2:]
    assert "   5.500 a          committed t-0: 60 t-1: 6" in map(timeline.line, timeline.events)


def test_failed_commits_in_a_row_are_one_line_for_each_reason() -> None:
    failed = [
        event(number, "a", "commit_failed", positions=[["t", 0, number]], text=text)
        for number, text in ((0, "rebalance"), (1, "rebalance"), (2, "rebalance"), (3, "gone"))
    ]
    assert Timeline([*failed, event(4, "b", "crashed")]).describe().splitlines() == [
        "   2.000 a          commit_failed 3 times since 0.000 t-0: 2 rebalance",
        "   3.000 a          commit_failed t-0: 3 gone",
        "   4.000 b          crashed",
    ]
