"""What kafka-python's coordinator code asks of its client, answered by a simulated group's coordinator.

Its coroutines run in the virtual time of their consumer, as does all that asks `time.monotonic` meanwhile.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, Final

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
    OffsetCommitRequest,
    SyncGroupRequest,
)
from kafka.protocol.consumer.group import JoinGroupResponse

from kafka_assignors._assignors import _adapter, _flow, _flow_member, _flow_state, _host, _joins
from kafka_assignors._assignors._membership import host
from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
from kafka_assignors.coordinator._simulator.clock import Clock, Timer
from kafka_assignors.coordinator._simulator.messages import Error, Join, Sync
from tests.lab.clients.connection import CODES, GroupClient, Performed, SimulatedCluster

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
        clock = CLOCK.get()
        return time.monotonic() if clock is None else clock.now / 1000


for _module in (
    kafka.coordinator.base,
    kafka.coordinator.consumer,
    kafka.coordinator.heartbeat,
    kafka.util,
    _adapter,
    _flow,
    _flow_member,
    _flow_state,
    _host,
    _joins,
    host,
):
    setattr(_module, "time", _Time())  # noqa: B010 - their own is typed


class VirtualNet(NetworkSelector):
    """kafka-python's event loop in virtual time: code runs in no time, timers by the clock.

    `run` runs a function when the process is not at something else, and does not stand still.
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
        self._ready.append(callback)
        self._run_all(self.do_ready)

    def call_later(self, delay: float, task: Callable[[], object]) -> Timer:
        """As kafka-python's, to the millisecond, and never at once."""
        milliseconds = max(1, math.ceil(delay * 1000 - 1e-6))
        return self._after(milliseconds, lambda: self.call_soon_threadsafe(task))

    def cancel(self, task: Timer) -> None:
        task.cancel()

    do = call_soon_threadsafe

    def sleep(self, delay: float) -> Future:
        future = Future()
        self.call_later(delay, lambda: future.success(None))
        return future


class TopicMetadata(SimulatedCluster):
    """kafka-python's ClusterMetadata, of the topics that the consumer asks for."""

    unauthorized_topics: Collection[str] = ()

    def __init__(self, fetch: Callable[[], None]) -> None:
        super().__init__()
        self._fetch = fetch
        self._topics: set[str] = set()
        self._nodes: dict[str, Any] = {}
        self._updating: Any = None

    def set_topics(self, topics: Iterable[str]) -> Future:
        """Ask for these topics from now on, and at once if some are new."""
        wanted = set(topics)
        if not wanted - self._topics:
            return Future().success(self)
        self._topics = wanted
        return self.request_update()

    def request_update(self) -> Future:
        if self._updating is None:
            self._updating = Future()
            self._fetch()
        return self._updating

    def update(self, topics: Mapping[str, Collection[int]]) -> None:
        super().update({topic: ids for topic, ids in topics.items() if topic in self._topics})
        updating, self._updating = self._updating, None
        if updating is not None:
            updating.success(self)

    def topics(self) -> set[str]:
        return set(self._partitions)

    def broker_metadata(self, node_id: str) -> Any:
        return self._nodes.get(node_id)

    def add_coordinator(
        self, response: Any, key_type: object, key: str, synthesize_node_id: bool = True
    ) -> str:
        del key_type, key
        node_id = f"coordinator-{response.node_id}" if synthesize_node_id else response.node_id
        self._nodes[node_id] = response
        return node_id


class SimulatedManager(GroupClient, KafkaConnectionManager):
    """kafka-python's connection manager, and its client, as far as a group's coordinator is concerned.

    `committed` are the commits that were stored, offsets by topic and partition.
    """

    def __init__(
        self, name: str, group: HostedClassicGroup, clock: Clock, net: VirtualNet, **options: Any
    ) -> None:
        GroupClient.__init__(self, name, group, clock, **options)
        self.cluster = TopicMetadata(self._fetch_metadata)
        self.committed: list[dict[tuple[str, int], int]] = []
        self._manager = self  # as of the client
        self._net = net

    def _do(self, action: Callable[[], None]) -> None:
        self._net.do(action)

    def _hear(self, action: Callable[[], None]) -> None:
        self._net.call_later(self._latency_ms / 1000, action)

    def reconnect(self) -> None:
        self.cut_off = False
        self._fetch_metadata()

    def _fetch_metadata(self) -> None:
        self._net.call_later(2 * self._latency_ms / 1000, self.update_metadata)

    def update_metadata(self) -> None:
        if not self.cut_off:
            self.cluster.update(self._partitions())

    def least_loaded_node(self) -> str:
        return "0"

    def maybe_connect(self, node_id: str) -> None:
        """As kafka-python's client."""

    def is_disconnected(self, node_id: str) -> bool:
        del node_id
        return self.cut_off

    def connection_delay(self, node_id: str) -> float:
        del node_id
        return float(self.cut_off)

    def send(self, request: Any, node_id: Any = None, request_timeout_ms: int | None = None) -> Future:
        future = Future()
        if self.cut_off:
            return future.failure(NodeNotReadyError(node_id))
        connection = self._conns[node_id]

        def fail() -> None:
            future.failure(KafkaConnectionError("the connection is cut"))

        def timed_out() -> None:
            if connection.unanswered.pop(fail, True) is None:
                self._conns.pop(node_id, None)
                future.failure(RequestTimedOutError())
                connection.close()

        may_lose = isinstance(request, JoinGroupRequest | SyncGroupRequest)
        self._ask(connection, self._performed(request), future.success, fail, may_lose=may_lose)
        self._net.call_later((request_timeout_ms or REQUEST_TIMEOUT_MS) / 1000, timed_out)
        return future

    def _performed(self, request: Any) -> Performed:
        match request:
            case JoinGroupRequest():
                join = Join(
                    member_id=request.member_id,
                    client_id=self._name,
                    instance_id=request.group_instance_id,
                    session_timeout_ms=request.session_timeout_ms,
                    rebalance_timeout_ms=request.rebalance_timeout_ms,
                    protocols={name: said.encode() for name, said in request.protocols},
                )
                return self._join(join, max(said.generation_id for _, said in request.protocols))
            case SyncGroupRequest():
                assignments = {member_id: given.encode() for member_id, given in request.assignments}
                return self._sync(
                    Sync(
                        member_id=request.member_id,
                        generation=request.generation_id,
                        instance_id=request.group_instance_id,
                        assignments=assignments,
                    )
                )
            case HeartbeatRequest():
                return self._heartbeat(request.member_id, request.group_instance_id, request.generation_id)
            case LeaveGroupRequest():
                return self._leave(request.member_id)
            case OffsetCommitRequest():
                return self._commit(request)
        found = SimpleNamespace(coordinators=[], error_code=0, node_id="0", host="localhost", port=9092)
        return lambda reply: reply(found)

    def _commit(self, request: OffsetCommitRequest) -> Performed:
        offsets = {
            (topic.name, one.partition_index): one.committed_offset
            for topic in request.topics
            for one in topic.partitions
        }

        def perform(reply: Callable[[Any], None]) -> None:
            generation = request.generation_id_or_member_epoch
            error = self._group.commit(request.member_id, request.group_instance_id, generation)
            if error is Error.NONE:
                self.committed.append(offsets)
            codes = [(topic, [(partition, CODES[error])]) for topic, partition in offsets]
            reply(SimpleNamespace(topics=codes))

        return perform

    def _member(self, member_id: str, instance_id: str | None, subscription: bytes) -> Any:
        return JoinGroupResponse.JoinGroupResponseMember(
            member_id=member_id, group_instance_id=instance_id, metadata=subscription
        )
