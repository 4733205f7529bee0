"""The tables' rows of a batch of the archive, all at once, as far as `_decode.c` takes its records.

It takes the records of consumers' classic groups in versions 0 to 3. Whatever else there is, `plain` decodes
record by record, so that both give the same rows in the same order.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from kafka_assignors.history.tables import plain
from kafka_assignors.history.tables.decoded import DECODED, Decoded, all_microseconds, kept, table
from kafka_assignors.history.tables.owners import as_bytes, compiled, int32s, strings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors.arrays import IntArray
    from kafka_assignors.history.tables.owners import Told

_GROUP_METADATA: Final = 2
_SOURCES: Final = pa.array(["owned", "sticky"])


def is_compiled() -> bool:
    """Whether the compiled part is there, without which there is only `plain`."""
    return compiled() is not None


def decode(batch: Any, names: Mapping[str, str]) -> Decoded:
    """Decode a batch of the archive; see `plain.decode`. Strings come dictionary-encoded, owners as bytes.

    Raises:
        ImportError: It was not compiled.
    """
    taken, decoded, owners = _decode_at_once(batch)
    others = np.setdiff1d(kept(batch), taken, assume_unique=True)
    if others.size == 0:
        return Decoded({name: table(name, batch, *rows) for name, rows in decoded.items()}, owners)
    rest, more_owners = plain.decode_numbered(batch, others, names)
    merged = {}
    in_order = np.argsort(np.concatenate((taken, rest["classic"][0])), kind="stable")
    told = owners + [None if one is None else as_bytes(one) for one in more_owners]
    for name, (numbers, columns) in rest.items():
        if name in decoded:
            first, arrays = decoded[name]
            order = pa.array(np.argsort(np.concatenate((first, numbers)), kind="stable"))
            schema = DECODED[name]
            columns = {  # noqa: PLW2901 - what was decoded either way, in the order of the records
                column: pa.concat_arrays([arrays[column].cast(schema.field(column).type), array]).take(order)
                for column, array in columns.items()
            }
            numbers = np.sort(np.concatenate((first, numbers)), kind="stable")  # noqa: PLW2901
        merged[name] = table(name, batch, numbers, columns)
    return Decoded(merged, [told[number] for number in in_order.tolist()])


Rows = tuple["IntArray", dict[str, Any]]
"""For each row the number of its record in the batch, and what was decoded by column."""


def _decode_at_once(batch: Any) -> tuple[IntArray, dict[str, Rows], list[Told | None]]:
    """The numbers of the records that were taken, the rows of each table, and the records' owners."""
    module = compiled()
    if module is None:
        raise ImportError("kafka_assignors.history.tables._decode was not compiled; use the plain decoder")
    key, value = batch["key"], batch["value"]
    columns, dictionaries = module.decode(
        batch.num_rows, (key.offset, *key.buffers()), (value.offset, *value.buffers())
    )
    take = iter(columns)
    groups, protocols, members, instances, clients, hosts, racks, topics = dictionaries

    record, generation, version, group, protocol, leader, count, state_time, *owners = islice(take, 10)
    taken = _numbers(record)
    generation, version = _numbers(generation), _numbers(version)
    group = strings(group, groups)
    size = _sizes(key)[taken] + _sizes(value)[taken]
    of_group = {"group": group, "generation": pa.array(generation)}
    rows: dict[str, Rows] = {
        "records": (
            taken,
            {
                **of_group,
                "type": _repeat(_GROUP_METADATA, taken.size, pa.int16()),
                "name": _repeat("GroupMetadata", taken.size, pa.string()),
                "member_id": pa.nulls(taken.size, pa.string()),
                "tombstone": _repeat(False, taken.size, pa.bool_()),
                "size": pa.array(size, pa.int32()),
            },
        ),
        "generations": (
            taken,
            {
                **of_group,
                "protocol_type": _repeat(plain.CONSUMER, taken.size, pa.string()),
                "protocol": strings(protocol, protocols),
                "leader": strings(leader, members),
                "members": int32s(count),
                "state_time": all_microseconds(np.frombuffer(state_time, dtype=np.int64)),
                "size": pa.array(size, pa.int32()),
                "version": pa.array(version, pa.int16()),
            },
        ),
        "classic": (taken, of_group),
    }

    of_record, member, instance, client, host, rack, session, rebalance = islice(take, 8)
    subscription_version, *subscribed, data_bounds, data, data_size = islice(take, 6)
    of_record = _numbers(of_record)
    member = strings(member, members)
    of_member = {
        "group": group.take(pa.array(of_record)),
        "generation": pa.array(generation[of_record]),
        "member_id": member,
    }
    rows["members"] = (
        taken[of_record],
        {
            **of_member,
            "instance_id": strings(instance, instances),
            "client_id": strings(client, clients),
            "host": strings(host, hosts),
            "rack": strings(rack, racks),
            "topics": _lists(subscribed[0], strings(subscribed[1], topics)),
            "session_timeout_ms": int32s(session),
            "rebalance_timeout_ms": pa.array(_numbers(rebalance), mask=version[of_record] < 1),
            "subscription_version": pa.array(_numbers(subscription_version), pa.int16()),
            "user_data": _binary(data_bounds, data, _numbers(data_size) >= 0),
            "problem": pa.nulls(of_record.size, pa.string()),
        },
    )

    for name in ("assignments", "claims"):
        whose, topic, bounds, ids = islice(take, 4)
        whose = _numbers(whose)
        indices = pa.array(whose)
        rows[name] = (
            taken[of_record[whose]],
            {
                **{column: array.take(indices) for column, array in of_member.items()},
                "topic": strings(topic, topics),
                "partitions": _lists(bounds, int32s(ids)),
            },
        )
    assigned = rows["assignments"][1]
    assigned["stage"] = _dictionary(np.zeros(len(assigned["topic"]), dtype=np.int32), pa.array(["assigned"]))
    assigned["topic_id"] = pa.nulls(len(assigned["topic"]), pa.string())
    source, claimed_generation = take
    claims = rows["claims"][1]
    claims["source"] = _dictionary(_numbers(source), _SOURCES)
    claims["claimed_generation"] = int32s(claimed_generation)
    rows["rejected"] = (taken[:0], {"reason": pa.array([], pa.string())})
    return taken, rows, _binary(*owners).to_pylist()


def _numbers(raw: bytes) -> Any:
    return np.frombuffer(raw, dtype=np.int32)


def _sizes(array: Any) -> IntArray:
    """How many bytes each row has."""
    bounds = np.frombuffer(array.buffers()[1], dtype=np.int32)
    return np.diff(bounds[array.offset : array.offset + len(array) + 1]).astype(np.int64)


def _repeat(value: Any, count: int, kind: Any) -> Any:
    return pa.repeat(pa.scalar(value, kind), count)


def _dictionary(numbers: Any, values: Any) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(numbers), values)


def _binary(bounds: bytes, data: bytes, valid: Any = None) -> Any:
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    if valid is not None and not valid.all():
        buffers[0] = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(bounds) // 4 - 1, buffers)


def _lists(bounds: bytes, values: Any) -> Any:
    kind = pa.list_(pa.field("element", values.type, nullable=False))
    return pa.Array.from_buffers(kind, len(bounds) // 4 - 1, [None, pa.py_buffer(bounds)], children=[values])
