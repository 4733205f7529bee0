"""The tables' rows of a batch of the archive, record by record: what the tables mean.

`fast` makes the same of most records at a fraction of the time, where it could be compiled.
"""

from __future__ import annotations

import base64
import gc
from contextlib import contextmanager
from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors.history.tables.decoded import DECODED, kept, microseconds, table
from kafka_assignors.history.tables.owners import encode_member, join_owners
from kafka_assignors.members import NO_GENERATION
from kafka_assignors.protocol.offsets_topic import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    GroupMetadata,
    GroupMetadataValue,
    MemberMetadata,
    RecordError,
    UnknownRecord,
    decode_assignment,
    decode_prior_assignment,
    decode_record,
    decode_subscription,
    record_type,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from uuid import UUID

    from kafka_assignors.arrays import IntArray
    from kafka_assignors.protocol.offsets_topic import Record, Subscription, TopicPartitions

CONSUMER: Final = "consumer"
"""The protocol type of groups whose members say and get what consumers do."""
KIP848: Final = "kip848"

_REBALANCE_TIMEOUT_SINCE: Final = 1

COLUMNS: Final = {
    "records": ("group", "generation", "type", "name", "member_id", "tombstone", "size"),
    "generations": (
        "group",
        "generation",
        "protocol_type",
        "protocol",
        "leader",
        "members",
        "state_time",
        "size",
        "version",
    ),
    "members": (
        "group",
        "generation",
        "member_id",
        "instance_id",
        "client_id",
        "host",
        "rack",
        "topics",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "subscription_version",
        "user_data",
        "problem",
    ),
    "assignments": ("group", "generation", "member_id", "stage", "topic", "topic_id", "partitions"),
    "claims": ("group", "generation", "member_id", "source", "claimed_generation", "topic", "partitions"),
    "rejected": ("reason",),
    "owners": ("group", "generation", "owners"),
}
"""What decoding tells, by table."""


def decode(batch: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """Decode a batch of the archive.

    Args:
        batch: Rows in schema ARCHIVE.
        names: The names of topics by id, for the records of KIP-848.

    Returns:
        A record batch for each of `DECODED`, in the order of the records and of what is in them.
    """
    return {
        name: table(name, batch, *rows) for name, rows in decode_numbered(batch, kept(batch), names).items()
    }


def decode_numbered(
    batch: Any, numbers: IntArray, names: Mapping[str, str]
) -> dict[str, tuple[IntArray, dict[str, Any]]]:
    """Decode some records of a batch.

    Args:
        batch: Rows in schema ARCHIVE.
        numbers: The numbers of the records in it.
        names: As in `decode`.

    Returns:
        For each table the number of each row's record in the batch, and what was decoded by column.
    """
    indices = pa.array(numbers, pa.int64())
    keys, values = batch["key"].take(indices).to_pylist(), batch["value"].take(indices).to_pylist()
    with _no_garbage_collection():
        return _tables(_rows(zip(numbers.tolist(), keys, values, strict=True), names))


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Hundreds of thousands of tuples are no garbage; looking for some took a quarter of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _rows(records: Iterable[tuple[int, bytes | None, bytes | None]], names: Mapping[str, str]) -> _Rows:
    rows = _Rows(names)
    for number, key, value in records:
        rows.add_record(number, key, value)
    return rows


def _tables(rows: _Rows) -> dict[str, tuple[IntArray, dict[str, Any]]]:
    decoded = {}
    for name, columns in COLUMNS.items():
        found = rows.found[name]
        record, *cells = zip(*found, strict=True) if found else ((),) * (len(columns) + 1)
        arrays = {
            column: pa.array(cell, DECODED[name].field(column).type)
            for column, cell in zip(columns, cells, strict=True)
        }
        decoded[name] = np.array(record, dtype=np.int64), arrays
    return decoded


def reason_of(error: RecordError) -> str:
    """Why something cannot be read, in words that Arrow can hold."""
    return str(error).encode(errors="backslashreplace").decode()


class _Rows:
    """The rows of records, each headed by its record's number."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in COLUMNS}
        # Those with many rows for each record.
        self._members, self._assignments, self._claims = (
            self.found[name] for name in ("members", "assignments", "claims")
        )

    def add_record(self, number: int, key: bytes | None, value: bytes | None) -> None:
        """Add the rows of a record to the tables that it has some in."""
        try:
            record = decode_record(key, value)
        except RecordError as error:
            self._add("rejected", number, reason_of(error))
            return
        assert key is not None  # noqa: S101 - a null is refused above
        if isinstance(record, UnknownRecord):
            known = f" ({record.name})" if record.name else ""
            self._add("rejected", number, f"records of type {record.type}{known} are not read here")
            return
        size = len(key) + len(value or b"")
        self._add(
            "records",
            number,
            record.group_id,
            _generation(record),
            record_type(key),
            type(record).__name__,
            getattr(record, "member_id", None),
            record.value is None,
            size,
        )
        self._add_details(record, number, size)

    def _add(self, name: str, *row: Any) -> None:
        self.found[name].append(row)

    @singledispatchmethod
    def _add_details(self, record: Record, number: int, size: int) -> None:
        """What of a record stands in the other tables."""

    @_add_details.register
    def _(self, record: GroupMetadata, number: int, size: int) -> None:
        value, group = record.value, record.group_id
        if value is None:
            self._add("owners", number, group, None, None)
            return
        self._add(
            "generations",
            number,
            group,
            value.generation,
            value.protocol_type,
            value.protocol,
            value.leader,
            len(value.members),
            microseconds(value.current_state_timestamp),
            size,
            value.version,
        )
        owners = [self._add_classic_member(number, group, value, member) for member in value.members]
        self._add("owners", number, group, value.generation, join_owners(owners))

    def _add_classic_member(
        self, number: int, group: str, value: GroupMetadataValue, member: MemberMetadata
    ) -> bytes:
        """Returns the member's part of the record's owners."""
        problems: list[str] = []
        subscription: Subscription | None = None
        assigned: Mapping[str, tuple[int, ...]] = {}
        of_member = (number, group, value.generation, member.member_id)
        instance_id = member.group_instance_id or None
        if value.protocol_type == CONSUMER:
            try:
                subscription = decode_subscription(member.subscription)
                self._add_claims(
                    of_member, "owned", subscription.owned_partitions, subscription.generation_id
                )
                prior = decode_prior_assignment(value.protocol, subscription.user_data)
                if prior is not None:
                    self._add_claims(of_member, "sticky", prior.claims, prior.generation)
            except RecordError as error:
                problems.append(reason_of(error))
            try:
                assignment = decode_assignment(member.assignment)
                assigned = {} if assignment is None else assignment.assigned_partitions
            except RecordError as error:
                problems.append(reason_of(error))
        for topic, partitions in assigned.items():
            self._assignments.append((*of_member, "assigned", topic, None, partitions))
        row = (
            *of_member,
            instance_id,
            member.client_id,
            member.client_host,
            subscription and (subscription.rack_id or None),
            subscription and subscription.topics,
            member.session_timeout,
            member.rebalance_timeout if value.version >= _REBALANCE_TIMEOUT_SINCE else None,
            subscription and subscription.version,
            subscription and subscription.user_data,
            "; ".join(problems) or None,
        )
        self._members.append(row)
        return encode_member(instance_id or member.member_id, assigned, member.assignment)

    def _add_claims(
        self, of_member: tuple[Any, ...], source: str, claims: Mapping[str, Any], generation: int
    ) -> None:
        for topic, partitions in claims.items():
            self._claims.append((*of_member, source, generation, topic, partitions))
        if not claims and generation != NO_GENERATION:
            self._claims.append((*of_member, source, generation, None, ()))

    @_add_details.register
    def _(self, record: ConsumerGroupMetadata, number: int, size: int) -> None:
        if record.value is not None:
            self._add_epoch(number, record.group_id, record.value.epoch, None, size)

    @_add_details.register
    def _(self, record: ConsumerGroupTargetAssignmentMetadata, number: int, size: int) -> None:
        if record.value is not None:
            made = microseconds(record.value.assignment_timestamp or -1)
            self._add_epoch(number, record.group_id, record.value.assignment_epoch, made, size)

    def _add_epoch(self, number: int, group: str, epoch: int, made: int | None, size: int) -> None:
        self._add("generations", number, group, epoch, KIP848, None, None, None, made, size, 0)

    @_add_details.register
    def _(self, record: ConsumerGroupMemberMetadata, number: int, _size: int) -> None:
        said = record.value
        if said is None:
            return
        classic = said.classic_member_metadata
        self._add(
            "members",
            number,
            record.group_id,
            None,
            record.member_id,
            said.instance_id or None,
            said.client_id,
            said.client_host,
            said.rack_id or None,
            said.subscribed_topic_names,
            classic and classic.session_timeout_ms,
            said.rebalance_timeout_ms,
            None,
            None,
            None,
        )

    @_add_details.register
    def _(self, record: ConsumerGroupTargetAssignmentMember, number: int, _size: int) -> None:
        if record.value is not None:
            of_member = (number, record.group_id, None, record.member_id)
            self._add_partitions(of_member, "target", record.value.topic_partitions)

    @_add_details.register
    def _(self, record: ConsumerGroupCurrentMemberAssignment, number: int, _size: int) -> None:
        has = record.value
        if has is not None:
            of_member = (number, record.group_id, has.member_epoch, record.member_id)
            self._add_partitions(of_member, "current", has.assigned_partitions)
            self._add_partitions(of_member, "revoking", has.partitions_pending_revocation)

    def _add_partitions(
        self, of_member: tuple[Any, ...], stage: str, listed: Iterable[TopicPartitions]
    ) -> None:
        for one in listed:
            topic_id = uuid_text(one.topic_id)
            topic = self._names.get(topic_id)
            self._add("assignments", *of_member, stage, topic, topic_id, one.partitions)


def _generation(record: Record) -> int | None:
    """The generation that a record tells, or the epoch."""
    for name in ("generation", "epoch", "assignment_epoch", "member_epoch"):
        told = getattr(record.value, name, None)
        if told is not None:
            return int(told)
    return None


def uuid_text(uuid: UUID) -> str:
    """A topic's id as Java prints it."""
    return base64.urlsafe_b64encode(uuid.bytes).rstrip(b"=").decode()
