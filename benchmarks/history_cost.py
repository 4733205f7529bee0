"""What the history's commands cost by the number of records, beside a bare read of the same files by DuckDB.

    python -m benchmarks.history_cost

Each command is a process of its own, as people run it: without Spark up to 64 MiB, and with it above.
CPU seconds and memory are those of all its processes.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import psutil

from benchmarks import machine
from benchmarks.history_archive import GENERATIONS, MEMBERS, TOPICS, write_archive
from benchmarks.processes import below
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._archive_format import RECORDS
from tests.support.chromium import browser, find_chromium

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULT: Final = Path(__file__).parent / "results" / "history_cost.md"
SIZES: Final = (20_000, 70_000, 1_000_000)
REPLAYED: Final = 100_000
"""Records up to which histories are replayed by other assignors: a million takes most of an hour."""
_LOOK_EVERY: Final = 0.1
_READ: Final = (
    "import duckdb, sys; duckdb.read_parquet(sys.argv[1:]).aggregate('sum(octet_length(value))').fetchall()"
)


class Cost(NamedTuple):
    """What a command took: seconds, CPU seconds of all processes, the most MiB that they had together."""

    seconds: float
    cpu: float
    memory: float


def measured(command: Sequence[str]) -> Cost:
    """Run a command, and look at its processes ten times a second; the last look of each counts.

    Raises:
        RuntimeError: It failed.
    """
    began, most = time.perf_counter(), 0.0
    cpu: dict[int, float] = {}
    with tempfile.TemporaryFile() as output:
        running = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=output)
        while running.poll() is None:
            resident = 0
            for one in [running, *below(running.pid)]:
                with suppress(psutil.NoSuchProcess):
                    times = one.cpu_times()
                    cpu[one.pid] = times.user + times.system
                    resident += one.memory_info().rss
            most = max(most, resident / 2**20)
            time.sleep(_LOOK_EVERY)
        if running.returncode:
            output.seek(0)
            raise RuntimeError(f"{' '.join(command)}: {output.read().decode(errors='replace')}")
    return Cost(time.perf_counter() - began, sum(cpu.values()), most)


def commands(archive: Path, folder: Path, *, replay: bool) -> Mapping[str, Sequence[str]]:
    """The commands that are measured, by name."""
    files = [str(archive / RECORDS / file.path) for file in Archive(archive).files()]
    ours = [sys.executable, "-m", "kafka_assignors", "history"]
    found = {
        "bare read by DuckDB": [sys.executable, "-c", _READ, *files],
        "tables": [*ours, "tables", str(archive), str(folder / "tables")],
        "metrics": [*ours, "metrics", str(archive)],
        "report --no-what-if": [*ours, "report", "--no-what-if", str(archive), str(folder / "plain.html")],
    }
    if replay:
        found["report"] = [*ours, "report", str(archive), str(folder / "report.html")]
    return found


def seconds_to_open(page: Path) -> float:
    """Until a browser has loaded and laid out a page."""
    with browser() as chromium:
        began = time.perf_counter()
        chromium.open(page, width=1280)
        chromium.run("document.body.offsetHeight")
        return time.perf_counter() - began


def rows_of(records: int, folder: Path) -> list[str]:
    """A row of the result's table for each command."""
    archive = folder / "archive"
    write_archive(archive, records)
    rows = []
    replay = records <= REPLAYED
    for name, command in commands(archive, folder, replay=replay).items():
        cost = measured(command)
        sys.stderr.write(f"{records:,} records, {name}: {cost.cpu:.1f} CPU s in {cost.seconds:.1f} s\n")
        rows.append(
            f"| {records:,} | {-(-records // GENERATIONS):,} | {name} | {cost.cpu:.1f} "
            f"| {1e6 * cost.cpu / records:.0f} | {cost.memory:,.0f} | {cost.seconds:.1f} |"
        )
    page = folder / ("report.html" if replay else "plain.html")
    if find_chromium() is not None:
        what = f"opening that page of {page.stat().st_size / 1e6:.1f} MB"
        rows.append(f"| | | {what} | | | | {seconds_to_open(page):.1f} |")
    return rows


def main() -> int:
    """Measure, print and write down."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, nargs="+", default=SIZES, help="how many in each archive")
    parser.add_argument("--result", type=Path, default=RESULT, help="the file to write")
    options = parser.parse_args()
    described = machine.describe()
    lines = [
        "# What the history's commands cost",
        "",
        f"Records of 7.2 kB: {MEMBERS} members and {sum(TOPICS.values())} partitions. Each group has",
        f"{GENERATIONS} generations. Each command is a process of its own: without Spark up to 64 MiB,",
        "above that with `local[*]`. CPU seconds and MiB are those of all its processes.",
        f"Histories of more than {REPLAYED:,} records are not replayed here.",
        "",
        "| records | groups | command | CPU s | CPU µs a record | MiB | s |",
        "|---|---|---|---|---|---|---|",
    ]
    for records in options.records:
        with tempfile.TemporaryDirectory() as temporary:
            lines += rows_of(records, Path(temporary))
    lines += ["", *machine.lines(described), "", "Made by `python -m benchmarks.history_cost`.", ""]
    options.result.write_text("\n".join(lines))
    sys.stdout.write("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
