"""The services of docs/how-to/join-two-topics.md as members of a group under test."""

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from kafka import KafkaConsumer

from kafka_assignors import Assignor, CopartitionedAssignor, RangeAssignor, RoundRobinAssignor
from kafka_assignors.aio import CooperativeConsumer
from kafka_assignors.testing import Seat
from tests.support.pages import defined, listings

PAGE: Final = "docs/how-to/join-two-topics.md"

SHOWN: Final = defined(*listings(PAGE))

_STRATEGIES: Final[dict[str, Callable[[Any], list[Assignor]]]] = {
    "copartitioned": lambda topics: [CopartitionedAssignor(together=[topics])],
    "eager": lambda topics: [CopartitionedAssignor(together=[topics], cooperative=False)],
    "default": lambda _: [CopartitionedAssignor()],
    "range": lambda _: [RangeAssignor()],
    "both": lambda topics: [CopartitionedAssignor(together=[topics]), RangeAssignor()],
    "roundrobin": lambda _: [RoundRobinAssignor()],
}

_OWN: Final[dict[str, Any]] = {"enable_auto_commit": False, "max_poll_records": 50}


def joins(seat: Seat, strategy: str) -> None:
    """Joins its topics on kafka-python."""
    settings = {**seat.kafka_python(), **_OWN}
    settings["partition_assignment_strategy"] = _STRATEGIES[strategy](seat.topics)
    consumer = seat.observe(KafkaConsumer(**settings))
    join = SHOWN["Join"](seat.topics)
    consumer.subscribe(seat.topics, listener=join)
    while not seat.leaving:
        _join(seat, join, consumer.poll(timeout_ms=1000))
    consumer.close()


async def joins_on_asyncio(seat: Seat, strategy: str) -> None:
    """Joins its topics on our consumer of aiokafka."""
    settings = {**seat.aiokafka(), **_OWN}
    settings["partition_assignment_strategy"] = _STRATEGIES[strategy](seat.topics)
    consumer = seat.observe(CooperativeConsumer(**settings))
    join = SHOWN["AioJoin"](seat.topics)
    consumer.subscribe(seat.topics, listener=join)
    async with consumer:
        while not seat.leaving:
            _join(seat, join, await consumer.getmany(timeout_ms=1000))


def _join(seat: Seat, join: Any, polled: dict[Any, list[Any]]) -> None:
    records = [*chain.from_iterable(polled.values())]
    if pairs := [*filter(None, map(join.add, records))]:
        seat.note("pairs", [[one.decode() for one in pair] for pair in pairs])
    seat.processed(*records)
