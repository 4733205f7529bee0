"""Where a user's own code sits in a group under test."""

import asyncio
import concurrent.futures
import contextlib
import functools
import inspect
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from kafka_assignors.testing._groups import clients
from kafka_assignors.testing._groups.clients import Client, ClientName, Pair, Report
from kafka_assignors.testing._groups.config import WorkerConfig


class Seat:
    """A place in the group under test, which a function of the user's takes.

    The function gets it first, and by name what the group gives it: `client=(billing, {"db": url})`. If the
    function returns a consumer, the kit polls that. Otherwise it is an application: it makes its consumer,
    has it observed, and polls until it is to leave.

        def billing(seat):
            consumer = seat.observe(KafkaConsumer(**seat.kafka_python()))
            consumer.subscribe(seat.topics)
            while not seat.leaving:
                for records in consumer.poll(timeout_ms=2000).values():
                    for record in records:
                        ...
                        seat.processed(record)
                consumer.commit()
            consumer.close()

    Attributes:
        name: The member's name, to be the client id.
        group_id: The group's id.
        topics: What to subscribe to; empty if there is a pattern.
        pattern: Regular expression for the topics, or None.
        access: The cluster.
    """

    def __init__(self, config: WorkerConfig, report: Report, before_poll: Callable[[], None]) -> None:
        self.name = config.name
        self.group_id = config.group_id
        self.topics = config.topics
        self.pattern = config.pattern
        self.access = config.access
        self.observed: Client | None = None
        self._config = config
        self._report = report
        self._before_poll = before_poll
        self._leaving = threading.Event()
        self.is_looked_at = False

    @property
    def leaving(self) -> bool:
        """Whether the application is to close its consumer and return.

        One in a process of its own that never looks here gets SIGTERM, as a service does.
        """
        self.is_looked_at = True
        return self._leaving.is_set()

    def leave(self) -> None:
        self._leaving.set()

    def kafka_python(self) -> dict[str, Any]:
        """Settings for kafka-python's KafkaConsumer: servers, group, ids, and those of the test."""
        return self._settings("kafka-python")

    def librdkafka(self) -> dict[str, Any]:
        """The same for confluent-kafka's Consumer.

        An `on_commit` among them reports commits that are asynchronous or made by the client's timer.
        """
        callbacks = clients.load("confluent-kafka").callbacks(self._report)
        return {**self._settings("confluent-kafka"), **callbacks}

    def aiokafka(self) -> dict[str, Any]:
        """The same for aiokafka's AIOKafkaConsumer."""
        return self._settings("aiokafka")

    def observe(self, consumer: Any) -> Any:
        """Have a consumer observed that has not polled yet.

        Args:
            consumer: Of kafka-python, confluent-kafka or aiokafka.

        Returns:
            What to use from then on in its place: for confluent-kafka another object with the same methods,
            else the consumer itself.

        Raises:
            TypeError: It is a consumer of no library that is known.
        """
        names: Mapping[str, ClientName] = {
            "kafka": "kafka-python",
            "confluent_kafka": "confluent-kafka",
            "cimpl": "confluent-kafka",
            "aiokafka": "aiokafka",
        }
        packages = [base.__module__.partition(".")[0] for base in type(consumer).__mro__]
        found = [names[package] for package in packages if package in names]
        if not found:
            raise TypeError(f"{consumer!r} is no consumer of kafka-python, confluent-kafka or aiokafka")
        epochs = {}
        if self._config.by_epochs:
            clients.check_epochs(found[0])
            epochs["by_epochs"] = True
        self.observed = clients.load(found[0]).observe(consumer, self._report, self._before_poll, **epochs)
        return cast("Any", self.observed).consumer

    # What the application says of itself

    def processed(self, *records: Any) -> None:
        """Say that the application is done with records: all that they were to cause has happened.

        From the first word on, assertions that speak of loss count what applications of this function have
        processed, and no longer what their polls returned.

        Args:
            *records: Of kafka-python, confluent-kafka or aiokafka.
        """
        offsets: dict[Pair, list[int]] = {}
        for topic, partition, offset in map(_position, records):
            offsets.setdefault((topic, partition), []).append(offset)
        clients.report_records(self._report, offsets, "processed", thread=clients.at_work())

    def handler(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Wrap a function of one record: when it has returned, the record counts as processed.

        Args:
            function: Takes a record; a coroutine function is awaited.

        Returns:
            What to call in its place. What the function raises comes through as a `Raised` in the timeline,
            and the record does not count.
        """

        @contextlib.contextmanager
        def handling(record: Any) -> Iterator[None]:
            try:
                yield
            except Exception as error:
                topic, partition, offset = _position(record)
                at = [(topic, partition, offset, offset)]
                self._report("raised", where="handler", text=clients.first_line(error), records=at)
                raise
            self.processed(record)

        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(record: Any) -> Any:
                with handling(record):
                    return await function(record)

            return awaited

        @functools.wraps(function)
        def returned(record: Any) -> Any:
            with handling(record):
                return function(record)

        return returned

    def note(self, name: str, value: Any = None) -> None:
        """Put a fact into the timeline, as a `Noted`.

        Args:
            name: What it is about.
            value: Anything that has JSON.

        Raises:
            TypeError: The value has no JSON.
        """
        self._report("note", name=name, value=json.loads(json.dumps(value)))

    def holds(self, partition: Any, what: str) -> None:
        """Say that the application has something of its own for a partition: a cache, a lock, a file.

        Args:
            partition: A TopicPartition of any library, or a pair of topic and number.
            what: What it is, for `assert_released_on_revoke` and for its message.
        """
        self._report("holds", partitions=[_pair(partition)], what=what)

    def releases(self, partition: Any, what: str) -> None:
        """Say that the application has released it.

        Args:
            partition: As in `holds`.
            what: As in `holds`.
        """
        self._report("releases", partitions=[_pair(partition)], what=what)

    def _settings(self, client: ClientName) -> dict[str, Any]:
        return cast("dict[str, Any]", clients.load(client).settings(self._config))


def _position(record: Any) -> tuple[str, int, int]:
    topic, partition, offset = (
        one() if callable(one) else one for one in (record.topic, record.partition, record.offset)
    )
    return topic, partition, offset


def _pair(partition: Any) -> Pair:
    if isinstance(partition, tuple):
        topic, number = partition
        return str(topic), int(number)
    return str(partition.topic), int(partition.partition)


def called(function: Callable[[Seat], Any], seat: Seat) -> tuple[Any, asyncio.AbstractEventLoop | None]:
    """What the user's function returns, and the event loop that it was called on, if it is a coroutine's.

    A SystemExit comes out when its `finally` blocks have run; a coroutine is cancelled for it.
    """
    if not inspect.iscoroutinefunction(function):
        return function(seat), None
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name=f"event loop of {seat.name}", daemon=True).start()
    tasks: list[Any] = []

    async def run() -> Any:
        tasks.append(asyncio.current_task())
        return await function(seat)

    running = asyncio.run_coroutine_threadsafe(run(), loop)
    try:
        return running.result(), loop
    except SystemExit:
        for task in tasks:
            loop.call_soon_threadsafe(task.cancel)
        with contextlib.suppress(concurrent.futures.CancelledError):
            running.result()
        raise
