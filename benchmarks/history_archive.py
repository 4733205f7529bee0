"""An archive to measure with: many sticky groups of 20 members and 200 partitions, their records in turn.

At each generation of a group one of its members is replaced by a new one, and one partition goes elsewhere.
The members say what they had twice, in the subscription and in the user data, as sticky members of Java do.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from kafka_assignors._wire.offsets_topic import (
    GroupMetadataValue,
    MemberMetadata,
    encode_group_metadata,
    group_metadata_key,
)
from kafka_assignors.history._archive import Archive
from kafka_assignors.history._schemas import ARCHIVE
from tests.support.written_archives import add_batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMBERS: Final = 20
TOPICS: Final = {"orders.events.v1": 120, "payments.settled.v2": 80}
GENERATIONS: Final = 500
"""Of each group: 200 groups make 100,000 records."""
FILE: Final = 20_000
"""Records in a file. As after a first capture, there is one for each partition of the offsets topic."""

_ALL: Final = [(topic, partition) for topic, count in TOPICS.items() for partition in range(count)]
_SHARE: Final = len(_ALL) // MEMBERS
_BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)

Partitions = list[tuple[str, int]]


def _list(partitions: Partitions) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    return struct.pack(">i", len(by_topic)) + b"".join(
        _string(topic) + struct.pack(f">i{len(ids)}i", len(ids), *ids) for topic, ids in by_topic.items()
    )


def _string(text: str) -> bytes:
    return struct.pack(">h", len(text)) + text.encode()


def _bytes(raw: bytes) -> bytes:
    return struct.pack(">i", len(raw)) + raw


_HEAD: Final = struct.pack(">hi", 1, len(TOPICS)) + b"".join(map(_string, TOPICS))


class _Group:
    """A group that changes a little from generation to generation."""

    def __init__(self, name: str, rng: Random) -> None:
        self._rng = rng
        self.name = name
        self._ids = [self._new_id(place) for place in range(MEMBERS)]
        self._owned = {
            member: _ALL[place * _SHARE : (place + 1) * _SHARE] for place, member in enumerate(self._ids)
        }
        self._generation = 0

    def _new_id(self, place: int) -> str:
        return f"app-{place:03d}-{self._rng.getrandbits(128):032x}"

    def next_record(self) -> bytes:
        """The value of the group's next record."""
        self._generation += 1
        before = {member: [*owned] for member, owned in self._owned.items()}
        place = self._rng.randrange(MEMBERS)
        gone, self._ids[place] = self._ids[place], self._new_id(place)
        self._owned[self._ids[place]] = self._owned.pop(gone)
        giver, taker = self._rng.sample(self._ids, 2)
        if len(self._owned[giver]) > 1:
            self._owned[taker].append(self._owned[giver].pop())
        members = []
        for number, member in enumerate(self._ids):
            had = _list(before.get(member, []))
            user_data = had + struct.pack(">i", self._generation - 1)
            members.append(
                MemberMetadata(
                    member_id=member,
                    client_id=f"app-{number:03d}",
                    client_host=f"/10.0.{number}.{self._generation % 250}",
                    rebalance_timeout=300_000,
                    session_timeout=45_000,
                    subscription=_HEAD + _bytes(user_data) + had,
                    assignment=b"\0\1" + _list(self._owned[member]) + b"\xff" * 4,
                )
            )
        return encode_group_metadata(
            GroupMetadataValue(
                version=3,
                protocol_type="consumer",
                generation=self._generation,
                protocol="sticky",
                leader=self._ids[0],
                current_state_timestamp=1_767_225_600_000 + self._generation * 60_000,
                members=tuple(members),
            )
        )


def records_of_groups(name: str, how_many: int, count: int) -> Iterator[tuple[bytes, bytes]]:
    """Key and value of so many records: one generation of each group after the other."""
    groups = [_Group(f"group-{name}-{number:04d}", Random(f"{name} {number}")) for number in range(how_many)]
    for number in range(count):
        group = groups[number % len(groups)]
        yield group_metadata_key(group.name), group.next_record()


def write_archive(folder: Path, count: int) -> int:
    """Write an archive of so many records.

    Returns:
        How many bytes of values there are in it.
    """
    size = 0
    archive = Archive.create(folder)
    for partition in range(-(-count // FILE)):
        there = min(FILE, count - partition * FILE)
        records = records_of_groups(f"{partition:02d}", -(-there // GENERATIONS), there)
        rows = [
            (2, 1, key, value, partition, offset, _BEGAN + timedelta(milliseconds=100 * offset), 0)
            for offset, (key, value) in enumerate(records)
        ]
        size += sum(len(row[3]) for row in rows)
        columns = [
            pa.array(column, field.type)
            for column, field in zip(zip(*rows, strict=True), ARCHIVE, strict=True)
        ]
        add_batch(archive, pa.RecordBatch.from_arrays(columns, schema=ARCHIVE))
    return size
