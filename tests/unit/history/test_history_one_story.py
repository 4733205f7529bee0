"""One archive, of which every command tells the same: rebalances, reasons, moves, least possible, advice.

The commands' own functions are called, with the records of each group as an archive has them; Spark only
hands these over (`tests/spark/test_cli_history_spark.py` runs the commands themselves).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from kafka_assignors import BroadcastAssignor, CooperativeStickyAssignor, RangeAssignor, StickyAssignor
from kafka_assignors._cli.history_text import what_if_lines
from kafka_assignors._common.times import moment
from kafka_assignors._groups.activity import GroupFollower
from kafka_assignors._groups.best import best_of_equals, find_best
from kafka_assignors._groups.moved import OwnerMove
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.saving import ACTUAL, AS_IT_WAS, WhatIf, best_saving
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors._model.arrays import NOBODY
from kafka_assignors._model.group import Group, Member
from kafka_assignors._wire.offsets_topic import GroupMetadata, decode_record
from kafka_assignors.groups._live import LiveGroup, LiveRecord, read_rebalances
from kafka_assignors.history import _arrow, _decoded, _limits as limits, _snapshots
from kafka_assignors.history._arrow import batch_of as arrow_batch_of
from kafka_assignors.history._decoded import read_batches
from kafka_assignors.history._metrics import rebalances_of
from kafka_assignors.history._report.drawing import Drawing
from kafka_assignors.history._report.job import report_group
from kafka_assignors.history._report.sentences import change
from kafka_assignors.history._schemas import TABLES
from kafka_assignors.history._snapshots import SnapshotReader
from kafka_assignors.history._tables.job import moves_of
from kafka_assignors.history._watch import watch_records
from kafka_assignors.history._what_if.job import ASSIGNORS, SCENARIOS, check_wanted, replay_group
from kafka_assignors.planners import plan_exact
from tests.support.archives import random_records as random_pairs
from tests.support.group_histories import (
    RecordedGroup,
    member,
    random_life,
    random_records,
    read_snapshots,
    recorded,
    snapshot,
)
from tests.support.kip848_log import TOPIC_NAMES
from tests.support.local_archives import kip848
from website import examples

TOPICS = TopicsSeen.always({"orders": 14, "payments": 2, "t": 8})


def restless() -> list[ArchivedRecord]:
    """A third member comes and goes by a strategy that moves more than it has to."""
    group = RecordedGroup({"orders": 14, "payments": 2}, RangeAssignor)
    for name in "ab":
        group.simulation.join(name)
    group.settle()
    for number in range(6):
        group.simulation.join(f"c{number}")
        group.settle()
        group.simulation.members[f"c{number}"].leave()
        group.settle()
    return group.records


GOLDEN: dict[str, list[ArchivedRecord]] = {
    "restless": restless(),
    "eager": random_life(3, [RangeAssignor]).records,
    "sticky": random_life(5, [StickyAssignor]).records,
    "cooperative": random_life(1, [CooperativeStickyAssignor], acts=20).records,
    "odd": random_records(3, records=80),
    "kip848": kip848(pause=100),
}


@pytest.fixture(params=GOLDEN)
def records(request: pytest.FixtureRequest) -> list[ArchivedRecord]:
    return GOLDEN[request.param]


def batch_of(records: Sequence[ArchivedRecord]) -> Any:
    """Records as Spark hands them over."""
    types = (pa.binary(), pa.binary(), pa.int32(), pa.int64(), pa.int64(), pa.int32())
    columns = zip(*(record[:6] for record in records), strict=True)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, names=_decoded.COLUMNS)


def decoded(records: Sequence[ArchivedRecord]) -> Iterator[ArchivedRecord]:
    """Records as every command that reads an archive gets them."""
    for _, part in read_batches([batch_of(records)]):
        yield from part


def metrics(records: Sequence[ArchivedRecord]) -> list[Rebalance]:
    return [*rebalances_of(decoded(records), SnapshotReader(TOPIC_NAMES), GroupFollower(TOPICS))]


WANTED = check_wanted(ASSIGNORS, SCENARIOS)


def what_if(records: Sequence[ArchivedRecord]) -> list[WhatIf]:
    """The rows of `history what-if`."""
    return replay_group("g", decoded(records), wanted=WANTED, topics=TOPICS, topic_names=TOPIC_NAMES)


def report(records: Sequence[ArchivedRecord]) -> tuple[Drawing, list[WhatIf]]:
    """What `history report` shows of a group if it lists all rebalances."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "REBALANCES_LISTED", 1_000)
        (told,) = report_group("g", decoded(records), wanted=WANTED, topics=TOPICS, topic_names=TOPIC_NAMES)
    assert told.drawing is not None
    return told.drawing, [*told.what_if]


def shown(rebalances: Iterable[Rebalance]) -> list[Rebalance]:
    """Rebalances as a report lists them."""
    return sorted((replace(one, moves=()) for one in rebalances), key=lambda one: one.ended, reverse=True)


def test_what_happened_is_the_same_in_metrics_watch_and_report(records: list[ArchivedRecord]) -> None:
    measured = metrics(records)
    assert len(measured) > 1
    polls = [*([record] for record in records), []]
    counts = {"orders": 14, "payments": 2, "t": 8}
    watched = watch_records(
        polls, names=lambda: TOPIC_NAMES, partitions=lambda: counts, now_us=lambda: records[-1].time_us
    )
    told = [one for one in watched if not one.quiet]
    # Who watches does not know that a rebalance that did not end is the last.
    assert told == measured[: len(told)]
    assert len(told) >= len(measured) - 1
    drawn, _ = report(records)
    assert drawn.listed == shown(measured)
    assert sum(one.moved for one in drawn.columns) == sum(one.moved for one in measured)


def test_what_happened_is_the_same_in_metrics_and_what_if(records: list[ArchivedRecord]) -> None:
    measured, rows = metrics(records), what_if(records)
    (actual,) = (row for row in rows if row.assignor == ACTUAL)
    assert actual.scenario == AS_IT_WAS
    assert actual.rebalances == len(measured)
    assert actual.moved == sum(one.moved for one in measured)
    assert actual.worst_imbalance == max(one.imbalance for one in measured)
    assert report(records)[1] == rows


def test_what_is_recommended_is_the_same_in_what_if_and_report(records: list[ArchivedRecord]) -> None:
    rows = what_if(records)
    saving = best_saving(rows)
    (line,) = (line for line in what_if_lines(rows) if line.startswith("g: "))
    if saving is None:
        assert line == "g: nothing that was tried would have helped much"
        return
    named = f"{saving.row.assignor} (static members)"
    if saving.row.scenario == AS_IT_WAS:
        named = saving.row.assignor
    assert line.startswith(f"g: {named} would have saved ")
    words = change(saving.row, None)
    assert ("static membership" in words) == (saving.row.scenario != AS_IT_WAS)


def test_the_golden_archive_has_what_to_recommend_and_what_not() -> None:
    found = {group: best_saving(what_if(records)) for group, records in GOLDEN.items()}
    assert {saving is None for saving in found.values()} == {True, False}


@pytest.mark.parametrize("group", ["eager", "sticky", "cooperative"])
def test_explain_tells_the_same_of_the_last_rebalance(group: str) -> None:
    records, measured = GOLDEN[group], metrics(GOLDEN[group])
    live = live_group(records)
    oldest, *explained = read_rebalances(live)
    last = measured[-1]
    assert (oldest.seconds, oldest.changes) == (None, ())
    assert len(explained) >= len(measured)  # with returns of static members
    assert (explained[-1].first_generation, explained[-1].generation) == (
        last.first_generation,
        last.generation,
    )
    assert explained[-1].changes == last.reasons
    assert live.explain().account.imbalance == last.imbalance


def live_group(records: Sequence[ArchivedRecord]) -> LiveGroup:
    """A running group with these records, as `group explain` reads it."""
    noted = []
    for record in records:
        told = decode_record(record.key, record.value)
        assert isinstance(told, GroupMetadata)
        assert told.value is not None
        noted.append(LiveRecord(record, told.value))
    topics = {"orders": dict.fromkeys(range(14), 0), "payments": dict.fromkeys(range(2), 0)}
    return replace(examples.live_group(), records=tuple(noted), topics=topics)


@pytest.mark.parametrize("back", ["a", "c"], ids=["who gives partitions up", "another"])
def test_a_static_member_that_comes_back_within_a_hand_over_is_told_by_every_command(back: str) -> None:
    def record(generation: int, seconds: float, is_back: bool, **has: tuple[str, str]) -> ArchivedRecord:
        members = [
            member(f"={name}#{int(is_back and name == back)}", now, had=claims)
            for name, (now, claims) in has.items()
        ]
        return recorded(snapshot(generation, seconds, *members, strategy="cooperative-sticky", joined=0))

    first = {"a": ("t0 t1", "t0 t1 t2 t3"), "b": ("", ""), "c": ("t4", "t4")}
    records = [
        record(1, 1, False, a=("t0 t1 t2 t3", ""), c=("t4", "")),
        record(2, 10, False, **first),
        record(2, 11, True, **first | {back: (first[back][0], "")}),
        record(3, 13, True, a=("t0 t1", "t0 t1"), b=("t2 t3", ""), c=("t4", "t4")),
    ]
    (found,) = metrics(records)
    assert [one.kind for one in found.reasons] == ["member joined", "static member came back"]
    assert (found.moved, found.seconds, found.unowned_seconds) == (2, 3.0, 0.0)
    polls = [*([record] for record in records), []]
    assert [*watch_records(polls, partitions=lambda: {"t": 8}, now_us=lambda: records[-1].time_us)] == [found]
    assert report(records)[0].listed == shown([found])
    (actual,) = (row for row in what_if(records) if row.assignor == ACTUAL)
    assert (actual.rebalances, actual.moved) == (1, 2)
    explained = read_rebalances(live_group(records))
    assert [(one.first_generation, one.generation, one.changes) for one in explained] == [
        (1, 1, ()),
        (2, 3, found.reasons),
    ]


def test_of_a_static_member_that_is_gone_late_every_command_says_that_nobody_knows_why() -> None:
    # An admin may have removed it, or its session have ended: the records are the same.
    both, alone = (member("=a", "t0 t1"), member("b", "t2")), (member("b", "t0 t1 t2"),)
    records = [*map(recorded, (snapshot(1, 0, *both), snapshot(2, 31, *alone, joined=30)))]
    (found,) = metrics(records)
    text = "a is gone: its session ended, or an admin removed it"
    assert [(one.kind, one.text) for one in found.reasons] == [("static member gone", text)]
    assert found.unowned_seconds == 3 * 1.0  # three partitions from when b had joined to the record
    assert read_rebalances(live_group(records))[-1].changes == found.reasons
    (row,) = report_group("g", decoded(records), wanted=(), topics=TOPICS, topic_names=TOPIC_NAMES)
    assert row.summary.reasons == {"static member gone": 1}


def test_a_group_that_shares_its_partitions_moves_nothing_by_any_command() -> None:
    group = RecordedGroup({"orders": 4}, BroadcastAssignor)
    for name in "ab":
        group.simulation.join(name)
    group.settle()
    group.simulation.join("z")
    group.settle()
    group.simulation.members["z"].leave()
    group.settle()
    measured = metrics(group.records)
    assert [(one.members, one.moved, one.least_moved, one.moves) for one in measured[-2:]] == [
        (3, 0, None, ()),
        (2, 0, None, ()),
    ]
    drawn, replayed = report(group.records)
    assert (drawn.listed, replayed, what_if(group.records)) == (shown(measured), [], [])
    assert moves_table(group.records[-3:]) == []


def moves_table(records: Sequence[ArchivedRecord]) -> list[dict[str, Any]]:
    """The table `moves`."""
    rows = moves_of((("g", record) for record in decoded(records)), TOPIC_NAMES)
    return arrow_batch_of([*rows], TABLES["moves"]).to_pylist()  # type: ignore[no-any-return]


def test_moves_of_the_tables_are_those_of_metrics(records: list[ArchivedRecord]) -> None:
    rows = moves_table(records)
    found = [OwnerMove(row["topic"], row["moved_partition"], row["source"], row["target"]) for row in rows]
    measured = metrics(records)
    assert len(found) > 5
    assert found == [move for one in measured for move in one.moves]
    went = [row for row in rows if None not in (row["source"], row["target"])]
    assert len(went) == sum(one.moved for one in measured)
    assert {row["generation"] for row in rows} == {one.generation for one in measured if one.moves}


def test_a_hand_over_that_passes_through_nobody_is_a_move_in_the_table() -> None:
    life = [
        snapshot(1, 0, member("a", "t0 t1"), strategy="cooperative-sticky"),
        snapshot(2, 10, member("a", "t0", had="t0 t1"), member("b"), strategy="cooperative-sticky"),
        snapshot(3, 11, member("a", "t0", had="t0"), member("b", "t1"), strategy="cooperative-sticky"),
    ]
    (row,) = moves_table([*map(recorded, life)])
    assert (row["source"], row["target"], row["before"], row["generation"]) == ("a-0", "b-0", 1, 3)
    assert (row["group"], row["topic"], row["moved_partition"]) == ("g", "t", 1)
    end = life[-1]
    assert (row["partition"], row["offset"], row["time"]) == (end.partition, 11_000, moment(end.time_us))


@pytest.mark.parametrize("compiled", [True, False])
def test_each_record_is_decoded_once_a_command(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[str] = Counter()
    one_by_one, at_once = decode_record, _decoded._decode

    def decode_one(key: bytes | None, value: bytes | None) -> Any:
        seen["decoded"] += 1
        return one_by_one(key, value)

    def decode_all(*columns: Any, **named: Any) -> Any:
        found = at_once(*columns, **named)
        seen["decoded"] += len(found)
        return found

    monkeypatch.setattr(_snapshots, "decode_record", decode_one)
    monkeypatch.setattr(_decoded, "_decode", decode_all)
    if not compiled:
        monkeypatch.setattr(_arrow, "compiled", lambda: None)
    for records in GOLDEN.values():
        for command in (metrics, what_if, report):
            seen.clear()
            command(records)
            assert seen["decoded"] == len(records), command


@pytest.mark.parametrize("seed", range(8))
def test_records_decoded_at_once_are_the_snapshots_of_those_decoded_one_by_one(seed: int) -> None:
    pairs = random_pairs(Random(seed), 120)
    records = [
        ArchivedRecord(key, value, 0, offset, offset * 1000, 3)
        for offset, (key, value) in enumerate(pairs)
        if key is not None
    ]
    assert list(read_snapshots(decoded(records))) == list(read_snapshots(records))


@pytest.mark.parametrize(("name", "times"), [("restless", 0), ("cooperative", 1)])
def test_what_members_claim_is_read_at_once_and_only_if_it_counts(
    name: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[object] = []
    claims = _decoded._claims

    def noted(*columns: Any) -> Any:
        read.append(columns)
        return claims(*columns)

    monkeypatch.setattr(_decoded, "_claims", noted)
    metrics([record._replace(partition=0) for record in GOLDEN[name][: _decoded.ROWS]])
    assert len(read) == times


@pytest.mark.parametrize("seed", range(8))
def test_owned_partitions_are_those_of_the_members_in_each_snapshot(seed: int) -> None:
    for one in read_snapshots(decoded(random_records(seed))):
        assert one.owned == {partition for member in one.members for partition in member.assignment}


@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_the_best_of_equals_is_the_exact_planner_s(data: st.DataObject) -> None:
    names = [f"m{number}" for number in range(data.draw(st.integers(1, 6)))]
    sizes = data.draw(st.dictionaries(st.sampled_from("abc"), st.integers(1, 7), min_size=1))
    partitions = [(topic, number) for topic, size in sizes.items() for number in range(size)]
    owner = {one: data.draw(st.sampled_from([*names, "gone", None])) for one in partitions}
    claims: dict[str, dict[str, list[int]]] = {name: {} for name in names}
    for (topic, number), name in owner.items():
        if name in claims:
            claims[name].setdefault(topic, []).append(number)
    group = Group.of(
        {topic: range(size) for topic, size in sizes.items()},
        [
            Member(member_id=name, topics=frozenset(sizes), claims=claims[name], generation=0)
            for name in names
        ],
    )
    plan = plan_exact(group)
    kept = sum(
        int(now) == int(was) for now, was in zip(plan.owner, group.owner, strict=True) if was != NOBODY
    )
    owned = sum(name is not None for name in owner.values())
    loads = [sum(map(len, claims[name].values())) for name in names]
    found = best_of_equals(loads, owned, len(partitions))
    assert found.moved == owned - kept
    assert found.imbalance == int(plan.loads.max() - plan.loads.min())


def test_unequal_subscriptions_are_left_to_the_planner() -> None:
    before = snapshot(1, 0, member("a", "t0 t1 u0", topics="tu"), member("b", "", topics="u"))
    after = snapshot(2, 10, member("a", "t0 t1", topics="tu"), member("b", "u0", topics="u"))
    best = find_best(before, after, TopicsSeen.always({}))
    assert (best.partitions, best.moved, best.imbalance) == (3, 1, 1)
