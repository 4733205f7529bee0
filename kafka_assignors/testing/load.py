"""Records produced to a topic all the time, and how many of them the brokers have."""

import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Producer
from kafka import TopicPartition

from kafka_assignors.testing.topics import LOG_LEVEL, REQUEST_SECONDS, existing_partitions, servers


class Load:
    """Produces numbered records to all partitions of a topic in turn, from a thread, until stopped.

    A context manager: starts on entering, stops on leaving. New partitions get their share within a second.
    Let the topic have no other records, so that the offsets 0 to n - 1 are what `produced` counts.

    Args:
        bootstrap_servers: The brokers.
        topic: The topic.
        rate: Records a second, over all partitions.
    """

    def __init__(self, bootstrap_servers: str | Sequence[str], topic: str, *, rate: float = 100.0) -> None:
        self.topic = topic
        self._rate = rate
        self._producer = Producer(
            {
                "bootstrap.servers": ",".join(servers(bootstrap_servers)),
                # Retries neither reorder nor double, so n acknowledged records have the offsets 0 to n - 1.
                "enable.idempotence": True,
                "linger.ms": 5,
                "log_level": LOG_LEVEL,
            }
        )
        self._produced: dict[TopicPartition, int] = {}
        self._failed: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"load on {topic}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
            RuntimeError: Records could not be produced.
        """
        self._stop.set()
        self._thread.join()
        if self._failed:
            raise RuntimeError(f"{len(self._failed)} failures to produce, the first: {self._failed[0]}")
        return self.produced

    def _run(self) -> None:
        try:
            self._produce()
        except Exception as error:  # noqa: BLE001 - whatever ends the thread early, `stop` tells
            self._failed.append(repr(error))

    def _produce(self) -> None:
        began = time.monotonic()
        look_again = began
        partitions: list[TopicPartition] = []
        number = 0
        while not self._stop.is_set():
            now = time.monotonic()
            if now >= look_again:
                partitions = existing_partitions(self._producer)[self.topic]
                look_again = now + 0.5
            while number < (now - began) * self._rate:
                partition = partitions[number % len(partitions)].partition
                self._producer.produce(
                    self.topic, str(number).encode(), partition=partition, on_delivery=self._done
                )
                number += 1
            self._producer.poll(0)
            self._stop.wait(0.01)
        self._producer.flush(REQUEST_SECONDS)

    def _done(self, error: Any, record: Any) -> None:
        if error is not None:
            self._failed.append(str(error))
            return
        # Counted: librdkafka sometimes acknowledges the first records of a new topic without offsets.
        partition = TopicPartition(record.topic(), record.partition())
        self._produced[partition] = self._produced.get(partition, 0) + 1
