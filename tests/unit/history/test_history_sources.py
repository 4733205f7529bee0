"""Which files of an archive each task reads, and that it reads all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._folders import open_folder
from kafka_assignors.history._schemas import ARCHIVE
from kafka_assignors.history._tables import sources
from kafka_assignors.history._tables.sources import Part, parts_of, read_parts
from tests.support.archives import batch_of, group, row

if TYPE_CHECKING:
    from pathlib import Path

KEY = group_metadata_key("g")


def write(folder: Path, place: str, offsets: range, *, row_group: int = 1000) -> None:
    rows = [row(KEY, group(1), offset=offset) for offset in offsets]
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_batches([batch_of(rows)]), path, row_group_size=row_group)


def offsets_in(folder: str, some: list[Part]) -> list[int]:
    return [offset for batch in read_parts(folder, some) for offset in batch["offset"].to_pylist()]


def test_files_come_in_the_order_of_the_batches_numbers(tmp_path: Path) -> None:
    for number in range(12):
        write(tmp_path, f"source=topic/batch={number}/day=2026-01-01/a.parquet", range(number, number + 1))
    found = parts_of(str(tmp_path), 2)
    assert [offset for some in found for offset in offsets_in(str(tmp_path), some)] == [*range(12)]
    assert [len(some) for some in found] == [3, 3, 3, 3]


def test_what_is_no_data_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, "batch=1/a.parquet", range(2))
    write(tmp_path, "batch=1/_metadata.parquet", range(2))
    write(tmp_path, "batch=1/.a.parquet", range(2))
    write(tmp_path, ".stversions/batch=1/a.parquet", range(2))
    write(tmp_path, "_temporary/0/a.parquet", range(2))
    (tmp_path / "batch=1" / "_SUCCESS").touch()
    (tmp_path / "batch=1" / ".a.parquet.crc").write_bytes(b"crc")
    assert parts_of(str(tmp_path), 2) == [[Part(str(tmp_path / "batch=1" / "a.parquet"))]]


def test_a_large_file_is_shared_out_by_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "a.parquet", range(100), row_group=30)
    size = (tmp_path / "a.parquet").stat().st_size
    folder = str(tmp_path)
    assert parts_of(folder, 1000) == [[Part(str(tmp_path / "a.parquet"))]]
    monkeypatch.setattr(sources, "_OPENING", 0)
    monkeypatch.setattr(sources, "_SMALLEST", size // 2)
    found = parts_of(folder, 1000)
    assert [offsets_in(folder, some) for some in found] == [[*range(60)], [*range(60, 100)]]


def test_batches_are_of_the_archives_columns_alone(tmp_path: Path) -> None:
    batch = batch_of([row(KEY, group(1), offset=5)])
    wider = pa.Table.from_batches([batch]).append_column("more", pa.array([1]))
    pq.write_table(wider, tmp_path / "a.parquet")
    (read,) = read_parts(str(tmp_path), [Part(str(tmp_path / "a.parquet"))])
    assert read.schema.names == ARCHIVE.names
    assert read.equals(batch)


def test_an_empty_folder_has_nothing_to_read_and_none_is_an_error(tmp_path: Path) -> None:
    assert parts_of(str(tmp_path), 2) == []
    with pytest.raises(FileNotFoundError, match="nowhere"):
        parts_of(str(tmp_path / "nowhere"), 2)


def test_batches_can_be_left_out(tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path, f"source=topic/batch={number}/a.parquet", range(number, number + 1))
    found = parts_of(str(tmp_path), 1, without=["0", "2"])
    assert [offset for some in found for offset in offsets_in(str(tmp_path), some)] == [1, 3]


@pytest.mark.parametrize("prefix", ["", "file:", "file://", "file://localhost"])
def test_a_folder_may_be_named_as_spark_takes_it(tmp_path: Path, prefix: str) -> None:
    folder = tmp_path / "a folder of 100%25"
    write(folder, "a.parquet", range(3))
    filesystem, path = open_folder(f"{prefix}{folder}")
    assert filesystem.type_name == "local"
    assert path == str(folder)
    (some,) = parts_of(f"{prefix}{folder}", 2)
    assert offsets_in(f"{prefix}{folder}", some) == [0, 1, 2]


@pytest.mark.parametrize("name", ["plain", "two words", "100%", "a%20b", "[ä]"])
def test_what_would_be_escaped_in_a_uri_stays_as_it_is_in_a_bucket(name: str) -> None:
    filesystem, path = open_folder(f"s3a://bucket/{name}?region=eu-central-1")
    assert (filesystem.type_name, path) == ("s3", f"bucket/{name}")
