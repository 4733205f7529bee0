"""What kafka-python's coordinator code asks of its client, answered by a simulated group's coordinator.

Its coroutines run in the virtual time of their consumer, as does all that asks `time.monotonic` meanwhile.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict, deque
from contextvars import ContextVar
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import kafka.coordinator.base
import kafka.coordinator.consumer
import kafka.coordinator.heartbeat
import kafka.util
from kafka.errors import KafkaConnectionError, NodeNotReadyError, RequestTimedOutError
from kafka.future import Future
from kafka.net.manager import KafkaConnectionManager
from kafka.net.selector import NetworkSelector
from kafka.protocol.consumer import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.metadata import FindCoordinatorRequest

from kafka_assignors.assignors import _adapter, _flow, _host, _joins
from kafka_assignors.coordinator._simulator.messages import CODES, Join, Sync
from tests.lab.clients.connection import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
    from kafka_assignors.coordinator._simulator.clock import Clock, Timer
    from kafka_assignors.coordinator._simulator.messages import Error, Joined

    _Performed = Callable[[Callable[[Any], None]], None]
    """Does what was asked for, and calls with the answer when there is one."""

REQUEST_TIMEOUT_MS: Final = 30_000
"""How long kafka-python waits for an answer: `request_timeout_ms`."""

CLOCK: ContextVar[Clock | None] = ContextVar("clock", default=None)
"""The clock of the simulation in which code runs just now."""


class _Time:
    """The module `time`, for code that runs in virtual time or outside of it."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    @staticmethod
    def monotonic() -> float:
        """As the module's."""
        clock = CLOCK.get()
        return time.monotonic() if clock is None else clock.now / 1000


for _module in (
    kafka.coordinator.base,
    kafka.coordinator.consumer,
    kafka.coordinator.heartbeat,
    kafka.util,
    _adapter,
    _flow,
    _host,
    _joins,
):
    setattr(_module, "time", _Time())  # noqa: B010 - their own is typed


class VirtualNet(NetworkSelector):
    """kafka-python's event loop in virtual time: code runs in no time, timers by the clock.

    Args:
        after: Has something done after so many milliseconds.
        run: Runs a function when the process is not at something else, and does not stand still.
    """

    def __init__(
        self, after: Callable[[int, Callable[[], None]], Timer], run: Callable[[Callable[[], None]], None]
    ) -> None:
        self._after = after
        self._run_all = run
        self._ready: deque[Callable[[], object]] = deque()
        self._coroutines: dict[Any, None] = {}

    def end(self) -> None:
        """End all coroutines where they are."""
        coroutines, self._coroutines = self._coroutines, {}
        for coroutine in coroutines:
            coroutine.close()
        self._ready.clear()

    def do_ready(self) -> None:
        """Do what is ready, and what that makes ready."""
        while self._ready:
            made = self._ready.popleft()()
            if hasattr(made, "send"):
                self._coroutines[made] = None
                self._go_on(made)

    def _go_on(self, coroutine: Any) -> None:
        try:
            awaited = coroutine.send(None)
        except StopIteration:
            self._coroutines.pop(coroutine, None)
            return
        awaited.add_both(lambda _: self._ready.append(lambda: self._go_on(coroutine)))

    def call_soon_threadsafe(self, callback: Callable[[], object]) -> None:
        """As kafka-python's."""
        self._ready.append(callback)
        self._run_all(self.do_ready)

    def call_later(self, delay: float, task: Callable[[], object]) -> Timer:
        """As kafka-python's, to the millisecond, and never at once."""
        milliseconds = max(1, math.ceil(delay * 1000 - 1e-6))
        return self._after(milliseconds, lambda: self.call_soon_threadsafe(task))

    def cancel(self, task: Timer) -> None:
        """As kafka-python's."""
        task.cancel()

    def sleep(self, delay: float) -> Future:
        """As kafka-python's."""
        future = Future()
        self.call_later(delay, lambda: future.success(None))
        return future


class SimulatedCluster:
    """kafka-python's ClusterMetadata, of the topics that the consumer asks for.

    Args:
        fetch: Asks for metadata, and calls `update` when it is there.
    """

    unauthorized_topics: Collection[str] = ()

    def __init__(self, fetch: Callable[[], None]) -> None:
        self._fetch = fetch
        self._topics: set[str] = set()
        self._partitions: Mapping[str, Collection[int]] = {}
        self._nodes: dict[str, Any] = {}
        self._updating: Any = None
        self._listeners: list[Callable[[SimulatedCluster], object]] = []

    def add_listener(self, listener: Callable[[SimulatedCluster], object]) -> None:
        """Call it after each update."""
        self._listeners.append(listener)

    def set_topics(self, topics: Iterable[str]) -> Future:
        """Ask for these topics from now on, and at once if some are new."""
        wanted = set(topics)
        if not wanted - self._topics:
            return Future().success(self)
        self._topics = wanted
        return self.request_update()

    def request_update(self) -> Future:
        """Ask for metadata."""
        if self._updating is None:
            self._updating = Future()
            self._fetch()
        return self._updating

    def update(self, there: Mapping[str, Collection[int]]) -> None:
        """Have new metadata."""
        self._partitions = {topic: ids for topic, ids in there.items() if topic in self._topics}
        for listener in self._listeners:
            listener(self)
        updating, self._updating = self._updating, None
        if updating is not None:
            updating.success(self)

    def topics(self) -> set[str]:
        """All that are known."""
        return set(self._partitions)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The partition ids of a topic; None for one that does not exist."""
        return set(self._partitions[topic]) if topic in self._partitions else None

    def brokers(self) -> list[Any]:
        """None: replicas are in no racks."""
        return []

    def broker_metadata(self, node_id: str) -> Any:
        """Where a node is."""
        return self._nodes.get(node_id)

    def add_coordinator(
        self, response: Any, key_type: object, key: str, synthesize_node_id: bool = True
    ) -> str:
        """As kafka-python's."""
        del key_type, key
        node_id = f"coordinator-{response.node_id}" if synthesize_node_id else response.node_id
        self._nodes[node_id] = response
        return node_id


class SimulatedManager(KafkaConnectionManager):
    """kafka-python's connection manager, and its client, as far as a group's coordinator is concerned.

    Args:
        name: Its client id.
        group: The coordinator's side.
        clock: The time.
        net: The loop of its process.
        partitions: Topic -> the partitions that it has now.
        latency_ms: How long a request takes to the coordinator, and its answer back.

    Attributes:
        cluster: What it knows of topics.
        cut_off: Whether nothing passes.
        losing: How many of the next answers to joins and syncs get lost.
        on_join: Called with each JoinGroup that is sent.
        on_plan: Called when a leader's SyncGroup is sent.
    """

    def __init__(
        self,
        name: str,
        group: HostedClassicGroup,
        clock: Clock,
        net: VirtualNet,
        *,
        partitions: Callable[[], Mapping[str, Collection[int]]],
        latency_ms: int,
    ) -> None:
        self.cluster = SimulatedCluster(self._fetch_metadata)
        self.cut_off = False
        self.losing = 0
        self.on_join: Callable[[Any], None] = lambda _: None
        self.on_plan: Callable[[], None] = lambda: None
        self._manager = self  # as of the client
        self._name = name
        self._group = group
        self._clock = clock
        self._net = net
        self._partitions = partitions
        self._latency_ms = latency_ms
        self._conns: defaultdict[object, Connection] = defaultdict(Connection)
        self._performs: Mapping[type, Callable[[Any], _Performed]] = {
            FindCoordinatorRequest: self._find,
            JoinGroupRequest: self._join,
            SyncGroupRequest: self._sync,
            HeartbeatRequest: self._heartbeat,
            LeaveGroupRequest: self._leave,
        }

    def cut(self) -> None:
        """Let nothing pass, and break all connections."""
        self.cut_off = True
        broken, self._conns = self._conns, defaultdict(Connection)
        for connection in broken.values():
            self._net.call_soon_threadsafe(connection.close)

    def reconnect(self) -> None:
        """Let everything pass again; as after each broken connection, metadata is asked for."""
        self.cut_off = False
        self._fetch_metadata()

    def _fetch_metadata(self) -> None:
        self._net.call_later(2 * self._latency_ms / 1000, self.update_metadata)

    def update_metadata(self) -> None:
        """Get metadata, unless it is cut off."""
        if not self.cut_off:
            self.cluster.update(self._partitions())

    def least_loaded_node(self) -> str:
        """The broker."""
        return "0"

    def maybe_connect(self, node_id: str) -> None:
        """As kafka-python's client."""

    def is_disconnected(self, node_id: str) -> bool:
        """Whether there is no connection."""
        del node_id
        return self.cut_off

    def connection_delay(self, node_id: str) -> float:
        """For how long it does not try again."""
        del node_id
        return float(self.cut_off)

    def send(self, request: Any, node_id: Any = None, request_timeout_ms: int | None = None) -> Future:
        """As kafka-python's."""
        future = Future()
        if self.cut_off:
            return future.failure(NodeNotReadyError(node_id))
        connection = self._conns[node_id]
        loses = isinstance(request, JoinGroupRequest | SyncGroupRequest) and self._loses_one()

        def cut() -> None:
            future.failure(KafkaConnectionError("the connection is cut"))

        def answered(said: Any) -> None:
            if not loses:
                self._net.call_later(self._latency_ms / 1000, lambda: arrived(said))
            connection.answered()

        def arrived(said: Any) -> None:
            if connection.open and connection.unanswered.pop(cut, True) is None:
                future.success(said)

        def timed_out() -> None:
            if connection.unanswered.pop(cut, True) is None:
                self._conns.pop(node_id, None)
                future.failure(RequestTimedOutError())
                connection.close()

        connection.unanswered[cut] = None
        perform = self._performs[type(request)](request)
        self._clock.after(self._latency_ms, lambda: connection.arrives(lambda: perform(answered)))
        self._net.call_later((request_timeout_ms or REQUEST_TIMEOUT_MS) / 1000, timed_out)
        return future

    def _loses_one(self) -> bool:
        self.losing, loses = max(self.losing - 1, 0), self.losing > 0
        return loses

    def _find(self, request: Any) -> _Performed:
        del request
        found = SimpleNamespace(coordinators=[], error_code=0, node_id="0", host="localhost", port=9092)
        return lambda reply: reply(found)

    def _join(self, request: Any) -> _Performed:
        self.on_join(request)
        join = Join(
            member_id=request.member_id,
            client_id=self._name,
            instance_id=request.group_instance_id,
            session_timeout_ms=request.session_timeout_ms,
            rebalance_timeout_ms=request.rebalance_timeout_ms,
            protocols={name: metadata.encode() for name, metadata in request.protocols},
        )
        return lambda reply: self._group.join(join, lambda answer: reply(_joined(answer)))

    def _sync(self, request: Any) -> _Performed:
        if request.assignments:
            self.on_plan()
        sync = Sync(
            member_id=request.member_id,
            generation=request.generation_id,
            instance_id=request.group_instance_id,
            assignments={member_id: assignment.encode() for member_id, assignment in request.assignments},
        )

        def answer(error: Error, assignment: bytes) -> Any:
            return SimpleNamespace(
                error_code=CODES[error], protocol_type=None, protocol_name=None, assignment=assignment
            )

        return lambda reply: self._group.sync(sync, lambda said: reply(answer(said.error, said.assignment)))

    def _heartbeat(self, request: Any) -> _Performed:
        who = request.member_id, request.group_instance_id, request.generation_id
        return lambda reply: reply(SimpleNamespace(error_code=CODES[self._group.heartbeat(*who)]))

    def _leave(self, request: Any) -> _Performed:
        return lambda reply: reply(
            SimpleNamespace(error_code=CODES[self._group.leave(request.member_id)], members=[])
        )


def _joined(answer: Joined) -> Any:
    """As JoinGroup v7 says it, which knows no assignment to skip: such a leader is told the old one's id."""
    leads = answer.leader == answer.member_id and not answer.skip_assignment
    return SimpleNamespace(
        error_code=CODES[answer.error],
        generation_id=answer.generation,
        protocol_type=None,
        protocol_name=answer.strategy,
        leader="" if answer.skip_assignment else answer.leader,
        member_id=answer.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member_id, group_instance_id=instance_id, metadata=subscription
            )
            for member_id, instance_id, subscription in (answer.members if leads else ())
        ],
    )
