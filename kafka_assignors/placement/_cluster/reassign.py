"""A reassignment on a real cluster, some partitions at a time, that can be broken off and gone on with.

What is to be reached is all that has to be kept: whatever is there already is left out, and what is under way
already is waited for. So a run that ended, however, is gone on with by the same again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka import TopicPartition
from kafka.errors import KafkaError
from kafka.protocol.admin import ElectionType

from kafka_assignors._cluster.admin import LOOK_SECONDS, ClusterError
from kafka_assignors.placement._cluster.topics import check_up, read_brokers, read_topics, wait_described
from kafka_assignors.placement._placement import PlacementError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors.placement._placement import Placement

AT_ONCE = 10
"""How many partitions are reassigned at once unless told otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a reassignment is.

    Attributes:
        done: How many partitions are where they are to be, those that were so from the start not counted.
        under_way: How many are being reassigned.
        total: How many were elsewhere at the start.
    """

    done: int
    under_way: int
    total: int


def reassign(
    admin: Admin,
    targets: Mapping[str, Placement],
    *,
    at_once: int = AT_ONCE,
    watch: Callable[[Progress], None] | None = None,
    allow_fenced: bool = False,
) -> int:
    """Move replicas until topics are placed like this, and let preferred leaders lead.

    Args:
        admin: The cluster.
        targets: The placements to reach; partitions that are not named stay as they are.
        at_once: How many partitions to reassign at once.
        watch: Gets the progress whenever it changes.
        allow_fenced: Whether to begin moves onto fenced brokers: they are done once those are started.

    Returns:
        How many partitions were reassigned.

    Raises:
        PlacementError: A topic, a partition or a broker does not exist, a broker is fenced, or another
            reassignment of a partition is under way. Nothing was begun.
        ClusterError: The cluster refused a partition. No more were begun; those under way are done by it.
    """
    wanted = {
        TopicPartition(topic, partition): list(replicas)
        for topic, placement in targets.items()
        for partition, replicas in placement.items()
    }
    present = _read(admin, wanted)
    running = under_way(admin, wanted)
    _check(wanted, present, running)
    new = _new_replicas(wanted, present, running)
    check_up(new, read_brokers(admin), allow_fenced=allow_fenced)
    waiting = [tp for tp, replicas in sorted(wanted.items()) if tp not in running and present[tp] != replicas]
    total = len(waiting) + len(running)
    said: Progress | None = None
    while True:
        begun, waiting = waiting[: max(0, at_once - len(running))], waiting[max(0, at_once - len(running)) :]
        if begun:
            _begin(admin, {tp: wanted[tp] for tp in begun})
        running = under_way(admin, wanted)
        progress = Progress(done=total - len(waiting) - len(running), under_way=len(running), total=total)
        if watch is not None and total and progress != said:
            watch(progress)
            said = progress
        if not running and not waiting:
            break
        time.sleep(LOOK_SECONDS)
    _wait_placed(admin, wanted)
    if total:
        _elect(admin, wanted)
    return total


def under_way(admin: Admin, partitions: Mapping[TopicPartition, object]) -> dict[TopicPartition, list[int]]:
    """Of some partitions, those whose reassignment is under way, and what they are to have after it."""
    return {
        partition: [broker for broker in state["replicas"] if broker not in state["removing_replicas"]]
        for partition, state in admin.ask(lambda client: client.list_partition_reassignments()).items()
        if partition in partitions
    }


def cancel(admin: Admin, topics: Mapping[str, Placement]) -> list[TopicPartition]:
    """Break off all that is under way in some topics; those partitions stay where they were.

    Returns:
        The partitions.

    Raises:
        ClusterError: The cluster refused one of them.
    """
    partitions = {TopicPartition(topic, p): None for topic, placement in topics.items() for p in placement}
    running = sorted(under_way(admin, partitions))
    if running:
        _begin(admin, dict.fromkeys(running))
    return running


def _read(admin: Admin, partitions: Mapping[TopicPartition, object]) -> dict[TopicPartition, list[int]]:
    topics = read_topics(admin, {tp.topic for tp in partitions})
    return {
        TopicPartition(topic, p): brokers for topic, placed in topics.items() for p, brokers in placed.items()
    }


def _new_replicas(
    wanted: Mapping[TopicPartition, list[int]],
    present: Mapping[TopicPartition, list[int]],
    running: Mapping[TopicPartition, list[int]],
) -> dict[str, dict[int, list[int]]]:
    """By topic and partition, the brokers that get a replica; those that are getting it already left out."""
    new: dict[str, dict[int, list[int]]] = {}
    for tp, replicas in wanted.items():
        if tp not in running:
            added = [broker for broker in replicas if broker not in present[tp]]
            new.setdefault(tp.topic, {})[tp.partition] = added
    return new


def _check(
    wanted: Mapping[TopicPartition, list[int]],
    present: Mapping[TopicPartition, list[int]],
    running: Mapping[TopicPartition, list[int]],
) -> None:
    for tp, replicas in sorted(wanted.items()):
        name = f"{tp.topic}-{tp.partition}"
        if tp not in present:
            raise PlacementError(f"{name} does not exist: the topic has no such partition")
        if not replicas or len({*replicas}) < len(replicas):
            raise PlacementError(f"{name} is to have replicas {replicas}: brokers must differ")
        if tp in running and running[tp] != replicas:
            raise PlacementError(
                f"{name} is on its way to {running[tp]} and is to be on {replicas}:"
                " wait for that, or cancel it"
            )


def _begin(admin: Admin, replicas: Mapping[TopicPartition, list[int] | None]) -> None:
    try:
        answers = admin.ask(lambda client: client.alter_partition_reassignments(replicas))
    except KafkaError as error:
        raise ClusterError(f"the cluster did not take the reassignment: {error}") from error
    refused = {tp: error for tp, error in answers.items() if error is not None}
    for tp, why in sorted(refused.items()):
        raise ClusterError(
            f"the cluster refused {tp.topic}-{tp.partition} on {replicas[tp]}: {why.__name__};"
            f" {len(refused)} of {len(replicas)} partitions were refused and no more begun"
        )


def _wait_placed(admin: Admin, wanted: Mapping[TopicPartition, list[int]]) -> None:
    def wrong() -> list[str]:
        present = _read(admin, wanted)
        other = [tp for tp, replicas in sorted(wanted.items()) if present[tp] != replicas]
        if not other:
            return []
        tp = other[0]
        return [
            (
                f"{tp.topic}-{tp.partition} is on {present[tp]} and not on {wanted[tp]}, although nothing"
                f" is under way: it was cancelled, or reassigned by others ({len(other)} partitions)"
            )
        ]

    wait_described(wrong)


def _elect(admin: Admin, partitions: Mapping[TopicPartition, object]) -> None:
    """Let the preferred leaders lead now: a cluster does it by itself, but may take minutes."""
    wanted: dict[str, list[int]] = {}
    for tp in sorted(partitions):
        wanted.setdefault(tp.topic, []).append(tp.partition)
    try:
        # That none is needed is no error to kafka-python.
        admin.ask(lambda client: client.elect_leaders(ElectionType.PREFERRED, wanted))
    except KafkaError as error:
        raise ClusterError(
            f"all replicas are in their places, but not all preferred leaders lead: {error}"
        ) from error
