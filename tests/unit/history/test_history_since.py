"""Groups where a window begins: their state comes from before it, and what is not known is not said."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_assignors._assignors import CooperativeStickyAssignor, RangeAssignor
from kafka_assignors._cli.history_text import metrics_lines, what_if_lines
from kafka_assignors._common.times import moment
from kafka_assignors._groups.rebalances import Rebalance
from kafka_assignors._groups.snapshots import ArchivedRecord, Snapshot
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history import _arrow, _records
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._metrics import metrics
from kafka_assignors.history._records import Selection
from kafka_assignors.history._report.job import report_archive
from kafka_assignors.history._tables.job import make_tables, read_table
from kafka_assignors.history._what_if.job import what_if
from tests.support.group_histories import (
    START_US,
    find_rebalances,
    member,
    random_life,
    read_snapshots,
    recorded,
    snapshot,
)
from tests.support.kip848_log import Log, two_share
from tests.support.local_archives import kip848, rows_of
from tests.support.written_archives import write_archive

DAY = 86_400


def at(seconds: float) -> datetime:
    return moment(START_US + round(seconds * 1e6))


def records(*snapshots: Snapshot) -> list[ArchivedRecord]:
    return [recorded(one) for one in snapshots]


def archive(folder: Path, *lives: list[ArchivedRecord]) -> Archive:
    """A batch for each life, in a partition of its own, the newest first."""
    parts = [rows_of(life[::-1], number) for number, life in enumerate(lives)]
    return Archive(write_archive(folder, parts))


def page(there: Archive, since: datetime | None = None) -> str:
    html = Path(f"{there.where}.html")
    report_archive(there, html, since=since)
    return html.read_text()


ONCE = records(
    snapshot(1, 0, member("a", "t0 t1")),
    snapshot(2, 10, member("a", "t0"), member("b", "t1")),
    snapshot(3, 10 * DAY, member("a", "t0 t1")),
)
"""b comes in the first minute, and goes ten days later."""


@pytest.mark.parametrize("compiled", [True, False])
def test_the_first_rebalance_of_a_window_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, compiled: bool
) -> None:
    if not compiled:
        monkeypatch.setattr(_arrow, "compiled", lambda: None)
    there, since = archive(tmp_path / "archive", ONCE), at(9 * DAY)

    (found,) = metrics(there, since=since)
    assert (found.rebalances, found.moved, found.since) == (1, 1, since)
    assert found.reasons == {"member gone": 1}
    (actual,) = what_if(there, assignors=[], since=since)
    assert (actual.rebalances, actual.moved) == (1, 1)
    assert "g rebalanced once in 1 day, because a consumer left or was lost." in page(there, since)


each_life = pytest.mark.parametrize(
    "life",
    [
        *(
            random_life(seed, [one]).records
            for one in (RangeAssignor, CooperativeStickyAssignor)
            for seed in (1, 3)
        ),
        kip848(),
    ],
    ids=["range 1", "range 3", "cooperative 1", "cooperative 3", "kip848"],
)


@each_life
def test_from_the_end_of_each_rebalance_on_those_after_it_are_found(
    life: list[ArchivedRecord], tmp_path: Path
) -> None:
    there = archive(tmp_path, life)

    def rebalances(since: datetime | None = None) -> list[Rebalance]:
        found: list[Rebalance] = []

        def find(_: str, records: Iterable[ArchivedRecord], __: object) -> list[Any]:
            found.extend(find_rebalances(read_snapshots(records)))
            return []

        Engine.local().map_groups(there, Selection(since=since), find)
        return [replace(one, unowned_seconds=0) for one in found]

    whole = rebalances()
    assert len(whole) > 1
    for number, one in enumerate(whole, 1):
        assert rebalances(one.ended + timedelta(microseconds=1)) == whole[number:]


@pytest.mark.parametrize(
    ("seconds", "rebalances", "moved", "longest", "reasons"),
    [(5, 1, 2, 4.0, {"member joined": 1}), (11, 0, 0, 0.0, {})],
    ids=["before it", "on its way"],
)
def test_of_a_kip848_rebalance_that_was_on_then_only_time_without_an_owner_counts(
    tmp_path: Path, *, seconds: int, rebalances: int, moved: int, longest: float, reasons: dict[str, int]
) -> None:
    log = Log()
    two_share(log, later=2)  # from 10 s to 14 s
    (found,) = metrics(archive(tmp_path, log.records), since=at(seconds))
    assert (found.members, found.seen_members) == (2, 2)
    assert (found.rebalances, found.moved, found.reasons) == (rebalances, moved, reasons)
    assert (found.unowned_seconds, found.longest_seconds) == (4.0, longest)


@pytest.mark.parametrize("compiled", [True, False])
@each_life
def test_tables_of_a_window_have_its_records_and_all_moves_of_its_rebalances(
    life: list[ArchivedRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, compiled: bool
) -> None:
    if not compiled:
        monkeypatch.setattr(_arrow, "compiled", lambda: None)
    there = archive(tmp_path / "archive", life)

    def tables(since: datetime | None = None) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        out = tmp_path / f"tables since {since and since.timestamp()}"
        make_tables(there, out, since=since)
        return tuple(read_table(out, name).read_all().to_pylist() for name in ("records", "moves"))

    records, moves = tables()
    ends = sorted({one.ended for one in find_rebalances(read_snapshots(life))})
    assert len(moves) > len(ends)
    for since in (ends[0] + timedelta(microseconds=1), ends[-2] + timedelta(microseconds=1)):
        later = [[row for row in rows if row["time"] >= since] for rows in (records, moves)]
        assert [*tables(since)] == later


def test_a_group_that_was_deleted_begins_empty_and_rebalances_when_somebody_comes(tmp_path: Path) -> None:
    life = [
        ONCE[0],
        ONCE[0]._replace(key=group_metadata_key("g"), value=None, offset=5_000, time_us=ONCE[0].time_us + 5),
        recorded(snapshot(1, 20, member("a", "t0 t1"))),
    ]
    (found,) = metrics(archive(tmp_path, life), since=at(10))
    assert (found.rebalances, found.reasons) == (1, {"member joined": 1})


def test_a_window_holds_the_newest_older_record_of_each_group_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_records, "UNIT", 2_000)  # a few records at once
    calm = [one._replace(time_us=one.time_us + number) for number, one in enumerate(ONCE[:2] * 50)]
    there = archive(tmp_path, ONCE, [one._replace(offset=number) for number, one in enumerate(calm)])
    batches = there.split(there.files())(1).batches()
    selected = Selection(since=at(9 * DAY)).of(batches)
    found = [(row["partition"], row["offset"]) for part in selected for row in part.to_pylist()]
    assert sorted(found) == [(0, 10 * DAY * 1000), (1, 99)]


def test_what_was_before_the_first_record_is_not_said_to_be_calm(tmp_path: Path) -> None:
    there = archive(tmp_path / "archive", ONCE[2:])
    since = at(9 * DAY)
    one_state = "g has one state on record, of 24 Nov 2023 22:13:20 UTC: what was before is not known."
    for html in (page(there), page(there, since)):
        assert one_state in html
        assert "did not" not in html
    (found,) = metrics(there, since=since)
    begins = "g: its records begin at 2023-11-24 22:13:20 UTC, what was before is not known"
    assert begins in [*metrics_lines([found], since)]
    assert begins not in [*metrics_lines([found], found.since)]
    assert begins not in [*metrics_lines([found])]
    rows = what_if(there, assignors=["range"], since=since)
    assert {one.since for one in rows} == {found.since}
    assert [*what_if_lines(rows, since)].count(begins) == 1
    assert begins not in [*what_if_lines(rows, found.since)]


def test_a_page_says_that_records_begin_inside_the_window(tmp_path: Path) -> None:
    later = recorded(snapshot(4, 10 * DAY + 60, member("a", "t0"), member("c", "t1")))
    there = archive(tmp_path / "archive", [*ONCE[2:], later])
    begins = "Its records begin at 24 Nov 2023 22:13:20 UTC: what was before is not known."
    assert begins in page(there, at(9 * DAY))
    assert begins not in page(there, at(10 * DAY))
    assert begins not in page(there)


def test_minutes_have_no_rate(tmp_path: Path) -> None:
    minutes, days = archive(tmp_path / "archive", ONCE[:2]), archive(tmp_path / "days", ONCE)
    (found,) = metrics(minutes)
    assert (found.rebalances, found.per_day) == (1, None)
    assert [*metrics_lines([found])][1].split()[:3] == ["g", "1", "-"]
    assert "a day" not in page(minutes).partition("</style>")[2].replace("a day, ", "")
    assert "<small>0.2 a day</small>" in page(days)
