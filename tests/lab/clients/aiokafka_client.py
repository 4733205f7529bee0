"""What aiokafka's coordinator code asks of its client, answered by a simulated group's coordinator."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from aiokafka import errors
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

from kafka_assignors.coordinator._simulator.messages import CODES, Join, Sync
from tests.lab.clients.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
    from kafka_assignors.coordinator._simulator.clock import Clock
    from kafka_assignors.coordinator._simulator.messages import Error, Joined, Synced
    from tests.lab.clients.event_loop import VirtualLoop

REQUEST_TIMEOUT: Final = 40.0
"""Seconds for which aiokafka waits for an answer: `request_timeout_ms`."""

_NODE: Final = 0

_Performed = Callable[[Callable[[Any], None]], None]
"""Does what was asked for, and calls with the answer when there is one."""


class SimulatedCluster:
    """aiokafka's ClusterMetadata, of the topics that the client asks for."""

    def __init__(self) -> None:
        self._partitions: Mapping[str, Mapping[int, None]] = {}
        self._listeners: list[Callable[[SimulatedCluster], object]] = []

    def add_listener(self, listener: Callable[[SimulatedCluster], object]) -> None:
        """Call it after each update."""
        self._listeners.append(listener)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The partition ids of a topic; None for one that does not exist."""
        return set(self._partitions[topic]) if topic in self._partitions else None

    def brokers(self) -> list[Any]:
        """None: replicas are in no racks."""
        return []

    def update(self, topics: Mapping[str, Collection[int]]) -> None:
        """Have new metadata."""
        self._partitions = {topic: dict.fromkeys(ids) for topic, ids in topics.items()}
        for listener in self._listeners:
            listener(self)


@dataclass(slots=True, eq=False)
class _Connection(Connection):
    """One of aiokafka's."""

    _request_timeout: float = REQUEST_TIMEOUT


class SimulatedClient:
    """aiokafka's AIOKafkaClient, as far as its group's coordinator is concerned.

    Args:
        name: Its client id.
        group: The coordinator's side.
        clock: The time.
        loop: The loop of its process.
        partitions: Topic -> the partitions that it has now.
        latency_ms: How long a request takes to the coordinator, and its answer back.

    Attributes:
        cluster: What it knows of topics.
        cut_off: Whether nothing passes.
        losing: How many of the next answers to joins and syncs get lost.
        on_join: Called with the member id of each JoinGroup that is sent.
        on_plan: Called when a leader's SyncGroup is sent.
    """

    def __init__(
        self,
        name: str,
        group: HostedClassicGroup,
        clock: Clock,
        loop: VirtualLoop,
        *,
        partitions: Callable[[], Mapping[str, Collection[int]]],
        latency_ms: int,
    ) -> None:
        self.cluster = SimulatedCluster()
        self.cut_off = False
        self.losing = 0
        self.on_join: Callable[[str], None] = lambda _: None
        self.on_plan: Callable[[], None] = lambda: None
        self._name = name
        self._group = group
        self._clock = clock
        self._loop = loop
        self._partitions = partitions
        self._latency_ms = latency_ms
        self._topics: set[str] = set()
        self._updating: asyncio.Future[bool] | None = None
        self._conns: defaultdict[tuple[int, int], _Connection] = defaultdict(_Connection)
        self._performs: Mapping[type, Callable[..., _Performed]] = {
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._heartbeat,
            LeaveGroupRequest: self._leave,
            OffsetCommitRequest: self._commit,
        }

    def cut(self) -> None:
        """Let nothing pass, and break all connections."""
        self.cut_off = True
        broken, self._conns = self._conns, defaultdict(_Connection)
        for connection in broken.values():
            self._loop.do(connection.close)

    def reconnect(self) -> None:
        """Let everything pass again; as after each broken connection, metadata is asked for."""
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
        """Ask for metadata."""
        if self._updating is None:
            self._updating = self._loop.create_future()
            self._loop.call_later(2 * self._latency_ms / 1000, self.update_metadata)
        return asyncio.shield(self._updating)

    async def _maybe_wait_metadata(self) -> None:
        if self._updating is not None:
            await asyncio.shield(self._updating)

    def update_metadata(self) -> None:
        """Get metadata, unless it is cut off."""
        if not self.cut_off:
            there = self._partitions()
            self.cluster.update({topic: ids for topic, ids in there.items() if topic in self._topics})
        updating, self._updating = self._updating, None
        if updating is not None and not updating.done():
            updating.set_result(not self.cut_off)

    # Requests

    async def coordinator_lookup(self, kind: object, group_id: str) -> int:
        """The broker that coordinates the group.

        Raises:
            NodeNotReadyError: It is cut off.
        """
        del kind, group_id
        await asyncio.sleep(2 * self._latency_ms / 1000)
        if self.cut_off:
            raise errors.NodeNotReadyError
        return _NODE

    async def ready(self, node: int, *, group: int = 0) -> bool:
        """Whether there is a connection."""
        del node, group
        return not self.cut_off

    async def send(self, node: int, request: Any, *, group: int = 0) -> Any:
        """The answer to a request.

        Raises:
            KafkaError: There is none.
        """
        if self.cut_off:
            raise errors.NodeNotReadyError
        connection = self._conns[node, group]
        answer: asyncio.Future[Any] = self._loop.create_future()

        def fail() -> None:
            if not answer.done():
                answer.set_exception(errors.KafkaConnectionError("the connection is cut"))

        connection.unanswered[fail] = None
        loses = type(request) in {JoinGroupRequest, SyncGroupRequest} and self._loses_one()

        def reply(said: Any) -> None:
            if not loses:
                self._clock.after(self._latency_ms, lambda: self._loop.do(lambda: arrived(said)))
            connection.answered()

        def arrived(said: Any) -> None:
            if not answer.done() and connection.open:
                answer.set_result(said)

        perform = self._performed(request)
        self._clock.after(self._latency_ms, lambda: connection.arrives(lambda: perform(reply)))
        try:
            async with asyncio.timeout(connection._request_timeout):  # noqa: SLF001 - as aiokafka names it
                return await answer
        except TimeoutError:
            self._conns.pop((node, group), None)
            connection.close()
            raise errors.RequestTimedOutError from None
        finally:
            connection.unanswered.pop(fail, None)

    def _loses_one(self) -> bool:
        self.losing, loses = max(self.losing - 1, 0), self.losing > 0
        return loses

    def _performed(self, request: Any) -> _Performed:
        """What the coordinator does with a request; the values are as they are when it is sent."""
        sent = {name.lstrip("_"): one for name, one in vars(request).items()}
        return self._performs[type(request)](**sent)

    def _join(self, *, member_id: str, group_instance_id: str | None, **sent: Any) -> _Performed:
        self.on_join(member_id)
        join = Join(
            member_id=member_id,
            client_id=self._name,
            instance_id=group_instance_id,
            session_timeout_ms=sent["session_timeout"],
            rebalance_timeout_ms=sent["rebalance_timeout"],
            protocols=dict(sent["group_protocols"]),
        )
        return lambda reply: self._group.join(join, lambda answer: reply(_joined(answer)))

    def _sync(self, *, member_id: str, group_instance_id: str | None, **sent: Any) -> _Performed:
        if sent["group_assignment"]:
            self.on_plan()
        sync = Sync(
            member_id=member_id,
            generation=sent["generation_id"],
            instance_id=group_instance_id,
            assignments=dict(sent["group_assignment"]),
        )
        return lambda reply: self._group.sync(sync, lambda answer: reply(_synced(answer)))

    def _heartbeat(self, *, member_id: str, generation_id: int, **_: Any) -> _Performed:
        return lambda reply: reply(_code(self._group.heartbeat(member_id, None, generation_id)))

    def _leave(self, *, member_id: str, **_: Any) -> _Performed:
        return lambda reply: reply(_code(self._group.leave(member_id)))

    def _commit(self, *, consumer_id: str, topics: Any, **sent: Any) -> _Performed:
        generation = sent["consumer_group_generation_id"]
        named = [(topic, [one[0] for one in offsets]) for topic, offsets in topics]
        return lambda reply: reply(_committed(self._group.commit(consumer_id, None, generation), named))


def _code(error: Error) -> Any:
    return SimpleNamespace(error_code=CODES[error])


def _joined(answer: Joined) -> Any:
    """As JoinGroup v5 says it, which knows no assignment to skip: such a leader is told the old one's id."""
    leads = answer.leader == answer.member_id and not answer.skip_assignment
    return SimpleNamespace(
        API_VERSION=5,
        error_code=CODES[answer.error],
        generation_id=answer.generation,
        group_protocol=answer.strategy,
        leader_id="" if answer.skip_assignment else answer.leader,
        member_id=answer.member_id,
        members=list(answer.members) if leads else [],
    )


def _synced(answer: Synced) -> Any:
    return SimpleNamespace(error_code=CODES[answer.error], member_assignment=answer.assignment)


def _committed(error: Error, topics: Iterable[tuple[str, list[int]]]) -> Any:
    code = CODES[error]
    return SimpleNamespace(topics=[(topic, [(one, code) for one in ids]) for topic, ids in topics])
