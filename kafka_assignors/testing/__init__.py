"""A real Kafka to test against, and groups of consumers on it.

Everything here is imported when it is first used: pytest loads the plug-in of this package in every run, also
in those that start no Kafka.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_assignors.testing.broker import Broker, BrokerDiedError, ClusterUnavailableError
    from kafka_assignors.testing.cluster import Cluster, How, kafka_cluster
    from kafka_assignors.testing.group import (
        AssignorSpec,
        BrokersView,
        ConsumerGroup,
        GroupNotStableError,
        Member,
        MemberState,
        Sharing,
        StableGroup,
        Topics,
    )
    from kafka_assignors.testing.jars import JarsUnavailableError, class_path, kafka_jars
    from kafka_assignors.testing.load import Load
    from kafka_assignors.testing.mock import MockApi, MockCluster, MockRequest
    from kafka_assignors.testing.plugin import kafka_cluster_factory
    from kafka_assignors.testing.timeline import Event, Gap, Move, Overlap, Ownership, Rebalance, Timeline
    from kafka_assignors.testing.topics import create_topic, delete_topic, grow_topic

_HOME = {
    "AssignorSpec": "group",
    "Broker": "broker",
    "BrokerDiedError": "broker",
    "BrokersView": "group",
    "Cluster": "cluster",
    "ClusterUnavailableError": "broker",
    "ConsumerGroup": "group",
    "Event": "timeline",
    "Gap": "timeline",
    "GroupNotStableError": "group",
    "How": "cluster",
    "JarsUnavailableError": "jars",
    "Load": "load",
    "Member": "group",
    "MemberState": "group",
    "MockApi": "mock",
    "MockCluster": "mock",
    "MockRequest": "mock",
    "Move": "timeline",
    "Overlap": "timeline",
    "Ownership": "timeline",
    "Rebalance": "timeline",
    "Sharing": "group",
    "StableGroup": "group",
    "Timeline": "timeline",
    "Topics": "group",
    "class_path": "jars",
    "create_topic": "topics",
    "delete_topic": "topics",
    "grow_topic": "topics",
    "kafka_cluster": "cluster",
    "kafka_cluster_factory": "plugin",
    "kafka_jars": "jars",
}

__all__ = [
    "AssignorSpec",
    "Broker",
    "BrokerDiedError",
    "BrokersView",
    "Cluster",
    "ClusterUnavailableError",
    "ConsumerGroup",
    "Event",
    "Gap",
    "GroupNotStableError",
    "How",
    "JarsUnavailableError",
    "Load",
    "Member",
    "MemberState",
    "MockApi",
    "MockCluster",
    "MockRequest",
    "Move",
    "Overlap",
    "Ownership",
    "Rebalance",
    "Sharing",
    "StableGroup",
    "Timeline",
    "Topics",
    "class_path",
    "create_topic",
    "delete_topic",
    "grow_topic",
    "kafka_cluster",
    "kafka_cluster_factory",
    "kafka_jars",
]


if not TYPE_CHECKING:  # to a type checker, a name that is not above is an error

    def __getattr__(name: str) -> Any:
        try:
            home = _HOME[name]
        except KeyError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        return getattr(import_module(f"{__name__}.{home}"), name)
