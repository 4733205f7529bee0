"""The Spark job: the same as the pure functions, for many groups at once."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._groups.activity import find_group
from kafka_assignors._groups.rebalances import find_rebalances
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors.history._schemas import ARCHIVE, GROUPS, REBALANCES
from kafka_assignors.history._snapshots import ArchivedRecord, read_snapshots
from tests.support.delta_tables import files_of, rows_of
from tests.support.group_histories import random_records
from tests.support.kip848_log import TOPIC_IDS, Log

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

LIVES = {group: random_records(seed, group=group, records=30) for seed, group in enumerate(["g1", "g2"])}
LONG = random_records(3, group="long", records=400)

IDS = {topic: uuid_text(topic_id) for topic, topic_id in TOPIC_IDS.items()}


def kip848() -> list[ArchivedRecord]:
    """A group of KIP-848 that hands over again and again; too long for a window, if it had any."""
    log = Log()
    for number in range(1, 9):
        log.at(100 * number)
        log.joined(f"m{number}", topics="tu")
        log.epoch(number)
        log.assigned(number)
        if number > 1:
            log.has(f"m{number - 1}", number, "t0")
            log.at(100 * number + 5)
        log.has(f"m{number}", number, "t1 u0")
        log.at(100 * number + 50)
        log.gone(f"m{number}")
    return log.records


def archive(folder: Path, lives: dict[str, list[ArchivedRecord]]) -> str:
    rows: list[dict[str, Any]] = [
        {
            "type": int.from_bytes(record.key[:2]),
            "count": 1,
            "key": record.key,
            "value": record.value,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.time_us,
            "leader_epoch": record.leader_epoch,
            "group": group,
        }
        for group, records in lives.items()
        for record in records
    ]
    counted = {**rows[0], "type": 1, "count": 9, "key": None, "value": None, "group": None}
    bad = {**rows[0], "value": b"?", "offset": 10_000}
    path = folder / "records.parquet"
    schema = pa.schema([*ARCHIVE, pa.field("group", pa.string())])
    # Backwards, and one record twice: the job sorts, and counts each once.
    pq.write_table(pa.Table.from_pylist([rows[0], bad, counted, *reversed(rows)], schema=schema), path)
    return str(path)


def expected(
    lives: dict[str, list[ArchivedRecord]], topics: TopicsSeen | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    rebalances, groups = [], []
    for group, records in lives.items():
        names = {topic_id: topic for topic, topic_id in IDS.items()}
        snapshots = list(read_snapshots(records, names))
        rebalances += [one.row() for one in find_rebalances(snapshots, topics)]
        activity = find_group(snapshots, topics)
        assert activity is not None
        groups.append(activity.row(group))
    assert len(rebalances) > 20
    return rebalances, groups


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """In one order; and sums of floats, which depend on the order, in whole microseconds."""
    return sorted(
        (
            {name: round(value, 6) if isinstance(value, float) else value for name, value in row.items()}
            for row in rows
        ),
        key=lambda row: (row["group"], row.get("ended", row.get("until")), row.get("generation")),
    )


def read(table: DataFrame, schema: pa.Schema) -> list[dict[str, Any]]:
    found = table.toArrow()
    assert found.schema.names == schema.names
    rows: list[dict[str, Any]] = found.to_pylist()
    return ordered(rows)


def compare(
    pieces: DataFrame, lives: dict[str, list[ArchivedRecord]], topics: TopicsSeen | None = None
) -> None:
    from kafka_assignors.history._metrics import groups_of, rebalances_of  # noqa: PLC0415 - as above

    rebalances, groups = expected(lives, topics)
    assert read(rebalances_of(pieces), REBALANCES) == ordered(rebalances)
    assert read(groups_of(pieces), GROUPS) == ordered(groups)


def test_many_groups_are_measured_as_each_alone(spark: SparkSession, tmp_path: Path) -> None:
    from kafka_assignors._groups.topics import SeenTopic  # noqa: PLC0415 - as above
    from kafka_assignors.history._metrics import measure  # noqa: PLC0415 - as above

    lives = {**LIVES, "g": kip848()}
    records = spark.read.parquet(archive(tmp_path, lives))
    topics = [
        SeenTopic(topic, topic_id, 9, datetime.fromtimestamp(0, tz=UTC)) for topic, topic_id in IDS.items()
    ]
    compare(measure(records, topics, window=20), lives, TopicsSeen.always({"t": 9, "u": 9}))


def test_a_long_history_is_measured_in_windows_as_the_whole(spark: SparkSession, tmp_path: Path) -> None:
    from kafka_assignors.history._metrics import measure  # noqa: PLC0415 - as above

    lives = {"g1": LIVES["g1"], "long": LONG}
    pieces = measure(spark.read.parquet(archive(tmp_path, lives)), window=70)
    pieces = pieces.cache()
    assert {(row["group"], row["window"]) for row in pieces.select("group", "window").collect()} == {
        ("g1", 0),
        *(("long", number) for number in range(6)),
    }
    compare(pieces, lives)
    pieces.unpersist()


@pytest.mark.core
def test_metrics_are_tables_that_are_replaced_together(spark: SparkSession, tmp_path: Path) -> None:
    from kafka_assignors.history._metrics import write_metrics  # noqa: PLC0415 - as above
    from kafka_assignors.history._metrics_tables import MANIFEST  # noqa: PLC0415 - as above

    records, out = spark.read.parquet(archive(tmp_path, LIVES)), tmp_path / "out"
    schemas = {"rebalances": REBALANCES, "groups": GROUPS}
    write_metrics(records.where("group = 'g1'"), (), out)
    before = [path for name in schemas for path in files_of(out / name)]
    write_metrics(records, (), out)
    assert {path.name for path in out.iterdir()} == {*schemas, MANIFEST}
    manifest = json.loads((out / MANIFEST).read_text())
    assert manifest["versions"] == {name: DeltaTable(str(out / name)).version() for name in schemas}
    rebalances, groups = expected(LIVES)
    assert manifest["told"] == {"rebalances": len(rebalances), "groups": len(groups)}
    for (name, schema), rows in zip(schemas.items(), (rebalances, groups), strict=True):
        assert ordered(rows_of(out / name, schema)) == ordered(rows)
    # Who began to read the ones before reads on.
    assert all(path.exists() for path in before)
