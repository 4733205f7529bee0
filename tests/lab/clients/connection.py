"""What a client's own coordinator code asks of its library's client, answered by a simulated coordinator."""

from abc import ABC, abstractmethod
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, Final

from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.messages import Error, Join, Joined, Sync, Synced

CODES: Final[Mapping[Error, int]] = {
    Error.NONE: 0,
    Error.FENCED_INSTANCE_ID: 82,
    Error.GROUP_MAX_SIZE_REACHED: 81,
    Error.ILLEGAL_GENERATION: 22,
    Error.INCONSISTENT_GROUP_PROTOCOL: 23,
    Error.INVALID_SESSION_TIMEOUT: 26,
    Error.MEMBER_ID_REQUIRED: 79,
    Error.NOT_COORDINATOR: 16,
    Error.REBALANCE_IN_PROGRESS: 27,
    Error.UNKNOWN_MEMBER_ID: 25,
}
"""Kafka's codes of the errors that a classic group's coordinator answers."""

Performed = Callable[[Callable[[Any], None]], None]
"""Does what was asked for, and calls with the answer when there is one."""


@dataclass(slots=True, eq=False)
class Connection:
    """A connection, whose broker answers in order: what follows a JoinGroup waits for its answer."""

    open: bool = True
    unanswered: dict[Callable[[], None], None] = field(default_factory=dict)
    _busy: bool = False
    _waiting: deque[Callable[[], None]] = field(default_factory=deque)

    def close(self) -> None:
        """Break it: requests without an answer fail."""
        self.open = False
        self._waiting.clear()
        failures, self.unanswered = self.unanswered, {}
        for fail in failures:
            fail()

    def arrives(self, handle: Callable[[], None]) -> None:
        """Let the broker handle a request when those before it are answered."""
        if self.open:
            self._waiting.append(handle)
            self._handle_next()

    def _handle_next(self) -> None:
        if self._waiting and not self._busy:
            self._busy = True
            self._waiting.popleft()()

    def answered(self) -> None:
        self._busy = False
        self._handle_next()


class SimulatedCluster:
    """A library's ClusterMetadata, of the topics that its client asks for."""

    def __init__(self) -> None:
        self._partitions: Mapping[str, Mapping[int, None]] = {}
        self._listeners: list[Callable[[Any], object]] = []

    def add_listener(self, listener: Callable[[Any], object]) -> None:
        self._listeners.append(listener)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The partition ids of a topic; None for one that does not exist."""
        return set(self._partitions[topic]) if topic in self._partitions else None

    def brokers(self) -> list[Any]:
        return []

    def update(self, topics: Mapping[str, Collection[int]]) -> None:
        self._partitions = {topic: dict.fromkeys(ids) for topic, ids in topics.items()}
        for listener in self._listeners:
            listener(self)


class GroupClient(ABC):
    """The connections of one client to a simulated coordinator; its library's interface is a subclass's.

    `losing` is how many of the next answers to joins and syncs get lost. `on_join` is called with the member
    id and the claimed generation of each JoinGroup that is sent, `on_plan` when a leader's SyncGroup is sent.
    """

    connection: Callable[[], Any] = Connection

    def __init__(
        self,
        name: str,
        group: HostedClassicGroup,
        clock: Clock,
        *,
        partitions: Callable[[], Mapping[str, Collection[int]]],
        latency_ms: int,
    ) -> None:
        self.cut_off = False
        self.losing = 0
        self.on_join: Callable[[str, int], None] = lambda *_: None
        self.on_plan: Callable[[], None] = lambda: None
        self._name = name
        self._group = group
        self._clock = clock
        self._partitions = partitions
        self._latency_ms = latency_ms
        self._conns: defaultdict[object, Any] = defaultdict(self.connection)

    def cut(self) -> None:
        self.cut_off = True
        broken, self._conns = self._conns, defaultdict(self.connection)
        for connection in broken.values():
            self._do(connection.close)

    @abstractmethod
    def _do(self, action: Callable[[], None]) -> None:
        """Do something in its process."""

    @abstractmethod
    def _hear(self, action: Callable[[], None]) -> None:
        """Do something in its process when what the coordinator sends just now has come."""

    def _ask(
        self,
        connection: Connection,
        perform: Performed,
        hear: Callable[[Any], None],
        fail: Callable[[], None],
        *,
        may_lose: bool,
    ) -> None:
        """Send a request; one of both is called, unless the answer gets lost."""
        connection.unanswered[fail] = None
        loses = may_lose and self.losing > 0
        self.losing -= loses

        def reply(answer: Any) -> None:
            if not loses:
                self._hear(lambda: arrived(answer))
            connection.answered()

        def arrived(answer: Any) -> None:
            if connection.open and connection.unanswered.pop(fail, True) is None:
                hear(answer)

        self._clock.after(self._latency_ms, lambda: connection.arrives(lambda: perform(reply)))

    # Requests. Answers have the names of both libraries.

    def _join(self, join: Join, claimed: int = NO_GENERATION) -> Performed:
        self.on_join(join.member_id, claimed)
        return lambda reply: self._group.join(join, lambda answer: reply(self._joined(answer)))

    def _joined(self, answer: Joined) -> Any:
        """Of a version that knows no assignment to skip: such a leader is told the old one's id."""
        leads = answer.leader == answer.member_id and not answer.skip_assignment
        leader = "" if answer.skip_assignment else answer.leader
        return SimpleNamespace(
            API_VERSION=5,
            error_code=CODES[answer.error],
            generation_id=answer.generation,
            group_protocol=answer.strategy,
            protocol_type=None,
            protocol_name=answer.strategy,
            leader=leader,
            leader_id=leader,
            member_id=answer.member_id,
            members=[self._member(*one) for one in (answer.members if leads else ())],
        )

    @abstractmethod
    def _member(self, member_id: str, instance_id: str | None, subscription: bytes) -> Any:
        """A member as the leader's JoinGroup has it."""

    def _sync(self, sync: Sync) -> Performed:
        if sync.assignments:
            self.on_plan()

        def synced(answer: Synced) -> Any:
            return SimpleNamespace(
                error_code=CODES[answer.error],
                protocol_type=None,
                protocol_name=None,
                assignment=answer.assignment,
                member_assignment=answer.assignment,
            )

        return lambda reply: self._group.sync(sync, lambda answer: reply(synced(answer)))

    def _heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> Performed:
        return lambda reply: reply(_code(self._group.heartbeat(member_id, instance_id, generation)))

    def _leave(self, member_id: str) -> Performed:
        return lambda reply: reply(_code(self._group.leave(member_id)))


def _code(error: Error) -> Any:
    return SimpleNamespace(error_code=CODES[error], members=[])
