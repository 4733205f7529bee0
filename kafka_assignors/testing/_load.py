"""Records produced to topics all the time, and how many of them the brokers have."""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Self

from confluent_kafka import KafkaException, Producer
from kafka import TopicPartition

from kafka_assignors.testing._brokers.access import Access, Kafka
from kafka_assignors.testing._topics import LOG_LEVEL, existing_partitions

DELIVERY_SECONDS: Final = 120.0
"""How long a record may take until it is acknowledged: longer than brokers are away in tests."""

_LOOK_SECONDS = 0.5  # between two looks at the topic's partitions
_LOOK_TIMEOUT = 1.0  # in which brokers should say them; meanwhile nothing is produced


class Load:
    """Produces numbered records to all partitions of topics in turn, from a thread, until stopped.

    A context manager: starts on entering, stops on leaving. New partitions get their share within a second.
    Let the topics have no other records, so that the offsets 0 to n - 1 are what `produced` counts.

    Brokers may be killed, stopped and started meanwhile: records wait for them. Each acknowledged one is
    there once, as long as the topic has replicas on other brokers (`create_topic(..., replication=3)`).

    Args:
        kafka: The cluster.
        topics: The topic, or several.
        rate: Records a second, over all partitions.
        backlog: So many records the brokers have when the context is entered, on top; they may take
            `DELIVERY_SECONDS` for all.
        key: The key of the record of this number, from 0; the producer then chooses partitions by keys.
        value: The value of that record; by default its number. Say `lambda n: b"no JSON" if n == 7 else ...`
            for one that consumers cannot read.
    """

    def __init__(
        self,
        kafka: Kafka,
        topics: str | Collection[str],
        *,
        rate: float = 100.0,
        backlog: int = 0,
        key: Callable[[int], bytes] | None = None,
        value: Callable[[int], bytes | None] = lambda number: str(number).encode(),
    ) -> None:
        self.topics = (topics,) if isinstance(topics, str) else tuple(topics)
        self._rate = rate
        self._backlog = backlog
        self._key, self._value = key, value
        self._name = f"load on {', '.join(self.topics)}"
        self._producer = Producer(
            {
                **Access.to(kafka).librdkafka(),
                # Retries neither reorder nor double, so n acknowledged records have the offsets 0 to n - 1.
                "enable.idempotence": True,
                # With more, a broker that has only just made the partition takes the second request though it
                # refused the first, and librdkafka takes the first for acknowledged, too: it is in no log.
                "max.in.flight.requests.per.connection": 1,
                "delivery.timeout.ms": int(DELIVERY_SECONDS * 1000),
                # A broker that is frozen or out of reach is given up, and another asked.
                "request.timeout.ms": 5000,
                "socket.timeout.ms": 10000,
                "api.version.request.timeout.ms": 3000,
                "linger.ms": 5,
                "log_level": LOG_LEVEL,
            }
        )
        self._produced: dict[TopicPartition, int] = {}
        self._acknowledged = 0
        self._failed: list[str] = []
        self._broken: Exception | None = None
        self._stop = threading.Event()
        self._has_backlog = threading.Event()
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        if self._backlog:
            self._has_backlog.wait(DELIVERY_SECONDS)
            if (have := self._acknowledged) < self._backlog:
                self.stop()
                raise RuntimeError(
                    f"{self._name}: the brokers had {have} of a backlog of {self._backlog} records after"
                    f" {DELIVERY_SECONDS:g} s"
                )
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def produced(self) -> Mapping[TopicPartition, int]:
        """How many records of each partition the brokers acknowledged so far."""
        return dict(self._produced)

    def stop(self) -> Mapping[TopicPartition, int]:
        """Stop, and wait for the last acknowledgements.

        Returns:
            How many records of each partition the brokers acknowledged.

        Raises:
            RuntimeError: Records were not acknowledged, though the brokers had `DELIVERY_SECONDS`; says how
                many and why. Or there is no such topic, or no broker.
        """
        self._stop.set()
        self._thread.join()
        if self._broken is not None:
            raise RuntimeError(f"{self._name} ended by itself: {self._broken!r}") from self._broken
        if self._failed:
            raise RuntimeError(
                f"{self._name}: {len(self._failed)} records were not acknowledged besides "
                f"{self._acknowledged} that were; the first: {self._failed[0]}"
            )
        return self.produced

    def _run(self) -> None:
        try:
            self._produce()
        except Exception as error:  # noqa: BLE001 - whatever ends the thread early, `stop` tells
            self._broken = error
            self._has_backlog.set()
        # Ends at the latest when each record is acknowledged or given up.
        if remaining := self._producer.flush(DELIVERY_SECONDS + 1):
            self._failed += ["still under way"] * remaining

    def _produce(self) -> None:
        began = time.monotonic()
        look_again = began
        partitions: list[TopicPartition] = []
        found: list[TopicPartition] | None = None
        number = 0
        stopped = False
        while not stopped:
            if time.monotonic() >= look_again:
                found = self._partitions()
                partitions = found or partitions
                look_again = time.monotonic() + _LOOK_SECONDS
            due = self._backlog + int((time.monotonic() - began) * self._rate) if partitions else number
            while number < due and self._take(number, partitions[number % len(partitions)]):
                number += 1
            self._producer.poll(0)
            stopped = self._stop.wait(0.01)
        if not partitions:
            raise LookupError("no broker answers" if found is None else "no broker shows such a topic")

    def _partitions(self) -> list[TopicPartition] | None:
        """The topics' partitions, none if the broker asked does not know one; None if none answers."""
        try:
            found = existing_partitions(self._producer, _LOOK_TIMEOUT)
        except KafkaException:
            return None
        if not all(topic in found for topic in self.topics):
            return []
        return [partition for topic in self.topics for partition in found[topic]]

    def _take(self, number: int, partition: TopicPartition) -> bool:
        """Whether the producer takes a record; it does not while too many are waiting for brokers."""
        where = {"partition": partition.partition} if self._key is None else {"key": self._key(number)}
        try:
            self._producer.produce(partition.topic, self._value(number), on_delivery=self._done, **where)
        except BufferError:
            return False
        return True

    def _done(self, error: Any, record: Any) -> None:
        if error is not None:
            self._failed.append(str(error))
            self._has_backlog.set()
            return
        partition = TopicPartition(record.topic(), record.partition())
        self._produced[partition] = self._produced.get(partition, 0) + 1
        self._acknowledged += 1
        if self._acknowledged >= self._backlog:
            self._has_backlog.set()
