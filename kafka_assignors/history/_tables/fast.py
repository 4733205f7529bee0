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

_GROUP_METADATA: Final = 2
_REBALANCE_TIMEOUT_SINCE: Final = 1

SOURCES: Final = ["owned", "sticky"]
"""Of claims, in the order in which they stand for each member."""


class Rows(NamedTuple):
    """Rows of one kind.

    Attributes:
        whose: (R,) for each row the number of what it belongs to.
        columns: What was decoded, arrays of length R.
    """

    whose: IntArray
    columns: dict[str, Any]


class Taken(NamedTuple):
    """What was decoded at once. Strings can be dictionary-encoded.

    Attributes:
        records: By number in the batch: `group`, `generation`, `version`, `protocol`, `leader`, `members`,
            `state_time`.
        members: By number among those records: the columns of table `members` that are the member's own.
        assignments: By number among those members: `topic`, `partitions`.
        claims: The same, and `source`, `claimed_generation`.
    """

    records: Rows
    members: Rows
    assignments: Rows
    claims: Rows


def decode(batch: Any, names: Mapping[str, str], columns: Columns | None = None) -> dict[str, Any]:
    """The tables' rows of a batch as `one_by_one.decode` makes them; strings can be dictionary-encoded.

    Args:
        batch: Rows in schema ARCHIVE, at least in those columns that are in a table.
        names: The names of topics by id, for the records of KIP-848.
        columns: What `_native.decode` makes of it, if that was called already.
    """
    taken = take(native.decode(batch["key"], batch["value"]) if columns is None else columns)
    numbers = taken.records.whose
    rows = _rows(batch, taken)
    others = np.setdiff1d(kept(batch), numbers, assume_unique=True)
    if others.size == 0:
        return {name: table(name, batch, *of_table) for name, of_table in rows.items()}
    rest = one_by_one.decode_numbered(batch, others, names)
    return {name: table(name, batch, *_merged(name, rows[name], more)) for name, more in rest.items()}


def take(decoded: Columns) -> Taken:
    """The columns of the compiled codec as Arrow's."""
    columns, texts = decoded

    def strings(column: str, dictionary: str) -> Any:
        return native.strings(columns[column], texts[dictionary])

    def int16s(column: str) -> Any:
        return pa.array(numbers(columns[column]), pa.int16())

    def rows_of_lists(prefix: str) -> Rows:
        partitions = lists_of(columns[f"{prefix}_bounds"], int32s(columns[f"{prefix}_ids"]))
        lists = {"topic": strings(f"{prefix}_topic", "topics"), "partitions": partitions}
        return Rows(numbers(columns[f"{prefix}_member"]), lists)

    records = Rows(
        numbers(columns["record"]),
        {
            "group": strings("group", "groups"),
            "generation": int32s(columns["generation"]),
            "version": int16s("version"),
            "protocol": strings("protocol", "protocols"),
            "leader": strings("leader", "members"),
            "members": int32s(columns["members"]),
            "state_time": all_microseconds(np.frombuffer(columns["state_time"], dtype=np.int64)),
        },
    )
    members = Rows(
        numbers(columns["member_record"]),
        {
            "member_id": strings("member_id", "members"),
            "instance_id": strings("instance_id", "instances"),
            "client_id": strings("client_id", "clients"),
            "host": strings("host", "hosts"),
            "rack": strings("rack", "racks"),
            "topics": lists_of(columns["topics_bounds"], strings("topics", "topics")),
            "session_timeout_ms": int32s(columns["session_timeout_ms"]),
            "rebalance_timeout_ms": int32s(columns["rebalance_timeout_ms"]),
            "subscription_version": int16s("subscription_version"),
            "user_data": _binary(
                columns["user_data_bounds"], columns["user_data"], numbers(columns["user_data_size"]) >= 0
            ),
        },
    )
    assignments, claims = rows_of_lists("assigned"), rows_of_lists("claimed")
    claims.columns["source"] = dictionary_of(numbers(columns["claim_source"]), SOURCES)
    claims.columns["claimed_generation"] = int32s(columns["claim_generation"])
    return Taken(records, members, assignments, claims)


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


def _rows(batch: Any, taken: Taken) -> dict[str, Rows]:
    """The rows of each table."""
    numbers, of_record = taken.records
    count = numbers.size
    of_group = {name: of_record[name] for name in ("group", "generation")}
    size = pa.array(_sizes(batch["key"])[numbers] + _sizes(batch["value"])[numbers], pa.int32())
    member_record, of_member = taken.members
    indices = pa.array(member_record)
    whose = {name: array.take(indices) for name, array in of_group.items()}
    has_timeout = np.asarray(of_record["version"])[member_record] >= _REBALANCE_TIMEOUT_SINCE
    timeout = pa.array(np.asarray(of_member["rebalance_timeout_ms"]), mask=~has_timeout)
    rows = {
        "records": Rows(
            numbers,
            {
                **of_group,
                "type": _repeat(_GROUP_METADATA, count, pa.int16()),
                "name": _repeat("GroupMetadata", count, pa.string()),
                "member_id": pa.nulls(count, pa.string()),
                "tombstone": _repeat(False, count, pa.bool_()),
                "size": size,
            },
        ),
        "generations": Rows(
            numbers,
            {
                **of_record,
                "protocol_type": _repeat(one_by_one.CONSUMER, count, pa.string()),
                "size": size,
            },
        ),
        "members": Rows(
            numbers[member_record],
            {
                **whose,
                **of_member,
                "rebalance_timeout_ms": timeout,
                "topic_regex": pa.nulls(member_record.size, pa.string()),
                "problem": pa.nulls(member_record.size, pa.string()),
            },
        ),
        "rejected": Rows(numbers[:0], {"reason": pa.array([], pa.string())}),
    }
    whose["member_id"] = of_member["member_id"]
    for name, (member, columns) in (("assignments", taken.assignments), ("claims", taken.claims)):
        indices = pa.array(member)
        of_topic = {column: array.take(indices) for column, array in whose.items()}
        rows[name] = Rows(numbers[member_record[member]], of_topic | columns)
    assigned = rows["assignments"]
    assigned.columns["stage"] = dictionary_of(np.zeros(assigned.whose.size, dtype=np.int32), ["assigned"])
    assigned.columns["topic_id"] = pa.nulls(assigned.whose.size, pa.string())
    return rows


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
