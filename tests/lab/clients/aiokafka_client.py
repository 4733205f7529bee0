"""What aiokafka's coordinator code asks of its client, answered by a simulated group's coordinator."""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from aiokafka import errors
from aiokafka.protocol.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.messages import Error, Join, Sync
from tests.lab.clients.connection import CODES, Connection, GroupClient, Performed, SimulatedCluster
from tests.lab.clients.event_loop import VirtualLoop

REQUEST_TIMEOUT: Final = 40.0
"""Seconds for which aiokafka waits for an answer: `request_timeout_ms`."""

_NODE: Final = 0


@dataclass(slots=True, eq=False)
class _Connection(Connection):
    _request_timeout: float = REQUEST_TIMEOUT


class SimulatedClient(GroupClient):
    """aiokafka's AIOKafkaClient, as far as its group's coordinator is concerned."""

    connection = _Connection

    def __init__(
        self, name: str, group: HostedClassicGroup, clock: Clock, loop: VirtualLoop, **options: Any
    ) -> None:
        super().__init__(name, group, clock, **options)
        self.cluster = SimulatedCluster()
        self._loop = loop
        self._topics: set[str] = set()
        self._updating: asyncio.Future[bool] | None = None

    def _do(self, action: Callable[[], None]) -> None:
        self._loop.do(action)

    def _hear(self, action: Callable[[], None]) -> None:
        self._clock.after(self._latency_ms, lambda: self._loop.do(action))

    def reconnect(self) -> None:
        self.cut_off = False
        self.force_metadata_update()

    # Topics

    def set_topics(self, topics: Iterable[str]) -> asyncio.Future[bool]:
        """Ask for these topics from now on, and at once if some are new."""
        new = set(topics) - self._topics
        self._topics = set(topics)
        if new:
            return self.force_metadata_update()
        done: asyncio.Future[bool] = self._loop.create_future()
        done.set_result(True)
        return done

    def force_metadata_update(self) -> asyncio.Future[bool]:
        if self._updating is None:
            self._updating = self._loop.create_future()
            self._loop.call_later(2 * self._latency_ms / 1000, self.update_metadata)
        return asyncio.shield(self._updating)

    async def _maybe_wait_metadata(self) -> None:
        if self._updating is not None:
            await asyncio.shield(self._updating)

    def update_metadata(self) -> None:
        if not self.cut_off:
            there = self._partitions()
            self.cluster.update({topic: ids for topic, ids in there.items() if topic in self._topics})
        updating, self._updating = self._updating, None
        if updating is not None and not updating.done():
            updating.set_result(not self.cut_off)

    # Requests

    async def coordinator_lookup(self, kind: object, group_id: str) -> int:
        del kind, group_id
        await asyncio.sleep(2 * self._latency_ms / 1000)
        if self.cut_off:
            raise errors.NodeNotReadyError
        return _NODE

    async def ready(self, node: int, *, group: int = 0) -> bool:
        del node, group
        return not self.cut_off

    async def send(self, node: int, request: Any, *, group: int = 0) -> Any:
        if self.cut_off:
            raise errors.NodeNotReadyError
        connection = self._conns[node, group]
        answer: asyncio.Future[Any] = self._loop.create_future()

        def hear(said: Any) -> None:
            if not answer.done():
                answer.set_result(said)

        def fail() -> None:
            if not answer.done():
                answer.set_exception(errors.KafkaConnectionError("the connection is cut"))

        may_lose = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        self._ask(connection, self._performed(request), hear, fail, may_lose=may_lose)
        try:
            async with asyncio.timeout(connection._request_timeout):
                return await answer
        except TimeoutError:
            self._conns.pop((node, group), None)
            connection.close()
            raise errors.RequestTimedOutError from None
        finally:
            connection.unanswered.pop(fail, None)

    def _performed(self, request: Any) -> Performed:
        """What the coordinator does with a request; the values are as they are when it is sent."""
        sent = SimpleNamespace(**{name.lstrip("_"): one for name, one in vars(request).items()})
        match request:
            case JoinGroupRequest():
                return self._join(
                    Join(
                        member_id=sent.member_id,
                        client_id=self._name,
                        instance_id=sent.group_instance_id,
                        session_timeout_ms=sent.session_timeout,
                        rebalance_timeout_ms=sent.rebalance_timeout,
                        protocols=dict(sent.group_protocols),
                    )
                )
            case SyncGroupRequest():
                return self._sync(
                    Sync(
                        member_id=sent.member_id,
                        generation=sent.generation_id,
                        instance_id=sent.group_instance_id,
                        assignments=dict(sent.group_assignment),
                    )
                )
            case HeartbeatRequest():
                return self._heartbeat(sent.member_id, None, sent.generation_id)
            case LeaveGroupRequest():
                return self._leave(sent.member_id)
        who = sent.consumer_id, None, sent.consumer_group_generation_id
        named = [(topic, [one[0] for one in offsets]) for topic, offsets in sent.topics]
        return lambda reply: reply(_committed(self._group.commit(*who), named))

    def _member(self, member_id: str, instance_id: str | None, subscription: bytes) -> Any:
        return member_id, instance_id, subscription


def _committed(error: Error, topics: Iterable[tuple[str, list[int]]]) -> Any:
    code = CODES[error]
    return SimpleNamespace(topics=[(topic, [(one, code) for one in ids]) for topic, ids in topics])
