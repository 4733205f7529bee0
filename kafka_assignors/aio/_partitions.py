"""The partitions of a cooperative consumer: one assignment for its whole life, in which they come and go.

aiokafka makes a new Assignment at each rebalance, and drops positions, pauses and fetched records with the
old one. Here the assignment stays, and its fetcher never hears of a rebalance: what stays assigned is fetched
and delivered throughout it.
"""

import asyncio
import contextlib
import math
import time
from collections.abc import Collection, Iterable, Iterator
from enum import Enum, auto
from typing import Any, Final

from aiokafka.consumer.subscription_state import (
    Assignment,
    ManualSubscription,
    Subscription,
    SubscriptionState,
    TopicPartitionState,
)
from aiokafka.errors import IllegalStateError
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from kafka_assignors._common.escaping import get_logger

log = get_logger(__name__)

GONE: Final = -1
"""The position of a partition that was given up: no fetch in flight has it, so no answer fits."""


class Why(Enum):
    """Why a partition is withheld."""

    CHANGES_HANDS = auto()
    """It is revoked or lost, or its listener does not know of it yet."""
    UNSUBSCRIBED = auto()
    """Its topic is not subscribed to any more."""


class WithheldPartitionState(TopicPartitionState):
    """A partition's state, which can be withheld: neither fetched nor delivered, even if it is not paused."""

    def __init__(self, assignment: Assignment) -> None:
        super().__init__(assignment)
        self._why: set[Why] = set()
        self._withheld: asyncio.Future[None] | None = None

    @property
    def _shut(self) -> asyncio.Future[None] | None:
        return self._withheld or self._assignment.doubted

    @property
    def paused(self) -> bool:
        """Whether it is not to be fetched and delivered, for any reason."""
        return self._shut is not None or bool(self._paused)

    @property
    def paused_by_user(self) -> bool:
        """Whether the application has paused it."""
        return bool(self._paused)

    @property
    def resume_fut(self) -> Any:
        """What the fetcher waits for while it is not to be fetched."""
        return self._shut or self._resume_fut

    def withhold(self, why: Why) -> None:
        """Neither fetch nor deliver it from now on."""
        self._why.add(why)
        if self._withheld is None:
            self._withheld = asyncio.get_running_loop().create_future()

    def release(self, why: Why) -> None:
        """Fetch and deliver it, unless there is another reason not to, or it is paused."""
        self._why.discard(why)
        if self._withheld is not None and not self._why:
            self._withheld.set_result(None)
            self._withheld = None


class LastingAssignment(Assignment):
    """An assignment whose partitions change; those that stay keep state, records and fetches.

    It is `lost` if the consumer fell out of its group, and the listener has not heard of it yet.
    """

    def __init__(self) -> None:
        self._topic_partitions: frozenset[TopicPartition]
        super().__init__(set())
        self.lost = False
        self._certain_until = -math.inf
        self._doubted: asyncio.Future[None] | None = None

    def change(self, partitions: Iterable[TopicPartition]) -> None:
        """Have these partitions. Those that are new are withheld."""
        new = frozenset(partitions)
        for one in self._topic_partitions - new:
            # The state stays for fetches and lookups in flight, which would fail without one.
            state = self._tp_state[one]
            state.seek(GONE)
            state.update_committed(OffsetAndMetadata(GONE, ""))
        for one in new - self._topic_partitions:
            state = self._tp_state[one] = WithheldPartitionState(self)
            state.withhold(Why.CHANGES_HANDS)
        self._topic_partitions = new

    def withhold(self, partitions: Iterable[TopicPartition]) -> None:
        """Neither fetch nor deliver these from now on."""
        for one in partitions:
            self._tp_state[one].withhold(Why.CHANGES_HANDS)

    def release(self, partitions: Iterable[TopicPartition]) -> None:
        """Fetch and deliver these again, as far as they are still assigned."""
        for one in self._topic_partitions.intersection(partitions):
            self._tp_state[one].release(Why.CHANGES_HANDS)

    def subscribe(self, topics: Collection[str]) -> None:
        """Fetch and deliver partitions of these topics only, also before the others are revoked."""
        for one in self._topic_partitions:
            state = self._tp_state[one]
            if one.topic in topics:
                state.release(Why.UNSUBSCRIBED)
            else:
                state.withhold(Why.UNSUBSCRIBED)

    @property
    def doubted(self) -> asyncio.Future[None] | None:
        """Pending while the consumer may have fallen out of its group unheard; None if it cannot have."""
        if time.monotonic() < self._certain_until:
            return None
        if self._doubted is None:
            self._doubted = asyncio.get_running_loop().create_future()
        return self._doubted

    def confirm(self, until: float) -> None:
        """Until this time, of `time.monotonic`, no other consumer can have the partitions."""
        self._certain_until = max(self._certain_until, until)
        if self._doubted is not None and time.monotonic() < self._certain_until:
            self._doubted.set_result(None)
            self._doubted = None

    def was_mine(self, partition: TopicPartition) -> bool:
        """Whether a partition is or has been assigned."""
        return partition in self._tp_state


class LastingSubscription(Subscription):
    """A subscription that takes over the assignment of the one before."""

    def __init__(
        self,
        topics: Iterable[str],
        assignment: LastingAssignment | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(topics, loop)
        self._assignment = assignment
        self._reassignment_in_progress = assignment is None

    def _assign(self, topic_partitions: Collection[TopicPartition]) -> None:
        if self._assignment is None:
            self._assignment = LastingAssignment()
        self._assignment.change(topic_partitions)
        self._reassignment_in_progress = False

    def hand_down(self) -> LastingAssignment | None:
        """The assignment, which is not this subscription's any more."""
        assignment: LastingAssignment | None = self._assignment
        self._assignment = None
        return assignment


class ConsumerSubscriptionState(SubscriptionState):
    """aiokafka's SubscriptionState, for calls that may be cancelled or end as partitions go."""

    def check_assigned(self, *partitions: TopicPartition) -> None:
        """Make sure that these partitions are assigned; without any, that there are some.

        Raises IllegalStateError if they are not; the message says what to wait for.
        """
        missing = [one for one in partitions if not self.is_assigned(one)]
        if missing or not (partitions or self.assigned_partitions()):
            what = f"Partitions {missing} are not assigned" if missing else "No partitions are assigned"
            raise IllegalStateError(
                f"{what}: wait for the listener's on_partitions_assigned, or until assignment() has them"
            )

    def _assigned_state(self, tp: TopicPartition) -> Any:
        self.check_assigned(tp)
        return super()._assigned_state(tp)

    @contextlib.contextmanager
    def fetch_context(self) -> Iterator[None]:
        """Around a call that waits for records; aiokafka never ends it for one that is cancelled."""
        self._fetch_count += 1
        try:
            yield
        finally:
            self._fetch_count -= 1
            if self._fetch_count == 0:
                self._last_fetch_ended = time.monotonic()

    @contextlib.contextmanager
    def changes(self) -> Iterator[list[asyncio.Future[None]]]:
        """Futures of which one is done when partitions come or go, or the subscription changes."""
        assigned: asyncio.Future[None] = self.wait_for_assignment()
        try:
            yield [assigned, *([] if self._subscription is None else [self._subscription.unsubscribe_future])]
        finally:
            if assigned.done():
                assigned.exception()  # whoever waits for records has it, too
            else:
                self._assignment_waiters.remove(assigned)


class LastingState(ConsumerSubscriptionState):
    """aiokafka's SubscriptionState, with subscriptions whose assignment lasts.

    `unsubscribed` is the assignment that an `unsubscribe` ended, and its listener, until they are given up.
    """

    unsubscribed: tuple[LastingAssignment, Any] | None = None

    def unsubscribe(self) -> None:
        """As aiokafka's; what it had stays known."""
        if (lasting := self.lasting) is not None:
            self.unsubscribed = lasting, self.listener
        super().unsubscribe()

    def _change_subscription(self, subscription: Subscription) -> None:
        if isinstance(subscription, ManualSubscription):
            super()._change_subscription(subscription)
            return
        before = self._subscription
        kept = before.hand_down() if isinstance(before, LastingSubscription) else None
        if kept is not None:
            kept.subscribe(subscription.topics)
        super()._change_subscription(LastingSubscription(subscription.topics, kept, self._loop))

    def paused_partitions(self) -> set[TopicPartition]:
        """Those that the application has paused."""
        states = {one: self._assigned_state(one) for one in self.assigned_partitions()}
        return {one for one, state in states.items() if getattr(state, "paused_by_user", state.paused)}

    @property
    def lasting(self) -> LastingAssignment | None:
        """The assignment that lasts; None before the first, and where partitions are assigned by hand."""
        assignment = None if self._subscription is None else self._subscription.assignment
        return assignment if isinstance(assignment, LastingAssignment) else None
