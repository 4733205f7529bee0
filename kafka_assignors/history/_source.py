"""`__consumer_offsets` as a source of Spark's, in Python: a batch or a stream of rows of schema `ARCHIVE`.

Spark's own Kafka connector silently reads nothing of internal topics unless told to find offsets in its old
way, and needs jars of its exact version. This needs none; records that are only counted never leave the
Python worker.

Records are read by confluent-kafka: with kafka-python, which takes each record apart in Python, the same took
3.2 times the CPU and 4.6 times as long (155,000 and 510,000 records per CPU second and core, a 20th of them
group metadata of 2 kB). Neither checks the records' checksums; with kafka-python that would take 5 times as
long again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows, SupportsTriggerAvailableNow

from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors._cluster.librdkafka import librdkafka_settings
from kafka_assignors._common.waiting import Deadline
from kafka_assignors.coordinator._finding import GROUPS_TOPIC
from kafka_assignors.history._log import read_bounds
from kafka_assignors.history._schemas import ARCHIVE, KEPT_TYPES
from kafka_assignors.history._spark_schema import spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

FORMAT: Final = "kafka_consumer_offsets"
"""The name for `spark.read.format` and `spark.readStream.format`, after `register`."""

NO_TYPE: Final = -1
"""The type of records whose key does not begin with one."""

_KEPT: Final = frozenset(number.to_bytes(2, "big") for number in KEPT_TYPES)
_TYPE_BYTES: Final = 2
_AT_ONCE: Final = 10_000  # records
_CONSUME_SECONDS: Final = 0.1
_PATIENCE_SECONDS: Final = 60.0

# A fetch and what is read ahead of Spark are the memory that a task takes; each task has one partition.
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


class Stretch(InputPartition):
    """A part of the log that one task reads.

    Args:
        partition: The partition of the topic.
        start: The first offset.
        end: The offset before which to stop.
    """

    def __init__(self, partition: int, start: int, end: int) -> None:
        super().__init__(partition)
        self.partition = partition
        self.start = start
        self.end = end


class OffsetsTopic(DataSource):
    """The source; its options are made by `source_options`."""

    @classmethod
    def name(cls) -> str:
        """The source's name."""
        return FORMAT

    def schema(self) -> StructType:
        """What rows are like."""
        return spark_schema(ARCHIVE)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - there is one schema only
        """For `spark.read`: all that is there now."""
        return _Batch(self.options)

    def streamReader(  # noqa: N802 - Spark's name
        self,
        schema: StructType,  # noqa: ARG002 - as above
    ) -> DataSourceStreamReader:
        """For `spark.readStream`: from the beginning, or where the checkpoint says."""
        return _Stream(self.options)


def register(spark: SparkSession) -> None:
    """Make the source known to a session."""
    spark.dataSource.register(OffsetsTopic)


def source_options(
    settings: Mapping[str, Any], *, max_records: int | None = None, first: Mapping[int, int] | None = None
) -> dict[str, str]:
    """The options of the source.

    Args:
        settings: Of the client, in kafka-python's spelling, with `bootstrap_servers`.
        max_records: How many offsets a batch of a stream may have, over all partitions; None for all.
        first: By partition, the offset from which a stream without a checkpoint begins; the earliest of
            those that are not named.
    """
    # Spark shows options in its UI and in plans, but not those that are called a secret.
    options = {"client.secret": json.dumps(dict(settings))}
    if max_records is not None:
        options["max.records"] = str(max_records)
    if first:
        options["first.offsets"] = json.dumps(first)
    return options


class _Batch(DataSourceReader):
    def __init__(self, options: Mapping[str, str]) -> None:
        self.settings: dict[str, Any] = json.loads(options["client.secret"])

    def partitions(self) -> Sequence[InputPartition]:
        bounds = read_bounds(self.settings)
        return [Stretch(number, first, end) for number, (first, end) in bounds.items()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_stretch(self.settings, partition)


class _Stream(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Offsets are a JSON object: by partition, the offset of the next record."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self.settings: dict[str, Any] = json.loads(options["client.secret"])
        self.max_records = int(options["max.records"]) if "max.records" in options else None
        self.first: dict[str, int] = json.loads(options.get("first.offsets", "{}"))
        self.last: dict[str, int] | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's names, here and below
        bounds = read_bounds(self.settings)
        return {str(number): self.first.get(str(number), first) for number, (first, _) in bounds.items()}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable() if self.max_records is None else ReadMaxRows(self.max_records)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self.last = self._ends()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        ends = self._ends() if self.last is None else self.last
        return advance(start, ends, limit.max_rows if isinstance(limit, ReadMaxRows) else None)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        return [
            Stretch(int(number), start.get(number, 0), offset)
            for number, offset in end.items()
            if offset > start.get(number, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_stretch(self.settings, partition)

    def _ends(self) -> dict[str, int]:
        return {str(number): end for number, (_, end) in read_bounds(self.settings).items()}


def advance(start: Mapping[str, int], ends: Mapping[str, int], at_most: int | None) -> dict[str, int]:
    """The end of the next batch: each partition's share of it is that of what it has left.

    Partitions that have anything left advance by one at the least, so that all get to their ends.

    Args:
        start: By partition, the first offset of the batch.
        ends: By partition, the end of the log.
        at_most: How many offsets the batch may have, about; None for all.
    """
    left = {number: max(0, end - start.get(number, 0)) for number, end in ends.items()}
    total = sum(left.values())
    if at_most is None or total <= at_most:
        return {number: start.get(number, 0) + count for number, count in left.items()}
    return {
        number: start.get(number, 0) + min(count, -(-at_most * count // total))
        for number, count in left.items()
    }


def read_stretch(settings: Mapping[str, Any], stretch: Any) -> Iterator[pa.RecordBatch]:
    """The rows of a part of the log.

    Offsets that are not there any more are no error: compaction removed them.

    Args:
        settings: Of the client, in kafka-python's spelling.
        stretch: A `Stretch`.

    Raises:
        StuckPartitionError: The broker does not let it be read, or nothing came for a minute.
    """
    # Imported where it runs: Spark sends this module to its workers.
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
        yield from _batches(client, stretch, troubles)
    finally:
        client.close()


def _batches(client: Any, stretch: Stretch, troubles: list[str]) -> Iterator[pa.RecordBatch]:
    position = stretch.start
    deadline = Deadline(_PATIENCE_SECONDS)
    while position < stretch.end:
        messages = []
        for message in client.consume(_AT_ONCE, _CONSUME_SECONDS):
            offset = message.offset()
            if message.error() is not None:
                position = _after(message, stretch, position, troubles)
                continue
            position = max(position, offset + 1)
            if stretch.start <= offset < stretch.end:
                messages.append(message)
        if messages:
            deadline = Deadline(_PATIENCE_SECONDS)
            yield to_rows(messages, stretch.partition)
        elif deadline.passed:
            because = f": {troubles[-1]}" if troubles else ""
            raise StuckPartitionError(
                f"{GROUPS_TOPIC}-{stretch.partition} gave nothing for {_PATIENCE_SECONDS:.0f} s at offset"
                f" {position}, before {stretch.end}{because}"
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


def to_rows(messages: Sequence[Any], partition: int) -> pa.RecordBatch:
    """The records as rows: those that are kept, and one for each other type with their count."""
    rows: list[tuple[Any, ...]] = []
    others: dict[bytes, tuple[int, Any]] = {}
    for message in messages:
        key = message.key()
        kind = b"" if key is None else key[:_TYPE_BYTES]
        if kind in _KEPT:
            rows.append((int.from_bytes(kind, "big"), 1, key, message.value(), *_place(message, partition)))
        elif len(kind) < _TYPE_BYTES or kind[0] & 0x80:
            rows.append((NO_TYPE, 1, key, message.value(), *_place(message, partition)))
        else:
            others[kind] = others.get(kind, (0, None))[0] + 1, message
    for kind, (count, last) in others.items():
        rows.append((int.from_bytes(kind, "big"), count, None, None, *_place(last, partition)))
    columns = zip(*rows, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, ARCHIVE, strict=True)], schema=ARCHIVE
    )


def _place(message: Any, partition: int) -> tuple[int, int, int, int | None]:
    """Partition, offset, time and leader epoch."""
    epoch = message.leader_epoch()
    return partition, message.offset(), 1000 * message.timestamp()[1], None if epoch == -1 else epoch
