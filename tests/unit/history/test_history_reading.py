"""Which files of a table each task reads, and that it reads all of them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history import _limits
from kafka_assignors.history._schemas import ARCHIVE, ARCHIVED
from kafka_assignors.history._store.location import locate
from kafka_assignors.history._store.log import DataFile
from kafka_assignors.history._store.reading import DamagedFileError, Part, parts_of, read_parts
from tests.support.archives import batch_of, group, row

KEY = group_metadata_key("g")
VALUES = {"source": "topic", "day": "2026-01-01"}

_SINK = pa.BufferOutputStream()
pq.write_table(pa.table({"a": [1, 2]}), _SINK)
FOREIGN = bytes(_SINK.getvalue())
"""A Parquet file of somebody else's."""


def write(folder: Path, name: str, offsets: range, *, row_group: int = 1000) -> DataFile:
    rows = [row(KEY, group(1), offset=offset) for offset in offsets]
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_batches([batch_of(rows)]), path, row_group_size=row_group)
    return DataFile(name, path.stat().st_size, len(rows), VALUES)


def offsets_in(folder: Path, some: list[Part], **how: Any) -> list[int]:
    batches = read_parts(locate(folder), some, ARCHIVE, **how)
    return [offset for batch in batches for offset in batch["offset"].to_pylist()]


def test_files_come_in_the_order_of_the_batches_numbers(tmp_path: Path) -> None:
    files = [
        write(tmp_path, f"day=2026-01-01/{number:08d}-a.parquet", range(number, number + 1))
        for number in range(12)
    ]
    found = parts_of(reversed(files), 2)
    assert [offset for some in found for offset in offsets_in(tmp_path, some)] == [*range(12)]
    assert [len(some) for some in found] == [3, 3, 3, 3]


def test_a_large_file_is_shared_out_by_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path, "a.parquet", range(100), row_group=30)
    assert parts_of([file], 1000) == [[Part(file)]]
    monkeypatch.setattr(_limits, "SMALLEST_SHARE", -(-file.size // 2))
    found = parts_of([file], 1000)
    assert [offsets_in(tmp_path, some) for some in found] == [[*range(60)], [*range(60, 100)]]
    monkeypatch.setattr(_limits, "SMALLEST_SHARE", file.size // 6)
    read = [offsets_in(tmp_path, some) for some in parts_of([file], 1000)]
    assert [some for some in read if some] == [[*range(at, min(at + 30, 100))] for at in range(0, 100, 30)]


def test_batches_have_the_columns_that_are_asked_for_and_those_of_the_partition(
    tmp_path: Path,
) -> None:
    batch = batch_of([row(KEY, group(1), offset=5)])
    wider = pa.Table.from_batches([batch]).drop_columns(["leader_epoch"]).append_column("more", pa.array([1]))
    pq.write_table(wider, tmp_path / "a.parquet")
    (read,) = read_parts(locate(tmp_path), [Part(DataFile("a.parquet", 9, 1, VALUES))], ARCHIVED)
    assert read.schema.equals(ARCHIVED)
    assert (
        read.select(ARCHIVE.names).drop_columns(["leader_epoch"]).equals(batch.drop_columns(["leader_epoch"]))
    )
    assert read.select(["leader_epoch", "source"]).to_pylist() == [{"leader_epoch": None, "source": "topic"}]
    assert str(read["day"][0]) == "2026-01-01"


DAMAGE: dict[str, tuple[Callable[[bytes], bytes] | None, str]] = {
    "truncated": (lambda good: good[: len(good) // 2], "magic bytes not found"),
    "overwritten": (lambda good: good[:4] + bytes(len(good) // 2) + good[4 + len(good) // 2 :], ""),
    "empty": (lambda _: b"", "0 bytes"),
    "text": (lambda _: b"dear all, this is no Parquet", "magic bytes not found"),
    "foreign": (lambda _: FOREIGN, "it has no column type, count, partition, offset, timestamp"),
    "gone": (None, "No such file"),
}
"""What becomes of a file, and what is said of it."""


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_file_is_named_and_can_be_passed_over(tmp_path: Path, damage: str) -> None:
    files = [write(tmp_path, f"{number}.parquet", range(number, number + 1)) for number in range(3)]
    file, (change, why) = tmp_path / "1.parquet", DAMAGE[damage]
    good = file.read_bytes()
    file.unlink()
    if change is not None:
        file.write_bytes(change(good))
    some = [part for some in parts_of(files, 1) for part in some]
    with pytest.raises(DamagedFileError) as refused:
        offsets_in(tmp_path, some)
    assert str(refused.value).startswith(f"cannot read {file} (")
    assert why in str(refused.value)
    assert str(refused.value).endswith(
        "): put it back from a backup, or leave it out with --skip-bad (capture and import need it)"
    )
    assert offsets_in(tmp_path, some, skip_bad=True) == [0, 2]
    large = [file._replace(size=2**30) for file in files]
    some = [part for some in parts_of(large, 1) for part in some]
    assert offsets_in(tmp_path, some, skip_bad=True) == [0, 2]
