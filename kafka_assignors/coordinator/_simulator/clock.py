"""Virtual time: what is to happen, in order."""

import heapq
import itertools
from collections.abc import Callable


class Timer:
    """Something that will be done, unless it is cancelled."""

    __slots__ = ("action", "time")

    def __init__(self, time: int, action: Callable[[], object]) -> None:
        self.time = time
        self.action: Callable[[], object] | None = action

    @property
    def pending(self) -> bool:
        return self.action is not None

    def cancel(self) -> None:
        self.action = None


class Clock:
    """A clock, in milliseconds, that goes from event to event; of one moment in the order of asking."""

    def __init__(self) -> None:
        self.now = 0
        self._order = itertools.count()
        self._timers: list[tuple[int, int, Timer]] = []

    def after(self, delay_ms: int, action: Callable[[], object]) -> Timer:
        timer = Timer(self.now + delay_ms, action)
        heapq.heappush(self._timers, (timer.time, next(self._order), timer))
        return timer

    def run(self, until: int) -> None:
        """Do what is due up to a moment, then let it be that moment."""
        while self._timers and self._timers[0][0] <= until:
            time, _, timer = heapq.heappop(self._timers)
            action, timer.action = timer.action, None
            if action is not None:
                self.now = time
                action()
        self.now = max(self.now, until)
