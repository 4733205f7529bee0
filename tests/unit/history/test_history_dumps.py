"""Dumps that kafka-console-consumer prints, and what is none."""

import gzip
import re
from pathlib import Path
from typing import Any

import pytest

from kafka_assignors._cli.main import main
from kafka_assignors._common.times import LAST_MS
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history import _dump
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._dump import WrongDumpError, import_dump
from kafka_assignors.history._store.reading import DamagedFileError
from tests.support.archives import group, member
from tests.support.dumps import printed_record

NOON_MS = 1_772_366_400_000  # 2026-03-01 12:00 UTC
HOUR_MS = 3_600_000
COMMIT = b"\0\1\0\1g\0\1t\0\0\0\0"
VALUE = group(1, member("a", {"t": [0]}))


def line(offset: int, key: bytes | None, value: bytes | None = VALUE, **more: int) -> bytes:
    return printed_record(key, value, offset=offset, **{"time_ms": NOON_MS + offset * HOUR_MS} | more)


def write(path: Path, *lines: bytes) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def rows_of(archive: Archive) -> dict[tuple[int, int], Any]:
    """By partition and offset: type, count, key, value and milliseconds since noon."""
    rows = [row for batch in archive.split(archive.files())(1).batches() for row in batch.to_pylist()]
    return {
        (row["partition"], row["offset"]): (
            *(row[name] for name in ("type", "count", "key", "value")),
            round(row["timestamp"].timestamp() * 1000) - NOON_MS,
        )
        for row in rows
    }


@pytest.fixture
def archive(tmp_path: Path) -> Archive:
    return Archive.create(tmp_path / "archive")


@pytest.mark.core
def test_a_dump_adds_what_the_archive_lacks_and_again_nothing(archive: Archive, tmp_path: Path) -> None:
    g, h = group_metadata_key("g"), group_metadata_key("h")
    import_dump(write(tmp_path / "older", line(0, g), line(1, g)), archive)
    lines = [
        line(1, g),
        line(2, b"\0\3\0\1g", None),
        line(2, b"\0\3\0\1g", None),
        line(3, None, b"v\t\n\\\0\xff"),
        line(4, COMMIT),
        line(6, COMMIT),
        line(7, b"\xff\xfe"),
        line(8, b"\0\x63"),
        line(0, g, partition=1, time_ms=NOON_MS + 123),
    ]
    dump = write(tmp_path / "dump", *lines)
    first = import_dump(dump, archive)
    assert (first.known, first.rejected) == (1, 2)
    assert dict(first.counts.kept) == {"ConsumerGroupMetadata": 1, "no type": 2, "GroupMetadata": 1}
    assert dict(first.counts.counted) == {"OffsetCommit": 2, "type 99": 1}
    assert rows_of(archive) == {
        (0, 0): (2, 1, g, VALUE, 0),
        (0, 1): (2, 1, g, VALUE, HOUR_MS),
        (0, 2): (3, 1, b"\0\3\0\1g", None, 2 * HOUR_MS),
        (0, 3): (-1, 1, None, b"v\t\n\\\0\xff", 3 * HOUR_MS),
        (0, 6): (1, 2, None, None, 6 * HOUR_MS),
        (0, 7): (-1, 1, b"\xff\xfe", VALUE, 7 * HOUR_MS),
        (0, 8): (99, 1, None, None, 8 * HOUR_MS),
        (1, 0): (2, 1, g, VALUE, 123),
    }

    second = import_dump(dump, archive)
    assert (second.source, second.counts.read, second.known) == (first.source, 0, 5)
    third = import_dump(write(tmp_path / "longer", *lines, line(9, h)), archive)
    assert (dict(third.counts.kept), third.known) == ({"GroupMetadata": 1}, 5)
    assert (0, 9) in rows_of(archive)


def test_a_damaged_file_is_not_passed_over_as_its_records_would_be_added_again(
    archive: Archive, tmp_path: Path
) -> None:
    key = group_metadata_key("g")
    import_dump(write(tmp_path / "dump", line(0, key)), archive)
    (file,) = (tmp_path / "archive" / "records").glob("source=*/*/*.parquet")
    good = file.read_bytes()
    longer = write(tmp_path / "longer", line(0, key), line(1, key))
    file.write_bytes(b"damaged")
    with pytest.raises(DamagedFileError, match=re.escape(str(file))):
        import_dump(longer, Archive(tmp_path / "archive", skip_bad=True))
    file.write_bytes(good)
    assert dict(import_dump(longer, archive).counts.kept) == {"GroupMetadata": 1}
    assert {*rows_of(archive)} == {(0, 0), (0, 1)}


def test_a_dump_may_be_compressed_and_is_read_in_parts(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_dump, "_AT_ONCE", 300)
    key = group_metadata_key("ünïcode")
    (tmp_path / "dump.gz").write_bytes(gzip.compress(b"".join(line(n, key) for n in range(5))))
    assert dict(import_dump(tmp_path / "dump.gz", archive).counts.kept) == {"GroupMetadata": 5}
    assert [*rows_of(archive)] == [(0, n) for n in range(5)]


def test_records_that_nobody_can_decode_are_counted_as_they_are_imported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [line(0, group_metadata_key("g")), line(1, b"\0\2?", b"?"), line(2, group_metadata_key("g"), b"")]
    dump = write(tmp_path / "dump", *lines)
    assert main(["history", "import", str(tmp_path / "archive"), str(dump)]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  GroupMetadata  3  kept",
        "2 of these cannot be decoded: history tables has why, in the table rejected",
    ]


GOOD = line(1, group_metadata_key("g"))


@pytest.mark.parametrize(
    "wrong",
    [
        b"a letter\n",
        b"\n",
        GOOD[:-1],  # cut off
        GOOD.replace(b"Partition:0", b"Partition:-5"),
        GOOD.replace(b"Partition:0", b"Partition:2147483648"),
        GOOD.replace(b"Offset:1", b"Offset:-1"),
        GOOD.replace(b"Offset:1", b"Offset:9223372036854775808"),
        GOOD.replace(b"Time:", b"Time:-"),
        GOOD.replace(b"Time:", b"Time:1000"),  # microseconds
        line(1, b"g", time_ms=LAST_MS + 1),
        GOOD.replace(b"\\x00", b"\\u0000"),
        GOOD.replace(b"\\x00", b"\0"),
        GOOD.replace(b"\\x00", b"\\x0"),
        pytest.param(b'{"key":' * 100_000 + b"\n", id="nested"),
    ],
)
def test_a_dump_with_a_line_that_is_no_record_adds_nothing(
    archive: Archive, tmp_path: Path, wrong: bytes
) -> None:
    dump = write(tmp_path / "dump", line(0, group_metadata_key("g")), wrong)
    with pytest.raises(WrongDumpError) as refused:
        import_dump(dump, archive)
    shown = wrong[:80].decode(errors="replace")
    assert str(refused.value) == (
        f"cannot read {dump}, line 2: {shown!r} is no record as kafka-console-consumer prints it with the"
        " options that docs/history.md names"
    )
    assert (rows_of(archive), [*(tmp_path / "archive" / "records").rglob("*.parquet")]) == ({}, [])


def test_the_last_time_partition_and_offset_are_taken(archive: Archive, tmp_path: Path) -> None:
    last = line(2**63 - 1, group_metadata_key("g"), partition=2**31 - 1, time_ms=LAST_MS)
    assert import_dump(write(tmp_path / "dump", last), archive).counts.read == 1
    assert [*rows_of(archive)] == [(2**31 - 1, 2**63 - 1)]


def test_a_line_that_does_not_end_takes_no_more_memory_than_a_record(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_dump, "_LONGEST", 2**20)
    bomb = tmp_path / "bomb.gz"
    bomb.write_bytes(gzip.compress(GOOD + b"0" * 2**27))
    with pytest.raises(WrongDumpError, match=f"cannot read {bomb}, line 2: '0000"):
        import_dump(bomb, archive)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("torn.gz", gzip.compress(GOOD)[:-12], "Compressed file ended before the end-of-stream marker"),
        ("plain.gz", GOOD, "Not a gzipped file"),
        ("bad.gz", gzip.compress(GOOD)[:10] + b"\xff" * 20, "Error -3 while decompressing"),
    ],
    ids=["torn", "plain", "bad"],
)
def test_a_compressed_dump_that_is_damaged_is_named(
    archive: Archive, tmp_path: Path, name: str, content: bytes, reason: str
) -> None:
    dump = write(tmp_path / name, content)
    with pytest.raises(WrongDumpError, match=rf"cannot read {dump}, line \d: {reason}"):
        import_dump(dump, archive)
    assert rows_of(archive) == {}


def test_what_is_no_file_is_no_dump(archive: Archive, tmp_path: Path) -> None:
    for path, reason in ((tmp_path / "nothing", "No such file or directory"), (tmp_path, "Is a directory")):
        with pytest.raises(WrongDumpError, match=f"cannot read {path}: {reason}"):
            import_dump(path, archive)


def test_an_import_needs_no_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = write(tmp_path / "dump", GOOD)
    with pytest.raises(SystemExit, match="2"):
        main(["history", "import", str(tmp_path / "a"), str(dump), "--master", "local[1]"])
    assert capsys.readouterr().err.endswith("--master: import needs no Spark\n")
    assert not (tmp_path / "a").exists()
