"""A consumer of aiokafka's is measured by its positions around each call for records."""

from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.subscription_state import SubscriptionState

from kafka_assignors._assignors._measures import Measures
from kafka_assignors._wire.measured import Measured
from kafka_assignors.aio import _measuring

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
BOTH = {"t": [0, 1]}


class Consumed:
    """A subscription whose records a test consumes, in a time that is turned by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.looks_take = 0.0
        self.measures = Measures(lambda: self.now)
        self.state: Any = SubscriptionState()
        self.state.subscribe({"t"})
        self.state.assign_from_subscribed({A, B})
        self.tps = self.state.subscription.assignment
        for one in (A, B):
            self.tps.state_value(one).seek(5)
            self.tps.state_value(one).highwater = 50

    def call(self, *records: TopicPartition, work: float = 0.0, wait: float = 0.0) -> None:
        with self.state.fetch_context():
            self.now += wait
            for one in records:
                self.tps.state_value(one).consumed_to(self.tps.state_value(one).position + 1)
        self.now += work

    def monotonic(self) -> float:
        self.now += self.looks_take
        return self.now


@pytest.fixture
async def consumed(monkeypatch: pytest.MonkeyPatch) -> Consumed:
    made = Consumed()
    monkeypatch.setattr(_measuring, "time", SimpleNamespace(monotonic=made.monotonic))
    for _ in range(2):
        _measuring.measure(made.state, made.measures)
    return made


async def test_work_is_the_time_between_calls_and_waits_are_not(consumed: Consumed) -> None:
    consumed.call(A, A, work=3.0, wait=7.0)
    consumed.call(B, work=0.25, wait=9.0)
    consumed.call(wait=5.0)
    assert consumed.measures.of(BOTH) == {("t", 0): Measured(1.5, 43, 0), ("t", 1): Measured(0.25, 44, 0)}


async def test_a_seek_between_calls_is_no_record(consumed: Consumed) -> None:
    consumed.call(A, work=2.0)
    consumed.tps.state_value(A).seek(40)
    consumed.call(work=8.0)
    consumed.call()
    assert consumed.measures.of(BOTH)["t", 0].cost == 2.0


async def test_a_call_that_fails_or_has_nothing_assigned_measures_nothing(consumed: Consumed) -> None:
    with pytest.raises(KeyError), consumed.state.fetch_context():
        raise KeyError
    consumed.state.unsubscribe()
    with consumed.state.fetch_context():
        pass
    assert consumed.measures.of({"t": [0]}) == {}


async def test_looks_take_a_tenth_of_the_time_at_most(consumed: Consumed) -> None:
    consumed.looks_take = 0.01
    looked = []
    gave = consumed.measures.gave

    def count(records: Any) -> None:
        looked.append(consumed.now)
        gave(records)

    consumed.measures.gave = count  # type: ignore[method-assign]
    began = consumed.now
    while consumed.now < began + 60:
        consumed.call(A, work=0.001)
    assert len(looked) > 10
    assert len(looked) * 4 * consumed.looks_take <= (consumed.now - began) / 5
