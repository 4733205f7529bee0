"""The tables' rows of a batch of the archive, by the compiled codec: nearly all of its records in one call.

That takes the records of consumers' classic groups in versions 0 to 3, as nearly all are. All else
`one_by_one` decodes, so that both give the same rows in the same order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_assignors.history import _native as native
from kafka_assignors.history._native import int32s, numbers
from kafka_assignors.history._tables import one_by_one
from kafka_assignors.history._tables.decoded import DECODED, all_microseconds, kept, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors._model.arrays import IntArray
    from kafka_assignors.history._native import Columns

    Texts = tuple[bytes, bytes]

_GROUP_METADATA: Final = 2
_REBALANCE_TIMEOUT_SINCE: Final = 1

SOURCES: Final = ["owned", "sticky"]
"""Of claims, in the order in which they stand for each member."""


class Rows(NamedTuple):
    """Rows of one kind: (R,) the number of each row's record, and what was decoded, arrays of length R."""

    whose: IntArray
    columns: dict[str, Any]


def decode(batch: Any, names: Mapping[str, str], columns: Columns | None = None) -> dict[str, Any]:
    """The tables' rows of a batch as `one_by_one.decode` makes them; strings can be dictionary-encoded.

    `columns` is what `_native.decode` makes of the batch, if that was called already.
    """
    decoded = native.decode(batch["key"], batch["value"]) if columns is None else columns
    rows = _rows(batch, *decoded)
    others = np.setdiff1d(kept(batch), rows["records"].whose, assume_unique=True)
    if others.size == 0:
        return {name: table(name, batch, *of_table) for name, of_table in rows.items()}
    rest = one_by_one.decode_numbered(batch, others, names)
    return {name: table(name, batch, *_merged(name, rows[name], more)) for name, more in rest.items()}


def _binary(bounds: bytes, data: bytes, valid: Any) -> Any:
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    if not valid.all():
        buffers[0] = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(bounds) // 4 - 1, buffers)


def _merged(name: str, rows: Rows, more: tuple[IntArray, dict[str, Any]]) -> Rows:
    """What was decoded either way, in the order of the records."""
    numbers, columns = more
    if numbers.size == 0:
        return rows
    every = np.concatenate((rows.whose, numbers))
    order = np.argsort(every, kind="stable")
    indices = pa.array(order)
    schema = DECODED[name]
    return Rows(
        every[order],
        {
            column: pa.concat_arrays([rows.columns[column].cast(schema.field(column).type), array]).take(
                indices
            )
            for column, array in columns.items()
        },
    )


def _rows(batch: Any, columns: Mapping[str, bytes], texts: Mapping[str, Texts]) -> dict[str, Rows]:
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
    rows = {
        "records": Rows(
            record,
            {
                **of_group,
                "type": _repeat(_GROUP_METADATA, count, pa.int16()),
                "name": _repeat("GroupMetadata", count, pa.string()),
                "member_id": pa.nulls(count, pa.string()),
                "tombstone": _repeat(False, count, pa.bool_()),
            },
        ),
        "generations": Rows(
            record,
            {
                **of_group,
                "protocol_type": _repeat(one_by_one.CONSUMER, count, pa.string()),
                "protocol": native.strings(columns["protocol"], texts["protocols"]),
                "leader": native.strings(columns["leader"], texts["members"]),
                "members": int32s(columns["members"]),
                "state_time": all_microseconds(np.frombuffer(columns["state_time"], dtype=np.int64)),
                "version": _int16s(columns["version"]),
            },
        ),
        "members": Rows(record[member_record], of_member | _members(columns, texts)),
        "rejected": Rows(record[:0], {"reason": pa.array([], pa.string())}),
    }
    for name, prefix in (("assignments", "assigned"), ("claims", "claimed")):
        member = numbers(columns[f"{prefix}_member"])
        of_topic = {column: array.take(pa.array(member)) for column, array in of_member.items()}
        of_topic["topic"] = native.strings(columns[f"{prefix}_topic"], texts["topics"])
        of_topic["partitions"] = lists_of(columns[f"{prefix}_bounds"], int32s(columns[f"{prefix}_ids"]))
        rows[name] = Rows(record[member_record[member]], of_topic)
    assigned, claimed = rows["assignments"], rows["claims"].columns
    assigned.columns["stage"] = dictionary_of(np.zeros(assigned.whose.size, dtype=np.int32), ["assigned"])
    assigned.columns["topic_id"] = pa.nulls(assigned.whose.size, pa.string())
    claimed["source"] = dictionary_of(numbers(columns["claim_source"]), SOURCES)
    claimed["claimed_generation"] = int32s(columns["claim_generation"])
    return rows


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
        "topics": lists_of(columns["topics_bounds"], native.strings(columns["topics"], texts["topics"])),
        "topic_regex": nothing,
        "session_timeout_ms": int32s(columns["session_timeout_ms"]),
        "rebalance_timeout_ms": pa.array(timeout, mask=version < _REBALANCE_TIMEOUT_SINCE),
        "subscription_version": _int16s(columns["subscription_version"]),
        "user_data": _binary(
            columns["user_data_bounds"], columns["user_data"], numbers(columns["user_data_size"]) >= 0
        ),
        "problem": nothing,
    }


def _int16s(raw: bytes) -> Any:
    return pa.array(numbers(raw), pa.int16())


def _sizes(array: Any) -> IntArray:
    """How many bytes each row has."""
    bounds = np.frombuffer(array.buffers()[1], dtype=np.int32)
    return np.diff(bounds[array.offset : array.offset + len(array) + 1]).astype(np.int64)


def _repeat(value: Any, count: int, kind: Any) -> Any:
    return pa.repeat(pa.scalar(value, kind), count)


def dictionary_of(numbers: Any, values: list[str]) -> Any:
    """A dictionary-encoded array of few values."""
    return pa.DictionaryArray.from_arrays(pa.array(numbers, pa.int32()), pa.array(values))


def lists_of(bounds: Any, values: Any) -> Any:
    """An array of lists; `bounds` is a buffer of L + 1 int32, where each begins and the last ends."""
    kind = pa.list_(pa.field("element", values.type, nullable=False))
    return pa.Array.from_buffers(
        kind, memoryview(bounds).nbytes // 4 - 1, [None, pa.py_buffer(bounds)], children=[values]
    )
