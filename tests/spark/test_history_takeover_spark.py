"""An archive that the last code of format 1 wrote, taken over: what that code read, this reads, each once."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors._cli.main import main
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._maintenance import maintain, plan_maintenance
from kafka_assignors.history._spark_columns import KEPT
from tests.support.kinds import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def told(tmp_path: Path) -> dict[str, Any]:
    """What the old code read from the archive that is unpacked; made_by.txt beside it says how."""
    with tarfile.open(ROOT / "tests/support/format_1/archive.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    read: dict[str, Any] = json.loads((tmp_path / "told.json").read_text())
    assert len(read["places"]) == len({tuple(place) for place in read["places"]}) == 140 + 33
    return read


def told_of(spark: SparkSession, archive: Archive) -> dict[str, Any]:
    places = archive.rows(spark).where(KEPT).select("source", "partition", "offset").collect()
    return {
        "counts": {
            source: {"kept": dict(counts.kept), "counted": dict(counts.counted)}
            for source, counts in archive.counts(spark).items()
        },
        "places": sorted([row["source"], row["partition"], row["offset"]] for row in places),
        "frontier": {str(number): offset for number, offset in archive.frontier().items()},
        "dumps": archive.dumps(),
        "topics": [[one.topic, one.topic_id, one.partitions] for one in archive.topics()],
        "cluster_id": archive.description.cluster_id,
        "partitions": archive.description.partitions,
    }


@pytest.mark.parametrize("by", ["a capture", "maintenance"])
def test_an_archive_of_the_old_code_has_each_record_once_after_it_is_taken_over(
    spark: SparkSession, tmp_path: Path, told: dict[str, Any], by: str, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "archive"
    assert (home / "exchange.json").exists()  # a merge was ended: some batches are there twice
    if by == "a capture":
        Archive.create(home)
    else:
        assert main(["history", "maintain", str(home), "--execute"]) == 0
        assert capsys.readouterr().out.startswith(f"{home}: 3 files of 1 day (")
    assert told_of(spark, Archive(home)) == told


def test_an_archive_that_was_taken_over_stays_the_same_through_maintenance(
    spark: SparkSession, tmp_path: Path, told: dict[str, Any]
) -> None:
    archive = Archive.create(tmp_path / "archive")
    maintain(spark, archive, replace(plan_maintenance(archive), retention=timedelta(0)))
    again = Archive(tmp_path / "archive")
    assert len(again.files()) == 2  # of the topic and of the dump
    files = [*(tmp_path / "archive" / "records").rglob("*.parquet")]
    assert len([path for path in files if "_delta_log" not in path.parts]) == 2
    assert told_of(spark, again) == told
