"""What maintenance does that needs no Spark: clean-ups."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors._cli.main import main
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._maintenance import maintain, plan_maintenance
from tests.support.archives import group, member, row
from tests.support.written_archives import write_archive

if TYPE_CHECKING:
    from pathlib import Path


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
