"""What-if for all groups of an archive, on Spark.

One call of `applyInArrow` has all records of one group, as a stream of batches, and runs all assignors and
scenarios on it. Each group once for each assignor took 1.7 to 2.4 times the CPU time (four assignors, 200
groups of 50 generations), as its records are sent and read anew each time. So that is done only where there
are fewer groups than cores.

Of a group with 20 members and 200 partitions a task keeps 7 KiB of each generation with four assignors,
however large the records are.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator  # noqa: TC003 - Spark evaluates the annotations
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as sf
from pyspark.sql.pandas.types import from_arrow_schema

from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors.history._schemas import ACTUAL, KEPT_TYPES, WHAT_IF
from kafka_assignors.history._snapshots import ArchivedRecord, SnapshotReader
from kafka_assignors.history._what_if.assignors import leader_of
from kafka_assignors.history._what_if.course import CourseBuilder
from kafka_assignors.history._what_if.replay import Replay, replay_course
from kafka_assignors.history._what_if.scenarios import AS_IT_WAS, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pyspark.sql import DataFrame

log = logging.getLogger(__name__)

ASSIGNORS: Final = ("range", "roundrobin", "sticky", "cooperative-sticky")
"""What is compared unless told otherwise."""

_TASKS_A_CORE: Final = 4

_COLUMNS: Final = ("group", "key", "value", "partition", "offset", "timestamp")

Part = tuple[tuple[Scenario, tuple[str, ...]], ...]
"""What one call has to do: scenarios, and the assignors of each."""


def what_if(
    records: DataFrame,
    *,
    assignors: Sequence[str] = ASSIGNORS,
    scenarios: Sequence[str] = (AS_IT_WAS.name,),
    topics: Mapping[str, int] | TopicsSeen | None = None,
    topic_names: Mapping[str, str] | None = None,
    split: bool | None = None,
) -> DataFrame:
    """Replay the history of each group.

    Args:
        records: An archive in the schema `ARCHIVE`, with a column `group`.
        assignors: Names as `leader_of` takes them. What happened comes in addition.
        scenarios: Names as `Scenario.of` takes them.
        topics: How many partitions each topic has, or had at what time, as far as that is known.
        topic_names: The name of each topic by its id, for groups of KIP-848.
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
    seen, names = TopicsSeen.told(topics), dict(topic_names or {})
    told = records.where(sf.col("type").isin(*KEPT_TYPES) & sf.col("group").isNotNull())
    cores = records.sparkSession.sparkContext.defaultParallelism
    if split is None:
        split = told.select("group").distinct().limit(cores).count() < cores
    parts = _parts(wanted, chosen, split=split)

    def replay_group(
        key: tuple[pa.Scalar, ...], batches: Iterator[pa.RecordBatch]
    ) -> Iterator[pa.RecordBatch]:
        group, part = (scalar.as_py() for scalar in key)
        replays = replay_records(group, _records(batches), parts[part], seen, names)
        yield pa.RecordBatch.from_pylist([row_of(replay) for replay in replays], schema=WHAT_IF)

    numbered = sf.explode(sf.lit([*range(len(parts))])) if split else sf.lit(0)
    return (
        told.select(*_COLUMNS)
        .withColumn("part", numbered)
        # Left to itself, Spark goes by bytes, and makes fewer tasks of this than there is work for.
        .repartition(_TASKS_A_CORE * cores, "group", "part")
        .sortWithinPartitions("group", "part", "partition", "offset")  # grouping leaves it so
        .groupBy("group", "part")
        .applyInArrow(replay_group, schema=from_arrow_schema(WHAT_IF))
    )


def _parts(scenarios: Sequence[Scenario], assignors: Sequence[str], *, split: bool) -> tuple[Part, ...]:
    """What each call has to do: what happened, against which all else is measured, and what is asked for."""
    if split:
        alone = [(scenario, (name,)) for scenario in scenarios for name in assignors]
        return tuple((one,) for one in [(AS_IT_WAS, (ACTUAL,)), *alone])
    wanted = dict.fromkeys(scenarios, tuple(assignors))
    wanted[AS_IT_WAS] = (ACTUAL, *wanted.get(AS_IT_WAS, ()))
    return (tuple(wanted.items()),)


def replay_records(
    group: str,
    records: Iterable[ArchivedRecord],
    part: Part,
    topics: Mapping[str, int] | TopicsSeen,
    topic_names: Mapping[str, str] | None = None,
) -> list[Replay]:
    """Replay the records of one group.

    A group that is none of consumers, or never had any, has no replays.

    Args:
        group: The group.
        records: Its records by partition and offset; one that comes twice counts once.
        part: What to do.
        topics: See `what_if`.
        topic_names: The name of each topic by its id.
    """
    builder = CourseBuilder(group)
    reader = SnapshotReader(topic_names)
    broken = 0
    for record in records:
        try:
            for snapshot in reader.add(record):
                builder.add(snapshot)
        except Exception:  # whatever it is, one group must not fail the task
            log.exception(
                "Leaving out the record of group %s at %d/%d", group, record.partition, record.offset
            )
            broken += 1
    for snapshot in reader.flush():
        builder.add(snapshot)
    broken += reader.rejected
    told = builder.build(topics)
    if not told.steps and not broken:
        return []
    replays: list[Replay] = []
    for scenario, assignors in part:
        try:
            replays += replay_course(scenario.apply(told), assignors, scenario.name, undecoded=broken)
        except Exception:  # whatever it is, one group must not fail the task
            log.exception("The history of group %s cannot be replayed (%s)", group, scenario.name)
            failed = broken + len(told.steps)
            replays += [
                Replay(group=group, assignor=name, scenario=scenario.name, rebalances=(), undecoded=failed)
                for name in assignors
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


def _records(batches: Iterator[pa.RecordBatch]) -> Iterator[ArchivedRecord]:
    """The records in their order.

    Raises:
        RuntimeError: They do not come in it: a reader of snapshots would pass some over.
    """
    last = (-1, -1)
    for batch in batches:
        values = batch.column("value")
        times = batch.column("timestamp").cast(pa.int64())
        partitions, offsets = batch.column("partition"), batch.column("offset")
        keys = batch.column("key")
        for place in range(batch.num_rows):
            this = partitions[place].as_py(), offsets[place].as_py()
            if this < last:
                raise RuntimeError(
                    f"Spark gave the record at {this} after that at {last}, in spite of its sort"
                )
            last = this
            yield ArchivedRecord(
                key=keys[place].as_py(),
                value=values[place].as_py(),
                partition=this[0],
                offset=this[1],
                time_us=times[place].as_py(),
                leader_epoch=None,
            )
