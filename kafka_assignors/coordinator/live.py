"""Groups of a running cluster: what their coordinator says of them, and what it wrote down."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from kafka_assignors.cluster.admin import ClusterError
from kafka_assignors.coordinator.explanation import RECORD_LIMIT
from kafka_assignors.coordinator.finding import GROUPS_TOPIC, partition_for_group
from kafka_assignors.coordinator.snapshots import ArchivedRecord, classic_snapshot
from kafka_assignors.protocol.offsets_topic import (
    GroupMetadata,
    RecordError,
    decode_record,
    group_metadata_key,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kafka_assignors.cluster.admin import Admin
    from kafka_assignors.coordinator.snapshots import Snapshot
    from kafka_assignors.protocol.offsets_topic import GroupMetadataValue

_FIRST_STRETCH: Final = 2_000  # records, from the end of the log; then twice as many, and so on
Found = TypeVar("Found")
"""What is looked for in the log."""

_POLL_MS: Final = 1_000
_IDLE_POLLS: Final = 20


class NoSuchGroupError(ValueError):
    """The cluster knows no group of this id, or none of the classic protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted:
    """A record of a group.

    Attributes:
        time_ms: When it was written, in milliseconds since 1970.
        value: What the group was like.
        snapshot: The same, read.
    """

    time_ms: int
    value: GroupMetadataValue
    snapshot: Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGroup:
    """A group on its cluster.

    Attributes:
        group_id: Its id.
        state: Its state by its coordinator's word: "Stable", "Empty", "PreparingRebalance", ...
        partition: The partition of `__consumer_offsets` that it belongs to.
        partitions: How many that topic has.
        coordinator: The broker that leads that partition, and where it is.
        records: Its records that are still in the log, the newest last: at most as many as were asked for.
        record_limit: How large they may be.
        topics: The partition ids of each topic that its members subscribe to and that exists.
        committed: The topics of which it has committed offsets.
    """

    group_id: str
    state: str
    partition: int
    partitions: int
    coordinator: str
    records: tuple[Noted, ...]
    record_limit: int
    topics: Mapping[str, tuple[int, ...]]
    committed: tuple[str, ...]


def read_group(
    admin: Admin, group_id: str, *, records: int = 2, watch: Callable[[int, int], None] | None = None
) -> LiveGroup:
    """Read a group and its newest records.

    The log is read from its end backwards, in ever longer stretches, until there are as many records as
    wanted.

    Args:
        admin: The cluster.
        group_id: The group.
        records: How many of its records to look for.
        watch: Gets how many records of the log were read, and how many there are, as it goes on.

    Raises:
        NoSuchGroupError: There is no such group, or it is not one of the classic protocol.
        ClusterError: The group's records cannot be read: the client may not read `__consumer_offsets`, say.
    """
    try:
        described = admin.ask(lambda client: client.describe_groups([group_id]))[group_id]
        (description,) = admin.ask(lambda client: client.describe_topics([GROUPS_TOPIC]))
        partitions = {one["partition_index"]: one["leader_id"] for one in description["partitions"]}
        partition = partition_for_group(group_id, max(len(partitions), 1))
        noted = _read_records(admin, group_id, partition, records, watch)
    except KafkaError as error:
        raise ClusterError(f"cannot read group {group_id!r} and its records: {error}") from error
    if described["error"] is not None or not noted:
        raise NoSuchGroupError(f"the cluster has no group {group_id!r} of the classic protocol")
    brokers = {
        broker["broker_id"]: f"broker {broker['broker_id']} at {broker['host']}:{broker['port']}"
        for broker in admin.ask(lambda client: client.describe_cluster())["brokers"]
    }
    leader = partitions.get(partition, -1)
    return LiveGroup(
        group_id=group_id,
        state=described["group_state"],
        partition=partition,
        partitions=len(partitions),
        coordinator=brokers.get(leader, f"broker {leader}"),
        records=tuple(noted),
        record_limit=_record_limit(admin),
        topics=_existing(admin),
        committed=_committed(admin, group_id),
    )


def _read_records(
    admin: Admin, group_id: str, partition: int, wanted: int, watch: Callable[[int, int], None] | None
) -> list[Noted]:
    key = group_metadata_key(group_id)
    consumer = open_log(admin.settings, partition)

    def stretch(begin: int, until: int) -> list[Noted]:
        messages = read_log(consumer, partition, begin, until)
        return [noted for message in messages for noted in _noted(message, group_id, key)]

    try:
        return read_backwards(consumer, partition, stretch, wanted, watch)[-wanted:]
    finally:
        consumer.close()


def _noted(message: Any, group_id: str, key: bytes) -> Iterator[Noted]:
    if message.key != key or message.value is None:
        return
    try:
        record = decode_record(message.key, message.value)
    except RecordError as error:
        raise ClusterError(f"a record of the group cannot be read: {error}") from error
    if isinstance(record, GroupMetadata) and record.value is not None:
        snapshot = classic_snapshot(archived(message), group_id, record.value)
        yield Noted(time_ms=message.timestamp, value=record.value, snapshot=snapshot)


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
        ClusterError: It does not go on.
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


def _existing(admin: Admin) -> dict[str, tuple[int, ...]]:
    return {
        topic["name"]: tuple(sorted(int(one["partition_index"]) for one in topic["partitions"]))
        for topic in admin.ask(lambda client: client.describe_topics())
        if not topic["error_code"]
    }


def _committed(admin: Admin, group_id: str) -> tuple[str, ...]:
    offsets = admin.ask(lambda client: client.list_group_offsets(group_id))
    return tuple(sorted({partition.topic for partition in offsets}))


def _record_limit(admin: Admin) -> int:
    wanted = [ConfigResource(ConfigResourceType.TOPIC, GROUPS_TOPIC)]
    try:
        configs = admin.ask(lambda client: client.describe_configs(wanted, config_filter="all"))
        return int(configs["topic"][GROUPS_TOPIC]["max.message.bytes"]["value"])
    except (KafkaError, KeyError):  # who may read the topic need not be allowed to see how it is configured
        return RECORD_LIMIT
