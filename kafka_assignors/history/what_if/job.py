"""What-if for all groups of an archive, on Spark.

One call of `applyInArrow` has all records of one group, as a stream of batches, and runs all assignors and
scenarios on it: reading the records costs as much as three assignors, and shipping them again a third of
that. With fewer groups than cores there is nothing to spread, so each group is then sent once for
each assignor.

A task keeps about a kilobyte of each of a group's generations (200 partitions), whatever the records' size.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator  # noqa: TC003 - Spark evaluates the annotations
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from kafka_assignors.history.schemas import WHAT_IF
from kafka_assignors.history.snapshots import ArchivedRecord, classic_snapshot
from kafka_assignors.history.what_if.assignors import leader_of
from kafka_assignors.history.what_if.course import CourseBuilder
from kafka_assignors.history.what_if.replay import ACTUAL, Replay, replay_course
from kafka_assignors.history.what_if.scenarios import AS_IT_WAS, Scenario
from kafka_assignors.protocol.offsets_topic import RecordError, decode_group_metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

    from kafka_assignors.history.snapshots import Snapshot

log = logging.getLogger(__name__)

ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""What is compared unless told otherwise."""

_CLASSIC: Final = 2
_COLUMNS: Final = ("group", "value", "partition", "offset", "timestamp")

Part = tuple[tuple[Scenario, tuple[str, ...]], ...]
"""What one call has to do: scenarios, and the assignors of each."""


def what_if(
    records: DataFrame,
    *,
    assignors: Sequence[str] = ASSIGNORS,
    scenarios: Sequence[str] = (AS_IT_WAS.name,),
    topics: Mapping[str, int] | None = None,
    split: bool | None = None,
) -> DataFrame:
    """Replay the history of each group.

    Args:
        records: An archive in the schema `ARCHIVE`, with a column `group`. Records of classic groups count.
        assignors: Names as `leader_of` takes them. Where it is as it was, what happened comes in addition.
        scenarios: Names as `Scenario.of` takes them.
        topics: How many partitions topics have, as far as that is known.
        split: Whether each group is sent once for each assignor; by default where there are fewer groups than
            cores.

    Returns:
        In the schema `WHAT_IF`: a row for each group, scenario and assignor. What cannot be read or replayed
        counts as failed.

    Raises:
        ValueError: There is no such assignor or scenario, or nothing to do.
    """
    chosen = tuple(dict.fromkeys(name for name in assignors if name != ACTUAL))
    for name in chosen:
        leader_of(name)
    wanted = tuple(dict.fromkeys(Scenario.of(name) for name in scenarios))
    if not wanted:
        raise ValueError(f"there is no scenario to replay: give at least {AS_IT_WAS.name!r}")
    sizes = dict(topics or {})
    classic = records.where(sf.col("type") == _CLASSIC).where(sf.col("value").isNotNull())
    if split is None:
        cores = records.sparkSession.sparkContext.defaultParallelism
        split = classic.select("group").distinct().limit(cores).count() < cores
    parts = _parts(wanted, chosen, split=split)

    def replay_group(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        group, part = (scalar.as_py() for scalar in key)
        rows = [row_of(replay) for replay in replay_records(group, _records(batches), parts[part], sizes)]
        yield pa.RecordBatch.from_pylist(rows, schema=WHAT_IF)

    numbered = sf.explode(sf.lit([*range(len(parts))])) if split else sf.lit(0)
    return (
        classic.select(*_COLUMNS)
        .withColumn("part", numbered)
        .groupBy("group", "part")
        .applyInArrow(replay_group, schema=from_arrow_schema(WHAT_IF))
    )


def _parts(scenarios: Sequence[Scenario], assignors: Sequence[str], *, split: bool) -> tuple[Part, ...]:
    if split:
        alone: list[Part] = [((scenario, (name,)),) for scenario in scenarios for name in assignors]
        return tuple([((AS_IT_WAS, (ACTUAL,)),), *alone] if AS_IT_WAS in scenarios else alone)
    return (
        tuple(
            (scenario, (ACTUAL, *assignors) if scenario == AS_IT_WAS else tuple(assignors))
            for scenario in scenarios
        ),
    )


def replay_records(
    group: str, records: Iterable[ArchivedRecord], part: Part, topics: Mapping[str, int]
) -> list[Replay]:
    """Replay the records of one group, in any order; a record that comes twice counts once.

    A group that is none of consumers, or never had any, has no replays.

    Args:
        group: The group.
        records: Its GroupMetadata records that are no tombstones.
        part: What to do.
        topics: How many partitions topics have.
    """
    builder = CourseBuilder(group)
    undecoded = 0
    seen: set[tuple[int, int]] = set()
    for record in records:
        if (record.partition, record.offset) in seen:
            continue
        seen.add((record.partition, record.offset))
        snapshot = _snapshot(group, record)
        if snapshot is None:
            undecoded += 1
        else:
            builder.add(snapshot)
    told = builder.build(topics)
    if not told.steps and not undecoded:
        return []
    replays: list[Replay] = []
    for scenario, assignors in part:
        try:
            replays += replay_course(scenario.apply(told), assignors, scenario.name, undecoded=undecoded)
        except Exception:
            log.exception("The history of group %s cannot be replayed (%s)", group, scenario.name)
            replays += [
                Replay(
                    group=group,
                    assignor=assignor,
                    scenario=scenario.name,
                    rebalances=(),
                    undecoded=undecoded + len(told.steps),
                )
                for assignor in assignors
            ]
    return replays


def row_of(replay: Replay) -> dict[str, Any]:
    """A row in the schema `WHAT_IF`."""
    return {
        "group": replay.group,
        "assignor": replay.assignor,
        "scenario": replay.scenario,
        "rebalances": len(replay.rebalances),
        "moved": replay.moved,
        "imbalance": replay.imbalance,
        "worst_imbalance": replay.worst_imbalance,
        "unowned_seconds": replay.unowned_seconds,
        "failed": replay.failed,
    }


def _snapshot(group: str, record: ArchivedRecord) -> Snapshot | None:
    try:
        return classic_snapshot(record, group, decode_group_metadata(record.value or b""))
    except RecordError as fault:
        log.warning(
            "Leaving out the record of group %s at %d/%d: %s", group, record.partition, record.offset, fault
        )
        return None


def _records(batches: Iterator[pa.RecordBatch]) -> Iterator[ArchivedRecord]:
    for batch in batches:
        values = batch.column("value")
        times = batch.column("timestamp").cast(pa.int64())
        partitions, offsets = batch.column("partition"), batch.column("offset")
        for place in range(batch.num_rows):
            yield ArchivedRecord(
                key=b"",
                value=values[place].as_py(),
                partition=partitions[place].as_py(),
                offset=offsets[place].as_py(),
                time_us=times[place].as_py(),
                leader_epoch=None,
            )
