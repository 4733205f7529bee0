"""What one broker says about its cluster: a request over a connection of its own, and nothing remembered.

Client libraries ask whichever broker they like and keep what they heard. Only a question to a certain broker
shows whether it is back, and what it knows by now.
"""

import socket
import time
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from kafka.errors import for_code
from kafka.protocol.admin import DescribeGroupsRequest, DescribeGroupsResponse
from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions
from kafka.protocol.metadata import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)

from kafka_assignors._cluster.reaching import exchange

_ANSWER_SECONDS = 5.0
_METADATA_VERSION = 9  # brokers from 2.4 on
_FIND_COORDINATOR_VERSION = 3  # likewise
_DESCRIBE_GROUPS_VERSION = 4  # likewise
_GROUP = 0  # the type of key of a group


class SeenPartition(NamedTuple):
    """A partition, as a broker knows it.

    Its leader is -1 if no node leads it; the first of its replicas is the preferred leader.
    """

    topic: str
    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


class ClusterState(NamedTuple):
    """A cluster, as a broker knows it: the addresses ("host:port") of the nodes that it takes for alive."""

    brokers: Mapping[int, str]
    partitions: tuple[SeenPartition, ...]


def cluster_state(server: str) -> ClusterState:
    """Ask a broker for its view of the cluster; raises OSError if it does not answer."""
    answer = ask(server, MetadataRequest(topics=None), MetadataResponse, _METADATA_VERSION)
    return ClusterState(
        brokers={broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers},
        partitions=tuple(
            SeenPartition(
                topic=topic.name,
                number=one.partition_index,
                leader=one.leader_id,
                replicas=tuple(one.replica_nodes),
                in_sync=frozenset(one.isr_nodes),
            )
            for topic in answer.topics
            for one in topic.partitions
        ),
    )


def coordinator_by(server: str, group_id: str) -> int | None:
    """Ask a broker which node coordinates a group; None if it knows of none yet.

    The first question in a cluster makes it create the topic of the groups, which takes a moment. Raises
    OSError if it does not answer.
    """
    request = FindCoordinatorRequest(key=group_id, key_type=_GROUP)
    answer = ask(server, request, FindCoordinatorResponse, _FIND_COORDINATOR_VERSION)
    return None if answer.error_code else int(answer.node_id)


def fault_of_coordinator(server: str, group_id: str) -> str:
    """Ask a broker for a group that it coordinates; the name of the error that it answers with, or "".

    While it loads the groups it answers none of their members. Raises OSError if it does not answer.
    """
    request = DescribeGroupsRequest(groups=[group_id])
    answer = ask(server, request, DescribeGroupsResponse, _DESCRIBE_GROUPS_VERSION)
    (group,) = answer.groups
    return str(for_code(group.error_code).__name__) if group.error_code else ""


def version_by(server: str) -> str:
    """The release of Kafka ("4.3") by a broker's requests; the newest that kafka-python knows.

    Raises OSError if the broker does not answer.
    """
    answer = ask(server, ApiVersionsRequest(), ApiVersionsResponse, 0)
    known = {one.api_key: (one.min_version, one.max_version) for one in answer.api_keys}
    return ".".join(map(str, infer_broker_version_from_api_versions(known)))


def first_answer(servers: Iterable[str]) -> ClusterState | None:
    """The view of the first of these brokers that answers; None if none does."""
    for server in servers:
        try:
            return cluster_state(server)
        except OSError:
            continue
    return None


def ask(server: str, request: Any, response: Any, version: int) -> Any:
    """Send a request of kafka-python's to a broker; raises OSError if it does not answer."""
    host, _, port = server.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SECONDS) as connection:
        try:
            return exchange(connection, request, response, version, time.monotonic() + _ANSWER_SECONDS)
        except ValueError as error:
            raise ConnectionError(f"{server} does not speak Kafka in plain text: {error}") from error
