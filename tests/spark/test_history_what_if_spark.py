"""What-if over an archive on Spark: its rows are those of the pure replays, whatever the records are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.history_what_if import life
from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._groups.saving import ACTUAL
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors._wire.offsets_topic import group_metadata_key
from kafka_assignors.history._schemas import ARCHIVE, WHAT_IF
from kafka_assignors.history._snapshots import ArchivedRecord, read_snapshots
from kafka_assignors.history._what_if.job import row_of, what_if
from kafka_assignors.history._what_if.replay import replay
from kafka_assignors.history._what_if.scenarios import Scenario
from tests.support.kip848_log import TOPIC_IDS, Log, two_come

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

TOPICS = {"orders": 80, "payments": 80, "shipments": 40}


def archived(groups: Mapping[str, Sequence[ArchivedRecord]]) -> list[dict[str, Any]]:
    return [
        {
            "type": int.from_bytes(record.key[:2], "big"),
            "count": 1,
            "key": record.key,
            "value": record.value,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.time_us,
            "leader_epoch": record.leader_epoch,
            "group": group,
        }
        for group, records in groups.items()
        for record in records
    ]


def read(spark: SparkSession, folder: Path, rows: list[dict[str, Any]]) -> DataFrame:
    schema = ARCHIVE.append(pa.field("group", pa.string(), nullable=False))
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), folder / "records.parquet", row_group_size=7)
    return spark.read.parquet(str(folder))


def lived(group: str, partition: int) -> list[ArchivedRecord]:
    return [
        ArchivedRecord(group_metadata_key(group), value, partition, 10 * number, time * 1000, 0)
        for number, (time, value) in enumerate(life(group, 8, seed=3))
    ]


@pytest.mark.parametrize("split", [True, False])
def test_rows_are_those_of_the_replays(spark: SparkSession, tmp_path: Path, *, split: bool) -> None:
    groups = {"billing": lived("billing", 3), "search": lived("search", 4), "alerts": lived("alerts", 3)}
    rows = archived(groups)
    # As they may stand in an archive: in any order, and some of them from two sources.
    rows = [*rows[::-1], *rows[:5]]
    assignors = ["range", "sticky", "kafka-python:cooperative-sticky"]
    scenarios = ["as it was", "static members"]
    # One of the topics grows after half of the rebalances.
    half = lived("search", 4)[4].time_us
    topics = TopicsSeen.of([*((topic, 0, count) for topic, count in TOPICS.items()), ("orders", half, 90)])

    found = what_if(
        read(spark, tmp_path, rows), assignors=assignors, scenarios=scenarios, topics=topics, split=split
    ).toArrow()

    expected = [
        row_of(replay(read_snapshots(records), assignor, topics=topics, scenario=Scenario.of(scenario)))
        for records in groups.values()
        for scenario in scenarios
        for assignor in ([ACTUAL, *assignors] if scenario == "as it was" else assignors)
    ]
    assert found.schema.names == WHAT_IF.names
    assert found.schema.types == WHAT_IF.types

    def key(row: dict[str, Any]) -> tuple[str, str, str]:
        return row["group"], row["assignor"], row["scenario"]

    assert sorted(found.to_pylist(), key=key) == sorted(expected, key=key)
    assert all(row["rebalances"] == 7 for row in expected if row["scenario"] == "as it was")


@pytest.mark.parametrize("split", [True, False])
def test_what_happened_is_told_whatever_the_scenarios(
    spark: SparkSession, tmp_path: Path, *, split: bool
) -> None:
    records = read(spark, tmp_path, archived({"g": lived("g", 1)}))

    found = what_if(records, assignors=["range"], scenarios=["static members"], split=split).collect()

    assert sorted((row.assignor, row.scenario) for row in found) == [
        ("actual", "as it was"),
        ("range", "static members"),
    ]


@pytest.mark.core
def test_what_cannot_be_read_or_replayed_counts_as_failed(spark: SparkSession, tmp_path: Path) -> None:
    good = lived("good", 1)
    half = lived("half", 2)
    half[3] = half[3]._replace(value=b"\0\3 and no more")
    bad = [ArchivedRecord(group_metadata_key("bad"), b"\0\3", 2, 5, 5_000_000, None)]
    deleted = [ArchivedRecord(group_metadata_key("deleted"), None, 2, 7, 5_000_000, None)]
    rows = archived({"good": good, "half": half, "bad": bad, "deleted": deleted})

    records = read(spark, tmp_path, rows)
    found = (
        what_if(records, assignors=["range"], scenarios=["as it was"], topics=TOPICS).toArrow().to_pylist()
    )

    assert {(row["group"], row["assignor"]): (row["rebalances"], row["failed"]) for row in found} == {
        ("good", "actual"): (7, 0),
        ("good", "range"): (7, 0),
        ("half", "actual"): (6, 1),
        ("half", "range"): (6, 1),
        ("bad", "actual"): (0, 1),
        ("bad", "range"): (0, 1),
    }


def test_groups_of_kip848_are_replayed(spark: SparkSession, tmp_path: Path) -> None:
    log = Log()
    two_come(log)
    log.at(12)
    log.has("a", 2, "t0 t1")
    log.has("b", 2, "t2 t3")
    names = {uuid_text(topic_id): topic for topic, topic_id in TOPIC_IDS.items()}
    rows = archived({"g": log.records})

    found = what_if(
        read(spark, tmp_path, rows),
        assignors=["kip848:uniform", "range"],
        scenarios=["as it was"],
        topics={"t": 4},
        topic_names=names,
    ).toArrow()

    # Two partitions go to b, in 2 s; an eager assignor would have stopped all four.
    assert {
        row["assignor"]: (row["moved"], row["unowned_seconds"], row["failed"]) for row in found.to_pylist()
    } == {
        "actual": (2, 4.0, 0),
        "kip848:uniform": (2, 4.0, 0),
        "range": (2, 8.0, 0),
    }


@pytest.mark.core
def test_wrong_names_are_said_before_anything_is_run(spark: SparkSession, tmp_path: Path) -> None:
    records = read(spark, tmp_path, archived({"g": lived("g", 1)[:1]}))

    with pytest.raises(ValueError, match="there is no assignor 'stick'"):
        what_if(records, assignors=["stick"])
    with pytest.raises(ValueError, match="there is no scenario 'tomorrow'"):
        what_if(records, scenarios=["tomorrow"])
    with pytest.raises(ValueError, match="there is no scenario to replay"):
        what_if(records, scenarios=[])
