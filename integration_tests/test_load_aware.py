"""A group whose partitions and members differ: two partitions have most of the backlog, one member is slow.

Work on a record is a wait of a known time. So the best there is can be computed, and a busy machine makes all
groups of a run slower alike.
"""

import asyncio
import contextlib
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, Final

import numpy as np
import pytest
from aiokafka import AIOKafkaConsumer
from kafka import KafkaConsumer

from integration_tests.support.aio_members import until
from integration_tests.support.records import produce
from integration_tests.support.waiting import wait_for
from kafka_assignors import CooperativeStickyAssignor, LoadAwareAssignor, enforce_rebalance, rebalance_when
from kafka_assignors._assignors import Assignor
from kafka_assignors.aio import CooperativeConsumer, strategies
from kafka_assignors.testing import Cluster
from kafka_assignors.testing._plugin import TopicFactory
from tests.support.pages import defined, listings

PAGE: Final = "docs/how-to/one-partition-is-hot.md"
PARTITIONS: Final = 12
COST: Final = 0.005
TIMES: Final = {"slow": 3.0, "fast": 1.0, "faster": 1.0}
"""How many times as long as the others' a member's work takes."""
WARM: Final = 20
"""Records of each partition, by which members learn what they cost."""
SETTINGS: Final = {
    "auto_offset_reset": "earliest",
    "heartbeat_interval_ms": 300,
    "session_timeout_ms": 30_000,
    "metadata_max_age_ms": 1000,
}


@dataclass
class Worker:
    """A member, and how many records of each partition it has done."""

    name: str
    consumer: Any
    assignor: Any
    done: Counter[int] = field(default_factory=Counter)
    busy: float = 0.0
    polls: threading.Event = field(default_factory=threading.Event)
    rests: bool = False

    @property
    def has(self) -> set[int]:
        return {one.partition for one in self.consumer.assignment()}

    def is_still(self) -> bool:
        """Whether it does not poll, and no fetch is on its way."""
        return self.rests and not self.consumer._fetcher.in_flight_fetches()

    def seconds(self, batch: Any) -> float:
        return COST * TIMES[self.name] * sum(map(len, batch.values()))

    def count(self, batch: Any, seconds: float) -> None:
        self.busy += seconds
        self.done.update({one.partition: len(records) for one, records in batch.items()})

    def work(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.rests = not self.polls.is_set()
            self.polls.wait()
            self.rests = False
            batch = self.consumer.poll(100, max_records=10)
            began = time.monotonic()
            time.sleep(self.seconds(batch))
            self.count(batch, time.monotonic() - began)
        self.consumer.close()

    async def work_async(self) -> None:
        while True:
            batch = await self.consumer.getmany(timeout_ms=100, max_records=10)
            began = time.monotonic()
            await asyncio.sleep(self.seconds(batch))
            self.count(batch, time.monotonic() - began)


@dataclass
class Group:
    """Members of one group, each with the assignor of a kind, on a topic of their own."""

    cluster: Cluster
    topic: str
    workers: list[Worker]
    produced: Counter[int] = field(default_factory=Counter)

    @property
    def left(self) -> Counter[int]:
        """What is still to be done, by partition."""
        return self.produced - sum((worker.done for worker in self.workers), Counter())

    @property
    def is_settled(self) -> bool:
        return sorted(len(worker.has) for worker in self.workers) == [4, 4, 4]

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Nobody polls or fetches meanwhile, so that the next fetches have all that is produced."""
        for worker in self.workers:
            worker.polls.clear()
            wait_for("a rest", worker.is_still, 60)
        yield
        for worker in self.workers:
            worker.polls.set()

    def produce(self, counts: dict[int, int]) -> None:
        self.produced.update(counts)
        produce(self.cluster, self.topic, counts)

    def produce_hot(self, hot: int, cold: int) -> None:
        """Most of it to one partition of the slow member and to one of another."""
        slow, fast, _ = self.workers
        chosen = {min(slow.has), min(fast.has)}
        self.produce({number: hot if number in chosen else cold for number in range(PARTITIONS)})

    @property
    def is_measured(self) -> bool:
        """Whether members know what waits."""
        known = sum(
            measured.lag
            for worker in self.workers
            for measured in worker.assignor._work.measures.of({self.topic: worker.has}).values()
        )
        return bool(known >= 0.9 * self.left.total())

    def best(self, left: Counter[int]) -> float:
        """Seconds for so much by the best of all plans, by the work as it was."""
        record = np.array([worker.busy / worker.done.total() for worker in self.workers])
        records = np.array([left[number] for number in range(PARTITIONS)])
        plans = np.array([*product(range(len(TIMES)), repeat=PARTITIONS)])
        times = [(records * (plans == member)).sum(axis=1) * one for member, one in enumerate(record)]
        return float(np.max(times, axis=0).min())


@contextlib.contextmanager
def living(cluster: Cluster, topic: str, kind: type[Assignor]) -> Iterator[Group]:
    """A group of kafka-python's consumers, each in a thread."""
    stop, workers = threading.Event(), []
    for name in TIMES:
        assignor = kind()
        consumer = KafkaConsumer(
            topic,
            group_id=f"{kind.name}-{topic}",
            client_id=name,
            partition_assignment_strategy=[assignor],
            **cluster.access.kafka_python(),
            **SETTINGS,
        )
        workers.append(Worker(name, consumer, assignor))
    threads = [threading.Thread(target=worker.work, args=(stop,)) for worker in workers]
    for worker, thread in zip(workers, threads, strict=True):
        worker.polls.set()
        thread.start()
    try:
        yield Group(cluster, topic, workers)
    finally:
        stop.set()
        for worker in workers:
            worker.polls.set()
        for thread in threads:
            thread.join()


def test_a_backlog_is_drained_in_nearly_the_best_time_and_far_sooner_than_by_sticky(
    kafka_cluster: Cluster, topic_factory: TopicFactory
) -> None:
    with (
        living(kafka_cluster, topic_factory(PARTITIONS), LoadAwareAssignor) as aware,
        living(kafka_cluster, topic_factory(PARTITIONS), CooperativeStickyAssignor) as sticky,
    ):
        for group in (aware, sticky):
            wait_for("4 partitions for each member", partial(getattr, group, "is_settled"), 120)
            group.produce(dict.fromkeys(range(PARTITIONS), WARM))
        wait_for("what is to learn from", lambda: not aware.left and not sticky.left, 120)
        for group in (sticky, aware):
            with group.paused():
                group.produce_hot(hot=4000, cold=300)
        wait_for("the members to know what waits", lambda: aware.is_measured, 120)
        left, began = aware.left, time.monotonic()
        enforce_rebalance(aware.workers[0].consumer, "two partitions are hot")
        wait_for("the backlog", lambda: not aware.left, 120)
        took = time.monotonic() - began
        assert took <= 1.2 * aware.best(left)
        wait_for(
            "the time in which sticky shall not be done", lambda: time.monotonic() - began >= took / 0.6, 120
        )
        assert sticky.left.total() > 0


@contextlib.asynccontextmanager
async def living_async(cluster: Cluster, topic: str, kind: Any) -> AsyncIterator[Group]:
    """A group of aiokafka's consumers, in one event loop."""
    workers = []
    async with contextlib.AsyncExitStack() as stack:
        for name in TIMES:
            assignor = LoadAwareAssignor(cooperative=kind is CooperativeConsumer)
            consumer: Any = kind(
                topic,
                group_id=f"g-{topic}",
                client_id=name,
                partition_assignment_strategy=strategies(assignor),
                **cluster.access.aiokafka(),
                **SETTINGS,
            )
            await consumer.start()
            stack.push_async_callback(consumer.stop)
            workers.append(Worker(name, consumer, assignor))
        tasks = [asyncio.create_task(worker.work_async()) for worker in workers]
        try:
            yield Group(cluster, topic, workers)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)


@pytest.mark.parametrize("kind", [CooperativeConsumer, AIOKafkaConsumer])
async def test_members_on_aiokafka_measure_and_ask_by_themselves(
    kind: Any, kafka_cluster: Cluster, topic_factory: TopicFactory
) -> None:
    async with living_async(kafka_cluster, topic_factory(PARTITIONS), kind) as group:
        await until(lambda: group.is_settled, "4 partitions for each member")
        group.produce(dict.fromkeys(range(PARTITIONS), WARM))
        await until(lambda: not group.left, "what is to learn from")
        for worker in group.workers:
            rebalance_when(worker.consumer, uneven_for=1, at_least=1.2, cool_down=1)
        group.produce_hot(hot=2000, cold=50)
        left, began = group.left, time.monotonic()
        await until(lambda: not group.left, "the backlog")
        took = time.monotonic() - began
        # By the first plan the slow one would have its hot partition to the end: three times as long.
        assert took <= 0.6 * 3 * COST * 2000
        assert took <= 1.5 * group.best(left)


def test_the_listings_of_the_page_make_a_consumer_that_asks_for_a_rebalance(
    kafka_cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "kafka_assignors")
    monkeypatch.setitem(KafkaConsumer.DEFAULT_CONFIG, "bootstrap_servers", kafka_cluster.bootstrap_servers)
    names = defined("\n".join(listings(PAGE)))
    assert "Asking for a rebalance of group billing: the night's backlog is in" in caplog.text
    assert (names["strategy"].name, names["by_partition"].name) == ("load-aware", "load-aware")
    names["consumer"].close()


def test_the_lists_of_the_page_lead_from_cooperative_sticky_to_load_aware(consumer_group: Any) -> None:
    names = defined("from kafka_assignors import LoadAwareAssignor", listings(PAGE)[-1])
    group = consumer_group(assignors=[CooperativeStickyAssignor], members=2)
    protocols = [group.wait_stable().protocol]
    members = [*group.members.values()]
    eager = names["first"][0]
    assert not eager._cooperative
    first = [(LoadAwareAssignor, {"cooperative": False}), *names["first"][1:]]  # each process makes its own
    for assignors in (first, names["then"]):
        for number, member in enumerate(members):
            members[number] = member.restart(assignors=assignors)
            protocols.append(group.wait_stable().protocol)
    assert protocols == ["cooperative-sticky", "cooperative-sticky", *["load-aware"] * 3]
    group.timeline.assert_never_owned_twice()
