"""A live group followed: its rebalances as they happen, by its coordinator's records; without Spark."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import chain, count
from typing import Any, Final

from kafka import TopicPartition

from kafka_assignors._cluster.handle import Cluster, connect
from kafka_assignors._groups.finding import GROUPS_TOPIC
from kafka_assignors._groups.rebalances import Rebalance, SpanFinder, rebalance_of
from kafka_assignors._groups.snapshots import ArchivedRecord
from kafka_assignors._groups.topics import TopicsSeen
from kafka_assignors._wire.offsets_topic import record_type
from kafka_assignors._wire.reader import encode_string
from kafka_assignors.groups._coordinator import coordinator_of
from kafka_assignors.groups._log import archived, open_log, read_backwards, read_log
from kafka_assignors.history._log import read_topics
from kafka_assignors.history._snapshots import SnapshotReader

_POLL_MS: Final = 500
_CLASSIC: Final = 2
_EPOCH: Final = 3
_TYPES: Final = frozenset({_CLASSIC, _EPOCH, 4, 5, 6, 7, 8, 16})


def watch_group(
    cluster: Cluster, group_id: str, *, ready: Callable[[], object] = lambda: None
) -> Iterator[Rebalance]:
    """Follow a group, whether there is one yet or not; this does not end by itself.

    First its newest record is sought; of a group of KIP-848, whose members have their own, all of the log.

    Args:
        cluster: The cluster.
        group_id: The group.
        ready: Called once it is known who was there: all that comes later is shown.

    Yields:
        Each rebalance when it is over, and each return of a static member (`Rebalance.quiet`). Of a hand-over
        that does not come within the rebalance timeout, what there was of it.

    Raises:
        ClusterError: The group's records cannot be read.
    """
    with connect(cluster) as admin:
        partition = coordinator_of(admin, group_id).partition
        consumer = open_log(admin, partition)
        log = TopicPartition(GROUPS_TOPIC, partition)

        def ours(messages: Iterable[Any]) -> list[ArchivedRecord]:
            return [archived(message) for message in messages if belongs_to(message.key, group_id)]

        def between(begin: int, until: int) -> list[ArchivedRecord]:
            return ours(read_log(consumer, partition, begin, until))

        with closing(consumer):
            first, end = consumer.beginning_offsets([log])[log], consumer.end_offsets([log])[log]
            before = read_backwards(consumer, partition, between, 1)
            if any(kind_of(record.key) != _CLASSIC for record in before):
                before = between(first, end)
            consumer.seek(log, end)
            ready()
            yield from watch_records(
                (ours(consumer.poll(timeout_ms=_POLL_MS).get(log, ())) for _ in count()),
                before=before,
                names=lambda: {topic.topic_id: topic.topic for topic in read_topics(admin)},
                partitions=lambda: {topic.topic: topic.partitions for topic in read_topics(admin)},
            )


def watch_records(
    polls: Iterable[Sequence[ArchivedRecord]],
    *,
    before: Iterable[ArchivedRecord] = (),
    names: Callable[[], Mapping[str, str]] = dict,
    partitions: Callable[[], Mapping[str, int]] = dict,
    now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
) -> Iterator[Rebalance]:
    """The rebalances in a group's records as they come: what came at once is one list, empty after a while.

    Of those `before` nothing is shown. The names of topics by their ids are asked for whenever the epoch of a
    KIP-848 group rises, how many partitions topics have whenever the group has new records.
    """
    reader, finder, topics = SnapshotReader(), SpanFinder(), TopicsSeen.always({})

    def follow(records: Sequence[ArchivedRecord]) -> Iterator[Rebalance]:
        """The rebalances that are over with these records; without any, as nothing came for a while."""
        nonlocal topics
        if any(kind_of(record.key) == _EPOCH for record in records):
            reader.learn(names())
        if records:
            topics = TopicsSeen.always(partitions())
        found = chain.from_iterable(map(reader.add, records)) if records else reader.flush()
        return (rebalance_of(span, topics) for one in found for span in finder.add(one))

    for _ in chain(follow([*before]), follow(())):
        pass
    for records in polls:
        yield from follow(records)
        if not records:
            yield from (rebalance_of(span, topics) for span in finder.give_up(now_us()))


def kind_of(key: bytes) -> int:
    """The number of a record's type; -1 of no proper key."""
    return record_type(key) if len(key) > 1 else -1


def belongs_to(key: bytes | None, group_id: str) -> bool:
    """Whether a record is about a group's members: all such keys begin with its type and the group's id."""
    if key is None or kind_of(key) not in _TYPES:
        return False
    return key.startswith(encode_string(group_id), 2)
