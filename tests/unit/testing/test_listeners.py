"""What is reported of partitions whose listener raises when they are taken from it."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any

import pytest
from kafka import AsyncConsumerRebalanceListener, ConsumerRebalanceListener, TopicPartition

from kafka_assignors.testing._groups.clients import Absences
from kafka_assignors.testing._groups.clients.aio import _AiokafkaListener
from kafka_assignors.testing._groups.clients.kafka_python import _AsyncListener, _KafkaPythonListener

P0, P1 = (TopicPartition("t", number) for number in range(2))


class Raises(ConsumerRebalanceListener):
    """Does not get to the end of what it does when partitions go."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Do nothing."""

    def on_partitions_revoked(self, revoked: Any) -> None:
        raise OSError(f"{len(revoked)} files are on a full disk")


class RaisesLater(AsyncConsumerRebalanceListener):
    """The same, as coroutines."""

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Do nothing."""

    async def on_partitions_revoked(self, revoked: Any) -> None:
        raise OSError(f"{len(revoked)} files are on a full disk")


def of_kafka_python(report: Any) -> Any:
    return _KafkaPythonListener(Absences(report), Raises())


def of_kafka_python_later(report: Any) -> Any:
    return _AsyncListener(Absences(report), RaisesLater())


def of_aiokafka(report: Any) -> Any:
    return _AiokafkaListener(report, Absences(report), Raises(), True)


@pytest.mark.parametrize("method", ["on_partitions_revoked", "on_partitions_lost"])
@pytest.mark.parametrize("made", [of_kafka_python, of_kafka_python_later, of_aiokafka])
def test_partitions_whose_listener_raises_are_reported_gone_after_it(
    made: Callable[[Any], Any], method: str
) -> None:
    told: list[tuple[str, Any]] = []
    observed = made(lambda kind, **fields: told.append((kind, fields)))

    async def call() -> None:
        done = getattr(observed, method)([P1, P0])
        if inspect.isawaitable(done):
            await done

    with pytest.raises(OSError, match="2 files are on a full disk"):
        asyncio.run(call())
    (first, about), last = told
    assert (first, about["error"]) == ("listener", "OSError: 2 files are on a full disk")
    assert last == (method.removeprefix("on_partitions_"), {"partitions": [("t", 0), ("t", 1)]})
