"""A real Kafka to test against, and groups of consumers on it.

Everything here is imported when it is first used: pytest loads the plug-in of this package in every run, also
in those that start no Kafka.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_assignors.testing.cluster import (
        Broker,
        BrokerDiedError,
        Cluster,
        ClusterUnavailableError,
        How,
        kafka_cluster,
    )
    from kafka_assignors.testing.group import (
        ConsumerGroup,
        GroupNotStableError,
        Load,
        StableGroup,
        create_topic,
        delete_topic,
        grow_topic,
    )
    from kafka_assignors.testing.jars import JarsUnavailableError, class_path, kafka_jars
    from kafka_assignors.testing.plugin import kafka_cluster_factory
    from kafka_assignors.testing.timeline import Timeline

_HOME = {
    "Broker": "cluster",
    "BrokerDiedError": "cluster",
    "Cluster": "cluster",
    "ClusterUnavailableError": "cluster",
    "ConsumerGroup": "group",
    "GroupNotStableError": "group",
    "How": "cluster",
    "JarsUnavailableError": "jars",
    "Load": "group",
    "StableGroup": "group",
    "Timeline": "timeline",
    "class_path": "jars",
    "create_topic": "group",
    "delete_topic": "group",
    "grow_topic": "group",
    "kafka_cluster": "cluster",
    "kafka_cluster_factory": "plugin",
    "kafka_jars": "jars",
}

__all__ = [
    "Broker",
    "BrokerDiedError",
    "Cluster",
    "ClusterUnavailableError",
    "ConsumerGroup",
    "GroupNotStableError",
    "How",
    "JarsUnavailableError",
    "Load",
    "StableGroup",
    "Timeline",
    "class_path",
    "create_topic",
    "delete_topic",
    "grow_topic",
    "kafka_cluster",
    "kafka_cluster_factory",
    "kafka_jars",
]


def __getattr__(name: str) -> Any:
    try:
        home = _HOME[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(f"{__name__}.{home}"), name)
