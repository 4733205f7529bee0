"""Where the time of a test run went, by folder and by file: `python -m tests.support.times report.xml`.

The report is what `pytest --junitxml=report.xml` writes. A test's time includes what it was the first to
start, for itself and for others. With two processes, a run takes half of the sum or more.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Seconds = dict[str, float]

FILES = 25
"""How many files are shown."""

SLOWEST = 15
"""How many tests are shown."""


def module_of(classname: str) -> Path:
    """The file of a test, whose class name in the report may end with a class."""
    path = Path(*classname.split("."))
    while path.name and not path.with_suffix(".py").exists():
        path = path.parent
    return path.with_suffix(".py") if path.name else Path(classname)


def folder_of(module: Path) -> str:
    """`tests/unit`, ..., `integration_tests`."""
    return "/".join(module.parts[: 2 if module.parts[0] == "tests" else 1])


def table(report: Path) -> str:
    """The table in Markdown."""
    root = ET.parse(report).getroot()  # noqa: S314 - pytest wrote it
    tests: Counter[str] = Counter()
    folders: Seconds = defaultdict(float)
    files: Seconds = defaultdict(float)
    slowest: Seconds = defaultdict(float)
    for case in root.iter("testcase"):
        module = module_of(case.attrib["classname"])
        took = float(case.attrib["time"])
        folder = folder_of(module)
        tests.update((folder, str(module)))
        folders[folder] += took
        files[str(module)] += took
        slowest[f"{module}::{case.attrib['name']}"] += took
    whole = sum(float(suite.attrib["time"]) for suite in root.iter("testsuite"))
    lines = [f"{sum(folders.values()):,.0f} s of tests in {whole:,.0f} s", ""]
    for name, seconds, most in (("folder", folders, None), ("file", files, FILES)):
        lines += [f"| {name} | tests | s |", "|---|---|---|"]
        lines += [f"| {one} | {tests[one]:,} | {took:,.1f} |" for one, took in longest(seconds, most)]
        lines.append("")
    lines += ["| test | s |", "|---|---|"]
    lines += [f"| {one} | {took:,.1f} |" for one, took in longest(slowest, SLOWEST)]
    return "\n".join(lines)


def longest(seconds: Seconds, most: int | None) -> list[tuple[str, float]]:
    """The longest, first."""
    return sorted(seconds.items(), key=lambda one: -one[1])[:most]


def main(arguments: Sequence[str]) -> None:
    """Print the table of a report."""
    print(table(Path(arguments[0])))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
