"""What the archive's log costs: beside an earlier revision, by the number of commits, and over a year.

    python -m benchmarks.history_log --before REVISION

The sources of REVISION and these run the same jobs in turn, each job in a process of its own with a new JVM,
and who is first changes. CPU seconds are those of all its processes.

What was measured is kept in the folder --work, with the archives, until the page is whole: a run that was
ended goes on there. The status is 1 if the tables take too much of the CPU of before.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import pyarrow as pa

from benchmarks import machine
from benchmarks.processes import cpu_seconds
from benchmarks.trees import ROOT, check_out, in_turn, run_in
from kafka_assignors._common.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

RESULT: Final = Path(__file__).parent / "results" / "history_log.md"
WORK: Final = Path(tempfile.gettempdir()) / "kafka-assignors-history-log"
BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
DAYS: Final = 30
BATCHES: Final = 24
COMMITS: Final = (100, 1_000, 10_000)
MODERN_HOURS: Final = 24
"""In a year with KIP-848, each so manieth hour has some of it."""
SETTINGS: Final = {"spark.driver.memory": "4g"}
"""As large an archive does not fit into Spark's default, in either tree."""
LARGEST_RATIO: Final = 1.2
"""Of the tables' CPU to that of before."""

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
    from kafka_assignors.history import Archive, Engine, make_tables, spark_session  # noqa: PLC0415
    from tests.support.small_archives import read  # noqa: PLC0415

    spark: SparkSession
    if name == "start":
        began, cpu = time.perf_counter(), cpu_seconds()
        spark = spark_session("local[2]", settings=SETTINGS)
        read(spark, Archive(folder)).limit(1).collect()
        return {"wall": time.perf_counter() - began, "cpu": cpu_seconds() - cpu}
    spark = spark_session("local[2]", settings=SETTINGS)
    if name == "make":
        archive = Archive.create(folder)
        for number in range(BATCHES):
            _append(spark, archive, number, records // BATCHES)
        return {}
    archive = Archive(folder)
    jobs: dict[str, Callable[[], object]] = {
        "batch": lambda: _append(spark, Archive.create(folder.with_name("other")), 0, records // BATCHES),
        "all": lambda: _sum(read(spark, archive)),
        "day": lambda: _sum(
            read(spark, archive, since=BEGAN + timedelta(days=9), until=BEGAN + timedelta(days=10))
        ),
        "tables": lambda: make_tables(folder, folder.with_name("tables"), engine=Engine.spark()),
    }
    _sum(read(spark, archive, until=BEGAN + timedelta(hours=1)))  # the session is warm
    began, cpu = time.perf_counter(), cpu_seconds()
    jobs[name]()
    return {"wall": time.perf_counter() - began, "cpu": cpu_seconds() - cpu}


def _append(spark: SparkSession, archive: Any, number: int, count: int) -> None:
    """Add a batch by the API of the tree that runs."""
    from benchmarks.history_archive import records_of_groups  # noqa: PLC0415
    from kafka_assignors.history._archive_format import log_of  # noqa: PLC0415
    from kafka_assignors.history._schemas import ARCHIVE  # noqa: PLC0415
    from kafka_assignors.history._spark import run_frame  # noqa: PLC0415

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
    frame = spark.createDataFrame(table)
    archive.append(partial(run_frame, frame.coalesce(1), ARCHIVE), "topic", {log_of(0): (number + 1) * count})


def _sum(rows: Any) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its common name

    rows.select(F.sum(F.crc32("value"))).collect()


class State:
    """What was measured so far, in a file.

    Args:
        folder: Where the file is, and what else is needed to go on.
        about: What is measured; a file of something else is left out of account.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        self._path = folder / "state.json"
        folder.mkdir(parents=True, exist_ok=True)
        kept = json.loads(self._path.read_text(encoding="utf-8")) if self._path.exists() else {}
        if kept.get("about") != about:
            shutil.rmtree(folder)
            folder.mkdir()
            kept = {"about": about}
        self._kept = kept

    def once(self, name: str, measure: Callable[[], Any]) -> Any:
        """What was measured under a name, or else is now."""
        if name not in self._kept:
            self._kept[name] = measure()
            partial = self._path.with_suffix(".partial")
            partial.write_text(json.dumps(self._kept), encoding="utf-8")
            partial.replace(self._path)
        return self._kept[name]


# Both trees in turn


def beside(before: str, records: int, times: int, state: State) -> tuple[list[str], float]:
    """Run each job in both trees.

    Returns:
        Lines of a table, and the ratio of the tables' CPU.
    """
    trees = {"before": state.folder / "tree", "now": ROOT}
    state.once(
        "checked out", lambda: check_out(before, trees["before"], ["history_log", "processes", "trees"])
    )
    archives = {tree: state.folder / tree / "archive" for tree in trees}
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    with progress_bar() as bar:
        task = bar.add_task("beside the revision before", total=len(trees) * (1 + times * len(JOBS)))
        for tree, root in trees.items():
            state.once(f"make {tree}", partial(_make, root, archives[tree], records))
            bar.advance(task)
        for number in range(times):
            for name in JOBS:
                for tree in in_turn([*trees], number):
                    run = partial(_run_apart, trees[tree], name, archives[tree], records)
                    found.setdefault((name, tree), []).append(state.once(f"{name} {tree} {number}", run))
                    bar.advance(task)
    lines = [
        "| job | CPU s before | now | ratio | s before | now | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    ratios: dict[tuple[str, str], float] = {}
    for name, title in JOBS.items():
        cells = [title]
        for what in ("cpu", "wall"):
            old, new = (statistics.median(one[what] for one in found[name, tree]) for tree in trees)
            ratios[name, what] = new / old
            cells += [f"{old:.2f}", f"{new:.2f}", f"{new / old:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    old_size, new_size = (_size(archive) for archive in archives.values())
    return [*lines, "", f"The archive: {old_size:.1f} MB before, {new_size:.1f} MB now."], ratios[
        "tables", "cpu"
    ]


def verdict(ratio: float) -> str:
    """Whether the tables' CPU is what is wanted."""
    held = "held" if ratio <= LARGEST_RATIO else "NOT held"
    return f"Tables may take {LARGEST_RATIO} times the CPU of before; they take {ratio:.2f} times: {held}."


def _make(root: Path, folder: Path, records: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _run_apart(root, "make", folder, records)


def _run_apart(root: Path, name: str, folder: Path, records: int) -> dict[str, float]:
    command = ("-m", "benchmarks.history_log", "--job", name, "--folder", str(folder))
    told: dict[str, float] = run_in(root, *command, "--records", str(records))
    for other in ("other", "tables"):
        shutil.rmtree(folder.with_name(other), ignore_errors=True)
    return told


def _size(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


# Many commits


def many_commits(most: int, state: State) -> list[str]:
    """A batch a minute: what it takes to open, list, append and read an hour; then after maintenance."""
    from kafka_assignors.history import Archive, maintain, plan_maintenance, spark_session  # noqa: PLC0415
    from tests.support.small_archives import read  # noqa: PLC0415

    lines = [
        "| commits | files | log MB | open s | list s | append s | read an hour s | files of the hour |",
        "|---|---|---|---|---|---|---|---|",
    ]
    spark = spark_session("local[2]", settings=SETTINGS)
    folder = state.folder / "commits"
    archive = Archive.create(folder)
    if not archive.frontier():
        _commit(archive, 0)
    for _ in range(2):
        read(spark, archive, since=BEGAN).count()  # Spark and its workers are warm for the first row, too
    counts = sorted({*(count for count in COMMITS if count < most), most})
    with progress_bar() as bar:
        task = bar.add_task("commits", total=most)
        seconds: list[float] = []
        for count in counts:
            # Of an ended run, the archive says itself how far it got.
            for number in range(archive.frontier().get(0, 0) // 20, count):
                seconds.append(_commit(archive, number))
                bar.update(task, completed=number)
            row = partial(_row, spark, folder, f"{count:,}", count - 1, seconds[-50:])
            lines.append(state.once(f"commits {count}", row))

    def maintained() -> tuple[float, str]:
        began = time.perf_counter()
        there = Archive(folder)
        maintain(there, plan_maintenance(there))
        took = time.perf_counter() - began
        after = [_commit(there, most + number) for number in range(20)]
        return took, _row(spark, folder, "and maintenance", most + 20, after)

    took, last = state.once("maintained", maintained)
    spark.stop()
    return [
        *lines,
        last,
        "",
        f"Maintenance took {took:.1f} s. *append* is without what Spark does for a batch.",
    ]


def _commit(archive: Any, number: int) -> float:
    """Commit a small file of a minute, as a task would have written it."""
    from kafka_assignors.history._archive_format import log_of  # noqa: PLC0415
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
    log.commit(add=added, transactions={log_of(0): 20 * (number + 1)})
    return time.perf_counter() - began


def _row(spark: SparkSession, folder: Path, title: str, number: int, seconds: Sequence[float]) -> str:
    from kafka_assignors.history import Archive  # noqa: PLC0415
    from tests.support.small_archives import read  # noqa: PLC0415

    began = time.perf_counter()
    archive = Archive(folder)
    opened = time.perf_counter()
    files = archive.files()
    listed = time.perf_counter()
    since = BEGAN + timedelta(minutes=number - 60)
    of_hour = archive.files(since=since)
    read(spark, archive, since=since).count()
    counted = time.perf_counter()
    append = statistics.median(seconds or [math.nan])
    return (
        f"| {title} | {len(files):,} | {_size(folder / 'records' / '_delta_log'):.1f} | {opened - began:.2f}"
        f" | {listed - opened:.2f} | {append:.3f} | {counted - listed:.2f} | {len(of_hour):,} |"
    )


def a_year(days: int) -> list[str]:
    """What is read for the last hour of a year whose files have an hour each, by `read` and for a command."""
    from kafka_assignors.history import Engine, spark_session  # noqa: PLC0415
    from kafka_assignors.history._records import Selection  # noqa: PLC0415
    from tests.support.small_archives import read  # noqa: PLC0415

    spark = spark_session("local[2]", settings=SETTINGS)
    lines = ["| archive | way | files | read | rows | s |", "|---|---|---|---|---|---|"]
    for title, modern in (("classic groups", 0), (f"KIP-848 in each {MODERN_HOURS}th hour", MODERN_HOURS)):
        with tempfile.TemporaryDirectory() as temporary:
            archive = _of_hours(Path(temporary) / "archive", days * 24, modern)
            since = BEGAN + timedelta(days=days, hours=-1)
            read(spark, archive, since=since).count()
            for way in ("read", "groups"):
                archive.asked.clear()
                began = time.perf_counter()
                if way == "read":
                    rows = read(spark, archive, since=since).count()
                else:
                    found = Engine.spark().map_sorted(archive, Selection(since=since), _count_rows)
                    rows = sum(found.rows)
                took = time.perf_counter() - began
                files = len(archive.files())
                lines.append(
                    f"| {title} | {way} | {files:,} | {len(archive.asked):,} | {rows:,} | {took:.2f} |"
                )
    spark.stop()
    return [*lines, "", "*read* is how many files of the archive the tasks open. The time is `--since 1h`'s."]


def _count_rows(batches: Iterator[Any], _: object) -> Iterator[int]:
    return (batch.num_rows for batch in batches)


def _of_hours(folder: Path, hours: int, modern: int) -> Any:
    """An archive with a file for each hour, which notes what it has read."""
    from kafka_assignors.history import Archive  # noqa: PLC0415
    from kafka_assignors.history._schemas import ARCHIVE  # noqa: PLC0415
    from kafka_assignors.history._store.writing import TaskFiles  # noqa: PLC0415

    class Noting(Archive):
        asked: ClassVar[set[str]] = set()

        def split(self, files: Any, *others: Any, **named: Any) -> Any:
            self.asked.update(file.path for file in files)
            return super().split(files, *others, **named)

    archive = Noting.create(folder)
    log, _ = archive.logs
    added = []
    for hour in range(hours):
        first = BEGAN + timedelta(hours=hour)
        kinds = [3 if modern and hour % modern in {0, modern - 1} and n == 0 else 2 for n in range(20)]
        rows = [
            (
                kind,
                1,
                kind.to_bytes(2, "big") + b"\0\1g",
                b"v" * 100,
                0,
                20 * hour + n,
                first + timedelta(minutes=n),
                0,
            )
            for n, kind in enumerate(kinds)
        ]
        named = [dict(zip(ARCHIVE.names, row, strict=True)) for row in rows]
        values = {"source": "topic", "day": f"{first:%Y-%m-%d}"}
        day = "/".join(f"{name}={value}" for name, value in values.items())
        with TaskFiles(log.where, f"{hour:08d}") as files:
            files.write_group(day, pa.RecordBatch.from_pylist(named, schema=ARCHIVE))
        added.append(files.written[day])
    log.commit(add=added)
    return archive


_PAGE: Final = """# The archive's log

## Beside the revision before

{records:,} records of 7 kB over {days} days in {batches} batches; the median of {times} runs in turn, of
`{before}` and of these sources. Spark runs with `local[2]`.

{beside}

{verdict}

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
        1 if the tables take too much, else 0.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--before", required=True, help="the revision")
    parser.add_argument("--records", type=int, default=240_000, help="how many (%(default)s)")
    parser.add_argument("--times", type=int, default=3, help="runs of each job (%(default)s)")
    parser.add_argument("--commits", type=int, default=COMMITS[-1], help="how many at most (%(default)s)")
    parser.add_argument("--days", type=int, default=365, help="of the year (%(default)s)")
    parser.add_argument("--work", type=Path, default=WORK, help="where an ended run goes on (%(default)s)")
    parser.add_argument("--output", type=Path, default=RESULT, help="the page (%(default)s)")
    parser.add_argument("--job", choices=["make", *JOBS], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        sys.stdout.write(json.dumps(run_job(options.job, options.folder, options.records)) + "\n")
        return 0
    about = {name: getattr(options, name) for name in ("before", "records", "times", "commits", "days")} | {
        "now": machine.describe()["revision"]
    }
    state = State(options.work, about)
    measured_on = state.once("machine", machine.describe)
    table, ratio = beside(options.before, options.records, options.times, state)
    parts = {
        "machine": machine.lines(measured_on),
        "beside": table,
        "verdict": [verdict(ratio)],
    }
    _write(options, parts)
    parts["many"] = many_commits(options.commits, state)
    _write(options, parts)
    parts["year"] = state.once("year", lambda: a_year(options.days))
    sys.stdout.write(_write(options, parts))
    shutil.rmtree(options.work)
    return int(ratio > LARGEST_RATIO)


def _write(options: argparse.Namespace, parts: Mapping[str, list[str]]) -> str:
    """Write the page, with the parts that there are."""
    told = {"many": ["Not measured yet."], "year": ["Not measured yet."], **parts}
    text = _PAGE.format(
        records=options.records,
        days=DAYS,
        batches=BATCHES,
        times=options.times,
        before=options.before,
        **{name: "\n".join(lines) for name, lines in told.items()},
    )
    options.output.write_text(text, encoding="utf-8")
    return text


if __name__ == "__main__":
    sys.exit(main())
