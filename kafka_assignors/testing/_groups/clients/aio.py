"""Members made of aiokafka, with strategies of its own or of this library.

Its consumers live on an event loop. A member's own loop is plain code, so the event loop runs beside it in a
thread. An application that brings its own event loop is observed on that.
"""

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from kafka_assignors._assignors import Assignor, CooperativeStickyAssignor
from kafka_assignors.aio import CooperativeConsumer, strategies
from kafka_assignors.aio._coordinator import (
    CooperativeCoordinator,
    UnknownPartitionsError,
    revoked_meanwhile,
)
from kafka_assignors.aio._strategies import Strategy
from kafka_assignors.testing._groups import clients
from kafka_assignors.testing._groups.clients.observed_assignor import observe_assignor
from kafka_assignors.testing._groups.config import WorkerConfig

_STOCK: Final = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


def settings(config: WorkerConfig) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if (assignors := config.made_assignors()) is not None:
        chosen = {"partition_assignment_strategy": [_strategy(one) for one in assignors]}
    return {**config.common(), **config.access.aiokafka(), **chosen}


def _strategy(assignor: Any) -> Any:
    if assignor == CooperativeStickyAssignor.name:
        assignor = CooperativeStickyAssignor()
    if isinstance(assignor, Assignor):
        (ours,) = strategies(assignor)
        return ours
    # A class of its own for each consumer: aiokafka's sticky one keeps what it had in its class, so that two
    # consumers of one process would claim the same.
    base = _STOCK[assignor] if isinstance(assignor, str) else assignor
    return type(base.__name__, (base,), {})


def make(
    config: WorkerConfig, settings: Mapping[str, Any], report: clients.Report
) -> "ObservedAiokafkaConsumer":
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=f"event loop of {config.name}", daemon=True).start()

    async def started() -> AIOKafkaConsumer:
        ours = any(isinstance(one, Strategy) for one in settings.get("partition_assignment_strategy", ()))
        consumer = (CooperativeConsumer if ours else AIOKafkaConsumer)(**settings)
        await consumer.start()
        return consumer

    consumer = asyncio.run_coroutine_threadsafe(started(), loop).result()
    observed = ObservedAiokafkaConsumer(consumer, report)
    observed.loop = loop
    return observed


class ObservedAiokafkaConsumer(clients.Observed):
    """An AIOKafkaConsumer in the way that a member's loop uses it.

    The consumer stays the object that it is: its methods are wrapped in place. It may have subscribed, but
    not polled yet. `gate` is called before each poll. `loop` is its event loop, in another thread, or None
    where an application runs it itself. Then the application calls the consumer, and none of the methods
    here that wait.
    """

    def __init__(self, consumer: Any, report: clients.Report, gate: clients.Gate = clients.no_gate) -> None:
        super().__init__(consumer, report, gate)
        self.loop: asyncio.AbstractEventLoop | None = None
        self._getmany, self._getone, self._subscribe = consumer.getmany, consumer.getone, consumer.subscribe
        consumer.getmany, consumer.getone = self._observed_getmany, self._observed_getone
        consumer.subscribe = self._observed_subscribe
        clients.report_seeks(consumer, self._write, self.absences)
        # There is no public way to its settings.
        clients.configured(report, {name.removeprefix("_"): value for name, value in vars(consumer).items()})
        self._of_ours = False
        for strategy in consumer._partition_assignment_strategy:  # noqa: SLF001
            if isinstance(strategy, Strategy):
                self._of_ours = True
                observe_assignor(strategy.assignor, self._report)
        self._observe_commits()
        state = consumer._subscription  # noqa: SLF001 - of topics named to the constructor
        if (pattern := state.subscribed_pattern) is not None:
            self._observed_subscribe(pattern=pattern, listener=state.listener)
        elif state.subscription is not None:
            self._observed_subscribe([*state.subscription.topics], listener=state.listener)

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        async def subscribed() -> None:
            self.consumer.subscribe(topics=topics, pattern=pattern)

        self._wait(subscribed())

    def unsubscribe(self) -> None:
        async def unsubscribed() -> None:
            self.consumer.unsubscribe()

        self._wait(unsubscribed())

    def poll(self, seconds: float) -> bool:
        return bool(self._wait(self.consumer.getmany(timeout_ms=int(seconds * 1000))))

    def commit(self) -> None:
        try:
            self._wait(self.consumer.commit())
        except KafkaError as error:
            raise clients.CommitError(clients.described(error)) from error

    def membership(self) -> clients.Membership:
        coordinator = self.consumer._coordinator  # noqa: SLF001 - there is no public way
        return clients.Membership(
            getattr(coordinator, "generation", -1), str(getattr(coordinator, "member_id", "")), "unknown"
        )

    def assignment(self) -> Iterable[clients.Pair]:
        return clients.pairs(self.consumer.assignment())

    def subscription(self) -> Iterable[str]:
        return sorted(self.consumer.subscription())

    def close(self) -> None:
        self._wait(self.consumer.stop())
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.loop.stop)

    def _wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        if self.loop is None:
            raise RuntimeError("the consumer is on the application's own event loop")
        return asyncio.run_coroutine_threadsafe(work, self.loop).result()

    def _observe_commits(self) -> None:
        """Have all commits reported, the timer's too. Before `start` a consumer has no coordinator."""
        coordinator = self.consumer._coordinator  # noqa: SLF001 - there is no public way
        if coordinator is None:
            start = self.consumer.start

            async def started() -> None:
                await start()
                self._observe_commits()

            self.consumer.start = started
            return
        send = coordinator._do_commit_offsets  # noqa: SLF001

        async def observed(assignment: Any, offsets: Any) -> Any:
            # A commit that is refused may throw the consumer out of its group, which then has no generation.
            generation, member_id, _ = self.membership()
            sent_as = {"generation": generation, "member_id": member_id}
            try:
                result = await send(assignment, offsets)
            except UnknownPartitionsError as error:  # the others are stored
                self._commits.done(_positions(offsets, offsets.keys() - error.partitions))
                self._commits.failed(_positions(offsets, error.partitions), error, **sent_as)
                raise
            except KafkaError as error:
                if not isinstance(coordinator, CooperativeCoordinator) or not coordinator.sends_again(error):
                    self._commits.failed(_positions(offsets, offsets), error, **sent_as)
                raise
            self._commits.done(_positions(offsets, offsets))
            if gone := getattr(offsets, "revoked", None):  # a cooperative consumer leaves it out
                self._commits.failed(_positions(gone, gone), revoked_meanwhile(gone), **sent_as)
            return result

        coordinator._do_commit_offsets = observed  # noqa: SLF001

    def _observed_subscribe(
        self, topics: Sequence[str] = (), pattern: Any = None, listener: Any = None
    ) -> None:
        own = _AiokafkaListener(self._report, self.absences, listener, self._of_ours)
        self._subscribe(topics=topics, pattern=pattern, listener=own)
        self.subscribed = True
        text = getattr(pattern, "pattern", pattern)
        self._write("subscribed", topics=[] if text else sorted(topics), pattern=text)

    async def _observed_getmany(self, *partitions: Any, **kwargs: Any) -> Any:
        await asyncio.to_thread(self._gate)
        with self.absences.poll():
            batch = await self._getmany(*partitions, **kwargs)
        clients.report_batch(self._write, batch)
        return batch

    async def _observed_getone(self, *partitions: Any) -> Any:
        await asyncio.to_thread(self._gate)
        with self.absences.poll():
            record = await self._getone(*partitions)
        clients.report_batch(self._write, {TopicPartition(record.topic, record.partition): [record]})
        return record


observe = ObservedAiokafkaConsumer


class _AiokafkaListener(clients.AwaitedListenerCalls, ConsumerRebalanceListener):
    def __init__(
        self, report: clients.Report, absences: clients.Absences, inner: Any, reported: bool
    ) -> None:
        super().__init__(absences, inner)
        self._report = report
        self._reported = reported  # the strategies have reported the assignment

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        if not self._reported:  # eager: what is assigned is all that it has
            self._report("assignment", partitions=clients.pairs(assigned))
        await super().on_partitions_assigned(assigned)


def _positions(offsets: Mapping[Any, Any], partitions: Iterable[Any]) -> dict[clients.Pair, int]:
    return {(one.topic, one.partition): offsets[one].offset for one in partitions}
