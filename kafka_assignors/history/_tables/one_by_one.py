"""The tables' rows of a batch of the archive, record by record: what the tables mean.

`fast` makes the same of most records at a fraction of the time, and leaves the others to this.
"""

from __future__ import annotations

from functools import singledispatchmethod
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors._common.garbage import no_garbage_collection
from kafka_assignors._common.uuids import uuid_text
from kafka_assignors._groups.snapshots import KIP848
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._wire.offsets_topic import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMemberMetadata,
    ConsumerGroupMetadata,
    ConsumerGroupTargetAssignmentMember,
    ConsumerGroupTargetAssignmentMetadata,
    GroupMetadata,
    RecordError,
    UnknownRecord,
    decode_assignment,
    decode_prior_assignment,
    decode_record,
    decode_subscription,
    record_type,
)
from kafka_assignors.history._tables.decoded import DECODED, kept, microseconds, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors._model.arrays import IntArray
    from kafka_assignors._wire.offsets_topic import (
        MemberMetadata,
        Record,
        Subscription,
        TopicPartitions,
    )

CONSUMER: Final = "consumer"
"""The protocol type of groups whose members say and get what consumers do."""

_REBALANCE_TIMEOUT_SINCE: Final = 1

_OF_ARCHIVE: Final = frozenset(
    {"partition", "offset", "time", "leader_epoch", "records", "first_time", "key", "value"}
)
"""The columns that are not decoded."""
_ROWS: Final = {
    name: pa.struct([("number", pa.int64()), *[one for one in schema if one.name not in _OF_ARCHIVE]])
    for name, schema in DECODED.items()
}
"""What a row of each table is here: the number of its record in the batch, and what was decoded."""


def decode(batch: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The tables' rows of a batch; `names` has the names of topics by id, for the records of KIP-848."""
    return {
        name: table(name, batch, *rows) for name, rows in decode_numbered(batch, kept(batch), names).items()
    }


def decode_numbered(
    batch: Any, numbers: IntArray, names: Mapping[str, str]
) -> dict[str, tuple[IntArray, dict[str, Any]]]:
    """For each table the number of each row's record in the batch, and what was decoded by column."""
    indices = pa.array(numbers, pa.int64())
    keys, values = batch["key"].take(indices).to_pylist(), batch["value"].take(indices).to_pylist()
    rows = _Rows(names)
    decoded = {}
    with no_garbage_collection():
        for number, key, value in zip(numbers.tolist(), keys, values, strict=True):
            rows.add_record(number, key, value)
        for name, found in rows.found.items():
            names_of = [field.name for field in _ROWS[name]]
            columns = dict(zip(names_of, pa.array(found, _ROWS[name]).flatten(), strict=True))
            decoded[name] = np.asarray(columns.pop("number")), columns
    return decoded


def reason_of(error: RecordError) -> str:
    """Why something cannot be read, in words that Arrow can hold."""
    return str(error).encode(errors="backslashreplace").decode()


_Said = tuple["Subscription | None", "str | None"]
"""A member's subscription, and what cannot be read."""
_SAID_NOTHING: Final[_Said] = (None, None)
_OfRecord = tuple[int, str, "int | None"]
"""The number of a record in the batch, its group and its generation."""


class _Rows:
    """The rows of records by table, each a tuple as `_ROWS` has it."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.found: dict[str, list[tuple[Any, ...]]] = {name: [] for name in _ROWS}

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
        of_record = number, record.group_id, _generation(record)
        self._add(
            "records",
            *of_record,
            record_type(key),
            type(record).__name__,
            getattr(record, "member_id", None),
            record.value is None,
            size,
        )
        if record.value is not None:
            self._add_details(record, of_record, size)

    def _add(self, name: str, *row: Any) -> None:
        self.found[name].append(row)

    @singledispatchmethod
    def _add_details(self, record: Record, of_record: _OfRecord, size: int) -> None:
        """What of a record stands in the other tables."""

    @_add_details.register
    def _(self, record: GroupMetadata, of_record: _OfRecord, size: int) -> None:
        group: Any = record.value
        self._add(
            "generations",
            *of_record,
            group.protocol_type,
            group.protocol,
            group.leader,
            len(group.members),
            microseconds(group.current_state_timestamp),
            size,
            group.version,
        )
        for member in group.members:
            subscribed, problem = (
                self._add_said(of_record, group.protocol, member)
                if group.protocol_type == CONSUMER
                else _SAID_NOTHING
            )
            self._add(
                "members",
                *of_record,
                member.member_id,
                member.group_instance_id or None,
                member.client_id,
                member.client_host,
                (subscribed and subscribed.rack_id) or None,
                subscribed and subscribed.topics,
                None,
                member.session_timeout,
                member.rebalance_timeout if group.version >= _REBALANCE_TIMEOUT_SINCE else None,
                subscribed and subscribed.version,
                subscribed and subscribed.user_data,
                problem,
            )

    def _add_said(self, of_record: _OfRecord, protocol: str | None, member: MemberMetadata) -> _Said:
        """Add what a consumer said that it had, and what it was given."""
        subscribed, problem = _SAID_NOTHING
        of_member = *of_record, member.member_id
        try:
            subscribed = decode_subscription(member.subscription)
            problem = subscribed.fault
            self._add_claims(of_member, "owned", subscribed.owned_partitions, subscribed.generation_id)
            prior = decode_prior_assignment(protocol, subscribed.user_data)
            if prior is not None:
                self._add_claims(of_member, "sticky", prior.claims, prior.generation)
        except RecordError as error:
            problem = reason_of(error)
        try:
            given = decode_assignment(member.assignment)
        except RecordError as error:
            problem = reason_of(error) if problem is None else f"{problem}; {reason_of(error)}"
        else:
            for topic, ids in given.assigned_partitions.items() if given is not None else ():
                self._add("assignments", *of_member, "assigned", topic, None, ids)
        return subscribed, problem

    def _add_claims(
        self, of_member: tuple[Any, ...], source: str, claims: Mapping[str, Any], generation: int
    ) -> None:
        rows: Iterable[tuple[str | None, Any]] = claims.items()
        if not claims and generation != NO_GENERATION:
            rows = [(None, ())]
        for topic, ids in rows:
            self._add("claims", *of_member, source, generation, topic, ids)

    @_add_details.register
    def _(self, _: ConsumerGroupMetadata, of_record: _OfRecord, size: int) -> None:
        self._add_epoch(of_record, None, size)

    @_add_details.register
    def _(self, record: ConsumerGroupTargetAssignmentMetadata, of_record: _OfRecord, size: int) -> None:
        value: Any = record.value
        self._add_epoch(of_record, microseconds(value.assignment_timestamp or -1), size)

    def _add_epoch(self, of_record: _OfRecord, made: int | None, size: int) -> None:
        self._add("generations", *of_record, KIP848, None, None, None, made, size, 0)

    @_add_details.register
    def _(self, record: ConsumerGroupMemberMetadata, of_record: _OfRecord, _size: int) -> None:
        said: Any = record.value
        classic = said.classic_member_metadata
        self._add(
            "members",
            *of_record,
            record.member_id,
            said.instance_id or None,
            said.client_id,
            said.client_host,
            said.rack_id or None,
            said.subscribed_topic_names,
            said.subscribed_topic_regex or None,
            classic and classic.session_timeout_ms,
            said.rebalance_timeout_ms,
            None,
            None,
            None,
        )

    @_add_details.register
    def _(self, record: ConsumerGroupTargetAssignmentMember, of_record: _OfRecord, _size: int) -> None:
        value: Any = record.value
        self._add_partitions((*of_record, record.member_id, "target"), value.topic_partitions)

    @_add_details.register
    def _(self, record: ConsumerGroupCurrentMemberAssignment, of_record: _OfRecord, _size: int) -> None:
        has: Any = record.value
        of_member = *of_record, record.member_id
        self._add_partitions((*of_member, "current"), has.assigned_partitions)
        self._add_partitions((*of_member, "revoking"), has.partitions_pending_revocation)

    def _add_partitions(self, of_stage: tuple[Any, ...], listed: Iterable[TopicPartitions]) -> None:
        for one in listed:
            topic_id = uuid_text(one.topic_id)
            self._add("assignments", *of_stage, self._names.get(topic_id), topic_id, one.partitions)


def _generation(record: Record) -> int | None:
    """The generation that a record tells, or the epoch."""
    for name in ("generation", "epoch", "assignment_epoch", "member_epoch"):
        told = getattr(record.value, name, None)
        if told is not None:
            return int(told)
    return None
