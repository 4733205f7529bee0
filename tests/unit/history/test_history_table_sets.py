"""Tables that are replaced together: all of them or none, whoever reads them, whatever fails between."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kafka_assignors.history._store.location import Location, StoreError, WrongPlaceError, locate
from kafka_assignors.history._store.log import ConflictError, DataFile, Log
from kafka_assignors.history._store.writing import TaskFiles
from kafka_assignors.history._tables.replaced import (
    NoTablesError,
    TablesBusyError,
    read_versions,
    replacing,
)
from tests.support.delta_tables import files_of, versions_of

SCHEMA = pa.schema(
    [pa.field("offset", pa.int64(), nullable=False), pa.field("time", pa.timestamp("us", tz="UTC"))]
)
TABLES = dict.fromkeys("abc", SCHEMA)
MANIFEST = "tables.json"


def opened(folder: Path) -> AbstractContextManager[dict[str, list[DataFile]]]:
    return replacing(locate(folder), MANIFEST, TABLES)


def replace(folder: Path, number: int) -> None:
    with opened(folder) as tables:
        tables.update(written(folder, number))


def written(folder: Path, number: int) -> dict[str, list[DataFile]]:
    """A file of each table, with one row."""
    with TaskFiles(locate(folder), f"part-{number}") as files:
        for name in TABLES:
            files.write(
                name, SCHEMA, pa.RecordBatch.from_pylist([{"offset": number, "time": number}], SCHEMA)
            )
    return {name: [file] for name, file in files.written.items()}


def newest(folder: Path) -> dict[str, list[str]]:
    """What other engines see: of each table the files of its newest version."""
    for name in TABLES:
        assert all(path.exists() for files in versions_of(folder / name) for path in files)
    return {name: [path.name for path in files_of(folder / name)] for name in TABLES}


def all_of(number: int) -> dict[str, list[str]]:
    return {name: [f"part-{number}.parquet"] for name in TABLES}


def told(folder: Path) -> dict[str, list[str]]:
    """What the manifest says: of each table the files of its version."""
    return {
        name: [file.path for file in Log(locate(folder) / name, version).files()]
        for name, version in read_versions(locate(folder), MANIFEST).items()
    }


@contextmanager
def failing_at(where: str, error: BaseException) -> Iterator[None]:
    """Let the commit to a table fail once, or the manifest not be written."""
    commit, left = Log.commit, [error]

    def once(log: Log, **wanted: Any) -> None:
        if log.where.uri.endswith(f"/{where}") and left:
            failed = left.pop()
            if not isinstance(failed, ConflictError):
                raise failed
            commit(Log(log.where), transactions=wanted["transactions"])
        commit(log, **wanted)

    def no_text(*_: object) -> None:
        raise error

    with pytest.MonkeyPatch.context() as patched:
        if where == MANIFEST:
            patched.setattr(Location, "write_text", no_text)
        else:
            patched.setattr(Log, "commit", once)
        yield


def test_a_set_is_replaced_by_the_next(tmp_path: Path) -> None:
    for number in range(3):
        replace(tmp_path, number)
        assert newest(tmp_path) == all_of(number)
        assert told(tmp_path) == all_of(number)
        # Files of the sets before stay for who reads them.
        assert len([*tmp_path.rglob("part-*.parquet")]) == 3 * (number + 1)


@pytest.mark.parametrize(
    ("where", "error"),
    [
        *(
            (where, error)
            for where in (*TABLES, MANIFEST)
            for error in (StoreError("full"), KeyboardInterrupt())
        ),
        *((where, ConflictError("late")) for where in TABLES),
    ],
)
def test_if_one_cannot_be_replaced_the_manifest_names_the_old_ones(
    tmp_path: Path, where: str, error: BaseException
) -> None:
    replace(tmp_path, 1)
    expected = TablesBusyError if isinstance(error, ConflictError) else type(error)
    with failing_at(where, error), pytest.raises(expected):
        replace(tmp_path, 2)
    assert told(tmp_path) == all_of(1)
    assert len([*tmp_path.rglob("part-1.parquet")]) == len(TABLES)
    # What a log may have named stays for a while, and nothing else.
    refused = isinstance(error, ConflictError)
    assert {path.parent.name for path in tmp_path.rglob("part-2.parquet")} == {
        name for name in TABLES if name < where or (name == where and not refused) or where == MANIFEST
    }
    replace(tmp_path, 3)
    assert newest(tmp_path) == all_of(3)


def test_the_first_set_is_not_there_before_it_is_whole(tmp_path: Path) -> None:
    with failing_at("b", StoreError("full")), pytest.raises(StoreError):
        replace(tmp_path, 1)
    with pytest.raises(NoTablesError, match=r"it has no tables\.json"):
        read_versions(locate(tmp_path), MANIFEST)
    replace(tmp_path, 2)
    assert newest(tmp_path) == all_of(2)


def test_of_two_at_once_one_is_whole_and_the_other_says_so(tmp_path: Path) -> None:
    replace(tmp_path, 1)
    refused = pytest.raises(TablesBusyError, match=r"another run has put its tables into .* meanwhile")
    with refused, opened(tmp_path) as early:
        replace(tmp_path, 2)
        early.update(written(tmp_path, 3))
    assert newest(tmp_path) == all_of(2)
    assert told(tmp_path) == all_of(2)
    assert not (tmp_path / "a" / "part-3.parquet").exists()


@pytest.mark.parametrize("after", [1, 2])
def test_one_that_opens_them_while_another_replaces_them_wins_or_loses_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """The other begins when the first has replaced some, and is done before the first goes on."""
    replace(tmp_path, 1)
    commit, done = Log.commit, [0]

    def then_another(log: Log, **wanted: Any) -> None:
        done[0] += 1
        if done[0] == after + 1:
            replace(tmp_path, 3)
        commit(log, **wanted)

    monkeypatch.setattr(Log, "commit", then_another)
    with pytest.raises(TablesBusyError):
        replace(tmp_path, 2)
    assert newest(tmp_path) == all_of(3)
    assert told(tmp_path) == all_of(3)


def test_tables_of_another_format_are_refused(tmp_path: Path) -> None:
    locate(tmp_path).write_text(MANIFEST, json.dumps({"format": 1, "folder": "run-1"}))
    with pytest.raises(NoTablesError, match="are of format 1, and only 2 is known: make them again"):
        read_versions(locate(tmp_path), MANIFEST)


@pytest.mark.parametrize("name", ["thesis.odt", "part-00000-c2d8-c000.parquet", ".hidden", "2025/a.jpg"])
def test_where_somebody_s_own_files_are_no_table_is_made(tmp_path: Path, name: str) -> None:
    own = tmp_path / "b" / name
    own.parent.mkdir(parents=True)
    own.write_text("mine")
    shown = name.partition("/")[0]
    with pytest.raises(WrongPlaceError) as refused, opened(tmp_path):
        pass
    assert str(refused.value) == (
        f"{tmp_path}/b has files of others, such as {shown}, which clean-ups of a table there would"
        " delete: name another folder, or move these files elsewhere"
    )
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [own]


@pytest.mark.parametrize("within", ["", "day=2026-03-01"])
def test_no_table_is_made_in_the_folder_of_another_whose_clean_ups_would_delete_it(
    tmp_path: Path, within: str
) -> None:
    replace(tmp_path, 1)
    there = sorted(tmp_path.rglob("*"))
    with (
        pytest.raises(WrongPlaceError, match=f"is in the folder of the table {tmp_path}/a, whose clean-ups"),
        opened(tmp_path / "a" / within),
    ):
        pass
    assert sorted(tmp_path.rglob("*")) == there


def test_a_table_of_somebody_else_is_not_replaced(tmp_path: Path) -> None:
    Log.create(locate(tmp_path / "b"), SCHEMA, description="orders")
    with pytest.raises(WrongPlaceError) as refused, opened(tmp_path):
        pass
    assert str(refused.value) == (
        f"{tmp_path}/b is a table already, and another one (orders): name another folder"
    )


def test_a_file_of_the_manifest_s_name_that_is_no_manifest_stays(tmp_path: Path) -> None:
    for text in ("kitchen, garden", '{"kitchen": 4}', "[]"):
        (tmp_path / MANIFEST).write_text(text)
        with pytest.raises(WrongPlaceError) as refused, opened(tmp_path):
            pass
        assert str(refused.value) == (
            f"{tmp_path}/{MANIFEST} is a file of others, which the tables would replace: name another folder,"
            " or move it elsewhere"
        )


def test_what_a_first_run_has_left_that_was_ended_is_in_nobody_s_way(tmp_path: Path) -> None:
    left = [f"part-{4:032x}.parquet", f"part-00001-{5:032x}.parquet", "_delta_log"]
    for name in left[:2]:
        (tmp_path / "a").mkdir(exist_ok=True)
        (tmp_path / "a" / name).write_text("")
    (tmp_path / "a" / "_delta_log").mkdir()
    replace(tmp_path, 1)
    assert newest(tmp_path) == all_of(1)
