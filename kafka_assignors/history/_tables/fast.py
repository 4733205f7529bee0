"""The tables' rows of a batch of the archive, by the compiled codec: nearly all of its records in one call.

That takes the records of consumers' classic groups in versions 0 to 3, as nearly all are. All else
`one_by_one` decodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors._common.times import LAST_MS
from kafka_assignors.history import _native as native
from kafka_assignors.history._native import int32s, numbers
from kafka_assignors.history._schemas import TIME
from kafka_assignors.history._tables import one_by_one
from kafka_assignors.history._tables.one_by_one import CONSUMER, DECODED, REBALANCE_TIMEOUT_SINCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors._model.arrays import IntArray
    from kafka_assignors.history._native import Columns

    Texts = tuple[bytes, bytes]

_GROUP_METADATA: Final = 2

SOURCES: Final = ["owned", "sticky"]
"""Of claims, in the order in which they stand for each member."""


def decode(batch: Any, names: Mapping[str, str], columns: Columns | None) -> list[dict[str, Any]]:
    """The tables' rows of records: of those that the codec took, and of the others.

    `columns` is what `_native.decode` makes of the batch; None if the codec was not compiled. Strings can be
    dictionary-encoded.
    """
    if columns is None:
        return [one_by_one.decode(batch, names)]
    taken = numbers(columns[0]["record"])
    others = np.setdiff1d(np.arange(batch.num_rows), taken, assume_unique=True)
    rest = batch.take(pa.array(others))
    return [_rows(batch, *columns), *([one_by_one.decode(rest, names)] if others.size else ())]


def _table(name: str, batch: Any, record: IntArray, columns: Mapping[str, Any]) -> Any:
    """The rows of a table: (R,) the number of each row's record in the batch, and what was decoded."""
    indices = pa.array(record, pa.int64())

    def of_record(column: str) -> Any:
        if column == "records":
            return _repeat(1, len(record), pa.int32())
        return batch["timestamp" if column in {"time", "first_time"} else column].take(indices)

    schema = DECODED[name]
    arrays = [columns[one] if one in columns else of_record(one) for one in schema.names]
    fields = [field.with_type(array.type) for field, array in zip(schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _binary(bounds: bytes, data: bytes, valid: Any) -> Any:
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    if not valid.all():
        buffers[0] = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(bounds) // 4 - 1, buffers)


def _rows(batch: Any, columns: Mapping[str, bytes], texts: Mapping[str, Texts]) -> dict[str, Any]:
    """The rows of each table of the records that the compiled codec takes."""
    record, member_record = numbers(columns["record"]), numbers(columns["member_record"])
    count = record.size
    size = pa.array(_sizes(batch["key"])[record] + _sizes(batch["value"])[record], pa.int32())
    of_group = {
        "group": native.strings(columns["group"], texts["groups"]),
        "generation": int32s(columns["generation"]),
        "size": size,
    }
    indices = pa.array(member_record)
    of_member = {
        "group": of_group["group"].take(indices),
        "generation": of_group["generation"].take(indices),
        "member_id": native.strings(columns["member_id"], texts["members"]),
    }
    of_record = {
        "type": _repeat(_GROUP_METADATA, count, pa.int16()),
        "name": _repeat("GroupMetadata", count, pa.string()),
        "member_id": pa.nulls(count, pa.string()),
        "tombstone": _repeat(False, count, pa.bool_()),
    }
    of_generation = {
        "protocol_type": _repeat(CONSUMER, count, pa.string()),
        "protocol": native.strings(columns["protocol"], texts["protocols"]),
        "leader": native.strings(columns["leader"], texts["members"]),
        "members": int32s(columns["members"]),
        "state_time": _microseconds(np.frombuffer(columns["state_time"], dtype=np.int64)),
        "version": _int16s(columns["version"]),
    }

    def of_topics(name: str, prefix: str, **others: Any) -> Any:
        member = numbers(columns[f"{prefix}_member"])
        of_topic = {column: array.take(pa.array(member)) for column, array in of_member.items()}
        of_topic["topic"] = native.strings(columns[f"{prefix}_topic"], texts["topics"])
        of_topic["partitions"] = _lists(columns[f"{prefix}_bounds"], int32s(columns[f"{prefix}_ids"]))
        return _table(name, batch, record[member_record[member]], of_topic | others)

    given = numbers(columns["assigned_member"]).size
    return {
        "records": _table("records", batch, record, of_group | of_record),
        "generations": _table("generations", batch, record, of_group | of_generation),
        "members": _table("members", batch, record[member_record], of_member | _members(columns, texts)),
        "assignments": of_topics(
            "assignments",
            "assigned",
            stage=_dictionary(np.zeros(given, dtype=np.int32), ["assigned"]),
            topic_id=pa.nulls(given, pa.string()),
        ),
        "claims": of_topics(
            "claims",
            "claimed",
            source=_dictionary(numbers(columns["claim_source"]), SOURCES),
            claimed_generation=int32s(columns["claim_generation"]),
        ),
    }


def _members(columns: Mapping[str, bytes], texts: Mapping[str, Texts]) -> dict[str, Any]:
    """What of members stands in their own table alone."""
    version = numbers(columns["version"])[numbers(columns["member_record"])]
    timeout = numbers(columns["rebalance_timeout_ms"])
    nothing = pa.nulls(version.size, pa.string())
    return {
        "instance_id": native.strings(columns["instance_id"], texts["instances"]),
        "client_id": native.strings(columns["client_id"], texts["clients"]),
        "host": native.strings(columns["host"], texts["hosts"]),
        "rack": native.strings(columns["rack"], texts["racks"]),
        "topics": _lists(columns["topics_bounds"], native.strings(columns["topics"], texts["topics"])),
        "topic_regex": nothing,
        "session_timeout_ms": int32s(columns["session_timeout_ms"]),
        "rebalance_timeout_ms": pa.array(timeout, mask=version < REBALANCE_TIMEOUT_SINCE),
        "subscription_version": _int16s(columns["subscription_version"]),
        "user_data": _binary(
            columns["user_data_bounds"], columns["user_data"], numbers(columns["user_data_size"]) >= 0
        ),
        "problem": nothing,
    }


def _int16s(raw: bytes) -> Any:
    return pa.array(numbers(raw), pa.int16())


def _microseconds(milliseconds: IntArray) -> Any:
    """Times as the archive has them; null for those that are not there, or that no clock would show."""
    shown = (milliseconds >= 0) & (milliseconds <= LAST_MS)
    return pa.array(np.where(shown, milliseconds, 0) * 1000, pa.int64(), mask=~shown).cast(TIME)


def _sizes(array: Any) -> IntArray:
    """How many bytes each row has."""
    bounds = np.frombuffer(array.buffers()[1], dtype=np.int32)
    return np.diff(bounds[array.offset : array.offset + len(array) + 1]).astype(np.int64)


def _repeat(value: Any, count: int, kind: Any) -> Any:
    return pa.repeat(pa.scalar(value, kind), count)


def _dictionary(numbers: Any, values: list[str]) -> Any:
    """A dictionary-encoded array of few values."""
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(values))


def _lists(bounds: Any, values: Any) -> Any:
    """An array of lists; `bounds` is a buffer of L + 1 int32, where each begins and the last ends."""
    kind = pa.list_(pa.field("element", values.type, nullable=False))
    return pa.Array.from_buffers(
        kind, memoryview(bounds).nbytes // 4 - 1, [None, pa.py_buffer(bounds)], children=[values]
    )
