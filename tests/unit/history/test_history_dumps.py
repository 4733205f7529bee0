"""Which files a dump is of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka_assignors.history._dump import WrongDumpError, dump_files

if TYPE_CHECKING:
    from pathlib import Path


def make(folder: Path, *names: str) -> list[Path]:
    files = [folder / name for name in names]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")
    return files


def test_a_folder_is_all_its_files_of_one_kind(tmp_path: Path) -> None:
    lines = make(tmp_path, "__consumer_offsets/0.jsonl", "a.ndjson", "b.json.gz")
    make(tmp_path, "_SUCCESS", ".a.crc", "read me.txt")
    assert dump_files(tmp_path) == lines


def test_a_file_is_a_dump_whatever_it_is_called(tmp_path: Path) -> None:
    (file,) = make(tmp_path, "offsets-0")
    assert dump_files(file) == [file]


def test_the_log_of_a_delta_table_has_no_records(tmp_path: Path) -> None:
    (data, *_) = make(tmp_path, "day=1/a.parquet", "_delta_log/0.json", "_delta_log/1.checkpoint.parquet")
    assert dump_files(tmp_path) == [data]


@pytest.mark.parametrize("name", ["__consumer_offsets-0.jsonl", ".a.parquet"])
def test_a_file_that_spark_does_not_read_is_refused(tmp_path: Path, name: str) -> None:
    (file,) = make(tmp_path, name)
    for dump in (file, tmp_path):
        with pytest.raises(WrongDumpError) as refused:
            dump_files(dump)
        assert str(refused.value) == (
            f"Spark does not read {file}, as its name begins with {name[0]}: rename it"
        )


@pytest.mark.parametrize("name", ["b.jsonl", "_b.json", "c/b.ndjson.gz"])
def test_a_folder_with_files_of_both_kinds_is_refused(tmp_path: Path, name: str) -> None:
    parquet, lines = make(tmp_path, "a.parquet", name)
    with pytest.raises(WrongDumpError) as refused:
        dump_files(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path} has files of Parquet and of JSON, such as {parquet} and {lines}: import them from a"
        " folder for each kind"
    )


def test_a_folder_without_such_files_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "a.csv")
    with pytest.raises(WrongDumpError) as refused:
        dump_files(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path} is neither a file nor a folder with files of .parquet, .jsonl, .json or .ndjson"
    )
