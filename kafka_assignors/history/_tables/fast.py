"""The tables' rows of most records of a batch, by the compiled codec; all else `one_by_one` decodes."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._common.times import LAST_MS
from kafka_assignors._model.arrays import IntArray
from kafka_assignors.history._arrow import Columns, named, numbers, texts
from kafka_assignors.history._schemas import TIME
from kafka_assignors.history._tables import one_by_one
from kafka_assignors.history._tables.one_by_one import CONSUMER, DECODED, REBALANCE_TIMEOUT_SINCE

_SOURCES: Final = pa.array(["owned", "sticky"])
_DICTIONARIES: Final = {
    "group": "groups",
    "protocol": "protocols",
    "leader": "members",
    "member_id": "members",
    "instance_id": "instances",
    "client_id": "clients",
    "host": "hosts",
    "rack": "racks",
    "topics": "topics",
    "assigned_topic": "topics",
    "claimed_topic": "topics",
}
"""The codec's columns of strings, and which dictionary each has the numbers of. All others are of numbers."""


def decode(batch: Any, names: Mapping[str, str], columns: Columns | None) -> list[dict[str, Any]]:
    """The rows of records that `_arrow.decode` took, with strings dictionary-encoded, and of the others."""
    if columns is None:
        return [one_by_one.decode(batch, names)]
    taken = numbers(columns[0]["record"])
    others = np.setdiff1d(np.arange(batch.num_rows), taken, assume_unique=True)
    rest = batch.take(pa.array(others))
    return [_rows(batch, _Columns(*columns)), *([one_by_one.decode(rest, names)] if others.size else ())]


class _Columns(NamedTuple):
    """What the codec has decoded, as arrays of Arrow."""

    raw: Mapping[str, bytes]
    dictionaries: Mapping[str, tuple[bytes, bytes]]

    def numbers(self, name: str) -> IntArray:
        return numbers(self.raw[name])  # type: ignore[no-any-return]

    def array(self, name: str) -> Any:
        if name in _DICTIONARIES:
            return named(self.raw[name], self.dictionaries[_DICTIONARIES[name]])
        return pa.array(self.numbers(name), pa.int16() if name.endswith("version") else pa.int32())

    def arrays(self, *names: str) -> dict[str, Any]:
        return {name: self.array(name) for name in names}

    def lists(self, name: str, values: str) -> Any:
        elements = self.array(values)
        kind = pa.list_(pa.field("element", elements.type, nullable=False))
        return pa.ListArray.from_arrays(pa.array(self.numbers(f"{name}_bounds")), elements, type=kind)


def _rows(batch: Any, columns: _Columns) -> dict[str, Any]:
    """The rows of each table of the records that the compiled codec takes."""
    count = columns.numbers("record").size
    size = pc.add(pc.binary_length(batch["key"]), pc.binary_length(batch["value"]))
    records = {
        **columns.arrays("record", "group", "generation", "protocol", "leader", "members", "version"),
        "name": pa.repeat("GroupMetadata", count),
        "tombstone": pa.repeat(pa.scalar(value=False), count),
        "size": size.take(columns.array("record")),
        "protocol_type": pa.repeat(CONSUMER, count),
        "records": pa.repeat(pa.scalar(1, pa.int32()), count),
        "state_time": _microseconds(np.frombuffer(columns.raw["state_time"], dtype=np.int64)),
    }
    members = _members(columns, records)
    assigned = _of_topics(columns, members, "assigned")
    assigned["stage"] = pa.repeat("assigned", len(assigned["topic"]))
    claimed = _of_topics(columns, members, "claimed")
    claimed["source"] = pa.DictionaryArray.from_arrays(columns.array("claim_source"), _SOURCES)
    claimed["claimed_generation"] = columns.array("claim_generation")
    tables = {
        "records": records,
        "generations": records,
        "members": members,
        "assignments": assigned,
        "claims": claimed,
    }
    return {name: _table(name, batch, of_table) for name, of_table in tables.items()}


def _members(columns: _Columns, records: Mapping[str, Any]) -> dict[str, Any]:
    whose = columns.array("member_record")
    version = columns.numbers("version")[columns.numbers("member_record")]
    user_data = texts((columns.raw["user_data_bounds"], columns.raw["user_data"]), pa.binary())
    is_there = pa.array(columns.numbers("user_data_size") >= 0)
    return {
        **{name: records[name].take(whose) for name in ("record", "group", "generation")},
        **columns.arrays("member_id", "instance_id", "client_id", "host", "rack"),
        **columns.arrays("session_timeout_ms", "subscription_version"),
        "topics": columns.lists("topics", "topics"),
        "rebalance_timeout_ms": pa.array(
            columns.numbers("rebalance_timeout_ms"), mask=version < REBALANCE_TIMEOUT_SINCE
        ),
        "user_data": pc.if_else(is_there, user_data, None),
    }


def _of_topics(columns: _Columns, members: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """What rows for each topic of a member have."""
    whose = columns.array(f"{prefix}_member")
    return {
        **{name: members[name].take(whose) for name in ("record", "group", "generation", "member_id")},
        "topic": columns.array(f"{prefix}_topic"),
        "partitions": columns.lists(prefix, f"{prefix}_ids"),
    }


def _table(name: str, batch: Any, columns: Mapping[str, Any]) -> Any:
    """A table's rows: what was decoded, and else what the batch has of the records, or null."""
    indices = columns["record"]

    def column(field: pa.Field) -> Any:
        if field.name in columns:
            return columns[field.name]
        there = "timestamp" if field.name in {"time", "first_time"} else field.name
        return (
            batch[there].take(indices) if there in batch.schema.names else pa.nulls(len(indices), field.type)
        )

    arrays = [*map(column, DECODED[name])]
    fields = [field.with_type(array.type) for field, array in zip(DECODED[name], arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _microseconds(milliseconds: IntArray) -> Any:
    """Times as the archive has them; null for those that are not there, or that no clock would show."""
    shown = (milliseconds >= 0) & (milliseconds <= LAST_MS)
    return pa.array(np.where(shown, milliseconds, 0) * 1000, pa.int64(), mask=~shown).cast(TIME)
