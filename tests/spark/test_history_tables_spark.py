"""The tables of an archive, made by Spark."""

from __future__ import annotations

import json
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_assignors._groups.moved import find_owner_moves
from kafka_assignors._wire.offsets_topic import (
    GroupMetadata,
    RecordError,
    decode_record,
    group_metadata_key,
)
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._log import LogTopic
from kafka_assignors.history._schemas import ARCHIVE, TABLES
from kafka_assignors.history._snapshots import ArchivedRecord, classic_snapshot
from kafka_assignors.history._store import reading
from kafka_assignors.history._store.reading import in_schema
from kafka_assignors.history._store.sets import NoTablesError, TablesBusyError
from kafka_assignors.history._tables import between, fast, one_by_one, sink
from kafka_assignors.history._tables.decoded import CLASSIC
from kafka_assignors.history._tables.job import (
    MANIFEST,
    TableCounts,
    make_tables,
    read_counts,
    read_table,
)
from kafka_assignors.history._tables.owners import as_bytes
from kafka_assignors.history._tables.tracker import Tracker
from tests.support.archives import batch_of, counted, group, member, random_records, row, time_of
from tests.support.delta_tables import files_of, rows_of, versions_of
from tests.support.offsets_topic import WRITTEN
from tests.support.written_archives import add_batch, write_archive

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture(autouse=True, scope="module")
def _in_new_york(spark: SparkSession) -> Iterator[None]:
    """Times are the same whatever the session's time zone."""
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    yield
    spark.conf.set("spark.sql.session.timeZone", before or "UTC")


def random_rows(seed: int, count: int) -> Rows:
    """Records of two partitions of the offsets topic, in order."""
    rng = Random(seed)
    return [
        row(key, value, partition=rng.randrange(2), offset=offset)
        for offset, (key, value) in enumerate(random_records(rng, count))
    ]


def contents(out: str, name: str) -> Rows:
    """A table's rows, sorted, as other engines find them, which know of no tables.json."""
    table = Path(out, name)
    assert DeltaTable(str(table)).version() == json.loads(Path(out, MANIFEST).read_text())["versions"][name]
    return in_order(rows_of(table, TABLES[name]))


def in_order(rows: Rows) -> Rows:
    return sorted(rows, key=lambda one: (one["partition"], one["offset"], repr(one)))


def everything(out: str) -> dict[str, Rows]:
    return {name: contents(out, name) for name in TABLES}


def nobodys_files(out: str) -> set[Path]:
    """Files that no version of a table has."""
    known = {path for name in TABLES for files in versions_of(Path(out, name)) for path in files}
    return {*Path(out).rglob("part-*.parquet")} - known


def expected_moves(rows: Rows) -> Rows:
    """Out of the snapshots that follow each other."""
    before: dict[str, Any] = {}
    moves = []
    for one in sorted(rows, key=lambda one: (one["partition"], one["offset"])):
        try:
            record = decode_record(one["key"], one["value"])
        except RecordError:
            continue
        if not isinstance(record, GroupMetadata):
            continue
        if record.value is None:
            before.pop(record.group_id, None)
            continue
        place = ArchivedRecord(one["key"], one["value"], one["partition"], one["offset"], 0, None)
        now = classic_snapshot(place, record.group_id, record.value)
        last = before.get(record.group_id, now)
        before[record.group_id] = now
        moves += [
            {
                "group": now.group,
                "partition": now.partition,
                "offset": now.offset,
                "time": one["timestamp"],
                "generation": now.generation,
                "topic": move.topic,
                "moved_partition": move.partition,
                "source": move.source,
                "target": move.target,
                "before": last.generation,
            }
            for move in find_owner_moves(last, now)
        ]
    return sorted(moves, key=lambda move: (move["partition"], move["offset"], repr(move)))


def expected_generations(rows: Rows) -> Rows:
    """The last row of each, with how many there are, and the time of the first."""
    merged: dict[tuple[str, int], dict[str, Any]] = {}
    each = one_by_one.decode(batch_of(rows), {}).tables["generations"].cast(TABLES["generations"]).to_pylist()
    for one in sorted(each, key=lambda one: (one["partition"], one["offset"])):
        before = merged.get((one["group"], one["generation"]))
        if before is not None:
            one["records"] += before["records"]
            one["first_time"] = min(one["first_time"], before["first_time"])
        merged[one["group"], one["generation"]] = one
    return sorted(merged.values(), key=lambda one: (one["partition"], one["offset"], repr(one)))


@pytest.fixture(scope="module")
def whole(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Rows, dict[str, Rows], TableCounts]:
    """An archive of one file, its tables by the plain decoder in one task, and their counts."""
    rows = [*random_rows(1, 300), counted(1, 10_000)]
    folder = tmp_path_factory.mktemp("whole")
    archive = Archive(write_archive(folder / "archive", [rows])).rows(spark).coalesce(1)
    out = str(folder / "tables")
    counts = make_tables(spark, archive, out, decoder="plain")
    assert read_counts(out) == counts
    return rows, everything(out), counts


class TestOneTask:
    @pytest.mark.core
    def test_what_was_read_is_decoded_or_rejected(
        self, whole: tuple[Rows, dict[str, Rows], TableCounts]
    ) -> None:
        rows, tables, counts = whole
        assert counts.read == counts.decoded + counts.rejected == len(rows) - 1
        assert counts.rejected > 20
        assert counts.rows == {name: len(found) for name, found in tables.items()}

    @pytest.mark.core
    def test_moves_are_what_snapshots_differ_in(
        self, whole: tuple[Rows, dict[str, Rows], TableCounts]
    ) -> None:
        rows, tables, _ = whole
        assert len(tables["moves"]) > 500
        assert tables["moves"] == expected_moves(rows)

    @pytest.mark.core
    def test_generations_are_the_records_that_tell_them_put_together(
        self, whole: tuple[Rows, dict[str, Rows], TableCounts]
    ) -> None:
        rows, tables, _ = whole
        assert tables["generations"] == expected_generations(rows)
        assert {one["records"] for one in tables["generations"]} > {1, 2}

    def test_rejected_records_are_kept_as_they_were(
        self, whole: tuple[Rows, dict[str, Rows], TableCounts]
    ) -> None:
        rows, tables, _ = whole
        at = {(one["partition"], one["offset"]): (one["key"], one["value"]) for one in rows[:-1]}
        for one in tables["rejected"]:
            assert (one["key"], one["value"]) == at[one["partition"], one["offset"]]


class TestSplits:
    @pytest.mark.parametrize(
        ("how", "decoder", "tasks"),
        [
            ("many files", "plain", 7),
            ("shuffled files", "auto", 4),  # most have two
            ("shuffled rows", "auto", 5),
            ("interleaved", "plain", 3),
        ],
    )
    def test_however_records_come_to_tasks_the_tables_are_the_same(
        self,
        spark: SparkSession,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        whole: tuple[Rows, dict[str, Rows], TableCounts],
        *,
        how: str,
        decoder: str,
        tasks: int,
    ) -> None:
        rows, tables, counts = whole
        parts = [rows[start : start + 43] for start in range(0, len(rows), 43)]
        if how == "shuffled files":
            Random(2).shuffle(parts)
            monkeypatch.setattr(reading, "_OPENING", 900_000)
        elif how == "shuffled rows":
            mixed = [*rows]
            Random(3).shuffle(mixed)
            parts = [mixed[:150], mixed[150:]]
        elif how == "interleaved":
            parts = [rows[number::3] for number in range(3)]
        archive = Archive(write_archive(tmp_path / "archive", parts))
        out = str(tmp_path / "tables")
        if how == "shuffled rows":
            shuffled = archive.rows(spark).repartition(tasks)
            assert make_tables(spark, shuffled, out, decoder=decoder) == counts
        else:
            assert archive.source(spark).rows.rdd.getNumPartitions() == tasks
            assert make_tables(spark, archive, out, decoder=decoder) == counts
        found = everything(out)
        for name, expected in tables.items():
            assert found[name] == expected, name

    def test_records_that_were_archived_twice_do_not_move_twice(
        self, spark: SparkSession, tmp_path: Path, whole: tuple[Rows, dict[str, Rows], TableCounts]
    ) -> None:
        rows, tables, _ = whole
        out = str(tmp_path / "tables")
        make_tables(spark, write_archive(tmp_path / "archive", [rows, rows[50:120]]), out)
        assert contents(out, "moves") == tables["moves"]

    def test_a_long_history_of_one_group_is_shared_out(
        self, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(reading, "_LARGEST", 2**20)  # a task for each file, as if they were large
        key = group_metadata_key("g")
        rows = [
            row(
                key,
                group(number, member("a", {"t": [number % 2]}), member("b", {"t": [1 - number % 2]})),
                offset=number,
            )
            for number in range(1, 2001)
        ]
        parts = [rows[start : start + 250] for start in range(0, 2000, 250)]
        archive = Archive(write_archive(tmp_path / "archive", parts))
        assert archive.source(spark).rows.rdd.getNumPartitions() == 8
        out = str(tmp_path / "tables")
        counts = make_tables(spark, archive, out)
        assert counts.rows["generations"] == 2000
        assert counts.rows["moves"] == 2 * 1999
        assert len(files_of(Path(out, "assignments"))) == 8
        moves = contents(out, "moves")
        assert {one["before"] + 1 - one["generation"] for one in moves} == {0}


def test_a_generation_has_the_row_of_its_last_record(spark: SparkSession, tmp_path: Path) -> None:
    key = group_metadata_key("g")
    rows = [
        row(key, group(4, member("a")), offset=10),
        row(key, group(5, member("a")), offset=11),
        row(key, group(5, member("a"), member("b")), offset=12),
        row(key, group(5, member("b")), offset=13),
        row(group_metadata_key("h"), group(5, member("c")), offset=14),
    ]
    out = str(tmp_path / "tables")
    make_tables(spark, write_archive(tmp_path / "archive", [rows[:3], rows[3:]]), out)
    found = [
        (
            one["group"],
            one["generation"],
            one["offset"],
            one["leader"],
            one["members"],
            one["records"],
            one["first_time"],
        )
        for one in contents(out, "generations")
    ]
    assert found == [
        ("g", 4, 10, "a", 1, 1, time_of(10)),
        ("g", 5, 13, "b", 1, 3, time_of(11)),
        ("h", 5, 14, "c", 1, 1, time_of(14)),
    ]


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param([[1, 2], [3, 4]], [(1, 1), (2, 1), (3, 1), (4, 1)], id="each once"),
        pytest.param([[1, 1], [2]], [(1, 2), (2, 1)], id="twice in a task"),
        pytest.param([[1, 2], [2, 3]], [(1, 1), (2, 2), (3, 1)], id="in two tasks"),
        pytest.param([[3, 4], [None, 1], [2, 3]], [(1, 1), (2, 1), (3, 2), (4, 1)], id="begun anew"),
        pytest.param([[3], [None], [2, None, 3]], [(2, 1), (3, 2)], id="begun anew twice"),
        pytest.param([[None], [None, 1], [2]], [(1, 1), (2, 1)], id="gone at first"),
    ],
)
def test_each_generation_has_one_row_whichever_tasks_saw_it(
    spark: SparkSession, tmp_path: Path, told: list[list[int | None]], expected: list[tuple[int, int]]
) -> None:
    key, offset = group_metadata_key("g"), 0
    parts: list[Rows] = [[] for _ in told]
    for part, generations in zip(parts, told, strict=True):
        for generation in generations:
            value = None if generation is None else group(generation, member("a"))
            part += [
                row(key, value, offset=offset),
                row(group_metadata_key("h"), group(offset + 1), offset=offset + 1),
            ]
            offset += 2
    out = str(tmp_path / "tables")
    archive = Archive(write_archive(tmp_path / "archive", parts))
    assert archive.source(spark).rows.rdd.getNumPartitions() == len(parts)
    make_tables(spark, archive, out)
    rows = contents(out, "generations")
    found = [(one["generation"], one["records"]) for one in rows if one["group"] == "g"]
    assert sorted(found) == expected
    assert rows == expected_generations([one for part in parts for one in part])


def test_names_of_topics_come_from_records_and_from_what_the_archive_knows(
    spark: SparkSession, tmp_path: Path
) -> None:
    pairs = {key[:4]: (bytes.fromhex(key), bytes.fromhex(value)) for key, value, _ in WRITTEN}
    targets, told = row(*pairs["0007"], offset=1), row(*pairs["0004"], offset=2)
    out = str(tmp_path / "tables")
    first = write_archive(tmp_path / "first", [[targets], [told]])
    make_tables(spark, first, out)
    assert [one["topic"] for one in contents(out, "assignments")] == ["t"]
    second = write_archive(tmp_path / "second", [[targets]])
    make_tables(spark, second, out)
    assert [one["topic"] for one in contents(out, "assignments")] == [None]
    Archive(second).add_topics([LogTopic("named", TOPIC_ID, 4)])
    make_tables(spark, second, out)
    assert [one["topic"] for one in contents(out, "assignments")] == ["named"]


def test_an_archive_without_records_has_empty_tables(spark: SparkSession, tmp_path: Path) -> None:
    out = str(tmp_path / "tables")
    counts = make_tables(spark, write_archive(tmp_path / "archive", [[counted(1, 7)]]), out)
    assert counts == TableCounts(read=0, decoded=0, rejected=0, rows=dict.fromkeys(TABLES, 0))
    assert everything(out) == {name: [] for name in TABLES}
    assert read_table(spark, out, "members").count() == 0
    assert make_tables(spark, Archive.create(tmp_path / "new"), out) == counts


def test_tables_are_read_as_other_engines_read_them(
    spark: SparkSession, tmp_path: Path, whole: tuple[Rows, dict[str, Rows], TableCounts]
) -> None:
    rows, tables, _ = whole
    out = str(tmp_path / "tables")
    make_tables(spark, write_archive(tmp_path / "archive", [rows]), out)
    for name, schema in TABLES.items():
        read = read_table(spark, out, name).toArrow()
        found = pa.Table.from_batches([in_schema(one, schema) for one in read.to_batches()], schema)
        assert in_order(found.to_pylist()) == contents(out, name) == tables[name], name


@pytest.mark.core
def test_tables_are_replaced_whole_or_not_at_all(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = group_metadata_key("g")
    out = str(tmp_path / "tables")
    make_tables(spark, write_archive(tmp_path / "old", [[row(key, group(1, member("a")))]]), out)
    before, there = everything(out), {*Path(out).rglob("*")}
    new = write_archive(tmp_path / "new", [[row(key, group(2, member("b")))]])

    def fail(*_: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr("kafka_assignors.history._tables.job._put_generations_together", fail)
        with pytest.raises(OSError, match="no space left"):
            make_tables(spark, new, out)
    assert everything(out) == before
    assert {*Path(out).rglob("*")} == there
    make_tables(spark, new, out)
    assert [one["generation"] for one in contents(out, "records")] == [2]
    assert nobodys_files(out) == set()


def test_who_reads_the_old_tables_reads_on_while_new_ones_are_made(
    spark: SparkSession, tmp_path: Path
) -> None:
    key = group_metadata_key("g")
    out = str(tmp_path / "tables")
    old = write_archive(tmp_path / "old", [[row(key, group(1, member("a")))], [row(key, None, offset=1)]])
    new = write_archive(tmp_path / "new", [[row(key, group(2, member("b")))]])
    make_tables(spark, old, out)
    records = read_table(spark, out, "records")
    reading_on = records.select("offset").toLocalIterator()
    found = [next(reading_on)["offset"]]
    for _ in range(2):
        make_tables(spark, new, out)
    assert sorted([*found, *(one["offset"] for one in reading_on)]) == [0, 1]
    assert records.count() == 2
    assert read_table(spark, out, "records").count() == 1


def test_a_task_that_fails_leaves_nothing(spark: SparkSession, tmp_path: Path) -> None:
    archive = Archive(write_archive(tmp_path / "archive", [[row(None, b"x")]])).rows(spark)
    broken = archive.selectExpr(
        "type",
        "count",
        "key",
        "value",
        "CAST(NULL AS INT) AS partition",
        "offset",
        "timestamp",
        "leader_epoch",
    )
    out = tmp_path / "tables"
    with pytest.raises(Exception, match=r"(?i)null"):
        make_tables(spark, broken, str(out))
    assert [path for path in out.rglob("*") if path.is_file()] == []


def test_what_is_not_there_is_told(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoTablesError, match=r"it has no tables\.json"):
        read_counts(str(tmp_path))
    with pytest.raises(ValueError, match="there is no table 'moved', only records, generations"):
        read_table(spark, str(tmp_path), "moved")
    with pytest.raises(ValueError, match="there is no decoder 'numba', only 'auto', 'fast' and 'plain'"):
        make_tables(spark, str(tmp_path), str(tmp_path), decoder="numba")


@pytest.mark.core
def test_without_a_compiler_the_plain_decoder_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kafka_assignors._wire.codec._compiled", None)
    assert not fast.is_compiled()
    assert sink.choose("auto") == "plain"
    with pytest.raises(ValueError, match="the fast decoder was not compiled"):
        sink.choose("fast")


def test_steps_are_told_before_they_are_done(spark: SparkSession, tmp_path: Path) -> None:
    from contextlib import contextmanager  # noqa: PLC0415

    told: list[str] = []

    @contextmanager
    def watch(what: str) -> Iterator[None]:
        told.append(what)
        yield

    archive = write_archive(tmp_path / "archive", [[row(group_metadata_key("g"), group(1))]])
    make_tables(spark, archive, str(tmp_path / "tables"), watch=watch)
    assert told == [
        "looking up the names of topics",
        "decoding records",
        "joining what tasks saw apart",
        "putting generations together",
        "putting moves in order",
    ]


def test_what_else_is_in_the_folder_stays(spark: SparkSession, tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "archive", [[row(group_metadata_key("g"), group(1, member("a")))]])
    out = tmp_path / "tables"
    letter = out / "run-2026-report" / "letter.txt"
    sheet = out / "_work-2025" / "sheet.txt"
    long_ago, just_now = (
        out / f"_work-{datetime.now(UTC) - timedelta(hours=hours):%Y%m%dT%H%M%S}-{6:032x}" / "runs" / "part"
        for hours in (25, 1)
    )
    for path in (letter, sheet, long_ago, just_now):
        path.parent.mkdir(parents=True)
        path.write_text("dear")
    for _ in range(2):
        make_tables(spark, archive, out)
    assert letter.read_text() == sheet.read_text() == just_now.read_text() == "dear"
    # Of a run that was ended long ago; the other may be running.
    assert {path.name for path in out.iterdir()} == {
        MANIFEST,
        letter.parent.name,
        sheet.parent.name,
        just_now.parents[1].name,
        *TABLES,
    }


def test_of_two_runs_into_one_folder_the_one_that_ends_last_says_so(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = write_archive(tmp_path / "archive", [[row(group_metadata_key("g"), group(1, member("a")))]])
    out = str(tmp_path / "tables")
    others: list[TableCounts] = []

    @contextmanager
    def watch(step: str) -> Iterator[None]:
        yield
        if step == "decoding records":
            others.append(make_tables(spark, archive, out))

    with pytest.raises(TablesBusyError, match=r"another run has put its tables into .*: run one at a time"):
        make_tables(spark, archive, out, watch=watch)
    assert read_counts(out) == others[0]
    assert len(contents(out, "records")) == read_table(spark, out, "records").count() == 1
    assert nobodys_files(out) == set()
    assert {path.name for path in Path(out).iterdir()} == {MANIFEST, *TABLES}


def test_what_is_captured_after_the_beginning_is_for_the_next_time(
    spark: SparkSession, tmp_path: Path
) -> None:
    archive = write_archive(tmp_path / "archive", [[row(group_metadata_key("g"), group(1, member("a")))]])

    @contextmanager
    def watch(step: str) -> Iterator[None]:
        if step == "looking up the names of topics":
            add_batch(Archive(archive), batch_of([row(group_metadata_key("h"), group(1), offset=1)]))
        yield

    assert make_tables(spark, archive, str(tmp_path / "tables"), watch=watch).read == 1
    assert make_tables(spark, archive, str(tmp_path / "tables")).read == 2


def test_a_stream_forgets_quiet_groups_and_hands_on_their_runs() -> None:
    key = group_metadata_key
    batch = batch_of(
        [row(key(f"g{number}"), group(1, member("a", {"t": [0]})), offset=number) for number in range(100)]
    )
    tracker = Tracker(most_bytes=10_000)
    tables, owners = one_by_one.decode(batch, {})
    assert tracker.add(tables["classic"], owners).num_rows == 0
    early = tracker.ended().num_rows
    assert 70 < early < 100
    tracker.end()
    assert early + tracker.ended().num_rows == 100


def test_of_groups_that_come_whole_no_run_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Tracker] = []

    def tracker() -> Tracker:
        made.append(Tracker(most_bytes=1000))
        return made[0]

    monkeypatch.setattr(between, "Tracker", tracker)

    def ordered() -> Iterator[Any]:
        for number in range(100):
            batch = batch_of(
                [
                    row(
                        group_metadata_key(f"g{number:02}"),
                        group(at, member("ab"[at], {"t": [0]})),
                        offset=2 * number + at,
                    )
                    for at in range(2)
                ]
            )
            tables, owners = one_by_one.decode(batch, {})
            records = tables["classic"].cast(CLASSIC)
            told = pa.array([as_bytes(one) for one in owners if one is not None], pa.binary())
            yield records.append_column("owners", told)

    moved = [batch.num_rows for batch in between._in_order(ordered())]
    assert moved == [1] * 100
    assert made[0].ended().num_rows == 0


def test_archive_rows_are_read_in_any_schema_that_spark_makes_of_them() -> None:
    batch = batch_of([row(b"\0\2\0\1g", None)])
    other = pa.RecordBatch.from_arrays(
        [
            array.cast(pa.large_binary() if pa.types.is_binary(array.type) else array.type)
            for array in reversed(batch.columns)
        ],
        names=[*reversed(ARCHIVE.names)],
    )
    assert in_schema(other, ARCHIVE).equals(batch)
