"""Consumers that are observed do as they do without the kit, and what they do is reported."""

import asyncio
import json
import re
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from kafka import TopicPartition

from kafka_assignors.testing._groups.clients import Absences
from kafka_assignors.testing._groups.clients.aio import ObservedAiokafkaConsumer


class Registry:
    """An application's deserializer, with a method of the name that kafka-python's has."""

    def __call__(self, value: bytes) -> Any:
        return self._deserialize(value)

    def _deserialize(self, value: bytes) -> Any:
        raise ValueError(f"no schema of {value!r}")


class Fetcher:
    """The part of kafka-python that calls it."""

    def poll(self, tp: TopicPartition) -> None:  # noqa: ARG002 - is looked for in the frame
        record = SimpleNamespace(offset=7, value=b"x")
        self._deserialize(Registry(), record.value)

    def _deserialize(self, deserializer: Any, value: bytes) -> Any:
        return deserializer(value)


@pytest.mark.parametrize(
    ("poll", "records"),
    [
        (lambda: Fetcher().poll(TopicPartition("orders", 1)), [("orders", 1, 7, 7)]),
        (lambda: Registry()(b"x"), []),
    ],
    ids=["of a record", "of something else"],
)
def test_what_a_deserializer_raises_comes_to_the_application_whatever_its_methods_are_called(
    poll: Any, records: list[Any]
) -> None:
    told: list[tuple[str, Any]] = []
    absences = Absences(lambda kind, **fields: told.append((kind, fields)))
    with pytest.raises(ValueError, match="no schema of b'x'"), absences.poll():
        poll()
    assert told == [("error", {"type": "ValueError", "text": "no schema of b'x'", "records": records})]


@pytest.mark.parametrize("pattern", ["orders-.*", re.compile("orders-.*")], ids=["text", "compiled"])
def test_a_consumer_of_aiokafka_subscribes_to_a_pattern_in_each_form(pattern: Any) -> None:
    told: list[str] = []

    async def subscribe() -> Any:
        consumer = AIOKafkaConsumer(group_id="g", bootstrap_servers="127.0.0.1:1")
        ObservedAiokafkaConsumer(consumer, lambda kind, **fields: told.append(json.dumps([kind, fields])))
        consumer.subscribe(pattern=pattern)
        await consumer.stop()
        return consumer._subscription.subscribed_pattern

    assert asyncio.run(subscribe()) == re.compile("orders-.*")
    assert json.loads(told[-1]) == ["subscribed", {"topics": [], "pattern": "orders-.*"}]
