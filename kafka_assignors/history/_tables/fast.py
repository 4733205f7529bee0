"""The tables' rows of a batch of the archive, by the compiled codec: nearly all of its records in one call.

That takes the records of consumers' classic groups in versions 0 to 3, as nearly all are. All else
`one_by_one` decodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kafka_assignors._common.times import LAST_MS
from kafka_assignors.history._native import numbers, strings, texts
from kafka_assignors.history._schemas import TIME
from kafka_assignors.history._tables import one_by_one
from kafka_assignors.history._tables.one_by_one import CONSUMER, DECODED, REBALANCE_TIMEOUT_SINCE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors._model.arrays import IntArray
    from kafka_assignors.history._native import Columns

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


def _rows(batch: Any, raw: Mapping[str, bytes], dictionaries: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of each table of the records that the compiled codec takes."""
    record, of_member = numbers(raw["record"]), numbers(raw["member_record"])

    def column(name: str) -> Any:
        if name in _DICTIONARIES:
            return strings(raw[name], dictionaries[_DICTIONARIES[name]])
        return pa.array(numbers(raw[name]), pa.int16() if name.endswith("version") else pa.int32())

    def lists(name: str, values: str) -> Any:
        elements = column(values)
        kind = pa.list_(pa.field("element", elements.type, nullable=False))
        return pa.ListArray.from_arrays(pa.array(numbers(raw[f"{name}_bounds"])), elements, type=kind)

    def of_topics(prefix: str) -> dict[str, Any]:
        """Columns of rows of a topic each, and the record of each row."""
        member = numbers(raw[f"{prefix}_member"])
        return {
            **{name: members[name].take(pa.array(member)) for name in ("group", "generation", "member_id")},
            "record": record[of_member[member]],
            "topic": column(f"{prefix}_topic"),
            "partitions": lists(prefix, f"{prefix}_ids"),
        }

    size = pc.add(pc.binary_length(batch["key"]), pc.binary_length(batch["value"]))
    records = {
        **{
            name: column(name) for name in ("group", "generation", "protocol", "leader", "members", "version")
        },
        "record": record,
        "name": pa.repeat("GroupMetadata", record.size),
        "tombstone": pa.repeat(pa.scalar(value=False), record.size),
        "size": size.take(pa.array(record)),
        "protocol_type": pa.repeat(CONSUMER, record.size),
        "records": pa.repeat(pa.scalar(1, pa.int32()), record.size),
        "state_time": _microseconds(np.frombuffer(raw["state_time"], dtype=np.int64)),
    }
    user_data = texts((raw["user_data_bounds"], raw["user_data"]), pa.binary())
    members = {
        **{name: records[name].take(pa.array(of_member)) for name in ("group", "generation")},
        **{name: column(name) for name in ("member_id", "instance_id", "client_id", "host", "rack")},
        **{name: column(name) for name in ("session_timeout_ms", "subscription_version")},
        "record": record[of_member],
        "topics": lists("topics", "topics"),
        "rebalance_timeout_ms": pa.array(
            numbers(raw["rebalance_timeout_ms"]),
            mask=numbers(raw["version"])[of_member] < REBALANCE_TIMEOUT_SINCE,
        ),
        "user_data": pc.if_else(pa.array(numbers(raw["user_data_size"]) >= 0), user_data, None),
    }
    given, claimed = of_topics("assigned"), of_topics("claimed")
    given["stage"] = pa.repeat("assigned", len(given["topic"]))
    sources = numbers(raw["claim_source"])
    claimed["source"] = pa.DictionaryArray.from_arrays(pa.array(sources), pa.array(["owned", "sticky"]))
    claimed["claimed_generation"] = column("claim_generation")
    tables = {
        "records": records,
        "generations": records,
        "members": members,
        "assignments": given,
        "claims": claimed,
    }
    return {name: _table(name, batch, columns) for name, columns in tables.items()}


def _table(name: str, batch: Any, columns: Mapping[str, Any]) -> Any:
    """A table's rows: what was decoded, and else what the batch has of the records, or null."""
    indices = pa.array(columns["record"])

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
