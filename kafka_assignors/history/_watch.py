"""A live group followed: its rebalances as they happen, from the records that its coordinator writes.

Nothing here needs Spark, nor pyarrow.
"""

from __future__ import annotations

import time
from itertools import chain
from typing import TYPE_CHECKING, Final

from kafka import TopicPartition

from kafka_assignors._cluster.handle import connect
from kafka_assignors._groups.finding import GROUPS_TOPIC
from kafka_assignors._groups.rebalances import RebalanceFinder
from kafka_assignors._wire.offsets_topic import record_type
from kafka_assignors._wire.reader import encode_string
from kafka_assignors.groups._coordinator import coordinator_of
from kafka_assignors.groups._log import archived, open_log, read_backwards, read_log
from kafka_assignors.history._log import read_topics
from kafka_assignors.history._snapshots import SnapshotReader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors._cluster.handle import Cluster
    from kafka_assignors._groups.rebalances import Rebalance
    from kafka_assignors._groups.snapshots import ArchivedRecord

    Names = Callable[[], Mapping[str, str]]

_POLL_MS: Final = 500
_CLASSIC: Final = 2
_EPOCH: Final = 3
_TYPES: Final = frozenset({_CLASSIC, _EPOCH, 4, 5, 6, 7, 8, 16})


def watch_group(
    cluster: Cluster, group_id: str, *, ready: Callable[[], object] = lambda: None
) -> Iterator[Rebalance]:
    """Follow a group, whether there is one yet or not; this does not end by itself.

    First its newest record is sought, so that it is known who was there. Of a group of KIP-848, whose members
    have records of their own, all of the log is read.

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
        yield from _watch(admin, group_id, ready)


def _watch(admin: Admin, group_id: str, ready: Callable[[], object]) -> Iterator[Rebalance]:
    partition = coordinator_of(admin, group_id).partition
    consumer = open_log(admin.settings, partition)
    log = TopicPartition(GROUPS_TOPIC, partition)
    try:
        first, end = consumer.beginning_offsets([log])[log], consumer.end_offsets([log])[log]

        def ours(begin: int, until: int) -> list[ArchivedRecord]:
            messages = read_log(consumer, partition, begin, until)
            return [archived(message) for message in messages if belongs_to(message.key, group_id)]

        before = read_backwards(consumer, partition, ours, 1)
        if any(kind_of(record.key) != _CLASSIC for record in before):
            before = ours(first, end)
        consumer.seek(log, end)
        ready()

        def polls() -> Iterator[list[ArchivedRecord]]:
            while True:
                messages = consumer.poll(timeout_ms=_POLL_MS).get(log, ())
                yield [archived(message) for message in messages if belongs_to(message.key, group_id)]

        yield from watch_records(
            polls(),
            before=before,
            names=lambda: {topic.topic_id: topic.topic for topic in read_topics(admin)},
            partitions=lambda: {topic.topic: topic.partitions for topic in read_topics(admin)},
        )
    finally:
        consumer.close()


def watch_records(
    polls: Iterable[Sequence[ArchivedRecord]],
    *,
    before: Iterable[ArchivedRecord] = (),
    names: Names = dict,
    partitions: Callable[[], Mapping[str, int]] = dict,
    now_us: Callable[[], int] = lambda: time.time_ns() // 1000,
) -> Iterator[Rebalance]:
    """The rebalances in a group's records as they come.

    Args:
        polls: The group's records by partition and offset, in one list what came at once; an empty list if
            nothing came for a while.
        before: Its records up to now, of which nothing is shown.
        names: Returns the names of topics by their ids; asked whenever the epoch of a KIP-848 group rises.
        partitions: Returns how many partitions each topic has; asked whenever the group has new records. What
            was the best possible depends on it.
        now_us: The time, in microseconds since 1970.
    """
    watcher = _Watcher(names, partitions)
    for _ in chain(watcher.follow(tuple(before)), watcher.idle()):
        pass
    for records in polls:
        yield from watcher.follow(records)
        if not records:
            yield from watcher.idle()
            yield from watcher.finder.give_up(now_us())


class _Watcher:
    """Reads a group's records as they come."""

    def __init__(self, names: Names, partitions: Callable[[], Mapping[str, int]]) -> None:
        self.finder = RebalanceFinder()
        self._reader = SnapshotReader()
        self._names = names
        self._partitions = partitions

    def follow(self, records: Sequence[ArchivedRecord]) -> Iterator[Rebalance]:
        """The rebalances that are over with these records."""
        if any(kind_of(record.key) == _EPOCH for record in records):
            self._reader.learn(self._names())
        if records:
            self.finder.learn(self._partitions())
        for record in records:
            for snapshot in self._reader.add(record):
                yield from self.finder.add(snapshot)

    def idle(self) -> Iterator[Rebalance]:
        """The rebalances that are over as nothing came for a while."""
        for snapshot in self._reader.flush():
            yield from self.finder.add(snapshot)


def kind_of(key: bytes) -> int:
    """The number of a record's type; -1 of no proper key."""
    return record_type(key) if len(key) > 1 else -1


def belongs_to(key: bytes | None, group_id: str) -> bool:
    """Whether a record is about a group's members: all such keys begin with its type and the group's id."""
    if key is None or kind_of(key) not in _TYPES:
        return False
    return key.startswith(encode_string(group_id), 2)
