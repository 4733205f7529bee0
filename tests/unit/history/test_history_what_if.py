"""What-if: courses of groups, replays through assignors, and scenarios."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pytest
from hypothesis import given, strategies as st

from kafka_assignors import (
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._assignors import Assignor
from kafka_assignors._cli.history_text import what_if_lines
from kafka_assignors._common.strategies import REPLAYED
from kafka_assignors._common.times import moment
from kafka_assignors._groups.rebalances import SpanFinder
from kafka_assignors._groups.saving import ACTUAL, AS_IT_WAS, WhatIf, best_saving
from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot, SnapshotMember
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors.history._what_if.assignors import Situation, leader_of
from kafka_assignors.history._what_if.commits import Commits
from kafka_assignors.history._what_if.course import CountedRebalance, Course, CourseBuilder
from kafka_assignors.history._what_if.job import replay_all
from kafka_assignors.history._what_if.replay import Player, replay_course, row_of
from kafka_assignors.history._what_if.scenarios import STATIC, scenario_of
from tests.support import group_histories
from tests.support.commits import HOT, SECOND, commit, commit_key, commits
from tests.support.group_histories import (
    RecordedGroup,
    find_rebalances,
    random_life,
    random_records,
    read_snapshots,
    topics_seen,
)
from tests.support.history_reports import what_if
from tests.support.scale import examples

member = partial(group_histories.member, session_timeout_ms=45_000)


def snapshot(generation: int, at: float, *members: SnapshotMember, strategy: str = "range") -> Snapshot:
    """A generation whose assignments were written at a second, a second after all had joined."""
    return group_histories.snapshot(generation, at, *members, joined=at - 1, strategy=strategy, start_us=0)


def course_of(history: Iterable[Snapshot], topics: Mapping[str, int] | TopicsSeen | None = None) -> Course:
    builder = CourseBuilder("g", topics_seen(topics))
    for one in history:
        builder.add(one)
    return builder.build()


class Replay(NamedTuple):
    rebalances: Sequence[CountedRebalance]
    row: WhatIf


def replays(course: Course, assignors: Iterable[str], scenario: str = AS_IT_WAS) -> list[Replay]:
    changed = scenario_of(scenario)(course)
    return [
        Replay(
            one.rebalances,
            row_of(changed, one.rebalances, one.failed_before, assignor=one.name, scenario=scenario),
        )
        for one in replay_course(changed, [*assignors])
    ]


def replay(
    history: Iterable[Snapshot],
    assignor: str,
    *,
    topics: Mapping[str, int] | TopicsSeen | None = None,
    scenario: str = AS_IT_WAS,
) -> Replay:
    """What happened, or a replay."""
    course = course_of(history, topics)
    if assignor == ACTUAL:
        happened = [*course.happened]
        return Replay(happened, row_of(course, happened, int(not course.began_well)))
    (found,) = replays(course, [assignor], scenario)
    return found


def owned(course: Course, assignor: str) -> list[dict[tuple[str, int], str]]:
    """The owners when the history begins, and after each rebalance of a replay."""
    player = Player(assignor)
    found: dict[int, dict[tuple[str, int], str]] = {}
    for step in course.steps:
        situation = Situation.of(step, {}) if step.members else None
        player.play(situation)
        names = [*situation.number_of] if situation else []
        places = zip(situation.place_of, player.owner.tolist(), strict=True) if situation else ()
        found[step.rebalance] = {one: names[number] for one, number in places if number >= 0}
    return [*found.values()]


def owned_really(history: Sequence[Snapshot]) -> list[dict[tuple[str, int], str]]:
    """The same of what happened."""
    finder = SpanFinder()
    spans = [span for one in history for span in finder.add(one)]
    return [history[0].owners, *(span.end.owners for span in (*spans, *finder.finish()) if not span.quiet)]


coop = partial(snapshot, strategy="cooperative-sticky")
both = partial(member, topics="tu")
"""A member of both topics."""
ALL_FOUR = "t0 t1 t2 t3"


# A simulated life


OURS: dict[str, Callable[[], Assignor]] = {
    "range": RangeAssignor,
    "roundrobin": RoundRobinAssignor,
    "sticky": StickyAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}


@given(data=st.data())
@examples(25)
def test_a_random_life_replayed_with_its_own_assignor_is_what_happened(data: st.DataObject) -> None:
    strategy = data.draw(st.sampled_from([*OURS]))
    count = data.draw(st.integers(1, 6))
    sizes = data.draw(st.dictionaries(st.sampled_from("abc"), st.integers(1, 9), min_size=1))
    group = RecordedGroup(sizes, OURS[strategy], seed=7)
    simulation = group.simulation
    for _ in range(3):
        simulation.join()
    group.settle()
    for _ in range(count):
        kind = data.draw(st.sampled_from(["join", "leave", "crash"]))
        number = data.draw(st.integers(0, 9))
        running = [name for name, one in simulation.members.items() if one.running]
        if kind == "join" or len(running) == 1:
            simulation.join()
        elif kind == "leave":
            simulation.members[running[number % len(running)]].leave()
        else:
            simulation.members[running[number % len(running)]].crash()
            group.run(7)  # its session is over
        group.settle()
    snapshots = [*read_snapshots(group.records)]

    again, each = replay(snapshots, strategy), owned(course_of(snapshots), strategy)
    assert each == owned_really(snapshots)
    left = [one for one in simulation.members.values() if one.running]
    assert each[-1] == {partition: one.member_id for one in left for partition in one.held}
    assert (replay(snapshots, ACTUAL).rebalances, 0) == (again.rebalances, again.row.failed)


# Histories that are made up


@st.composite
def histories(draw: st.DrawFn, *, equal: bool = False) -> list[Snapshot]:
    """Random memberships, with assignments that no assignor made."""
    sizes = draw(st.dictionaries(st.sampled_from("abc"), st.integers(1, 6), min_size=1))
    names = [f"m{number}" for number in range(6)]
    subscription = {
        name: "".join(sizes if equal else draw(st.lists(st.sampled_from([*sizes]), unique=True, min_size=1)))
        for name in names
    }
    found = []
    for generation in range(1, draw(st.integers(1, 6)) + 1):
        here = draw(st.lists(st.sampled_from(names), unique=True))
        # Each topic to one of those who want it: one that nobody got would have been deleted.
        owner = {topic: name for name in reversed(here) for topic in subscription[name]}
        has = dict.fromkeys(here, "")
        for topic, name in owner.items():
            has[name] += "".join(f" {topic}{number}" for number in range(sizes[topic]))
        members = [
            member(f"={name}" if name in "m1m3" else name, has[name], topics=subscription[name])
            for name in here
        ]
        found.append(snapshot(generation, 10.0 * generation, *members))
    return found


@given(history=histories(), name=st.sampled_from([*OURS]))
@examples(60)
def test_planners_do_what_the_assignors_do_through_bytes(history: list[Snapshot], name: str) -> None:
    course = course_of(history)
    pair = name, f"kafka_assignors:{OURS[name].__name__}"

    by_planner, by_contract = replays(course, pair)

    assert by_contract.row.failed == 0
    assert owned(course, pair[0]) == owned(course, pair[1])
    assert by_planner.rebalances == by_contract.rebalances


@given(history=histories(equal=True))
@examples(50)
def test_with_equal_subscriptions_sticky_assignors_are_balanced(history: list[Snapshot]) -> None:
    for name in ("sticky", "cooperative-sticky", "kip848:uniform"):
        row = replay(history, name).row
        assert (row.failed, row.worst_imbalance in {0, 1}) == (0, True)


# One rule after the other, by hand


def test_a_hand_over_that_is_overtaken_leaves_partitions_out_and_is_no_failure() -> None:
    history = [
        coop(1, 10, member("a", ALL_FOUR)),
        coop(2, 20, member("a", "t0 t1", had=ALL_FOUR), member("b")),
        coop(3, 30, member("a", ALL_FOUR, had="t0 t1")),
    ]

    actual, again = replay(history, ACTUAL), replay(history, "range")

    # One rebalance, as metrics tell it. The assignor sees both memberships: range moves two partitions to b.
    assert len(find_rebalances(history)) == 1
    assert [(one.members, one.moved, one.failed) for one in actual.rebalances] == [(1, 0, False)]
    assert again.rebalances == actual.rebalances


def test_what_is_left_out_is_a_failure_in_what_happened_too() -> None:
    history = [
        snapshot(1, 10, member("a", "t0 t1")),
        snapshot(2, 20, member("a", "t0 t1"), member("b", "t2")),
        snapshot(3, 30, member("b", "t0 t1 t2")),
    ]

    actual = replay(history, ACTUAL, topics={"t": 4})

    assert [one.failed for one in actual.rebalances] == [True, True]
    assert actual.row.failed == 3  # with that where the history begins
    assert replay(history, "range", topics={"t": 4}).row.failed == 0


def test_the_first_record_is_where_the_history_begins() -> None:
    empty = snapshot(1, 10)
    joined = snapshot(2, 20, member("a", "t0 t1 t2"), member("b", "t3"))
    left = snapshot(3, 30, member("a", ALL_FOUR))

    def counted(*history: Snapshot) -> list[int]:
        """The rebalances of what happened, of metrics, and of a replay."""
        found = replay(history, ACTUAL), replay(history, "range")
        return [len(found[0].rebalances), len(find_rebalances(history)), len(found[1].rebalances)]

    assert counted(joined) == [0, 0, 0]
    assert counted(joined, left) == [1, 1, 1]
    assert counted(empty, joined, left) == [2, 2, 2]
    assert replay([joined], ACTUAL).row.imbalance == 0
    assert course_of([empty]).steps == ()


def test_an_assignor_that_fails_where_the_history_begins_has_failed() -> None:
    # kafka-python's round robin cannot skip a member that does not subscribe.
    one = replay(
        [snapshot(1, 10, member("a"), both("b"), member("c", topics="u"))],
        "kafka-python:roundrobin",
        topics={"t": 2, "u": 2},
    )

    assert (len(one.rebalances), one.row.failed) == (0, 1)


def lived(seed: int, assignor: type[Assignor]) -> list[ArchivedRecord]:
    return random_life(seed, [assignor]).records


@pytest.mark.parametrize(
    "life",
    [
        *(
            pytest.param(partial(lived, seed, one), id=f"{one.__name__} {seed}")
            for one in (RangeAssignor, StickyAssignor, CooperativeStickyAssignor)
            for seed in range(4)
        ),
        *(pytest.param(partial(random_records, seed), id=f"odd {seed}") for seed in range(6)),
    ],
)
def test_what_happened_are_the_rebalances_of_metrics(life: Callable[[], list[ArchivedRecord]]) -> None:
    snapshots = [*read_snapshots(life())]

    assert [(one.members, one.moved, one.imbalance) for one in replay(snapshots, ACTUAL).rebalances] == [
        (one.members, one.moved, one.imbalance) for one in find_rebalances(snapshots)
    ]


def sizes(history: Sequence[Snapshot], *seen: tuple[float, int]) -> list[int]:
    """How many partitions `t` has in each step, by when it was seen with how many."""
    topics = TopicsSeen.of([("t", round(at * SECOND), count) for at, count in seen])
    return sizes_of("t", course_of(history, topics))


def sizes_of(topic: str, course: Course) -> list[int]:
    return [sum(one[0] == topic for one in step.partitions) for step in course.steps]


def test_a_topic_has_the_partitions_that_were_seen_by_then_or_given_away_since() -> None:
    history = [
        snapshot(1, 10, member("a", ALL_FOUR)),
        snapshot(2, 20, member("a", f"{ALL_FOUR} t4 t5")),
        snapshot(3, 30, member("a", f"{ALL_FOUR} t4")),
    ]

    assert sizes(history) == [4, 6, 6]
    assert sizes(history, (5, 4)) == [4, 6, 6]
    assert sizes(history, (5, 4), (25, 8)) == [4, 6, 8]
    assert sizes(history, (15, 6)) == [4, 6, 6]
    assert sizes(history, (20, 8)) == [4, 8, 8]
    assert sizes(history, (40, 8)) == sizes(history, (5, 4), (40, 8)) == [4, 6, 6]
    assert sizes_of("t", course_of(history, {"t": 8})) == [8, 8, 8]


def test_a_topic_that_was_deleted_or_made_anew_has_no_partitions_of_the_old_one() -> None:
    history = [
        snapshot(1, 10, member("a", f"{ALL_FOUR} t4 t5")),
        snapshot(2, 20, member("a")),
        snapshot(3, 30, member("a", "t0 t1")),
    ]

    assert sizes(history, (5, 6), (15, 0), (25, 2)) == [6, 0, 2]
    gone = TopicsSeen.of([("t", 5 * SECOND, 6), ("t", 15 * SECOND, 0)])
    assert replay(history, ACTUAL, topics=gone).row.failed == 0


def test_a_topic_that_a_rebalance_gave_to_nobody_was_deleted_before_that_was_seen() -> None:
    history = [
        snapshot(1, 10, both("a", "t0 t1 u0 u1 u2 u3 u4 u5"), both("b", "t2 t3 u6 u7 u8 u9 u10 u11")),
        snapshot(2, 20, both("a", "t0 t1"), both("b", "t2 t3")),
        snapshot(3, 9000, both("a", "t0 t1"), both("b", "t2"), both("c", "t3")),
    ]
    seen = TopicsSeen.of([("t", 5, 4), ("u", 5, 12), ("u", 1000 * SECOND, 0)])

    for topics in (seen, None):
        course = course_of(history, topics)
        assert (sizes_of("t", course), sizes_of("u", course)) == ([4, 4, 4], [12, 0, 0])
        actual = replay(history, ACTUAL, topics=topics)
        again = replay(history, "sticky", topics=topics)
        assert (actual.row.failed, again.row.failed) == (0, 0)
        assert best_saving([actual.row, again.row]) is None
    made_anew = TopicsSeen.of([("t", 5, 4), ("u", 5, 12), ("u", 1000 * SECOND, 0), ("u", 2000 * SECOND, 3)])
    assert sizes_of("u", course_of(history, made_anew)) == [12, 0, 3]


def test_a_topic_on_its_way_from_one_to_another_was_not_deleted() -> None:
    history = [
        coop(1, 10, both("a", "t0 u0")),
        coop(2, 20, both("a", "t0", had="t0 u0"), both("b")),
        coop(3, 21, both("a", "t0", had="t0"), both("b", "u0"), both("c")),
    ]

    assert len(find_rebalances(history)) == 1
    assert sizes_of("u", course_of(history)) == [1, 1, 1]


def test_a_topic_that_nobody_subscribes_to_for_a_while_was_not_deleted() -> None:
    history = [
        snapshot(1, 10, both("a", "t0 u0")),
        snapshot(2, 20, member("a", "t0")),
        snapshot(3, 30),
        snapshot(4, 40, both("a", "t0 u0")),
    ]

    assert sizes_of("u", course_of(history, {"t": 1, "u": 4})) == [4] * 4


def test_an_id_that_no_topic_can_have_is_a_partition_as_any_other() -> None:
    history = [snapshot(1, 10, member("a", f"t0 t-5 t{2**31 - 1}")), snapshot(2, 20, member("b"))]

    assert sizes(history[:1]) == [3]
    assert replay(history, "kafka-python:sticky").row.failed == 0


def test_workers_of_connect_are_not_replayed() -> None:
    connect = Snapshot(group="g", generation=1, time_us=1, protocol_type="connect", members=(member("a"),))

    assert course_of([connect]).steps == ()


@pytest.mark.parametrize("strategy", ["broadcast", "stream"])
def test_a_group_that_no_assignor_of_consumers_could_assign_is_not_replayed(strategy: str) -> None:
    a, b = member("a", ALL_FOUR), member("b", ALL_FOUR if strategy == "broadcast" else "")
    history = [
        snapshot(1, 10, a, strategy=strategy),
        snapshot(2, 20, a, b, strategy=strategy),
        snapshot(3, 30, a, strategy=strategy),
    ]
    course = course_of(history)

    assert course.steps == ()
    assert replay_all(course, ((AS_IT_WAS, ("range",)),), 0) == []


def test_an_assignor_that_raises_fails_and_members_keep_what_they_had(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # kafka-python's round robin cannot skip a member that does not subscribe.
    history = [
        snapshot(1, 10, both("a"), both("b")),
        snapshot(2, 20, member("a"), both("b"), member("c", topics="u")),
        snapshot(3, 50, both("a")),
    ]

    with caplog.at_level("INFO"):
        again = replay(history, "kafka-python:roundrobin", topics={"t": 2, "u": 2})

    assert "kafka-python:roundrobin failed in a replay: KeyError(" in caplog.text
    # a had t-0 and u-0, and no longer subscribes to u; b has t-1 and u-1. u-0 has no owner from 20 to 50.
    assert [(one.moved, one.failed) for one in again.rebalances] == [(0, True), (2, False)]
    assert again.row.failed == 1


@pytest.mark.parametrize("name", REPLAYED)
def test_every_assignor_has_a_name_and_gives_all_away(name: str) -> None:
    history = [
        snapshot(1, 10, member("a"), member("b")),
        snapshot(2, 20, member("a"), member("b"), member("c")),
        snapshot(3, 30, member("a"), member("c")),
    ]

    again = replay(history, name, topics={"t": 6})

    assert (again.row.failed, again.row.worst_imbalance) == (0, 0)
    moved = {"range": 3, "roundrobin": 4}.get(name.rpartition(":")[2], 2)
    assert again.rebalances[0].moved == moved


def test_copartitioned_keeps_partitions_of_one_id_together_throughout_a_history() -> None:
    names = ["ab", "abc", "bc", "bcd"]
    history = [snapshot(number, 10 * number, *map(both, each)) for number, each in enumerate(names, 1)]

    for owners in owned(course_of(history, {"t": 6, "u": 6}), "copartitioned"):
        assert len(owners) == 12
        assert all(owner == owners["u", one] for (topic, one), owner in owners.items() if topic == "t")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("stick", "there is no assignor 'stick'; choose one of range, roundrobin"),
        ("kafka-python:stick", "there is no assignor 'kafka-python:stick'; choose"),
        ("no_such_module:Assignor", "No module named 'no_such_module'"),
        ("kafka_assignors:NoAssignor", "choose one of range"),
        (".foo:Bar", "there is no assignor '.foo:Bar'"),
        ("collections:Counter", "has no metadata, assign, on_assignment"),
        ("kafka_assignors._assignors:Assignor", "cannot be made without arguments"),
    ],
)
def test_an_assignor_that_there_is_not_is_said(name: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        leader_of(name)


# Scenarios


def restarted(back: float, *, session: int = 45_000) -> list[Snapshot]:
    """b is gone at 20 and back at a second; the group ends at 200."""

    def b(name: str) -> SnapshotMember:
        return member(name, "t2 t3", session_timeout_ms=session)

    a = member("a", "t0 t1")
    return [
        snapshot(1, 10, a, b("b#1")),
        snapshot(2, 20, member("a", ALL_FOUR)),
        snapshot(3, back, a, b("b#2")),
        snapshot(4, 200, a, b("b#2")),
    ]


def times(history: Sequence[Snapshot], scenario: str) -> list[tuple[float, int]]:
    """When the history and its rebalances began, and with how many members."""
    course = scenario_of(scenario)(course_of(history))
    return [(step.began_us / SECOND, len(step.members)) for step in course.steps]


def memberships(*each: list[SnapshotMember]) -> list[Snapshot]:
    return [snapshot(number, 10 * number, *members) for number, members in enumerate(each, 1)]


A, A_OF_BOTH, B, B2 = member("a"), both("a"), member("b"), member("b#2")
C1, D1, E1 = (member(f"c#{number}", host="/1") for number in (1, 2, 3))
C2, D2 = (member(f"c#{number}", host="/2") for number in (4, 5))
WITH_STATIC_MEMBERS = {
    "back within its session": (restarted(50.0), [(10.0, 2), (199.0, 2)]),
    "back within the default of 45 s": (restarted(50.0, session=-1), [(10.0, 2), (199.0, 2)]),
    "missed": (restarted(80.0), [(10.0, 2), (64.0, 1), (79.0, 2), (199.0, 2)]),
    "a long session": (restarted(80.0, session=61_000), [(10.0, 2), (199.0, 2)]),
    "a short one": (restarted(80.0, session=10_000), [(10.0, 2), (29.0, 1), (79.0, 2), (199.0, 2)]),
    "replaced before it was missed": (memberships([A, B], [A, B, B2], [A, B2]), [(10.0, 2)]),
    "known by its host": (memberships([C1, C2], [C1], [C1, D2]), [(10.0, 2)]),
    "as another": (memberships([C1, D1], [C1], [C1, E1]), [(10.0, 2), (19.0, 1), (29.0, 2)]),
    "another cause": (memberships([A, B], [A], [A_OF_BOTH], [A_OF_BOTH, B2]), [(10.0, 2), (29.0, 2)]),
    "all restarted": (memberships([B], [], [B2]), [(10.0, 1)]),
}


@pytest.mark.parametrize("case", WITH_STATIC_MEMBERS)
def test_static_members_are_missed_when_their_sessions_are_over(case: str) -> None:
    history, expected = WITH_STATIC_MEMBERS[case]
    assert times(history, STATIC) == expected


def test_a_member_that_is_gone_for_good_is_no_saving() -> None:
    a, b, alone = member("a", "t0 t1"), member("b", "t2 t3"), member("a", ALL_FOUR)
    ended = [snapshot(1, 10, a, b), snapshot(2, 20, alone)]
    assert times(ended, "static members") == times(ended, "as it was") == [(10.0, 2), (19.0, 1)]
    # Its session of 45 s is over by now, and the group misses it then.
    later = [*ended, snapshot(3, 80, alone)]
    assert times(later, "static members") == [(10.0, 2), (64.0, 1), (79.0, 1)]
    for history in (ended, later):
        rows = replay_all(course_of(history), ((STATIC, ("range",)),), 0)
        assert [(one.rebalances, one.avoided) for one in rows] == [(len(history) - 1, ())] * 2
        assert best_saving(rows) is None


def test_a_member_that_comes_back_with_what_it_had_was_not_restarted() -> None:
    def back(had: str) -> list[Snapshot]:
        a = member("a", "t0 t1")
        return [
            snapshot(1, 10, a, member("b#1", "t2 t3")),
            snapshot(2, 20, member("a", ALL_FOUR)),
            snapshot(3, 21, a, member("b#2", "t2 t3", had=had)),
        ]

    removed, restarted = back("t2 t3"), back("")
    assert times(removed, "static members") == times(removed, "as it was")
    assert times(restarted, "static members") == [(10.0, 2)]


def test_what_static_membership_avoids_is_told_and_named() -> None:
    assert times(restarted(50.0), AS_IT_WAS) == [(10.0, 2), (19.0, 1), (49.0, 2), (199.0, 2)]
    row = replay(restarted(50.0), "range", scenario=STATIC).row
    assert row.moved == 0
    assert row.avoided == tuple(moment(at * SECOND) for at in (20, 50))
    assert replay(restarted(80.0), "range", scenario=STATIC).row.avoided == ()


def test_a_group_that_is_static_already_is_not_replayed_with_static_members() -> None:
    wanted = tuple((scenario, ("range", "sticky")) for scenario in (AS_IT_WAS, STATIC))
    a, b = member("=a", "t0 t1"), member("=b", "t2 t3")
    history = [snapshot(1, 10, a, b), snapshot(2, 80, member("=a", ALL_FOUR)), snapshot(3, 90, a, b)]
    found = replay_all(course_of(history), wanted, 0)
    assert [(one.assignor, one.scenario) for one in found] == [
        ("actual", "as it was"),
        ("range", "as it was"),
        ("sticky", "as it was"),
    ]


@given(history=histories(), clock=st.lists(st.integers(-100, 100), min_size=6, max_size=6))
@examples(50)
def test_no_time_is_negative_whatever_the_clocks_say(history: list[Snapshot], clock: list[int]) -> None:
    told = [
        replace(one, time_us=one.time_us + shift * SECOND, state_time_us=one.time_us + (shift - 1) * SECOND)
        for one, shift in zip(history, clock, strict=False)
    ]

    found = find_rebalances(told)
    assert all(one.seconds >= 0 and one.unowned_seconds >= 0 for one in found)
    for scenario in (AS_IT_WAS, STATIC):
        steps = scenario_of(scenario)(course_of(told)).steps
        begins = [step.began_us for step in steps]
        assert begins == sorted(begins)
        assert all(step.began_us <= step.ended_us for step in steps)
    actual = replay(told, ACTUAL)
    assert [(one.members, one.moved) for one in actual.rebalances] == [
        (one.members, one.moved) for one in found
    ]


# By load


LATER_HOT = {**HOT, 0: 1.0, 5: 5.0}


TWO_SHARE = [
    snapshot(1, 0, member("a", f"{ALL_FOUR} t4 t5")),
    snapshot(2, 600, member("a", "t0 t1 t2"), member("b", "t3 t4 t5")),
]
"""a has all six partitions until b comes and takes half of them."""


def by_load(
    history: Sequence[Snapshot], *committed: ArchivedRecord, assignors: Sequence[str] = ("load-aware",)
) -> dict[str, WhatIf]:
    """The rows of a history with commits, by assignor."""
    builder = CourseBuilder("g", topics_seen({"t": 6}))
    assert [*builder.commits.without(committed)] == []
    for one in history:
        builder.add(one)
    rows = replay_all(builder.build(), ((AS_IT_WAS, tuple(assignors)),), 0)
    return {row.assignor: row for row in rows}


def test_load_aware_shares_out_what_next_to_nothing_comes_of_by_load_as_well() -> None:
    quiet = {one: rate / 500 for one, rate in HOT.items()}

    assert by_load(TWO_SHARE, *commits(0, 600, quiet))["load-aware"].moved == 1


def test_load_aware_knows_what_was_before_the_rebalance_only() -> None:
    done = {one: 600 * rate for one, rate in HOT.items()}

    found = by_load(TWO_SHARE, *commits(0, 600, HOT), *commits(660, 1200, LATER_HOT, done=done))

    # b got t-0, of which 600 records come now, and a has 5,400 of 6,000.
    assert found["load-aware"].moved == 1
    assert (found["actual"].hottest, found["load-aware"].hottest) == (1.4, 1.8)


def test_load_aware_remembers_what_it_knew_of_a_group_that_stood_still() -> None:
    three = [member("a", "t0 t1"), member("b", "t2 t3"), member("c", "t4 t5")]
    done = {one: 1200 * rate for one, rate in HOT.items()}

    found = by_load(
        [*TWO_SHARE, snapshot(3, 3000, *three)],
        *commits(0, 1200, HOT),
        *commits(3000, 3600, HOT, done=done),
    )

    # b has t-0, and c gets two or three of the others. By their number b would get one, too.
    assert found["load-aware"].moved in {1 + 2, 1 + 3}
    assert found["load-aware"].hottest == pytest.approx((3_000 + 3_000) / (3_000 + 2_000))


def test_partitions_that_nobody_knows_are_shared_out_by_their_number() -> None:
    found = by_load(TWO_SHARE, *commits(660, 1200, HOT), assignors=["cooperative-sticky", "load-aware"])

    assert found["load-aware"].moved == found["cooperative-sticky"].moved == 3
    assert found["load-aware"].hottest == found["cooperative-sticky"].hottest is not None


def test_offsets_that_are_set_back_forgotten_or_unreadable_add_nothing() -> None:
    found = Commits()
    good = [commit(0, 100), commit(60, 400), commit(120, 50), commit(180, 90), commit(200, None)]
    bad = [ArchivedRecord(commit_key("g", "t", 0)[:-1], b"", 0, 1, 0, 0), good[0]._replace(value=b"\0\3")]
    set_back = [commit(at, offset, topic="v") for at, offset in ((100, 0), (40, 7), (150, 9))]
    hostile = [commit(0, -(2**63), topic="u"), commit(60, 2**63 - 1, topic="u")]
    other = ArchivedRecord(b"", None, 0, 7, 0, 0)

    assert [*found.without([*good, other, *bad, *hostile, *set_back])] == [other]
    assert found.rejected == 2
    assert found.between(0, 60 * SECOND)["t", 0] == 300
    assert found.between(60 * SECOND, 300 * SECOND)["t", 0] == 40
    assert found.between(-SECOND, 30 * SECOND)["t", 0] == 150  # evenly between two commits
    assert found.between(-SECOND, 0)["t", 0] == found.between(300 * SECOND, 0)["t", 0] == 0
    assert found.between(0, 60 * SECOND)["u", 0] == 2.0**64
    # The clock was set back after the first.
    assert [found.between(0, at * SECOND)["v", 0] for at in (50, 100, 150)] == [0, 7, 9]


@pytest.mark.parametrize("set_back", [0, 3600])
def test_commits_after_a_clock_was_set_back_are_where_the_course_is(set_back: int) -> None:
    """Partition 0 has a record a second for 12 hours, and partition 1 then; the clock is wrong from 10 on."""
    hour, builder = 3600, CourseBuilder("g", topics_seen({"t": 2}))
    rebalances = [0, 10 * hour, 10 * hour + 60, 12 * hour, 13 * hour]
    for at in range(0, 13 * hour + 1, 60):
        shown = at - set_back * (at > 10 * hour)
        turned, first = rebalances.index(at) % 2 if at in rebalances else 0, min(at, 12 * hour)
        committed = [commit(shown, first), commit(shown, at - first, partition=1)]
        assert [*builder.commits.without(committed)] == []
        if at in rebalances:
            owners = member("a", f"t{turned}"), member("b", f"t{1 - turned}")
            generation = 1 + rebalances.index(at)
            builder.add(group_histories.snapshot(generation, shown, *owners, start_us=0))

    course = builder.build()
    rates = [course.commits.rates(step.began_us) for step in course.steps]
    assert rates[-2:] == [{("t", 0): 1, ("t", 1): 0}, {("t", 0): 0, ("t", 1): 1}]


@pytest.mark.parametrize(
    ("committed", "at", "rate"),
    [
        ([], 60, None),
        ([(0, 5)], 60, None),
        ([(0, 5), (50, 105)], 49, None),
        ([(0, 5), (50, 105)], 50, 2),
        ([(0, 5), (50, 105)], 100, 1),
        ([(0, 5), (300, 605), (900, 1205)], 900, 1),
        ([(0, 5), (300, 605)], 901, None),
    ],
    ids=["none", "one", "one until then", "to the last", "later", "ten minutes", "nothing for ten minutes"],
)
def test_a_rate_is_that_of_the_ten_minutes_before(
    committed: list[tuple[int, int]], at: int, rate: float | None
) -> None:
    found = Commits()
    assert [*found.without([commit(*one) for one in committed])] == []
    assert found.rates(at * SECOND) == ({} if rate is None else {("t", 0): rate})


def test_a_partition_that_stands_still_while_others_do_not_has_the_rate_0() -> None:
    found = Commits()
    ticks = [commit(at, at, partition=1) for at in range(0, 1200, 60)]
    assert [
        *found.without([commit(0, 7), commit(1, 9, partition=2), *ticks, commit(1199, 3, partition=3)])
    ] == []

    assert found.rates(1200 * SECOND) == {("t", 0): 0, ("t", 1): 0.9, ("t", 2): 0}


# In words


row = partial(what_if, group="g", rebalances=10)

ROWS = [
    row("actual"),
    row("sticky", moved=60),
    row("cooperative-sticky", moved=60),
    row("range", moved=0, failed=1),
    row("actual", group="calm", moved=2),
    row("range", group="calm", moved=2),
    row("actual", group="worse"),
    row("sticky", group="worse", scenario="static members", moved=120),
    row("range", group="unknown"),
]


def test_what_is_recommended_is_said() -> None:
    lines = [*what_if_lines(ROWS)]

    assert [line for line in lines if line and not line.startswith((" ", *REPLAYED, "actual"))] == [
        "g: cooperative-sticky would have saved 40 of 100 moves",
        "calm: nothing that was tried would have helped much",
        "unknown",
        "worse: nothing that was tried would have helped much",
        "in all, by what is recommended for each group: 0 fewer rebalances and 40 fewer moves",
    ]
    fewer = [row("actual"), row("sticky", rebalances=7)]
    assert next(iter(what_if_lines(fewer))) == "g: sticky would have saved 3 of 10 rebalances"
    more = [row("actual"), row("sticky", scenario="static members", rebalances=9, moved=120)]
    assert next(iter(what_if_lines(more))) == (
        "g: sticky (static members) would have saved 1 of 10 rebalances, for 20 more moves, if members were"
        " restarted, not lost or late to poll"
    )


def test_rows_as_a_table() -> None:
    lines = [*what_if_lines(ROWS[:3])]

    assert lines == [
        "g: cooperative-sticky would have saved 40 of 100 moves",
        "                    scenario   rebalances  moved  imbalance  worst",
        "actual              as it was          10    100       0.50      2",
        "sticky              as it was          10     60       0.50      2",
        "cooperative-sticky  as it was          10     60       0.50      2",
        "",
        "in all, by what is recommended for each group: 0 fewer rebalances and 40 fewer moves",
    ]
    assert [line[-8:] for line in what_if_lines([row("actual", failed=3)])][1:3] == ["  failed", "       3"]
    told = [*what_if_lines([row("actual", hottest=2.7), row("load-aware", hottest=1.104, moved=1), row("x")])]
    assert told[0] == (
        "g: load-aware would have saved 99 of 100 moves; load-aware would have had its hottest member at"
        " 1.10x, not 2.70x"
    )
    assert [line[-7:] for line in told[1:5]] == ["hottest", "  2.70x", "  1.10x", "      -"]
    little = [row("actual", hottest=1.1), row("load-aware", hottest=1.0), row("x", hottest=0.5, failed=1)]
    assert next(iter(what_if_lines(little))) == "g: nothing that was tried would have helped much"
    assert [*what_if_lines([])] == ["there are no groups of consumers to replay"]
    many = [row("actual", group=f"g{number:02}") for number in range(25)]
    assert [*what_if_lines(many)][-2] == "and 5 more groups"
