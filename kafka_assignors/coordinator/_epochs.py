"""Groups of KIP-848 of a running cluster, and how far groups are behind."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka.errors import IncompatibleBrokerVersion, KafkaError

from kafka_assignors._cluster.admin import LOOK_SECONDS, ClusterError
from kafka_assignors._cluster.groups import (
    EpochGroup,
    committed_offsets,
    describe_consumer,
    end_offsets,
    list_groups,
    read_topics,
)
from kafka_assignors._common.waiting import Deadline
from kafka_assignors._groups.epochs import SETTLED, EpochLook
from kafka_assignors._groups.lag import find_lag, lag_partitions
from kafka_assignors.coordinator._live import OtherProtocolError, find_coordinator

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors._cluster.groups import Partition, Topic
    from kafka_assignors._groups.account import GroupAccount
    from kafka_assignors._groups.lag import GroupLag
    from kafka_assignors.coordinator._live import GroupCoordinator


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveEpochGroup:
    """A group of KIP-848 on its cluster.

    Attributes:
        looks: How its coordinator described it, at least once; several times if it was on its way.
        coordinator: Its coordinator.
        topics: The topics that there are.
        committed: The offsets that it has committed.
    """

    looks: tuple[EpochLook, ...]
    coordinator: GroupCoordinator
    topics: Mapping[str, Topic]
    committed: Mapping[Partition, int]

    @property
    def partition_ids(self) -> dict[str, tuple[int, ...]]:
        """The partition ids of each topic that there is."""
        return {name: topic.ids for name, topic in self.topics.items()}


def read_epoch_group(admin: Admin, group_id: str, *, observe: float = 0.0) -> LiveEpochGroup:
    """Read a group of KIP-848.

    Args:
        admin: The cluster.
        group_id: The group.
        observe: For how many seconds to look at it while it is not settled.

    Raises:
        OtherProtocolError: It is none.
        ClusterError: The cluster does not say.
    """
    try:
        looks = _look(admin, group_id, observe)
        if not looks:
            if any((one.group_id, one.kind) == (group_id, "share") for one in list_groups(admin)):
                raise OtherProtocolError(f"group {group_id!r} is a share group: its members are not read")
            raise OtherProtocolError(
                f"the cluster has no group {group_id!r} of a protocol that can be explained: of the classic"
                " one, or KIP-848's"
            )
        committed = committed_offsets(admin, [group_id])[group_id]
        return LiveEpochGroup(
            looks=looks,
            coordinator=find_coordinator(admin, group_id),
            topics=read_topics(admin),
            committed=committed if isinstance(committed, dict) else {},
        )
    except KafkaError as error:
        raise ClusterError(f"cannot read group {group_id!r}: {error}") from error


def read_lag(
    admin: Admin, account: GroupAccount, topics: Mapping[str, Topic], committed: Mapping[Partition, int]
) -> GroupLag:
    """How far a group is behind.

    Args:
        admin: The cluster.
        account: The group.
        topics: The topics that there are.
        committed: What it has committed, read before.

    Raises:
        ClusterError: The cluster does not say where partitions end.
    """
    owned = {member.member_id: member.assignment for member in account.members}
    subscribed = {topic for member in account.members for topic in member.topics}
    ids = {name: topic.ids for name, topic in topics.items()}
    try:
        ends = end_offsets(admin, lag_partitions(owned, subscribed, ids, committed), topics)
    except KafkaError as error:
        raise ClusterError(f"cannot read where partitions end: {error}") from error
    return find_lag(owned, subscribed, ids, committed, ends)


def _look(admin: Admin, group_id: str, observe: float) -> tuple[EpochLook, ...]:
    """Have the group described, while it is not settled again and again; nothing if it is of another type."""
    deadline = Deadline(observe)
    looks = list[EpochLook]()
    while True:
        try:
            group = describe_consumer(admin, [group_id])[group_id]
        except IncompatibleBrokerVersion:
            return ()
        if not isinstance(group, EpochGroup):
            if not group.unknown:
                raise ClusterError(f"the coordinator does not describe group {group_id!r}: {group.why}")
            return ()
        looks.append(EpochLook(time.time_ns() // 1_000_000, group))
        if group.state in SETTLED or deadline.passed:
            return tuple(looks)
        time.sleep(LOOK_SECONDS)
