"""Groups of a running cluster: what their coordinator says of them, and what it wrote down."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from kafka_assignors._cluster.admin import LOOK_SECONDS, ClusterError
from kafka_assignors._cluster.groups import Refused, committed_offsets, describe_classic, read_topics
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.waiting import Deadline
from kafka_assignors._groups.classic import classic_snapshot
from kafka_assignors._groups.described import described_value
from kafka_assignors._groups.explanation import RECORD_LIMIT
from kafka_assignors._groups.joining import REBALANCING, Look, find_joining
from kafka_assignors._groups.reasons import find_changes
from kafka_assignors._groups.rebalances import SpanFinder
from kafka_assignors._groups.snapshots import ArchivedRecord, keep_claims
from kafka_assignors._wire.offsets_topic import (
    GroupMetadata,
    RecordError,
    decode_record,
    group_metadata_key,
)
from kafka_assignors.coordinator._finding import GROUPS_TOPIC, partition_for_group

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors._cluster.groups import Partition, Topic
    from kafka_assignors._groups.joining import OngoingRebalance
    from kafka_assignors._groups.reasons import Change
    from kafka_assignors._groups.snapshots import Snapshot
    from kafka_assignors._wire.offsets_topic import GroupMetadataValue

_FIRST_STRETCH: Final = 2_000  # records, from the end of the log; then twice as many, and so on
Found = TypeVar("Found")
"""What is looked for in the log."""

_POLL_MS: Final = 1_000
_IDLE_POLLS: Final = 20


class NoSuchGroupError(KafkaAssignorsError, ValueError):
    """The cluster knows no group of this id."""


class OtherProtocolError(NoSuchGroupError):
    """The cluster knows a group of this id, but none of the classic protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCoordinator:
    """A group's coordinator, and why it is that broker.

    Attributes:
        partition: The partition of `__consumer_offsets` that the group's id leads to.
        partitions: How many that topic has.
        broker: The id of the broker that leads the partition; None if none does at the moment.
        address: Its "host:port"; None if there is none, or it is not up.
    """

    partition: int
    partitions: int
    broker: int | None
    address: str | None

    def __str__(self) -> str:
        """What it is and why."""
        if self.broker is None:
            return f"none: {GROUPS_TOPIC}-{self.partition} has no leader"
        at = "down" if self.address is None else f"at {self.address}"
        return f"broker {self.broker} ({at}), which leads {GROUPS_TOPIC}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRecord:
    """A record of a group.

    Attributes:
        time_ms: When it was written, in milliseconds since 1970.
        value: What the group was like.
        leader_epoch: The leader epoch of the log: it rises when the coordinator moves; None if not known.
    """

    time_ms: int
    value: GroupMetadataValue
    leader_epoch: int | None = None

    def snapshot(self, group_id: str) -> Snapshot:
        """The group as it was."""
        record = ArchivedRecord(
            key=group_metadata_key(group_id),
            value=None,
            partition=-1,
            offset=-1,
            time_us=self.time_ms * 1000,
            leader_epoch=self.leader_epoch,
        )
        return classic_snapshot(record, group_id, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGroup:
    """A group on its cluster.

    Attributes:
        group_id: Its id.
        looks: How its coordinator described it, at least once; several times if it was in a rebalance.
        coordinator: Its coordinator.
        records: Its records that are still in the log, the newest last: at most as many as were asked for.
        record_limit: How large they may be.
        topics: The topics that there are.
        committed: The offsets that it has committed.
    """

    group_id: str
    looks: tuple[Look, ...]
    coordinator: GroupCoordinator
    records: tuple[LiveRecord, ...]
    record_limit: int
    topics: Mapping[str, Topic]
    committed: Mapping[Partition, int]

    @property
    def state(self) -> str:
        """Its state by its coordinator's word: "Stable", "Empty", "PreparingRebalance", ..."""
        return self.looks[-1].group.state

    @property
    def partition_ids(self) -> dict[str, tuple[int, ...]]:
        """The partition ids of each topic that there is."""
        return {name: topic.ids for name, topic in self.topics.items()}

    @property
    def value(self) -> GroupMetadataValue:
        """What it was like in its last generation; if no record is left, what its coordinator describes."""
        return self.records[-1].value if self.records else described_value(self.looks[-1].group)

    @property
    def joining(self) -> OngoingRebalance | None:
        """The rebalance that is on."""
        last = self.records[-1] if self.records else None
        return find_joining(
            self.looks, None if last is None else last.value, None if last is None else last.time_ms
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedChange:
    """A record of a group beside the one before it.

    Attributes:
        generation: Its generation.
        begins: Whether its rebalance began with it; else it continues that of the record before.
        time_ms: When it was written, in milliseconds since 1970.
        seconds: How long after the one before; None if there is none.
        changes: What differs, and so why there was a rebalance.
    """

    generation: int
    begins: bool
    time_ms: int
    seconds: float | None
    changes: tuple[Change, ...]


def read_rebalances(live: LiveGroup) -> tuple[NotedChange, ...]:
    """Why a group rebalanced, as far as its records go back; the newest last."""
    snapshots = [*accumulate((noted.snapshot(live.group_id) for noted in live.records), keep_claims)]
    finder = SpanFinder()
    spans = [span for snapshot in snapshots for span in finder.add(snapshot)]
    places = {id(snapshot): place for place, snapshot in enumerate(snapshots)}
    going_on: set[int] = set()
    for span in (*spans, *finder.finish()):
        going_on.update(range(places[id(span.before)] + 2, places[id(span.end)] + 1))
    return tuple(
        NotedChange(
            generation=after.generation,
            begins=place not in going_on,
            time_ms=after.time_us // 1000,
            seconds=None if before is None else max(0, after.time_us - before.time_us) / 1e6,
            changes=() if before is None else find_changes(before, after),
        )
        for place, (before, after) in enumerate(zip((None, *snapshots), snapshots, strict=False))
    )


def find_coordinator(admin: Admin, group_id: str) -> GroupCoordinator:
    """Find the broker that coordinates a group, whether there is such a group or not.

    Raises:
        ClusterError: The cluster has no `__consumer_offsets`, or does not say.
    """
    try:
        (described,) = admin.ask(lambda client: client.describe_topics([GROUPS_TOPIC]))
    except KafkaError as error:
        raise ClusterError(f"the cluster does not describe {GROUPS_TOPIC}: {error}") from error
    leaders = {one["partition_index"]: one["leader_id"] for one in described["partitions"]}
    if not leaders:
        raise ClusterError(f"the cluster has no {GROUPS_TOPIC}: it makes it when the first group is sought")
    partition = partition_for_group(group_id, len(leaders))
    leader = leaders.get(partition, -1)
    addresses = {
        broker["broker_id"]: f"{broker['host']}:{broker['port']}"
        for broker in admin.ask(lambda client: client.describe_cluster())["brokers"]
    }
    return GroupCoordinator(
        partition=partition,
        partitions=len(leaders),
        broker=None if leader < 0 else leader,
        address=addresses.get(leader),
    )


def read_group(
    admin: Admin,
    group_id: str,
    *,
    records: int = 3,
    observe: float = 0.0,
    watch: Callable[[int, int], None] | None = None,
) -> LiveGroup:
    """Read a group and its newest records.

    The log is read from its end backwards, in ever longer stretches, until there are as many records as
    wanted.

    Args:
        admin: The cluster.
        group_id: The group.
        records: How many of its records to look for.
        observe: For how many seconds to look at it while it is in a rebalance.
        watch: Gets how many records of the log were read, and how many there are, during the reading.

    Raises:
        NoSuchGroupError: There is no such group; `OtherProtocolError` if it is not of the classic protocol.
        ClusterError: The group's records cannot be read: the client may not read `__consumer_offsets`, say.
    """
    try:
        looks = _look(admin, group_id, observe)  # has the groups' topic made where there is none yet
        coordinator = find_coordinator(admin, group_id)
        noted = _read_records(admin, group_id, coordinator.partition, records, watch)
        committed = committed_offsets(admin, [group_id])[group_id]
        return LiveGroup(
            group_id=group_id,
            looks=looks,
            coordinator=coordinator,
            records=tuple(noted),
            record_limit=_record_limit(admin),
            topics=read_topics(admin),
            committed={} if isinstance(committed, Refused) else committed,
        )
    except KafkaError as error:
        raise ClusterError(f"cannot read group {group_id!r} and its records: {error}") from error


def _look(admin: Admin, group_id: str, observe: float) -> tuple[Look, ...]:
    """Have the group described; while it is in a rebalance again and again, for so many seconds."""
    deadline = Deadline(observe)
    looks = list[Look]()
    while True:
        group = describe_classic(admin, [group_id])[group_id]
        if isinstance(group, Refused):
            if not group.unknown:
                raise ClusterError(f"the coordinator does not describe group {group_id!r}: {group.why}")
            if "not a classic group" in group.why:
                raise OtherProtocolError(
                    f"group {group_id!r} is not one of the classic protocol, but of another, such as"
                    " KIP-848's (group.protocol=consumer)"
                )
            raise NoSuchGroupError(f"the cluster has no group {group_id!r}")
        if group.state == "Dead":  # what brokers before 4.0 say of groups of other protocols, and of none
            raise OtherProtocolError(f"the cluster has no group {group_id!r} of the classic protocol")
        looks.append(Look(time.time_ns() // 1_000_000, group))
        if group.state not in REBALANCING or deadline.passed:
            return tuple(looks)
        time.sleep(LOOK_SECONDS)


def _read_records(
    admin: Admin, group_id: str, partition: int, wanted: int, watch: Callable[[int, int], None] | None
) -> list[LiveRecord]:
    key = group_metadata_key(group_id)
    consumer = open_log(admin.settings, partition)

    def stretch(begin: int, until: int) -> list[LiveRecord]:
        messages = read_log(consumer, partition, begin, until)
        return [noted for message in messages for noted in _noted(message, key)]

    try:
        return read_backwards(consumer, partition, stretch, wanted, watch)[-wanted:]
    finally:
        consumer.close()


def _noted(message: Any, key: bytes) -> Iterator[LiveRecord]:
    if message.key != key or message.value is None:
        return
    try:
        record = decode_record(message.key, message.value)
    except RecordError as error:
        raise ClusterError(f"a record of the group cannot be read: {error}") from error
    if isinstance(record, GroupMetadata) and record.value is not None:
        yield LiveRecord(time_ms=message.timestamp, value=record.value, leader_epoch=message.leader_epoch)


def open_log(settings: Mapping[str, Any], partition: int) -> KafkaConsumer:
    """A consumer of one partition of `__consumer_offsets`, in no group; close it after use.

    Args:
        settings: Of a client; see `Admin.settings`.
        partition: The partition.
    """
    own = {"auto_offset_reset": "earliest", "exclude_internal_topics": False}
    consumer = KafkaConsumer(**{**settings, **own}, group_id=None, enable_auto_commit=False)
    consumer.assign([TopicPartition(GROUPS_TOPIC, partition)])
    return consumer


def archived(message: Any) -> ArchivedRecord:
    """A message of kafka-python's consumer as what it was in the log."""
    return ArchivedRecord(
        key=message.key,
        value=message.value,
        partition=message.partition,
        offset=message.offset,
        time_us=message.timestamp * 1000,
        leader_epoch=message.leader_epoch,
    )


def read_backwards(
    consumer: KafkaConsumer,
    partition: int,
    stretch: Callable[[int, int], list[Found]],
    wanted: int,
    watch: Callable[[int, int], None] | None = None,
) -> list[Found]:
    """Read the log from its end backwards, in ever longer stretches, until enough was found.

    Args:
        consumer: See `open_log`.
        partition: The partition.
        stretch: Finds in the log from one offset to before another.
        wanted: How many are enough.
        watch: See `read_group`.
    """
    log = TopicPartition(GROUPS_TOPIC, partition)
    first, end = consumer.beginning_offsets([log])[log], consumer.end_offsets([log])[log]
    length, begin, found = _FIRST_STRETCH, end, list[Found]()
    while begin > first and len(found) < wanted:
        until, begin = begin, max(first, begin - length)
        found = [*stretch(begin, until), *found]
        length *= 2
        if watch is not None:
            watch(end - begin, end - first)
    return found


def read_log(consumer: KafkaConsumer, partition: int, begin: int, until: int) -> Iterator[Any]:
    """The messages from one offset to before another.

    Raises:
        ClusterError: It does not continue.
    """
    log = TopicPartition(GROUPS_TOPIC, partition)
    consumer.seek(log, begin)
    idle = 0
    while consumer.position(log) < until:
        polled = consumer.poll(timeout_ms=_POLL_MS).get(log, ())
        idle = 0 if polled else idle + 1
        if idle > _IDLE_POLLS:
            raise ClusterError(
                f"{log.topic}-{log.partition} is not to be read on from {consumer.position(log)}"
            )
        for message in polled:
            if message.offset >= until:
                break
            yield message


def _record_limit(admin: Admin) -> int:
    wanted = [ConfigResource(ConfigResourceType.TOPIC, GROUPS_TOPIC)]
    try:
        configs = admin.ask(lambda client: client.describe_configs(wanted, config_filter="all"))
        return int(configs["topic"][GROUPS_TOPIC]["max.message.bytes"]["value"])
    except (KafkaError, KeyError):  # who may read the topic need not be allowed to see how it is configured
        return RECORD_LIMIT
