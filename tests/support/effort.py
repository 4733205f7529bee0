"""How much work something is, on any machine: CPU time beside that of a loop of known length; memory."""

import time
import tracemalloc
from collections.abc import Callable
from typing import TypeVar

_MILLION = 1_000_000
_T = TypeVar("_T")


def with_memory(work: Callable[[], _T]) -> tuple[_T, int]:
    """What work returns, and how many bytes it had at the most."""
    tracemalloc.start()
    try:
        return work(), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def assert_takes(work: Callable[[], object], *, million_steps: float) -> None:
    """Assert that the work takes less CPU time than so many million steps of a loop, in one of three tries.

    For bounds that only what goes wrong exceeds, by orders of magnitude: on a machine that others use, too,
    CPU time itself has been seen to vary by a factor of ten from one moment to the next.
    """
    took: list[float] = []
    while not took or took[-1] >= million_steps:
        assert len(took) < 3, f"took {took} times a million steps of a loop, the limit is {million_steps}"
        took.append(_beside_a_loop(work))


def _beside_a_loop(work: Callable[[], object]) -> float:
    before = _cpu_seconds(_loop)
    took = _cpu_seconds(work)
    return took / max(before, _cpu_seconds(_loop))


def _cpu_seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def _loop() -> None:
    for _ in range(_MILLION):
        pass
