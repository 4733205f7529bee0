"""Clean-ups that delete what somebody is reading, and files that maintenance cannot read."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pytest

from kafka_assignors._cli.main import main
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._dump import import_dump
from kafka_assignors.history._maintenance import maintain, plan_maintenance
from kafka_assignors.history._schemas import ARCHIVED
from kafka_assignors.history._store.location import locate
from kafka_assignors.history._store.log import Log
from kafka_assignors.history._store.reading import CleanedUpError, read_parts, whole
from kafka_assignors.history._store.writing import TaskFiles
from kafka_assignors.history._tables.job import make_tables, read_table
from tests.support.archives import batch_of
from tests.support.object_store import Fault
from tests.support.small_archives import add, generation, kip848_dump, offsets, opened, rows_of, said_by

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from kafka_assignors.history._store.log import DataFile
    from tests.support.object_store import ObjectStore

pytestmark = pytest.mark.slow


@pytest.fixture(params=["folder", "object store"])
def home(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, Mapping[str, str]]:
    """A place, and the options of its store, which are in the environment, too."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    if request.param == "folder":
        return str(tmp_path), {}
    store: ObjectStore = request.getfixturevalue("object_store")
    for name, value in store.options.items():
        monkeypatch.setenv(name, value)
    return f"s3://{store.bucket()}", store.options


@pytest.fixture
def archive(spark: SparkSession, home: tuple[str, Mapping[str, str]]) -> Archive:
    """Four records in two files of a day, which maintenance makes one."""
    where, options = home
    made = Archive.create(f"{where}/archive", options)
    made.belongs_to("c", 1)
    add(spark, made, [generation(1, 0, "a"), generation(2, 1, "a", "b")])
    add(spark, made, [generation(3, 2, "a"), generation(4, 3, "b")])
    return made


def clean_up(archive: Archive) -> None:
    """As `maintain` does for who reads the newest version, but for files that were replaced this moment."""
    there = opened(archive)
    maintain(there, replace(plan_maintenance(there), retention=timedelta(0)))
    assert len(opened(archive).files()) == 1


def cleaned_up(path: str) -> str:
    return (
        f"cannot read {path}: a clean-up has deleted it since this began, as newer versions do without it:"
        " run this again. If it takes longer than replaced files stay, give history maintain a longer"
        " --retention"
    )


@pytest.mark.core
@pytest.mark.parametrize("skip_bad", [False, True])
def test_who_reads_files_that_a_clean_up_deletes_is_told_so(
    spark: SparkSession, archive: Archive, skip_bad: bool
) -> None:
    reader = opened(archive, skip_bad=skip_bad)
    paths = [f"{archive.where}/records/{file.path}" for file in reader.files()]
    clean_up(archive)
    said = said_by(lambda: offsets(reader.read(spark)))
    assert said in [f"CleanedUpError: {cleaned_up(path)}" for path in paths]
    assert offsets(opened(archive, skip_bad=skip_bad).read(spark)) == [0, 1, 2, 3]


def test_a_large_file_that_a_clean_up_has_deleted_is_told_as_such(
    spark: SparkSession, archive: Archive
) -> None:
    reader = opened(archive)
    clean_up(archive)
    large = [file._replace(size=2**30) for file in reader.files()]
    assert said_by(lambda: offsets(rows_of(spark, reader, large))).startswith("CleanedUpError: ")


def test_a_file_that_is_deleted_amid_its_rows_is_read_whole_or_told_as_cleaned_up(archive: Archive) -> None:
    log, _ = opened(archive).logs
    day, random = "source=topic/day=2026-01-01", Random(1)
    with TaskFiles(log.where, "long") as files:
        for number in range(6):  # 38 MB: Arrow reads up to 32 MB ahead
            rows = [
                generation(1, 64 * number + at, "a") | {"value": random.randbytes(100_000)}
                for at in range(64)
            ]
            files.write_group(day, batch_of(rows))
    (long,) = files.written.values()
    log.commit(add=[long])
    batches = read_parts(log.where, [whole(long)], ARCHIVED)
    assert next(batches)["offset"].to_pylist() == [*range(64)]
    log.commit(remove=[long])
    assert log.vacuum(0, dry_run=False) == [long.path]
    if archive.where.local is not None:  # it is deleted when it is closed
        assert [len(batch) for batch in batches] == [64] * 5
    else:
        with pytest.raises(CleanedUpError, match=r"/long\.parquet: a clean-up has deleted it"):
            list(batches)


def test_a_table_whose_files_are_deleted_while_it_is_read_is_told_as_cleaned_up(archive: Archive) -> None:
    out, options = str(archive.where / "tables"), archive.where.options
    make_tables(archive, out, options=options)
    rows = read_table(out, "generations", options)
    make_tables(archive, out, options=options)
    Log(locate(f"{out}/generations", options)).vacuum(0, dry_run=False)
    with pytest.raises(CleanedUpError, match=f"cannot read {out}/generations/"):
        rows.read_all()


@pytest.mark.parametrize(
    "command",
    ["info", "tables ARCHIVE tables", "metrics --skip-bad", "what-if", "report ARCHIVE page.html --skip-bad"],
)
@pytest.mark.parametrize("home", ["object store"], indirect=True)
@pytest.mark.usefixtures("_here")
@pytest.mark.usefixtures("spark")
def test_a_command_over_a_clean_up_ends_with_what_happened(
    archive: Archive,
    object_store: ObjectStore,
    command: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    verb, *more = command.replace("ARCHIVE ", "").split()
    paths = [f"{archive.where}/records/{file.path}" for file in archive.files()]
    held = Fault(method="GET", path=r"records/source=topic/\S+\.parquet$", times=1, hold=True)
    with ExitStack() as faults, ThreadPoolExecutor(1) as pool:
        struck = faults.enter_context(object_store.failing(held))

        def clean() -> None:
            with faults.pop_all():  # the reader's request goes on when its file is gone
                struck.wait()
                clean_up(archive)

        cleaned = pool.submit(clean)
        status = main(["history", verb, archive.where.uri, *more])
        cleaned.result()
    said = capsys.readouterr().err.splitlines()[-1]
    assert status == 1
    prefix = f"kafka-assignors history {verb}: CleanedUpError: "
    assert said in [f"{prefix}{cleaned_up(path)} (in Spark)" for path in paths]
    assert [*Path.cwd().glob("page.html"), *Path.cwd().glob("tables/tables.json")] == []


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# Files that maintenance cannot read


def damage(archive: Archive, file: DataFile, how: str) -> str:
    """Damage a file; where it is."""
    where = archive.where / "records"
    if how == "gone":
        where.remove([file.path])
        return f"{where}/{file.path}"
    with where.files().open_input_file(file.path) as stream:
        good = stream.read()
    # Its footer is whole, and so it is opened; not its rows.
    bad = good[:100] + bytes(len(good) // 2 - 100) + good[len(good) // 2 :]
    with where.files().open_output_stream(file.path) as stream:
        stream.write(bad)
    return f"{where}/{file.path}"


@pytest.mark.parametrize("how", ["gone", "torn"])
def test_maintenance_leaves_a_bad_file_as_it_is_if_it_may(
    spark: SparkSession, archive: Archive, how: str, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, *_ = archive.files()
    add(spark, archive, [generation(5, 4, "a")])
    rest = sorted({0, 1, 2, 3, 4} - set(offsets(rows_of(spark, archive, [bad]))))
    path = damage(archive, bad, how)
    command = ["history", "maintain", archive.where.uri, "--execute"]
    before = opened(archive).version
    assert main(command) == 1
    said = capsys.readouterr().err
    assert f"DamagedFileError: cannot read {path} (" in said
    assert said.endswith("or leave it out with --skip-bad (capture and import need it) (in Spark)\n")
    found = opened(archive, skip_bad=True)
    assert (found.version, offsets(found.read(spark))) == (before, rest)

    assert main([*command, "--skip-bad"]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{archive.where}: 2 files of 1 day (")
    assert last == f"{path} cannot be read, and stays as it is"
    found = opened(archive, skip_bad=True)
    assert bad.path in {file.path for file in found.files()}
    assert (len(found.files()), offsets(found.read(spark))) == (2, rest)
    version = found.version
    assert main([*command, "--skip-bad", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["bad"], opened(archive).version) == ([bad.path], version)


@pytest.mark.parametrize("home", ["folder"], indirect=True)
def test_a_bad_file_of_a_day_that_is_not_kept_goes_with_it(
    spark: SparkSession, archive: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import_dump(kip848_dump(tmp_path / "dump"), archive)
    (modern,) = (file for file in archive.files() if file.values["source"] != "topic")
    path = damage(archive, modern, "torn")
    command = ["history", "maintain", archive.where.uri, "--execute", "--keep", "1d"]
    assert main(command) == 1
    assert f"DamagedFileError: cannot read {path} (" in capsys.readouterr().err
    assert len(opened(archive).files()) == 3
    assert main([*command, "--skip-bad"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        f"{path} cannot be read, and was removed with its day"
    )
    (left,) = opened(archive).files()
    assert (left.values["source"], offsets(opened(archive).read(spark))) == ("topic", [3])
