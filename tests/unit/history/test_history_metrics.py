"""Metrics of archives: the same as the pure functions, for many groups at once."""

import json
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors.history import _metrics
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._metrics import MANIFEST, SCHEMAS, metrics
from kafka_assignors.history._schemas import GROUPS, REBALANCES
from tests.support.archives import counted
from tests.support.delta_tables import files_of, rounded, rows_of
from tests.support.group_histories import activity_of, find_rebalances, random_records, read_snapshots
from tests.support.kip848_log import SEEN_TOPICS, TOPIC_NAMES, hand_overs
from tests.support.local_archives import rows_of as archive_rows
from tests.support.written_archives import write_archive

LIVES = {group: random_records(seed, group=group, records=30) for seed, group in enumerate(["g1", "g2"])}


def archive(folder: Path, lives: dict[str, list[ArchivedRecord]]) -> Archive:
    rows = archive_rows(chain.from_iterable(lives.values()))
    bad = {**rows[0], "value": b"?", "offset": 10_000}
    # Backwards, and one record twice: records are sorted, and each counts once.
    parts = [[rows[0], bad, counted(1, 9)], [*reversed(rows)]]
    return Archive(write_archive(folder / "archive", parts))


def expected(
    lives: dict[str, list[ArchivedRecord]], topics: TopicsSeen | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rebalances, groups = [], []
    for group, records in lives.items():
        snapshots = list(read_snapshots(records, TOPIC_NAMES))
        rebalances += [one.row() for one in find_rebalances(snapshots, topics)]
        groups.append(activity_of(snapshots, topics).row(group))
    assert len(rebalances) > 20
    return rebalances, groups


def test_many_groups_are_measured_as_each_alone(tmp_path: Path) -> None:
    lives = {**LIVES, "g": hand_overs(8)}
    measured = archive(tmp_path, lives)
    measured.add_topics(SEEN_TOPICS)
    found = metrics(measured, tmp_path / "out")
    # The topics were seen after all that is in the archive: each has what the group was assigned.
    rebalances, groups = expected(lives, TopicsSeen.always({}))
    assert rounded(rows_of(tmp_path / "out" / "rebalances", REBALANCES)) == rounded(rebalances)
    assert rounded(rows_of(tmp_path / "out" / "groups", GROUPS)) == rounded(groups)
    assert rounded([*map(asdict, found)]) == rounded(
        [row | {"reasons": dict(row["reasons"])} for row in groups]
    )


def test_rebalances_are_written_some_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = metrics(archive(tmp_path, LIVES), tmp_path / "whole")
    monkeypatch.setattr(_metrics, "_AT_ONCE", 2)
    assert metrics(Archive(tmp_path / "archive"), tmp_path / "parts") == whole
    for table, schema in SCHEMAS.items():
        rows = [rounded(rows_of(tmp_path / out / table, schema)) for out in ("whole", "parts")]
        assert rows[0] == rows[1]


@pytest.mark.core
def test_metrics_are_tables_that_are_replaced_together(tmp_path: Path) -> None:
    measured, out = archive(tmp_path, LIVES), tmp_path / "out"
    schemas = {"rebalances": REBALANCES, "groups": GROUPS}
    metrics(measured, out, groups=["g1"])
    before = [path for name in schemas for path in files_of(out / name)]
    metrics(measured, out)
    assert {path.name for path in out.iterdir()} == {*schemas, MANIFEST}
    manifest = json.loads((out / MANIFEST).read_text())
    assert manifest == {
        "format": 2,
        "versions": {name: DeltaTable(str(out / name)).version() for name in schemas},
    }
    rebalances, groups = expected(LIVES)
    for (name, schema), rows in zip(schemas.items(), (rebalances, groups), strict=True):
        assert rounded(rows_of(out / name, schema)) == rounded(rows)
    # Who began to read the ones before reads on.
    assert all(path.exists() for path in before)
