"""The sources of another revision, with what is compiled of them: for a benchmark of before and after."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROOT: Final = Path(__file__).parents[1]


def check_out(revision: str, folder: Path, modules: Iterable[str]) -> None:
    """Put the sources of a revision into a folder, compile them, and add modules of these benchmarks.

    Args:
        revision: What git knows it by.
        folder: Where to; what is there is removed.
        modules: The names of those; they take the place of the revision's.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    packed = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)
    # What is compiled was described in pyproject.toml once.
    setup = (
        ["setup.py"] if (folder / "setup.py").exists() else ["-c", "import setuptools; setuptools.setup()"]
    )
    subprocess.run([sys.executable, *setup, "-q", "build_ext", "--inplace"], cwd=folder, check=True)
    for module in modules:
        shutil.copy(ROOT / "benchmarks" / f"{module}.py", folder / "benchmarks")


def run_in(root: Path, *command: str) -> Any:
    """Run `python` with the sources of a tree in a process of its own.

    Args:
        root: The tree.
        command: Python's arguments.

    Returns:
        What the last line that it prints says, as JSON.

    Raises:
        CalledProcessError: It failed.
    """
    done = subprocess.run(
        [sys.executable, *command],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root)},
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def in_turn(trees: Sequence[str], number: int) -> Sequence[str]:
    """The trees in the order of this round: who is first changes."""
    return trees[::-1] if number % 2 else trees
