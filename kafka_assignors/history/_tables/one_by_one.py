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
from kafka_assignors.history._tables.columns import arrays_of, cells_of, spread_lists
from kafka_assignors.history._tables.decoded import kept, microseconds, table

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

_COLUMNS: Final = {
    "generations": (
        "protocol_type",
        "protocol",
        "leader",
        "members",
        "state_time",
        "size",
        "version",
    ),
    "members": (
        "member_id",
        "instance_id",
        "client_id",
        "host",
        "rack",
        "topics",
        "topic_regex",
        "session_timeout_ms",
        "rebalance_timeout_ms",
        "subscription_version",
        "user_data",
        "problem",
    ),
    "rejected": ("reason",),
}
"""What is decoded of each record, by table, beside the group and generation of the record."""
_WITH_LISTS: Final = {
    "assignments": ("member_id", "stage", "topic_id"),
    "claims": ("member_id", "source", "claimed_generation"),
}
"""The same of tables that have a row for each topic; what was decoded ends with partition ids by topic."""
_OF_RECORD: Final = ("group", "generation", "type", "name", "member_id", "tombstone", "size")


def decode(batch: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The tables' rows of a batch; `names` has the names of topics by id, for the records of KIP-848."""
    return {
        name: table(name, batch, *rows) for name, rows in decode_numbered(batch, kept(batch), names).items()
    }


def decode_numbered(
    batch: Any, numbers: IntArray, names: Mapping[str, str]
) -> dict[str, tuple[IntArray, dict[str, Any]]]:
    """Decode those records of a batch that have these numbers.

    Returns:
        For each table the number of each row's record in the batch, and what was decoded by column.
    """
    indices = pa.array(numbers, pa.int64())
    keys, values = batch["key"].take(indices).to_pylist(), batch["value"].take(indices).to_pylist()
    rows = _Rows(names)
    with no_garbage_collection():
        for number, key, value in zip(numbers.tolist(), keys, values, strict=True):
            rows.add_record(number, key, value)
        return _tables(rows)


def _tables(rows: _Rows) -> dict[str, tuple[IntArray, dict[str, Any]]]:
    found = rows.found
    records, of_records = arrays_of("records", _OF_RECORD, cells_of(_OF_RECORD, found["records"]))
    decoded = {"records": (records, of_records)}
    for name, columns in _COLUMNS.items():
        decoded[name] = arrays_of(name, columns, cells_of(columns, found[name]))
    with_lists = {name: cells_of((*columns, "lists"), found[name]) for name, columns in _WITH_LISTS.items()}
    spread = spread_lists({name: cells.pop() for name, cells in with_lists.items()})
    for name, cells in with_lists.items():
        numbers, arrays = arrays_of(name, _WITH_LISTS[name], cells)
        row, lists = spread[name]
        arrays = {column: array.take(pa.array(row)) for column, array in arrays.items()} | lists
        decoded[name] = numbers[row], arrays
    for name in {*decoded} - {"records", "rejected"}:
        numbers, arrays = decoded[name]
        place = pa.array(np.searchsorted(records, numbers))
        arrays |= {column: of_records[column].take(place) for column in ("group", "generation")}
    return decoded


def reason_of(error: RecordError) -> str:
    """Why something cannot be read, in words that Arrow can hold."""
    return str(error).encode(errors="backslashreplace").decode()


_Said = tuple["Subscription | None", "str | None"]
"""A member's subscription, and what cannot be read."""
_SAID_NOTHING: Final[_Said] = (None, None)
_NO_TOPIC: Final[Mapping[str | None, tuple[int, ...]]] = {None: ()}


class _Rows:
    """The rows of records, each headed by its record's number."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.found: dict[str, list[tuple[Any, ...]]] = {
            name: [] for name in ("records", *_COLUMNS, *_WITH_LISTS)
        }
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
        group = record.value
        if group is None:
            return
        self._add(
            "generations",
            number,
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
                self._add_said(number, group.protocol, member)
                if group.protocol_type == CONSUMER
                else _SAID_NOTHING
            )
            self._members.append(
                (
                    number,
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
            )

    def _add_said(self, number: int, protocol: str | None, member: MemberMetadata) -> _Said:
        """Add what a consumer said that it had, and what it was given."""
        subscribed, problem = _SAID_NOTHING
        try:
            subscribed = decode_subscription(member.subscription)
            problem = subscribed.fault
            self._add_claims(
                number,
                member.member_id,
                "owned",
                subscribed.owned_partitions,
                subscribed.generation_id,
            )
            prior = decode_prior_assignment(protocol, subscribed.user_data)
            if prior is not None:
                self._add_claims(number, member.member_id, "sticky", prior.claims, prior.generation)
        except RecordError as error:
            problem = reason_of(error)
        try:
            given = decode_assignment(member.assignment)
        except RecordError as error:
            problem = reason_of(error) if problem is None else f"{problem}; {reason_of(error)}"
        else:
            if given is not None and given.assigned_partitions:
                lists = given.assigned_partitions
                self._assignments.append((number, member.member_id, "assigned", None, lists))
        return subscribed, problem

    def _add_claims(
        self, number: int, member_id: str, source: str, claims: Mapping[str, Any], generation: int
    ) -> None:
        if claims:
            self._claims.append((number, member_id, source, generation, claims))
        elif generation != NO_GENERATION:
            self._claims.append((number, member_id, source, generation, _NO_TOPIC))

    @_add_details.register
    def _(self, record: ConsumerGroupMetadata, number: int, size: int) -> None:
        if record.value is not None:
            self._add_epoch(number, None, size)

    @_add_details.register
    def _(self, record: ConsumerGroupTargetAssignmentMetadata, number: int, size: int) -> None:
        if record.value is not None:
            made = microseconds(record.value.assignment_timestamp or -1)
            self._add_epoch(number, made, size)

    def _add_epoch(self, number: int, made: int | None, size: int) -> None:
        self._add("generations", number, KIP848, None, None, None, made, size, 0)

    @_add_details.register
    def _(self, record: ConsumerGroupMemberMetadata, number: int, _size: int) -> None:
        said = record.value
        if said is None:
            return
        classic = said.classic_member_metadata
        self._add(
            "members",
            number,
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
    def _(self, record: ConsumerGroupTargetAssignmentMember, number: int, _size: int) -> None:
        if record.value is not None:
            self._add_partitions(number, record.member_id, "target", record.value.topic_partitions)

    @_add_details.register
    def _(self, record: ConsumerGroupCurrentMemberAssignment, number: int, _size: int) -> None:
        has = record.value
        if has is not None:
            self._add_partitions(number, record.member_id, "current", has.assigned_partitions)
            self._add_partitions(number, record.member_id, "revoking", has.partitions_pending_revocation)

    def _add_partitions(
        self, number: int, member_id: str, stage: str, listed: Iterable[TopicPartitions]
    ) -> None:
        for one in listed:
            topic_id = uuid_text(one.topic_id)
            topic = self._names.get(topic_id)
            self._assignments.append((number, member_id, stage, topic_id, {topic: one.partitions}))


def _generation(record: Record) -> int | None:
    """The generation that a record tells, or the epoch."""
    for name in ("generation", "epoch", "assignment_epoch", "member_epoch"):
        told = getattr(record.value, name, None)
        if told is not None:
            return int(told)
    return None
