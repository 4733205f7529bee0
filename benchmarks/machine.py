"""The machine that results are from."""

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def describe() -> dict[str, str]:
    """What it is, and what else it is doing."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "CPU": _field(Path("/proc/cpuinfo"), "model name") or platform.processor(),
        "cores": str(os.cpu_count()),
        "memory": _memory(),
        "OS": _system(),
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": version("numpy"),
        "revision": _revision(),
        "load average at the start": " ".join(f"{load:.2f}" for load in os.getloadavg()),
    }


def lines(told: Mapping[str, str]) -> list[str]:
    """What `describe` says, as the lines of a page."""
    return [f"- {name}: {value}" for name, value in told.items()]


def _revision() -> str:
    """What git calls the sources that run; results that are being stored are none."""
    try:
        revision = _git("describe", "--always")
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":!results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{revision}-dirty" if changed else revision


def _git(*command: str) -> str:
    ran = subprocess.run(
        ["git", *command], cwd=Path(__file__).parent, capture_output=True, check=True, text=True
    )
    return ran.stdout.strip()


def _field(path: Path, name: str) -> str | None:
    """The first value of a name in a file of `name : value` lines, if there is one."""
    try:
        lines = path.read_text().splitlines()
    except OSError:
        return None
    pairs = [line.split(":", 1) for line in lines if ":" in line]
    return next((value.strip() for key, value in pairs if key.strip() == name), None)


def _memory() -> str:
    kibibytes = _field(Path("/proc/meminfo"), "MemTotal")
    return "unknown" if kibibytes is None else f"{int(kibibytes.split()[0]) / 2**20:.1f} GiB"


def _system() -> str:
    try:
        name = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        name = platform.system()
    return f"{name}, {platform.system()} {platform.release()}, {platform.machine()}"
