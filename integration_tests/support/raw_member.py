"""A member of a group that is no consumer: it sends whatever bytes it is given, and obeys or does not."""

import socket
import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Self

from kafka.errors import for_code
from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from kafka_assignors._cluster.reaching import exchange
from kafka_assignors.testing._brokers.metadata import ask

if TYPE_CHECKING:
    from kafka import TopicPartition

_TIMEOUT: Final = 30.0
_HEARTBEAT: Final = 0.1

# The newest versions without tagged fields: their headers are all alike.
_FIND, _JOIN, _SYNC, _BEAT, _LEAVE = 2, 5, 3, 3, 3

_ILLEGAL_GENERATION, _UNKNOWN_MEMBER, _REBALANCE_IN_PROGRESS, _MEMBER_ID_REQUIRED = 22, 25, 27, 79


class RawMember:
    """A member in a thread of its own, from entering the context until leaving it.

    It sends what `subscription` gives for its n-th join, n from 0, for every strategy. If it does not `live`,
    it sends no heartbeats and does not leave in the end. If it `rejoins`, it does so after every assignment.
    """

    def __init__(
        self,
        bootstrap_server: str,
        group_id: str,
        strategies: Sequence[str],
        subscription: Callable[[int], bytes],
        *,
        session_timeout: float = 6.0,
        syncs: bool = True,
        lives: bool = True,
        rejoins: bool = False,
    ) -> None:
        self.joins = 0
        self.assigned: dict[int, frozenset[TopicPartition]] = {}
        self._bootstrap_server = bootstrap_server
        self._group_id = group_id
        self._strategies = strategies
        self._subscription = subscription
        self._session_ms = round(session_timeout * 1000)
        self._syncs, self._lives, self._rejoins = syncs, lives, rejoins
        self._member_id, self._generation = "", -1
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="raw member", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._failure is not None and error is None:
            raise self._failure

    def wait_for(self, predicate: Callable[[Self], bool], timeout: float = _TIMEOUT) -> None:
        """Wait until something holds of this member."""
        with self._changed:
            held = self._changed.wait_for(lambda: self._failure or predicate(self), timeout)
        if self._failure is not None:
            raise self._failure
        if not held:
            raise TimeoutError(
                f"waited {timeout:g} s in vain: {self.joins} joins, generation {self._generation}, "
                f"assigned {self.assigned}"
            )

    def _run(self) -> None:
        try:
            request = FindCoordinatorRequest(key=self._group_id, key_type=0)
            found = ask(self._bootstrap_server, request, FindCoordinatorResponse, _FIND)
            _check(found.error_code)
            with socket.create_connection((found.host, found.port), _TIMEOUT) as connection:
                self._connection = connection
                self._be_a_member()
        except Exception as failure:  # noqa: BLE001 - whatever it is, who waits is told
            self._failure = failure
        with self._changed:
            self._changed.notify_all()

    def _send(self, request: Any, response: Any, version: int) -> Any:
        return exchange(self._connection, request, response, version, time.monotonic() + _TIMEOUT)

    def _identity(self) -> dict[str, Any]:
        return {
            "group_id": self._group_id,
            "generation_id": self._generation,
            "member_id": self._member_id,
            "group_instance_id": None,
        }

    def _be_a_member(self) -> None:
        while not self._stop.is_set():
            self._join()
            if self._syncs and not self._sync():
                continue
            if not self._lives:
                self._stop.wait()
                return
            self._stop.wait(_HEARTBEAT)
            while not self._rejoins and not self._stop.is_set() and self._heartbeat():
                self._stop.wait(_HEARTBEAT)
        identity = LeaveGroupRequest.MemberIdentity(member_id=self._member_id, group_instance_id=None)
        self._send(LeaveGroupRequest(group_id=self._group_id, members=[identity]), LeaveGroupResponse, _LEAVE)

    def _join(self) -> None:
        raw = self._subscription(self.joins)
        while True:
            joined = self._send(
                JoinGroupRequest(
                    group_id=self._group_id,
                    session_timeout_ms=self._session_ms,
                    rebalance_timeout_ms=round(_TIMEOUT * 1000),
                    member_id=self._member_id,
                    group_instance_id=None,
                    protocol_type="consumer",
                    protocols=[
                        JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=raw)
                        for name in self._strategies
                    ],
                ),
                JoinGroupResponse,
                _JOIN,
            )
            self._member_id = "" if joined.error_code == _UNKNOWN_MEMBER else joined.member_id
            if joined.error_code not in (_MEMBER_ID_REQUIRED, _UNKNOWN_MEMBER, _REBALANCE_IN_PROGRESS):
                break
        _check(joined.error_code)
        if joined.leader == joined.member_id:
            raise RuntimeError("the raw member leads the group; let another one join first")
        with self._changed:
            self._generation = joined.generation_id
            self.joins += 1
            self._changed.notify_all()

    def _sync(self) -> bool:
        """Ask for the assignment; whether there was one, and not the next rebalance."""
        request = SyncGroupRequest(**self._identity(), assignments=[])
        synced = self._send(request, SyncGroupResponse, _SYNC)
        if not self._goes_on(synced.error_code):
            return False
        partitions = ConsumerProtocolAssignment.decode(bytes(synced.assignment)).partitions()
        with self._changed:
            self.assigned[self._generation] = frozenset(partitions)
            self._changed.notify_all()
        return True

    def _heartbeat(self) -> bool:
        """Send a heartbeat; whether the membership goes on without another join."""
        beat = self._send(HeartbeatRequest(**self._identity()), HeartbeatResponse, _BEAT)
        return self._goes_on(beat.error_code)

    @staticmethod
    def _goes_on(error_code: int) -> bool:
        if error_code in (_ILLEGAL_GENERATION, _UNKNOWN_MEMBER, _REBALANCE_IN_PROGRESS):
            return False
        _check(error_code)
        return True


def _check(error_code: int) -> None:
    if error_code:
        raise for_code(error_code)
