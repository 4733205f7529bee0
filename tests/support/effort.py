"""How much work something is, on any machine: CPU time beside that of a loop of known length."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_MILLION = 1_000_000


def cpu_seconds(work: Callable[[], object]) -> float:
    """The CPU time of this process that it takes."""
    began = time.process_time()
    work()
    return time.process_time() - began


def million_steps(work: Callable[[], object]) -> float:
    """CPU time as so many times that of a million steps of a Python loop, timed before and after it.

    For bounds that only what goes wrong exceeds, by orders of magnitude: on a machine that others use, too,
    CPU time itself has been seen to vary by a factor of ten from one moment to the next.
    """
    before = cpu_seconds(_loop)
    took = cpu_seconds(work)
    return took / max(before, cpu_seconds(_loop))


def _loop() -> None:
    for _ in range(_MILLION):
        pass
