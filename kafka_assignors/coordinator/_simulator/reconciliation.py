"""How one member of a KIP-848 group gets, step by step, from what it has to what it is to have.

First it is to keep only what it keeps. When it says that it has revoked the rest, it gets the new epoch and
what others have revoked. This is `CurrentAssignmentBuilder` of Apache Kafka 4.3.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal
from uuid import UUID

from kafka_assignors.coordinator._simulator.messages import TopicIdPartition

EpochState = Literal["STABLE", "UNREVOKED_PARTITIONS", "UNRELEASED_PARTITIONS"]
"""A member has reached its epoch's assignment; has yet to revoke partitions; or waits for others to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member, as the coordinator knows it.

    What it may have and what it has to revoke are with the epoch in which it got each.
    """

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    state: EpochState = "STABLE"
    assigned: Mapping[TopicIdPartition, int] = field(default_factory=dict)
    pending_revocation: Mapping[TopicIdPartition, int] = field(default_factory=dict)
    instance_id: str | None = None
    rack: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] = frozenset()
    assignor: str | None = None

    def reconciled_to(self, epoch: int) -> bool:
        """Whether it has the assignment of an epoch, and nothing to revoke or to wait for."""
        return self.state == "STABLE" and self.epoch == epoch


def reconcile(
    member: GroupMember,
    *,
    target: Collection[TopicIdPartition],
    target_epoch: int,
    topic_ids: Collection[UUID],
    subscription_changed: bool,
    owned: Collection[TopicIdPartition] | None,
    is_owned: Callable[[TopicIdPartition], bool],
) -> GroupMember:
    """The member's next step; the very same member if there is none.

    What it no longer subscribes to is taken from it at once, without a new target. If it does not say what it
    has, that is taken for everything that it had.
    """
    revokes = member.state == "UNREVOKED_PARTITIONS" and _still_owned(owned, member.pending_revocation)
    if revokes or member.reconciled_to(target_epoch):
        return _drop_topics(member, topic_ids, owned) if subscription_changed else member
    wanted = {partition for partition in target if partition.topic_id in topic_ids}
    kept = {partition: epoch for partition, epoch in member.assigned.items() if partition in wanted}
    revoked = {partition: epoch for partition, epoch in member.assigned.items() if partition not in wanted}
    if revoked and _still_owned(owned, revoked):
        return _to_revoke(member, kept, revoked)
    missing = wanted - kept.keys()
    # What it has just let go of itself is nobody else's.
    free = {p for p in missing if p in member.pending_revocation or not is_owned(p)}
    return replace(
        member,
        state="STABLE" if free == missing else "UNRELEASED_PARTITIONS",
        epoch=target_epoch,
        previous_epoch=member.epoch,
        assigned=kept | dict.fromkeys(free, target_epoch),
        pending_revocation={},
    )


def _still_owned(owned: Collection[TopicIdPartition] | None, pending: Mapping[TopicIdPartition, int]) -> bool:
    return owned is None or any(partition in pending for partition in owned)


def _to_revoke(
    member: GroupMember, kept: Mapping[TopicIdPartition, int], pending: Mapping[TopicIdPartition, int]
) -> GroupMember:
    return replace(
        member,
        state="UNREVOKED_PARTITIONS",
        previous_epoch=member.epoch,
        assigned=kept,
        pending_revocation=pending,
    )


def _drop_topics(
    member: GroupMember, topic_ids: Collection[UUID], owned: Collection[TopicIdPartition] | None
) -> GroupMember:
    """Take from a member what it no longer subscribes to; its epoch stays."""
    dropped = {p: epoch for p, epoch in member.assigned.items() if p.topic_id not in topic_ids}
    # Kafka takes a member that subscribes to nothing more for changed even if it had nothing.
    if not dropped and (member.topics or member.pending_revocation):
        return member
    kept = {p: epoch for p, epoch in member.assigned.items() if p not in dropped}
    pending = {**member.pending_revocation, **dropped}
    if pending and _still_owned(owned, pending):
        return _to_revoke(member, kept, pending)
    return replace(member, previous_epoch=member.epoch, assigned=kept)
