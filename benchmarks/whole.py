"""When each kind of tests last ran whole: what `nox -s whole` writes, and the gate's last line reads.

`python -m benchmarks.whole tests.xml containers.xml` writes the rows of pytest's reports that are there;
`python -m benchmarks.whole containers` says when that kind ran.
"""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE = Path("benchmarks/results/whole.md")

HEAD = """\
# When each kind of tests last ran whole

`nox -s whole` writes this page. A test that is slow counts in its folder as well; seconds are those of all
processes.

| kind | date | revision | passed | failed | skipped | s |
|---|---|---|---|---|---|---|
"""


def kinds_of(case: ET.Element, report: Path) -> Iterator[str]:
    """The kinds of a test: containers, or its folder and perhaps slow."""
    if "containers" in report.stem:
        yield "containers"
        return
    parts = case.attrib["classname"].split(".")
    yield "/".join(parts[: 2 if parts[0] == "tests" else 1])
    if case.find("properties/property[@name='slow']") is not None:
        yield "slow"


def rows(report: Path, when: str) -> dict[str, str]:
    """The rows of a report, by kind."""
    counts: Counter[tuple[str, str]] = Counter()
    seconds: dict[str, float] = defaultdict(float)
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - pytest wrote it
        if "classname" not in case.attrib:
            raise SystemExit(f"{report}: pytest was broken off in a test, so nothing ran whole")
        found = {child.tag for child in case}
        result = "failed" if found & {"failure", "error"} else "skipped" if "skipped" in found else "passed"
        for kind in kinds_of(case, report):
            counts[kind, result] += 1
            seconds[kind] += float(case.attrib["time"])
    made = {}
    for kind, took in seconds.items():
        results = [f"{counts[kind, result]:,}" for result in ("passed", "failed", "skipped")]
        made[kind] = f"| {' | '.join([kind, when, *results, f'{took:,.0f}'])} |"
    return made


def last(page: Path) -> dict[str, str]:
    """The rows of the page, by kind."""
    lines = page.read_text(encoding="utf-8").splitlines() if page.exists() else []
    table = [line for line in lines if line.startswith("| ")][1:]
    return {line.split(" | ")[0].removeprefix("| "): line for line in table}


def said_of(row: str) -> str:
    """When a kind ran, by its row."""
    _, day, revision, _, failed, *_ = row.split(" | ")
    return f"{day} at {revision}" + ("" if failed == "0" else f" ({failed} failed)")


def main(arguments: Sequence[str]) -> None:
    """Write the rows of reports, or say when a kind ran."""
    table = last(PAGE)
    if not arguments[0].endswith(".xml"):
        print(said_of(table[arguments[0]]) if arguments[0] in table else "never")  # noqa: T201
        return
    revision = subprocess.check_output(["git", "describe", "--always", "--dirty"], text=True).strip()
    for report in filter(Path.exists, map(Path, arguments)):
        table |= rows(report, f"{datetime.now(UTC).date()} | {revision}")
    PAGE.write_text(HEAD + "".join(f"{table[kind]}\n" for kind in sorted(table)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
