"""Archives of format 1 that another process may be writing, and what is left of them."""

import json
import subprocess
import sys
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_assignors.history import _takeover
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._archive_format import ArchiveBusyError, WrongArchiveError
from kafka_assignors.history._log import LogTopic
from kafka_assignors.history._schemas import ARCHIVE, TOPICS

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def write(folder: Path, offsets: range, partition: int = 0) -> None:
    rows = [
        {
            "type": 2,
            "count": 1,
            "key": b"\0\2\0\1g",
            "value": b"v",
            "partition": partition,
            "offset": offset,
            "timestamp": NOON + timedelta(minutes=offset),
            "leader_epoch": None,
        }
        for offset in offsets
    ]
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=ARCHIVE), folder / "part-0.parquet")


def old_archive(folder: Path) -> Path:
    """As version 0.1 wrote them: two batches of a capture whose second was not yet noted, and a dump."""
    records = folder / "records"
    write(records / "source=topic" / "batch=01234567-00000000" / "day=2026-03-01", range(5))
    write(records / "source=topic" / "batch=01234567-00000001" / "day=2026-03-01", range(5, 8))
    write(records / "source=dump-1" / "batch=0" / "day=2026-03-01", range(100, 103), 1)
    (records / "source=topic" / "batch=01234567-00000000" / "day=2026-03-01" / ".part-0.parquet.crc").touch()
    (folder / "topics").mkdir()
    seen: dict[str, Any] = {"topic": "orders", "topic_id": "id1", "partitions": 6, "seen": NOON}
    pq.write_table(pa.Table.from_pylist([seen], schema=TOPICS), folder / "topics" / "20260301T120000.parquet")
    (folder / "staging" / "topic").mkdir(parents=True)
    for part in ("commits", "offsets"):
        (folder / "checkpoint" / part).mkdir(parents=True)
    (folder / "checkpoint" / "commits" / "0").write_text("v1")
    (folder / "checkpoint" / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0}\n{"0":5,"2":77}')
    described = {"cluster_id": "c1", "topic": "__consumer_offsets", "partitions": 3, "format": 1}
    (folder / "archive.json").write_text(json.dumps(described))
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("part-*.parquet"))
    }


def assert_is_taken_over(archive: Archive, before: dict[str, bytes]) -> None:
    folder = archive.where.local
    assert folder is not None
    assert contents(folder) == before
    assert sorted(f"records/{file.path}" for file in archive.files()) == sorted(before)
    assert sum(file.rows or 0 for file in archive.files()) == 5 + 3 + 3
    assert archive.frontier() == {0: 8, 2: 77}
    assert (archive.dumps(), archive.has("dump-1")) == (["dump-1"], True)
    assert (archive.description.cluster_id, archive.description.partitions) == ("c1", 3)
    assert [one[:3] for one in archive.topics()] == [LogTopic("orders", "id1", 6)]
    assert sorted(path.name for path in folder.iterdir()) == [
        "archive.json",
        "lock",
        "records",
        "topics",
    ]
    assert json.loads((folder / "archive.json").read_text()) == {"format": 2}


def test_an_old_archive_is_taken_over_without_its_records_being_written_again(tmp_path: Path) -> None:
    before = contents(old_archive(tmp_path))
    with pytest.raises(WrongArchiveError, match="history maintain ARCHIVE --execute` converts it in place"):
        Archive(tmp_path)
    assert_is_taken_over(Archive.create(tmp_path), before)
    assert_is_taken_over(Archive(tmp_path), before)


@pytest.mark.parametrize("step", ["make_empty", "describe", "_clear"])
def test_a_takeover_that_was_ended_is_done_by_the_next(
    tmp_path: Path, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(old_archive(tmp_path))

    def ended(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(f"kafka_assignors.history._takeover.{step}", ended)
        with pytest.raises(KeyboardInterrupt):
            Archive.create(tmp_path)
    archive = Archive.create(tmp_path)
    if step == "_clear":  # what an old version has left beside is in nobody's way
        assert {"checkpoint", "staging"} <= {path.name for path in tmp_path.iterdir()}
        assert archive.frontier() == {0: 8, 2: 77}
    else:
        assert_is_taken_over(archive, before)


def test_an_archive_that_another_process_has_just_taken_over_stays_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other is done, and has added a batch, between a look at the format and the lock."""
    old_archive(tmp_path)
    locked = _takeover._locked

    def late(folder: Path) -> AbstractContextManager[None]:
        monkeypatch.setattr(_takeover, "_locked", locked)
        other = Archive.create(folder)
        other.logs[0].commit(transactions=other.read_to({0: 99}))
        return locked(folder)

    monkeypatch.setattr(_takeover, "_locked", late)
    archive = Archive.create(tmp_path)
    assert archive.frontier() == Archive(tmp_path).frontier() == {0: 99, 2: 77}
    assert sum(file.rows or 0 for file in archive.files()) == 5 + 3 + 3


def test_batches_that_a_merge_stood_for_are_left_out(tmp_path: Path) -> None:
    records = old_archive(tmp_path) / "records" / "source=topic"
    write(records / "batch=0-merged-1" / "day=2026-03-01", range(5))
    journal = {"source": "records/source=topic", "new": "0-merged-1", "old": ["01234567-00000000"]}
    (tmp_path / "exchange.json").write_text(json.dumps(journal))
    archive = Archive.create(tmp_path)
    assert sorted(file.path.split("/")[1] for file in archive.files()) == [
        "batch=0",
        "batch=0-merged-1",
        "batch=01234567-00000001",
    ]


def test_an_old_archive_with_a_torn_file_stays_as_it_is(tmp_path: Path) -> None:
    (torn, *_) = old_archive(tmp_path).glob("records/source=topic/*/*/*.parquet")
    torn.write_bytes(b"PAR1")
    with pytest.raises(WrongArchiveError, match=f"cannot read {torn}.*move it out of the archive"):
        Archive.create(tmp_path)
    assert json.loads((tmp_path / "archive.json").read_text())["format"] == 1


@pytest.mark.parametrize("torn", ["exchange.json", "checkpoint/offsets/0", "topics/20260301T120000.parquet"])
def test_an_old_archive_whose_notes_are_torn_stays_as_it_is(torn: str, tmp_path: Path) -> None:
    (old_archive(tmp_path) / torn).write_text("")
    with pytest.raises(
        WrongArchiveError, match=f"cannot read {tmp_path}/{torn} .*: put it back from a backup"
    ):
        Archive.create(tmp_path)
    assert json.loads((tmp_path / "archive.json").read_text())["format"] == 1


def test_an_archive_that_an_old_version_writes_into_is_not_taken_over(tmp_path: Path) -> None:
    old_archive(tmp_path)
    script = (
        "import fcntl, sys\n"
        f"lock = open({str(tmp_path / 'lock')!r}, 'w'); fcntl.flock(lock, fcntl.LOCK_EX)\n"
        "print('writing', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "writing\n"
        with pytest.raises(ArchiveBusyError, match="of an older version is writing into"):
            Archive.create(tmp_path)
        other.kill()
        other.wait()
    assert Archive.create(tmp_path).frontier() == {0: 8, 2: 77}
