"""Reading a small archive without Spark, where files go away meanwhile."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors._common.times import moment
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history import _engine, _spark
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._engine import Engine, TooLargeError
from kafka_assignors.history._info import info
from kafka_assignors.history._metrics import metrics
from kafka_assignors.history._records import Selection
from kafka_assignors.history._store.reading import CleanedUpError
from tests.support.archives import batch_of, row
from tests.support.group_histories import START_US
from tests.support.local_archives import DAY, story

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from kafka_assignors.history._records import Order
    from kafka_assignors.history._store.reading import Split
    from kafka_assignors.history._store.writing import MakeFiles, Outcome, Task


@pytest.mark.parametrize("skip_bad", [False, True])
@pytest.mark.parametrize("read", [info, metrics])
def test_a_clean_up_meanwhile_is_told_and_never_passed_over(
    read: Callable[[Archive], Any], skip_bad: bool, tmp_path: Path
) -> None:
    story(tmp_path)
    archive = Archive(tmp_path, skip_bad=skip_bad)
    removed = archive.files()[0]
    Archive(tmp_path).logs[0].commit(remove=[removed])
    (tmp_path / "records" / removed.path).unlink()
    with pytest.raises(CleanedUpError, match="a clean-up has deleted it since this began"):
        read(archive)


def test_what_kip848_groups_begin_with_counts_for_what_is_small(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive, since = story(tmp_path), moment(START_US + (2 * DAY - 60) * 1_000_000)
    later = sum(file.size for file in archive.files(since=since))
    both = {file.path: file.size for file in archive.files_of(Selection(since=since))}
    assert sum(both.values()) > later
    wanted: list[bool] = []

    def running(_: str | None, *, progress: bool) -> AbstractContextManager[None]:
        wanted.append(progress)
        return nullcontext()

    def run(_: None, split: Split, task: Task, files: MakeFiles | None, order: Order | None) -> Outcome:
        return Engine.local().run(split, task, files, order=order)

    monkeypatch.setattr(_spark, "running_spark", running)
    monkeypatch.setattr(_spark, "run", run)
    for limit in (sum(both.values()), sum(both.values()) - 1, later):
        monkeypatch.setattr(_engine, "SMALL", limit)
        metrics(archive, since=since)
    assert wanted == [True, True]


@pytest.mark.parametrize("name", ["[ab]*?", "[", "a*"])
def test_a_group_whose_name_is_a_pattern_is_chosen_by_its_name(name: str) -> None:
    keys = [group_metadata_key(one) for one in (name, "other")]
    rows = batch_of([row(key, b"", offset=number) for number, key in enumerate(keys)])
    (found,) = Selection(groups=[name]).of([rows])
    assert found["group"].to_pylist() == [name]


def test_one_pattern_may_be_a_text() -> None:
    keys = [group_metadata_key(one) for one in ("orders-1", "other")]
    rows = batch_of([row(key, b"", offset=number) for number, key in enumerate(keys)])
    (found,) = Selection(groups="orders-*").of([rows])
    assert found["group"].to_pylist() == ["orders-1"]


def test_records_that_take_too_much_room_are_not_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = story(tmp_path)
    monkeypatch.setattr(_engine, "_ROOM", 1_000)
    with pytest.raises(TooLargeError, match="take more than 1,000 bytes"):
        metrics(archive, engine=Engine.local())
