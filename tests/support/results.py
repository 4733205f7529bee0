"""Stored results that are older than the code they measure: `python -m tests.support.results [--fail]`.

With `--fail` the exit status is 1 if any is, as before a release.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
RESULTS: Final = Path("benchmarks", "results")


def measured(root: Path) -> dict[str, list[str]]:
    """Stored result -> the paths of the code that it measures."""
    return tomllib.loads((root / RESULTS / "code.toml").read_text(encoding="utf-8"))


def revision_of(text: str) -> str | None:
    """The last revision that a result says it is of."""
    lines = re.findall(r"^(?:- revision:|\| revision \|) .*$", text, re.MULTILINE)
    revisions: list[str] = re.findall(r"\b[0-9a-f]{7,40}\b", " ".join(lines))
    return revisions[-1] if revisions else None


def fault_of(root: Path, result: str, code: Sequence[str]) -> str | None:
    """Why a result does not say what its code does now; None if it does."""
    page = root / RESULTS / result
    if not page.exists():
        return "is not there"
    revision = revision_of(page.read_text(encoding="utf-8"))
    if revision is None:
        return "names no revision"
    command = ["git", "-C", str(root), "rev-list", "--count", f"{revision}..HEAD", "--", *code]
    counted = subprocess.run(command, capture_output=True, text=True, check=False)
    if counted.returncode:
        return f"is of {revision}, which git does not know"
    commits = int(counted.stdout)
    return f"is of {revision}; commits to its code since: {commits}" if commits else None


def faults(root: Path) -> list[str]:
    """A line for each stored result that is older than its code."""
    found = {result: fault_of(root, result, code) for result, code in measured(root).items()}
    return [f"{RESULTS / result} {fault}" for result, fault in found.items() if fault]


if __name__ == "__main__":
    lines = faults(ROOT)
    lines.append(f"{len(lines)} of {len(measured(ROOT))} stored results are older than their code\n")
    sys.stdout.write("\n".join(lines))
    sys.exit(len(lines) > 1 and "--fail" in sys.argv[1:])
