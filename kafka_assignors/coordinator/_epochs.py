"""Groups of KIP-848 and share groups of a running cluster, and how far groups are behind."""

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
    describe_share,
    end_offsets,
    read_topics,
)
from kafka_assignors._common.waiting import Deadline
from kafka_assignors._groups.epochs import SETTLED, EpochLook
from kafka_assignors._groups.lag import find_lag, lag_partitions
from kafka_assignors.coordinator._live import OtherProtocolError, find_coordinator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors._cluster.groups import Partition, Refused, Topic
    from kafka_assignors._groups.account import GroupAccount
    from kafka_assignors._groups.lag import GroupLag
    from kafka_assignors.coordinator._live import GroupCoordinator

    Describe = Callable[[Admin, Sequence[str]], dict[str, EpochGroup | Refused]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveEpochGroup:
    """A group of KIP-848, or a share group, on its cluster.

    Attributes:
        looks: How its coordinator described it, at least once; several times if it was on its way.
        coordinator: Its coordinator.
        topics: The topics that there are.
        committed: The offsets that it has committed; none of a share group, which has no such offsets.
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
    """Read a group of KIP-848, or a share group.

    Args:
        admin: The cluster.
        group_id: The group.
        observe: For how many seconds to look at it while it is not settled.

    Raises:
        OtherProtocolError: It is neither.
        ClusterError: The cluster does not say.
    """
    try:
        looks = _look(admin, group_id, describe_consumer, observe) or _look(
            admin, group_id, describe_share, observe
        )
        if not looks:
            raise OtherProtocolError(
                f"the cluster has no group {group_id!r} of a protocol that can be explained: of the classic"
                " one, KIP-848's, or share groups'"
            )
        committed = (
            committed_offsets(admin, [group_id])[group_id] if looks[-1].group.kind == "consumer" else {}
        )
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


def _look(admin: Admin, group_id: str, describe: Describe, observe: float) -> tuple[EpochLook, ...]:
    """Have the group described, while it is not settled again and again; nothing if it is of another type."""
    deadline = Deadline(observe)
    looks = list[EpochLook]()
    while True:
        try:
            group = describe(admin, [group_id])[group_id]
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
