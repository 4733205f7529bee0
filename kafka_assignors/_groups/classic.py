"""A record of a classic group as a snapshot; the columns of `_wire.codec` read all members at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from kafka_assignors._groups.snapshots import Snapshot, SnapshotMember
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._wire.claims_of import claims_of
from kafka_assignors._wire.codec import read_assignments, read_subscriptions
from kafka_assignors._wire.offsets_topic import (
    GroupMetadataValue,
    MemberMetadata,
    RecordError,
    decode_assignment,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors._cluster.groups import ClassicGroup
    from kafka_assignors._groups.snapshots import ArchivedRecord, Partitions
    from kafka_assignors._model.claims import ClaimTable

_UNTOLD: Final = -1


def classic_snapshot(record: ArchivedRecord, group: str, value: GroupMetadataValue) -> Snapshot:
    """The snapshot that a record of a classic group is.

    Members whose bytes cannot be read are there, without topics or without partitions.
    """
    members = [
        SnapshotMember(
            member_id=member.member_id,
            instance_id=member.group_instance_id or None,
            client_id=member.client_id,
            host=member.client_host,
            session_timeout_ms=member.session_timeout,
            rebalance_timeout_ms=member.rebalance_timeout,
            **its._asdict(),
        )
        for member, its in zip(value.members, decode_members(value), strict=True)
    ]
    return Snapshot(
        group=group,
        generation=value.generation,
        time_us=record.time_us,
        state_time_us=value.current_state_timestamp * 1000 if value.current_state_timestamp >= 0 else None,
        partition=record.partition,
        offset=record.offset,
        leader_epoch=record.leader_epoch,
        protocol_type=value.protocol_type,
        strategy=value.protocol,
        leader=value.leader,
        members=tuple(sorted(members, key=lambda member: (member.identity, member.member_id))),
    )


def described_value(group: ClassicGroup) -> GroupMetadataValue:
    """What a record of the group would say; its generation, its leader and timeouts are missing.

    While it rebalances, its strategy and what members said are missing, too: then it is as a group whose
    members are no consumers.
    """
    return GroupMetadataValue(
        version=4,
        protocol_type=group.protocol_type if group.strategy is not None or not group.members else "",
        generation=_UNTOLD,
        protocol=group.strategy,
        leader=None,
        members=tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.host,
                rebalance_timeout=_UNTOLD,
                session_timeout=_UNTOLD,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in group.members
        ),
    )


class DecodedMember(NamedTuple):
    """What a member sent when it joined, and what it was assigned; as in `SnapshotMember`."""

    rack: str | None = None
    topics: frozenset[str] = frozenset()
    claims: Mapping[str, tuple[int, ...]] = {}
    claimed_generation: int = NO_GENERATION
    assignment: Partitions = frozenset()


def decode_members(value: GroupMetadataValue) -> list[DecodedMember]:
    """What each member sent and was assigned; nothing is known of members that are no consumers."""
    if value.protocol_type != "consumer":
        return [DecodedMember()] * len(value.members)
    blobs = [member.subscription for member in value.members]
    columns = read_subscriptions(blobs)
    claimed, _ = claims_of(value.protocol, columns)
    topics = [columns.topics[number] for number in columns.topics_of.tolist()]
    each = zip(columns.racks, topics, _by_topic(claimed.table), claimed.generations.tolist(), strict=True)
    decoded = [DecodedMember(*one) for one in each]
    assigned = _read_assignments([member.assignment for member in value.members])
    return [one._replace(assignment=had) for one, had in zip(decoded, assigned, strict=True)]


def _read_assignments(blobs: list[bytes]) -> list[Partitions]:
    """The partitions in each assignment; none in one that cannot be read."""
    table, unreadable = read_assignments(blobs)
    assigned = [flat(partitions) for partitions in _by_topic(table)]
    for number in unreadable:
        try:
            strict = decode_assignment(blobs[number])
        except RecordError:
            strict = None
        assigned[number] = frozenset() if strict is None else flat(strict.assigned_partitions)
    return assigned


def flat(partitions: Mapping[str, Sequence[int]]) -> Partitions:
    """Partitions by topic and id."""
    return frozenset((topic, partition) for topic, ids in partitions.items() for partition in ids)


def _by_topic(table: ClaimTable) -> list[dict[str, tuple[int, ...]]]:
    found: list[dict[str, tuple[int, ...]]] = [{} for _ in range(table.claimants)]
    ids = table.ids.tolist()
    at = 0
    for number, topic, size in zip(
        table.claimant.tolist(), table.topic.tolist(), table.sizes.tolist(), strict=True
    ):
        mine, name = found[number], table.names[topic]
        mine[name] = (*mine.get(name, ()), *ids[at : at + size])
        at += size
    return found
