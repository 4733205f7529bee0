"""A real Kafka to test against, and groups of consumers on it.

Everything here is imported when it is first used: pytest loads the plug-in of this package in every run, also
in those that start no Kafka.
"""

from typing import TYPE_CHECKING

from kafka_assignors.lazy import getter

if TYPE_CHECKING:
    from kafka_assignors.testing.access import Access, Security
    from kafka_assignors.testing.broker import Broker, BrokerDiedError, ClusterUnavailableError
    from kafka_assignors.testing.clients import ClientUnavailableError
    from kafka_assignors.testing.cluster import Cluster, How, kafka_cluster
    from kafka_assignors.testing.group import (
        AssignorSpec,
        ClientSpec,
        ConsumerGroup,
        GroupNotStableError,
        StableGroup,
    )
    from kafka_assignors.testing.jars import JarsUnavailableError, class_path, kafka_jars
    from kafka_assignors.testing.load import Load
    from kafka_assignors.testing.member import Member, MemberState
    from kafka_assignors.testing.mock import MockApi, MockCluster, MockRequest
    from kafka_assignors.testing.network import Fault, Network, Traffic
    from kafka_assignors.testing.plugin import (
        GroupFactory,
        TopicFactory,
        consumer_group_factory,
        kafka_cluster_factory,
        topic_factory_factory,
    )
    from kafka_assignors.testing.runners import NotInAThreadError, Place
    from kafka_assignors.testing.seat import Seat
    from kafka_assignors.testing.stability import BrokersView, Sharing, Topics
    from kafka_assignors.testing.timeline import Event, Gap, Move, Overlap, Ownership, Rebalance, Timeline
    from kafka_assignors.testing.topics import create_topic, delete_topic, grow_topic

_HOMES = {
    "Access": "access",
    "AssignorSpec": "group",
    "Broker": "broker",
    "BrokerDiedError": "broker",
    "BrokersView": "stability",
    "ClientSpec": "group",
    "ClientUnavailableError": "clients",
    "Cluster": "cluster",
    "ClusterUnavailableError": "broker",
    "ConsumerGroup": "group",
    "Event": "timeline",
    "Fault": "network",
    "Gap": "timeline",
    "GroupFactory": "plugin",
    "GroupNotStableError": "group",
    "How": "cluster",
    "JarsUnavailableError": "jars",
    "Load": "load",
    "Member": "member",
    "MemberState": "member",
    "MockApi": "mock",
    "MockCluster": "mock",
    "MockRequest": "mock",
    "Move": "timeline",
    "Network": "network",
    "NotInAThreadError": "runners",
    "Overlap": "timeline",
    "Ownership": "timeline",
    "Place": "runners",
    "Rebalance": "timeline",
    "Seat": "seat",
    "Security": "access",
    "Sharing": "stability",
    "StableGroup": "group",
    "Timeline": "timeline",
    "TopicFactory": "plugin",
    "Topics": "stability",
    "Traffic": "network",
    "class_path": "jars",
    "consumer_group_factory": "plugin",
    "create_topic": "topics",
    "delete_topic": "topics",
    "grow_topic": "topics",
    "kafka_cluster": "cluster",
    "kafka_cluster_factory": "plugin",
    "kafka_jars": "jars",
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
