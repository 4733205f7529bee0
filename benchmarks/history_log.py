"""What the archive's log costs: beside the format before it, by the number of commits, and over a year.

    python -m benchmarks.history_log --before REVISION

REVISION is one that wrote archives of format 1. Its sources and these run the same jobs in turn, each job in
a process of its own with a new JVM. CPU seconds are those of all its processes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from benchmarks import machine, processes
from benchmarks.processes import cpu_seconds
from kafka_assignors._common.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

RESULT: Final = Path(__file__).parent / "results" / "history_log.md"
ROOT: Final = Path(__file__).parents[1]
BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
DAYS: Final = 30
BATCHES: Final = 24
COMMITS: Final = (100, 1_000, 10_000)
LARGEST_RATIO: Final = 1.2
"""Of the tables' CPU to that of the format before."""

JOBS: Final = {
    "start": "start, and open the archive",
    "batch": "a batch",
    "all": "read all",
    "day": "read one day",
    "tables": "tables",
}


# One job, in either tree of sources: it imports what the tree has.


def run_job(name: str, folder: Path, records: int) -> dict[str, float]:
    """Run a job in this process; the archive is made first, if it is not there."""
    from kafka_assignors.history import Archive, make_tables, spark_session  # noqa: PLC0415

    spark: SparkSession
    if name == "start":
        began, cpu = time.perf_counter(), cpu_seconds()
        spark = spark_session("local[2]")
        Archive(folder).read(spark).limit(1).collect()
        return {"wall": time.perf_counter() - began, "cpu": cpu_seconds() - cpu}
    spark = spark_session("local[2]")
    if name == "make":
        archive = Archive.create(folder)
        for number in range(BATCHES):
            _append(spark, archive, number, records // BATCHES)
        return {}
    archive = Archive(folder)
    jobs: dict[str, Callable[[], object]] = {
        "batch": lambda: _append(spark, Archive.create(folder.with_name("other")), 0, records // BATCHES),
        "all": lambda: _sum(archive.read(spark)),
        "day": lambda: _sum(
            archive.read(spark, since=BEGAN + timedelta(days=9), until=BEGAN + timedelta(days=10))
        ),
        "tables": lambda: make_tables(spark, str(folder), str(folder.with_name("tables"))),
    }
    _sum(archive.read(spark, until=BEGAN + timedelta(hours=1)))  # the session is warm
    began, cpu = time.perf_counter(), cpu_seconds()
    jobs[name]()
    return {"wall": time.perf_counter() - began, "cpu": cpu_seconds() - cpu}


def _append(spark: SparkSession, archive: Any, number: int, count: int) -> None:
    """Add a batch by the API of the tree that runs."""
    from benchmarks.history_archive import records_of_groups  # noqa: PLC0415
    from kafka_assignors.history._schemas import ARCHIVE  # noqa: PLC0415
    from kafka_assignors.history._spark_schema import spark_schema  # noqa: PLC0415

    step = timedelta(days=DAYS) / (BATCHES * count)
    began = BEGAN + number * count * step
    rows = [
        (2, 1, key, value, 0, number * count + place, began + place * step, 0)
        for place, (key, value) in enumerate(records_of_groups(f"{number:02d}", -(-count // 50), count))
    ]
    columns = zip(*rows, strict=True)
    table = pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, ARCHIVE, strict=True)], schema=ARCHIVE
    )
    frame = spark.createDataFrame(table, spark_schema(ARCHIVE))
    if hasattr(archive, "append"):
        archive.append(frame, "topic", archive.read_to({0: (number + 1) * count}))
    else:
        archive.write(frame, "topic", f"{number:08d}")


def _sum(rows: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its common name

    rows.select(F.sum(F.crc32("value"))).collect()


# Both trees in turn


def beside(before: str, records: int, times: int) -> list[str]:
    """Run each job in both trees; return lines of a table."""
    with tempfile.TemporaryDirectory() as temporary, progress_bar() as bar:
        trees = {"before": _checked_out(before, Path(temporary) / "tree"), "now": ROOT}
        task = bar.add_task("beside the format before", total=len(trees) * (1 + times * len(JOBS)))
        found: dict[tuple[str, str], list[dict[str, float]]] = {}
        for tree, root in trees.items():
            _run_apart(root, "make", Path(temporary) / tree / "archive", records)
            bar.advance(task)
        for _ in range(times):
            for name in JOBS:
                for tree, root in trees.items():
                    folder = Path(temporary) / tree / "archive"
                    found.setdefault((name, tree), []).append(_run_apart(root, name, folder, records))
                    for other in ("other", "tables"):
                        shutil.rmtree(folder.with_name(other), ignore_errors=True)
                    bar.advance(task)
        sizes = {tree: _size(Path(temporary) / tree / "archive") for tree in trees}
    lines = [
        "| job | CPU s before | now | ratio | s before | now | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, title in JOBS.items():
        cells = [title]
        for what in ("cpu", "wall"):
            old, new = (statistics.median(one[what] for one in found[name, tree]) for tree in trees)
            cells += [f"{old:.2f}", f"{new:.2f}", f"{new / old:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, "", f"The archive: {sizes['before']:.1f} MB before, {sizes['now']:.1f} MB now."]


def _checked_out(revision: str, folder: Path) -> Path:
    """The sources of a revision, with what is compiled of them."""
    folder.mkdir()
    packed = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    subprocess.run([sys.executable, "setup.py", "-q", "build_ext", "--inplace"], cwd=folder, check=True)
    for module in (Path(__file__), Path(processes.__file__)):
        shutil.copy(module, folder / "benchmarks" / module.name)
    return folder


def _run_apart(root: Path, name: str, folder: Path, records: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.history_log", "--job", name, "--folder", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        [*command, "--records", str(records)],
        cwd=root,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def _size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


# Many commits


def many_commits() -> list[str]:
    """A batch a minute: what it takes to open, list, append and read an hour; then after maintenance."""
    from kafka_assignors.history import Archive, maintain, plan_maintenance, spark_session  # noqa: PLC0415

    lines = [
        "| commits | files | log MB | open s | list s | append s | read an hour s | files of the hour |",
        "|---|---|---|---|---|---|---|---|",
    ]
    spark = spark_session("local[2]")
    with tempfile.TemporaryDirectory() as temporary, progress_bar() as bar:
        task = bar.add_task("commits", total=COMMITS[-1])
        folder = Path(temporary) / "archive"
        archive = Archive.create(folder)
        seconds: list[float] = []
        for number in range(COMMITS[-1]):
            seconds.append(_commit(archive, number))
            bar.advance(task)
            if number + 1 in COMMITS:
                lines.append(_row(spark, folder, f"{number + 1:,}", number, statistics.median(seconds[-50:])))
        began = time.perf_counter()
        archive = Archive(folder)
        maintain(spark, archive, plan_maintenance(archive))
        took = time.perf_counter() - began
        after = statistics.median(_commit(archive, COMMITS[-1] + number) for number in range(20))
        lines.append(_row(spark, folder, "and maintenance", COMMITS[-1] + 20, after))
    return [*lines, "", f"Maintenance took {took:.1f} s. *append* is without what Spark does for a batch."]


def _commit(archive: Any, number: int) -> float:
    """Commit a small file of a minute, as a task would have written it."""
    from kafka_assignors.history._schemas import ARCHIVE  # noqa: PLC0415
    from tests.support.written_archives import write_batch  # noqa: PLC0415

    log, _ = archive.logs
    time_ = BEGAN + timedelta(minutes=number)
    rows = [(2, 1, b"\0\2\0\1g", b"v" * 500, 0, 20 * number + n, time_, 0) for n in range(20)]
    batch = pa.RecordBatch.from_pylist(
        [dict(zip(ARCHIVE.names, row, strict=True)) for row in rows], schema=ARCHIVE
    )
    added = write_batch(archive, batch)
    began = time.perf_counter()
    log.commit(add=added, transactions=archive.read_to({0: 20 * (number + 1)}))
    return time.perf_counter() - began


def _row(spark: SparkSession, folder: Path, title: str, number: int, append: float) -> str:
    from kafka_assignors.history import Archive  # noqa: PLC0415

    began = time.perf_counter()
    archive = Archive(folder)
    opened = time.perf_counter()
    files = archive.files()
    listed = time.perf_counter()
    since = BEGAN + timedelta(minutes=number - 60)
    of_hour = archive.files(since=since)
    archive.read(spark, since=since).count()
    read = time.perf_counter()
    return (
        f"| {title} | {len(files):,} | {_size(folder / 'records' / '_delta_log'):.1f} | {opened - began:.2f}"
        f" | {listed - opened:.2f} | {append:.3f} | {read - listed:.2f} | {len(of_hour):,} |"
    )


def a_year() -> list[str]:
    """Which files of a year's archive are read for an hour, by the log alone."""
    from kafka_assignors.history import Archive  # noqa: PLC0415
    from kafka_assignors.history._store.log import DataFile  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as temporary:
        archive = Archive.create(Path(temporary) / "archive")
        log, _ = archive.logs
        files = []
        for hour in range(365 * 24):
            first = BEGAN + timedelta(hours=hour)
            least, greatest = (
                {"timestamp": f"{one:%Y-%m-%dT%H:%M:%S.%fZ}"}
                for one in (first, first + timedelta(minutes=59))
            )
            values = {"source": "topic", "day": f"{first:%Y-%m-%d}"}
            files.append(DataFile(f"{hour}.parquet", 1_000_000, 1_000, values, least, greatest))
        log.commit(add=files)
        chosen = archive.files(since=BEGAN + timedelta(days=365, hours=-1))
    return [f"Of {len(files):,} files, one an hour, `--since 1h` reads {len(chosen)}."]


_PAGE: Final = """# The archive's log

## Beside the format before

{records:,} records of 7 kB over {days} days in {batches} batches; the median of {times} runs in turn, of
`{before}` and of these sources. Spark runs with `local[2]`.

{beside}

## Many commits

One batch of 20 records a minute.

{many}

## A year

{year}

{machine}

Made by `python -m benchmarks.history_log --before {before}`.
"""


def main() -> int:
    """Measure, print and write down.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", default="d51904f", help="a revision of format 1 (%(default)s)")
    parser.add_argument("--records", type=int, default=240_000, help="how many (%(default)s)")
    parser.add_argument("--times", type=int, default=3, help="runs of each job (%(default)s)")
    parser.add_argument("--output", type=Path, default=RESULT, help="the page (%(default)s)")
    parser.add_argument("--job", choices=["make", *JOBS], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        sys.stdout.write(json.dumps(run_job(options.job, options.folder, options.records)) + "\n")
        return 0
    told = machine.describe()
    text = _PAGE.format(
        records=options.records,
        days=DAYS,
        batches=BATCHES,
        times=options.times,
        before=options.before,
        beside="\n".join(beside(options.before, options.records, options.times)),
        many="\n".join(many_commits()),
        year="\n".join(a_year()),
        machine="\n".join(f"- {name}: {value}" for name, value in told.items()),
    )
    options.output.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
