"""Committed offsets as the coordinator writes them."""

import struct
from collections.abc import Iterator, Mapping

from kafka_assignors._groups.snapshots import ArchivedRecord
from tests.support.archives import key_of

SECOND = 1_000_000
HOT = {0: 5.0, 1: 1.0, 2: 1.0, 3: 1.0, 4: 1.0, 5: 1.0}
"""Records a second of six partitions: as many of the first as of all others."""


def commit_key(group: str, topic: str, partition: int) -> bytes:
    return key_of(group, 1, topic) + partition.to_bytes(4)


def commit(
    at: float, offset: int | None, *, group: str = "g", topic: str = "t", partition: int = 0, of: int = 0
) -> ArchivedRecord:
    """A commit at a second, or what forgets it; `of` is the partition of `__consumer_offsets`."""
    value = None if offset is None else struct.pack(">hqihq", 3, offset, -1, 0, round(at * 1000))
    key, place = commit_key(group, topic, partition), round(at * 1000) + 1 + partition
    return ArchivedRecord(key, value, of, place, round(at * SECOND), 0)


def commits(
    begin: int,
    end: int,
    rates: Mapping[int, float],
    *,
    done: Mapping[int, float] | None = None,
    of: int = 0,
) -> Iterator[ArchivedRecord]:
    """Of a group that keeps up from one second to another, one a minute: records a second by partition."""
    for at in range(begin, end + 1, 60):
        for partition, rate in rates.items():
            offset = (done or {}).get(partition, 0) + rate * (at - begin)
            yield commit(at, round(offset), partition=partition, of=of)
