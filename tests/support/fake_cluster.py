"""A cluster of three brokers as kafka-python's admin client shows it, without brokers."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, Final, Self

import pytest
from kafka import TopicPartition
from kafka.errors import (
    ClusterAuthorizationFailedError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.admin import ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from kafka_assignors._cluster import handle
from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors.placement._cluster.throttle import (
    FOLLOWER_RATE,
    entries_of,
    read_throttles,
    set_throttle,
)
from kafka_assignors.placement._cluster.topics import Reassignment

HIDDEN: Final = "no broker answers at h:1: nothing listens there"


class Cluster:
    """Brokers, 1, 2 and 3 if nothing else is said; copies end when a test says.

    Attributes:
        brokers: Their ids.
        fenced: Those that are fenced.
        topics: Where replicas are; names of internal ones begin with two underscores.
        moving: Where those are to be that are being reassigned.
        configs: What is set, by kind and name.
        heard: What brokers say is set, if they have not heard of all; None if they have.
        elected: Of which partitions preferred leaders were elected.
        refused: Partitions of which no reassignment is begun or broken off.
        untold: "broker 1" or "topic orders", which do not say what they have.
        locked: The same, which take no settings.
        before_alter: Called before reassignments are begun or broken off.
        after_alter: Called after it.
        hides: Whether nobody answers who connects now.
        mute: Whether it does not say what is under way.
    """

    def __init__(
        self, topics: Mapping[str, Mapping[int, list[int]]], brokers: Sequence[int] = (1, 2, 3)
    ) -> None:
        self.brokers = {*brokers}
        self.topics = {topic: dict(placed) for topic, placed in topics.items()}
        self.moving: dict[TopicPartition, list[int]] = {}
        self.configs: dict[tuple[str, str], dict[str, str]] = {}
        self.heard: dict[tuple[str, str], dict[str, str]] | None = None
        self.untold: set[str] = set()
        self.locked: set[str] = set()
        self.elected: list[dict[str, list[int]]] = []
        self.refused: set[TopicPartition] = set()
        self.before_alter: Callable[[], None] = lambda: None
        self.after_alter: Callable[[], None] = lambda: None
        self.fenced: set[int] = set()
        self.sizes: dict[tuple[str, int], int] = {}
        self.hides = self.mute = False

    def finish(self, *partitions: TopicPartition) -> None:
        for one in partitions or tuple(self.moving):
            self.topics[one.topic][one.partition] = self.moving.pop(one)

    def describe_cluster(self) -> dict[str, Any]:
        brokers = [
            {"broker_id": broker, "rack": None, "is_fenced": broker in self.fenced}
            for broker in sorted(self.brokers)
        ]
        return {"cluster_id": "cluster", "brokers": brokers, "controller_id": 1}

    def describe_topics(self, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "error_code": 0 if name in self.topics else 3,
                "is_internal": name.startswith("__"),
                "partitions": [
                    {
                        "partition_index": partition,
                        "replica_nodes": self._replicas(TopicPartition(name, partition)),
                        "isr_nodes": replicas,
                        "leader_id": replicas[0],
                    }
                    for partition, replicas in self.topics.get(name, {}).items()
                ],
            }
            for name in (sorted(self.topics) if names is None else names)
        ]

    def list_partition_reassignments(self) -> dict[TopicPartition, dict[str, list[int]]]:
        if self.mute:
            raise ClusterError(HIDDEN)
        found = {}
        for one, target in self.moving.items():
            before = self.topics[one.topic][one.partition]
            found[one] = {
                "replicas": self._replicas(one),
                "adding_replicas": [broker for broker in target if broker not in before],
                "removing_replicas": [broker for broker in before if broker not in target],
            }
        return found

    def alter_partition_reassignments(
        self, wanted: Mapping[TopicPartition, list[int] | None]
    ) -> dict[TopicPartition, Any]:
        self.before_alter()
        answer = {one: self._alter(one, target) for one, target in wanted.items()}
        self.after_alter()
        return answer

    def _alter(self, one: TopicPartition, target: list[int] | None) -> Any:
        if one.partition not in self.topics.get(one.topic, {}):
            return UnknownTopicOrPartitionError
        if one in self.refused:
            return ClusterAuthorizationFailedError
        if target is not None:
            self.moving[one] = list(target)
        elif self.moving.pop(one, None) is None:
            return NoReassignmentInProgressError
        return None

    def _replicas(self, one: TopicPartition) -> list[int]:
        before = self.topics[one.topic][one.partition]
        target = self.moving.get(one, before)
        return [*target, *(broker for broker in before if broker not in target)]

    @property
    def _manager(self) -> Self:
        return self

    _net = _manager
    _conns: Mapping[int, Any] = {}

    @property
    def config(self) -> dict[str, float]:
        return {"request_timeout_ms": 30_000, "socket_connection_setup_timeout_ms": 10_000}

    def run(self, work: Callable[..., Any], *arguments: Any) -> Any:
        return work(*arguments)

    def send(self, request: Any, *_: object) -> Any:
        """Answer DescribeConfigs, Metadata of topics, or ListPartitionReassignments."""
        if isinstance(request, ListPartitionReassignmentsRequest):
            listed = [
                SimpleNamespace(
                    name=tp.topic, partitions=[SimpleNamespace(partition_index=tp.partition, **state)]
                )
                for tp, state in self.list_partition_reassignments().items()
            ]
            return SimpleNamespace(error_code=0, topics=listed)
        if isinstance(request, MetadataRequest):
            described = self.describe_topics([one.name for one in request.topics])
            return SimpleNamespace(
                topics=[
                    SimpleNamespace(
                        error_code=topic["error_code"],
                        partitions=[SimpleNamespace(**one) for one in topic["partitions"]],
                    )
                    for topic in described
                ]
            )
        return SimpleNamespace(results=[self._described(one) for one in request.resources])

    def _described(self, wanted: Any) -> Any:
        kind, source = {2: ("topic", 1), 4: ("broker", 2)}[wanted.resource_type]
        name, error = wanted.resource_name, 0
        if f"{kind} {name}" in self.untold:
            error = ClusterAuthorizationFailedError.errno
        elif kind == "topic" and name not in self.topics:
            error = UnknownTopicOrPartitionError.errno
        heard = self.configs if self.heard is None else self.heard
        return SimpleNamespace(
            error_code=error,
            error_message="not allowed" if error else None,
            resource_name=name,
            configs=[
                SimpleNamespace(name=key, value=value, config_source=source)
                for key, value in heard.get((kind, name), {}).items()
                if not error and key in wanted.configuration_keys
            ],
        )

    def alter_configs(self, resources: Sequence[Any], **_: object) -> dict[str, dict[str, str]]:
        (one,) = resources
        kind = one.resource_type.name.lower()
        if f"{kind} {one.name}" in self.locked:
            return {kind: {one.name: "not allowed"}}
        config = self.configs.setdefault((kind, one.name), {})
        for name, (operation, value) in one.configs.items():
            entries = [entry for entry in config.get(name, "").split(",") if entry]
            if operation == "SET":
                config[name] = value
            elif operation == "DELETE":
                config.pop(name, None)
            elif operation == "APPEND":
                config[name] = ",".join([*entries, *value.split(",")])
            else:
                config[name] = ",".join(entry for entry in entries if entry not in value.split(","))
        return {kind: {one.name: "OK"}}

    def describe_log_dirs(self, _: object, brokers: Sequence[int]) -> list[dict[str, Any]]:
        if self.fenced & {*brokers}:
            raise ClusterAuthorizationFailedError("a fenced broker is asked")
        logs = [
            {
                "name": topic,
                "partitions": [
                    {"partition_index": partition, "partition_size": size, "is_future_key": False}
                ],
            }
            for (topic, partition), size in self.sizes.items()
        ]
        return [{"log_dirs": [{"error_code": 0, "log_dir": "/data", "topics": logs}]}]

    def create_topics(self, asked: Mapping[str, Any], **_: object) -> dict[str, Any]:
        self.topics |= {topic: dict(one["assignments"]) for topic, one in asked.items()}
        return {"topics": [{"error_code": 0}]}

    def create_partitions(self, asked: Mapping[str, Any], **_: object) -> Any:
        for topic, one in asked.items():
            self.topics[topic] |= dict(enumerate(one["assignments"], len(self.topics[topic])))
        return SimpleNamespace(to_dict=lambda: {"results": [{"error_code": 0}]})

    def elect_leaders(self, _: object, partitions: dict[str, list[int]]) -> None:
        self.elected.append(partitions)

    def rate(self, broker: int) -> str | None:
        return self.configs.get(("broker", str(broker)), {}).get(FOLLOWER_RATE)


class ClusterAdmin(Admin):
    def __init__(self, cluster: Cluster) -> None:
        self._client: Any = cluster
        self.left_out = {}
        self.settings = {}

    def __enter__(self) -> Self:
        return self

    def reconnect(self) -> None:
        """Nothing is to be connected."""
        if self._client.hides:
            raise ClusterError(HIDDEN)

    def close(self) -> None:
        """Nothing is to be closed."""


def open_as(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Admin:
    """Let commands open this cluster."""
    monkeypatch.setattr(handle, "Admin", lambda *_: ClusterAdmin(cluster))
    return ClusterAdmin(cluster)


def leave_killed_run(admin: Admin, cluster: Cluster, partition: TopicPartition) -> None:
    """Leave what a throttled run of this partition to broker 3 leaves that was killed."""
    copies = entries_of({partition: Reassignment([1, 2], [1, 3], [3])})
    set_throttle(admin, 1024, copies, read_throttles(admin, (1, 2, 3), [partition.topic]))
    cluster.alter_partition_reassignments({partition: [1, 3]})
