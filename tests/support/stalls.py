"""Whether this machine lets processes run when they are due.

Members of a group have seconds to say that they live, and tests of groups expect what follows within seconds.
On virtual machines whose processors others used at the same time, each process has been seen to stand still
for up to 4 seconds. There, members are expelled at random, brokers drop out, and a test that fails says
nothing of the code.
"""

from __future__ import annotations

import threading
import time
from typing import Final

LONGEST: Final = 0.25
"""Seconds. Where tests have failed, each half second had a stall of 0.33 to 1.1 s."""

LONGEST_IN_A_TEST: Final = 0.5
"""Seconds. What fails while the machine stood still for longer is no verdict on the code."""

_LOOK: Final = 0.5
_SPIN: Final = 0.01
_SLEEP: Final = 0.005
_VALID: Final = 10.0
_TICK: Final = 0.05


def longest_stall(seconds: float = _LOOK) -> float:
    """The longest time that this process stood still while it was not asleep, or overslept, in seconds."""
    longest, before = 0.0, time.monotonic()
    end, rest = before + seconds, before + _SPIN
    while before < end:
        due = 0.0
        if before > rest:
            time.sleep(_SLEEP)
            due, rest = _SLEEP, before + _SLEEP + _SPIN
        now = time.monotonic()
        longest, before = max(longest, now - before - due), now
    return longest


class Stalls:
    """What has been seen of this machine so far; looks again from time to time."""

    def __init__(self) -> None:
        self._longest = 0.0
        self._looked: float | None = None

    def too_long(self) -> float | None:
        """The longest stall in seconds if it is too long for groups, or else None."""
        if self._longest <= LONGEST and (self._looked is None or time.monotonic() - self._looked > _VALID):
            self._longest = longest_stall()
            self._looked = time.monotonic()
        return self._longest if self._longest > LONGEST else None


class Watch:
    """Looks on, in a thread, how long the machine stands still while a test runs."""

    def __init__(self) -> None:
        self._longest = 0.0
        self._thread: threading.Thread | None = None

    def begin(self) -> None:
        """Count from now on."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._look_on, name="stalls", daemon=True)
            self._thread.start()
        self._longest = 0.0

    def too_long(self) -> float | None:
        """The longest stall since the beginning in seconds if it is too long for a test, or else None."""
        return self._longest if self._longest > LONGEST_IN_A_TEST else None

    def tick(self) -> None:
        """Sleep for a moment; what it lasts beyond that was a stall."""
        began = time.monotonic()
        time.sleep(_TICK)
        self._longest = max(self._longest, time.monotonic() - began - _TICK)

    def _look_on(self) -> None:
        while True:
            self.tick()
