"""The tables' rows of a batch of the archive, by `_decode.c`: all of its records in one call."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from kafka_assignors.history._tables import at_once
from kafka_assignors.history._tables.at_once import SOURCES, Rows, Taken, dictionary_of, lists_of
from kafka_assignors.history._tables.decoded import all_microseconds
from kafka_assignors.history._tables.native import compiled, int32s, strings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors.history._tables.decoded import Decoded


def is_compiled() -> bool:
    """Whether the compiled part is there, without which there is only `plain`."""
    return compiled() is not None


def decode(batch: Any, names: Mapping[str, str]) -> Decoded:
    """Decode a batch of the archive; see `at_once.decode`. Owners come as bytes.

    Raises:
        ImportError: It was not compiled.
    """
    return at_once.decode(batch, names, take)


def take(batch: Any) -> Taken:
    """Decode the records of a batch that are as most of them are.

    Raises:
        ImportError: It was not compiled.
    """
    module = compiled()
    if module is None:
        raise ImportError("kafka_assignors.history._tables._decode was not compiled; use the plain decoder")
    key, value = batch["key"], batch["value"]
    columns, dictionaries = module.decode(
        batch.num_rows, (key.offset, *key.buffers()), (value.offset, *value.buffers())
    )
    found = iter(columns)
    groups, protocols, members, instances, clients, hosts, racks, topics = dictionaries

    record, generation, version, group, protocol, leader, count, state_time, *owners = islice(found, 10)
    records = Rows(
        _numbers(record),
        {
            "group": strings(group, groups),
            "generation": int32s(generation),
            "version": pa.array(_numbers(version), pa.int16()),
            "protocol": strings(protocol, protocols),
            "leader": strings(leader, members),
            "members": int32s(count),
            "state_time": all_microseconds(np.frombuffer(state_time, dtype=np.int64)),
        },
    )
    of_record, member, instance, client, host, rack, session, rebalance = islice(found, 8)
    subscription_version, *subscribed, data_bounds, data, data_size = islice(found, 6)
    of_members = Rows(
        _numbers(of_record),
        {
            "member_id": strings(member, members),
            "instance_id": strings(instance, instances),
            "client_id": strings(client, clients),
            "host": strings(host, hosts),
            "rack": strings(rack, racks),
            "topics": lists_of(subscribed[0], strings(subscribed[1], topics)),
            "session_timeout_ms": int32s(session),
            "rebalance_timeout_ms": int32s(rebalance),
            "subscription_version": pa.array(_numbers(subscription_version), pa.int16()),
            "user_data": _binary(data_bounds, data, _numbers(data_size) >= 0),
        },
    )
    assignments, claims = (
        Rows(
            _numbers(whose),
            {"topic": strings(topic, topics), "partitions": lists_of(bounds, int32s(ids))},
        )
        for whose, topic, bounds, ids in (islice(found, 4), islice(found, 4))
    )
    source, claimed_generation = found
    claims.columns["source"] = dictionary_of(_numbers(source), SOURCES)
    claims.columns["claimed_generation"] = int32s(claimed_generation)
    return Taken(records, of_members, assignments, claims, _binary(*owners).to_pylist())


def _numbers(raw: bytes) -> Any:
    return np.frombuffer(raw, dtype=np.int32)


def _binary(bounds: bytes, data: bytes, valid: Any = None) -> Any:
    buffers = [None, pa.py_buffer(bounds), pa.py_buffer(data)]
    if valid is not None and not valid.all():
        buffers[0] = pa.py_buffer(np.packbits(valid, bitorder="little"))
    return pa.Array.from_buffers(pa.binary(), len(bounds) // 4 - 1, buffers)
