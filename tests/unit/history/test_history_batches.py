"""Batches of an archive: what is added, what is selected of it, and what maintenance makes of it."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_assignors.history import _limits
from kafka_assignors.history._archive import TOPIC_SOURCE, Archive
from kafka_assignors.history._archive_format import ArchiveBusyError, log_of
from kafka_assignors.history._counts import Counts
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._info import info
from kafka_assignors.history._maintenance import maintain, plan_maintenance
from kafka_assignors.history._records import Selection
from kafka_assignors.history._schemas import ARCHIVE
from kafka_assignors.history._store.location import StoreError
from kafka_assignors.history._store.log import ConflictError
from kafka_assignors.history._store.writing import run_task
from tests.support.archives import NOON, batch_of, hourly, key_of
from tests.support.written_archives import append, offsets_in, selected_by

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kafka_assignors.history._store.writing import MakeFiles, Outcome, Task

THIRD_DAY = datetime(2026, 3, 3, tzinfo=UTC)


def counted(offset: int, kind: int, count: int) -> dict[str, Any]:
    return hourly(offset, None, type=kind, count=count, value=None)


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """One of a cluster whose offsets topic has three partitions."""
    made = Archive.create(tmp_path)
    made.belongs_to("c1", 3)
    return made


def counts_of(archive: Archive) -> Mapping[str, Counts]:
    """How many records it has, by source."""
    return info(archive, engine=Engine.local()).sources


def files_of(archive: Archive) -> list[Path]:
    """The Parquet files of its records."""
    folder = archive.where.local
    assert folder is not None
    return sorted(folder / "records" / file.path for file in archive.files())


def days_of(archive: Archive) -> list[tuple[str, str]]:
    """Source and day of each file."""
    return sorted((file.values["source"], file.values["day"]) for file in archive.files())


selected = partial(selected_by, Engine.local())


# What is added


@pytest.mark.core
def test_a_batch_is_what_its_counts_say_and_how_far_it_was_read(archive: Archive) -> None:
    rows = [hourly(0, key_of("g")), hourly(1, key_of("g", 3)), hourly(2, None), counted(9, 1, 40)]
    first = append(archive, rows)
    assert first == Counts(
        kept=Counter({"GroupMetadata": 1, "ConsumerGroupMetadata": 1, "no type": 1}),
        counted=Counter({"OffsetCommit": 40}),
    )
    assert counts_of(archive) == {TOPIC_SOURCE: first}
    append(archive, [hourly(7, key_of("g"), partition=2)])
    append(archive, [hourly(99, key_of("g"))], "dump-1")
    assert archive.frontier() == {0: 10, 2: 8}
    assert (archive.has("dump-1"), archive.has("dump-2")) == (True, False)


def test_an_archive_without_records_has_none(archive: Archive) -> None:
    assert (offsets_in(archive), counts_of(archive), archive.frontier()) == ([], {}, {})
    found = info(archive)
    assert (found.since, found.until, found.groups) == (None, None, {})


@pytest.mark.core
def test_of_two_batches_at_once_one_is_there_and_nothing_of_the_other(
    archive: Archive, tmp_path: Path
) -> None:
    other = Archive(tmp_path)
    append(archive, [hourly(0, key_of("g"))])
    with pytest.raises(ConflictError, match="somebody else has committed"):
        append(other, [hourly(0, key_of("g")), hourly(1, key_of("g"))])
    assert [*tmp_path.glob("records/source=*/*/*.parquet")] == files_of(archive)
    other.refresh()
    assert other.frontier() == {0: 1}
    append(other, [hourly(1, key_of("g"))])
    assert offsets_in(archive) == [(0, 0), (0, 1)]


def clean_up(folder: Path) -> None:
    """What somebody else's `history maintain` does an hour later."""
    for path in folder.rglob("*.parquet"):
        os.utime(path, (0, 0))
    other = Archive(folder)
    maintain(other, plan_maintenance(other, retention=timedelta(hours=1)))


def test_a_batch_whose_files_a_clean_up_deletes_before_its_commit_is_not_there_and_is_written_again(
    archive: Archive, tmp_path: Path
) -> None:
    rows = [hourly(0, key_of("g"))]

    def for_long(task: Task, files: MakeFiles) -> Outcome:
        written = run_task(iter([batch_of(rows)]), task, files)
        clean_up(tmp_path)
        return written

    with pytest.raises(StoreError, match=r"parquet was deleted before it could be committed: a clean-up"):
        archive.append(for_long, TOPIC_SOURCE, {log_of(0): 1})
    assert (Archive(tmp_path).files(), Archive(tmp_path).frontier()) == ([], {})
    append(archive, rows)
    assert (offsets_in(archive), Archive(tmp_path).frontier()) == ([(0, 0)], {0: 1})


def test_each_day_of_a_batch_is_one_file_of_the_archive_s_schema(archive: Archive) -> None:
    units = (batch_of([hourly(offset, key_of("g"))]) for offset in range(60))
    archive.append(partial(run_task, units), TOPIC_SOURCE, {log_of(0): 60})
    files = files_of(archive)
    assert [file.parent.name for file in files] == [f"day=2026-03-0{day}" for day in (1, 2, 3)]
    table = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    assert table.schema.names == ARCHIVE.names
    assert table["offset"].to_pylist() == [*range(60)]


def test_a_day_with_much_in_it_can_be_shared_out(archive: Archive) -> None:
    random = Random(1)
    append(
        archive,
        [hourly(at, key_of("g"), value=random.randbytes(8_000), timestamp=NOON) for at in range(4_200)],
    )
    (path,) = files_of(archive)
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    assert {groups[0].column(0).compression} == {"ZSTD"}
    assert len(groups) >= 3
    assert max(one.total_byte_size for one in groups) < 17 * 2**20


# What is selected


def test_a_group_begins_with_what_compaction_would_have_left_of_it(archive: Archive) -> None:
    stays, left = key_of("modern", 8, "stays"), key_of("modern", 8, "left")
    rows = [
        hourly(0, key_of("modern", 3)),
        hourly(1, stays),
        hourly(2, left),
        hourly(3, left, value=None),
        hourly(4, key_of("modern", 3), value=b"newest"),
        hourly(5, key_of("modern")),  # it was a classic group once
        hourly(6, key_of("quiet", 3)),
        hourly(7, key_of("classic")),
        hourly(8, key_of("over", 3)),
        hourly(10, stays),
        hourly(11, key_of("classic")),
        hourly(12, key_of("over", 3)),
    ]
    append(archive, rows)
    append(archive, rows[:5], "dump-again")
    since = NOON + timedelta(hours=10)
    modern = [
        ("modern", 1, "v", 10),
        ("modern", 4, "newest", 10),
        ("modern", 5, "v", 10),
        ("modern", 10, "v", 10),
    ]
    assert selected(archive, since=since) == [
        ("classic", 7, "v", 10),
        ("classic", 11, "v", 11),
        *modern,
        ("over", 8, "v", 10),
        ("over", 12, "v", 12),
    ]
    until = since + timedelta(hours=2)
    assert selected(archive, since=since.replace(tzinfo=None), until=until, groups=["*er*"]) == modern
    assert selected(archive, until=since, groups=["over"]) == [("over", 8, "v", 8)]


OLD = [counted(0, 0, 7), counted(1, 1, 500), counted(24, 1, 500), hourly(25, b"\2")]


def test_records_are_selected_by_time_and_group(archive: Archive) -> None:
    groups = ["orders-eu", "orders-us", "Orders-eu", "events[1]", "ünïcode", "", "a.b", "axb"]
    rows = [hourly(number, key_of(group)) for number, group in enumerate(groups)]
    rows += [hourly(8, key_of("orders\n")), hourly(20, None), hourly(21, b"\2")]
    append(archive, [*rows, counted(22, 1, 500), hourly(30, key_of("orders-eu", 8))])

    def selected(**what: Any) -> list[int]:
        selection = Selection(**what, every_record=True, cut=True)
        source = archive.split(archive.files_of(selection), ARCHIVE.names)(1)
        return [offset for batch in selection.of(source.batches()) for offset in batch["offset"].to_pylist()]

    assert selected() == [0, 1, 2, 3, 4, 5, 6, 7, 8, 20, 21, 30]
    assert selected(groups=["orders-*"]) == [0, 1, 30]
    assert selected(groups=["*-eu"]) == [0, 2, 30]
    assert selected(groups=["a.b", "ünï????"]) == [4, 6]
    assert selected(groups=["events[[]1]"]) == [3]
    assert selected(groups=["orders"]) == []
    assert selected(groups=["*"]) == [0, 1, 2, 3, 4, 5, 6, 7, 8, 30]
    assert selected(since=NOON + timedelta(hours=6)) == [6, 7, 8, 20, 21, 30]
    assert selected(until=NOON + timedelta(hours=2)) == [0, 1]
    assert selected(since=NOON.replace(tzinfo=None), until=NOON + timedelta(hours=1)) == [0]
    assert selected(since=NOON + timedelta(hours=12), groups=["orders-*"]) == [30]


@pytest.mark.parametrize(
    ("rows", "unread", "found"),
    [
        pytest.param(
            [*OLD, hourly(48, key_of("modern", 3)), hourly(49, key_of("g"))],
            (1, 2),
            [48, 49],
            id="nothing of groups before",
        ),
        pytest.param([*OLD, hourly(48, key_of("g"))], (1, 2), [48], id="nothing of modern groups"),
        pytest.param(
            [
                hourly(0, key_of("modern", 3)),
                hourly(1, key_of("g")),
                counted(24, 1, 500),
                hourly(48, key_of("modern", 8, "m")),
                hourly(49, key_of("g")),
            ],
            (2,),
            [0, 1, 48, 49],
            id="the first day has groups",
        ),
    ],
)
def test_days_are_read_that_are_asked_for_or_may_have_what_groups_begin_with(
    archive: Archive, rows: list[dict[str, Any]], unread: tuple[int, ...], found: list[int]
) -> None:
    append(archive, [*rows, hourly(96, key_of("later"))])
    for file in files_of(archive):
        if file.parent.name in {f"day=2026-03-{day:02}" for day in (*unread, 5)}:
            file.write_bytes(b"what is not read may be anything")
    until = THIRD_DAY + timedelta(days=1)
    assert sorted(one[1] for one in selected(archive, since=THIRD_DAY, until=until)) == found


# What maintenance makes of it


@pytest.fixture
def captured(archive: Archive) -> Archive:
    """One of four batches, with a record and a count in each, and a dump."""
    for number in range(4):
        append(archive, [hourly(2 * number, key_of("g")), counted(2 * number + 1, 1, 10)])
    append(archive, [hourly(100, key_of("h"))], "dump-1")
    return archive


@pytest.mark.core
def test_the_files_of_a_day_become_one_and_the_rows_stay(captured: Archive) -> None:
    rows, counts, before = offsets_in(captured), counts_of(captured), captured.version
    plan = plan_maintenance(captured)
    assert ([len(day) for day in plan.compacted], plan.removed, plan.deleted) == ([4], [], [])
    assert captured.version == before
    maintain(captured, plan)
    assert days_of(captured) == [("dump-1", "2026-03-05"), ("topic", "2026-03-01")]
    assert (offsets_in(captured), counts_of(captured)) == (rows, counts)
    assert (captured.frontier(), captured.has("dump-1")) == ({0: 8}, True)
    assert plan_maintenance(captured).compacted == []


def test_a_day_s_one_file_is_in_the_order_of_the_log(archive: Archive) -> None:
    for first in (0, 3):
        rows = [hourly(at, key_of("g"), partition=part) for part in (0, 1) for at in (first, first + 1)]
        append(archive, rows)
    maintain(archive, plan_maintenance(archive))
    (file,) = files_of(archive)
    table = pq.ParquetFile(file).read()
    assert [*zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)] == [
        (part, offset) for part in (0, 1) for offset in (0, 1, 3, 4)
    ]


def test_files_that_were_replaced_stay_for_as_long_as_is_said(
    captured: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = {str(path) for path in files_of(captured) if "source=topic" in str(path)}
    maintain(captured, plan_maintenance(captured))
    assert plan_maintenance(captured).deleted == []
    with pytest.raises(ValueError, match="the least is 1:00:00"):
        plan_maintenance(captured, retention=timedelta(minutes=59))
    monkeypatch.setattr(_limits, "LEAST_RETENTION", timedelta(0))
    plan = plan_maintenance(captured, retention=timedelta(0))
    assert {*plan.deleted} == old
    maintain(captured, plan)
    assert sorted(tmp_path.glob("records/source=*/*/*.parquet")) == files_of(captured)


def test_days_that_are_not_kept_are_removed_but_for_what_groups_begin_with(archive: Archive) -> None:
    member = key_of("modern", 8, "m")
    rows = [
        hourly(0, key_of("modern", 3)),
        hourly(1, member),
        hourly(2, key_of("classic")),
        hourly(3, key_of("modern", 3), value=b"newest"),
        hourly(4, key_of("over", 3)),
        hourly(5, key_of("over", 3), value=None),
        counted(6, 1, 10),
        hourly(48, member),
        hourly(49, key_of("classic")),
    ]
    append(archive, rows)
    before = selected(archive, since=THIRD_DAY)
    plan = partial(plan_maintenance, archive, today=THIRD_DAY.date())
    assert ([file.values["day"] for file in plan(keep=1).removed], plan(keep=1).keeps) == (
        ["2026-03-01"],
        True,
    )
    maintain(archive, plan(keep=1))
    assert offsets_in(archive) == [(0, 1), (0, 2), (0, 3), (0, 48), (0, 49)]
    assert (selected(archive, since=THIRD_DAY), archive.frontier()) == (before, {0: 50})
    assert (plan(keep=1).removed, plan(keep=1).compacted, plan(keep=2).removed) == ([], [], [])


def test_days_without_records_of_groups_leave_nothing(archive: Archive) -> None:
    append(archive, [counted(0, 1, 3), counted(1, 0, 3), hourly(24, key_of("g"))])
    plan = plan_maintenance(archive, keep=1, today=date(2026, 3, 2))
    assert not plan.keeps
    maintain(archive, plan)
    assert days_of(archive) == [("topic", "2026-03-02")]


def test_of_two_that_maintain_at_once_one_says_so_and_each_record_is_there_once(
    captured: Archive, tmp_path: Path
) -> None:
    other = Archive(tmp_path)
    rows, plan = offsets_in(captured), plan_maintenance(other)
    maintain(captured, plan_maintenance(captured))
    with pytest.raises(ArchiveBusyError, match="somebody else is maintaining"):
        maintain(other, plan)
    assert offsets_in(captured) == rows
    assert len([*tmp_path.glob("records/source=*/*/*.parquet")]) == 4 + 1 + 1


def test_captures_go_on_during_maintenance(captured: Archive, tmp_path: Path) -> None:
    other, plan, rows = Archive(tmp_path), plan_maintenance(captured), offsets_in(captured)
    append(other, [hourly(9, key_of("g"))])
    maintain(captured, plan)
    append(other, [hourly(10, key_of("g"))])
    assert offsets_in(captured) == sorted([*rows, (0, 9), (0, 10)])
    assert Archive(tmp_path).frontier() == {0: 11}
