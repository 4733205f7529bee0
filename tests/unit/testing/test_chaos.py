"""Scripts of chaos have all kinds of steps, and promises are held against what members report."""

import contextlib
from dataclasses import replace

import pytest
from click.testing import CliRunner
from kafka import TopicPartition

from kafka_assignors._timelines.events import Event
from kafka_assignors._timelines.timeline import Timeline
from tests.lab.chaos import (
    EXCLUSIVE,
    PROMISES,
    plan_events,
)
from tests.lab.chaos.__main__ import main
from tests.lab.chaos._cases import CASES
from tests.lab.chaos._promises import keep, without_excuse
from tests.lab.chaos._script import WEIGHTS, count_kinds
from tests.support.timelines import P0, P1, event, history, lived, start, told


def test_a_script_has_as_many_steps_as_were_asked_for_and_all_kinds_come() -> None:
    scripts = [plan_events(seed, 50) for seed in range(40)]
    assert {len(script.steps) for script in scripts} == {50}
    kinds = count_kinds(scripts)
    assert kinds.keys() == WEIGHTS.keys()
    assert min(kinds.values()) >= 20
    # They come in bursts.
    assert {step.gap for script in scripts for step in script.steps} == {
        0,
        0.1,
        0.2,
        0.3,
        0.5,
        0.6,
        1,
        1.5,
        2,
    }
    slow = [step.poll_ms > 0 for script in scripts for step in script.steps if step.kind == "join"]
    assert 0.3 < sum(slow) / len(slow) < 0.5


# Promises -----------------------------------------------------------------------------------------------


def partitions(count: int) -> list[TopicPartition]:
    return [TopicPartition("t", number) for number in range(count)]


def test_a_partition_with_two_owners_breaks_every_promise_of_exclusive_ones() -> None:
    timeline = history({"a": "01", "b": "12"})
    with pytest.raises(AssertionError, match="given the same partitions"):
        keep(EXCLUSIVE, timeline, 1, partitions(3), -1)
    keep(PROMISES["broadcast"], timeline, 1, partitions(3), -1)


def test_an_application_that_was_not_told_is_excused_only_out_of_the_group() -> None:
    def timeline(members_of_the_second: dict[str, str]) -> Timeline:
        return lived(
            *start(0, "a", "t"),
            *start(0, "b", "t"),
            *told(1, 1, {"a": "01", "b": "2"}),
            *told(2, 2, members_of_the_second),
            end=3,
        )

    keep(EXCLUSIVE, timeline({"b": "012"}), 2, partitions(3), -1)  # a is frozen
    found = [*without_excuse(timeline({"b": "12", "a": "0"}))]
    assert [(one.partition, one.members) for one in found] == [(TopicPartition("t", 1), ("a", "b"))]
    with pytest.raises(AssertionError, match=r"t-1 was still a's by its application when b got it"):
        keep(EXCLUSIVE, timeline({"b": "12", "a": "0"}), 2, partitions(3), -1)


def identified(member_id: str, *events: Event) -> list[Event]:
    """Events with the id that the coordinator gave their member."""
    return [replace(one, member_id=member_id) for one in events]


def test_a_member_that_has_not_taken_its_assignment_is_in_the_group_by_its_leaders_list() -> None:
    def timeline(ids: set[str]) -> Timeline:
        return lived(
            *identified("id-a", *told(1, 1, {"a": "01"})),
            *identified("id-b", event(1.9, "b", "assign", generation=2, claims=dict.fromkeys(ids))),
            *identified("id-b", *told(2, 2, {"b": "1"})),
            event(2.5, "a", "revoked", P1),
            end=3,
        )

    found = [*without_excuse(timeline({"id-a", "id-b"}))]
    assert [(one.partition, one.members, one.seconds) for one in found] == [(P1, ("a", "b"), 0.5)]
    assert [*without_excuse(timeline({"id-b"}))] == []  # it was expelled


def test_a_member_that_has_not_taken_its_assignment_is_in_the_group_by_its_own_word() -> None:
    events = [
        *identified("id-a", *told(1, 1, {"a": "01"})),
        *identified("id-b", *told(2, 2, {"b": "1"})),
        event(2.5, "a", "revoked", P1),
    ]
    joins_again = event(2.2, "a", "metadata", generation=2)
    assert len([*without_excuse(Timeline([*events, *identified("id-a", joins_again)]))]) == 1
    assert [*without_excuse(Timeline(events))] == []
    # It was expelled, and came back before its application heard so.
    assert [*without_excuse(Timeline([*events, *identified("id-new", joins_again)]))] == []


def test_a_silent_static_member_is_excused_where_the_strategy_gives_its_partitions_away() -> None:
    def timeline(*joining: Event, instance_id: str | None = "static", claimed: int = 0) -> Timeline:
        return lived(
            event(0, "a", "started", instance_id=instance_id),
            event(0.5, "a", "metadata", claimed_generation=claimed),
            *identified("id-a", *told(1, 1, {"a": "01"})),
            *joining,
            *identified("id-b", event(1.9, "b", "assign", generation=2, claims={"id-a": {}, "id-b": {}})),
            *identified("id-b", *told(2, 2, {"b": "1"})),
            end=3,
        )

    silent = timeline()
    assert [*without_excuse(silent, keeps_silent=False)] == []
    assert len([*without_excuse(silent)]) == 1
    assert [*without_excuse(timeline(claimed=-1))] == []  # another leader takes it for new
    keep(PROMISES["random"], silent, 2, partitions(2), -1)
    with pytest.raises(AssertionError, match=r"t-1 was still a's by its application when b got it"):
        keep(PROMISES["cooperative-sticky"], silent, 2, partitions(2), -1)
    for answers in (timeline(event(1.5, "a", "metadata")), timeline(instance_id=None)):
        assert len([*without_excuse(answers, keeps_silent=False)]) == 1


def test_a_member_that_came_back_under_another_id_answers_for_what_it_was_given_then() -> None:
    timeline = lived(
        *identified("id-a", *told(1, 1, {"a": "01"})),
        *identified("id-new", event(2, "a", "assignment", P0, P1, generation=2)),
        *identified("id-b", *told(3, 3, {"b": "1"})),
        *identified("id-new", event(3.2, "a", "metadata", generation=3)),
        event(3.5, "a", "revoked", P1),
    )
    assert [one.members for one in without_excuse(timeline)] == [("a", "b")]


def test_loads_are_held_against_what_each_strategy_promises() -> None:
    uneven = history({"a": "012", "b": "3"})
    for name in ("sticky", "cooperative-sticky", "roundrobin"):
        with pytest.raises(AssertionError, match="is not balanced"):
            keep(PROMISES[name], uneven, 1, partitions(4), -1)
    with pytest.raises(AssertionError, match="does not share t out evenly: a has 3, b has 1"):
        keep(PROMISES["range"], uneven, 1, partitions(4), -1)
    keep(PROMISES["random"], uneven, 1, partitions(4), -1)
    even = history({"a": "01", "b": "23"})
    for promise in PROMISES.values():
        if promise.sharing == "exclusive":
            keep(promise, even, 1, partitions(4), -1)


def test_moves_count_for_sticky_strategies_and_only_once() -> None:
    timeline = history({"a": "01", "b": "23"}, {"a": "02", "b": "13"})
    with pytest.raises(AssertionError, match="more partitions moved than had to"):
        keep(PROMISES["sticky"], timeline, 2, partitions(4), 1)
    keep(PROMISES["sticky"], timeline, 2, partitions(4), 2)
    keep(PROMISES["range"], timeline, 2, partitions(4), 1)


def test_a_static_member_that_restarted_in_a_generation_counts_once() -> None:
    timeline = lived(
        *start(0, "a", "t", instance_id="one"),
        *start(0, "b", "t"),
        *told(1, 1, {"a": "01", "b": "23"}),
        event(2, "a", "closed"),
        *start(3, "a.2", "t", instance_id="one"),
        *told(3.5, 1, {"a.2": "01"}),
    )
    for name in ("range", "roundrobin", "sticky"):
        keep(PROMISES[name], timeline, 1, partitions(4), -1)


@pytest.mark.parametrize("case", ["max_active=1", "priority"])
def test_who_is_to_stand_by_has_nothing_of_a_topic(case: str) -> None:
    promise = CASES[case].promise  # m1 and m3 have the higher priority
    for given, kept in (({"m1": "01", "m2": "2"}, False), ({"m1": "012", "m2": ""}, True)):
        broken = pytest.raises(AssertionError, match="m1, m2 have t, not ")
        with contextlib.nullcontext() if kept else broken:
            keep(promise, history(given), 1, partitions(3), -1)
    two = history({"m1": "01", "m3.2": "2", "m2": ""})
    with contextlib.nullcontext() if case == "priority" else pytest.raises(AssertionError):
        keep(promise, two, 1, partitions(3), -1)


def test_partitions_that_are_to_be_together_have_one_owner_for_each_id() -> None:
    timeline = lived(
        *start(0, "a", "t", "u"),
        *start(0, "b", "t", "u"),
        *told(1, 1, {"a": "01"}),
        *told(1.5, 1, {"b": "1"}, topic="u"),
        end=3,
    )
    keep(EXCLUSIVE, timeline, 1, [], -1)
    with pytest.raises(AssertionError, match="any-1"):
        keep(PROMISES["copartitioned"], timeline, 1, [], -1)


# Command and page ---------------------------------------------------------------------------------------


def test_the_command_prints_the_script_that_its_seed_gives() -> None:
    asked = ["--seed", "7", "--events", "20", "--assignor", "range", "--script"]
    for more, scripts in (
        ((), [plan_events(7, 20)]),
        (("--assignor", "sticky"), [plan_events(7, 20), plan_events(8, 20)]),
    ):
        printed = CliRunner().invoke(main, [*asked, *more])
        assert printed.stdout == "".join(f"{script}\n" for script in scripts)
        assert (printed.exit_code, printed.stderr) == (0, "seed 7\n")
