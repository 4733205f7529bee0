"""Parts of `__consumer_offsets`, which tasks read from the brokers as rows of schema `ARCHIVE`.

docs/design.md says why not by Spark's connector. By confluent-kafka a core reads 510,000 records a second, a
20th of them group metadata of 2 kB; by kafka-python 155,000. Neither checks checksums.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.librdkafka import librdkafka_settings
from kafka_assignors._common.times import FIRST_MS, LAST_MS
from kafka_assignors._common.waiting import Deadline
from kafka_assignors._groups.finding import GROUPS_TOPIC
from kafka_assignors._model.arrays import IntArray
from kafka_assignors.history import _limits as limits
from kafka_assignors.history._arrow import as_numpy
from kafka_assignors.history._counts import NO_TYPE
from kafka_assignors.history._schemas import ARCHIVE, COMMIT_KEY, KEPT_TYPES
from kafka_assignors.history._store.reading import Source

Known = Mapping[int, IntArray]
Minutes = dict[bytes, int]

_KEPT: Final = frozenset(number.to_bytes(2, "big") for number in KEPT_TYPES)
_TYPE_BYTES: Final = 2
_MINUTE_MS: Final = 60_000
# A fetch and what is read ahead are the memory that a task takes; each task has one partition.
_CONSUMER: Final = {
    "group.id": "kafka-assignors-history",  # wanted by the library; the group is never joined
    "enable.auto.commit": False,
    "enable.partition.eof": True,
    # What groups are is written in no transaction, and one that hangs must not keep the rest back.
    "isolation.level": "read_uncommitted",
    # Where retention removed the offset, the next that is there is read.
    "auto.offset.reset": "earliest",
    "fetch.message.max.bytes": 8 << 20,
    "queued.max.messages.kbytes": 16 << 10,
    "fetch.wait.max.ms": 50,
    "fetch.queue.backoff.ms": 5,  # its default of a second left the reader idle half of the time
}


class StuckPartitionError(ClusterError):
    """A partition of the offsets topic cannot be read on; the message names it, and the last error."""


class Stretch(NamedTuple):
    """A part of a partition's log, without its end."""

    partition: int
    start: int
    end: int


def source_of_log(
    tasks: int,
    *,
    settings: Mapping[str, Any],
    stretches: Sequence[Stretch],
    known: Known,
    commits: bool = False,
) -> Source:
    """The records of parts of the log, in schema ARCHIVE, but for those whose offsets are known.

    Settings are in kafka-python's spelling, with `bootstrap_servers`.
    """
    read = partial(_read_share, settings=dict(settings), known=known, commits=commits)
    return Source(shares(stretches, tasks), read)


def _read_share(
    share: Sequence[Stretch], *, settings: Mapping[str, Any], known: Known, commits: bool
) -> Iterator[pa.RecordBatch]:
    for stretch in share:
        offsets = known.get(stretch.partition)
        for batch in read_stretch(settings, stretch, commits=commits):
            # What is only counted has the offset of the last of its kind, which is no known record's.
            yield batch if offsets is None else batch.filter(~np.isin(as_numpy(batch["offset"]), offsets))


def shares(stretches: Sequence[Stretch], tasks: int) -> list[list[Stretch]]:
    """What each task reads: about as many offsets as others; of little, few tasks write few files."""
    offsets = sum(one.end - one.start for one in stretches)
    count = min(len(stretches), limits.TASKS_A_CORE * tasks, -(-offsets // limits.OFFSETS_A_TASK))
    found: list[list[Stretch]] = [[] for _ in range(count)]
    taken = [0] * count
    for one in sorted(stretches, key=lambda one: one.start - one.end):
        least = taken.index(min(taken))
        found[least].append(one)
        taken[least] += one.end - one.start
    return [*map(sorted, found)]


def advance(left: Sequence[Stretch], at_most: int) -> list[Stretch]:
    """The next batch of what is left, with about so many offsets: of each partition the same share."""
    total = sum(one.end - one.start for one in left)
    at_once = min(at_most, total)
    return [one._replace(end=one.start - (-at_once * (one.end - one.start) // total)) for one in left]


def read_stretch(
    settings: Mapping[str, Any], stretch: Stretch, *, commits: bool = False
) -> Iterator[pa.RecordBatch]:
    """The rows of a part of the log; StuckPartitionError if it cannot be read, or none come for a minute."""
    # Imported where it runs: this module is sent to the workers of a cluster.
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415

    troubles: list[str] = []
    client = Consumer(
        {
            **_CONSUMER,
            **librdkafka_settings(settings),
            "error_cb": lambda error: troubles.append(error.str()),
            "log_level": 0,
        }
    )
    try:
        client.assign([TopicPartition(GROUPS_TOPIC, stretch.partition, stretch.start)])
        minutes: Minutes | None = {} if commits else None
        for messages in _batches(client, stretch, troubles):
            yield to_rows(messages, stretch.partition, minutes)
    finally:
        client.close()


def _batches(client: Any, stretch: Stretch, troubles: list[str]) -> Iterator[list[Any]]:
    position = stretch.start
    deadline = Deadline(limits.PATIENCE_SECONDS)
    while position < stretch.end:
        messages = []
        for message in client.consume(limits.CONSUMED_AT_ONCE, limits.CONSUME_SECONDS):
            offset = message.offset()
            if message.error() is not None:
                position = _after(message, stretch, position, troubles)
                continue
            position = max(position, offset + 1)
            if stretch.start <= offset < stretch.end:
                messages.append(message)
        if messages:
            deadline = Deadline(limits.PATIENCE_SECONDS)
            yield messages
        elif deadline.passed:
            because = f": {troubles[-1]}" if troubles else ""
            raise StuckPartitionError(
                f"{GROUPS_TOPIC}-{stretch.partition} returned nothing for {limits.PATIENCE_SECONDS:.0f} s at"
                f" offset {position}, before {stretch.end}{because}"
            )


def _after(message: Any, stretch: Stretch, position: int, troubles: list[str]) -> int:
    """The position after what is no record: the end of the log, or a trouble."""
    from confluent_kafka import KafkaError  # noqa: PLC0415 - as above

    error = message.error()
    if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library's public name of it
        return max(position, int(message.offset()))
    if message.topic() is None:
        # Of the client: it looks for its group's coordinator, which who may read the topic need not be
        # allowed to, and which is not needed here.
        troubles.append(error.str())
        return position
    raise StuckPartitionError(
        f"{GROUPS_TOPIC}-{stretch.partition} cannot be read at offset {position}: {error.str()}"
    )


def to_rows(messages: Sequence[Any], partition: int, minutes: Minutes | None = None) -> pa.RecordBatch:
    """The records as rows: those that are kept, and one for each other type with their count.

    If minutes are noted, by the key of a commit, the first commit of a minute is kept as well.
    """
    rows: list[tuple[Any, ...]] = []
    others: dict[bytes, tuple[int, Any]] = {}
    for message in messages:
        key = message.key()
        kind = b"" if key is None else key[:_TYPE_BYTES]
        is_first = False
        if minutes is not None and kind == COMMIT_KEY and message.value() is not None:
            minute = message.timestamp()[1] // _MINUTE_MS
            is_first, minutes[key] = minutes.get(key) != minute, minute
        if kind in _KEPT or is_first:
            rows.append((int.from_bytes(kind, "big"), 1, key, message.value(), *_where(message, partition)))
        elif len(kind) < _TYPE_BYTES or kind[0] & 0x80:
            rows.append((NO_TYPE, 1, key, message.value(), *_where(message, partition)))
        else:
            others[kind] = others.get(kind, (0, None))[0] + 1, message
    for kind, (count, last) in others.items():
        rows.append((int.from_bytes(kind, "big"), count, None, None, *_where(last, partition)))
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, ARCHIVE, strict=True)], schema=ARCHIVE
    )


def _where(message: Any, partition: int) -> tuple[int, int, int, int | None]:
    """Partition, offset, time and leader epoch."""
    # Whoever writes sets the time. One without a day must not keep what comes after it out of the archive.
    time_ms = min(max(FIRST_MS, message.timestamp()[1]), LAST_MS)
    return partition, message.offset(), 1000 * time_ms, message.leader_epoch()
