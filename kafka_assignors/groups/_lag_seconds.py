"""For how long records have waited that a group has not committed: the first of each partition is read."""

import time
from collections.abc import Collection
from typing import Any, Final

from kafka import KafkaAdminClient
from kafka.errors import KafkaError, NoError, for_code
from kafka.protocol.consumer import FetchRequest
from kafka.record import MemoryRecords
from kafka.record.default_records import DefaultRecordBatch

from kafka_assignors._cluster.admin import Admin
from kafka_assignors._cluster.groups import Leaders
from kafka_assignors._cluster.requests import send
from kafka_assignors._common.waiting import Deadline
from kafka_assignors._groups.lag import Position

MOST_READS: Final = 5_000
READ_SECONDS: Final = 10.0
"""How many partitions are read at most, and for how long."""

_ONE_READ_SECONDS: Final = 1.0  # a broker that had less to answer is not said to be silent
_WAIT_MS: Final = 500  # for what a broker has to get from elsewhere
_BY_NAME: Final = 12  # the last version of Fetch that has the names of topics


def read_ages(admin: Admin, topics: Leaders, positions: Collection[Position]) -> dict[Position, float | str]:
    """How many seconds ago the first record from each position on was written, or why that is not known."""
    deadline = Deadline(READ_SECONDS)
    silent: dict[int, str] = {}
    found: dict[Position, float | str] = {}
    for number, position in enumerate(sorted(positions)):
        leader = topics[position[0]][position[1]]
        if number >= MOST_READS or deadline.left < _ONE_READ_SECONDS:
            found[position] = f"of {len(positions):,} partitions that lag {number:,} were read"
        elif leader in silent:
            found[position] = silent[leader]
        else:
            try:
                found[position] = _age(admin, leader, position, deadline)
            except KafkaError as error:
                found[position] = silent[leader] = f"broker {leader} does not answer: {error}"
    return found


def _age(admin: Admin, leader: int, position: Position, deadline: Deadline) -> float | str:
    topic, partition, offset = position
    end = offset + 1
    while offset < end:
        request = _fetch(topic, partition, offset)

        def ask(client: KafkaAdminClient, request: FetchRequest = request) -> Any:
            return send(client, request, leader, deadline.left + 0.001)

        (read,) = admin.once(ask).responses[0].partitions
        if (error := for_code(read.error_code)) is not NoError:
            return str(error.description)
        batch = MemoryRecords(read.records or b"").next_batch()
        if batch is None:
            return "the broker returned no record"
        try:
            first = next((one for one in batch if one.offset >= offset), None)
        except KafkaError as error:
            return str(error)
        if isinstance(batch, DefaultRecordBatch) and (first is None or batch.is_control_batch):
            offset, end = batch.next_offset, read.high_watermark  # compacted, or a transaction's marker
        elif first is None or first.timestamp is None or first.timestamp < 0:
            return "the record has no time"
        else:
            return max(0.0, time.time() - float(first.timestamp) / 1000)
    return 0.0


def _fetch(topic: str, partition: int, offset: int) -> FetchRequest:
    """A request for one batch, which a broker returns however few bytes are wanted."""
    wanted = FetchRequest.FetchTopic.FetchPartition(
        partition=partition, fetch_offset=offset, partition_max_bytes=1
    )
    return FetchRequest(
        max_wait_ms=_WAIT_MS,
        min_bytes=1,
        max_bytes=1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=[wanted])],
        min_version=4,
        max_version=_BY_NAME,
    )
