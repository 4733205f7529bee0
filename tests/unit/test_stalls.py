"""When tests of groups are left out, as the machine cannot run them."""

from __future__ import annotations

import threading
import time
from itertools import count

import pytest

from tests.support import stalls
from tests.support.stalls import LONGEST, LONGEST_IN_A_TEST, Stalls, Watch, longest_stall


class Clock:
    """A clock that goes on by 1 ms whenever it is looked at, and stands still for us at times given."""

    def __init__(self, *, stall_at: float | None = None, stall: float = 0.0) -> None:
        self.now = 0.0
        self._stall_at, self._stall = stall_at, stall

    def monotonic(self) -> float:
        self.now += 0.001
        if self._stall_at is not None and self.now > self._stall_at:
            self.now, self._stall_at = self.now + self._stall, None
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_machine_that_runs_us_when_we_are_due_has_no_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "time", Clock())
    assert longest_stall() == pytest.approx(0.001)


@pytest.mark.parametrize("at", [0.01, 0.2, 0.4])
def test_a_stall_is_as_long_as_the_clock_jumped(at: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalls, "time", Clock(stall_at=at, stall=1.5))
    assert longest_stall() == pytest.approx(1.501)


def test_a_stall_in_our_sleep_counts_beyond_the_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(stalls, "time", clock)
    monkeypatch.setattr(clock, "sleep", lambda seconds: setattr(clock, "now", clock.now + seconds + 0.7))
    assert longest_stall() == pytest.approx(0.701)


def test_what_was_seen_holds_for_10_seconds_a_long_stall_for_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks, clock = count(), Clock()
    found = iter([LONGEST, LONGEST, LONGEST + 0.1])

    def look() -> float:
        next(looks)
        return next(found)

    monkeypatch.setattr(stalls, "longest_stall", look)
    monkeypatch.setattr(stalls, "time", clock)
    seen = Stalls()
    assert [seen.too_long(), seen.too_long()] == [None, None]
    clock.now += 11
    assert [seen.too_long(), seen.too_long()] == [None, None]
    clock.now += 11
    assert seen.too_long() == LONGEST + 0.1
    clock.now += 1000
    assert seen.too_long() == LONGEST + 0.1
    assert next(looks) == 3


def test_a_look_takes_half_a_second() -> None:
    began = time.monotonic()
    longest_stall()
    assert time.monotonic() - began >= 0.5


def test_a_stall_in_a_test_is_remembered_until_the_next_test(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(stalls, "time", clock)
    monkeypatch.setattr(threading.Thread, "start", lambda _: None)
    watch = Watch()
    watch.begin()
    watch.tick()
    assert watch.too_long() is None
    with monkeypatch.context() as slow:
        slow.setattr(clock, "sleep", lambda seconds: setattr(clock, "now", clock.now + seconds + 1.5))
        watch.tick()
    watch.tick()
    assert watch.too_long() == pytest.approx(1.501)
    assert LONGEST_IN_A_TEST == 0.5
    watch.begin()
    assert watch.too_long() is None
