"""What it costs to make the tables of an archive, beside reading the same Parquet in the JVM alone.

    python -m benchmarks.history_tables --records 1000000

CPU seconds are those of the whole tree of processes: this one, the JVM and the Python workers, from the
moment that the session is there. Each job has a JVM of its own, as when it is run now and then. With `--warm`
it runs on a small archive first, so that the JVM has compiled what it needs: what is left is the cost of each
record, and the cost of reading is then a fraction of what it is in a new JVM.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow.parquet as pq
from pyspark.sql import (
    SparkSession,
    functions as F,  # noqa: N812 - as everybody calls it
)

from benchmarks import machine
from benchmarks.history_archive import GENERATIONS, MEMBERS, TOPICS, write_archive
from benchmarks.local_spark import local_spark
from benchmarks.processes import cpu_seconds, largest_worker
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._archive_format import RECORDS
from kafka_assignors.history._engine import Engine
from kafka_assignors.history._tables.job import make_tables

if TYPE_CHECKING:
    from collections.abc import Callable

RESULT: Final = Path(__file__).parent / "results" / "history_tables.md"
LIMIT: Final = 9.0
"""How many times the CPU of reading the tables may take."""

_SMALL: Final = 2_000
_LOOK_EVERY: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What a job took.

    Attributes:
        wall: Seconds.
        cpu: CPU seconds of all processes.
        memory: MiB that the largest Python worker had resident.
    """

    wall: float
    cpu: float
    memory: float


def _measure(job: Callable[[], object]) -> Cost:
    largest, done = 0.0, threading.Event()

    def look() -> None:
        nonlocal largest
        while not done.wait(_LOOK_EVERY):
            largest = max(largest, largest_worker())

    watcher = threading.Thread(target=look)
    watcher.start()
    cpu, began = cpu_seconds(), time.perf_counter()
    try:
        job()
        cost = time.perf_counter() - began, cpu_seconds() - cpu
    finally:
        done.set()
        watcher.join()
    return Cost(wall=cost[0], cpu=cost[1], memory=largest)


def _files(archive: Path) -> list[Path]:
    """The files of an archive's records."""
    return [archive / RECORDS / file.path for file in Archive(archive).files()]


def _jobs(spark: SparkSession, archive: Path, out: Path) -> dict[str, Callable[[], object]]:
    def read() -> object:
        rows = spark.read.parquet(*map(str, _files(archive)))
        return rows.select(F.sum(F.crc32("value"))).collect()

    return {
        "read": read,
        "tables": lambda: make_tables(archive, out, engine=Engine.spark()),
    }


_TITLES: Final = {
    "read": "reading in the JVM: `sum(crc32(value))`",
    "tables": "tables",
}


def _report(archive: Path, costs: dict[str, Cost], *, warm: bool) -> str:
    values = [
        column
        for path in _files(archive)
        for column in pq.read_table(path, columns=["value"], partitioning=None)["value"].chunks
    ]
    count, size = sum(map(len, values)), sum(column.nbytes for column in values)
    stored = sum(path.stat().st_size for path in _files(archive))
    floor = costs["read"].cpu
    lines = [
        "# What the tables of an archive cost",
        "",
        (
            f"{count:,} records of groups with {MEMBERS} members and {sum(TOPICS.values())} partitions, "
            f"{size / count:,.0f} bytes each, {GENERATIONS} generations of each group; {size / 1e9:.2f} GB, "
            f"{stored / 1e6:,.0f} MB of Parquet. Spark runs with `local[2]`, each job in a JVM of its own, "
            f"which is {'warm' if warm else 'new'}. CPU seconds are those of all its processes."
        ),
        "",
        "| job | CPU s | times reading | at most | s | records/CPU s | largest worker, MiB |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, cost in costs.items():
        limit, memory = (f"{LIMIT:.0f}", f"{cost.memory:.0f}") if name == "tables" else ("", "")
        lines.append(
            f"| {_TITLES[name]} | {cost.cpu:.1f} | {cost.cpu / floor:.1f} | {limit} | {cost.wall:.1f} | "
            f"{count / cost.cpu:,.0f} | {memory} |"
        )
    lines += ["", "| | |", "|---|---|"]
    lines += [f"| {name} | {value} |" for name, value in machine.describe().items()]
    return "\n".join([*lines, "", "Made by `python -m benchmarks.history_tables`.", ""])


def _run_job(name: str, archive: Path, *, warm: bool) -> Cost:
    """Run a job in this process."""
    with tempfile.TemporaryDirectory() as temporary, local_spark() as spark:
        folder = Path(temporary)
        if warm:
            write_archive(folder / "small", _SMALL)
            for _ in range(3):
                _jobs(spark, folder / "small", folder / "small-tables")[name]()
        return _measure(_jobs(spark, archive, folder / "tables")[name])


def _run_apart(name: str, archive: Path, *, warm: bool) -> Cost:
    """Run a job in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.history_tables", "--job", name, "--archive", str(archive)]
    done = subprocess.run([*command, *["--warm"] * warm], check=True, stdout=subprocess.PIPE, text=True)
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Measure, print and write down.

    Returns:
        0 if the tables take no more than they may, else 1.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=40_000, help="how many (40,000)")
    parser.add_argument("--archive", type=Path, help="where to keep the archive, or where it is")
    parser.add_argument("--warm", action="store_true", help="in JVMs that have run the same before")
    parser.add_argument("--result", type=Path, default=RESULT, help="the file to write")
    parser.add_argument("--job", choices=[*_TITLES], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        cost = _run_job(options.job, options.archive, warm=options.warm)
        sys.stdout.write(json.dumps(asdict(cost)) + "\n")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        archive: Path = options.archive or Path(temporary) / "archive"
        if not archive.exists():
            write_archive(archive, options.records)
        costs = {}
        for name in _TITLES:
            costs[name] = _run_apart(name, archive, warm=options.warm)
            sys.stderr.write(f"{_TITLES[name]}: {costs[name].cpu:.1f} CPU s, {costs[name].wall:.1f} s\n")
        report = _report(archive, costs, warm=options.warm)
    options.result.write_text(report)
    sys.stdout.write(report)
    return int(costs["tables"].cpu > LIMIT * costs["read"].cpu)


if __name__ == "__main__":
    sys.exit(main())
