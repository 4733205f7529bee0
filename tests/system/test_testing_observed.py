"""Consumers of confluent-kafka that are observed, on librdkafka's mock broker."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, DeserializingConsumer, Producer

from kafka_assignors._common.waiting import wait_until
from kafka_assignors.testing._groups.clients.confluent import ObservedConfluentConsumer
from kafka_assignors.testing._topics import LOG_LEVEL

SECONDS = 60.0
"""A laden machine needs a few."""

ALL = [("t", partition) for partition in range(4)]
"""The topic's partitions, as events have them: so many has each topic that the mock broker creates."""

Told = list[tuple[str, "Mapping[str, Any]"]]


@contextlib.contextmanager
def mock_consumer(kind: Any = Consumer, **own: Any) -> Iterator[tuple[Any, ObservedConfluentConsumer, Told]]:
    """A consumer with a broker of its own, the same observed, and what is reported of it."""
    told: Told = []
    consumer: Any = kind(
        {
            "test.mock.num.brokers": 1,
            "allow.auto.create.topics": True,
            "auto.offset.reset": "earliest",
            "group.id": "g",
            "log_level": LOG_LEVEL,
            "partition.assignment.strategy": "cooperative-sticky",
            **own,
        }
    )
    consumer.list_topics("t", timeout=SECONDS)  # creates it
    yield (
        consumer,
        ObservedConfluentConsumer(consumer, lambda kind, **fields: told.append((kind, fields))),
        told,
    )
    consumer.close()


def poll_until(consumer: Any, told: Told, kind: str) -> None:
    """Poll until an event of a kind is reported."""

    def awaited() -> list[str]:
        consumer.poll(0.02)
        return [] if any(one == kind for one, _ in told) else [f"no {kind}"]

    wait_until(awaited, SECONDS, f"{kind} to be reported")


def test_partitions_whose_callback_raises_are_gone_and_reported_so() -> None:
    def raises(_: Any, partitions: Any) -> None:
        raise OSError(f"{len(partitions)} files are on a full disk")

    with mock_consumer() as (inner, observed, told):
        observed.consumer.subscribe(["t"], on_revoke=raises)
        poll_until(observed.consumer, told, "assigned")
        assert observed.assignment() == ALL
        inner.unsubscribe()
        with pytest.raises(OSError, match="4 files are on a full disk"):
            poll_until(observed.consumer, told, "revoked")
        assert inner.assignment() == []
        assert observed.assignment() == []
        last = [(kind, about.get("error") or about["partitions"]) for kind, about in told[-2:]]
        assert last == [("listener", "OSError: 4 files are on a full disk"), ("revoked", ALL)]


def test_an_observed_consumer_is_a_context_that_closes_the_consumer_at_its_end() -> None:
    with mock_consumer() as (inner, observed, told):
        observed.consumer.subscribe(["t"])
        with observed.consumer as consumer:
            assert consumer is observed.consumer
            poll_until(consumer, told, "assigned")
        with pytest.raises(RuntimeError, match="Consumer closed"):
            inner.poll(0)
        assert [(kind, about["partitions"]) for kind, about in told[-1:]] == [("revoked", ALL)]


def test_each_alternative_of_a_pattern_is_matched_from_the_start_of_a_name() -> None:
    with mock_consumer() as (inner, observed, told):
        for topic in ("u", "xu"):
            inner.list_topics(topic, timeout=SECONDS)
        observed.subscribe([], "t|u")
        poll_until(observed.consumer, told, "assigned")
        assert {topic for topic, _ in observed.assignment()} == {"t", "u"}


def test_a_consumer_with_deserializers_is_polled_by_the_kit_record_by_record() -> None:
    deserializes = {"value.deserializer": lambda value, _: int(value)}
    with mock_consumer(DeserializingConsumer, **deserializes) as (inner, observed, told):
        (broker,) = inner.list_topics(timeout=SECONDS).brokers.values()
        server = f"{broker.host}:{broker.port}"
        producer: Any = Producer({"bootstrap.servers": server, "log_level": LOG_LEVEL})
        for number in range(2):
            producer.produce("t", str(number), partition=0)
        assert producer.flush(SECONDS) == 0
        observed.subscribe(["t"], None)
        wait_until(lambda: [] if observed.poll(0.02) else ["no record"], SECONDS, "the first record")
        wait_until(lambda: [] if observed.poll(0.02) else ["no record"], SECONDS, "the second one")
        records = [about.get("records") for kind, about in told if kind in {"records", "error"}]
        assert records == [[("t", 0, 0, 0)], [("t", 0, 1, 1)]]
