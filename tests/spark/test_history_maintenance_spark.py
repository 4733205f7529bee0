"""Clean-ups that delete what somebody is reading."""

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest

from kafka_assignors._cli.main import main
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._maintenance import maintain, plan_maintenance
from kafka_assignors.history._schemas import ARCHIVED
from kafka_assignors.history._store.location import locate
from kafka_assignors.history._store.log import Log
from kafka_assignors.history._store.reading import CleanedUpError, Part, read_parts
from kafka_assignors.history._store.writing import TaskFiles
from kafka_assignors.history._tables.job import make_tables, read_table
from tests.support.archives import batch_of
from tests.support.object_store import Fault, ObjectStore
from tests.support.small_archives import generation, opened
from tests.support.written_archives import append

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
def archive(home: tuple[str, Mapping[str, str]]) -> Archive:
    """Four records in two files of a day, which maintenance makes one."""
    where, options = home
    made = Archive.create(f"{where}/archive", options)
    made.belongs_to("c", 1)
    append(made, [generation(1, 0, "a"), generation(2, 1, "a", "b")])
    append(made, [generation(3, 2, "a"), generation(4, 3, "b")])
    return made


def clean_up(archive: Archive) -> None:
    """As `maintain` does for who reads the newest version, but for files that were replaced this moment."""
    there = opened(archive)
    maintain(there, replace(plan_maintenance(there), retention=timedelta(0)))
    assert len(opened(archive).files()) == 1


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
    batches = read_parts(log.where, [Part(long)], ARCHIVED)
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
@pytest.mark.usefixtures("_here", "spark")
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
    assert said in [
        f"kafka-assignors history {verb}: CleanedUpError: cannot read {path}: a clean-up has deleted it since"
        " this began, as newer versions do without it: run this again. If it takes longer than replaced files"
        " stay, give history maintain a longer --retention (in Spark)"
        for path in paths
    ]
    assert [*Path.cwd().glob("page.html"), *Path.cwd().glob("tables/tables.json")] == []


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
