"""What is said of groups by what their coordinator describes: rebalances that are on, epochs, and lags."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kafka_assignors._cli.group_parts import lag_cell, lag_lines, lag_words
from kafka_assignors._cluster.groups import (
    ClassicGroup,
    EpochGroup,
    EpochMember,
    Extent,
    Kind,
    ListedGroup,
    Refused,
)
from kafka_assignors._groups.account import MemberAccount
from kafka_assignors._groups.epochs import explain_epochs
from kafka_assignors._groups.explanation import explain
from kafka_assignors._groups.finding import is_meant
from kafka_assignors._groups.joining import Look, OngoingRebalance, find_joining, joining_problem
from kafka_assignors._groups.lag import GroupLag, find_lag, lag_owners
from kafka_assignors._groups.problems import find_lag_problems, find_lag_seconds_problems
from kafka_assignors._groups.snapshots import Partitions
from kafka_assignors._wire.offsets_topic import GroupMetadataValue
from kafka_assignors.groups import NoSuchGroupError, _live
from tests.support.live_groups import described, record_of
from website import examples

TOPICS = {"orders": (0, 1, 2, 3)}


def last_generation(*names: str) -> GroupMetadataValue:
    return record_of({"orders": 4}, *names)


def joining(value: GroupMetadataValue | None, *looks: ClassicGroup) -> OngoingRebalance:
    found = find_joining(
        [Look(10_000 + 1000 * number, look) for number, look in enumerate(looks)], value, 5000
    )
    assert found is not None
    return found


def test_who_is_new_has_joined_and_of_the_others_one_has_not() -> None:
    value = last_generation("a", "b", "c")
    look = described(value, "PreparingRebalance", "d", without="c")
    found = joining(value, look, look, look)
    assert (found.joined, found.unsure, found.gone) == (("d",), ("a", "b"), ("c/127.0.0.1",))
    assert [(one.name, one.member_id, one.client_id, one.host) for one in found.new] == [
        ("d", "d-id", "d", "/127.0.0.1")
    ]
    assert (found.missing, found.seen_seconds, found.last_generation_ms) == (None, 2.0, 5000)
    assert (found.patience_ms, found.until_ms) == (300_000, 310_000)
    assert joining_problem(found).text == (
        "a rebalance has been on for 2 s at least: one or more of a, b have not joined"
    )


def test_of_one_old_member_it_is_known_that_it_has_not_joined() -> None:
    value = last_generation("a")
    found = joining(value, described(value, "PreparingRebalance", "b"))
    assert (found.missing, found.joined) == ("a", ("b",))
    assert joining_problem(found).text == (
        "a rebalance has been on for 0 s at least: a has not joined, unless a new member has yet to come back"
        " with its id"
    )


def test_after_a_round_that_was_broken_off_nothing_is_known_of_who_has_joined() -> None:
    """In it c has joined, and a; then d came, and a is back; c hangs."""
    value = last_generation("a")
    found = joining(value, described(value, "PreparingRebalance", "c", "d", broken_off=True))
    assert (found.joined, found.unsure, found.missing) == ((), ("a", "c", "d"), None)
    assert joining_problem(found).text == (
        "a rebalance has been on for 0 s at least: some of a, c, d have not joined, or a new member has yet"
        " to come back with its id, or the first rebalance of an empty group is delayed"
        " (group.initial.rebalance.delay.ms)"
    )


def test_once_all_have_joined_the_leader_is_waited_for() -> None:
    value = last_generation("a", "b")
    before = described(value, "PreparingRebalance")
    found = joining(value, before, described(value, "CompletingRebalance"))
    leader = next(one.client_id for one in value.members if one.member_id == value.leader)
    assert (found.joined, found.unsure, found.leader) == (("a", "b"), (), leader)
    assert found.seen_seconds == 0.0
    assert joining_problem(found).text == (
        f"all members have joined, and for 0 s at least the assignment of the leader ({leader}) is waited for"
    )


def test_a_first_rebalance_has_no_timeouts_to_tell() -> None:
    value = last_generation("a")
    found = joining(None, described(replace(value, members=()), "PreparingRebalance", "a"))
    assert (found.joined, found.unsure, found.until_ms, found.missing) == ((), ("a",), None, None)
    assert "a new member has yet to come back with its id" in joining_problem(found).text


def test_what_is_described_is_explained_as_its_record_without_what_is_not_told() -> None:
    value = last_generation("a", "b")
    told = described(value, "Stable").value
    full, less = (explain("billing", one, TOPICS).account for one in (value, told))
    assert [one.assignment for one in less.members] == [one.assignment for one in full.members]
    assert (less.loads, less.would_move, less.strategy) == (full.loads, full.would_move, full.strategy)
    assert (less.generation, less.leader) == (-1, None)
    assert {one.session_timeout_ms for one in less.members} == {-1}
    assert explain("billing", told, TOPICS).problems == ()


def test_members_that_are_no_consumers_are_not_read() -> None:
    value = replace(last_generation("a", "b"), protocol_type="connect")
    found = explain("connectors", value, TOPICS)
    assert found.problems == ()
    assert [one.unreadable for one in found.account.members] == [None, None]


@pytest.mark.parametrize(
    ("listed", "why"),
    [
        ((), "^the cluster has no group 'billing'$"),
        (("share",), "^group 'billing' is a share group: its members are not read$"),
        (("streams",), "^group 'billing' is of a protocol that cannot be explained: "),
    ],
)
def test_of_a_group_that_brokers_before_4_call_dead_it_is_told_whether_there_is_one(
    listed: tuple[Kind, ...], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers: dict[str, object] = {
        "describe_classic": {"billing": ClassicGroup("billing", "Dead", last_generation("a"))},
        "describe_consumer": {"billing": Refused("not found", unknown=True)},
        "list_groups": [ListedGroup("billing", kind, "", "") for kind in listed],
    }
    for name, answer in answers.items():
        monkeypatch.setattr(_live, name, lambda *_, answer=answer: answer)
    admin: Any = None
    with pytest.raises(NoSuchGroupError, match=why):
        _live.read_group(admin, "billing")


def member(name: str, epoch: int, has: list[int], target: list[int], **more: Any) -> EpochMember:
    fields = {"instance_id": None, "rack": None, "topics": ("orders",), "expression": None, **more}
    return EpochMember(
        member_id=f"{name}-id",
        client_id=name,
        host="/127.0.0.1",
        epoch=epoch,
        assignment=frozenset(("orders", one) for one in has),
        target=frozenset(("orders", one) for one in target),
        protocol="consumer",
        **fields,
    )


def epochs(state: str, epoch: int, *members: EpochMember, assignment_epoch: int | None = None) -> EpochGroup:
    at = epoch if assignment_epoch is None else assignment_epoch
    return EpochGroup("billing", state, epoch, at, "uniform", members)


def test_a_group_of_epochs_at_rest_has_no_problems() -> None:
    group = epochs("Stable", 5, member("a", 5, [0, 1], [0, 1]), member("b", 5, [2, 3], [2, 3]))
    found = explain_epochs(group, TOPICS)
    assert (found.problems, found.account.would_move) == ((), ())
    assert found.epochs is not None
    assert found.epochs.behind == ()
    assert (found.account.imbalance, found.account.best_imbalance) == (0, 0)


def test_who_has_what_others_are_to_have_is_named() -> None:
    group = epochs("Reconciling", 5, member("a", 4, [0, 1, 2, 3], [0, 1]), member("b", 5, [], [2, 3]))
    live = examples.live_epoch_group()
    found = replace(live, looks=(Look(0, group), Look(3000, group)), committed={}).explain()
    assert found.epochs is not None
    a, b = found.epochs.behind
    assert (a.member, a.lets_go, a.waits_for) == ("a", frozenset({("orders", 2), ("orders", 3)}), ())
    assert (b.member, b.takes, b.waits_for) == ("b", frozenset({("orders", 2), ("orders", 3)}), ("a",))
    assert [(one.kind, one.text) for one in found.problems] == [
        ("behind", "a has partitions that others are to have, for 3 s at least")
    ]
    assert [(one.partition, one.source, one.target) for one in found.account.would_move] == [
        (2, "a-id", "b-id"),
        (3, "a-id", "b-id"),
    ]


def test_a_member_that_has_yet_to_take_an_epoch_is_named() -> None:
    group = epochs("Reconciling", 5, member("a", 5, [0, 1], [0, 1]), member("b", 4, [2, 3], [2, 3]))
    found = explain_epochs(group, TOPICS)
    assert [one.text for one in found.problems] == ["b has yet to take epoch 5, for 0 s at least"]


def test_an_assignment_that_is_yet_to_be_worked_out_is_said() -> None:
    group = epochs("Assigning", 6, member("a", 5, [0, 1, 2, 3], [0, 1, 2, 3]), assignment_epoch=5)
    texts = [one.text for one in explain_epochs(group, TOPICS).problems]
    assert texts[0] == "the group is at epoch 6, and its assignment at 5, for 0 s at least"


@pytest.mark.parametrize("name", ["[ab]*?", "orders"])
def test_a_group_is_chosen_by_its_name_though_that_is_a_pattern(name: str) -> None:
    assert [one for one in (name, "a", "order") if is_meant(one, [name])] == [name]


def test_partitions_that_nobody_has_are_said_of_topics_that_an_expression_matches_too() -> None:
    one = member("a", 5, [0, 1], [0, 1], topics=(), expression="ord.*")
    found = explain_epochs(epochs("Stable", 5, one), TOPICS)
    assert [problem.text for problem in found.problems] == ["nobody has orders-2, orders-3"]
    assert found.account.members[0].topics == ("orders",)


def ending(ends: Mapping[tuple[str, int], int]) -> dict[tuple[str, int], Extent]:
    """Partitions that have all their records."""
    return {one: Extent(0, end) for one, end in ends.items()}


def lag_of(
    owned: Mapping[str, Partitions],
    subscribed: Collection[str],
    topics: Mapping[str, Collection[int]],
    committed: Mapping[tuple[str, int], int],
    extents: Mapping[tuple[str, int], Extent],
) -> GroupLag:
    members = [
        MemberAccount(
            name=name,
            member_id=name,
            client_id=name,
            host="/127.0.0.1",
            instance_id=None,
            rack=None,
            topics=tuple(subscribed),
            assignment=has,
        )
        for name, has in (owned or {"a": frozenset()}).items()
    ]
    return find_lag(lag_owners(members, topics, committed), committed, extents)


def test_what_was_deleted_before_it_was_read_is_no_lag_and_is_said() -> None:
    topics, committed = {"orders": (0, 1, 2)}, {("orders", 0): 10, ("orders", 1): 10}
    extents = {("orders", 0): Extent(100, 100), ("orders", 1): Extent(4, 30), ("orders", 2): Extent(7, 7)}
    lag = lag_of({}, {"orders"}, topics, committed, extents)
    assert [(one.lag, one.lost) for one in lag.partitions] == [(0, 90), (20, 0), (None, 0)]
    assert lag.uncommitted == ()  # all records of orders-2 are deleted
    assert lag_words(lag) == "lag: 20 records in 3 partitions; 90 records deleted before being read"
    assert [(one.severity, one.text) for one in find_lag_problems(lag, members=True)] == [
        ("note", "deleted before the group had read them: 90 offsets of orders-0")
    ]
    assert lag.to_json()["lost"] == 90


def test_lag_in_seconds_is_that_of_the_oldest_record_and_what_is_not_known_is_said() -> None:
    committed = {("orders", 0): 5, ("orders", 1): 10, ("orders", 2): 1, ("orders", 3): 12}
    extents = dict.fromkeys([("orders", partition) for partition in range(5)], Extent(3, 10))
    asked = lag_of(
        {"a": frozenset({("orders", 0)})}, {"orders"}, {"orders": (0, 1, 2, 3, 4)}, committed, extents
    )
    assert asked.seconds is None
    lag = asked.dated({("orders", 0, 5): 61.4, ("orders", 2, 3): "no right to read"})
    # Without a commit, or with one beyond the end, there is no such record.
    assert [one.seconds for one in lag.partitions] == [61.4, 0.0, None, None, None]
    assert (lag.seconds, lag.by_member()["a"].seconds) == (61.4, 61.4)
    assert lag_words(lag).startswith(
        "lag: 12 records in 5 partitions, the oldest written 61 s ago, 1 of which"
    )
    assert [line.split() for line in lag_lines(lag, {})][2:4] == [
        ["partition", "owner", "committed", "end", "lag", "lag", "s"],
        ["orders-2", "nobody", "1", "10", "7", "-"],
    ]
    unknown = ("warning", "for how long records of orders-2 have waited is not known: no right to read")
    for most, expected in (
        (61.4, [unknown]),
        (60, [("error", "it is 61 s behind, more than 60 s"), unknown]),
    ):
        found = find_lag_seconds_problems(lag, most)
        assert [(one.severity, one.text) for one in found] == expected
    assert lag.to_json()["partitions"][0]["seconds"] == lag.counts()["seconds"] == 61.4


def test_lag_is_by_partition_and_member_and_says_where_there_is_no_commit() -> None:
    lag = lag_of(
        {"a": frozenset({("orders", 0), ("orders", 1)}), "b": frozenset({("orders", 2)})},
        {"orders"},
        {"orders": (0, 1, 2, 3), "old": (0,)},
        {("orders", 0): 10, ("orders", 2): 50, ("old", 0): 1, ("gone", 0): 1},
        ending({("orders", 0): 100, ("orders", 1): 100, ("orders", 2): 50, ("orders", 3): 0, ("old", 0): 3}),
    )
    assert [(one.topic, one.partition, one.owner, one.lag) for one in lag.partitions] == [
        ("old", 0, None, 2),
        ("orders", 0, "a", 90),
        ("orders", 1, "a", None),
        ("orders", 2, "b", 0),
        ("orders", 3, None, None),
    ]
    assert lag.total == 92
    assert [one.partition for one in lag.uncommitted] == [1]
    assert {name: own.total for name, own in lag.by_member().items()} == {"a": 90, "b": 0}
    assert [problem.text for problem in find_lag_problems(lag, members=True)] == [
        "the group has no commit of orders-1, where there are records"
    ]
    assert [*find_lag_problems(lag, members=False)] == []


def test_lag_is_not_known_and_a_warning_where_there_is_a_commit_and_no_end() -> None:
    owned = {"a": frozenset({("orders", 0)}), "b": frozenset({("orders", 1)})}
    committed = {("orders", 0): 5, ("orders", 1): 7}
    lag = lag_of(owned, {"orders"}, {"orders": (0, 1)}, committed, ending({("orders", 1): 10}))
    assert {name: lag_cell(own) for name, own in lag.by_member().items()} == {"a": "?", "b": "3"}
    assert lag_cell(lag) == ">=3"
    assert lag_words(lag) == "lag: 3 records in 2 partitions; the end of 1 partition is not known"
    assert [line.split() for line in lag_lines(lag, {})][1:] == [
        ["partition", "owner", "committed", "end", "lag"],
        ["orders-1", "b", "7", "10", "3"],
        ["orders-0", "a", "5", "-", "-"],
    ]
    assert lag.to_json()["unknown"] == 1
    assert [(one.severity, one.text) for one in find_lag_problems(lag, members=True)] == [
        ("warning", "the end of orders-0 is not known: there is no leader, or it does not say")
    ]


def test_a_commit_beyond_the_end_is_no_lag_but_a_problem() -> None:
    lag = lag_of({}, (), {"orders": (0,)}, {("orders", 0): 9}, ending({("orders", 0): 3}))
    assert lag.total == 0
    assert [problem.text for problem in find_lag_problems(lag, members=False)] == [
        "the group has committed offsets beyond the end of orders-0"
    ]
