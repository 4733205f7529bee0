"""Whether one group with a very long history keeps one task busy while the others wait.

    python -m benchmarks.lab.history_skew --generations 100000

A dump of one group's records, beside those of ordinary groups, is imported into an archive; then its tables
and metrics are made. Spark's own log of events tells how long each task took: of each step the longest task
is told, and what part it is of all of the step's work.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import machine
from benchmarks.history_archive import MEMBERS, TOPICS, records_of_groups
from benchmarks.local_spark import local_spark
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._dump import import_dump
from kafka_assignors.history._metrics import write_metrics
from kafka_assignors.history._tables.job import make_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

RESULT: Final = Path(__file__).parents[1] / "results" / "history_skew.md"
OTHERS: Final = 100
"""Ordinary groups, of as many generations each."""

_BEGAN_MS: Final = 1_767_225_600_000
_EVERY_MS: Final = 500
_CHUNK: Final = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """What a step of the work took.

    Attributes:
        name: What it is.
        wall: Seconds from beginning to end.
        tasks: Seconds of each task of its longest stage, that in which most was done.
    """

    name: str
    wall: float
    tasks: list[float]


def write_dump(path: Path, generations: int) -> int:
    """Write the long history, and then the others', as a cluster's partition would have them.

    Returns:
        How many records there are.
    """
    schema = pa.schema(
        [
            ("key", pa.binary()),
            ("value", pa.binary()),
            ("partition", pa.int32()),
            ("offset", pa.int64()),
            ("timestamp", pa.int64()),
        ]
    )
    offset = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for groups, count in ((1, generations), (OTHERS, OTHERS * OTHERS)):
            rows = []
            for key, value in records_of_groups(f"of-{groups}", groups, count):
                rows.append((key, value, 7, offset, _BEGAN_MS + offset * _EVERY_MS))
                offset += 1
                if len(rows) == _CHUNK:
                    _write(writer, rows)
                    rows = []
            _write(writer, rows)
    return offset


def _write(writer: pq.ParquetWriter, rows: list[tuple[bytes, bytes, int, int, int]]) -> None:
    if rows:
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), writer.schema, strict=True)
        ]
        writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=writer.schema))


def _tasks(events: Path) -> dict[int, list[tuple[float, float]]]:
    """When each task began and ended, by stage."""
    (log,) = events.iterdir()
    stages: dict[int, list[tuple[float, float]]] = defaultdict(list)
    with log.open(encoding="utf-8") as lines:
        for line in lines:
            if '"SparkListenerTaskEnd"' in line:
                event = json.loads(line)
                info = event["Task Info"]
                times = info["Launch Time"] / 1000, info["Finish Time"] / 1000
                stages[event["Stage ID"]].append(times)
    return stages


def measure(folder: Path, generations: int) -> tuple[int, list[StepTime]]:
    """Import, make tables, measure; how many records there were, and what each step took."""
    dump, events = folder / "dump.parquet", folder / "events"
    events.mkdir()
    count = write_dump(dump, generations)
    times: dict[str, tuple[float, float]] = {}

    @contextmanager
    def step(name: str) -> Iterator[None]:
        began = time.time()
        yield
        times[name] = began, time.time()
        sys.stderr.write(f"{name}: {time.time() - began:.0f} s\n")

    log_events = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.rolling.enabled": "false",
        "spark.eventLog.compress": "false",
    }
    with local_spark(settings=log_events) as spark:
        archive = Archive.create(folder / "archive")
        with step("import"):
            import_dump(spark, dump, archive)
        with step("tables"):
            made = make_tables(spark, archive, folder / "tables")
        with step("metrics"):
            write_metrics(archive.read_groups(spark), archive.topics(), folder / "metrics")
    if made.rows["generations"] != count:
        raise RuntimeError(f"{made.rows['generations']} generations came of {count} records")
    stages = _tasks(events)
    steps = []
    for name, (began, ended) in times.items():
        within = [tasks for tasks in stages.values() if began <= tasks[0][0] <= ended]
        busiest = max(within, key=lambda tasks: sum(end - begin for begin, end in tasks))
        tasks = sorted((end - begin for begin, end in busiest), reverse=True)
        steps.append(StepTime(name=name, wall=ended - began, tasks=tasks))
    return count, steps


def _report(generations: int, count: int, steps: list[StepTime]) -> str:
    lines = [
        "# One group with a very long history",
        "",
        (
            f"{count:,} records, {generations:,} of them generations of one group, of groups with {MEMBERS} "
            f"members and {sum(TOPICS.values())} partitions, imported from a dump. Spark runs with "
            "`local[2]`. Of each step the stage is told in which most was done."
        ),
        "",
        "| step | s | tasks | all of them, s | the longest, s | part of all |",
        "|---|---|---|---|---|---|",
    ]
    for step in steps:
        whole, longest = sum(step.tasks), step.tasks[0]
        lines.append(
            f"| {step.name} | {step.wall:.0f} | {len(step.tasks)} | {whole:.1f} | {longest:.1f} | "
            f"{longest / whole:.0%} |"
        )
    lines += ["", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in machine.describe().items()]
    return "\n".join([*lines, "", "Made by `python -m benchmarks.lab.history_skew`.", ""])


def main() -> int:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--generations", type=int, default=20_000, help="of the one group (20,000)")
    parser.add_argument("--result", type=Path, default=RESULT, help="the file to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        count, steps = measure(Path(temporary), options.generations)
    report = _report(options.generations, count, steps)
    options.result.write_text(report)
    sys.stdout.write(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
