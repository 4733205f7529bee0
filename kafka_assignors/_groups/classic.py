"""A record of a classic group as a snapshot; the columns of `_wire.codec` read all members at once."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

from kafka_assignors._groups.snapshots import ArchivedRecord, Partitions, Snapshot, SnapshotMember
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._wire.claims_of import claims_of
from kafka_assignors._wire.codec import read_assignments, read_subscriptions
from kafka_assignors._wire.offsets_topic import GroupMetadataValue, RecordError, decode_assignment


def classic_snapshot(record: ArchivedRecord, group: str, value: GroupMetadataValue) -> Snapshot:
    """The snapshot that a record of a classic group is.

    Members whose bytes cannot be read are there, without topics or without partitions.
    """
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
        members=tuple(sorted(decode_members(value)[0], key=lambda one: (one.identity, one.member_id))),
    )


def decode_members(value: GroupMetadataValue) -> tuple[list[SnapshotMember], list[int]]:
    """The members in the record's order, and as of which generation each claims what it does.

    What they sent is read of consumers alone.
    """
    members = [
        SnapshotMember(
            member_id=member.member_id,
            instance_id=member.group_instance_id or None,
            client_id=member.client_id,
            host=member.client_host,
            session_timeout_ms=member.session_timeout,
            rebalance_timeout_ms=member.rebalance_timeout,
        )
        for member in value.members
    ]
    if value.protocol_type != "consumer":
        return members, [NO_GENERATION] * len(members)
    columns = read_subscriptions([member.subscription for member in value.members])
    claimed, _ = claims_of(value.protocol, columns)
    each = zip(
        columns.racks,
        columns.topics_of.tolist(),
        claimed.claims.claims(),
        _read_assignments([member.assignment for member in value.members]),
        strict=True,
    )
    decoded = [
        member._replace(
            rack=rack,
            topics=columns.topics[topics],
            claims={topic: tuple(ids) for topic, ids in claims.items()},
            assignment=assignment,
        )
        for member, (rack, topics, claims, assignment) in zip(members, each, strict=True)
    ]
    return decoded, [*map(int, claimed.generations)]


def _read_assignments(blobs: list[bytes]) -> list[Partitions]:
    """The partitions in each assignment; none in one that cannot be read."""
    table, unreadable = read_assignments(blobs)
    assigned = [*map(flat, table.claims())]
    for number in unreadable:
        assigned[number] = frozenset()
        with suppress(RecordError):
            if (strict := decode_assignment(blobs[number])) is not None:
                assigned[number] = flat(strict.assigned_partitions)
    return assigned


def flat(partitions: Mapping[str, Sequence[int]]) -> Partitions:
    return frozenset((topic, partition) for topic, ids in partitions.items() for partition in ids)
