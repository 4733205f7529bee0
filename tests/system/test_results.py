"""Each stored result that a page shows names its code, and one that is older than its code is listed."""

import re
import subprocess
from pathlib import Path

from tests.support.pages import ROOT, pages, read
from tests.support.results import RESULTS, faults, measured


def test_each_result_that_a_page_shows_names_code_that_is_there() -> None:
    shown = {name for page in pages() for name in re.findall(r"benchmarks/results/(\w+\.md)", read(page))}
    assert shown - {*measured(ROOT)} == set()
    assert [path for code in measured(ROOT).values() for path in code if not (ROOT / path).exists()] == []


def git(root: Path, *arguments: str) -> str:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    command = ["git", "-C", str(root), *who, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_a_result_is_older_if_its_code_has_changed_since(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    results = tmp_path / RESULTS
    results.mkdir(parents=True)
    for name in ("measured.py", "other.py"):
        (tmp_path / name).write_text("1", encoding="utf-8")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "1")
    revision = git(tmp_path, "rev-parse", "--short=7", "HEAD")
    names = ("a.md", "b.md", "unknown.md")
    (results / "code.toml").write_text("".join(f'"{name}" = ["measured.py"]\n' for name in names))
    (results / "a.md").write_text(f"- revision: 0123456, {revision}-dirty\n", encoding="utf-8")
    (results / "b.md").write_text("| a | b |\n", encoding="utf-8")
    (results / "unknown.md").write_text("| revision | 0123456 |\n", encoding="utf-8")
    (tmp_path / "other.py").write_text("2", encoding="utf-8")
    git(tmp_path, "commit", "-qam", "2")
    always = [
        f"{RESULTS}/b.md names no revision",
        f"{RESULTS}/unknown.md is of 0123456, which git does not know",
    ]
    assert faults(tmp_path) == always
    (tmp_path / "measured.py").write_text("2", encoding="utf-8")
    git(tmp_path, "commit", "-qam", "3")
    assert faults(tmp_path) == [f"{RESULTS}/a.md is of {revision}; commits to its code since: 1", *always]
