"""aiokafka's consumer as assignors see their consumers."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self, cast

from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator

from kafka_assignors.assignors._membership.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from types import FrameType

    from kafka.structs import TopicPartition

    from kafka_assignors.assignors._membership.host import Cancel

_MAX_FRAMES: Final = 16
"""How far up the stack to look: aiokafka calls directly, wrappers add a few frames."""

LEADING_SINCE: Final = "_kafka_assignors_leading_since"
"""The attribute of a coordinator that says since when it leads its group in the present rebalance."""


@dataclass(frozen=True, slots=True)
class AiokafkaHost(Host):
    """A consumer of aiokafka.

    Attributes:
        coordinator: aiokafka's GroupCoordinator.
    """

    coordinator: Any

    @classmethod
    def on_the_stack(cls) -> Self | None:
        """The consumer whose coordinator is on the call stack; None where there is none.

        aiokafka hands an assignor nothing that says which consumer calls.
        """
        frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - there is no public way to the caller
        for _ in range(_MAX_FRAMES):
            if frame is None:
                break
            caller = frame.f_locals.get("self")
            if isinstance(caller, CoordinatorGroupRebalance):
                caller = caller._coordinator  # noqa: SLF001
            if isinstance(caller, GroupCoordinator):
                return cls(caller)
            frame = frame.f_back
        return None

    @classmethod
    def of(cls, consumer: Any) -> Self:
        """As `Host`."""
        return cls(consumer)

    @property
    def consumer(self) -> object:
        """The coordinator: each consumer has its own."""
        return self.coordinator

    @property
    def cooperative(self) -> bool:
        """As `Host`."""
        return bool(getattr(self.coordinator, "cooperative", False))

    @property
    def generation(self) -> int:
        """As `Host`."""
        return int(self.coordinator.generation)

    @property
    def strategy(self) -> str | None:
        """As `Host`: not known, and not needed, as aiokafka forgets no join."""
        return None

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        """As `Host`."""
        return frozenset(self.coordinator._subscription.assigned_partitions())  # noqa: SLF001

    @property
    def heartbeat_interval(self) -> float:
        """As `Host`: `heartbeat_interval_ms`."""
        return float(self.coordinator._heartbeat_interval_ms) / 1000  # noqa: SLF001

    @property
    def patience(self) -> float:
        """As `Host`: the shortest of the timeouts that end a consumer's membership or a rebalance."""
        limits = self.coordinator._session_timeout_ms, self.coordinator._rebalance_timeout_ms  # noqa: SLF001
        return float(min(*limits, 1000 * self.coordinator._max_poll_interval)) / 1000  # noqa: SLF001

    @property
    def leading_since(self) -> float | None:
        """As `Host`."""
        since: float | None = vars(self.coordinator).get(LEADING_SINCE)
        return since

    @property
    def closed(self) -> bool:
        """As `Host`."""
        return bool(self.coordinator._closing.done())  # noqa: SLF001

    @property
    def namesakes(self) -> Collection[str]:
        """As `Host`."""
        names = [assignor.name for assignor in self.coordinator._assignors]  # noqa: SLF001
        return sorted({name for name in names if names.count(name) > 1})

    def request_rejoin(self) -> None:
        """As `Host`."""
        self.coordinator.request_rejoin()

    def call_later(self, seconds: float, action: Callable[[Host], None]) -> Cancel:
        """As `Host`; on the event loop, from which it has to be called."""
        host = self.weakly()

        def act() -> None:
            alive = host()
            if alive is not None:
                action(alive)

        return asyncio.get_running_loop().call_later(seconds, act).cancel


class Topics:
    """aiokafka's ClusterMetadata as assignors ask kafka-python's, at one moment."""

    def __init__(self, cluster: Any, topics: Iterable[str]) -> None:
        self._racks = [(broker.nodeId, broker.rack) for broker in cluster.brokers()]
        self._partitions = {
            topic: dict(cluster._partitions.get(topic, {}))  # noqa: SLF001 - nothing public has replicas
            for topic in topics
        }

    def partitions_for_topic(self, topic: str) -> Collection[int] | None:
        """The partition ids of a topic, or None."""
        return self._partitions.get(topic) or None

    def brokers(self) -> list[RackedBroker]:
        """All brokers."""
        return [RackedBroker(node, rack) for node, rack in self._racks]

    def is_replica_node(self, partition: TopicPartition, node: int) -> bool:
        """Whether a broker has a replica of a partition."""
        known = self._partitions.get(partition.topic, {}).get(partition.partition)
        return known is not None and node in cast("Any", known).replicas


@dataclass(frozen=True, slots=True)
class RackedBroker:
    """A broker and its rack."""

    node_id: int
    rack: str | None
