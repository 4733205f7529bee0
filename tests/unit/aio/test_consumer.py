"""A cooperative consumer's calls for records, without a broker."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import TopicPartition
from aiokafka.consumer.fetcher import Fetcher, FetchResult
from aiokafka.errors import ConsumerStoppedError, IllegalStateError

from kafka_assignors import CooperativeStickyAssignor, RangeAssignor
from kafka_assignors.aio import CooperativeConsumer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Records:
    """Fetched records, each of which is its offset."""

    def __init__(self, offset: int) -> None:
        self.next_fetch_offset = offset

    def __iter__(self) -> Records:
        return self

    def __next__(self) -> int:
        self.next_fetch_offset += 1
        return self.next_fetch_offset - 1


class Started:
    """A consumer of A at offset 10 that fetches nothing by itself."""

    def __init__(self, *, eager: bool) -> None:
        listed = [CooperativeStickyAssignor, *([RangeAssignor] if eager else [])]
        self.consumer: Any = CooperativeConsumer(group_id="g", partition_assignment_strategy=listed)
        self.consumer._coordinator = SimpleNamespace(check_errors=lambda: None)
        self.state = self.consumer._subscription
        client = SimpleNamespace(_loop=asyncio.get_running_loop(), _metadata_max_age_ms=1000)
        self.fetcher: Any = Fetcher(client, self.state)
        self.fetcher._fetch_task.cancel()
        self.consumer._fetcher = self.fetcher
        self.state.subscribe({"t"})
        self.state.assign_from_subscribed({A})
        self.assignment = self.state.subscription.assignment
        if not eager:
            self.assignment.confirm(time.monotonic() + 100)
            self.assignment.release({A})
        self.state.seek(A, 10)

    @property
    def position(self) -> Any:
        return self.assignment.state_value(A).position

    def fetched(self) -> None:
        """Records from 10 on have come."""
        records = Records(10)
        self.fetcher._records[A] = FetchResult(
            A, assignment=self.assignment, partition_records=records, backoff=0
        )
        self.wake()

    def wake(self) -> None:
        """Let who waits for records look again, as `Fetcher.close` does, too."""
        for waiter in set(self.fetcher._fetch_waiters):
            self.fetcher._notify(waiter)


@pytest.fixture(params=["cooperative", "eager"])
async def one(request: pytest.FixtureRequest) -> AsyncIterator[Started]:
    made = Started(eager=request.param == "eager")
    yield made
    await asyncio.sleep(0)
    made.consumer._closed = True  # it was not really started
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left
    assert not made.fetcher._fetch_waiters


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("later", range(6))
@pytest.mark.parametrize("many", [False, True])
async def test_a_call_that_is_cancelled_as_records_come_takes_none(
    one: Started, many: bool, later: int
) -> None:
    """It waits, records come, and so many turns later it is cancelled."""
    get = one.consumer.getmany(A, timeout_ms=100_000, max_records=2) if many else one.consumer.getone(A)
    getting = asyncio.create_task(get)
    await turns(20)
    one.fetched()
    await turns(later)
    getting.cancel()
    await asyncio.wait([getting])
    if not getting.cancelled():
        assert getting.result() == ({A: [10, 11]} if many else 10)
    next_one = 10 if getting.cancelled() else 12 if many else 11
    assert one.position == next_one
    assert await one.consumer.getone(A) == next_one
    assert one.position == next_one + 1


async def test_who_waits_for_a_record_counts_as_polling_and_hears_that_the_consumer_is_stopped(
    one: Started,
) -> None:
    one.state._last_fetch_ended -= 1000
    getting = asyncio.create_task(one.consumer.getone(A))
    await turns(20)
    assert one.state.fetcher_idle_time == 0
    one.state.begin_reassignment()  # an eager rebalance is on
    one.consumer._closed = True
    one.wake()
    with pytest.raises(ConsumerStoppedError):
        await asyncio.wait_for(getting, 5)


@pytest.mark.parametrize("timeout_ms", [0, 30])
@pytest.mark.parametrize("state", ["not subscribed", "not assigned", "rebalances", "assigned"])
async def test_a_call_for_many_records_keeps_its_time(one: Started, state: str, timeout_ms: int) -> None:
    if state in {"not subscribed", "not assigned"}:
        one.state.unsubscribe()
    if state == "not assigned":
        one.state.subscribe({"t"})
    if state == "rebalances":
        one.state.begin_reassignment()
    began = time.monotonic()
    assert await asyncio.wait_for(one.consumer.getmany(timeout_ms=timeout_ms), 5) == {}
    assert time.monotonic() - began >= timeout_ms / 1000


async def test_a_call_for_many_records_keeps_its_time_when_a_rebalance_begins_meanwhile(one: Started) -> None:
    getting = asyncio.create_task(one.consumer.getmany(timeout_ms=50))
    await turns(20)
    one.state.begin_reassignment()
    one.fetched()
    assert await asyncio.wait_for(getting, 5) == {}
    assert one.position == 10


async def test_a_call_for_many_records_gets_those_of_its_first_assignment(one: Started) -> None:
    one.state.begin_reassignment()
    getting = asyncio.create_task(one.consumer.getmany(timeout_ms=100_000, max_records=1))
    await turns(20)
    one.fetched()
    one.state.subscription._reassignment_in_progress = False
    one.state._notify_assignment_waiters()
    assert await asyncio.wait_for(getting, 5) == {A: [10]}


async def test_a_call_for_many_records_raises_what_is_wrong_with_the_group(one: Started) -> None:
    def check_errors() -> None:
        raise ZeroDivisionError

    one.state.begin_reassignment()
    one.consumer._coordinator.check_errors = check_errors
    with pytest.raises(ZeroDivisionError):
        await one.consumer.getmany(timeout_ms=100_000)


async def test_a_call_for_many_records_ends_as_the_consumer_is_stopped(one: Started) -> None:
    getting = asyncio.create_task(one.consumer.getmany(timeout_ms=100_000))
    await turns(20)
    one.consumer._closed = True
    one.wake()
    assert await asyncio.wait_for(getting, 5) == {}
    with pytest.raises(ConsumerStoppedError):
        await one.consumer.getmany()


@pytest.mark.parametrize("strategy", [CooperativeStickyAssignor, RangeAssignor])
@pytest.mark.parametrize("topics", [(), ("t",)])
def test_a_consumer_is_made_outside_of_the_loop_that_it_is_given(
    topics: tuple[str, ...], strategy: type[Any]
) -> None:
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        with pytest.warns(DeprecationWarning, match="loop argument"):
            consumer: Any = CooperativeConsumer(
                *topics, loop=loop, group_id="g", partition_assignment_strategy=[strategy]
            )
        consumer.subscribe([*topics, "u"])
        assert consumer.subscription() == {*topics, "u"}
        assert consumer._subscription.subscription.unsubscribe_future.get_loop() is loop
        runner.run(consumer.stop())


@pytest.mark.parametrize("name", ["seek_to_beginning", "seek_to_end", "seek_to_committed"])
async def test_a_seek_without_partitions_says_what_to_wait_for(one: Started, name: str) -> None:
    seek = getattr(one.consumer, name)
    with pytest.raises(IllegalStateError) as caught:
        await seek(A, B)
    assert str(caught.value) == (
        f"IllegalStateError: Partitions [{B}] are not assigned:"
        " wait for the listener's on_partitions_assigned, or until assignment() has them"
    )
    with pytest.raises(TypeError, match="must be TopicPartition"):
        await seek("t")
    one.state.assign_from_subscribed(set())
    with pytest.raises(IllegalStateError, match="No partitions are assigned: wait for the listener"):
        await seek()
    one.state.unsubscribe()
    with pytest.raises(IllegalStateError, match="No partitions are assigned: wait for the listener"):
        await seek()


async def test_what_is_asked_of_a_partition_without_a_state_says_what_to_wait_for(one: Started) -> None:
    consumer = one.consumer
    one.state.unsubscribe()
    for call in (
        consumer.highwater,
        consumer.last_stable_offset,
        consumer.last_poll_timestamp,
        consumer.pause,
        consumer.resume,
        lambda partition: consumer.seek(partition, 1),
    ):
        with pytest.raises(IllegalStateError, match=r"partition=0\)\] are not assigned: wait"):
            call(A)
