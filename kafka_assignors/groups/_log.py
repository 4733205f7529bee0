"""A partition of `__consumer_offsets`, read from its end backwards by a consumer in no group."""

from collections.abc import Callable, Iterator
from typing import Any, Final, TypeVar

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaTimeoutError

from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors._common.times import FIRST_MS, LAST_MS
from kafka_assignors._groups.finding import GROUPS_TOPIC
from kafka_assignors._groups.snapshots import ArchivedRecord

_FIRST_STRETCH: Final = 2_000  # records, from the end of the log; then twice as many, and so on
_ANSWER_MS: Final = 5_000  # for where the log begins, and ends
_POLL_MS: Final = 1_000
_IDLE_POLLS: Final = 20

Found = TypeVar("Found")
"""What is looked for in the log."""


def open_log(admin: Admin, partition: int) -> KafkaConsumer:
    """A consumer of one partition; close it after use."""
    consumer = admin.consumer(
        auto_offset_reset="earliest", exclude_internal_topics=False, group_id=None, enable_auto_commit=False
    )
    consumer.assign([TopicPartition(GROUPS_TOPIC, partition)])
    return consumer


def archived(message: Any) -> ArchivedRecord:
    """A message of kafka-python's consumer as what it was in the log."""
    return ArchivedRecord(
        key=message.key,
        value=message.value,
        partition=message.partition,
        offset=message.offset,
        time_us=1000 * min(max(FIRST_MS, message.timestamp), LAST_MS),
        leader_epoch=message.leader_epoch,
    )


def read_backwards(
    consumer: KafkaConsumer,
    partition: int,
    stretch: Callable[[int, int], list[Found]],
    wanted: int,
    watch: Callable[[int, int], None] | None = None,
) -> list[Found]:
    """Read the log from its end backwards, in ever longer stretches, until as many as wanted were found.

    `stretch` finds in the log from one offset to before another. `watch` gets how many records were read, and
    how many there are. Raises ClusterError if the log's broker does not answer.
    """
    log = TopicPartition(GROUPS_TOPIC, partition)
    first, end = _extent(consumer, log)
    length, begin, found = _FIRST_STRETCH, end, list[Found]()
    while begin > first and len(found) < wanted:
        until, begin = begin, max(first, begin - length)
        found = [*stretch(begin, until), *found]
        length *= 2
        if watch is not None:
            watch(end - begin, end - first)
    return found


def _extent(consumer: KafkaConsumer, log: TopicPartition) -> tuple[int, int]:
    try:
        first = consumer.beginning_offsets([log], timeout_ms=_ANSWER_MS)[log]
        return first, consumer.end_offsets([log], timeout_ms=_ANSWER_MS)[log]
    except KafkaTimeoutError as error:
        raise ClusterError(
            f"the broker that leads {log.topic}-{log.partition} does not answer within"
            f" {_ANSWER_MS // 1000} s: it hangs, or is slow; ask again"
        ) from error


def read_log(consumer: KafkaConsumer, partition: int, begin: int, until: int) -> Iterator[Any]:
    """The messages from one offset to before another; raises ClusterError if the log does not continue."""
    log = TopicPartition(GROUPS_TOPIC, partition)
    consumer.seek(log, begin)
    idle = 0
    while consumer.position(log) < until:
        polled = consumer.poll(timeout_ms=_POLL_MS).get(log, ())
        idle = 0 if polled else idle + 1
        if idle > _IDLE_POLLS:
            raise ClusterError(
                f"{log.topic}-{log.partition} returned no records from offset {consumer.position(log)}"
            )
        for message in polled:
            if message.offset >= until:
                break
            yield message
