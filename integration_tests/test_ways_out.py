"""What a consumer commits and its listener hears as it gives up what it has: each way out of each client.

Consumers of the first two rows of `CLIENTS` read on during rebalances, so their ways out are ours. The others
are driven by their clients alone: docs/limits.md has what that means.
"""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any, Final

import pytest
from aiokafka import ConsumerRebalanceListener as AiokafkaListener
from aiokafka.errors import KafkaError as AiokafkaError
from kafka import ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import KafkaError

from integration_tests.support.aio_members import until
from integration_tests.support.membership import expel
from integration_tests.support.records import committed, produce
from kafka_assignors import CooperativeStickyAssignor, RangeAssignor, StickyAssignor
from kafka_assignors.aio import CooperativeConsumer
from tests.support.scale import longer

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors.testing import Cluster

READ: Final = 20
SETTINGS: Final = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": True,
    "auto_commit_interval_ms": 3_600_000,  # so what is committed is so on the way out
    "heartbeat_interval_ms": 100,
    "session_timeout_ms": 30_000,
}


class Heard(ConsumerRebalanceListener, AiokafkaListener):
    """A listener, which notes its calls that end something."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    def on_partitions_assigned(self, assigned: Any) -> None:
        del assigned

    def on_partitions_revoked(self, revoked: Any) -> None:
        self.calls += ["revoked"] if revoked else []

    def on_partitions_lost(self, lost: Any) -> None:
        self.calls += ["lost"] if lost else []


class Python:
    """A consumer of kafka-python's, which a thread drives for the test."""

    def __init__(self, cluster: Cluster, group_id: str, strategies: list[Any], **more: Any) -> None:
        how = {**SETTINGS, **more, **cluster.access.kafka_python()}
        self._consumer: Any = KafkaConsumer(
            group_id=group_id, partition_assignment_strategy=strategies, **how
        )
        self.listener = Heard()

    @property
    def member_id(self) -> str:
        return str(self._consumer._coordinator._generation.member_id)

    async def subscribe(self, topic: str) -> None:
        self._consumer.subscribe([topic], listener=self.listener)

    async def poll(self) -> int:
        batch = await asyncio.to_thread(self._consumer.poll, timeout_ms=100)
        return sum(map(len, batch.values()))

    async def unsubscribe(self) -> None:
        await asyncio.to_thread(self._consumer.unsubscribe)

    async def close(self) -> None:
        await asyncio.to_thread(self._consumer.close)

    async def end(self) -> None:
        """End it without a commit."""
        await asyncio.to_thread(self._consumer.close, autocommit=False, timeout_ms=3000)


class Aio:
    """A consumer of aiokafka's."""

    def __init__(self, cluster: Cluster, group_id: str, strategies: list[Any], **more: Any) -> None:
        how = {**SETTINGS, **more, **cluster.access.aiokafka()}
        self._consumer: Any = CooperativeConsumer(
            group_id=group_id, partition_assignment_strategy=strategies, **how
        )
        self.listener = Heard()
        self._started = False

    @property
    def member_id(self) -> str:
        return str(self._consumer._coordinator.member_id)

    async def subscribe(self, topic: str) -> None:
        self._consumer.subscribe([topic], listener=self.listener)
        if not self._started:
            self._started = True
            await self._consumer.start()

    async def poll(self) -> int:
        batch = await self._consumer.getmany(timeout_ms=100)
        return sum(map(len, batch.values()))

    async def unsubscribe(self) -> None:
        self._consumer.unsubscribe()
        await until(lambda: self._consumer._coordinator.generation < 0, "it to leave")

    async def close(self) -> None:
        await self._consumer.stop()

    async def end(self) -> None:
        """End it without a commit."""
        self._consumer._coordinator._enable_auto_commit = False
        await self._consumer.stop()


CLIENTS: Final[dict[str, Callable[..., Any]]] = {
    "kafka-python": lambda cluster, group, **more: Python(
        cluster, group, [CooperativeStickyAssignor], **more
    ),
    "aiokafka": lambda cluster, group, **more: Aio(cluster, group, [CooperativeStickyAssignor], **more),
    "kafka-python, eager": lambda cluster, group, **more: Python(cluster, group, [StickyAssignor], **more),
    "aiokafka, eager": lambda cluster, group, **more: Aio(
        cluster, group, [CooperativeStickyAssignor, RangeAssignor], **more
    ),
}


class Scene:
    """A consumer that has read what there is, and nobody has committed."""

    def __init__(self, cluster: Cluster, client: str, topics: list[str]) -> None:
        self.cluster, self.client, (self.topic, self.other) = cluster, client, topics
        self.group_id = f"out-{uuid.uuid4().hex[:8]}"

    async def reading(self, **more: Any) -> Any:
        one = CLIENTS[self.client](self.cluster, self.group_id, **more)
        await one.subscribe(self.topic)
        count = 0
        while count < READ:
            count += await one.poll()
        assert one.listener.calls == []
        return one

    async def polled_until_heard(self, one: Any) -> None:
        """Poll until the listener hears of the end, or the application of an error; for a while."""
        for _ in range(30):
            try:
                await one.poll()
            except (KafkaError, AiokafkaError):
                return
            if one.listener.calls:
                return

    def outcome(self, one: Any) -> tuple[int | None, list[str]]:
        return committed(self.cluster, self.group_id, self.topic), [*one.listener.calls]


async def unsubscribes(scene: Scene) -> Any:
    one = await scene.reading()
    await one.unsubscribe()
    found = scene.outcome(one)
    await one.end()
    return found


async def closes(scene: Scene) -> Any:
    one = await scene.reading()
    await one.close()
    return scene.outcome(one)


async def is_expelled(scene: Scene) -> Any:
    one = await scene.reading()
    await asyncio.to_thread(expel, scene.cluster.access, scene.group_id, one.member_id)
    await scene.polled_until_heard(one)
    found = scene.outcome(one)
    await one.end()
    return found


async def is_fenced(scene: Scene) -> Any:
    one = await scene.reading(group_instance_id="i")
    other = await scene.reading(group_instance_id="i", enable_auto_commit=False)
    await scene.polled_until_heard(one)
    found = scene.outcome(one)
    await one.end()
    await other.end()
    return found


async def changes_its_subscription(scene: Scene) -> Any:
    one = await scene.reading()
    await one.subscribe(scene.other)
    await scene.polled_until_heard(one)
    found = scene.outcome(one)
    await one.end()
    return found


async def is_cancelled(scene: Scene) -> Any:
    ready, heard = asyncio.Event(), []

    async def application() -> None:
        one = await scene.reading()
        heard.append(one)
        try:
            ready.set()
            await asyncio.sleep(3600)
        finally:
            await one.close()

    task = asyncio.create_task(application())
    await ready.wait()
    task.cancel()
    await asyncio.wait([task])
    return scene.outcome(heard[0])


RACE: Final = ...
"""The client sends the commit, and may leave before that."""

OF_CLIENTS: Final[dict[Callable[[Scene], Any], dict[str, tuple[Any, list[str]]]]] = {
    unsubscribes: {
        "kafka-python": (READ, ["revoked"]),
        "aiokafka": (READ, ["revoked"]),
        "kafka-python, eager": (RACE, []),
        "aiokafka, eager": (None, []),
    },
    closes: {
        "kafka-python": (READ, ["revoked"]),
        "aiokafka": (READ, ["revoked"]),
        "kafka-python, eager": (READ, ["revoked"]),
        "aiokafka, eager": (READ, []),
    },
    is_expelled: {
        "kafka-python": (None, ["lost"]),
        "aiokafka": (None, ["lost"]),
        "kafka-python, eager": (None, ["lost"]),
        "aiokafka, eager": (READ, ["revoked"]),  # without a member id, as its group is empty
    },
    is_fenced: {
        "kafka-python": (None, ["lost"]),
        "aiokafka": (None, ["lost"]),
        "kafka-python, eager": (None, []),  # closed, it hears that all is revoked
        "aiokafka, eager": (None, ["revoked"]),
    },
    changes_its_subscription: {
        "kafka-python": (READ, ["revoked"]),
        "aiokafka": (READ, ["revoked"]),
        "kafka-python, eager": (READ, ["revoked"]),
        "aiokafka, eager": (READ, ["revoked"]),
    },
    is_cancelled: {
        "kafka-python": (READ, ["revoked"]),
        "aiokafka": (READ, ["revoked"]),
        "kafka-python, eager": (READ, ["revoked"]),
        "aiokafka, eager": (READ, []),
    },
}
"""What is committed by then, and what the listener has heard."""


@pytest.mark.parametrize(
    ("way", "client"), [(way, client) for way, of in OF_CLIENTS.items() for client in of]
)
async def test_what_is_committed_and_heard_on_each_way_out(
    way: Callable[[Scene], Any], client: str, kafka_cluster: Cluster, topic_factory: Callable[..., str]
) -> None:
    topics = [topic_factory(1), topic_factory(1)]
    produce(kafka_cluster, topics[0], {0: READ})
    offset, calls = await asyncio.wait_for(way(Scene(kafka_cluster, client, topics)), longer(100))
    expected, heard = OF_CLIENTS[way][client]
    assert calls == heard
    if expected is not RACE:
        assert offset == expected
