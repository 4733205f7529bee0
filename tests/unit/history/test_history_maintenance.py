"""Clean-ups, and files that maintenance cannot read."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kafka_assignors._cli.main import main
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._maintenance import maintain, plan_maintenance
from kafka_assignors.history._store.reading import DamagedFileError
from tests.support.archives import group, member, row
from tests.support.written_archives import append, offsets_in, write_archive


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    """A batch, written 60 days ago."""
    made = Archive(write_archive(tmp_path, [[row(group_metadata_key("g"), group(1, member("a")))]]))
    for path in (tmp_path / "records").rglob("*.parquet"):
        set_age(path, 60)
    return made


def set_age(path: Path, days: int) -> None:
    written = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    os.utime(path, (written, written))


def remove(archive: Archive, days: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove all files, so many days ago."""
    records, _ = archive.logs
    then = (datetime.now(UTC) - timedelta(days=days)).timestamp()
    with monkeypatch.context() as patched:
        patched.setattr("kafka_assignors.history._store.log.time.time", lambda: then)
        records.commit(remove=records.files())


def clean_up(archive: Archive, **wanted: Any) -> list[str]:
    """Maintain an archive that needs nothing else; the files of records that are left."""
    there = Archive(archive.where.uri)
    assert maintain(there, plan_maintenance(there, **wanted)) == []
    folder = (there.where / "records").local
    assert folder is not None
    return [path.name for path in folder.rglob("*.parquet") if "_delta_log" not in path.parts]


def test_removed_files_stay_for_as_long_as_wished(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    there = [file.path.rpartition("/")[2] for file in archive.files()]
    remove(archive, 10, monkeypatch)
    for _ in range(3):  # by the second, a checkpoint stands for the commit that removed them
        assert clean_up(archive, retention=timedelta(days=30)) == there
    assert clean_up(archive, retention=timedelta(days=9)) == []


@pytest.mark.parametrize(("keep", "removed"), [(1, 1), (10_000_000, 0)])
def test_days_before_those_that_are_kept_are_removed(archive: Archive, keep: int, removed: int) -> None:
    assert len(plan_maintenance(archive, keep=keep).removed) == removed


def test_maintenance_of_a_place_without_an_archive_makes_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["--execute"]):
        assert main(["history", "maintain", str(tmp_path / "typo"), *more]) == 2
        assert f"{tmp_path}/typo is no archive of groups' history: it has no archive.json" in (
            capsys.readouterr().err
        )
    assert [*tmp_path.iterdir()] == []


@pytest.fixture(params=["gone", "torn"])
def bad(request: pytest.FixtureRequest, archive: Archive, tmp_path: Path) -> Path:
    """A file of the archive that cannot be read, beside two of another record each."""
    (file,) = archive.files()
    path = tmp_path / "records" / file.path
    for offset in (1, 2):
        append(archive, [row(group_metadata_key("g"), group(offset, member("a")), offset=offset)])
    if request.param == "gone":
        path.unlink()
    else:  # its footer is whole, and so it is opened; not its rows
        good = path.read_bytes()
        path.write_bytes(good[:100] + bytes(len(good) // 2 - 100) + good[len(good) // 2 :])
    return path


def maintain_the_rest(archive: Archive, *more: str) -> int:
    return main(["history", "maintain", archive.where.uri, "--execute", "--skip-bad", *more])


def test_maintenance_leaves_a_bad_file_as_it_is_if_it_may(
    archive: Archive, bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = archive.version
    with pytest.raises(DamagedFileError, match=rf"cannot read {bad} \(.*or leave it out with --skip-bad"):
        maintain(archive, plan_maintenance(archive), engine=Engine.local())
    assert Archive(archive.where.uri).version == before
    assert maintain_the_rest(archive) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{bad} cannot be read, and stays as it is"
    assert maintain_the_rest(archive, "--json") == 0  # and there is nothing else to do
    assert [Path(path).name for path in json.loads(capsys.readouterr().out)["bad"]] == [bad.name]
    there = Archive(archive.where.uri, skip_bad=True)
    files = [f"{there.where}/records/{file.path}" for file in there.files()]
    assert (there.version, len(files), str(bad) in files) == (before + 1, 2, True)
    assert offsets_in(there) == [(0, 1), (0, 2)]


def test_a_bad_file_of_a_day_that_is_not_kept_goes_with_it(
    archive: Archive, bad: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(DamagedFileError, match=rf"cannot read {bad} \("):
        maintain(archive, plan_maintenance(archive, keep=1), engine=Engine.local())
    assert len(Archive(archive.where.uri).files()) == 3
    assert maintain_the_rest(archive, "--keep", "1d") == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"{bad} cannot be read, and was removed with its day"
    assert offsets_in(archive) == [(0, 2)]
