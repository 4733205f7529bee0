"""How slow a machine is, and that it stands still, is seen by the clock."""

from __future__ import annotations

import pytest

from tests.support import stalls
from tests.support.stalls import LONGEST, SLOWEST, Watch, slowness


class Clock:
    """A clock of a machine that gives each look, or each sleep, more time than it asks for."""

    def __init__(self, *extra: float) -> None:
        self.now = 0.0
        self._extra = [*extra]

    def perf_counter(self) -> float:
        self.now += 0.001 + self._next()
        return self.now

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds + self._next()

    def _next(self) -> float:
        return self._extra.pop(0) if self._extra else 0.0


@pytest.mark.parametrize(
    ("extra", "expected"), [((), 1), ((0.0, 0.002) * 100, 2), ((0.0, 0.0, 9.0), SLOWEST)]
)
def test_a_machine_is_as_slow_as_a_loop_beside_its_quickest_turns(
    extra: tuple[float, ...], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stalls, "time", Clock(*extra))
    assert slowness() == expected


def test_a_second_try_waits_for_two_seconds_without_a_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(0.0, LONGEST + 1, *[0.0] * 40, LONGEST + 1)
    monkeypatch.setattr(stalls, "time", clock)
    Watch().wait_for_calm()
    # Two seconds with each of the stalls, and two without.
    assert clock.now == pytest.approx(3 * 2 + 2 * (LONGEST + 1))


def test_a_machine_that_never_runs_is_not_waited_for_longer_than_two_minutes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(*[LONGEST + 1] * 1000)
    monkeypatch.setattr(stalls, "time", clock)
    Watch().wait_for_calm()
    assert 120 <= clock.now < 120 + 2 + 40 * (LONGEST + 1)
