"""Members made of kafka-python, with any assignors.

Beside the callbacks these report what the assignors are asked and what they answer.
"""

import contextlib
import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafka import AsyncConsumerRebalanceListener, ConsumerRebalanceListener, KafkaConsumer
from kafka.errors import KafkaError
from kafka.structs import OffsetAndMetadata, TopicPartition

from kafka_assignors._common.strategies import STRATEGIES, load
from kafka_assignors.testing._groups import clients
from kafka_assignors.testing._groups.clients.observed_assignor import observe_assignor
from kafka_assignors.testing._groups.config import WorkerConfig

_CLOSE_MS = 3000
_COMMIT_MS = 5000


def settings(config: WorkerConfig) -> dict[str, Any]:
    chosen: dict[str, Any] = {}
    if (assignors := config.made_assignors()) is not None:
        made = [load(STRATEGIES[one].stock or "")() if isinstance(one, str) else one for one in assignors]
        chosen = {"partition_assignment_strategy": made}
    return {**config.common(), **config.access.kafka_python(), **chosen}


def make(
    config: WorkerConfig, settings: Mapping[str, Any], report: clients.Report
) -> "ObservedKafkaConsumer":
    consumer: Any = KafkaConsumer(**settings)
    return ObservedKafkaConsumer(
        consumer,
        report,
        functools.partial(_recall_join, consumer) if config.recalls_joins else clients.no_gate,
    )


class ObservedKafkaConsumer(clients.Observed):
    """A KafkaConsumer whose membership and deliveries are reported.

    The consumer stays the object that it is: its `subscribe` and `poll` are wrapped in place.

    The consumer may have subscribed, but not polled yet.
    """

    def __init__(self, consumer: Any, report: clients.Report, gate: clients.Gate = clients.no_gate) -> None:
        super().__init__(consumer, report, gate)
        self._poll, self._subscribe, self._commit = consumer.poll, consumer.subscribe, consumer.commit
        for assignor in consumer._coordinator._assignors.values():  # noqa: SLF001 - the only way to them
            observe_assignor(assignor, self._report)
        clients.configured(report, consumer.config)
        consumer.poll, consumer.subscribe = self._observed_poll, self._observed_subscribe
        consumer.commit = self._observed_commit
        clients.report_seeks(consumer, self._write, self.absences)
        coordinator = consumer._coordinator  # noqa: SLF001 - the one way that all commits go, the timer's too
        coordinator._send_offset_commit_request = self._observed_send_commit  # noqa: SLF001
        state = consumer._subscription  # noqa: SLF001 - of topics named to the constructor
        if state.subscription is not None:
            state.rebalance_listener = self._listener(state.rebalance_listener)
            self._wrote_subscription(state.subscription, state.subscribed_pattern)

    def subscribe(self, topics: Sequence[str], pattern: str | None) -> None:
        self.consumer.subscribe(topics=topics, pattern=None if pattern is None else re.compile(pattern))
        # A leader that joins before it has metadata hands out nothing and has to rebalance again. That is
        # all that comes of a broker that is away just now.
        with contextlib.suppress(KafkaError):
            for topic in topics:
                self.consumer.partitions_for_topic(topic)

    def unsubscribe(self) -> None:
        self.consumer.unsubscribe()

    def poll(self, seconds: float) -> bool:
        return bool(self.consumer.poll(timeout_ms=int(seconds * 1000)))

    def commit(self) -> None:
        try:
            self.consumer.commit(timeout_ms=_COMMIT_MS)
        except KafkaError as error:
            raise clients.CommitError(clients.described(error)) from error

    def membership(self) -> clients.Membership:
        found = self.consumer.group_metadata()
        return clients.Membership(found.generation_id, found.member_id, str(found.state).strip("<>"))

    def assignment(self) -> Iterable[clients.Pair]:
        return clients.pairs(self.consumer.assignment())

    def subscription(self) -> Iterable[str]:
        return sorted(self.consumer.subscription() or ())

    def close(self) -> None:
        commits = bool(self.consumer.config["enable_auto_commit"])
        self.consumer.close(autocommit=commits, timeout_ms=_CLOSE_MS)

    def _wrote_subscription(self, topics: Iterable[str], pattern: Any) -> None:
        self.subscribed = True
        text = getattr(pattern, "pattern", pattern)
        self._write("subscribed", topics=[] if text else sorted(topics), pattern=text)

    def _observed_subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        self._subscribe(topics=topics, pattern=pattern, listener=self._listener(listener))
        self._wrote_subscription([topics] if isinstance(topics, str) else topics, pattern)

    def _observed_poll(self, *args: Any, **kwargs: Any) -> Any:
        self._gate()
        with self.absences.poll():
            batch = self._poll(*args, **kwargs)
        clients.report_batch(self._write, batch, thread=clients.at_work())
        return batch

    def _listener(self, inner: Any) -> Any:
        """A listener that reports, and calls the application's."""
        kind = _AsyncListener if isinstance(inner, AsyncConsumerRebalanceListener) else _KafkaPythonListener
        return kind(self.absences, inner)

    async def _observed_send_commit(self, offsets: Any) -> Any:
        coordinator = self.consumer._coordinator  # noqa: SLF001
        # By its class, which a cooperative assignor of ours changes when the consumer first joins.
        sent = type(coordinator)._send_offset_commit_request(coordinator, offsets)  # noqa: SLF001
        return await self._commits.follow(sent, _positions(offsets))

    def _observed_commit(self, offsets: Any = None, timeout_ms: Any = None) -> None:
        try:
            self._commit(offsets=offsets, timeout_ms=timeout_ms)
        except KafkaError:
            raise  # it was sent, and reported then
        except Exception as error:
            # As in a listener that is no AsyncConsumerRebalanceListener: kafka-python 3 cannot wait there.
            self._commits.failed({}, error)
            raise


observe = ObservedKafkaConsumer


def _positions(offsets: Any) -> dict[clients.Pair, int]:
    """What is to be committed; an application may ask for what is no commit at all."""
    if not isinstance(offsets, Mapping):
        return {}
    return {
        (one.topic, one.partition): at.offset
        for one, at in offsets.items()
        if isinstance(one, TopicPartition) and isinstance(at, OffsetAndMetadata)
    }


def _recall_join(consumer: Any) -> None:
    """Have the next poll look at a join that was begun for changed topics or partitions.

    kafka-python 3.0 takes such a change for settled when it has asked to join, or as a leader has planned. If
    the poll ends before the exchange does, no other looks at it: the member is expelled and stays away.
    """
    coordinator = consumer._coordinator  # noqa: SLF001 - there is no public way
    if coordinator._join_task is not None and not coordinator.need_rejoin():  # noqa: SLF001
        coordinator.request_rejoin()


class _KafkaPythonListener(clients.ListenerCalls, ConsumerRebalanceListener):
    def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        with self._called("assigned", assigned):
            pass

    def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        with self._called("revoked", revoked):
            pass

    def on_partitions_lost(self, lost: Iterable[Any]) -> None:
        with self._called("lost", lost):
            pass


class _AsyncListener(clients.AwaitedListenerCalls, AsyncConsumerRebalanceListener):
    pass
