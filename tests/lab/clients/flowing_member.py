"""kafka-python's consumer with a cooperative strategy of ours, whose records flow during a rebalance.

What joins, gives up and takes here is kafka-python's `ConsumerCoordinator` and
`kafka_assignors._assignors._flow` themselves, not a model of them. Simulated are the event loop, the client
with its connections (`kafka_python_client`), and the application. Of `KafkaConsumer.poll`, only those polls
are simulated in which the coordinator has something to do. integration_tests/test_flowing_members.py holds
that to a real broker.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

from kafka import ConsumerRebalanceListener
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import MemberState, TopicPartition
from kafka.util import Timer

from kafka_assignors._assignors import Assignor
from kafka_assignors._assignors._flow import FlowingCoordinator
from kafka_assignors._assignors._host import KafkaPythonHost
from kafka_assignors._assignors._membership.host import CALLING, Cancel, Host
from kafka_assignors._assignors._relied_on import wait
from kafka_assignors._timelines.events import (
    Closed,
    Failed,
    Rejected,
)
from kafka_assignors.coordinator._simulator.consumer import ClassicConsumer
from tests.lab.clients.kafka_python_client import (
    CLOCK,
    SimulatedManager,
    VirtualNet,
)
from tests.lab.clients.network import NetworkedMember
from tests.lab.clients.real_member import RealMember

_LONG_MS: Final = 1000
"""How long a poll may be that stands for many without work in between."""


class FlowingMember(RealMember):
    """A simulated consumer of the classic protocol: kafka-python's, with `records_in_rebalances`."""

    _make_client = SimulatedManager

    def _make_loop(self) -> VirtualNet:
        self._runs = self._polls = False
        self._subscription = SubscriptionState()
        self._listener = _Listener(self)
        self._coordinator = ConsumerCoordinator.__new__(ConsumerCoordinator)
        self._coordinator.member = self
        self._coordinator._on_join_complete_async = self._taken
        self._host = _VirtualHost(self._coordinator)
        return VirtualNet(self._after, self._run)

    def _begin(self, assignors: Sequence[AbstractPartitionAssignor]) -> None:
        settings = self.settings
        self._coordinator.__init__(
            self._client,
            self._subscription,
            group_id="simulated",
            group_instance_id=self.instance_id,
            session_timeout_ms=settings.session_timeout_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.max_poll_interval_ms,
            enable_auto_commit=False,
            assignors=list(assignors),
            api_version=(4, 0),
        )
        self._subscribe(self.topics)

    # What is done to it

    def leave(self) -> None:
        if self.generation < 0:
            self._lose_all()
        else:
            self._revoke(self.held)
        if self.instance_id is None and self.member_id:
            member_id = self.member_id
            self._send(lambda: self._group.leave(member_id))
        self._end(Closed(*self._now, reason="left"))

    def thaw(self) -> None:
        super().thaw()
        self._run(self._loop.do_ready)

    def reconnect(self) -> None:
        super().reconnect()
        self._client.reconnect()

    def _subscribe(self, topics: Collection[str]) -> None:
        self._subscription.subscribe(topics=sorted(topics), listener=self._listener)
        self._client.cluster.set_topics(self._subscription.group_subscription())

    # What the consumer does

    @property
    def _is_flowing(self) -> bool:
        """Not before its first JoinGroup."""
        return isinstance(self._coordinator, FlowingCoordinator)

    @property
    def delivers(self) -> bool:
        """Whether a poll at this moment may give records to its application."""
        if not self.running or self.frozen or not self._is_flowing:
            return False
        return not self._has_to_do or self._in_its_time(lambda: self._coordinator._delivers)

    @property
    def _has_to_do(self) -> bool:
        """Whether a poll finds the coordinator with something to do."""
        coordinator = self._coordinator
        if self._is_flowing:
            return self._in_its_time(lambda: coordinator._has_to_step)
        return bool(coordinator.need_rejoin() or coordinator.coordinator_unknown())

    def _in_its_time(self, ask: Callable[[], Any]) -> bool:
        clock = CLOCK.set(self._clock)
        try:
            return bool(ask())
        finally:
            CLOCK.reset(clock)

    def _run(self, action: Callable[[], None]) -> None:
        """Run something in its I/O thread, unless it runs there already, or stands still."""
        if self._runs or self.frozen or not self.running:
            return
        self._runs = True
        clock, calling = CLOCK.set(self._clock), CALLING.set(self._host)
        try:
            if not self.paused and self._subscription.subscription:
                self._coordinator.heartbeat.poll()  # as by the polls that have nothing else to do
            action()
        finally:
            self._runs = False
            CLOCK.reset(clock)
            CALLING.reset(calling)
        self._look()

    def _look(self) -> None:
        """Note its state, whenever something has run, and poll if there is something to do."""
        if not self.running:
            return
        self._note()
        busy = self._has_to_do
        self.stable = self._coordinator.state is MemberState.STABLE and not busy
        if busy and self._poll is None and not self._polls and not self.paused:
            self._at_next_poll(self._poll_now)

    def _note(self) -> None:
        generation = self._coordinator._generation
        self.member_id, self.generation = generation.member_id, generation.generation_id

    def _poll_now(self) -> None:
        self._poll = None
        self._polls = True
        self.do(self._poll_for_records)

    async def _poll_for_records(self) -> None:
        """A poll of `KafkaConsumer` that gets no records, while the coordinator has something to do.

        Polls without work in between are as good as a longer one.
        """
        settings = self.settings
        timer = Timer(settings.poll_ms if settings.work_ms else max(settings.poll_ms, _LONG_MS))
        try:
            while True:
                delivers = await self._poll_coordinator(timer.timeout_ms)
                if timer.expired or not self._has_to_do or self.paused:
                    break
                await self._wait_for_records(timer.timeout_ms if delivers else 0)
        except KafkaError as error:
            self._report(Failed(*self._now, text=repr(error)))
            self._end(Closed(*self._now, reason="errors"))
        finally:
            self._polls = False
        if self.running and not self.paused and self._has_to_do:
            self._poll = self._after(self.settings.work_ms or 1, self._poll_now)

    async def _wait_for_records(self, timeout_ms: float) -> None:
        """What the client finds in a look now and then, this finds as it happens."""
        coordinator = self._coordinator
        join = coordinator._join_task
        if timeout_ms and join is not None and not join.is_done:
            certain_ms = 1000 * coordinator._flow.certainty.until - self._clock.now
            await wait(coordinator, join, min(timeout_ms, certain_ms))
        else:
            await self._loop.sleep(min(coordinator.time_to_next_poll(), timeout_ms / 1000))

    async def _poll_coordinator(self, timeout_ms: int) -> bool:
        """`ConsumerCoordinator.poll`, which waits in the application's thread for what is awaited here."""
        coordinator, timer = self._coordinator, Timer(timeout_ms)
        try:
            if self._is_flowing:
                if self._has_to_do and not await coordinator._step(timer.timeout_ms):
                    return False
            elif not (
                await coordinator.ensure_coordinator_ready_async(timer.timeout_ms)
                and await coordinator.ensure_active_group_async(timer.timeout_ms)
            ):
                return False
            coordinator.poll_heartbeat()
        except KafkaTimeoutError:
            return False
        return True

    async def _taken(self, generation: int, member_id: str, protocol: str, encoded: bytes) -> None:
        given = frozenset(ConsumerProtocolAssignment.decode(encoded).partitions())
        self.received(given)
        coordinator = self._coordinator
        await type(coordinator)._on_join_complete_async(coordinator, generation, member_id, protocol, encoded)
        if any(one.topic not in self._subscription.subscription for one in given):
            self._report(Rejected(*self._now, generation=generation, partitions=given))


class _Listener(ConsumerRebalanceListener):
    def __init__(self, member: FlowingMember) -> None:
        self._member = member

    def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        self._member.revoked(revoked)

    def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._member.given(assigned)

    def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        del lost
        self._member.lost()


class _VirtualHost(KafkaPythonHost):
    """A simulated consumer, as its assignors see it."""

    def call_later(self, seconds: float, action: Callable[[Host], None]) -> Cancel:
        member: FlowingMember = self.coordinator.member
        return member.after(round(seconds * 1000), lambda: member.do(lambda: action(self)))


def kafka_python_member(
    *where: Any, assignors: Sequence[AbstractPartitionAssignor], **options: Any
) -> ClassicConsumer:
    """kafka-python's consumer with our assignors, whose records flow in a rebalance if one has it so."""
    flows = any(isinstance(one, Assignor) and one.records_in_rebalances for one in assignors)
    return (FlowingMember if flows else NetworkedMember)(*where, assignors=assignors, **options)
