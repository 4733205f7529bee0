"""What the coordinator of a consumer that reads on while it joins keeps, beside what kafka-python's keeps."""

import time
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from kafka.protocol.consumer import JoinGroupRequest, SyncGroupRequest
from kafka.protocol.metadata import CoordinatorType
from kafka.structs import OffsetAndMetadata, TopicPartition

from kafka_assignors._assignors._membership.certainty import Certainty
from kafka_assignors._assignors._membership.offsets import Offsets
from kafka_assignors._assignors._membership.phases import Event, Phase, after


class FlowState:
    """Where one consumer is in its group, and until when it is certain of its partitions.

    `asked_again` is whether it was asked to join again since JoinGroup was answered. kafka-python's
    `rejoin_needed` is true until the assignment is taken, and is this from then on. The next join may begin
    at `not_before`. Until `listens_until` it sends heartbeats sooner than due. `changed` is when the phase
    last did. `commits` are not answered yet, in order. `former_join` was on its way when it last left its
    group.
    """

    def __init__(self, certainty: Certainty) -> None:
        self.certainty = certainty
        self.phase = Phase.OUT
        self.asked_again = False
        self.not_before = 0.0
        self.listens_until = 0.0
        self.changed = 0.0
        self.commits: list[Commit] = []
        self.former_join: Any = None
        self._waiting: list[Any] = []

    def on(self, event: Event) -> None:
        """Go to the next phase; what waits for the end of a join continues, also when another one begins."""
        before, phase = self.phase, after(self.phase, event)
        if phase is not before:
            self.changed = time.monotonic()  # first: the application's thread reads both
        self.phase = phase
        if phase not in {before, Phase.SYNCING}:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                future.success(None)

    async def no_join(self, future: Any) -> None:
        """Wait until no join is on its way, by a new future."""
        if self.phase.waits_for_others:
            self._waiting.append(future)
            await future


class Commit(Offsets):
    """Offsets of a commit; `done` is a future, done once it is answered, `sent_in` its generation."""

    sent_in: Any = None

    def __init__(
        self, subscription: Any, offsets: Mapping[TopicPartition, OffsetAndMetadata], done: Any
    ) -> None:
        super().__init__(offsets, lambda one: subscription.assignment.get(one))  # noqa: PLW0108 - its latest
        self.done = done


class JoinsApart:
    """kafka-python's connection manager, as the coordinator sees it: joins have a connection of their own.

    After one that could not connect they are not `apart`, until one succeeds.
    """

    def __init__(self, manager: Any, flow: FlowState, group_id: str) -> None:
        self.apart = True
        self._manager = manager
        self._flow = flow
        self._group_id = group_id
        self._node_id: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    def send(self, request: Any, node_id: Any = None, request_timeout_ms: Any = None) -> Any:
        if isinstance(request, JoinGroupRequest):
            self._flow.on(Event.JOIN_SENT)
        if self.apart and isinstance(request, JoinGroupRequest | SyncGroupRequest):
            node_id = self._another(node_id)
        return self._manager.send(request, node_id=node_id, request_timeout_ms=request_timeout_ms)

    def _another(self, node_id: Any) -> Any:
        """Another node id for the same broker: kafka-python has one connection for each."""
        broker = self._manager.cluster.broker_metadata(node_id)
        if broker is None:
            return node_id
        node = SimpleNamespace(
            error_code=0, node_id=f"{node_id}-joins", host=broker.host, port=broker.port
        )  # as FindCoordinator's answer
        self._node_id = self._manager.cluster.add_coordinator(
            node, CoordinatorType.GROUP, f"{self._group_id} (joins)", synthesize_node_id=False
        )
        return self._node_id

    def close_joins(self) -> None:
        """Close the joins' connection; the next join has a new one.

        It is idle between joins. A firewall may drop it then, and nobody would notice before the next join.
        """
        connection = self._manager._conns.pop(self._node_id, None)  # noqa: SLF001
        if connection is not None:
            connection.close()
