"""A consumer with aiokafka's interface that rebalances cooperatively."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from types import FunctionType
from typing import Any, Self

from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.consumer import commit_structure_validate
from aiokafka.errors import ConsumerStoppedError, IllegalStateError
from aiokafka.structs import TopicPartition
from kafka.coordinator.assignors.abstract import RebalanceProtocol

from kafka_assignors._assignors import Assignor, CooperativeStickyAssignor
from kafka_assignors.aio._coordinator import CooperativeCoordinator, EagerCoordinator, revoked_meanwhile
from kafka_assignors.aio._partitions import GONE, ConsumerSubscriptionState, LastingState
from kafka_assignors.aio._strategies import Strategy, strategies


class CooperativeConsumer(AIOKafkaConsumer):
    """An AIOKafkaConsumer that keeps its partitions through a rebalance (KIP-429).

    Partitions that stay are never revoked: their positions, fetched records, pauses and seeks stay, and
    records and commits flow on while a rebalance is on. A partition that changes hands is revoked in one
    round and given to its new owner in the next, which begins at once.

    Listeners hear less than aiokafka's: `on_partitions_revoked` of what goes, `on_partitions_assigned` of
    what is new (maybe nothing). Nothing of a new partition is delivered before its listener has returned.
    `on_partitions_lost` is called once after the consumer fell out of its group. Others may have its
    partitions already. A listener without one gets `on_partitions_revoked` instead.

    With an eager strategy in the list, say `[CooperativeStickyAssignor, RangeAssignor]`, the consumer
    rebalances eagerly: that is the first of two rolling restarts from `range`.

    Args:
        *topics: Topics to subscribe to.
        partition_assignment_strategy: Assignors of this library, classes or instances, and aiokafka's; or
            what `strategies` gives.
        **settings: As AIOKafkaConsumer's.

    Raises:
        KafkaConfigurationError: Two strategies have one name.
    """

    def __init__(
        self,
        *topics: str,
        partition_assignment_strategy: Sequence[Any] = (CooperativeStickyAssignor,),
        **settings: Any,
    ) -> None:
        chosen = _chosen(partition_assignment_strategy)
        super().__init__(*topics, partition_assignment_strategy=chosen, **settings)
        self._cooperative = self._group_id is not None and is_cooperative(chosen)
        kind = LastingState if self._cooperative else ConsumerSubscriptionState
        self._subscription = kind(settings.get("loop"))
        if topics:
            self._subscription.subscribe(set(topics))

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:  # nobody else stops it
            await self.stop()
            raise
        return self

    async def start(self) -> None:
        """As AIOKafkaConsumer's."""
        # It names its coordinator in its module: the same code runs with ours under that name.
        stock = AIOKafkaConsumer.start
        names = {**stock.__globals__, "GroupCoordinator": self._coordinate}
        with_ours = FunctionType(stock.__code__, names, stock.__name__, stock.__defaults__, stock.__closure__)
        await with_ours(self)

    def _coordinate(self, client: Any, subscription: Any, **settings: Any) -> EagerCoordinator:
        if self._cooperative:
            return CooperativeCoordinator(self._fetcher, client, subscription, **settings)
        return EagerCoordinator(client, subscription, **settings)

    async def getone(self, *partitions: TopicPartition) -> Any:
        """As AIOKafkaConsumer's, which waits for ever for a partition that is taken away.

        Raises:
            IllegalStateError: One of the partitions is not assigned, or not any more.
        """
        if not partitions:
            return await super().getone()
        self._coordinator.check_errors()
        with self._subscription.fetch_context():
            while not self._closed:
                self._subscription.check_assigned(*partitions)
                # In this task, and without a wait: a record that another task took would be lost if this one
                # is cancelled.
                if not self._subscription.reassignment_in_progress and (
                    batch := await self._fetcher.fetched_records(partitions, max_records=1)
                ):
                    ((record,),) = batch.values()
                    return record
                await self._news(None)
        raise ConsumerStoppedError

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: float = 0, max_records: int | None = None
    ) -> Any:
        """As AIOKafkaConsumer's, which waits for an assignment however long that takes.

        Raises:
            ConsumerStoppedError: The consumer was stopped before.
        """
        if self._closed:
            raise ConsumerStoppedError
        end = time.monotonic() + timeout_ms / 1000
        batch: Any = {}
        with self._subscription.fetch_context():
            while not self._closed:
                if self._subscription.reassignment_in_progress:
                    self._coordinator.check_errors()
                else:  # this gives what is there, without a wait
                    batch = await super().getmany(*partitions, max_records=max_records)
                left = end - time.monotonic()
                if batch or left <= 0:
                    break
                await self._news(left)
        return batch

    async def _news(self, seconds: float | None) -> None:
        """Wait until records may have come, or partitions come or go; or for so long."""
        with self._subscription.changes() as changed:
            fetched = self._fetcher._create_fetch_waiter()  # noqa: SLF001 - as its own getone does
            try:
                await asyncio.wait([fetched, *changed], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
                if fetched.done():
                    fetched.result()
            finally:
                fetched.cancel()

    async def seek_to_beginning(self, *partitions: TopicPartition) -> Any:
        """As AIOKafkaConsumer's, which asserts that there are partitions.

        Raises:
            IllegalStateError: One of the partitions is not assigned; without any, none is.
        """
        self._check_seek(partitions)
        return await super().seek_to_beginning(*partitions)

    async def seek_to_end(self, *partitions: TopicPartition) -> Any:
        """As `seek_to_beginning`."""
        self._check_seek(partitions)
        return await super().seek_to_end(*partitions)

    async def seek_to_committed(self, *partitions: TopicPartition) -> Any:
        """As `seek_to_beginning`."""
        self._check_seek(partitions)
        return await super().seek_to_committed(*partitions)

    def _check_seek(self, partitions: Iterable[Any]) -> None:
        if all(isinstance(one, TopicPartition) for one in partitions):  # aiokafka refuses others
            self._subscription.check_assigned(*partitions)

    def highwater(self, partition: TopicPartition) -> Any:
        """As AIOKafkaConsumer's, which asserts that the partition is assigned.

        Raises:
            IllegalStateError: It is not.
        """
        self._subscription.check_assigned(partition)
        return super().highwater(partition)

    def last_stable_offset(self, partition: TopicPartition) -> Any:
        """As `highwater`."""
        self._subscription.check_assigned(partition)
        return super().last_stable_offset(partition)

    def last_poll_timestamp(self, partition: TopicPartition) -> Any:
        """As `highwater`."""
        self._subscription.check_assigned(partition)
        return super().last_poll_timestamp(partition)

    async def position(self, partition: TopicPartition) -> Any:
        """As AIOKafkaConsumer's."""
        position = await super().position(partition)
        if position == GONE:
            raise IllegalStateError(f"Partition {partition} is not assigned")
        return position

    async def commit(self, offsets: Any = None) -> None:
        """As AIOKafkaConsumer's; if some partitions were revoked, the others' offsets are committed first.

        Raises:
            CommitFailedError: Some partitions were revoked, or the consumer fell out of its group.
        """
        lasting = self._subscription.lasting if self._cooperative else None
        if offsets is None or lasting is None:
            await super().commit(offsets)
            return
        asked = commit_structure_validate(offsets)
        revoked = {one for one in asked if one not in lasting.tps and lasting.was_mine(one)}
        if revoked:
            if left := {one: offset for one, offset in asked.items() if one not in revoked}:
                await super().commit(left)
            raise revoked_meanwhile(revoked)
        await super().commit(offsets)


def _chosen(given: Sequence[Any]) -> list[Any]:
    """Strategies as aiokafka takes them: ours wrapped, and its own as they are."""
    ours = strategies(*(one for one in given if _is_ours(one)))
    of_name = {one.name: one for one in ours}
    return [of_name[one.name] if _is_ours(one) else one for one in given]


def _is_ours(given: Any) -> bool:
    return isinstance(given, Assignor) or (isinstance(given, type) and issubclass(given, Assignor))


def is_cooperative(strategies: Iterable[Any]) -> bool:
    """Whether a consumer with these strategies keeps its partitions through a rebalance: all have to."""
    return all(
        isinstance(one, Strategy) and RebalanceProtocol.COOPERATIVE in one.assignor.supported_protocols()
        for one in strategies
    )
