"""Services with a bug, and some without one, as members of a group under test.

Each does what people write: a loop over a consumer, commits, a listener.
"""

import asyncio
import contextlib
import logging
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from typing import Any, Final

import aiokafka
import confluent_kafka
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from kafka import (
    AsyncConsumerRebalanceListener,
    ConsumerRebalanceListener,
    KafkaConsumer,
)

from kafka_assignors import Group, RangeAssignor
from kafka_assignors.aio import CooperativeConsumer
from kafka_assignors.testing import Seat

_LOG: Final = logging.getLogger(__name__)

_WORK: Final = 0.01
"""What a record takes, in seconds: enough to be in the midst of a batch when a member is killed."""

_OF: Final[Mapping[bool, Any]] = {False: AIOKafkaConsumer, True: CooperativeConsumer}
"""By whether they are ours."""

_POLL_MS: Final = 2000
"""Longer than a rebalance: kafka-python's leader forgets one that it began for its topics' partitions."""


class _Listener(aiokafka.ConsumerRebalanceListener, ConsumerRebalanceListener):
    """Does nothing, with either library."""

    def on_partitions_assigned(self, assigned: Any) -> Any:
        """Do nothing."""

    def on_partitions_revoked(self, revoked: Any) -> Any:
        """Do nothing."""


def _nothing(*_: object) -> None:
    """Do nothing; as what makes a listener of a consumer, make none."""


def _consumer(seat: Seat, listens: Callable[[Any], Any] = _nothing, **settings: Any) -> Any:
    own = {"enable_auto_commit": False, "max_poll_records": 50, **settings}
    consumer = seat.observe(KafkaConsumer(**{**seat.kafka_python(), **own}))
    consumer.subscribe(seat.topics, listener=listens(consumer))
    return consumer


def _batches(seat: Seat, consumer: Any) -> Iterator[list[Any]]:
    """The records of each poll, until the service is to leave and closes its consumer."""
    while not seat.leaving:
        yield [*chain.from_iterable(consumer.poll(timeout_ms=_POLL_MS).values())]
    consumer.close()


def _work(seat: Seat, record: Any) -> None:
    time.sleep(_WORK)
    seat.processed(record)


def _consume(
    seat: Seat,
    consumer: Any,
    *,
    batch_came: Callable[[], None] = _nothing,
    batch_done: Callable[[], None] = _nothing,
) -> None:
    for batch in filter(None, _batches(seat, consumer)):
        batch_came()
        for record in batch:
            _work(seat, record)
        batch_done()


def _handle_each(seat: Seat, handle: Callable[[Any], object]) -> None:
    """Handle each record, and commit after each poll."""
    consumer = _consumer(seat)
    for batch in _batches(seat, consumer):
        for record in batch:
            handle(record)
        _commit(consumer)


# Committed before processed -----------------------------------------------------------------------------


def commits_first(seat: Seat) -> None:
    """Loses what it had not processed when it crashes."""
    consumer = _consumer(seat)
    _consume(seat, consumer, batch_came=lambda: _commit(consumer))


def commits_last(seat: Seat, listens: Callable[[Any], Any] = _nothing, **settings: Any) -> None:
    """Processes some again when it crashes, and loses nothing."""
    consumer = _consumer(seat, listens, **settings)
    _consume(seat, consumer, batch_done=lambda: _commit(consumer))


def commits_last_with_librdkafka(seat: Seat, **listener: Any) -> None:
    """The same, with a client that asks the coordinator also when others have its partitions."""
    own = {"enable.auto.commit": False}
    consumer = seat.observe(confluent_kafka.Consumer({**seat.librdkafka(), **own}))
    consumer.subscribe(seat.topics, **listener)
    while not seat.leaving:
        batch = consumer.consume(50, 1)
        for record in batch:
            _work(seat, record)
        if batch:
            # As in `_commit`.
            with contextlib.suppress(confluent_kafka.KafkaException):
                consumer.commit(asynchronous=False)
    consumer.close()


async def commits_last_with_aiokafka(seat: Seat, *, ours: bool, **settings: Any) -> None:
    """The same on an event loop that the work blocks: no heartbeat is answered before the commit is sent."""
    async with _aiokafka_consumer(seat, of=_OF[ours], enable_auto_commit=False, **settings) as consumer:
        while not seat.leaving:
            batch = await consumer.getmany(timeout_ms=_POLL_MS)
            for record in chain.from_iterable(batch.values()):
                _work(seat, record)
            if batch:
                with contextlib.suppress(KafkaError):  # as in _commit
                    await consumer.commit()


def _commit(consumer: Any) -> None:
    # A rebalance may be on; what is not committed now is committed with the next batch.
    with contextlib.suppress(Exception):
        consumer.commit()


# A cache that outlives its partition --------------------------------------------------------------------


class _Cache(ConsumerRebalanceListener):
    def __init__(self, seat: Seat, *, forgets: bool) -> None:
        self._seat, self._forgets = seat, forgets

    def on_partitions_assigned(self, assigned: Any) -> None:
        for partition in assigned:
            self._seat.holds(partition, "cache")

    def on_partitions_revoked(self, revoked: Any) -> None:
        for partition in revoked if self._forgets else ():
            self._seat.releases(partition, "cache")

    def on_partitions_lost(self, lost: Any) -> None:
        self.on_partitions_revoked(lost)


def keeps_its_cache(seat: Seat, *, forgets: bool = False) -> None:
    """Goes on with what it knew of a partition that others have meanwhile, should it come back."""
    _consume(seat, _consumer(seat, lambda _: _Cache(seat, forgets=forgets)))


# A commit that is missing at hand-over ------------------------------------------------------------------


class _CommitsWhereItCannot(ConsumerRebalanceListener):
    """kafka-python calls it in the thread that would have to send the commit."""

    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Do nothing."""

    def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ARG002 - all that it had
        # As people write it: the log is full of commits that fail in rebalances, so nobody looks.
        _commit(self._consumer)


class _Commits(AsyncConsumerRebalanceListener):
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    async def on_partitions_assigned(self, assigned: Any) -> None:
        """Do nothing."""

    async def on_partitions_revoked(self, revoked: Any) -> None:  # noqa: ARG002 - all that it had
        await self._consumer.commit_async()


def hands_over_uncommitted(seat: Seat) -> None:
    """Commits now and then, and not when it gives partitions up."""
    _consume(seat, _consumer(seat))


def commits_where_it_cannot(seat: Seat) -> None:
    """Commits in a listener that cannot."""
    _consume(seat, _consumer(seat, _CommitsWhereItCannot))


def commits_at_hand_over(seat: Seat) -> None:
    """Commits in a listener that can."""
    _consume(seat, _consumer(seat, _Commits))


# Processed behind the client's back ---------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _aiokafka_consumer(
    seat: Seat, listens: Callable[[Any], Any] = _nothing, of: Any = AIOKafkaConsumer, **settings: Any
) -> AsyncIterator[Any]:
    own = {"max_poll_records": 50, **settings}
    consumer = seat.observe(of(**{**seat.aiokafka(), **own}))
    await consumer.start()
    consumer.subscribe(seat.topics, listener=listens(consumer))
    try:
        yield consumer
    finally:
        await consumer.stop()


async def commits_by_timer(seat: Seat) -> None:
    """Leaves commits to the client, whose timer commits what was polled, and not what was processed."""
    timer: dict[str, Any] = {"enable_auto_commit": True, "auto_commit_interval_ms": 100}
    async with _aiokafka_consumer(seat, **timer) as consumer:
        while not seat.leaving:
            await _consume_batch(seat, consumer)


async def commits_by_itself(seat: Seat, listens: Callable[[Any], Any] = _nothing, **settings: Any) -> None:
    """Commits when a batch is processed."""
    async with _aiokafka_consumer(seat, listens, enable_auto_commit=False, **settings) as consumer:
        while not seat.leaving:
            await _consume_batch(seat, consumer)
            with contextlib.suppress(KafkaError):  # as in _commit
                await consumer.commit()


async def _consume_batch(seat: Seat, consumer: Any) -> None:
    for record in chain.from_iterable((await consumer.getmany(timeout_ms=_POLL_MS)).values()):
        await asyncio.sleep(_WORK)
        seat.processed(record)


# A listener that raises ---------------------------------------------------------------------------------


class _LoadsState(_Listener):
    def __init__(self, state: Callable[[Any], Any]) -> None:
        self._state = state

    def on_partitions_assigned(self, assigned: Any) -> None:
        for partition in assigned:
            self._state(partition)


async def loads_what_is_not_there(seat: Seat) -> None:
    """Looks up what it has of each partition, where new ones have nothing yet."""
    state: dict[Any, int] = {}
    listener = _LoadsState(lambda partition: state[partition])
    await commits_by_itself(seat, lambda _: listener)


# A rebalance storm --------------------------------------------------------------------------------------


def makes_a_consumer_for_each_batch(seat: Seat) -> None:
    """Opens a consumer, takes what there is and closes it, for ever: two rebalances each time."""
    while not seat.leaving:
        with contextlib.closing(_consumer(seat)) as consumer:
            for records in consumer.poll(timeout_ms=_POLL_MS).values():
                seat.processed(*records)
            _commit(consumer)


# Offsets that are reset to the end ----------------------------------------------------------------------


def begins_at_the_end(seat: Seat) -> None:
    """Takes the client's default for partitions without a commit: what is there already is skipped."""
    commits_last(seat, auto_offset_reset="latest")


# Two of one instance id ---------------------------------------------------------------------------------


def has_its_instance_id_from_a_file(seat: Seat) -> None:
    """Is deployed twice with the settings of one."""
    commits_last(seat, group_instance_id="billing-1")


# A poison record ----------------------------------------------------------------------------------------

POISON: Final = b"not a number"


def trusts_each_record(seat: Seat) -> None:
    """Ends at a record that it cannot read, and so does whoever gets its partitions."""

    def handle(record: Any) -> None:
        int(record.value)
        seat.processed(record)

    _handle_each(seat, handle)


# What takes too long ------------------------------------------------------------------------------------

LONG: Final = 5.0
"""Seconds that these take once."""


class _Once:
    """Sleeps when it is called for the first time."""

    def __init__(self) -> None:
        self._slept = False

    def __call__(self) -> None:
        if not self._slept:
            self._slept = True
            time.sleep(LONG)


def works_too_long(seat: Seat) -> None:
    """Works on a batch for longer than it may without a poll."""
    _consume(seat, _consumer(seat), batch_came=_Once() if seat.name == "m1" else _nothing)


class _TidiesUp(_Listener):
    def __init__(self, tidy_up: Callable[[], object]) -> None:
        self._tidy_up = tidy_up

    def on_partitions_revoked(self, revoked: Any) -> None:
        if revoked:
            self._tidy_up()


def listens_too_long(seat: Seat) -> None:
    """Tidies up for long before it gives partitions up."""
    _consume(seat, _consumer(seat, lambda _: _TidiesUp(_Once())))


class SlowAssignor(RangeAssignor):
    """Plans for long, for groups of two."""

    def lead(self, group: Group) -> dict[str, Any]:
        plan = super().lead(group)
        if len(plan) > 1:
            time.sleep(LONG)
        return plan


# Work that goes on when the partition is gone -----------------------------------------------------------


def works_in_a_pool(seat: Seat) -> None:
    """Polls on while a pool works, which has a partition's records when others have the partition."""
    consumer = _consumer(seat)
    with ThreadPoolExecutor(1) as pool:
        while not seat.leaving:
            for record in chain.from_iterable(consumer.poll(timeout_ms=_POLL_MS).values()):
                pool.submit(_work, seat, record)
    consumer.close()


class _CommitsFirst(_Listener):
    def __init__(self, consumer: Any, queue: asyncio.Queue[Any], *, waits: bool) -> None:
        self._consumer, self._queue, self._waits = consumer, queue, waits

    async def on_partitions_revoked(self, revoked: Any) -> None:
        if self._waits:
            await self._queue.join()
        if revoked:
            await self._consumer.commit()


async def hands_over_what_it_has_in_a_queue(seat: Seat, *, waits: bool = False) -> None:
    """Commits what a task of its own still has before it."""
    queue: asyncio.Queue[Any] = asyncio.Queue(20 if waits else 0)

    async def work() -> None:
        while True:
            record = await queue.get()
            await asyncio.sleep(_WORK)
            seat.processed(record)
            queue.task_done()

    listens = partial(_CommitsFirst, queue=queue, waits=waits)
    async with _aiokafka_consumer(seat, listens, enable_auto_commit=False) as consumer:
        worker = asyncio.create_task(work())
        while not seat.leaving:
            for record in chain.from_iterable((await consumer.getmany(timeout_ms=100)).values()):
                await queue.put(record)
        worker.cancel()


# A listener that seeks ----------------------------------------------------------------------------------


class _Seeks(_Listener):
    def __init__(self, consumer: Any, *, by: int) -> None:
        self._consumer, self._by = consumer, by

    async def on_partitions_assigned(self, assigned: Any) -> None:
        for partition in assigned:
            committed = await self._consumer.committed(partition)
            if committed is not None:
                # As if what is committed were the last record, and not the next.
                self._consumer.seek(partition, committed + self._by)

    async def on_partitions_revoked(self, revoked: Any) -> None:
        if revoked:
            await self._consumer.commit()


async def seeks_past_a_record(seat: Seat, *, by: int = 1) -> None:
    """Goes on behind the record to go on at; by 0 at the commit, as the client does by itself."""
    await commits_by_itself(seat, partial(_Seeks, by=by))


class _Replays(_Seeks):
    async def on_partitions_assigned(self, assigned: Any) -> None:
        if assigned:
            await self._consumer.seek_to_beginning(*assigned)


async def begins_anew_with_each_partition(seat: Seat) -> None:
    """Reads what it has in memory from the topic, and processes it again."""
    await commits_by_itself(seat, partial(_Replays, by=0))


class _ReplaysToo(_Listener):
    def __init__(self, consumer: Any) -> None:
        self._consumer = consumer

    def on_partitions_assigned(self, assigned: Any) -> None:
        if assigned:
            self._consumer.seek_to_beginning(*assigned)


def begins_anew_with_kafka_python(seat: Seat) -> None:
    """The same with kafka-python."""
    commits_last(seat, _ReplaysToo)


def begins_anew_with_librdkafka(seat: Seat) -> None:
    """The same with confluent-kafka, whose callback assigns partitions with where to begin."""

    def assigned(consumer: Any, partitions: Any) -> None:
        for one in partitions:
            one.offset = confluent_kafka.OFFSET_BEGINNING
        consumer.assign(partitions)

    commits_last_with_librdkafka(seat, on_assign=assigned)


# One consumer for two -----------------------------------------------------------------------------------


def polls_in_two_threads(seat: Seat) -> None:
    """Shares a consumer between two threads, with a lock, so that it works."""
    consumer = _consumer(seat, max_poll_records=10)
    lock = threading.Lock()

    def work() -> None:
        while not seat.leaving:
            with lock:
                batch = consumer.poll(timeout_ms=_POLL_MS)
            for record in chain.from_iterable(batch.values()):
                _work(seat, record)
            with lock:
                _commit(consumer)

    threads = [threading.Thread(target=work, name=f"poller-{number}") for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    consumer.close()


# What raises, and is swallowed --------------------------------------------------------------------------


def logs_what_it_cannot_read(seat: Seat) -> None:
    """Logs the exception, and commits past the record."""

    def handle(record: Any) -> None:
        try:
            int(record.value)
            seat.processed(record)
        except ValueError:
            _LOG.exception("a record was skipped")

    _handle_each(seat, handle)


def handles_and_goes_on(seat: Seat) -> None:
    """Passes over all that its handler raises."""
    handle = seat.handler(lambda record: int(record.value))

    def handle_or_not(record: Any) -> None:
        with contextlib.suppress(ValueError):
            handle(record)

    _handle_each(seat, handle_or_not)


async def forgets_its_tasks(seat: Seat) -> None:
    """Starts a task for each record, and never looks what came of it: the event loop logs what it raised."""

    async def handle(record: Any) -> None:
        int(record.value)
        seat.processed(record)

    async with _aiokafka_consumer(seat, enable_auto_commit=False) as consumer:
        while not seat.leaving:
            for record in chain.from_iterable((await consumer.getmany(timeout_ms=_POLL_MS)).values()):
                asyncio.create_task(handle(record))  # noqa: RUF006 - this is the bug
            await asyncio.sleep(_WORK)
            with contextlib.suppress(KafkaError):  # as in _commit
                await consumer.commit()


def commits_its_position(seat: Seat) -> None:
    """Commits where the consumer stands, behind all of a batch that failed half-way."""
    consumer = _consumer(seat, max_poll_records=500)
    for batch in _batches(seat, consumer):
        with contextlib.suppress(ValueError):
            for record in batch:
                int(record.value)
                seat.processed(record)
        _commit(consumer)


def deserializes_each_record(seat: Seat) -> None:
    """Has the client read values, whose `poll` raises at one that cannot be read."""
    commits_last(seat, value_deserializer=int)


async def deserializes_each_record_with_aiokafka(seat: Seat) -> None:
    """The same with aiokafka."""
    await commits_by_itself(seat, value_deserializer=int)


def deserializes_each_record_with_librdkafka(seat: Seat) -> None:
    """The same with confluent-kafka."""
    own = {"value.deserializer": lambda value, _: int(value), "enable.auto.commit": False}
    consumer = seat.observe(confluent_kafka.DeserializingConsumer({**seat.librdkafka(), **own}))
    consumer.subscribe(seat.topics)
    while not seat.leaving:
        record = consumer.poll(1)
        if record is not None and not record.error():
            seat.processed(record)
    consumer.close()


# A commit now and then ----------------------------------------------------------------------------------


def commits_now_and_then(seat: Seat) -> None:
    """Commits after each fourth poll, or when there is nothing to do; a crash brings the rest again."""
    consumer = _consumer(seat, max_poll_records=10)
    for polls, batch in enumerate(_batches(seat, consumer), 1):
        for record in batch:
            _work(seat, record)
        if polls % 4 == 0 or not batch:
            _commit(consumer)


# Tried again --------------------------------------------------------------------------------------------


def tries_again(seat: Seat) -> None:
    """Tries a batch again as a whole when a part of it failed."""
    consumer = _consumer(seat, max_poll_records=500)
    for batch in _batches(seat, consumer):
        for _ in range(2):
            for record in batch:
                if record.value == POISON:
                    break  # as by an exception
                seat.processed(record)
            else:
                break
        _commit(consumer)


# The usual loops, which never look whether they are to leave ----------------------------------------------


def iterates(seat: Seat, **settings: Any) -> None:
    """A loop over the consumer, closed as SystemExit passes."""
    with contextlib.closing(_consumer(seat, **settings)) as consumer:
        for record in consumer:
            seat.processed(record)


def iterates_and_does_not_close(seat: Seat) -> None:
    """The same, which leaves it to the kit."""
    for record in _consumer(seat):
        seat.processed(record)


async def iterates_with_aiokafka(seat: Seat, *, ours: bool = False) -> None:
    """The same with aiokafka, whose task is cancelled."""
    async with _aiokafka_consumer(seat, of=_OF[ours]) as consumer:
        async for record in consumer:
            seat.processed(record)


def ends_by_its_own_handler(seat: Seat) -> None:
    """A service that handles SIGTERM."""
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    consumer = _consumer(seat)
    while not ended.is_set():
        for records in consumer.poll(timeout_ms=_POLL_MS).values():
            seat.processed(*records)
    seat.note("ended", "by its own handler")
    consumer.close()


OVER = threading.Event()
"""Set when a test has seen that the next one, in a thread, does not leave."""


def polls_until_it_is_over(seat: Seat) -> None:
    """Never looks, and in a thread it gets no signal."""
    consumer = _consumer(seat)
    while not OVER.is_set():
        consumer.poll(timeout_ms=_POLL_MS)
    consumer.close()
