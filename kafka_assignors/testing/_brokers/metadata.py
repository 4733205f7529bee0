"""What one broker says about its cluster: a request over a connection of its own, and nothing remembered.

Client libraries ask whichever broker they like and keep what they heard. Only a question to a certain broker
shows whether it is back, and what it knows by now.
"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__tracebackhide__ = True

_ANSWER_SECONDS = 5.0
_METADATA_VERSION = 9  # brokers from 2.4 on
_FIND_COORDINATOR_VERSION = 3  # likewise
_DESCRIBE_GROUPS_VERSION = 4  # likewise
_MOST_BYTES = 100_000_000  # what a broker accepts at most; other answers are not Kafka's
_GROUP = 0  # the type of key of a group


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenPartition:
    """A partition, as a broker knows it.

    Attributes:
        topic: Its topic.
        number: Its number in the topic.
        leader: The node that leads it, -1 if none does.
        replicas: The nodes that have it; the first is the preferred leader.
        in_sync: Those of them that have all of it.
    """

    topic: str
    number: int
    leader: int
    replicas: tuple[int, ...]
    in_sync: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterState:
    """A cluster, as a broker knows it.

    Attributes:
        brokers: The addresses ("host:port") of the nodes that it takes for alive, by node id.
        partitions: All partitions, of internal topics too.
    """

    brokers: Mapping[int, str]
    partitions: tuple[SeenPartition, ...]


def cluster_state(server: str) -> ClusterState:
    """Ask a broker for its view of the cluster.

    Args:
        server: "host:port" of a listener without security.

    Raises:
        OSError: It does not answer.
    """
    request = MetadataRequest[_METADATA_VERSION](topics=None)
    answer = MetadataResponse.decode(ask(server, request), version=_METADATA_VERSION, header=True)
    return ClusterState(
        brokers={broker.node_id: f"{broker.host}:{broker.port}" for broker in answer.brokers},
        partitions=tuple(
            SeenPartition(
                topic=topic.name,
                number=partition.partition_index,
                leader=partition.leader_id,
                replicas=tuple(partition.replica_nodes),
                in_sync=frozenset(partition.isr_nodes),
            )
            for topic in answer.topics
            for partition in topic.partitions
        ),
    )


def coordinator_by(server: str, group_id: str) -> int | None:
    """Ask a broker which node coordinates a group; None if it knows of none yet.

    The first question in a cluster makes it create the topic of the groups, which takes a moment.

    Args:
        server: "host:port" of a listener without security.
        group_id: The group; need not exist.

    Raises:
        OSError: It does not answer.
    """
    request = FindCoordinatorRequest[_FIND_COORDINATOR_VERSION](key=group_id, key_type=_GROUP)
    data = ask(server, request)
    answer = FindCoordinatorResponse.decode(data, version=_FIND_COORDINATOR_VERSION, header=True)
    return None if answer.error_code else int(answer.node_id)


def fault_of_coordinator(server: str, group_id: str) -> str:
    """Ask a broker for a group that it coordinates; the name of the error that it answers with, or "".

    While it loads the groups it answers none of their members.

    Args:
        server: "host:port" of a listener without security.
        group_id: The group; need not exist.

    Raises:
        OSError: It does not answer.
    """
    request = DescribeGroupsRequest[_DESCRIBE_GROUPS_VERSION](groups=[group_id])
    data = ask(server, request)
    answer = DescribeGroupsResponse.decode(data, version=_DESCRIBE_GROUPS_VERSION, header=True)
    (group,) = answer.groups
    return str(for_code(group.error_code).__name__) if group.error_code else ""


def version_by(server: str) -> str:
    """The release of Kafka by the requests that a broker knows, "4.3"; the newest that kafka-python knows.

    Args:
        server: "host:port" of a listener without security.

    Raises:
        OSError: It does not answer.
    """
    data = ask(server, ApiVersionsRequest[0]())
    answer = ApiVersionsResponse.decode(data, version=0, header=True)
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


def ask(server: str, request: Any) -> bytes:
    """Send a request of kafka-python's to a broker; its answer, with the header.

    Raises:
        OSError: It does not answer.
    """
    host, _, port = server.rpartition(":")
    request.with_header(correlation_id=1, client_id="kafka-assignors")
    with (
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_SECONDS) as connection,
        connection.makefile("rb") as answers,
    ):
        connection.sendall(request.encode(header=True, framed=True))
        size = int(struct.unpack(">i", _exactly(answers, 4))[0])
        if not 0 <= size <= _MOST_BYTES:
            raise ConnectionError(f"{server} does not speak Kafka in plain text: an answer of {size} bytes")
        return _exactly(answers, size)


def _exactly(stream: Any, size: int) -> bytes:
    data: bytes = stream.read(size)
    if len(data) < size:
        raise ConnectionError(f"the broker closed the connection after {len(data)} of {size} bytes")
    return data
