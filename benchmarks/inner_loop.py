"""How long a person waits for a run of pytest with the test kit: with a new broker, and with a kept one.

    python -m benchmarks.inner_loop

A run has two tests. The first asks for the cluster only, the second for a group of three members that is
stable, on a new topic. Whole runs are timed from outside, tests by pytest's own report: the first with its
setup, in which the broker starts. jars and Java are in the cache already.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks import machine
from kafka_assignors._common.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULT: Final = Path(__file__).parent / "results" / "inner_loop.md"
PLUG_IN: Final = "kafka_assignors.testing._plugin"
KEPT_SECONDS: Final = 120

TESTS: Final = """\
def test_cluster(kafka_cluster):
    assert kafka_cluster.bootstrap_servers


def test_group(consumer_group):
    group = consumer_group(members=3)
    assert sorted(map(len, group.wait_stable().assignments.values())) == [2, 2, 2]
"""

_PAGE: Final = """\
# How long a run of tests takes

`python -m benchmarks.inner_loop --runs {runs}`: seconds, median and longest of {runs} runs of pytest with two
tests. *first test* is the first one with the broker's start; *group* is a test of a group of three, from
a new topic to a stable group and its end. *kept* are runs with `--kafka-keep` that find a broker.

| | whole run | first test | group |
|---|---|---|---|
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of pytest, in seconds."""

    whole: float
    first: float
    group: float


def run(folder: Path, *options: str) -> Run:
    """Run the two tests once.

    Raises:
        RuntimeError: They did not pass.
    """
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", PLUG_IN)
    report = folder / "report.xml"
    began = time.monotonic()
    done = subprocess.run(
        [*command, "--kafka=embedded", f"--junitxml={report}", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    whole = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(f"the tests did not pass:\n{done.stdout}{done.stderr}")
    cases = ET.parse(report).iter("testcase")  # noqa: S314 - pytest wrote it just now
    seconds = {case.attrib["name"]: float(case.attrib["time"]) for case in cases}
    return Run(whole=whole, first=seconds["test_cluster"], group=seconds["test_group"])


def measure(runs: int) -> dict[str, list[Run]]:
    """Runs with a broker of their own, then such that find one."""
    found: dict[str, list[Run]] = {"a new broker": [], "kept": []}
    with tempfile.TemporaryDirectory() as name, progress_bar() as bar:
        folder = Path(name)
        (folder / "test_loop.py").write_text(TESTS, encoding="utf-8")
        task = bar.add_task("runs", total=2 * runs + 1)
        keep = f"--kafka-keep={KEPT_SECONDS}"
        for kind, options in (("a new broker", ()), ("kept", (keep,))):
            if options:
                run(folder, *options)  # starts what the others find
                bar.advance(task)
            for _ in range(runs):
                found[kind].append(run(folder, *options))
                bar.advance(task)
    return found


def report(found: Mapping[str, Sequence[Run]], about: Mapping[str, str]) -> str:
    """The result as a page."""
    lines = []
    for kind, runs in found.items():
        cells = [
            f"{statistics.median(values):.1f}, {max(values):.1f}"
            for values in zip(*((one.whole, one.first, one.group) for one in runs), strict=True)
        ]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    lines += ["", *machine.lines(about), ""]
    return _PAGE.format(runs=len(next(iter(found.values())))) + "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page.

    Returns:
        0.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inner_loop", description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument(
        "--output", type=Path, default=RESULT, help="the page to write (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    about = machine.describe()
    page = report(measure(options.runs), about)
    options.output.write_text(page, encoding="utf-8")
    sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
