"""The tables of an archive, made by Spark."""

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from kafka_assignors._groups.topics import SeenTopic
from kafka_assignors._wire import codec
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history import _limits
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._records import SparkError
from kafka_assignors.history._schemas import ARCHIVE, ARCHIVED, TABLES
from kafka_assignors.history._spark import frame as spark_frame, in_schema
from kafka_assignors.history._tables import job, one_by_one
from kafka_assignors.history._tables.job import (
    MANIFEST,
    TableCounts,
    make_tables,
    read_table,
)
from kafka_assignors.history._tables.replaced import NoTablesError
from tests.support.archives import batch_of, counted, group, member, random_records, row
from tests.support.delta_tables import rows_of
from tests.support.offsets_topic import WRITTEN
from tests.support.written_archives import write_archive

pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
COMMIT = 1  # the type of keys of committed offsets, of which tables say nothing


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


def expected_generations(rows: Rows) -> Rows:
    """The last row of each, with how many there are, and the time of the first.

    When the generations of a classic group fall, it was deleted, and begins anew.
    """
    merged: dict[tuple[str, int, int], dict[str, Any]] = {}
    last: dict[str, tuple[int, int]] = {}  # how often each group began anew, and its generation
    each = one_by_one.decode(batch_of(rows), {})["generations"].to_pylist()
    for one in sorted(each, key=lambda one: (one["partition"], one["offset"])):
        times, generation = last.get(one["group"], (0, one["generation"]))
        times += one["protocol_type"] != "kip848" and one["generation"] < generation
        last[one["group"]] = times, one["generation"]
        place = one["group"], times, one["generation"]
        before = merged.get(place)
        if before is not None:
            one["records"] += before["records"]
            one["first_time"] = min(one["first_time"], before["first_time"])
        merged[place] = one
    return sorted(merged.values(), key=lambda one: (one["partition"], one["offset"], repr(one)))


HERE = Engine.local()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, dict[str, Rows], TableCounts]:
    """An archive of one file, its tables as they are made without the compiled codec, and their counts."""
    rows = [*random_rows(1, 300), counted(1, 10_000)]
    folder = tmp_path_factory.mktemp("whole")
    out = str(folder / "tables")
    archive = write_archive(folder / "archive", [rows])
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("kafka_assignors._wire.codec._compiled", None)
        assert codec.compiled() is None
        counts = make_tables(archive, out, engine=HERE)
    return rows, everything(out), counts


class TestOneTask:
    @pytest.mark.core
    def test_what_was_read_is_decoded_or_rejected(
        self, whole: tuple[Rows, dict[str, Rows], TableCounts]
    ) -> None:
        rows, tables, counts = whole
        others = [one for one in rows if one["type"] != COMMIT]
        assert counts.read == counts.decoded + counts.rejected == len(others) < len(rows) - 1
        assert counts.rejected > 20
        assert len(tables["moves"]) > 500
        assert counts.rows == {name: len(found) for name, found in tables.items()}

    @pytest.mark.core
    def test_generations_are_the_records_that_tell_them_put_together(
        self, whole: tuple[Rows, dict[str, Rows], TableCounts]
    ) -> None:
        rows, tables, _ = whole
        assert tables["generations"] == expected_generations(rows)
        assert {one["records"] for one in tables["generations"]} >= {1, 2}


class TestSplits:
    @pytest.mark.parametrize(
        ("how", "tasks"),
        [
            ("many files", 7),
            ("shuffled files", 4),  # most have two
            ("interleaved", 3),
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
        tasks: int,
    ) -> None:
        rows, tables, counts = whole
        parts = [rows[start : start + 43] for start in range(0, len(rows), 43)]
        if how == "shuffled files":
            Random(2).shuffle(parts)
            monkeypatch.setattr(_limits, "OPENING", 900_000)
        elif how == "interleaved":
            parts = [rows[number::3] for number in range(3)]
        archive = Archive(write_archive(tmp_path / "archive", parts))
        out = str(tmp_path / "tables")
        assert spark_frame(spark, archive.split(archive.files()), ARCHIVED).rdd.getNumPartitions() == tasks
        assert make_tables(archive, out, engine=Engine.spark()) == counts
        found = everything(out)
        for name, expected in tables.items():
            assert found[name] == expected, name


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        pytest.param([1, 2, 3, 4], [(1, 1), (2, 1), (3, 1), (4, 1)], id="each once"),
        pytest.param([1, 1, 2], [(1, 2), (2, 1)], id="twice"),
        pytest.param([1, 2, 2, 2], [(1, 1), (2, 3)], id="three times"),
        pytest.param([3, 4, None, 1, 2, 3], [(1, 1), (2, 1), (3, 1), (3, 1), (4, 1)], id="begun anew"),
        pytest.param([3, None, 2, None, 3], [(2, 1), (3, 1), (3, 1)], id="begun anew twice"),
        pytest.param([None, None, 1, 2], [(1, 1), (2, 1)], id="gone at first"),
    ],
)
@pytest.mark.core
def test_each_generation_has_one_row_wherever_its_records_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, told: list[int | None], expected: list[tuple[int, int]]
) -> None:
    monkeypatch.setattr(job, "_UNIT", 300)  # a record or two
    rows: Rows = []
    for number, generation in enumerate(told):
        value = None if generation is None else group(generation, member("a"))
        rows += [
            row(group_metadata_key("g"), value, offset=2 * number),
            row(group_metadata_key("h"), group(2 * number + 1), offset=2 * number + 1),
        ]
    out = str(tmp_path / "tables")
    make_tables(write_archive(tmp_path / "archive", [rows]), out, engine=HERE)
    found = contents(out, "generations")
    assert sorted((one["generation"], one["records"]) for one in found if one["group"] == "g") == expected
    assert found == expected_generations(rows)


def test_names_of_topics_come_from_records_and_from_what_the_archive_knows(tmp_path: Path) -> None:
    pairs = {key[:4]: (bytes.fromhex(key), bytes.fromhex(value)) for key, value, _ in WRITTEN}
    targets, told = row(*pairs["0007"], offset=1), row(*pairs["0004"], offset=2)
    out = str(tmp_path / "tables")
    first = write_archive(tmp_path / "first", [[targets], [told]])
    make_tables(first, out)
    assert [one["topic"] for one in contents(out, "assignments")] == ["t"]
    second = write_archive(tmp_path / "second", [[targets]])
    make_tables(second, out)
    assert [one["topic"] for one in contents(out, "assignments")] == [None]
    Archive(second).add_topics([SeenTopic("named", TOPIC_ID, 4)])
    make_tables(second, out)
    assert [one["topic"] for one in contents(out, "assignments")] == ["named"]


def test_an_archive_without_records_has_empty_tables(tmp_path: Path) -> None:
    out = str(tmp_path / "tables")
    counts = make_tables(write_archive(tmp_path / "archive", [[counted(1, 7)]]), out)
    assert counts == TableCounts(read=0, decoded=0, rejected=0, rows=dict.fromkeys(TABLES, 0))
    assert everything(out) == {name: [] for name in TABLES}
    assert read_table(out, "members").read_all().num_rows == 0
    assert make_tables(Archive.create(tmp_path / "new"), out) == counts


def test_a_task_that_fails_leaves_nothing(tmp_path: Path) -> None:
    key = group_metadata_key("g")
    folder = write_archive(tmp_path / "archive", [[row(key, group(1))], [row(key, group(2), offset=1)]])
    damaged = Archive(folder).files()[0]
    (tmp_path / "archive" / "records" / damaged.path).write_bytes(b"no Parquet")
    out = tmp_path / "tables"
    with pytest.raises(SparkError, match=r"put it back from a backup.*\(in Spark\)"):
        make_tables(folder, str(out), engine=Engine.spark())
    assert [path for path in out.rglob("*") if path.is_file()] == []


def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(NoTablesError, match=r"it has no tables\.json"):
        read_table(str(tmp_path), "moves")
    with pytest.raises(ValueError, match="there is no table 'moved', only records, generations"):
        read_table(str(tmp_path), "moved")


def test_what_else_is_in_the_folder_stays(tmp_path: Path) -> None:
    archive = write_archive(tmp_path / "archive", [[row(group_metadata_key("g"), group(1, member("a")))]])
    out = tmp_path / "tables"
    letter = out / "run-2026-report" / "letter.txt"
    letter.parent.mkdir(parents=True)
    letter.write_text("dear")
    for _ in range(2):
        make_tables(archive, out)
    assert letter.read_text() == "dear"
    assert {path.name for path in out.iterdir()} == {MANIFEST, letter.parent.name, *TABLES}


def test_archive_rows_are_read_in_any_schema_that_spark_makes_of_them() -> None:
    batch = batch_of([row(b"\0\2\0\1g", None)])
    other = pa.RecordBatch.from_arrays(
        [
            array.cast(pa.large_binary() if pa.types.is_binary(array.type) else array.type)
            for array in reversed(batch.columns)
        ],
        names=[*reversed(ARCHIVE.names)],
    )
    assert [*in_schema(iter([other]), schema=ARCHIVE)] == [batch]
