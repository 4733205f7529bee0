"""Archives as an attacker or a broken disk may leave them: an error that names the file, and nothing else."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_assignors._common.times import LAST_MS
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history import Engine, StoreError, _limits as limits, import_dump, info, read_table
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._archive_format import WrongArchiveError
from kafka_assignors.history._schemas import ARCHIVE
from kafka_assignors.history._store.location import locate
from kafka_assignors.history._store.reading import DamagedFileError
from kafka_assignors.history._tables.replaced import NoTablesError
from tests.support.archives import group, member
from tests.support.dumps import write_dump


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of three records; beside it a file that is none of its own."""
    folder = tmp_path_factory.mktemp("hostile")
    value = group(1, member("a", {"t": [0]}))
    key, noon_us = group_metadata_key("g"), 1_772_366_400_000_000
    write_dump(folder / "dump", [ArchivedRecord(key, value, 0, number, noon_us, None) for number in range(3)])
    import_dump(folder / "dump", Archive.create(folder / "whole"))
    shutil.copy(data_of(folder / "whole"), folder / "outside.parquet")
    return folder / "whole"


@pytest.fixture
def home(whole: Path) -> Any:
    """A copy of it, to be damaged."""
    copy = whole.with_name("copy")
    shutil.copytree(whole, copy)
    yield copy
    shutil.rmtree(copy)


def data_of(home: Path) -> Path:
    (file,) = (home / "records").rglob("*.parquet")
    return file


def log_of(home: Path, version: int = 1) -> Path:
    return home / "records" / "_delta_log" / f"{version:020}.json"


def change(log: Path, action: str, **more: Any) -> None:
    """Change an action of a commit."""
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    for line in lines:
        line.get(action, {}).update(more)
    log.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def read(home: Path) -> None:
    archive = Archive(home)
    info(archive, engine=Engine.local())
    for _ in archive.split(archive.files())(1).batches():  # all columns
        pass


ELSEWHERE = ["../../outside.parquet", "source=a/../../../outside.parquet", "HOME/outside.parquet"]
ELSEWHERE += ["file://HOME/outside.parquet", "s3://bucket/outside.parquet", "", "a//b", "a\0b", "a\\..\\b"]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_a_log_that_names_a_file_elsewhere_is_refused(home: Path, path: str) -> None:
    path = path.replace("HOME", str(home.parent))
    change(log_of(home), "add", path=path)
    with pytest.raises(StoreError) as refused:
        read(home)
    assert str(refused.value).startswith(
        f"cannot read the log of {home}/records: it names a file {path!r} of"
    )
    assert str(refused.value).endswith(", which is not in the table's folder")


def test_percent_signs_in_a_log_do_not_lead_elsewhere(home: Path) -> None:
    change(log_of(home), "add", path="%2E%2E/%2E%2E/outside.parquet")
    with pytest.raises(StoreError, match=re.escape(f"{home}/records/%2E%2E/%2E%2E/outside.parquet")):
        read(home)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        *(
            ({"partitionValues": {"source": source, "day": "2026-03-01"}}, "not in the table's folder")
            for source in ("x/../../../..", "\\", "a:b", "\0")
        ),
        *(({"size": size}, rf"a file 'source=.*\.parquet' of {size:,} bytes") for size in (-1, 2**62)),
        ({"size": 2**70}, "failed to parse 1180591620717411303424 as Int64"),
        ({"partitionValues": {"source": "a", "day": "x"}}, "Failed to parse value 'x' as 'date'"),
        ({"partitionValues": {}}, 'Found unmasked nulls for non-nullable StructArray field "source"'),
    ],
)
def test_a_log_with_wrong_values_is_named_with_the_reason(
    home: Path, more: dict[str, Any], reason: str
) -> None:
    change(log_of(home), "add", **more)
    with pytest.raises(StoreError, match=f"^cannot read the log of {home}/records: .*{reason}$"):
        read(home)


@pytest.mark.parametrize(
    "text", ['{"add":' * 100_000, "[" * 100_000, '{"add":{"path":"sou'], ids=["objects", "lists", "cut off"]
)
def test_a_commit_that_is_no_json_is_named_without_a_backtrace(home: Path, text: str) -> None:
    log_of(home).write_text(text)
    with pytest.raises(StoreError, match=f"cannot read the log of {home}/records: .*Json error: Truncated"):
        read(home)


@pytest.mark.parametrize(
    "statistics", ["[" * 100_000, '{"numRecords":-1,"minValues":{"timestamp":5}}'], ids=["lists", "wrong"]
)
def test_statistics_that_are_none_do_no_harm(home: Path, statistics: str) -> None:
    change(log_of(home), "add", stats=statistics)
    read(home)


@pytest.mark.parametrize("partitions", ["x", "-5", "0", "1000000000000", "٣"])
def test_a_number_of_partitions_that_is_none_is_refused(home: Path, partitions: str) -> None:
    change(log_of(home, 0), "metaData", configuration={"kafka_assignors.partitions": partitions})
    for ask in (read, lambda home: Archive(home).frontier()):
        with pytest.raises(WrongArchiveError) as refused:
            ask(home)
        assert str(refused.value) == (
            f"the log of {home}/records says that __consumer_offsets has {partitions!r} partitions"
        )


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, "{", '{"format": ' + "9" * 5000 + "}", "[]", "x" * 2**24],
    ids=["lists", "cut off", "a number", "a list", "large"],
)
def test_a_description_that_is_none_is_refused(home: Path, text: str) -> None:
    (home / "archive.json").write_text(text)
    with pytest.raises(WrongArchiveError, match=str(home)):
        read(home)


def test_of_a_small_file_no_more_is_read_than_it_may_have(home: Path) -> None:
    (home / "archive.json").write_text(" " * 2**24)
    text = locate(home).read_text("archive.json")
    assert text is not None
    assert len(text) == 2**20


def put(home: Path, column: str, values: pa.Array, **how: Any) -> Path:
    """Put other values into a column of the file that has the records."""
    file = data_of(home)
    rows = pq.read_table(file)
    pq.write_table(rows.set_column(rows.column_names.index(column), column, values), file, **how)
    return file


WRONG = {"partition": -5, "offset": -1, "count": -(2**31), "timestamp": 1000 * LAST_MS + 1000, "type": None}


@pytest.mark.parametrize(
    ("column", "values", "reason"),
    [
        *(
            (column, pa.array([wrong] * 3, ARCHIVE.field(column).type), f"{column} is {wrong or 'null'}\\)")
            for column, wrong in WRONG.items()
        ),
        ("key", pa.array([[{"a": 1}]] * 3), ".*Unsupported cast from list"),
        ("type", pa.array([2**40] * 3), ".*Integer value 1099511627776 not in range"),
        ("count", pa.array([1.5] * 3), ".*Float value 1.5"),
        ("timestamp", pa.array(["noon"] * 3), ".*Failed to parse string: 'noon'"),
    ],
)
def test_a_file_with_what_no_record_has_is_named(
    home: Path, column: str, values: pa.Array, reason: str
) -> None:
    file = put(home, column, values)
    with pytest.raises(DamagedFileError, match=f"^{re.escape(f'cannot read {file} (')}{reason}"):
        read(home)


@pytest.mark.parametrize(
    "text",
    ["[" * 200_000, "{", "[]", '{"format": 2}', '{"format": 2, "versions": 5}'],
    ids=["lists", "cut off", "a list", "less", "wrong"],
)
def test_a_list_of_tables_that_is_none_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "tables.json").write_text(text)
    with pytest.raises(NoTablesError, match=f"cannot read {tmp_path}/tables.json "):
        next(read_table(tmp_path, "records"))


def test_a_file_that_takes_more_memory_than_engines_write_at_once_is_named(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "LARGEST_GROUP", 2**20)
    bomb = pa.array([bytes(2**20)] * 3)
    file = put(home, "value", bomb, compression="zstd", use_dictionary=False)
    assert file.stat().st_size < 2**14
    with pytest.raises(DamagedFileError) as refused:
        read(home)
    said = f"cannot read {file} (a row group takes more than 1,048,576 bytes): "
    assert str(refused.value).startswith(said)
