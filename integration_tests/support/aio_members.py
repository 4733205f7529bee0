"""Applications on aiokafka's consumers, on one event loop with the test."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Self

from aiokafka import ConsumerRebalanceListener, TopicPartition

from integration_tests.support.membership import expel
from kafka_assignors.aio import CooperativeConsumer
from kafka_assignors.testing import Cluster
from kafka_assignors.testing._brokers.access import Access

PATIENCE: Final = 120.0
SETTINGS: Final = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "heartbeat_interval_ms": 500,
    "session_timeout_ms": 30_000,
    "metadata_max_age_ms": 1000,
}


class Told(NamedTuple):
    """What a listener was told: which of its methods, and which partitions."""

    kind: str
    partitions: frozenset[int]


@dataclass
class Member(ConsumerRebalanceListener):
    """A consumer, what it was told, and what it has read."""

    name: str
    consumer: Any
    commits: bool = False
    told: list[Told] = field(default_factory=list)
    read: dict[int, list[int]] = field(default_factory=dict)
    hooks: dict[str, Callable[[], Coroutine[Any, Any, None]]] = field(default_factory=dict)
    error: Exception | None = None
    assigned_in: int = -1
    _reading: asyncio.Task[None] | None = None

    async def on_partitions_revoked(self, revoked: Any) -> None:
        await self._hear("revoked", revoked)

    async def on_partitions_assigned(self, assigned: Any) -> None:
        await self._hear("assigned", assigned)

    async def on_partitions_lost(self, lost: Any) -> None:
        await self._hear("lost", lost)

    async def _hear(self, kind: str, partitions: Any) -> None:
        self.told.append(Told(kind, frozenset(one.partition for one in partitions)))
        if kind == "assigned":
            self.assigned_in = self.generation
        if kind in self.hooks:
            await self.hooks[kind]()

    @property
    def has(self) -> frozenset[int]:
        return frozenset(one.partition for one in self.consumer.assignment())

    @property
    def generation(self) -> int:
        return int(self.consumer._coordinator.generation)

    @property
    def joining(self) -> bool:
        return bool(getattr(self.consumer._coordinator, "joining", False))

    @property
    def count(self) -> int:
        return sum(map(len, self.read.values()))

    def kinds(self, kind: str) -> list[frozenset[int]]:
        return [told.partitions for told in self.told if told.kind == kind]

    def starts_to_read(self) -> None:
        self._reading = asyncio.create_task(self._read())

    async def stops_to_read(self) -> None:
        if self._reading is not None:
            self._reading.cancel()
            with contextlib.suppress(asyncio.CancelledError, *([type(self.error)] if self.error else [])):
                await self._reading
            self._reading = None

    async def _read(self) -> None:
        try:
            while True:
                batch = await self.consumer.getmany(timeout_ms=100)
                for partition, records in batch.items():
                    self.read.setdefault(partition.partition, []).extend(one.offset for one in records)
                if batch and self.commits:
                    await self.consumer.commit(
                        {partition: records[-1].offset + 1 for partition, records in batch.items()}
                    )
        except Exception as error:
            self.error = error
            raise

    async def __aenter__(self) -> Self:
        await self.consumer.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stops_to_read()
        await self.consumer.stop()


@dataclass
class Members:
    """Makes members of one group."""

    kafka: Access
    topic: str
    group_id: str
    made: dict[str, Member] = field(default_factory=dict)

    @classmethod
    def on(cls, cluster: Cluster, topic: str, *, proxied: bool = False) -> Self:
        return cls(cluster.network.access if proxied else cluster.access, topic, f"aio-{topic}")

    def member(
        self, name: str, kind: Any = CooperativeConsumer, *, commits: bool = False, **settings: Any
    ) -> Member:
        consumer = kind(
            group_id=self.group_id, client_id=name, **{**SETTINGS, **self.kafka.aiokafka(), **settings}
        )
        member = self.made[name] = Member(name, consumer, commits)
        consumer.subscribe([self.topic], listener=member)
        return member

    async def settled(self, sizes: dict[str, int]) -> None:
        """Wait until these members, and nobody else, have so many partitions each, and nothing twice.

        A consumer has its partitions before its listener hears of them.
        """

        def stable() -> bool:
            members = [self.made[name] for name in sizes]
            owned = [partition for member in members for partition in member.has]
            return (
                {member.name: len(member.has) for member in members} == sizes
                and len(owned) == len({*owned})
                and len({member.generation for member in members}) == 1
                and all(member.assigned_in == member.generation for member in members)
                and not any(member.joining for member in members)
            )

        await until(stable, f"{sizes}")


async def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition, which is looked at every 20 ms."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"waited {PATIENCE:g} s in vain for {what}")
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def reading(*members: Member) -> AsyncIterator[None]:
    """The members started, and reading all the time."""
    async with contextlib.AsyncExitStack() as stack:
        for member in members:
            await stack.enter_async_context(member)
            member.starts_to_read()
        yield


@contextlib.asynccontextmanager
async def joins(member: Member) -> AsyncIterator[asyncio.Task[None]]:
    """A member whose start is under way: a task that ends when it has joined, and reads."""

    async def start() -> None:
        await member.consumer.start()
        member.starts_to_read()

    task = asyncio.create_task(start())
    try:
        yield task
    finally:
        await member.__aexit__()


def partition(topic: str, number: int) -> TopicPartition:
    return TopicPartition(topic, number)


def expelled(cluster: Cluster, members: Members, member: Member) -> None:
    expel(cluster.access, members.group_id, member.consumer._coordinator.member_id)
