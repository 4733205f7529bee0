"""The history in folders and in an object store: the same rows, and what happens where a store fails."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from benchmarks.processes import below
from kafka_assignors._cli.main import main
from kafka_assignors._common.waiting import wait_until
from kafka_assignors._groups.topics import SeenTopic
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._dump import import_dump
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._info import info
from kafka_assignors.history._limits import LEAST_RETENTION
from kafka_assignors.history._maintenance import maintain, plan_maintenance
from kafka_assignors.history._metrics import MANIFEST, SCHEMAS, metrics
from kafka_assignors.history._schemas import TABLES
from kafka_assignors.history._store.location import StoreError, WrongPlaceError, locate
from kafka_assignors.history._store.log import ConflictError, Log
from kafka_assignors.history._tables.job import make_tables, read_table
from kafka_assignors.history._tables.replaced import read_versions, replacing
from tests.support.archives import BEGAN, counted
from tests.support.kinds import ROOT
from tests.support.object_store import Fault, ObjectStore, busy, denied, expired, full
from tests.support.small_archives import (
    DAY,
    add,
    generation,
    kip848_dump,
    offsets,
    opened,
    read,
    said_by,
    seen,
    table_of,
)
from tests.support.written_archives import selected_by

pytestmark = pytest.mark.slow

TWO, THREE = ([0, 1], {0: 2}), ([0, 1, 2], {0: 3})
"""What is seen of so many records: their offsets, and up to where their partition was read."""
ENDS_SOON = {"retry_timeout": "1s"}
SLOW_DOWN = "503 Service Unavailable (SlowDown): the store is busy or not available"


@pytest.fixture(autouse=True)
def _no_store_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)


def plain(rows: DataFrame) -> list[dict[str, Any]]:
    return sorted((one.asDict(recursive=True) for one in rows.collect()), key=repr)


# The same everywhere


def history(spark: SparkSession, home: str, again: str, options: Mapping[str, str], dump: Path) -> Any:
    """All that is done with an archive at a place that has two names, and what there is then."""
    archive = Archive.create(f"{home}/archive", options)
    archive.belongs_to("c", 50)
    archive.add_topics([SeenTopic("t", "id", 6)])
    told: dict[str, Any] = {}
    first = [counted(1, 500), generation(1, 0, "a"), generation(2, 10, "a", "b"), generation(3, DAY, "b")]
    told["appended"] = add(spark, archive, first)
    other = Archive.create(f"{again}/archive", options)
    add(spark, other, [generation(4, DAY + 10, "a", "b", "c"), generation(5, DAY + 20, "a", "c")])
    told["imported"] = [import_dump(dump, other) for _ in range(2)]

    archive = Archive(f"{home}/archive", options)
    told["version"] = archive.version
    told["described"] = archive.description
    told["frontier"] = archive.frontier()
    told["dumps"] = sorted({file.values["source"] for file in archive.files()} - {"topic"})
    told["topics"] = [one[:3] for one in archive.topics()]
    told["counts"] = info(archive, engine=Engine.spark()).sources
    told["read"] = plain(read(spark, archive))
    since = BEGAN + timedelta(days=1)
    told["read_since"] = plain(read(spark, archive, since=since))
    told["selected"] = selected_by(Engine.spark(), archive, since=since, groups=["ord*"])
    told["files_since"] = sorted(file.values["day"] for file in archive.files(since=since))

    told["made"] = make_tables(archive, f"{again}/tables", options=options)
    told["tables"] = {
        name: sorted(read_table(f"{home}/tables", name, options).read_all().to_pylist(), key=repr)
        for name in ("records", "generations", "moves", "assignments")
    }
    metrics(archive, f"{home}/metrics", options=options)
    where = locate(f"{again}/metrics", options)
    versions = read_versions(where, MANIFEST)
    told["metrics"] = {
        name: plain(table_of(spark, log, SCHEMAS[name]))
        for name in SCHEMAS
        for log in [Log(where / name, versions[name])]
    }

    before = told["read"]
    plan = plan_maintenance(archive, retention=LEAST_RETENTION)
    told["compacted"] = [(file[0].values["day"], len(file)) for file in plan.compacted]
    maintain(archive, plan)
    archive = Archive(f"{again}/archive", options)
    assert plain(read(spark, archive)) == before
    assert (archive.frontier(), archive.description) == (told["frontier"], told["described"])
    told["files"] = len(archive.files())
    today = BEGAN.date() + timedelta(days=1)
    plan = plan_maintenance(archive, keep=1, retention=LEAST_RETENTION, today=today)
    told["removed"] = sorted(file.values["day"] for file in plan.removed)
    maintain(archive, plan)
    told["kept"] = plain(read(spark, Archive(f"{home}/archive", options)))
    return told


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return kip848_dump(tmp_path_factory.mktemp("dump") / "dump")


@pytest.fixture(scope="module")
def of_folder(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, dump: Path) -> Any:
    home = tmp_path_factory.mktemp("home") / "a bö#1"
    return history(spark, str(home), home.as_uri(), {}, dump)


@pytest.mark.core
def test_in_a_folder_there_is_what_was_put_there(of_folder: Any) -> None:
    late = {DAY, DAY + 10, DAY + 20}
    assert {one["offset"] for one in of_folder["read"] if one["partition"] == 0} == {0, 10, *late}
    assert len(of_folder["read"]) == 5 + 12
    assert of_folder["appended"].read == 503
    assert of_folder["frontier"] == {0: DAY + 21}
    assert of_folder["described"].partitions == 50
    first, second = of_folder["imported"]
    assert (first.counts.read, first.known, second.counts.read, second.known) == (12, 0, 0, 12)
    assert of_folder["dumps"] == [first.source]
    assert of_folder["topics"] == [("t", "id", 6)]
    assert of_folder["counts"]["topic"].counted == {"OffsetCommit": 500}
    assert (of_folder["made"].read, of_folder["made"].rejected) == (17, 0)
    assert [one["generation"] for one in of_folder["tables"]["generations"] if one["group"] == "orders"] == [
        *range(1, 6)
    ]
    assert {one["group"]: one["rebalances"] for one in of_folder["metrics"]["groups"]} == {
        "orders": 4,
        "g": 1,
    }
    assert of_folder["compacted"] == [("2026-01-02", 2)]
    # The group's newest older record stays: what it begins with.
    assert {one["offset"] for one in of_folder["kept"] if one["partition"] == 0} == {10, *late}


def test_in_an_object_store_there_is_the_same(
    spark: SparkSession, object_store: ObjectStore, dump: Path, of_folder: Any
) -> None:
    home = f"{object_store.bucket()}/a bö"
    found = history(spark, f"s3://{home}", f"s3a://{home}", object_store.options, dump)
    for name, expected in of_folder.items():
        assert found.pop(name) == expected, name
    assert found == {}


# What fails


@pytest.fixture
def home(object_store: ObjectStore) -> str:
    return f"s3://{object_store.bucket()}/a"


@pytest.fixture
def archive(spark: SparkSession, object_store: ObjectStore, home: str) -> Archive:
    """Two records, in a store."""
    made = Archive.create(home, object_store.options)
    made.belongs_to("c", 1)
    add(spark, made, [generation(1, 0, "a"), generation(2, 1, "a", "b")])
    return made


@pytest.fixture
def command(
    object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Any:
    """Runs `history`, which finds the store by the environment; its status, and its error."""
    for name, value in object_store.options.items():
        monkeypatch.setenv(name, value)

    def run(*arguments: str) -> tuple[int, str]:
        capsys.readouterr()
        return main(["history", *arguments]), capsys.readouterr().err

    return run


def test_a_store_that_may_not_be_written_is_an_error_before_anything_is_read(
    object_store: ObjectStore, home: str, command: Any, tmp_path: Path
) -> None:
    why = "403 Forbidden (AccessDenied): the store does not allow it"
    why += ": check the credentials and what they may do"
    missing = tmp_path / "no dump"
    with object_store.failing(denied(method="PUT|POST")) as struck:
        assert command("import", home, str(missing)) == (
            1,
            f"kafka-assignors history import: cannot make a table at {home}/records: {why}\n",
        )
        assert struck.count() == 1
    assert command("import", home, str(missing))[0] == 2  # which is what is wrong now
    with object_store.failing(denied(method="PUT|POST")):
        assert command("import", home, str(missing)) == (
            1,
            f"kafka-assignors history import: cannot write {home}/archive.json: {why}\n",
        )


def test_credentials_that_are_missing_are_named(
    object_store: ObjectStore, home: str, command: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_METADATA_ENDPOINT", object_store.endpoint)
    with object_store.failing(Fault(path="^/latest/", status=403, code="no machine of a cloud")):
        status, said = command("info", home)
    assert status == 1
    assert said == (
        f"kafka-assignors history info: cannot read {home}/archive.json: no credentials were found: set"
        " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what your store wants in their place\n"
    )


@pytest.mark.parametrize("verb", ["info", "import"])
def test_a_bucket_that_there_is_not_is_named(verb: str, command: Any, tmp_path: Path) -> None:
    status, said = command(verb, "s3://nobodys/a", *([str(tmp_path)] if verb == "import" else []))
    assert status == 1
    assert said == (
        f"kafka-assignors history {verb}: cannot list s3://nobodys/a: 404 Not Found (NoSuchBucket): there is"
        " no such bucket or container\n"
    )


def test_what_others_have_in_a_store_is_no_place_for_tables(home: str, object_store: ObjectStore) -> None:
    where = locate(home, object_store.options)
    where.write_text("topics/2025/a.txt", "mine")
    with pytest.raises(WrongPlaceError, match=f"{home}/topics has files of others, such as 2025"):
        Archive.create(home, object_store.options)
    where.write_text("groups/a.txt", "mine")
    refused = pytest.raises(WrongPlaceError, match=rf"{home}/groups has files of others, such as a\.txt")
    with refused, replacing(where, MANIFEST, SCHEMAS):
        pass
    assert sorted(where.names()) == ["groups", "topics"]


def test_credentials_that_expire_end_a_batch_in_words(
    spark: SparkSession, object_store: ObjectStore, archive: Archive
) -> None:
    with object_store.failing(expired(method="PUT|POST")):
        said = said_by(lambda: add(spark, archive, [generation(3, 2, "a")]))
    wanted = (
        rf"StoreError: cannot write {archive.where}/records/source=topic/day=2026-01-01/\S+\.parquet:"
        r" 400 Bad Request \(ExpiredToken\): the credentials have expired: renew them"
    )
    assert re.fullmatch(wanted, said), said
    with object_store.failing(expired()), pytest.raises(StoreError) as refused:
        opened(archive)
    assert str(refused.value) == (
        f"cannot read {archive.where}/archive.json: 400 Bad Request: the store does not take it: check the"
        " region, and whether the credentials have expired"
    )
    add(spark, archive, [generation(3, 2, "a")])
    assert offsets(read(spark, opened(archive))) == [0, 1, 2]


def test_a_store_that_is_busy_for_a_while_is_waited_for(
    spark: SparkSession, object_store: ObjectStore, archive: Archive
) -> None:
    with object_store.failing(busy(times=15)) as struck:
        assert offsets(read(spark, opened(archive))) == [0, 1]
        assert struck.count() == 15
    with object_store.failing(busy(method="PUT|POST", times=15)) as struck:
        add(spark, archive, [generation(3, 2, "a")])
        assert struck.count() == 15
    assert offsets(read(spark, opened(archive))) == [0, 1, 2]


def test_a_store_that_stays_busy_ends_what_is_done(
    spark: SparkSession, object_store: ObjectStore, archive: Archive
) -> None:
    hasty = opened(archive, ENDS_SOON)
    began = time.monotonic()
    with object_store.failing(busy(method="PUT|POST")):
        assert said_by(lambda: add(spark, hasty, [generation(3, 2, "a")])).endswith(f": {SLOW_DOWN}")
    refused = pytest.raises(StoreError, match=r"cannot read .*archive\.json: 503 Service Unavailable")
    with object_store.failing(busy()), refused:
        opened(archive, ENDS_SOON)
    assert time.monotonic() < began + 90  # on a laden machine; each request is repeated for a second
    assert offsets(read(spark, opened(archive))) == [0, 1]


def test_a_store_that_is_busy_has_no_bad_files(
    spark: SparkSession, object_store: ObjectStore, archive: Archive
) -> None:
    reader = Archive(archive.where.uri, {**archive.where.options, **ENDS_SOON}, skip_bad=True)
    with object_store.failing(busy(path=r"\.parquet$")):
        assert "503 Service Unavailable" in said_by(lambda: offsets(read(spark, reader)))
    assert offsets(read(spark, reader)) == [0, 1]


def test_a_full_store_ends_a_batch_and_keeps_what_it_has(
    spark: SparkSession, object_store: ObjectStore, archive: Archive
) -> None:
    hasty = opened(archive, ENDS_SOON)
    with object_store.failing(full(path=r"\.parquet$")):
        said = said_by(lambda: add(spark, hasty, [generation(3, 2, "a")]))
        assert said.endswith(": 507 Insufficient Storage (XMinioStorageFull): the store is full"), said
    with object_store.failing(full(path="_delta_log")), pytest.raises(StoreError) as refused:
        add(spark, hasty, [generation(3, 2, "a")])
    assert str(refused.value) == (
        f"cannot commit to {archive.where}/records: 507 Insufficient Storage (XMinioStorageFull): the store"
        " is full"
    )
    assert seen(spark, archive) == TWO
    add(spark, opened(archive), [generation(3, 2, "a")])
    assert seen(spark, archive) == THREE


@pytest.mark.parametrize("times", [1, None])
def test_a_commit_whose_answer_is_lost_is_there_once(
    spark: SparkSession, object_store: ObjectStore, archive: Archive, times: int | None
) -> None:
    hasty = opened(archive, ENDS_SOON if times is None else {})
    lost = busy(method="PUT", path=r"records/_delta_log/\d+\.json$", times=times, done=True)
    with object_store.failing(lost):
        if times is None:
            with pytest.raises(StoreError, match=r"cannot commit to .*: 503 Service Unavailable"):
                add(spark, hasty, [generation(3, 2, "a")])
        else:
            add(spark, hasty, [generation(3, 2, "a")])
    assert seen(spark, archive) == THREE


def test_data_that_comes_after_its_writer_gave_up_and_asked_again_is_there_once(
    spark: SparkSession, object_store: ObjectStore, archive: Archive
) -> None:
    late = Fault(method="PUT|POST", path=r"\.parquet$", times=1, hold=True)
    with object_store.failing(late) as struck:
        add(spark, opened(archive, {"timeout": "5s"}), [generation(3, 2, "a")])
        assert struck.count() == 1
    assert seen(spark, archive) == THREE


def test_a_commit_that_comes_after_its_writer_gave_up_is_an_error_and_there_once(
    spark: SparkSession, object_store: ObjectStore, archive: Archive
) -> None:
    late = Fault(method="PUT", path=COMMIT, times=1, hold=True)
    refused = pytest.raises(StoreError, match=r"cannot commit to .*/records: operation timed out$")
    with object_store.failing(late), refused:  # nobody knows what became of it: it is not asked for again
        add(spark, opened(archive, {"timeout": "5s"}), [generation(3, 2, "a")])
    wait_until(lambda: [] if opened(archive).version > archive.version else ["it"], 60, "a late commit")
    assert seen(spark, archive) == THREE


DATA = r"records/source=topic/day=2026-01-01/\S+\.parquet$"
COMMIT = r"records/_delta_log/\d+\.json$"
HELD = {
    "its data": Fault(method="PUT|POST", path=DATA, hold=True, status=503, code="SlowDown"),
    "its commit": Fault(method="PUT", path=COMMIT, hold=True, status=503, code="SlowDown"),
    "the answer to its commit": Fault(method="PUT", path=COMMIT, hold=True, status=503, done=True),
}
"""Where the writer of a batch waits for the store: nothing of it is done then, or, of the last, all."""


@pytest.mark.parametrize("point", HELD)
def test_a_writer_that_is_killed_leaves_nothing_that_is_seen_or_all(
    spark: SparkSession, object_store: ObjectStore, archive: Archive, point: str
) -> None:
    code = """
import sys
from kafka_assignors.history._spark import spark_session
from kafka_assignors.history._archive import Archive
from tests.support.small_archives import add, generation

add(spark_session("local[1]"), Archive(sys.argv[1]), [generation(3, 2, "a")])
"""
    writer = subprocess.Popen(
        [sys.executable, "-c", code, archive.where.uri],
        cwd=ROOT,
        env={**os.environ, **object_store.options, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with object_store.failing(HELD[point]) as struck:
        try:
            struck.wait()
        finally:
            tasks = below(writer.pid)  # which have a process group of their own, and would write on
            os.killpg(writer.pid, signal.SIGKILL)
            for task in tasks:
                with suppress(psutil.NoSuchProcess):
                    task.kill()
            assert writer.wait() == -signal.SIGKILL
    if HELD[point].done:
        wait_until(
            lambda: [] if opened(archive).version > archive.version else ["it"], 60, "a commit on its way"
        )
    found = opened(archive)
    assert seen(spark, found) == (THREE if HELD[point].done else TWO)
    day = locate(f"{archive.where}/records/source=topic/day=2026-01-01", archive.where.options)
    assert len(day.names()) == len(found.files()) + (point == "its commit")  # what it wrote
    if not HELD[point].done:
        add(spark, found, [generation(3, 2, "a")])
    assert seen(spark, archive) == THREE


def test_a_worker_that_is_killed_amid_its_data_ends_the_batch_and_nothing_of_it_is_seen(
    spark: SparkSession, object_store: ObjectStore, archive: Archive
) -> None:
    with object_store.failing(HELD["its data"]) as struck, ThreadPoolExecutor(1) as pool:
        batch = pool.submit(lambda: add(spark, opened(archive), [generation(3, 2, "a")]))
        struck.wait()
        for daemon in below():
            with suppress(psutil.Error):  # it has ended
                if "pyspark.daemon" in daemon.cmdline():
                    for worker in daemon.children():
                        worker.kill()
        with pytest.raises((PySparkException, Py4JError), match="Python worker exited unexpectedly"):
            batch.result(timeout=120)
    assert seen(spark, archive) == TWO
    add(spark, opened(archive), [generation(3, 2, "a")])
    assert seen(spark, archive) == THREE


def test_of_two_writers_at_once_one_is_told(spark: SparkSession, archive: Archive) -> None:
    late = opened(archive)
    add(spark, archive, [generation(3, 2, "a")])
    with pytest.raises(ConflictError):
        add(spark, late, [generation(3, 2, "a")])
    found = opened(archive)
    assert offsets(read(spark, found)) == [0, 1, 2]
    day = locate(f"{archive.where}/records/source=topic/day=2026-01-01", archive.where.options)
    assert len(day.names()) == len(found.files()) == 2
    late.refresh()
    add(spark, late, [generation(4, 3, "a")])
    assert offsets(read(spark, opened(archive))) == [0, 1, 2, 3]


def test_who_reads_while_an_archive_is_maintained_reads_all_of_it(
    spark: SparkSession, archive: Archive
) -> None:
    add(spark, archive, [generation(3, 2, "a")])
    add(spark, archive, [generation(4, 3, "a")])
    reader = opened(archive)
    assert len(reader.files()) == 3
    half_read = read(spark, reader).toLocalIterator()
    first = [next(half_read)["offset"]]
    maintain(archive, plan_maintenance(archive, retention=LEAST_RETENTION))
    add(spark, archive, [generation(5, 4, "a")])
    assert sorted([*first, *(one["offset"] for one in half_read)]) == [0, 1, 2, 3]
    assert offsets(read(spark, reader)) == [0, 1, 2, 3]
    found = opened(archive)
    assert (len(found.files()), offsets(read(spark, found))) == (2, [0, 1, 2, 3, 4])


@pytest.mark.parametrize("how", ["truncated", "gone"])
def test_a_bad_file_is_named_and_can_be_left_out(
    spark: SparkSession, archive: Archive, command: Any, how: str
) -> None:
    (file,) = archive.files()
    add(spark, archive, [generation(3, 2, "a")])
    where = archive.where / "records"
    with where.files().open_input_file(file.path) as stream:
        good = stream.read()
    where.remove([file.path])
    if how == "truncated":
        with where.files().open_output_stream(file.path) as stream:
            stream.write(good[: len(good) // 2])
    said = f"DamagedFileError: cannot read {where}/{file.path} ("
    assert said_by(lambda: offsets(read(spark, opened(archive)))).startswith(said)
    status, line = command("info", archive.where.uri)
    assert (status, line.count("\n")) == (1, 1)
    assert line.startswith(f"kafka-assignors history info: {said}")
    assert offsets(read(spark, opened(archive, skip_bad=True))) == [2]
    assert command("info", archive.where.uri, "--skip-bad") == (0, "")


def test_tables_whose_making_fails_leave_those_before(
    spark: SparkSession, object_store: ObjectStore, archive: Archive, home: str
) -> None:
    out, options = f"{home}/tables", {**archive.where.options, **ENDS_SOON}
    made = make_tables(archive, out, options=options)
    add(spark, archive, [generation(3, 2, "a")])
    with (
        object_store.failing(busy(method="PUT", path=r"tables/moves/_delta_log/")),
        pytest.raises(StoreError, match=r"cannot commit to .*tables/moves: 503 Service Unavailable"),
    ):
        make_tables(archive, out, options=options)
    for name in TABLES:
        newest = Log(locate(f"{out}/{name}", options))
        assert table_of(spark, newest, TABLES[name]).count() >= made.rows[name]
        assert read_table(out, name, options).read_all().num_rows == made.rows[name]
    again = make_tables(archive, out, options=options)
    assert (again.read, read_table(out, "records", options).read_all().num_rows) == (3, 3)
