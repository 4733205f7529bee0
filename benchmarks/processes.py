"""This process and those below it: with Spark its JVM, the daemon of the Python workers, and these."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil


def below(pid: int | None = None) -> list[psutil.Process]:
    """The processes below one, or below this one; the newest last."""
    try:
        found = psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return sorted(found, key=lambda one: one.pid)


def cpu_seconds(*, own: bool = True) -> float:
    """CPU seconds of this process, unless not `own`, and all below it; with children that have ended."""
    total = 0.0
    for one in [*([psutil.Process()] if own else []), *below()]:
        with suppress(psutil.NoSuchProcess):
            total += sum(one.cpu_times()[:4])
    return total


def largest_worker() -> float:
    """The most MiB that a Python process had that is below this one now."""
    sizes = [0.0]
    for one in below():
        with suppress(psutil.NoSuchProcess, OSError):
            if one.name().startswith("python"):
                sizes.append(_peak(one.pid))
    return max(sizes)


def _peak(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))
