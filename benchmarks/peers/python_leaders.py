"""Leaders in Python; a process takes PEER GROUP ANSWER STRATEGY UNTIL BUDGET COUNT.

Each does what its client's coordinator does between the members' metadata and their assignments. Prints
the times as JSON, {"runs": [[decode, assign, encode, CPU of all], ...], "memory": MiB or null, "versions":
{...}}, seconds; the stages of a leader that has none are null. The first run is the cold one. No run is begun
that would probably end later than UNTIL seconds from the start; else there are so many that COUNT of them are
warm and take BUDGET seconds together, but no more than one that takes long, and no more than enough.
"""

import gc
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from benchmarks.wire import Group, write_answer

_ENOUGH: Final = 500
"""Repetitions of the shortest cases."""

_LONG: Final = 30.0
"""Seconds from which on one repetition is enough."""


class Leader(ABC):
    """A group's leader.

    Attributes:
        staged: Whether its three stages can be told apart.
        packages: Those whose versions matter.
    """

    staged = True
    packages: tuple[str, ...]

    @abstractmethod
    def __init__(self, group: Group, strategy: str) -> None: ...

    @abstractmethod
    def received(self) -> Any:
        """What the client has at hand when its leader's work begins; made anew each time, not timed."""

    @abstractmethod
    def decode(self, received: Any) -> Any:
        """Read the members' metadata."""

    @abstractmethod
    def assign(self, decoded: Any) -> Any:
        """Assign."""

    @abstractmethod
    def encode(self, assigned: Any) -> dict[str, bytes]:
        """Write the assignments."""


class Library(Leader):
    """This library from bytes to bytes, as a program without kafka-python would call it."""

    staged = False
    packages = ("kafka-assignors", "numpy")

    def __init__(self, group: Group, strategy: str) -> None:
        self._lead = _lead()
        self._members = group.members
        self._topics = {topic.name: range(topic.partitions) for topic in group.topics}
        self._racks = _replica_racks(group)
        self._strategy = strategy

    def received(self) -> Any:
        """The members' bytes."""
        return self._members

    def decode(self, received: Any) -> Any:
        """Part of the whole."""
        return received

    def assign(self, decoded: Any) -> Any:
        """All of it."""
        return self._lead(self._topics, decoded, self._strategy, self._racks)

    def encode(self, assigned: Any) -> dict[str, bytes]:
        """Part of the whole."""
        answer: dict[str, bytes] = assigned
        return answer


class KafkaPython(Leader):
    """kafka-python's coordinator (`_perform_assignment`) with its own assignors."""

    packages: tuple[str, ...] = ("kafka-python",)

    def __init__(self, group: Group, strategy: str) -> None:
        from kafka.protocol.consumer.group import JoinGroupResponse  # noqa: PLC0415 - the peer asked for
        from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription  # noqa: PLC0415

        self._member = JoinGroupResponse.JoinGroupResponseMember
        self._subscription = ConsumerProtocolSubscription
        self._group = group
        self._cluster = _kafka_python_cluster(group)
        self._assignor = self.assignor(strategy)

    def assignor(self, strategy: str) -> Any:
        """The assignor, made once as a consumer does."""
        places = {
            "range": "range.RangePartitionAssignor",
            "roundrobin": "roundrobin.RoundRobinPartitionAssignor",
            "sticky": "sticky.sticky_assignor.StickyPartitionAssignor",
            "cooperative-sticky": "cooperative_sticky.CooperativeStickyAssignor",
        }
        return _named(f"kafka.coordinator.assignors.{places[strategy]}")()

    def received(self) -> Any:
        """The members of a JoinGroupResponse, which become decoded in place."""
        return [
            self._member(member_id=member, group_instance_id=instance, metadata=raw)
            for member, instance, raw in self._group.members
        ]

    def decode(self, received: Any) -> Any:
        """As the coordinator does, down to the set of all topics."""
        topics: set[str] = set()
        for member in received:
            member.metadata = self._subscription.decode(member.metadata)
            topics.update(member.metadata.topics)
        return received

    def assign(self, decoded: Any) -> Any:
        """Call the assignor."""
        return self._assignor.assign(self._cluster, decoded)

    def encode(self, assigned: Any) -> dict[str, bytes]:
        """As the coordinator does for its SyncGroupRequest."""
        return _encode(assigned)


class InKafkaPython(KafkaPython):
    """kafka-python's coordinator with this library's assignors: the method that its consumer calls.

    The coordinator is a real one, made as `KafkaConsumer` makes it and never connected.
    """

    staged = False
    packages = ("kafka-assignors", "kafka-python", "numpy")

    def __init__(self, group: Group, strategy: str) -> None:
        super().__init__(group, strategy)
        self._strategy = strategy
        self._coordinator = _kafka_python_coordinator(group, self._assignor)

    def assignor(self, strategy: str) -> Any:
        """The assignor, made once as a consumer does."""
        names = {
            "range": "RangeAssignor",
            "roundrobin": "RoundRobinAssignor",
            "sticky": "StickyAssignor",
            "cooperative-sticky": "CooperativeStickyAssignor",
        }
        return _named(f"kafka_assignors.{names[strategy]}")()

    def received(self) -> Any:
        """As `KafkaPython`; a rebalance begins, as it does with the member's own JoinGroup."""
        self._coordinator.group_protocols()
        return super().received()

    def decode(self, received: Any) -> Any:
        """Part of the whole."""
        return received

    def assign(self, decoded: Any) -> Any:
        """All but the encoding."""
        return self._coordinator._perform_assignment("", self._strategy, decoded)  # noqa: SLF001


class AioKafka(Leader):
    """aiokafka's coordinator (`_perform_assignment`) with its own assignors."""

    packages = ("aiokafka",)

    def __init__(self, group: Group, strategy: str) -> None:
        places = {
            "range": "range.RangePartitionAssignor",
            "roundrobin": "roundrobin.RoundRobinPartitionAssignor",
            "sticky": "sticky.sticky_assignor.StickyPartitionAssignor",
        }
        self._assignor = _named(f"aiokafka.coordinator.assignors.{places[strategy]}")
        self._metadata = _named("aiokafka.coordinator.protocol.ConsumerProtocolMemberMetadata")
        self._group = group
        self._cluster = _aiokafka_cluster(group)

    def received(self) -> Any:
        """The members' bytes."""
        return self._group.members

    def decode(self, received: Any) -> Any:
        """As the coordinator does, down to the set of all topics."""
        topics: set[str] = set()
        decoded = {}
        for member, _, raw in received:
            decoded[member] = self._metadata.decode(raw)
            topics.update(decoded[member].subscription)
        return decoded

    def assign(self, decoded: Any) -> Any:
        """Call the assignor, a class here."""
        return self._assignor.assign(self._cluster, decoded)

    def encode(self, assigned: Any) -> dict[str, bytes]:
        """As the coordinator does for its SyncGroupRequest."""
        return _encode(assigned)


LEADERS: Final[dict[str, type[Leader]]] = {
    "library": Library,
    "library-in-kafka-python": InKafkaPython,
    "kafka-python": KafkaPython,
    "aiokafka": AioKafka,
}


def _encode(assigned: Mapping[str, Any]) -> dict[str, bytes]:
    return {
        member: assignment if isinstance(assignment, bytes) else assignment.encode()
        for member, assignment in assigned.items()
    }


def _named(path: str) -> Any:
    module, _, name = path.rpartition(".")
    return getattr(import_module(module), name)


def _replica_racks(group: Group) -> Callable[[str, Iterable[int]], Iterable[frozenset[str]]] | None:
    """By topic and partition id, as franz-go's client has those of leaders; None if they are unknown."""
    one = cache(frozenset[str])  # as by brokers: partitions on the same ones share it
    racks = {topic.name: [*map(one, topic.racks)] for topic in group.topics if topic.racks}
    return (lambda topic, ids: map(racks[topic].__getitem__, ids)) if racks else None


def _replicas(group: Group) -> tuple[dict[str, int], Callable[[tuple[str, ...]], list[int]]]:
    """The broker of each rack, and the brokers of a partition by its racks; broker 1 if there are none."""
    names = sorted({rack for topic in group.topics for places in topic.racks or () for rack in places})
    brokers = {rack: number for number, rack in enumerate(names, 1)}
    return brokers, lambda places: [brokers[rack] for rack in places] or [1]


def _kafka_python_cluster(group: Group) -> Any:
    from kafka.cluster import ClusterMetadata  # noqa: PLC0415 - the peer asked for

    cluster = ClusterMetadata()
    cluster.update_metadata(_kafka_python_metadata(group))
    return cluster


def _kafka_python_coordinator(group: Group, assignor: Any) -> Any:
    """The coordinator of a consumer that knows the group's topics and is connected to nothing."""
    from kafka.consumer.subscription_state import SubscriptionState  # noqa: PLC0415 - the peer asked for
    from kafka.coordinator.consumer import ConsumerCoordinator  # noqa: PLC0415
    from kafka.net.compat import KafkaNetClient  # noqa: PLC0415

    client = KafkaNetClient(bootstrap_servers="localhost:1", api_version=(4, 0))
    client._manager.cluster.update_metadata(_kafka_python_metadata(group))  # noqa: SLF001
    subscription = SubscriptionState()
    subscription.subscribe(topics=[topic.name for topic in group.topics])
    return ConsumerCoordinator(
        client,
        subscription,
        group_id="group",
        assignors=[assignor],
        api_version=(4, 0),
        enable_auto_commit=False,
    )


def _kafka_python_metadata(group: Group) -> Any:
    """What a broker answers a MetadataRequest."""
    from kafka.protocol.metadata import MetadataResponse  # noqa: PLC0415 - the peer asked for

    broker, topic_type = MetadataResponse.MetadataResponseBroker, MetadataResponse.MetadataResponseTopic
    brokers, replicas = _replicas(group)
    return MetadataResponse(
        version=7,
        throttle_time_ms=0,
        cluster_id="cluster",
        controller_id=1,
        brokers=[
            broker(version=7, node_id=node, host="localhost", port=node, rack=rack)
            for rack, node in brokers.items()
        ]
        or [broker(version=7, node_id=1, host="localhost", port=1, rack=None)],
        topics=[
            topic_type(
                error_code=0,
                name=topic.name,
                is_internal=False,
                partitions=[
                    topic_type.MetadataResponsePartition(
                        error_code=0,
                        partition_index=partition,
                        leader_id=1,
                        leader_epoch=0,
                        replica_nodes=replicas(topic.racks[partition] if topic.racks else ()),
                        isr_nodes=[1],
                        offline_replicas=[],
                    )
                    for partition in range(topic.partitions)
                ],
            )
            for topic in group.topics
        ],
    )


def _aiokafka_cluster(group: Group) -> Any:
    from aiokafka.cluster import ClusterMetadata  # noqa: PLC0415 - the peer asked for

    brokers, replicas = _replicas(group)
    response = SimpleNamespace(
        API_VERSION=5,
        controller_id=1,
        brokers=[(node, "localhost", node, rack) for rack, node in brokers.items()]
        or [(1, "localhost", 1, None)],
        topics=[
            (
                0,
                topic.name,
                False,
                [
                    (0, partition, 1, replicas(topic.racks[partition] if topic.racks else ()), [1], [])
                    for partition in range(topic.partitions)
                ],
            )
            for topic in group.topics
        ],
    )
    cluster = ClusterMetadata()
    cluster.update_metadata(response)
    return cluster


def _lead() -> Callable[..., dict[str, bytes]]:
    """The library's function from bytes to bytes."""
    lead: Callable[..., dict[str, bytes]] = _named("kafka_assignors.lead")
    return lead


def measure(
    leader: Leader, *, seconds: float, budget: float, count: int
) -> tuple[list[tuple[float, float, float, float]], dict[str, bytes], float | None]:
    """Let a leader do its work again and again.

    Args:
        leader: The leader.
        seconds: No run is begun that would probably end later.
        budget: Seconds of repetitions that are enough.
        count: But so many are wanted, unless they are long.

    Returns:
        Seconds of decode, assign, encode, and CPU of all three, for each run; the answer of the last run;
        MiB by which the first run enlarged the process at its peak.
    """
    began = time.perf_counter()
    gc.collect()
    before = _memory("VmRSS", reset=True)
    grown: float | None = None
    runs: list[tuple[float, float, float, float]] = []
    answer: dict[str, bytes] = {}
    while not runs or _another(runs, began, seconds, budget, count):
        received = leader.received()
        decoded = assigned = None
        answer = {}
        cpu, start = time.process_time(), time.perf_counter()
        decoded = leader.decode(received)
        read = time.perf_counter()
        assigned = leader.assign(decoded)
        planned = time.perf_counter()
        answer = leader.encode(assigned)
        end = time.perf_counter()
        cpu = time.process_time() - cpu
        runs.append((read - start, planned - read, end - planned, cpu))
        if grown is None and before is not None:
            peak = _memory("VmHWM")
            grown = None if peak is None else peak - before
    return runs, answer, grown


def _another(
    runs: list[tuple[float, float, float, float]], began: float, seconds: float, budget: float, count: int
) -> bool:
    long = max(sum(run[:3]) for run in runs)
    if time.perf_counter() - began + 1.2 * long > seconds:
        return False
    if long > _LONG:
        return len(runs) < 2  # noqa: PLR2004 - cold and once more
    warm = sum(sum(run[:3]) for run in runs[1:])
    return len(runs) - 1 < count or (warm < budget and len(runs) - 1 < _ENOUGH)


def _memory(field: str, *, reset: bool = False) -> float | None:
    """MiB of a field of /proc/self/status, where there is one; `reset` lets the peak begin anew."""
    try:
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status").read_text()
    except OSError:
        return None
    line = next(line for line in status.splitlines() if line.startswith(f"{field}:"))
    return int(line.split()[1]) / 1024


def main(arguments: list[str]) -> None:
    """Run as the module says."""
    peer, group, answer, strategy, until, budget, count = arguments
    leader = LEADERS[peer](Group.read(Path(group)), strategy)
    runs, answers, memory = measure(leader, seconds=float(until), budget=float(budget), count=int(count))
    write_answer(answers, Path(answer))
    versions = {package: version(package) for package in leader.packages}
    told = [run if leader.staged else (None, sum(run[:3]), None, run[3]) for run in runs]
    json.dump({"runs": told, "memory": memory, "versions": versions}, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1:])
