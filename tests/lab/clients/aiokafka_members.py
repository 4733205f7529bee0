"""aiokafka's consumer, and our cooperative one: their own coordinator code, in virtual time.

What joins, revokes, commits and plans here is aiokafka's `GroupCoordinator` and `kafka_assignors.aio`
themselves, not a model of them. Simulated are their surroundings: the event loop (`event_loop`), the client
with its connections (`aiokafka_client`), and the application. Both differ from kafka-python's consumer:

- A task of its own joins, whether the application polls or not (`GroupCoordinator._coordination_routine`).
- The next join waits for what a listener awaits. Heartbeats continue meanwhile (`_on_join_prepare`,
  `_on_join_complete`).
- If its application does not poll for `max_poll_interval_ms`, the consumer leaves. It joins again when it is
  polled (`_heartbeat_routine`, `ensure_active_group`).
- Heartbeats and commits name no `group.instance.id` (`_do_heartbeat`, `_do_commit_offsets`).
- JoinGroup is version 5 (`JoinGroupRequest`): a static leader that comes back does not learn that it leads.

aiokafka's own consumer:

- It revokes all before it joins, also what it lost: it calls no `on_partitions_lost` (`_on_join_prepare`).
- It sends no heartbeat while it joins (`ensure_active_group`), unless a strategy of ours plans (`lead`).
- A commit that is refused may throw it out of its group (`_do_commit_offsets`).
- A changed subscription ends its assignment at once (`SubscriptionState._change_subscription`). Its listener
  is called before the next join.
- An assignment of a topic that it does not subscribe to ends its coordination (`Subscription._assign`). So
  does a join that cancels its heartbeats while they leave the group (`_stop_heartbeat_task`).

`CooperativeConsumer`, with cooperative strategies only:

- It revokes what goes when the assignment comes, and joins again (`_on_join_complete`).
- It sends heartbeats while it joins, and more of them after a rebalance (`_beat`, `_listen`).
- It calls `on_partitions_lost` once, before it joins again (`_give_up_what_was_lost`).
- JoinGroup and SyncGroup have a connection of their own (`EagerCoordinator._send_join`).
- It leaves out topics that it does not subscribe to (`EagerCoordinator._given`).

These follow from their code. What a real client and broker make of it is held in integration_tests/, in
test_aiokafka_behaviour.py, test_cooperative_aiokafka.py and test_ways_out.py. Three are in no test on a
broker: a changed subscription of aiokafka's own consumer, heartbeats that are cancelled as they leave, and
topics that are left out.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from types import SimpleNamespace
from typing import Any, Final

from aiokafka import ConsumerRebalanceListener
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.coordinator.protocol import ConsumerProtocol
from kafka.structs import TopicPartition

from kafka_assignors._assignors import Assignor
from kafka_assignors._timelines.events import (
    Closed,
    Crashed,
    Event,
    Failed,
)
from kafka_assignors.aio._consumer import is_cooperative
from kafka_assignors.aio._coordinator import CooperativeCoordinator, EagerCoordinator, FencedInstanceIdError
from kafka_assignors.aio._partitions import ConsumerSubscriptionState, LastingState
from kafka_assignors.aio._strategies import strategies
from tests.lab.clients.aiokafka_client import SimulatedClient
from tests.lab.clients.event_loop import VirtualLoop, in_loop_time
from tests.lab.clients.real_member import RealMember

COMMITS_MS: Final = 2000
"""How often a consumer commits what it has consumed: `auto_commit_interval_ms`."""


class AiokafkaMember(RealMember):
    """A simulated consumer of the classic protocol, as aiokafka's `AIOKafkaConsumer` with our strategies."""

    _make_client = SimulatedClient
    joining = False

    def _make_loop(self) -> VirtualLoop:
        return VirtualLoop(self._clock, self._look)  # type: ignore[abstract] # clients ask no more

    def _begin(self, assignors: Sequence[Assignor]) -> None:
        chosen = strategies(*assignors)
        kind, state = self._kinds(chosen)
        self._subscription = state()
        self._subscription.member = self
        self._listener = _Listener(self)
        self._subscription.register_fetch_waiters(set())
        self._subscribe(self.topics)
        coordinator = self._coordinator = kind(
            self._client,
            self._subscription,
            group_id="simulated",
            group_instance_id=self.instance_id,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.session_timeout_ms,  # as AIOKafkaConsumer does by default
            heartbeat_interval_ms=self.settings.heartbeat_interval_ms,
            max_poll_interval_ms=self.settings.max_poll_interval_ms,
            auto_commit_interval_ms=COMMITS_MS,
            assignors=chosen,
        )
        coordinator.member = self
        coordinator._next_autocommit_deadline = (self._clock.now + COMMITS_MS) / 1000

    def _kinds(self, chosen: list[Any]) -> tuple[Callable[..., Any], Callable[[], Any]]:
        """What makes the coordinator, and the state of its subscription."""
        del chosen
        return _Watched, _StockState

    # What is done to it

    def leave(self) -> None:
        self._end(Closed(*self._now, reason="left"))

    def freeze(self) -> None:
        super().freeze()
        self._loop.freeze()

    def thaw(self) -> None:
        super().thaw()
        self._loop.thaw()

    def reconnect(self) -> None:
        super().reconnect()
        self.do(self._client.reconnect)

    def _subscribe(self, topics: Collection[str]) -> None:
        self._subscription.subscribe(set(topics), listener=self._listener)
        self._client.set_topics(topics)

    def _end(self, event: Closed | Crashed) -> None:
        super()._end(event)
        if isinstance(event, Closed) and self.instance_id is None:
            # Its tasks continue until it has left; nobody waits for that here.
            self.do(lambda: self._loop.create_task(self._leave()))
        else:
            self._loop.end()

    async def _leave(self) -> None:
        try:
            await self._coordinator.close()
        finally:
            self._client.cut_off = True

    # What the consumer does

    @property
    def idle_seconds(self) -> float:
        return 0.0 if self._paused_at is None else (self._clock.now - self._paused_at) / 1000

    def _look(self) -> None:
        """Note its state, whenever something has run in its loop."""
        coordinator = self._coordinator
        if not self.running or coordinator is None:
            return
        self._note()
        subscription = self._subscription.subscription
        self.stable = (
            not self.joining
            and self.generation >= 0
            and not coordinator.need_rejoin(subscription)
            and subscription.assignment.active
        )
        failed = coordinator._pending_exception is not None or coordinator._coordination_task.done()
        if failed and self._poll is None and self._paused_at is None:
            self._at_next_poll(self._poll_now)

    def _note(self) -> None:
        if self._coordinator is not None:
            self.member_id, self.generation = self._coordinator.member_id, self._coordinator.generation

    def _poll_now(self) -> None:
        """A poll raises what is wrong. If it is fenced, or its coordination has ended, it is the last."""
        self._poll = None
        self.do(self._check_errors)

    def _check_errors(self) -> None:
        try:
            self._coordinator.check_errors()
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - whatever the application gets
            self._report(Failed(*self._now, text=repr(error)))
            ended = self._coordinator._coordination_task.done()
            if ended or isinstance(error, FencedInstanceIdError):
                self._clock.after(0, self._fails)

    def _fails(self) -> None:
        if self.running:
            super()._end(Closed(*self._now, reason="errors"))
            self._loop.end()

    def _report(self, event: Event) -> None:
        self._note()
        super()._report(event)

    async def at_work(self) -> None:
        """Finish what the application works at."""
        every = self.settings.poll_ms + self.settings.work_ms
        since = (self._clock.now - self._began) % max(every, 1)
        if self.settings.work_ms and since >= self.settings.poll_ms and self._paused_at is None:
            await asyncio.sleep((every - since) / 1000)

    def given(self, partitions: Collection[TopicPartition]) -> None:
        for one in partitions:
            if self._subscription.is_assigned(one):
                self._subscription.seek(one, 1)
        super().given(partitions)


class CooperativeAioMember(AiokafkaMember):
    """A simulated `kafka_assignors.aio.CooperativeConsumer`: eager if one of its strategies is."""

    def _kinds(self, chosen: list[Any]) -> tuple[Callable[..., Any], Callable[[], Any]]:
        return (_Cooperative, _LastingState) if is_cooperative(chosen) else (_Eager, _EagerState)


class _Listener(ConsumerRebalanceListener):
    """The application's: it finishes its work before it lets go of partitions."""

    def __init__(self, member: AiokafkaMember) -> None:
        self._member = member

    async def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
        if revoked:
            await self._member.at_work()
        self._member.revoked(revoked)

    async def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
        self._member.given(assigned)

    async def on_partitions_lost(self, lost: Collection[TopicPartition]) -> None:
        del lost
        self._member.lost()


class _Idle:
    """The state of a subscription, whose application polls as the member's does."""

    member: AiokafkaMember

    @property
    def fetcher_idle_time(self) -> float:
        return self.member.idle_seconds


class _StockState(_Idle, SubscriptionState):
    pass


class _EagerState(_Idle, ConsumerSubscriptionState):
    pass


class _LastingState(_Idle, LastingState):
    pass


class _Watched(GroupCoordinator):
    """A coordinator that reports to its member, and whose functions ask the loop for the time."""

    member: AiokafkaMember
    _heartbeat_routine = in_loop_time(GroupCoordinator._heartbeat_routine)
    _maybe_do_autocommit = in_loop_time(GroupCoordinator._maybe_do_autocommit)

    async def ensure_active_group(self, subscription: Any, prev_assignment: Any) -> Any:
        self.member.joining = True
        made = await super().ensure_active_group(subscription, prev_assignment)
        self.member.joining = False
        return made

    async def _on_join_complete(
        self, generation: int, member_id: str, protocol: str, member_assignment_bytes: bytes
    ) -> None:
        given = ConsumerProtocol.ASSIGNMENT.decode(member_assignment_bytes).partitions()
        self.member.received(frozenset(given))
        await super()._on_join_complete(generation, member_id, protocol, member_assignment_bytes)


class _Eager(_Watched, EagerCoordinator):
    pass


class _Cooperative(_Watched, CooperativeCoordinator):
    _send_req = in_loop_time(CooperativeCoordinator._send_req)

    def __init__(self, client: Any, subscription: Any, **settings: Any) -> None:
        fetcher = SimpleNamespace(_records={}, _notify=lambda _: None, _wait_consume_future=None)
        super().__init__(fetcher, client, subscription, **settings)
