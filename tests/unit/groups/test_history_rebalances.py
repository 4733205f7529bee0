"""Rebalances found in the snapshots of a group: what they were, why, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from kafka_assignors._assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._groups.activity import Activity, GroupFollower
from kafka_assignors._groups.best import Best, find_best
from kafka_assignors._groups.moved import OwnerMove
from kafka_assignors._groups.rebalances import LONGEST_HAND_OVER, Rebalance, SpanFinder
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors.coordinator._simulator.member import SimulatedMember
from kafka_assignors.history._metrics import rebalances_of
from kafka_assignors.history._snapshots import SnapshotReader
from tests.support.group_histories import (
    START_US,
    RecordedGroup,
    activity_of,
    find_rebalances,
    member,
    random_life,
    read_snapshots,
    recorded,
    snapshot,
    topics_seen,
)
from tests.support.scale import examples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kafka_assignors._groups.snapshots import Snapshot

    # What is done, what the coordinator is to call it, and what records say.
    Causes = list[tuple[Callable[[RecordedGroup], object], str | None, set[str]]]

CAME_BACK = "static member came back"
ALL = (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)


def only(*snapshots: Snapshot, topics: TopicsSeen | None = None) -> Rebalance:
    (found,) = find_rebalances(snapshots, topics)
    return found


def kinds(rebalance: Rebalance) -> list[str]:
    return [reason.kind for reason in rebalance.reasons]


def coop(generation: int, seconds: float, *members: object, **fields: object) -> Snapshot:
    return snapshot(generation, seconds, *members, strategy="cooperative-sticky", **fields)  # type: ignore[arg-type]


def test_a_join_is_counted_and_compared_with_the_best() -> None:
    found = only(
        snapshot(1, 0, member("a", "t0 t1 t2 t3")),
        snapshot(2, 10, member("a", "t0"), member("b", "t1 t2 t3"), joined=8),
    )
    assert (found.first_generation, found.generation, found.seconds) == (2, 2, 2.0)
    assert (found.began.timestamp(), found.ended.timestamp()) == (START_US / 1e6 + 8, START_US / 1e6 + 10)
    assert (found.members, found.joined, found.gone, found.returned) == (2, 1, 0, 0)
    assert (found.partitions, found.moved, found.least_moved) == (4, 3, 2)
    assert (found.imbalance, found.best_imbalance) == (2, 0)
    assert [(move.topic, move.partition, move.source, move.target) for move in found.moves] == [
        ("t", 1, "a-0", "b-0"),
        ("t", 2, "a-0", "b-0"),
        ("t", 3, "a-0", "b-0"),
    ]
    assert [(reason.kind, reason.member) for reason in found.reasons] == [("member joined", "b/h")]
    assert found.unowned_seconds == 8.0  # an eager group stands still for two seconds


def test_a_group_without_members_rebalances_when_some_come() -> None:
    found = find_rebalances(
        [
            snapshot(0, 0),
            snapshot(1, 3, member("a", "t0 t1")),
            snapshot(2, 9),
            replace(snapshot(2, 90), offset=5),
            snapshot(3, 99, member("a", "t0 t1")),
        ]
    )
    assert [(one.generation, one.members, one.moved, one.least_moved) for one in found] == [
        (1, 1, 0, 0),
        (2, 0, 0, 0),
        (3, 1, 0, 0),
    ]
    assert [one.strategy for one in found] == ["sticky", None, "sticky"]
    assert [one.unowned_seconds for one in found] == [0.0, 0.0, 0.0]


def test_a_deleted_group_may_begin_with_the_generation_that_it_ended_with() -> None:
    lives = [snapshot(1, 0, member("a", "t0")), snapshot(1, 5), snapshot(1, 9, member("b", "t0"))]
    # A tombstone has the number of the generation that it ended.
    assert [(one.generation, one.members) for one in find_rebalances(lives)] == [(1, 1)]


def test_a_static_member_that_comes_back_within_a_hand_over_does_not_split_it() -> None:
    life = [
        coop(1, 0, member("=a", "t0 t1 t2 t3"), member("=c", "t4")),
        coop(2, 10, member("=a", "t0 t1", had="t0 t1 t2 t3"), member("=c", "t4", had="t4"), member("=b")),
        coop(2, 11, member("=a", "t0 t1", had="t0 t1 t2 t3"), member("=c#2", "t4"), member("=b"), joined=10),
        coop(
            3,
            13,
            member("=a", "t0 t1", had="t0 t1"),
            member("=b", "t2 t3"),
            member("=c#2", "t4"),
            joined=12.5,
        ),
    ]
    found = only(*life)
    assert (found.first_generation, found.generation, found.quiet) == (2, 3, False)
    assert kinds(found) == ["member joined", "static member came back"]
    assert (found.joined, found.returned, found.moved, found.least_moved) == (1, 1, 2, 2)
    assert (found.seconds, found.unowned_seconds) == (3.0, 2 * 0.5)
    (unfinished,) = find_rebalances(life[:3])
    assert (unfinished.generation, unfinished.seconds, unfinished.moved) == (2, 1.0, 0)
    activity = activity_of(life)
    assert (activity.rebalances, activity.moved) == (1, 2)


def test_a_static_member_that_comes_back_after_a_hand_over_should_have_come_is_told_apart() -> None:
    life = [
        coop(1, 0, member("a", "t0 t1"), member("=c")),
        coop(2, 10, member("a", "t0", had="t0 t1"), member("=c"), member("b")),
        coop(2, 80, member("a", "t0", had="t0 t1"), member("=c#2"), member("b"), joined=10),
    ]
    (found,) = find_rebalances(life)
    assert (found.generation, found.seconds, kinds(found)) == (2, 0.0, ["member joined"])
    activity = activity_of(life)
    assert (activity.reasons.kinds, activity.returned) == ({"member joined": 1}, 1)
    assert activity.seen == {"a-0", "b-0", "c"}


def test_a_static_member_that_comes_back_within_its_generation_claims_what_it_had_claimed() -> None:
    # Its new process claims nothing, and what it gave up before is on its way to another all the same.
    life = [
        coop(1, 0, member("=a", "t0 t1 t2 t3")),
        coop(2, 10, member("=a", "t0 t1", had="t0 t1 t2 t3"), member("b")),
        coop(2, 11, member("=a#2", "t0 t1"), member("b"), joined=10),
        coop(2, 12, member("=a#3", "t0 t1"), member("b"), joined=10),
        coop(3, 14, member("=a#3", "t0 t1"), member("b", "t2 t3"), joined=13),
    ]
    (found,) = find_rebalances(read_snapshots(map(recorded, life)))
    assert (found.first_generation, found.generation) == (2, 3)
    assert kinds(found) == ["member joined", "static member came back"]
    assert (found.moved, found.least_moved, found.unowned_seconds) == (2, 2, 2 * 1.0)


def test_a_join_within_a_hand_over_is_told_too() -> None:
    found = only(
        coop(1, 0, member("a", "t0 t1 t2")),
        coop(2, 10, member("a", "t0 t1", had="t0 t1 t2"), member("b")),
        coop(3, 11, member("a", "t0", had="t0 t1"), member("b", "t2"), member("c"), joined=10.5),
        coop(
            4, 12, member("a", "t0", had="t0"), member("b", "t2", had="t2"), member("c", "t1"), joined=11.25
        ),
    )
    assert (found.first_generation, found.generation) == (2, 4)
    assert [(reason.kind, reason.member) for reason in found.reasons] == [
        ("member joined", "b/h"),
        ("member joined", "c/h"),
    ]
    assert (found.joined, found.moved, found.unowned_seconds) == (2, 2, 0.5 + 0.75)


def test_a_hand_over_that_comes_late_is_still_one_if_it_gives_the_partitions_away() -> None:
    stuck = [
        coop(1, 0, member("a", "t0 t1 t2")),
        coop(2, 10, member("a", "t0", had="t0 t1 t2"), member("b", "")),
    ]
    given = coop(3, 1000, member("a", "t0", had="t0"), member("b", "t1 t2"), joined=999)
    (late,) = find_rebalances([*stuck, given])
    assert (late.generation, late.seconds, late.unowned_seconds) == (3, 990.0, 2 * 1.0)
    other = coop(3, 1000, member("a", "t0", had="t0"), member("b", ""), member("c", ""))
    assert [one.generation for one in find_rebalances([*stuck, other])] == [2, 3]
    assert [one.generation for one in find_rebalances(stuck)] == [2]


def test_a_topic_that_comes_back_late_is_another_one() -> None:
    found = find_rebalances(
        [
            coop(1, 0, member("a", "t0 u0", topics="tu")),
            coop(2, 10, member("a", "t0", had="t0 u0", topics="tu")),
            coop(3, 9000, member("a", "t0 u0", had="t0", topics="tu")),
        ]
    )
    assert [(one.generation, kinds(one), one.unowned_seconds) for one in found] == [
        (2, ["topics changed"], 0.0),
        (3, ["topics changed"], 0.0),
    ]
    assert [one.reasons[0].text for one in found] == ["u has 1 fewer partition", "u has 1 more partition"]


def test_a_watcher_does_not_wait_for_a_hand_over_for_ever() -> None:
    finder = SpanFinder()
    for one in (
        coop(1, 0, member("a", "t0 t1")),
        coop(2, 10, member("a", "t0", had="t0 t1"), member("b")),
    ):
        assert list(finder.add(one)) == []
    assert list(finder.give_up(START_US + 69_000_000)) == []
    (found,) = finder.give_up(START_US + 71_000_000)
    assert found.end.generation == 2
    assert list(finder.finish()) == []


def test_no_hand_over_is_endless() -> None:
    life = [coop(1, 0, member("a", "t0 t1"), member("b"))]
    life += [
        coop(2 + number, 1 + number, member("a", "t0", had="t0 t1"), member("b")) for number in range(20)
    ]
    found = find_rebalances(life)
    spans = [(one.first_generation, one.generation) for one in found]
    assert spans == [(2, 2 + LONGEST_HAND_OVER), (19, 19), (20, 20), (21, 21)]


def test_a_member_that_is_gone_too_soon_was_not_lost() -> None:
    before = snapshot(1, 0, member("a", "t0"), member("b", "t1"))
    assert kinds(only(before, snapshot(2, 9.9, member("b", "t0 t1")))) == ["member left"]
    assert kinds(only(before, snapshot(2, 10, member("b", "t0 t1")))) == ["member gone"]


def test_who_went_is_not_told_by_clocks_that_do_not_fit_each_other() -> None:
    def gone(name: str, seconds: float, epoch: int | None) -> Rebalance:
        return only(
            snapshot(5, 1000, member("a", "t0"), member(name, "t1"), leader_epoch=1),
            snapshot(6, seconds, member("a", "t0 t1"), joined=seconds - 0.1, leader_epoch=epoch),
        )

    assert [kinds(gone(name, 1005, 1)) for name in ("b", "=b")] == [["member left"], ["member removed"]]
    for seconds, epoch in ((990, 1), (990, None), (1005, 2)):
        found = [gone(name, seconds, epoch) for name in ("b", "=b")]
        assert [kinds(one) for one in found] == [["member gone"], ["static member gone"]]
    assert [gone(name, 990, 2).unowned_seconds for name in ("b", "=b")] == [0.0, 0.0]


def test_no_time_is_negative_when_a_clock_was_set_back() -> None:
    hand_over = only(
        coop(1, 0, member("a", "t0 t1 t2 t3")),
        coop(2, 100, member("a", "t0 t1", had="t0 t1 t2 t3"), member("b"), joined=99.9),
        coop(3, 40, member("a", "t0 t1", had="t0 t1"), member("b", "t2 t3"), joined=39.9),
    )
    assert (hand_over.moved, hand_over.seconds, hand_over.unowned_seconds) == (2, 0.0, 0.0)
    modern: dict[str, Any] = {"protocol_type": "kip848"}
    found = only(
        snapshot(5, 1000, member("a", "t0"), member("b", "t1"), **modern),
        snapshot(6, 1001, member("a", "t0"), member("b"), settled=False, **modern),
        snapshot(6, 990, member("a", "t0 t1"), member("b"), **modern),
    )
    assert (found.moved, found.seconds, found.unowned_seconds) == (1, 0.0, 0.0)


def test_a_restart_is_told_by_client_and_host() -> None:
    before = snapshot(1, 0, member("a", "t0"), member("b", "t1"))
    again = only(before, snapshot(2, 30, member("a#2", "t0"), member("b", "t1")))
    assert (kinds(again), again.joined, again.gone, again.moved) == (["member restarted"], 1, 1, 1)
    assert again.least_moved == 1
    same = only(before, snapshot(2, 30, member("a#2", "t0", had="t0"), member("b", "t1")))
    assert kinds(same) == ["member lost"]


def test_what_else_may_have_changed_is_told_apart() -> None:
    before = snapshot(1, 0, member("a", "t0 u0", topics="tu"), leader_epoch=1)

    def reasons(**fields: object) -> list[str]:
        return kinds(only(before, replace(snapshot(2, 90, before.members[0], leader_epoch=1), **fields)))  # type: ignore[arg-type]

    assert reasons() == ["unknown"]
    assert reasons(leader_epoch=2) == ["coordinator moved"]
    assert reasons(leader_epoch=None) == ["unknown"]
    assert reasons(strategy="range") == ["strategy changed"]
    assert reasons(members=(member("a", "t0", topics="t"),)) == ["subscription changed"]
    assert reasons(members=(member("a", "t0 t1 u0", topics="tu"),)) == ["topics changed"]
    assert reasons(members=(member("a", "t0", topics="tu"),), leader_epoch=2) == ["topics changed"]


def test_who_comes_to_a_broadcast_or_goes_moves_nothing() -> None:
    def all_have(generation: int, *names: str) -> Snapshot:
        members = [member(name, "t0 t1 t2 t3") for name in names]
        at = 100 * generation
        return snapshot(generation, at, *members, strategy="broadcast", joined=at - 0.5)

    life = [all_have(1, "a", "b"), all_have(2, "a", "b", "z"), all_have(3, "a", "b"), all_have(4, "b")]
    for one in find_rebalances(life):
        assert (one.moves, one.moved, one.least_moved, one.best_imbalance) == ((), 0, None, None)
        assert one.unowned_seconds == 4 * 0.5
    lost = only(all_have(1, "a", "=b"), all_have(2, "a"))
    assert (kinds(lost), lost.unowned_seconds) == (["static member gone"], 4 * 0.5)
    # Who takes over from all who had it has it from the last of them.
    replaced = only(all_have(1, "a", "b"), all_have(2, "c", "d"))
    assert replaced.moves == tuple(OwnerMove("t", number, "b-0", "d-0") for number in range(4))
    assert (replaced.moved, replaced.least_moved) == (4, None)
    to_one = only(all_have(1, "a", "b"), all_have(2, "a"))
    assert (to_one.moves, to_one.least_moved, to_one.best_imbalance) == ((), None, None)


CONNECT = {"protocol_type": "connect", "strategy": "sessioned"}


@pytest.mark.parametrize(
    ("before", "after", "fields", "partitions", "moved"),
    [
        ([member("w1", topics="")], [member("w1", topics=""), member("w2", topics="")], CONNECT, 0, 0),
        ([member("a", "t0 t1")], [member("a", "t0"), member("b", "t1")], {"strategy": "stream"}, 2, 1),
        ([member("a", "t0")], [member("a", "t0"), member("b", "t0")], {}, 1, 0),
        ([member("a", "t0")], [member("a", "t0", topics=""), member("b", "t1")], {}, 2, 0),
    ],
    ids=["Kafka Connect", "Kafka Streams", "two owners", "unreadable"],
)
def test_the_best_is_not_told_where_it_cannot_be(
    before: list[Any], after: list[Any], fields: dict[str, Any], partitions: int, moved: int
) -> None:
    found = only(snapshot(1, 0, *before, **fields), snapshot(2, 9, *after, **fields))
    assert (found.members, found.joined, found.partitions, found.moved) == (2, 1, partitions, moved)
    assert (found.least_moved, found.best_imbalance) == (None, None)


def test_partitions_that_nobody_ever_had_count_if_the_cluster_named_them() -> None:
    life = [
        snapshot(1, 0, member("a", "t0 t1")),
        snapshot(2, 9, member("a", "t0"), member("b", "t1")),
        snapshot(3, 20, member("a", "t0"), member("c", "t1")),
    ]
    seen = TopicsSeen.of([("t", START_US, 2), ("t", START_US + 15_000_000, 5)])
    assert [one.partitions for one in find_rebalances(life, seen)] == [2, 5]
    assert [one.partitions for one in find_rebalances(life, {"t": 3})] == [3, 3]
    assert [one.best_imbalance for one in find_rebalances(life, seen)] == [0, 1]
    assert [one.partitions for one in find_rebalances(life)] == [2, 2]


def test_a_topic_of_which_nobody_has_a_partition_any_more_does_not_count() -> None:
    found = only(
        snapshot(1, 1, member("a", "t0 t1 u0 u1", topics="tu"), member("b", "t2 t3 u2 u3", topics="tu")),
        snapshot(2, 9, member("a", "t0 t1", topics="tu"), member("b", "t2 t3", topics="tu")),
        topics=TopicsSeen.of([("t", START_US, 4), ("u", START_US, 12)]),
    )
    assert (found.partitions, found.moved, found.least_moved) == (4, 0, 0)
    assert (found.imbalance, found.best_imbalance) == (0, 0)


def test_members_that_come_and_go_within_an_hour_are_flapping() -> None:
    def life(minutes: float, *, shared: bool = False) -> Activity:
        others = [member("b#1", "t1"), member("b#2"), member("b#3")] if shared else [member("b", "t1")]
        made, generation = [snapshot(1, 0, member("a#0", "t0"), *others)], 1
        for number in range(1, 4):
            for here in (False, True):
                generation += 1
                who = [member(f"a#{number}", "t0"), *others] if here else others
                made.append(snapshot(generation, (generation - 2) * minutes * 60, *who))
        return activity_of(made)

    assert life(12).flapping == ["a"]
    assert life(12.1).flapping == []
    assert life(12, shared=True).flapping == ["a"]


def test_a_client_id_that_many_share_flaps_only_if_each_of_them_did() -> None:
    """A rolling restart of three members of one client id, and three of them."""
    members = [member(f"a#{number}") for number in range(3)]
    life = [snapshot(1, 0, *members)]
    for number in range(9):
        members[number % 3] = member(f"a#{number + 3}")
        life.append(snapshot(2 + number, 60 * (number + 1), *members))
    whole, one_round = activity_of(life), activity_of(life[:4])
    assert (whole.flapping, one_round.flapping) == (["a"], [])


def test_a_group_is_summed_up() -> None:
    life = [
        snapshot(1, 0, member("a", "t0 t1")),
        snapshot(2, 10, member("a", "t0"), member("b", "t1"), joined=9),
        snapshot(3, 2 * 86400, member("a", "t0 t1")),
    ]
    found = activity_of(life)
    row = found.row("g")
    assert (row["rebalances"], row["per_day"], row["moved"], row["least_moved"]) == (2, 1.0, 2, 2)
    assert (row["members"], row["seen_members"], row["longest_seconds"]) == (1, 2, 1.0)
    assert row["reasons"] == [("member gone", 1), ("member joined", 1)]
    assert (row["since"].timestamp(), row["until"].timestamp()) == (START_US / 1e6, START_US / 1e6 + 172800)
    assert round(row["unowned_seconds"], 6) == 2.0


def test_moves_are_needless_only_where_the_least_is_known_and_exceeded() -> None:
    a, b = member("a", "t0 t1 t2 t3"), member("b", "t4 t5")
    life = [
        snapshot(1, 0, a, b),
        snapshot(2, 100, a, b, member("c")),
        snapshot(3, 200, member("a", "t0 t4"), member("b", "t1 t2"), member("c", "t3 t5")),
        snapshot(4, 300, member("d", "t0 t1 t2 t3 t4 t5", topics="")),
    ]
    found = find_rebalances(life)
    assert [(one.moved, one.least_moved) for one in found] == [(0, 2), (5, 2), (6, None)]
    assert [one.needless for one in found] == [0, 3, 0]
    activity = activity_of(life)
    row = activity.row("g")
    assert (row["moved"], row["least_moved"], row["needless"]) == (11, 4, 3)


# Whole lives


def lived(group: RecordedGroup) -> list[Rebalance]:
    return find_rebalances(read_snapshots(group.records))


def join_again(group: RecordedGroup) -> None:
    member = group.simulation.members["a"]
    assert isinstance(member, SimulatedMember)
    member.request_rejoin()


def move_in_a_rebalance(group: RecordedGroup) -> None:
    join_again(group)
    group.run_until("CompletingRebalance")
    group.move_coordinator()


def restart_in_a_rebalance(group: RecordedGroup) -> None:
    group.simulation.join("c")
    group.run_until("CompletingRebalance")
    group.simulation.restart("a", crash=True)


def hang_in_a_rebalance(group: RecordedGroup) -> None:
    group.simulation.members["b"].pause_polling()
    group.simulation.join("c")


OF_DYNAMIC_MEMBERS: Causes = [
    (lambda group: group.simulation.join("c"), "member joined", {"member joined"}),
    (lambda group: group.simulation.join("c", instance_id="one"), "member joined", {"member joined"}),
    (lambda group: group.simulation.members["a"].crash(), "member lost", {"member gone"}),
    (lambda group: group.simulation.members["a"].leave(), "member left", {"member gone"}),
    (lambda group: group.simulation.grow("orders", 9), "leader joined again", {"topics changed"}),
    (
        lambda group: group.simulation.members["b"].subscribe(["orders"]),
        "member joined again with other metadata",
        {"subscription changed"},
    ),
]
OF_STATIC_MEMBERS: Causes = [
    (join_again, "leader joined again", {"unknown"}),
    (move_in_a_rebalance, "coordinator moved", {"coordinator moved"}),
    (RecordedGroup.move_coordinator, None, set()),
    (lambda group: group.simulation.restart("a", crash=True), None, set()),
    (hang_in_a_rebalance, "member joined", {"member joined", "static member gone"}),
    (restart_in_a_rebalance, "static member came back in a rebalance", {"member joined", CAME_BACK}),
    (
        lambda group: group.simulation.restart("a", crash=True, assignors=[StickyAssignor]),
        "static member came back with another strategy",
        {"strategy changed", CAME_BACK},
    ),
]


@pytest.mark.parametrize(
    ("static", "act", "trigger", "told"),
    [(False, *one) for one in OF_DYNAMIC_MEMBERS] + [(True, *one) for one in OF_STATIC_MEMBERS],
)
def test_every_cause_that_the_simulator_knows_is_told_as_far_as_records_can(
    static: bool, act: Callable[[RecordedGroup], object], trigger: str | None, told: set[str]
) -> None:
    group = RecordedGroup(
        {"orders": 8, "payments": 2}, RangeAssignor, StickyAssignor, metadata_max_age_ms=1000
    )
    for name in "ab":
        group.simulation.join(name, instance_id=name if static else None)
    group.settle()
    group.run(8)
    causes = group.simulation.group.causes
    causes.clear()
    before = len(lived(group))
    act(group)
    group.run(40)
    assert trigger in {cause.trigger for cause in causes} if trigger else not causes
    assert {kind for one in lived(group)[before:] for kind in kinds(one)} == told


def unowned_really(group: RecordedGroup) -> float:
    """Partition-seconds without an owner by the members' own callbacks."""
    return sum(gap.seconds for gap in group.simulation.timeline.gaps("callback"))


def restarted(assignor: type[Assignor], *, static: bool, crash: bool) -> RecordedGroup:
    """A group of three after a rolling restart, each back after eight seconds: later than its session."""
    group = RecordedGroup({"orders": 12}, assignor)
    for name in "abc":
        group.simulation.join(name, instance_id=f"i-{name}" if static else None)
    group.settle()
    for name in "abc":
        old = group.simulation.members[name]
        old.crash() if crash else old.leave()
        group.run(8)
        group.simulation.join(f"{name}2", instance_id=f"i-{name}" if static else None)
        group.settle()
    return group


@pytest.mark.parametrize("crash", [False, True], ids=["closed", "killed"])
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
@pytest.mark.parametrize("assignor", ALL)
def test_no_more_time_without_an_owner_is_counted_than_members_had(
    assignor: type[Assignor], static: bool, crash: bool
) -> None:
    group = restarted(assignor, static=static, crash=crash)
    assert 0 < sum(one.unowned_seconds for one in lived(group)) <= unowned_really(group)


@examples(25)
@given(st.integers(0, 2**32))
def test_whatever_happens_the_numbers_fit_each_other(seed: int) -> None:
    snapshots = list(read_snapshots(random_life(seed, ALL).records))
    found = find_rebalances(snapshots)
    members = len(snapshots[0].members)
    for one in found:
        members += one.joined - one.gone
        assert members == one.members
        assert one.reasons
        assert one.seconds >= 0
        assert one.unowned_seconds >= 0
        assert one.moved == sum(None not in (move.source, move.target) for move in one.moves)
        assert one.least_moved is not None
        assert one.best_imbalance is not None
        if one.strategy in {"sticky", "cooperative-sticky"} and one.imbalance == one.best_imbalance:
            complete = sum(len(member.assignment) for member in _at(snapshots, one).members)
            if complete == one.partitions and one.best_imbalance <= 1:
                assert one.moved >= one.least_moved
    generations = [one.generation for one in found]
    assert generations == sorted(set(generations))
    activity = activity_of(snapshots)
    assert (activity.rebalances, activity.moved) == (len(found), sum(one.moved for one in found))


def _at(snapshots: Sequence[Snapshot], rebalance: Rebalance) -> Snapshot:
    return [one for one in snapshots if one.generation == rebalance.generation][-1]


def test_a_snapshot_that_cannot_be_measured_is_left_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    records = random_life(3, [RangeAssignor]).records

    def generations() -> list[int]:
        return [
            one.generation
            for one in rebalances_of(records, SnapshotReader(), GroupFollower(topics_seen(None)))
        ]

    def fail_once(before: Snapshot, end: Snapshot, topics: TopicsSeen) -> Best:
        if end.generation == bad:
            raise ArithmeticError("no plan")
        return find_best(before, end, topics)

    whole = generations()
    bad = whole[3]
    monkeypatch.setattr("kafka_assignors._groups.rebalances.find_best", fail_once)
    assert generations() == [one for one in whole if one != bad]
    assert "cannot read the record at 0-" in caplog.text
