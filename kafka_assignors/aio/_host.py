"""aiokafka's consumer as assignors see their consumers."""

import asyncio
from collections.abc import Callable, Collection, Iterable
from types import SimpleNamespace
from typing import Any, cast

from aiokafka.consumer.group_coordinator import CoordinatorGroupRebalance, GroupCoordinator
from kafka.structs import TopicPartition

from kafka_assignors._assignors._measures import Measures
from kafka_assignors._assignors._membership.host import Cancel, CoordinatorHost
from kafka_assignors.aio._measuring import measure


class AiokafkaHost(CoordinatorHost):
    """A consumer of aiokafka."""

    __slots__ = ()

    @classmethod
    def _coordinator_of(cls, caller: Any) -> Any:
        if isinstance(caller, CoordinatorGroupRebalance):
            caller = caller._coordinator  # noqa: SLF001
        return caller if isinstance(caller, GroupCoordinator) else None

    @property
    def cooperative(self) -> bool:
        return bool(getattr(self.coordinator, "cooperative", False))

    @property
    def generation(self) -> int:
        return int(self.coordinator.generation)

    @property
    def strategy(self) -> str | None:
        """As `Host`: not known, and not needed, as aiokafka forgets no join."""
        return None

    @property
    def heartbeat_interval(self) -> float:
        return float(self.coordinator._heartbeat_interval_ms) / 1000  # noqa: SLF001

    @property
    def patience(self) -> float:
        """As `Host`: the shortest of the timeouts that end a consumer's membership or a rebalance."""
        limits = self.coordinator._session_timeout_ms, self.coordinator._rebalance_timeout_ms  # noqa: SLF001
        return float(min(*limits, 1000 * self.coordinator._max_poll_interval)) / 1000  # noqa: SLF001

    @property
    def closed(self) -> bool:
        return bool(self.coordinator._closing.done())  # noqa: SLF001

    @property
    def namesakes(self) -> Collection[str]:
        names = [assignor.name for assignor in self.coordinator._assignors]  # noqa: SLF001
        return sorted({name for name in names if names.count(name) > 1})

    def measure(self, measures: Measures) -> None:
        measure(self.coordinator._subscription, measures)  # noqa: SLF001

    def _after(self, seconds: float, act: Callable[[], None]) -> Cancel:
        # On the event loop, from which it has to be called.
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
        return self._partitions.get(topic) or None

    def brokers(self) -> list[SimpleNamespace]:
        return [SimpleNamespace(node_id=node, rack=rack) for node, rack in self._racks]

    def is_replica_node(self, partition: TopicPartition, node: int) -> bool:
        """Whether a broker has a replica of a partition."""
        known = self._partitions.get(partition.topic, {}).get(partition.partition)
        return known is not None and node in cast("Any", known).replicas
