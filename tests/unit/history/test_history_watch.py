"""Watching a group, with the records given: what is told, when, and how it looks."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kafka_assignors._assignors import CooperativeStickyAssignor
from kafka_assignors._cli.history_watch import now_lines, show_rebalances, watched_lines
from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._watch import belongs_to, watch_records
from tests.support.group_histories import RecordedGroup, find_rebalances, member, read_snapshots, snapshot
from tests.support.kip848_log import TOPIC_IDS, Log
from website import examples


def grown() -> RecordedGroup:
    """Two members, and then a third."""
    group = RecordedGroup({"orders": 6}, CooperativeStickyAssignor)
    group.simulation.join("a", instance_id="one")
    group.simulation.join("b")
    group.settle()
    group.simulation.join("c")
    group.settle()
    return group


def told(*snapshots: Snapshot) -> list[str]:
    (found,) = find_rebalances(snapshots)
    return list(watched_lines(found))


def test_rebalances_are_told_as_they_end() -> None:
    records = grown().records
    before, later = records[:-2], records[-2:]
    told: list[tuple[int, Rebalance]] = []
    given = 0

    def polls() -> Iterator[list[ArchivedRecord]]:
        nonlocal given
        for record in later:
            given += 1
            yield [record]
            yield []

    for one in watch_records(polls(), before=before, now_us=lambda: 0):
        told.append((given, one))  # noqa: PERF401 - it is told when it is given
    ((after, found),) = told
    assert after == 2
    assert found.generation - found.first_generation == 1
    assert [reason.member for reason in found.reasons] == ["c/127.0.0.1"]
    assert [found] == find_rebalances(read_snapshots(records))


def test_the_return_of_a_static_member_is_told() -> None:
    group = grown()
    before = list(group.records)
    group.simulation.restart("a", crash=True)
    group.settle()
    (found,) = watch_records([group.records[len(before) :], []], before=before, now_us=lambda: 0)
    assert found.quiet
    (line,) = watched_lines(found)
    assert line == (
        f"1970-01-01 00:00:0{found.ended.second} UTC  generation {found.generation} continues: one came back"
    )


def test_a_hand_over_that_does_not_come_is_told_after_its_time() -> None:
    records = grown().records
    last_us = records[-2].time_us
    for now_us, count in ((last_us + 20_000_000, 0), (last_us + 20_000_001, 1)):
        found = list(watch_records([[]], before=records[:-1], now_us=lambda now_us=now_us: now_us))  # type: ignore[misc]
        assert len(found) == count


def test_a_kip848_group_is_told_when_nothing_follows_and_by_the_names_of_its_topics() -> None:
    log = Log()
    log.enters("a", 1, "t0 t1")
    before = list(log.records)
    log.at(10)
    log.gone("a")
    log.enters("b", 2, "t0 t1")
    asked = 0

    def names() -> dict[str, str]:
        nonlocal asked
        asked += 1
        return {uuid_text(TOPIC_IDS["t"]): "orders"}

    found = watch_records([log.records[len(before) :], []], before=before, names=names, now_us=lambda: 0)
    (one,) = found
    assert {move.topic for move in one.moves} == {"orders"}
    assert asked == 2


def test_records_of_other_groups_and_commits_are_left_out() -> None:
    assert belongs_to(group_metadata_key("g"), "g")
    assert not belongs_to(group_metadata_key("gg"), "g")
    assert not belongs_to(group_metadata_key("g"), "gg")
    assert not belongs_to(b"\0\1\0\1g\0\1t\0\0\0\0", "g")
    assert not belongs_to(None, "g")
    assert not belongs_to(b"\0", "g")
    log = Log()
    log.has("m", 1, "")
    assert belongs_to(log.records[0].key, "g")


def test_a_rebalance_in_words() -> None:
    assert told(
        snapshot(1, 0, member("a", "t0 t1 t2 t3 u0", topics="tu"), member("=b", "u1", topics="tu")),
        snapshot(
            2, 60, member("a", "t0 u0", topics="tu"), member("c", "t1 t2 t3 u1", topics="tu"), joined=59
        ),
    ) == [
        "2023-11-14 22:14:20 UTC  generation 2 by sticky, in 1.0 s",
        "  why: c/h joined; b is gone: its session ended, or an admin removed it",
        "  4 of 6 partitions moved, 1 of them needless",
        "    a-0 -> c-0: t 1 2 3",
        "    b -> c-0: u 1",
        "  2 members; loads differ by 2 (0 is possible); at least 6.0 partition-seconds without an owner",
    ]


def test_an_end_a_worker_and_many_moves_in_words() -> None:
    before = snapshot(1, 0, member("a", "t0"))
    assert told(before, snapshot(2, 5)) == [
        "2023-11-14 22:13:25 UTC  generation 2, in 0.0 s",
        "  why: a/h left: no timeout was over",
        "    a-0 -> nobody: t 0",
        "  no members are left",
    ]
    workers = [
        snapshot(
            n,
            n,
            *[member(f"w{one}", topics="") for one in range(n)],
            protocol_type="connect",
            strategy="compatible",
        )
        for n in (1, 2)
    ]
    assert told(*workers)[1:] == ["  why: w1/h joined", "  2 members"]
    many = [member(f"m{n}", f"t{n}") for n in range(10)]
    all_others = [member(f"n{n}", f"t{n}") for n in range(10)]
    assert (
        told(snapshot(1, 0, *many), snapshot(2, 90, *all_others))[-2]
        == "    and between 2 more pairs of members"
    )
    wide = " ".join(f"t{n}" for n in range(20))
    lines = told(snapshot(1, 0, member("a", wide)), snapshot(2, 90, member("b", wide)))
    assert "    a-0 -> b-0: t 0 1 2 3 4 5 6 7 8 9 10 11 and 8 more" in lines


def test_lines_of_json_are_whole_rebalances(capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = find_rebalances([snapshot(1, 0, member("a", "t0")), snapshot(2, 9, member("b", "t0"))])
    show_rebalances([found, replace(found, quiet=True)], as_json=True)
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert (first["generation"], first["ended"], first["quiet"]) == (2, "2023-11-14 22:13:29+00:00", False)
    assert first["moves"] == [{"topic": "t", "partition": 0, "source": "a-0", "target": "b-0"}]
    assert second["quiet"]
    show_rebalances([found], as_json=False)
    assert capsys.readouterr().out.startswith("2023-11-14 22:13:29 UTC  generation 2 by sticky")


def test_how_far_members_are_behind_and_what_nobody_has_is_said() -> None:
    (group,) = examples.listed()
    assert group.lag is not None
    *had, last = group.lag.partitions
    lag = replace(group.lag, partitions=(*had, replace(last, owner=None)))
    assert list(now_lines(replace(group, lag=lag))) == [
        "  lag by member: a 13, b -",
        "  lag: 13 records in 3 partitions, 1 of which has records and no commit",
        "  partition  owner   committed  end  lag",
        "  orders-0   a              70   82   12",
        "  orders-1   a              81   82    1",
        "  orders-2   nobody  no commit   82    -",
        "  nobody has orders-2",
    ]
