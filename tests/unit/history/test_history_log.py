"""A Delta table's log on a folder of this machine."""

import json
import os
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from kafka_assignors.history._store.location import Location, WrongPlaceError, locate
from kafka_assignors.history._store.log import ConflictError, DataFile, Log, NoTableError

SCHEMA = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False, metadata={"comment": "its place"}),
        pa.field("timestamp", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("day", pa.date32(), nullable=False),
    ]
)
EARLY, LATE = datetime(2026, 1, 1, 6, tzinfo=UTC), datetime(2026, 1, 1, 7, microsecond=5, tzinfo=UTC)


@pytest.fixture
def where(tmp_path: Path) -> Location:
    return locate(tmp_path / "a table")


@pytest.fixture
def log(where: Location) -> Log:
    return Log.create(where, SCHEMA, partition_by=["day"], description="places")


def file(name: str, rows: int = 2) -> DataFile:
    return DataFile(
        f"day=2026-01-01/{name}",
        100,
        rows,
        {"day": "2026-01-01"},
        {"offset": 3, "timestamp": "2026-01-01T06:00:00.000000Z"},
        {"offset": 9, "timestamp": "2026-01-01T07:00:00.000005Z"},
    )


def setting(name: str, value: str) -> Callable[[Mapping[str, str]], Mapping[str, str]]:
    return lambda known: {} if known.get(name) == value else {name: value}


def names(log: Log) -> list[str]:
    return sorted(one.path.rpartition("/")[2] for one in log.files())


def test_a_new_table_is_empty_and_asks_readers_for_nothing_special(log: Log, where: Location) -> None:
    assert (log.version, log.files(), log.transaction("a")) == (0, [], None)
    table = DeltaTable(where.escaped)
    assert [field.name for field in table.schema().fields] == SCHEMA.names
    protocol = table.protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)
    assert not protocol.reader_features
    assert not protocol.writer_features
    assert (table.metadata().description, table.metadata().partition_columns) == ("places", ["day"])
    assert table.schema().fields[0].metadata == {"comment": "its place"}


@pytest.mark.parametrize(
    ("protocol", "shown"),
    [
        ({"minReaderVersion": 2, "minWriterVersion": 5}, "column mapping"),
        (
            {
                "minReaderVersion": 3,
                "minWriterVersion": 7,
                "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors"],
            },
            "deletionVectors",
        ),
    ],
)
def test_a_table_of_which_not_all_rows_of_a_file_count_is_refused(
    protocol: dict[str, Any], shown: str, log: Log, where: Location
) -> None:
    assert where.local is not None
    commit = where.local / "_delta_log" / f"{1:020}.json"
    commit.write_text(json.dumps({"protocol": protocol}))
    said = rf"{where} cannot be read: another program has given the table features \({shown}\)"
    for see in (lambda: Log(where), log.refresh):
        with pytest.raises(WrongPlaceError, match=said):
            see()


def test_of_two_that_make_a_table_at_once_the_later_is_told(
    where: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = DeltaTable.create

    def late(*wanted: Any, **more: Any) -> DeltaTable:
        create(*wanted, **more)
        return create(*wanted, **more)

    monkeypatch.setattr(DeltaTable, "create", late)
    with pytest.raises(ConflictError, match=f"another process has just created a table at {where}"):
        Log.create(where, SCHEMA, description="places")


def test_where_there_is_no_table_none_is_made(where: Location) -> None:
    with pytest.raises(NoTableError, match=f"there is no table at {where}"):
        Log(where)
    assert where.names() == []


def test_files_are_listed_with_what_is_told_of_them(log: Log, where: Location) -> None:
    log.commit(add=[file("a.parquet"), DataFile("day=2026-01-02/b.parquet", 7, None, {"day": "2026-01-02"})])
    for seen in (log, Log(where)):
        known, unknown = sorted(seen.files())
        assert (known.path, known.size, known.rows) == ("day=2026-01-01/a.parquet", 100, 2)
        assert known.values == {"day": "2026-01-01"}
        assert known.least == {"offset": 3, "timestamp": EARLY}
        assert known.greatest == {"offset": 9, "timestamp": LATE}
        assert unknown == DataFile("day=2026-01-02/b.parquet", 7, None, {"day": "2026-01-02"})
        assert [known.may_have("offset", at) for at in (2, 3, 9, 10)] == [False, True, True, False]
        spans = [(0, 2), (0, 3), (4, 5), (9, 12), (10, 12)]
        assert [known.may_have("offset", *span) for span in spans] == [False, True, True, True, False]
        assert unknown.may_have("offset", 10)


def test_a_log_is_seen_as_it_was_when_it_was_opened(log: Log, where: Location) -> None:
    early = Log(where)
    log.commit(add=[file("a")], transactions={"x": 1})
    log.commit(add=[file("b")], remove=log.files(), transactions={"x": 2})
    assert (log.version, names(log), log.transaction("x")) == (2, ["b"], 2)
    assert (early.version, names(early), early.transaction("x")) == (0, [], None)
    middle = Log(where, 1)
    assert (middle.version, names(middle), middle.transaction("x")) == (1, ["a"], 1)
    early.refresh()
    assert (early.version, names(early), early.transaction("x")) == (2, ["b"], 2)


def test_of_two_commits_that_give_a_name_its_number_one_is_done(log: Log, where: Location) -> None:
    late, folder = Log(where), where / "day=2026-01-01"
    for name in ("a", "b"):
        folder.write_text(name, "")
    log.commit(add=[file("a")], transactions={"x": 1})
    with pytest.raises(ConflictError, match=f"somebody else has committed to {where} meanwhile"):
        late.commit(add=[file("b")], transactions={"x": 1})
    assert (late.version, names(late)) == (0, [])
    assert names(Log(where)) == folder.names() == ["a"]


def test_commits_of_other_names_do_not_disturb_each_other(log: Log, where: Location) -> None:
    late = Log(where)
    assert late.transaction("x") is None
    log.commit(add=[file("a")], transactions={"x": 1})
    late.commit(add=[file("b")], transactions={"y": 5})
    assert (late.version, names(late)) == (2, ["a", "b"])
    assert (late.transaction("x"), late.transaction("y")) == (1, 5)


def test_numbers_are_known_that_others_give_right_after_a_commit(
    log: Log, where: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a capture would read again from where it was itself, and commit it without a conflict."""
    refresh = Log.refresh

    def after_another(late: Log) -> None:
        with monkeypatch.context() as real:
            real.setattr(Log, "refresh", refresh)
            Log(where).commit(add=[file("b")], transactions={"x": 2})
        refresh(late)

    monkeypatch.setattr(Log, "refresh", after_another)
    log.commit(add=[file("a")], transactions={"x": 1})
    assert (log.version, names(log), log.transaction("x")) == (2, ["a", "b"], 2)


def test_a_commit_that_finds_itself_there_is_done(
    log: Log, where: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a store's answer is lost, and the client asks again."""
    real = DeltaTable.create_write_transaction

    def twice(table: DeltaTable, *arguments: object, **named: object) -> None:
        real(DeltaTable(where.escaped), *arguments, **named)  # type: ignore[arg-type]
        real(table, *arguments, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as lost:
        lost.setattr(DeltaTable, "create_write_transaction", twice)
        log.commit(add=[file("a")], transactions={"x": 1})
    assert (log.version, names(log), log.transaction("x")) == (1, ["a"], 1)


def test_properties_are_changed_with_those_that_others_have_changed_meanwhile(
    log: Log, where: Location
) -> None:
    log.change_properties(setting("kafka_assignors.topic", "t"))
    late, seen = Log(where), []
    log.change_properties(setting("kafka_assignors.cluster_id", "c"))
    assert log.properties["kafka_assignors.cluster_id"] == "c"
    assert log.properties["kafka_assignors.topic"] == "t"

    def changed(known: Mapping[str, str]) -> Mapping[str, str]:
        seen.append(known.get("kafka_assignors.cluster_id"))
        return setting("kafka_assignors.cluster_id", "d")(known)

    late.change_properties(changed)
    assert seen == [None, "c", "d"]
    assert Log(where).properties["kafka_assignors.cluster_id"] == "d"


def test_numbers_of_names_survive_a_checkpoint_and_the_commits_before_it(log: Log, where: Location) -> None:
    for number in range(5):
        log.commit(transactions={"x": number, f"once-{number}": 7})
    log.checkpoint()
    log.commit(transactions={"x": 10})
    (where.local / "_delta_log" / f"{2:020}.json").unlink()  # type: ignore[operator]
    opened = Log(where)
    assert [opened.transaction(name) for name in ("x", "once-0", "once-4", "y")] == [10, 7, 7, None]
    log.commit(transactions={"x": 11})
    opened.refresh()
    assert [opened.transaction(name) for name in ("x", "once-0")] == [11, 7]


def test_files_that_nobody_needs_are_deleted_when_they_are_old(log: Log, where: Location) -> None:
    folder = where.local
    assert folder is not None
    (folder / "day=2026-01-01").mkdir()
    for name in ("left", "being written", "a"):
        (folder / "day=2026-01-01" / f"{name}.parquet").write_bytes(b"")
    log.commit(add=[file("a.parquet")])
    for name in ("left", "a"):
        os.utime(folder / "day=2026-01-01" / f"{name}.parquet", (time.time() - 7300,) * 2)
    assert log.vacuum(2, dry_run=True) == ["day=2026-01-01/left.parquet"]
    assert (folder / "day=2026-01-01" / "left.parquet").exists()
    assert log.vacuum(2, dry_run=False) == ["day=2026-01-01/left.parquet"]
    assert sorted(path.name for path in (folder / "day=2026-01-01").iterdir()) == [
        "a.parquet",
        "being written.parquet",
    ]


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_clean_up_knows_files_that_others_have_committed_since(
    log: Log, where: Location, dry_run: bool
) -> None:
    early = Log(where)
    folder = where / "day=2026-01-01"
    folder.write_text("a.parquet", "")
    log.commit(add=[file("a.parquet")])
    assert folder.local is not None
    os.utime(folder.local / "a.parquet", (time.time() - 7300,) * 2)
    assert early.vacuum(2, dry_run=dry_run) == []
    assert folder.names() == ["a.parquet"]


@pytest.mark.parametrize(
    ("named", "hours", "then"),
    [
        (None, 168, None),
        (None, 169, "interval 169 hours"),
        ("interval 2 weeks", 336, "interval 2 weeks"),
        ("interval 2 weeks", 337, "interval 337 hours"),
        ("INTERVAL 1 DAY 12 HOURS", 36, "INTERVAL 1 DAY 12 HOURS"),
        ("INTERVAL 1 DAY 12 HOURS", 37, "interval 37 hours"),
        ("interval 1 month", 9000, "interval 1 month"),
        ("interval 9999999999 weeks", 9000, "interval 9999999999 weeks"),
    ],
)
def test_removed_files_are_named_for_as_long_as_wished_and_no_shorter_than_before(
    log: Log, where: Location, named: str | None, hours: int, then: str | None
) -> None:
    name = "delta.deletedFileRetentionDuration"
    if named is not None:
        Log(where).change_properties(setting(name, named))
        log.refresh()
    log.keep_removed(hours)
    assert Log(where).properties.get(name) == then
    protocol = DeltaTable(where.escaped).protocol()
    assert (protocol.min_reader_version, protocol.min_writer_version) == (1, 2)


def test_the_log_says_what_is_added_and_whether_it_is_new(log: Log, where: Location) -> None:
    log.commit(add=[file("a")])
    log.commit(add=[file("b")], remove=log.files(), is_new=False)
    text = where.read_text(f"_delta_log/{2:020}.json")
    assert text is not None
    actions = [json.loads(line) for line in text.splitlines()]
    assert {
        (kind, one[kind]["dataChange"]) for one in actions for kind in one if kind in ("add", "remove")
    } == {
        ("add", False),
        ("remove", False),
    }


def test_the_store_is_asked_again_for_numbers_only_if_there_is_a_new_version(
    log: Log, where: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a continuous capture would ask for the number of each partition at each look."""
    asked = []
    ask = DeltaTable.transaction_version

    def transaction_version(table: DeltaTable, name: str) -> int | None:
        asked.append(name)
        return ask(table, name)

    monkeypatch.setattr(DeltaTable, "transaction_version", transaction_version)
    for _ in range(3):
        log.refresh()
        assert log.transaction("x") is None
    assert asked == ["x"]
    Log(where).commit(transactions={"x": 5})
    log.refresh()
    assert log.transaction("x") == 5
    assert asked == ["x", "x"]


def test_properties_that_are_set_after_others_have_committed_show_what_they_have_committed(
    log: Log, where: Location
) -> None:
    assert names(log) == []
    Log(where).commit(add=[file("a")])
    log.change_properties(setting("ours", "1"))
    assert names(log) == ["a"]
