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
    seconds: dict[str, dict[str, float]] = {"folder": defaultdict(float), "file": defaultdict(float)}
    for case in root.iter("testcase"):
        module = module_of(case.attrib["classname"])
        for kind, name in (("folder", folder_of(module)), ("file", str(module))):
            tests[name] += 1
            seconds[kind][name] += float(case.attrib["time"])
    whole = sum(float(suite.attrib["time"]) for suite in root.iter("testsuite"))
    lines = [f"{sum(seconds['folder'].values()):,.0f} s of tests in {whole:,.0f} s"]
    for kind, took in seconds.items():
        lines += ["", f"| {kind} | tests | s |", "|---|---|---|"]
        lines += [
            f"| {name} | {tests[name]:,} | {each:,.1f} |"
            for name, each in sorted(took.items(), key=lambda one: -one[1])[:25]
        ]
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Print the table of a report."""
    print(table(Path(arguments[0])))  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
