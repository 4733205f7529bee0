"""Which node coordinates a consumer group, and making it another."""

import contextlib
from collections.abc import Sequence
from typing import Any

from kafka import KafkaAdminClient, TopicPartition
from kafka.protocol.admin import ElectionType

from kafka_assignors._groups.finding import GROUPS_TOPIC, partition_for_group
from kafka_assignors.testing._brokers.errors import ClusterUnavailableError
from kafka_assignors.testing._brokers.metadata import (
    SeenPartition,
    coordinator_by,
    fault_of_coordinator,
    first_answer,
)
from kafka_assignors.testing._brokers.waiting import wait_until


def coordinator_of(servers: Sequence[str], group_id: str, timeout: float) -> int:
    """The node that coordinates a group, by the first of the brokers that answers.

    Raises ClusterUnavailableError if none of them knows in that many seconds.
    """
    found: list[int] = []

    def wrong() -> list[str]:
        for server in servers:
            with contextlib.suppress(OSError):
                if (node := coordinator_by(server, group_id)) is not None:
                    found.append(node)
                    return []
        return ["none of them knows it"]

    wait_until(wrong, timeout, f"a broker at {', '.join(servers)} to know the coordinator of {group_id}")
    return found[0]


def move_coordinator(servers: Sequence[str], group_id: str, to: int | None, timeout: float) -> int:
    """Make another node the coordinator of a group; see `Cluster.move_coordinator`."""
    now = coordinator_of(servers, group_id, timeout)  # also has the topic made
    # If groups move while Kafka 4.3.1 loads them, it may load them twice at once, and never answers for them.
    wait_until(
        lambda: _not_loaded(servers, group_id, now),
        timeout,
        f"node {now}, the coordinator of {group_id}, to load its groups",
    )
    partition = _partition(servers, group_id)
    if to is None:
        others = sorted(partition.in_sync - {now})
        if not others:
            raise ClusterUnavailableError(
                f"{GROUPS_TOPIC}-{partition.number} has no replica in sync besides node {now}'s: the "
                f"coordinator of {group_id} cannot move by itself. Take a cluster of three nodes, or name one"
            )
        to = others[0]
    replicas = [to, *(node for node in partition.replicas if node != to)][: len(partition.replicas)]
    where = TopicPartition(GROUPS_TOPIC, partition.number)
    client: Any = KafkaAdminClient(bootstrap_servers=list(servers))
    with contextlib.closing(client):
        if (error := client.alter_partition_reassignments({where: replicas})[where]) is not None:
            raise ClusterUnavailableError(
                f"the brokers refuse the replicas {replicas} for {GROUPS_TOPIC}-{partition.number}: "
                f"{error.__name__}"
            )
        wait_until(
            lambda: _not_yet(_partition(servers, group_id), replicas),
            timeout,
            f"node {to} to have {GROUPS_TOPIC}-{partition.number}",
        )
        client.elect_leaders(ElectionType.PREFERRED, {GROUPS_TOPIC: [partition.number]})
    wait_until(
        lambda: _who_says_otherwise(servers, group_id, to),
        timeout,
        f"node {to} to coordinate {group_id}",
    )
    return to


def _partition(servers: Sequence[str], group_id: str) -> SeenPartition:
    state = first_answer(servers)
    if state is None:
        raise ClusterUnavailableError(f"no broker answers at {', '.join(servers)}")
    partitions = {each.number: each for each in state.partitions if each.topic == GROUPS_TOPIC}
    return partitions[partition_for_group(group_id, len(partitions))]


def _not_loaded(servers: Sequence[str], group_id: str, node: int) -> list[str]:
    state = first_answer(servers)
    if state is None or node not in state.brokers:
        return ["no broker answers" if state is None else "it is away"]
    try:
        fault = fault_of_coordinator(state.brokers[node], group_id)
    except OSError as error:
        fault = f"it does not answer: {error}"
    return [fault] if fault else []


def _not_yet(partition: SeenPartition, replicas: Sequence[int]) -> list[str]:
    wrong = [] if list(partition.replicas) == replicas else [f"its replicas are {partition.replicas}"]
    if replicas[0] not in partition.in_sync:
        wrong.append(f"in sync are {sorted(partition.in_sync)}")
    return wrong


def _who_says_otherwise(servers: Sequence[str], group_id: str, to: int) -> list[str]:
    """What each broker of the cluster says that is not the node; members may ask any of them."""
    state = first_answer(servers)
    if state is None:
        return [f"no broker answers at {', '.join(servers)}"]
    wrong = []
    for node, address in state.brokers.items():
        try:
            found = coordinator_by(address, group_id)
        except OSError as error:
            wrong.append(f"node {node} does not answer: {error}")
        else:
            if found != to:
                wrong.append(f"node {node} says {'nobody' if found is None else found}")
    return wrong
