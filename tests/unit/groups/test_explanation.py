"""What is said of a group by its record, and why it rebalanced by two of them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from kafka_assignors._assignors import (
    Assignor,
    CooperativeStickyAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors._assignors._messages import make_subscription
from kafka_assignors._groups.classic import classic_snapshot
from kafka_assignors._groups.explanation import Explanation, explain
from kafka_assignors._groups.reasons import find_changes
from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot
from kafka_assignors._wire.offsets_topic import GroupMetadataValue
from kafka_assignors._wire.user_data import encode_sticky
from kafka_assignors.coordinator._simulator.settings import MemberSettings
from kafka_assignors.coordinator._simulator.simulation import Simulation
from tests.support.wire import ODD

QUICK = MemberSettings(session_timeout_ms=9000, heartbeat_interval_ms=300)
TOPICS = {"orders": range(8), "payments": range(4)}


def simulated(assignor: Callable[[], Assignor], members: int = 3, **topics: int) -> Simulation:
    group = Simulation(topics or {"orders": 8, "payments": 4}, [assignor], member=QUICK)
    for number in range(members):
        group.join(f"m{number + 1}")
    group.run_until_stable()
    return group


def kinds(found: Explanation) -> list[str]:
    return [problem.kind for problem in found.problems]


def snapshot(value: GroupMetadataValue) -> Snapshot:
    record = ArchivedRecord(key=b"", value=b"", partition=0, offset=0, time_us=0, leader_epoch=None)
    return classic_snapshot(record, "g", value)


def changed(value: GroupMetadataValue, place: int, **fields: Any) -> GroupMetadataValue:
    members = list(value.members)
    members[place] = replace(members[place], **fields)
    return replace(value, members=tuple(members))


def test_a_group_at_rest_has_no_problems() -> None:
    group = simulated(CooperativeStickyAssignor)
    found = explain("g", group.group.record(), TOPICS)
    assert found.problems == ()
    assert (found.account.generation, found.account.strategy) == (1, "cooperative-sticky")
    assert [account.client_id for account in found.account.members] == ["m1", "m2", "m3"]
    assert [account.leads for account in found.account.members].count(True) == 1
    assert sorted(found.account.loads.values()) == [4, 4, 4]
    assert (found.account.imbalance, found.account.best_imbalance, found.account.would_move) == (0, 0, ())
    assert {account.session_timeout_ms for account in found.account.members} == {9000}
    assert 500 < found.account.record_bytes < found.account.record_limit


def test_what_would_move_is_said_by_the_groups_own_strategy() -> None:
    group = simulated(StickyAssignor, 2, orders=6)
    record = group.group.record()
    found = explain("g", record, {"orders": range(8)})
    assert [(move.partition, move.source) for move in found.account.would_move] == [(6, None), (7, None)]
    assert kinds(found)[0] == "no owner"
    assert found.problems[0].text == "nobody has orders-6, orders-7"


def test_range_is_told_to_be_uneven_and_eager() -> None:
    group = simulated(RangeAssignor, 3, a=4, b=4, c=4)
    found = explain("g", group.group.record(), dict.fromkeys("abc", range(4)))
    assert (found.account.imbalance, found.account.best_imbalance) == (3, 0)
    assert kinds(found) == ["uneven", "eager"]


def test_members_without_partitions_are_named() -> None:
    group = simulated(CooperativeStickyAssignor, 3, orders=2)
    (problem,) = explain("g", group.group.record(), {"orders": range(2)}).problems
    assert (problem.kind, problem.severity) == ("nothing to do", "note")
    assert problem.advice == "there are 2 partitions for 3 members"


@pytest.mark.parametrize("assignor", [StickyAssignor, CooperativeStickyAssignor])
def test_standbys_are_said_to_be_some_and_are_no_problem(assignor: type[StickyAssignor]) -> None:
    group = simulated(partial(assignor, priority=1), 2)
    group.join("passive", assignors=[assignor])
    group.run_until_stable()
    found = explain("g", group.group.record(), TOPICS)
    by_name = {account.name: account for account in found.account.members}
    assert [(name, account.priority, account.stands_by) for name, account in by_name.items()] == [
        ("m1", 1, False),
        ("m2", 1, False),
        ("passive", 0, True),
    ]
    assert by_name["passive"].partitions == "stands by"
    assert (found.account.imbalance, found.account.best_imbalance, found.account.would_move) == (0, 0, ())
    assert found.account.best_loads == (6, 6)
    assert {*kinds(found)} <= {"eager"}


def test_a_standby_that_has_partitions_counts_and_they_would_move() -> None:
    group = simulated(partial(CooperativeStickyAssignor, return_after=600), 1)
    group.join("back", assignors=[partial(CooperativeStickyAssignor, priority=1)])
    group.run_until_stable()
    found = explain("g", group.group.record(), TOPICS)
    back, passive = found.account.members
    assert (back.stands_by, passive.stands_by, passive.partitions) == (
        False,
        True,
        "orders 0 1 2 3 4 5 6 7, payments 0 1 2 3",
    )
    assert (found.account.imbalance, found.account.best_imbalance) == (12, 0)
    assert {move.source for move in found.account.would_move} == {passive.member_id}
    assert len(found.account.would_move) == 12
    (idle,) = (problem for problem in found.problems if problem.kind == "nothing to do")
    assert (idle.severity, idle.text) == ("warning", "back has no partitions")
    assert idle.advice.endswith("its leader's max_active or return_after may let it stand by")


def test_topics_that_are_missing_or_unread_are_named() -> None:
    group = simulated(CooperativeStickyAssignor)
    found = explain(
        "g", group.group.record(), {"orders": range(8), "old": range(2)}, committed=["old", "orders"]
    )
    texts = {problem.kind: problem.text for problem in found.problems}
    assert texts["missing topic"] == "members subscribe to topics that do not exist: payments"
    assert texts["unread topic"] == "the group has offsets of old, to which no member subscribes"


def test_two_owners_are_an_error_unless_it_is_broadcast() -> None:
    record = simulated(StickyAssignor, 2, orders=4).group.record()
    doubled = changed(record, 0, assignment=record.members[1].assignment)
    assert "two owners" in kinds(explain("g", doubled, {"orders": range(4)}))
    shared = replace(doubled, protocol="broadcast")
    assert "two owners" not in kinds(explain("g", shared, {"orders": range(4)}))


def test_claims_of_one_generation_on_one_partition_are_told() -> None:
    record = simulated(StickyAssignor, 2, orders=4).group.record()
    data = encode_sticky({"orders": [1]}, 5)
    said = make_subscription(["orders"], owned={}, generation=5, rack="a", user_data=data).encode()
    both = changed(changed(record, 0, subscription=said), 1, subscription=said)
    found = explain("g", both, {"orders": range(4)})
    (problem,) = [problem for problem in found.problems if problem.kind == "double claim"]
    assert problem.text == "m1 and m2 said that they had orders-1 in one generation"
    assert {account.rack for account in found.account.members} == {"a"}
    assert {account.claimed_generation for account in found.account.members} == {5}


def test_a_member_that_cannot_be_read_is_named() -> None:
    record = changed(simulated(StickyAssignor, 2, orders=4).group.record(), 0, subscription=b"\x00")
    found = explain("g", record, {"orders": range(4)})
    assert found.problems[0].kind == "unreadable member"
    assert record.members[0].client_id in found.problems[0].text


@pytest.mark.parametrize("raw", [raw for raw, _ in ODD.values()], ids=list(ODD))
def test_a_member_with_something_odd_behind_its_topics_has_them_and_is_named(raw: bytes) -> None:
    record = changed(simulated(StickyAssignor, 2, orders=4).group.record(), 0, subscription=raw)
    found = explain("g", record, {"orders": range(4), "t": range(1)})
    (odd,) = [one for one in found.account.members if one.member_id == record.members[0].member_id]
    assert odd.topics == ("t",)
    assert odd.unreadable is not None
    assert found.problems[0].kind == "unreadable member"


def test_timeouts_that_do_not_fit_each_other_are_told() -> None:
    record = changed(simulated(CooperativeStickyAssignor).group.record(), 0, rebalance_timeout=3000)
    assert kinds(explain("g", record, TOPICS)) == ["timeouts"]
    record = changed(simulated(CooperativeStickyAssignor).group.record(), 0, session_timeout=45_000)
    (problem,) = explain("g", record, TOPICS).problems
    assert problem.text == "members have session timeouts from 9000 to 45000 ms"


def test_sessions_of_less_than_three_heartbeats_are_a_warning() -> None:
    record = simulated(CooperativeStickyAssignor).group.record()
    short = replace(record, members=tuple(replace(member, session_timeout=8999) for member in record.members))
    (problem,) = explain("g", short, TOPICS).problems
    assert (problem.kind, problem.severity) == ("timeouts", "warning")
    assert problem.text == (
        "m1, m2, m3 have a session.timeout.ms below 9000: less than three heartbeats, if one comes each"
        " 3000 ms, the clients' default (theirs is unknown)"
    )
    one = explain("g", changed(record, 1, session_timeout=8999), TOPICS).problems
    assert [problem.severity for problem in one] == ["warning", "note"]
    assert one[0].text.startswith(f"{record.members[1].client_id} has a session.timeout.ms below 9000: ")


@pytest.mark.parametrize(
    ("session", "severities"),
    [(8999, ["warning", "note"]), (9000, ["note"]), (10_000, ["note"]), (10_001, [])],
)
def test_sessions_too_short_for_a_static_members_restart_are_noted(
    session: int, severities: list[str]
) -> None:
    record = changed(
        simulated(CooperativeStickyAssignor, 1).group.record(),
        0,
        group_instance_id="one",
        session_timeout=session,
    )
    problems = explain("g", record, TOPICS).problems
    assert [problem.severity for problem in problems] == severities
    assert [problem.text for problem in problems if problem.severity == "note"] == [
        "one has an instance id and a session.timeout.ms of at most 10000"
    ] * severities.count("note")


def test_a_record_near_its_limit_is_told() -> None:
    record = simulated(CooperativeStickyAssignor).group.record()
    size = explain("g", record, TOPICS).account.record_bytes
    near = explain("g", record, TOPICS, record_limit=size)
    assert [(problem.kind, problem.severity) for problem in near.problems] == [("record size", "warning")]
    over = explain("g", record, TOPICS, record_limit=size - 1)
    assert over.problems[0].severity == "error"


def test_an_empty_group_is_explained() -> None:
    record = replace(simulated(StickyAssignor).group.record(), members=(), protocol=None, leader=None)
    found = explain("g", record, TOPICS, committed=["orders"])
    assert (found.account.members, found.account.loads, found.problems) == ((), {}, ())


def test_changes_are_told_in_words() -> None:
    group = simulated(RoundRobinAssignor, 2)
    before = snapshot(group.group.record())
    group.join("m3")
    group.members["m1"].subscribe(["orders"])
    group.run_until_stable()
    texts = {change.text for change in find_changes(before, snapshot(group.group.record()))}
    assert texts == {"m3/127.0.0.1 joined", "m1/127.0.0.1 no longer subscribes to payments"}


def test_the_second_round_of_a_hand_over_is_told() -> None:
    group = simulated(CooperativeStickyAssignor, 2)
    group.join("m3")
    first = None
    while first is None:
        group.run(0.05)
        if group.group.generation == 2 and group.group.state == "Stable":
            first = snapshot(group.group.record())
    group.run_until_stable()
    (change,) = find_changes(first, snapshot(group.group.record()))
    assert change.kind == "hand-over of a cooperative rebalance"
    assert change.text.startswith("4 partitions that others revoked")
