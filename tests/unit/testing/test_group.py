"""What a group waits for, without brokers and with events made by hand."""

import itertools
import threading
import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka import TopicPartition

from kafka_assignors.testing import ConsumerGroup, GroupNotStableError
from kafka_assignors.testing._groups.stability import BrokersView
from tests.support.members import member
from tests.support.timelines import P0, records


class SlowLoad:
    """A load that has produced a record when it is looked at for the third time, or never."""

    topics = ("t",)

    def __init__(self, *, ever: bool) -> None:
        self.looks = 0
        self._ever = ever

    @property
    def produced(self) -> Mapping[TopicPartition, int]:
        self.looks += 1
        return {P0: 1} if self._ever and self.looks >= 3 else {}


def consumed(load: SlowLoad, monkeypatch: pytest.MonkeyPatch, timeout: float) -> None:
    """Wait for what a group consumes that has one record."""
    nobody = BrokersView(state="Unknown", protocol="", assignments={}, subscriptions={}, error="no brokers")
    monkeypatch.setattr(ConsumerGroup, "describe", lambda _: nobody)
    with ConsumerGroup(["localhost:9092"], "t") as group:
        known = SimpleNamespace(take=lambda _: None)
        monkeypatch.setitem(cast("dict[str, Any]", group.members), "a", known)
        group.record(records(1, "a", (P0, 0, 0)))
        monkeypatch.delitem(group.members, "a")
        group.wait_consumed(cast("Any", load), timeout)


def test_a_load_that_has_produced_nothing_yet_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    load = SlowLoad(ever=True)
    consumed(load, monkeypatch, 60)
    assert load.looks >= 3


def test_a_load_that_produces_nothing_is_consumed_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        GroupNotStableError, match=r"timed out after 0\.1 s waiting for a record of the load on t\n"
    ):
        consumed(SlowLoad(ever=False), monkeypatch, 0.1)


def test_members_may_report_for_four_times_as_long_as_a_look_at_the_group_takes() -> None:
    looks: list[tuple[float, float]] = []
    over = threading.Event()

    def look() -> bool:
        began = time.monotonic()
        over.wait(0.02)  # as if the timeline were long
        looks.append((began, time.monotonic()))
        return len(looks) == 4

    with ConsumerGroup(["localhost:9092"], "t") as group:
        group.members["a"] = member(name="a")

        def report() -> None:
            while not over.wait(0.001):
                group.record(records(1, "a", (P0, 0, 0)))

        reporter = threading.Thread(target=report, daemon=True)
        reporter.start()
        group.wait_for(look, 60)
        over.set()
        reporter.join()
    for (began, ended), (again, _) in itertools.pairwise(looks):
        assert again - ended >= 4 * (ended - began)


@pytest.mark.parametrize("produced", [{}, {P0: 0}])
def test_a_wait_for_no_record_is_refused_with_what_to_give(produced: Mapping[TopicPartition, int]) -> None:
    with (
        ConsumerGroup(["localhost:9092"], "t") as group,
        pytest.raises(
            ValueError, match=r"^no record is waited for in \{.*\}: give how many each partition has"
        ),
    ):
        group.wait_consumed(produced)
