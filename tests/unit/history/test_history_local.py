"""Reading a small archive without Spark, where files go away meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors._common.times import moment
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._info import describe_here
from kafka_assignors.history._local import is_small, read_groups
from kafka_assignors.history._store.reading import CleanedUpError
from tests.support.group_histories import START_US
from tests.support.local_archives import DAY, story

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.parametrize("skip_bad", [False, True])
@pytest.mark.parametrize("read", [describe_here, read_groups])
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
    after = archive.files(since=since)
    later = sum(file.size for file in after)
    both = {file.path: file.size for file in (*after, *archive.files_before(since, None))}
    assert sum(both.values()) > later
    for limit, small in ((sum(both.values()), True), (sum(both.values()) - 1, False), (later, False)):
        monkeypatch.setattr("kafka_assignors.history._local.SMALL", limit)
        assert is_small(archive, since) is small


def test_a_kip848_group_begins_with_its_newest_records_told_at_since(tmp_path: Path) -> None:
    since = moment(START_US + 20_000_000)  # the member c is gone by then
    found = read_groups(story(tmp_path), since=since, groups=["g"])
    begun = [row for row in found.to_pylist() if row["timestamp"] == since]
    assert len(begun) > 0
    assert len({row["key"] for row in begun}) == len(begun)
    assert all(row["value"] is not None for row in begun)
