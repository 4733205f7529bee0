"""Drive assignors through rebalances by hand, over the wire, without a consumer or a broker."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka.cluster import ClusterMetadata
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.metadata import MetadataResponse
from kafka.structs import TopicPartition

from kafka_assignors import lead
from kafka_assignors._assignors._membership.host import Cancel, Host, calls
from kafka_assignors._model.members import NO_GENERATION

Assigned = dict[str, dict[str, list[int]]]
"""Partition ids by member and topic."""


def cluster_of(
    topics: Mapping[str, Iterable[int]],
    *,
    racks: Mapping[int, str] | None = None,
    replicas: Mapping[tuple[str, int], list[int]] | None = None,
) -> ClusterMetadata:
    """kafka-python's metadata of a cluster."""
    topic_type = MetadataResponse.MetadataResponseTopic
    brokers: Mapping[int, str | None] = racks or {1: None}
    response = MetadataResponse(
        version=7,
        throttle_time_ms=0,
        cluster_id="cluster",
        controller_id=1,
        brokers=[
            MetadataResponse.MetadataResponseBroker(node_id=node, host="localhost", port=node, rack=rack)
            for node, rack in brokers.items()
        ],
        topics=[
            topic_type(
                error_code=0,
                name=topic,
                is_internal=False,
                partitions=[
                    topic_type.MetadataResponsePartition(
                        error_code=0,
                        partition_index=partition,
                        leader_id=1,
                        leader_epoch=0,
                        replica_nodes=(replicas or {}).get((topic, partition), [1]),
                        isr_nodes=[1],
                        offline_replicas=[],
                    )
                    for partition in partitions
                ],
            )
            for topic, partitions in topics.items()
        ],
    )
    cluster = ClusterMetadata()
    cluster.update_metadata(MetadataResponse.decode(response.encode(version=7), version=7))
    return cluster


def joined(member_id: str, subscription: Any, instance_id: str | None = None) -> Any:
    """A member as kafka-python hands it to `assign`: its metadata went over the wire."""
    raw = subscription if isinstance(subscription, bytes) else subscription.encode()
    return JoinGroupResponse.JoinGroupResponseMember(
        member_id=member_id,
        group_instance_id=instance_id,
        metadata=ConsumerProtocolSubscription.decode(raw),
    )


def partitions_in(assignment: Any) -> dict[str, list[int]]:
    """Partition ids by topic of an assignment that went over the wire."""
    topics: dict[str, list[int]] = {}
    for topic, partition in ConsumerProtocolAssignment.decode(assignment.encode()).partitions():
        topics.setdefault(topic, []).append(partition)
    return topics


@dataclass
class HandGroup:
    """A group whose members are assignors; the first member leads."""

    topics: dict[str, Iterable[int]]
    assignors: dict[str, Any] = field(default_factory=dict)
    subscriptions: dict[str, set[str]] = field(default_factory=dict)
    generation: int = 0

    def join(self, member: str, assignor: Any, topics: Iterable[str] | None = None) -> None:
        self.assignors[member] = assignor
        self.subscriptions[member] = set(self.topics if topics is None else topics)

    def leave(self, member: str) -> None:
        del self.assignors[member], self.subscriptions[member]

    def rebalance(self) -> Assigned:
        """One round of JoinGroup and SyncGroup."""
        self.generation += 1
        members = [
            joined(member, assignor.metadata(self.subscriptions[member]))
            for member, assignor in self.assignors.items()
        ]
        leader = next(iter(self.assignors.values()))
        assignments = leader.assign(cluster_of(self.topics), members)
        assert assignments.keys() == self.assignors.keys()
        for member, assignor in self.assignors.items():
            decoded = ConsumerProtocolAssignment.decode(assignments[member].encode())
            assignor.on_assignment(decoded, self.generation)
        return {member: partitions_in(assignments[member]) for member in self.assignors}


def names(assigned: Assigned) -> dict[str, str]:
    """Assignments as the examples are written: "t0p0 t1p1", partitions in order."""
    return {
        member: " ".join(f"{topic}p{p}" for topic in sorted(topics) for p in sorted(topics[topic]))
        for member, topics in assigned.items()
    }


class HandHost(Host):
    """A consumer that is what a test says, and whose time is turned by hand."""

    cooperative = True
    partitions: frozenset[TopicPartition] = frozenset()
    heartbeat_interval = 1.0
    patience = 10.0
    leading_since: float | None = None
    seconds = 0.0
    closed = False
    generation = 0
    refused = NO_GENERATION
    strategy: str | None = None

    def __init__(self) -> None:
        self.rejoins = 0
        self.later: list[tuple[float, Callable[[Host], None]]] = []

    @classmethod
    def of(cls, consumer: Any) -> Host:
        host: Host = consumer
        return host

    @property
    def consumer(self) -> object:
        return self

    def request_rejoin(self) -> None:
        self.rejoins += 1

    def call_later(self, seconds: float, action: Callable[[Host], None]) -> Cancel:
        entry = seconds, action
        self.later.append(entry)
        return lambda: self.later.remove(entry) if entry in self.later else None


@dataclass
class Led:
    """A group by its leader, whose member comes first, one round after another."""

    assignor: Any
    host: HandHost = field(default_factory=HandHost)
    raw: dict[str, ConsumerProtocolAssignment] = field(default_factory=dict)

    def lead(
        self,
        generation: int,
        existing: Mapping[str, Sequence[int]],
        said: Sequence[tuple[str, str | None, bytes]],
        *,
        delivered: bool = True,
    ) -> None:
        """Plan for members by id, instance id and what they said, and take the leader's assignment."""
        with calls(self.host):
            self.assignor.metadata(existing)
            self.host.generation = generation
            encoded = lead(existing, said, self.assignor)
            self.raw = {name: ConsumerProtocolAssignment.decode(raw) for name, raw in encoded.items()}
            if delivered:
                self.assignor.on_assignment(next(iter(self.raw.values())), generation)

    def wait(self) -> float:
        """Let what was to be done later be done; how long it took."""
        ((seconds, action),) = self.host.later
        self.host.later.clear()
        action(self.host)
        return seconds
