"""The tables' rows of records, one by one: what the tables mean. `fast` makes the same of most records."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import pyarrow as pa

from kafka_assignors._common.garbage import no_garbage_collection
from kafka_assignors._common.times import LAST_MS
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
    GroupMetadataValue,
    MemberMetadata,
    Record,
    RecordError,
    Subscription,
    TopicPartitions,
    UnknownRecord,
    decode_assignment,
    decode_prior_assignment,
    decode_record,
    decode_subscription,
    record_type,
)
from kafka_assignors.history._schemas import TABLES

_Row = dict[str, Any]
_PLACE: Final = ("partition", "offset", "time", "leader_epoch")

DECODED: Final = {name: schema for name, schema in TABLES.items() if name != "moves"}
"""The tables that a decoder makes rows of. Of `generations` there is a row for each record; see `job`."""

CONSUMER: Final = "consumer"  # the protocol type of groups whose members say and get what consumers do
REBALANCE_TIMEOUT_SINCE: Final = 1


def decode(records: Any, names: Mapping[str, str]) -> dict[str, Any]:
    """The tables' rows of a batch of records; `names` has the names of topics by id, for those of KIP-848."""
    rows = _Rows(names)
    places = zip(
        *(records[name].cast(pa.int64()).to_pylist() for name in ("partition", "offset", "timestamp")),
        records["leader_epoch"].to_pylist(),
        records["key"].to_pylist(),
        records["value"].to_pylist(),
        strict=True,
    )
    with no_garbage_collection():
        for *place, key, value in places:
            rows.add_record(dict(zip(_PLACE, place, strict=True)), key, value)
        return {
            name: pa.RecordBatch.from_pylist(found, schema=DECODED[name])
            for name, found in rows.found.items()
        }


def reason_of(error: RecordError) -> str:
    """Why something cannot be read, in words that Arrow can hold."""
    return str(error).encode(errors="backslashreplace").decode()


class _Rows:
    """The rows of records by table, each with at least the columns that are not null."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self.found: dict[str, list[_Row]] = {name: [] for name in DECODED}

    def add_record(self, place: _Row, key: bytes | None, value: bytes | None) -> None:
        """Add the rows of a record to the tables that it has some in."""
        try:
            record = decode_record(key, value)
        except RecordError as error:
            self._add("rejected", place, key=key, value=value, reason=reason_of(error))
            return
        if isinstance(record, UnknownRecord):
            known = f" ({record.name})" if record.name else ""
            reason = f"records of type {record.type}{known} are not read here"
            self._add("rejected", place, key=key, value=value, reason=reason)
            return
        assert key is not None  # noqa: S101 - a null is refused above
        one = {
            **place,
            "group": record.group_id,
            "generation": _generation(record),
            "member_id": getattr(record, "member_id", None),
            "size": len(key) + len(value or b""),
        }
        name, tombstone = type(record).__name__, record.value is None
        self._add("records", one, type=record_type(key), name=name, tombstone=tombstone)
        if not tombstone:
            self._add_details(record, record.value, one)

    def _add(self, table: str, row: _Row, **columns: Any) -> None:
        self.found[table].append(row | columns)

    def _add_generation(self, one: _Row, protocol_type: str, made_ms: int = -1, **columns: Any) -> None:
        row = {"version": 0, "records": 1, "first_time": one["time"], "state_time": _microseconds(made_ms)}
        self._add("generations", one | row, protocol_type=protocol_type, **columns)

    def _add_details(self, record: Record, value: Any, one: _Row) -> None:
        """What of a record stands in the other tables."""
        match record:
            case GroupMetadata():
                self._add_classic(one, value)
            case ConsumerGroupMetadata():
                self._add_generation(one, KIP848)
            case ConsumerGroupTargetAssignmentMetadata():
                self._add_generation(one, KIP848, value.assignment_timestamp or -1)
            case ConsumerGroupMemberMetadata():
                classic = value.classic_member_metadata
                self._add(
                    "members",
                    one,
                    instance_id=value.instance_id or None,
                    client_id=value.client_id,
                    host=value.client_host,
                    rack=value.rack_id or None,
                    topics=value.subscribed_topic_names,
                    topic_regex=value.subscribed_topic_regex or None,
                    session_timeout_ms=classic and classic.session_timeout_ms,
                    rebalance_timeout_ms=value.rebalance_timeout_ms,
                )
            case ConsumerGroupTargetAssignmentMember():
                self._add_partitions(one, "target", value.topic_partitions)
            case ConsumerGroupCurrentMemberAssignment():
                self._add_partitions(one, "current", value.assigned_partitions)
                self._add_partitions(one, "revoking", value.partitions_pending_revocation)

    def _add_classic(self, one: _Row, group: GroupMetadataValue) -> None:
        self._add_generation(
            one,
            group.protocol_type,
            group.current_state_timestamp,
            protocol=group.protocol,
            leader=group.leader,
            members=len(group.members),
            version=group.version,
        )
        has_timeout = group.version >= REBALANCE_TIMEOUT_SINCE
        for member in group.members:
            of_member = {**one, "member_id": member.member_id}
            said: Any = None
            problem = None
            if group.protocol_type == CONSUMER:
                said, problem = self._add_said(of_member, group.protocol, member)
            self._add(
                "members",
                of_member,
                instance_id=member.group_instance_id or None,
                client_id=member.client_id,
                host=member.client_host,
                session_timeout_ms=member.session_timeout,
                rebalance_timeout_ms=member.rebalance_timeout if has_timeout else None,
                rack=(said and said.rack_id) or None,
                topics=said and said.topics,
                subscription_version=said and said.version,
                user_data=said and said.user_data,
                problem=problem,
            )

    def _add_said(
        self, of_member: _Row, protocol: str | None, member: MemberMetadata
    ) -> tuple[Subscription | None, str | None]:
        """Add what a consumer said that it had, and what it was given; gives what else it said."""
        subscribed, problems = None, []
        try:
            subscribed = decode_subscription(member.subscription)
            if subscribed.fault is not None:
                problems.append(subscribed.fault)
            self._add_claims(of_member, "owned", subscribed.owned_partitions, subscribed.generation_id)
            prior = decode_prior_assignment(protocol, subscribed.user_data)
            if prior is not None:
                self._add_claims(of_member, "sticky", prior.claims, prior.generation)
        except RecordError as error:
            problems = [reason_of(error)]
        try:
            given = decode_assignment(member.assignment)
        except RecordError as error:
            problems.append(reason_of(error))
        else:
            for topic, ids in given.assigned_partitions.items() if given is not None else ():
                self._add("assignments", of_member, stage="assigned", topic=topic, partitions=ids)
        return subscribed, "; ".join(problems) or None

    def _add_claims(self, of_member: _Row, source: str, claims: Mapping[str, Any], generation: int) -> None:
        rows: Iterable[tuple[str | None, Any]] = claims.items()
        if not claims and generation != NO_GENERATION:
            rows = [(None, ())]
        row = {**of_member, "source": source, "claimed_generation": generation}
        for topic, ids in rows:
            self._add("claims", row, topic=topic, partitions=ids)

    def _add_partitions(self, one: _Row, stage: str, listed: Iterable[TopicPartitions]) -> None:
        for some in listed:
            topic_id = uuid_text(some.topic_id)
            topic = self._names.get(topic_id)
            self._add(
                "assignments", one, stage=stage, topic=topic, topic_id=topic_id, partitions=some.partitions
            )


def _generation(record: Record) -> int | None:
    """The generation that a record has, or the epoch."""
    for name in ("generation", "epoch", "assignment_epoch", "member_epoch"):
        found = getattr(record.value, name, None)
        if found is not None:
            return int(found)
    return None


def _microseconds(milliseconds: int) -> int | None:
    """A time as the archive has it; None for one that is not there, or that no clock would show."""
    return milliseconds * 1000 if 0 <= milliseconds <= LAST_MS else None
