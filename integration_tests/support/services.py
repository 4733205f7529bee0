"""Services with a bug, and the same without it, as members of a group under test.

Each does what people write: a loop over a consumer, commits, a listener.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, Any, Final

from kafka import AsyncConsumerRebalanceListener, ConsumerRebalanceListener, KafkaConsumer

from kafka_assignors import RangeAssignor

if TYPE_CHECKING:
    from collections.abc import Callable

    from kafka_assignors import Group
    from kafka_assignors.testing import Seat

_WORK: Final = 0.01
"""What a record takes, in seconds: enough to be in the midst of a batch when a member is killed."""

_POLL_MS: Final = 2000
"""Longer than a rebalance: kafka-python's leader forgets one that it began for its topics' partitions."""


def _consumer(seat: Seat, **settings: Any) -> Any:
    own = {"enable_auto_commit": False, "max_poll_records": 50, **settings}
    return seat.observe(KafkaConsumer(**{**seat.kafka_python(), **own}))


def _nothing() -> None:
    """Do nothing."""


def _consume(
    seat: Seat,
    consumer: Any,
    *,
    batch_came: Callable[[], None] = _nothing,
    batch_done: Callable[[], None] = _nothing,
) -> None:
    while not seat.leaving:
        batch = consumer.poll(timeout_ms=_POLL_MS)
        if batch:
            batch_came()
        for records in batch.values():
            for record in records:
                time.sleep(_WORK)
                seat.processed(record)
        if batch:
            batch_done()
    consumer.close()


# Committed before processed -----------------------------------------------------------------------------


def commits_first(seat: Seat) -> None:
    """Loses what it had not processed when it crashes."""
    consumer = _consumer(seat)
    consumer.subscribe(seat.topics)
    _consume(seat, consumer, batch_came=lambda: _commit(consumer))


def commits_last(seat: Seat) -> None:
    """Processes some again when it crashes, and loses nothing."""
    consumer = _consumer(seat)
    consumer.subscribe(seat.topics)
    _consume(seat, consumer, batch_done=lambda: _commit(consumer))


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


def keeps_its_cache(seat: Seat) -> None:
    """Goes on with what it knew of a partition that others have meanwhile, should it come back."""
    consumer = _consumer(seat)
    consumer.subscribe(seat.topics, listener=_Cache(seat, forgets=False))
    _consume(seat, consumer)


def forgets_its_cache(seat: Seat) -> None:
    """Begins anew with each partition."""
    consumer = _consumer(seat)
    consumer.subscribe(seat.topics, listener=_Cache(seat, forgets=True))
    _consume(seat, consumer)


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
    consumer = _consumer(seat)
    consumer.subscribe(seat.topics)
    _consume(seat, consumer)


def commits_where_it_cannot(seat: Seat) -> None:
    """Commits in a listener that cannot."""
    consumer = _consumer(seat)
    consumer.subscribe(seat.topics, listener=_CommitsWhereItCannot(consumer))
    _consume(seat, consumer)


def commits_at_hand_over(seat: Seat) -> None:
    """Commits in a listener that can."""
    consumer = _consumer(seat)
    consumer.subscribe(seat.topics, listener=_Commits(consumer))
    _consume(seat, consumer)


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
    consumer = _consumer(seat)
    consumer.subscribe(seat.topics)
    _consume(seat, consumer, batch_came=_Once() if seat.name == "m1" else _nothing)


class _TidiesUp(ConsumerRebalanceListener):
    def __init__(self, tidy_up: Callable[[], None]) -> None:
        self._tidy_up = tidy_up

    def on_partitions_assigned(self, assigned: Any) -> None:
        """Do nothing."""

    def on_partitions_revoked(self, revoked: Any) -> None:
        if revoked:
            self._tidy_up()


def listens_too_long(seat: Seat) -> None:
    """Tidies up for long before it gives partitions up."""
    consumer = _consumer(seat)
    consumer.subscribe(seat.topics, listener=_TidiesUp(_Once()))
    _consume(seat, consumer)


class SlowAssignor(RangeAssignor):
    """Plans for long, for groups of two."""

    def lead(self, group: Group) -> dict[str, Any]:
        plan = super().lead(group)
        if len(plan) > 1:
            time.sleep(LONG)
        return plan
