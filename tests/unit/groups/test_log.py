"""A partition of the groups' topic that is read backwards, by a consumer that is not connected."""

from datetime import UTC
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.errors import KafkaTimeoutError

from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._common.times import FIRST_MS, LAST_MS, moment
from kafka_assignors.groups._log import archived, read_backwards


class Consumer:
    """One whose log begins and ends so, or whose broker does not say; `limits` are how long it is waited."""

    def __init__(self, begins: int | None, ends: int | None) -> None:
        self._begins, self._ends = begins, ends
        self.limits: list[int] = []

    def beginning_offsets(self, logs: list[Any], timeout_ms: int) -> dict[Any, int]:
        return self._answer(logs, timeout_ms, self._begins)

    def end_offsets(self, logs: list[Any], timeout_ms: int) -> dict[Any, int]:
        return self._answer(logs, timeout_ms, self._ends)

    def _answer(self, logs: list[Any], timeout_ms: int, offset: int | None) -> dict[Any, int]:
        self.limits.append(timeout_ms)
        if offset is None:
            raise KafkaTimeoutError
        return dict.fromkeys(logs, offset)


def test_the_log_is_read_backwards_in_ever_longer_stretches_until_enough_is_found() -> None:
    stretches: list[tuple[int, int]] = []
    progress: list[tuple[int, int]] = []

    def stretch(begin: int, until: int) -> list[int]:
        stretches.append((begin, until))
        return [begin]

    consumer: Any = Consumer(100, 20_000)
    assert read_backwards(consumer, 9, stretch, 3, lambda *seen: progress.append(seen)) == [
        6000,
        14_000,
        18_000,
    ]
    assert stretches == [(18_000, 20_000), (14_000, 18_000), (6000, 14_000)]
    assert progress == [(2000, 19_900), (6000, 19_900), (14_000, 19_900)]
    assert read_backwards(consumer, 9, stretch, 9) == [100, 6000, 14_000, 18_000]
    empty: Any = Consumer(7, 7)
    assert read_backwards(empty, 9, stretch, 1) == []


@pytest.mark.parametrize("offsets", [(None, 7), (3, None)])
def test_a_broker_that_does_not_say_where_the_log_begins_or_ends_is_waited_for_briefly(
    offsets: tuple[int | None, int | None],
) -> None:
    consumer: Any = Consumer(*offsets)
    with pytest.raises(ClusterError) as caught:
        read_backwards(consumer, 9, lambda *_: [], 1)
    assert str(caught.value) == (
        "the broker that leads __consumer_offsets-9 does not answer within 5 s: it hangs, or is slow; ask"
        " again"
    )
    assert {*consumer.limits} == {5000}


@pytest.mark.parametrize(
    ("told_ms", "time_us"),
    [(-1, -1000), (2**60, 1000 * LAST_MS), (-(2**60), 1000 * FIRST_MS)],
    ids=["none", "too late", "too early"],
)
def test_a_record_whose_time_has_no_date_has_the_nearest_that_has(told_ms: int, time_us: int) -> None:
    """Who may write to the topic says the time of a record; `history` reads it by the same rule."""
    message = SimpleNamespace(key=b"", value=b"", partition=0, offset=1, timestamp=told_ms, leader_epoch=0)
    record = archived(message)
    assert record.time_us == time_us
    assert moment(record.time_us).tzinfo is UTC
