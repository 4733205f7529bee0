"""How slow this machine is, and whether it stands still: on a virtual one, others have its processors, too.

Processes have been seen to stand still for up to 4 seconds. Then members are expelled at random, brokers drop
out, and a test that fails says nothing of the code.
"""

import threading
import time
from typing import Final

LONGEST: Final = 0.5
"""Seconds. If the machine stood still for longer while a test failed, the test is run again."""

SLOWEST: Final = 6
"""With six times 45 s of session, members are still within clients' `max_poll_interval_ms`."""

_TICK: Final = 0.05


def slowness() -> int:
    """How many times as long as without others this process takes, from 1 to `SLOWEST`."""
    took: list[float] = []
    before = time.perf_counter()
    end = before + 0.5
    while before < end:
        for _ in range(20_000):
            pass
        now = time.perf_counter()
        took.append(now - before)
        before = now
    return max(1, min(SLOWEST, round(sum(took) / len(took) / min(took))))


class Watch:
    """Looks on, in a thread, how long the machine stands still while a test runs."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._look_on, name="stalls", daemon=True)
            self._thread.start()
        self.longest = 0.0

    def tick(self) -> None:
        """Sleep for a moment; what it lasts beyond that was a stall."""
        began = time.monotonic()
        time.sleep(_TICK)
        self.longest = max(self.longest, time.monotonic() - began - _TICK)

    def wait_for_calm(self) -> None:
        """Wait until the machine has run for two seconds without a stall; for two minutes at most."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            self.longest = 0.0
            for _ in range(40):
                self.tick()
            if self.longest <= LONGEST:
                return

    def _look_on(self) -> None:
        while True:
            self.tick()
