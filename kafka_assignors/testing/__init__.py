"""A real Kafka to test against, and groups of consumers on it.

Everything here is imported when it is first used: pytest loads the plug-in of this package in every run, also
in those that start no Kafka.
"""

from typing import TYPE_CHECKING

from kafka_assignors.lazy import getter

if TYPE_CHECKING:
    from kafka_assignors.testing.brokers.access import Access, Security
    from kafka_assignors.testing.brokers.broker import Broker, BrokerDiedError, ClusterUnavailableError
    from kafka_assignors.testing.brokers.cluster import Cluster, How, kafka_cluster
    from kafka_assignors.testing.brokers.jars import JarsUnavailableError, class_path, kafka_jars
    from kafka_assignors.testing.brokers.mock import MockApi, MockCluster, MockRequest
    from kafka_assignors.testing.brokers.network import Fault, Network, Traffic
    from kafka_assignors.testing.groups.clients import ClientUnavailableError
    from kafka_assignors.testing.groups.group import (
        AssignorSpec,
        ClientSpec,
        ConsumerGroup,
        GroupNotStableError,
        StableGroup,
    )
    from kafka_assignors.testing.groups.member import Member, MemberState
    from kafka_assignors.testing.groups.runners import NotInAThreadError, Place
    from kafka_assignors.testing.groups.seat import Seat
    from kafka_assignors.testing.groups.stability import BrokersView, Sharing, Topics
    from kafka_assignors.testing.load import Load
    from kafka_assignors.testing.plugin import (
        GroupFactory,
        TopicFactory,
        consumer_group_factory,
        kafka_cluster_factory,
        topic_factory_factory,
    )
    from kafka_assignors.testing.topics import create_topic, delete_topic, grow_topic
    from kafka_assignors.timelines.timeline import (
        Event,
        Gap,
        Move,
        Overlap,
        Ownership,
        Rebalance,
        Timeline,
    )

_HOMES = {
    "Access": "brokers.access",
    "AssignorSpec": "groups.group",
    "Broker": "brokers.broker",
    "BrokerDiedError": "brokers.broker",
    "BrokersView": "groups.stability",
    "ClientSpec": "groups.group",
    "ClientUnavailableError": "groups.clients",
    "Cluster": "brokers.cluster",
    "ClusterUnavailableError": "brokers.broker",
    "ConsumerGroup": "groups.group",
    "Event": ".timelines.timeline",
    "Fault": "brokers.network",
    "Gap": ".timelines.timeline",
    "GroupFactory": "plugin",
    "GroupNotStableError": "groups.group",
    "How": "brokers.cluster",
    "JarsUnavailableError": "brokers.jars",
    "Load": "load",
    "Member": "groups.member",
    "MemberState": "groups.member",
    "MockApi": "brokers.mock",
    "MockCluster": "brokers.mock",
    "MockRequest": "brokers.mock",
    "Move": ".timelines.timeline",
    "Network": "brokers.network",
    "NotInAThreadError": "groups.runners",
    "Overlap": ".timelines.timeline",
    "Ownership": ".timelines.timeline",
    "Place": "groups.runners",
    "Rebalance": ".timelines.timeline",
    "Seat": "groups.seat",
    "Security": "brokers.access",
    "Sharing": "groups.stability",
    "StableGroup": "groups.group",
    "Timeline": ".timelines.timeline",
    "TopicFactory": "plugin",
    "Topics": "groups.stability",
    "Traffic": "brokers.network",
    "class_path": "brokers.jars",
    "consumer_group_factory": "plugin",
    "create_topic": "topics",
    "delete_topic": "topics",
    "grow_topic": "topics",
    "kafka_cluster": "brokers.cluster",
    "kafka_cluster_factory": "plugin",
    "kafka_jars": "brokers.jars",
    "topic_factory_factory": "plugin",
}

__all__ = [
    "Access",
    "AssignorSpec",
    "Broker",
    "BrokerDiedError",
    "BrokersView",
    "ClientSpec",
    "ClientUnavailableError",
    "Cluster",
    "ClusterUnavailableError",
    "ConsumerGroup",
    "Event",
    "Fault",
    "Gap",
    "GroupFactory",
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
    "Network",
    "NotInAThreadError",
    "Overlap",
    "Ownership",
    "Place",
    "Rebalance",
    "Seat",
    "Security",
    "Sharing",
    "StableGroup",
    "Timeline",
    "TopicFactory",
    "Topics",
    "Traffic",
    "class_path",
    "consumer_group_factory",
    "create_topic",
    "delete_topic",
    "grow_topic",
    "kafka_cluster",
    "kafka_cluster_factory",
    "kafka_jars",
    "topic_factory_factory",
]

if not TYPE_CHECKING:  # to a type checker, a name that is not above is an error
    __getattr__ = getter(__name__, _HOMES)
