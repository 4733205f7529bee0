"""What is said where the time of a record cannot be had, without a cluster."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaConnectionError, TopicAuthorizationFailedError
from kafka.record.memory_records import MemoryRecordsBuilder

from kafka_assignors.groups import _lag_seconds
from kafka_assignors.groups._lag_seconds import read_ages

TOPICS = {"orders": {0: 1, 1: 1, 2: 2}}


class Brokers:
    """Each answers a Fetch as it is told; counts what it was asked."""

    def __init__(self, answers: dict[int, Callable[[int], Any]], monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[int, int, int]] = []
        monkeypatch.setattr(_lag_seconds, "send", self._send)
        self._answers = answers

    def once(self, request: Callable[[Any], Any]) -> Any:
        return request(None)

    def _send(self, _: Any, request: Any, node: int, seconds: float) -> Any:
        (wanted,) = request.topics[0].partitions
        assert 0 < seconds <= _lag_seconds.READ_SECONDS + 0.001
        self.asked.append((node, wanted.partition, wanted.fetch_offset))
        answer = {"error_code": 0, "high_watermark": 9, **self._answers[node](wanted.fetch_offset)}
        read = SimpleNamespace(**answer)
        return SimpleNamespace(responses=[SimpleNamespace(partitions=[read])])


def silent(_: int) -> dict[str, Any]:
    raise KafkaConnectionError("gone")


def batch(first: int, timestamp: int, *, later: int = 0) -> dict[str, Any]:
    """One batch with a record; its end is `later` offsets on, as compaction leaves it."""
    builder: Any = MemoryRecordsBuilder(2, 0, 10_000)
    builder.append(timestamp, None, b"x")
    builder.close()
    data = bytearray(builder.buffer())
    data[:8], data[23:27] = first.to_bytes(8, "big"), later.to_bytes(4, "big")
    return {"records": bytes(data)}


def test_no_more_partitions_are_read_than_the_limit_and_of_the_others_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_lag_seconds, "MOST_READS", 1)
    brokers: Any = Brokers({1: lambda first: batch(first, 0)}, monkeypatch)
    found = read_ages(brokers, TOPICS, {("orders", partition, 5) for partition in range(2)})
    assert brokers.asked == [(1, 0, 5)]
    assert found["orders", 1, 5] == "of 2 partitions that lag 1 were read"


def test_a_broker_without_time_to_answer_is_not_asked_and_not_called_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_lag_seconds, "READ_SECONDS", 0.9)
    brokers: Any = Brokers({1: silent}, monkeypatch)
    found = read_ages(brokers, TOPICS, {("orders", 0, 5)})
    assert (brokers.asked, found) == ([], {("orders", 0, 5): "of 1 partitions that lag 0 were read"})


def test_a_silent_broker_is_asked_once_and_hides_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    denied = {"error_code": TopicAuthorizationFailedError.errno}
    brokers: Any = Brokers({1: silent, 2: lambda _: denied}, monkeypatch)
    found = read_ages(brokers, TOPICS, {("orders", partition, 5) for partition in range(3)})
    assert [place[:2] for place in brokers.asked] == [(1, 0), (2, 2)]
    why = str(found["orders", 0, 5])
    assert (why.startswith("broker 1 does not answer: "), found["orders", 1, 5]) == (True, why)
    assert found["orders", 2, 5] == TopicAuthorizationFailedError.description


def test_a_record_that_compaction_removed_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_lag_seconds, "time", SimpleNamespace(time=lambda: 100.0))
    log = {5: batch(4, 1_000, later=2), 7: batch(7, 40_000)}
    brokers: Any = Brokers({2: lambda offset: log[offset]}, monkeypatch)
    assert read_ages(brokers, TOPICS, {("orders", 2, 5)}) == {("orders", 2, 5): 60.0}
    assert [place[2] for place in brokers.asked] == [5, 7]


def test_an_answer_without_records_is_no_time_and_a_time_to_come_is_no_lag(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nothing, future = {"records": None}, batch(5, 2**45)
    expected: list[tuple[dict[str, Any], float | str]] = [
        (nothing, "the broker returned no record"),
        (future, 0.0),
    ]
    for answer, age in expected:
        brokers: Any = Brokers({2: dict.fromkeys(range(9), answer).__getitem__}, monkeypatch)
        assert read_ages(brokers, TOPICS, {("orders", 2, 5)}) == {("orders", 2, 5): age}
