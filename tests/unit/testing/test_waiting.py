"""Waits for records: what is missing is what is missing now."""

from types import SimpleNamespace

import pytest

from kafka_assignors._timelines.events import Committed
from kafka_assignors._timelines.timeline import Timeline
from kafka_assignors.testing._groups import waiting
from tests.support.timelines import P0, joined, lived, records


def test_records_that_were_handled_since_the_last_look_are_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    events = [*joined(100, "a", 1, P0), records(100.1, "a", (P0, 0, 4))]

    def timeline() -> Timeline:
        return lived(*events, end=now)

    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now))
    unhandled = waiting.Unhandled({P0: 6})
    assert not unhandled.none_left(timeline())
    events.append(records(now, "a", (P0, 4, 6)))
    events.append(Committed(now, "a", positions={P0: 6}))
    now += 60
    assert not unhandled.are_lost(timeline())
    assert unhandled.described(timeline()) == []
    assert unhandled.none_left(timeline())


def test_records_that_were_committed_past_are_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    events = [
        *joined(100, "a", 1, P0),
        records(100.1, "a", (P0, 0, 4)),
        Committed(100.2, "a", positions={P0: 6}),
    ]
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: now))
    unhandled = waiting.Unhandled({P0: 6})
    assert not unhandled.none_left(lived(*events, end=now))
    assert not unhandled.are_lost(lived(*events, end=now))
    now += 60
    assert unhandled.are_lost(lived(*events, end=now))
