"""A group of a running cluster: what its coordinator says of it, and what it wrote down."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeVar

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import IncompatibleBrokerVersion, KafkaError

from kafka_assignors._cluster.admin import LOOK_SECONDS, ClusterError
from kafka_assignors._cluster.groups import (
    EpochGroup,
    Refused,
    committed_offsets,
    describe_classic,
    describe_consumer,
    list_groups,
    read_topics,
)
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.waiting import Deadline
from kafka_assignors._groups.account import RECORD_LIMIT
from kafka_assignors._groups.advice import reason_words
from kafka_assignors._groups.classic import classic_snapshot
from kafka_assignors._groups.described import described_value
from kafka_assignors._groups.epochs import SETTLED, EpochLook
from kafka_assignors._groups.finding import GROUPS_TOPIC
from kafka_assignors._groups.joining import REBALANCING, Look, find_joining
from kafka_assignors._groups.reasons import HAND_OVER
from kafka_assignors._groups.rebalances import SpanFinder
from kafka_assignors._groups.snapshots import ArchivedRecord, keep_claims
from kafka_assignors._wire.offsets_topic import (
    GroupMetadata,
    RecordError,
    decode_record,
    group_metadata_key,
)
from kafka_assignors.groups._coordinator import GroupCoordinator, coordinator_of
from kafka_assignors.groups._log import open_log, read_backwards, read_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors._cluster.groups import ClassicGroup, Partition, Topic
    from kafka_assignors._groups.advice import ReasonWords
    from kafka_assignors._groups.joining import OngoingRebalance
    from kafka_assignors._groups.reasons import Change
    from kafka_assignors._groups.snapshots import Snapshot
    from kafka_assignors._wire.offsets_topic import GroupMetadataValue

Described = TypeVar("Described")


class NoSuchGroupError(KafkaAssignorsError, ValueError):
    """The cluster knows no group of this id."""


class OtherProtocolError(NoSuchGroupError):
    """The cluster knows a group of this id, but none of the classic protocol."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveRecord:
    """A record of a group, written at `time_ms` since 1970.

    The leader epoch of the log rises when the coordinator moves; None if not known.
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

    `looks` are how its coordinator described it, at least once; several times if it was in a rebalance.
    `records` are those still in the log, the newest last: at most as many as were asked for, and no larger
    than a limit.
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
        last = self.records[-1] if self.records else None
        return find_joining(
            self.looks, None if last is None else last.value, None if last is None else last.time_ms
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveEpochGroup:
    """A group of KIP-848 on its cluster.

    `looks` are how its coordinator described it, at least once; several times if it was on its way.
    """

    looks: tuple[EpochLook, ...]
    coordinator: GroupCoordinator
    topics: Mapping[str, Topic]
    committed: Mapping[Partition, int]

    @property
    def partition_ids(self) -> dict[str, tuple[int, ...]]:
        """The partition ids of each topic that there is."""
        return {name: topic.ids for name, topic in self.topics.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class NotedRebalance:
    """A rebalance as a group's records have it: one, or all that belong to a hand-over.

    The last is written at `time_ms` since 1970, `seconds` after the one before the rebalance. `changes` are
    why there was one. Of the oldest record nobody knows why; `seconds` are None there.
    """

    first_generation: int
    generation: int
    time_ms: int
    seconds: float | None = None
    changes: tuple[Change, ...] = ()

    @property
    def advice(self) -> tuple[ReasonWords, ...]:
        """What each kind of its changes means; not of a hand-over, which belongs to the rebalance before."""
        kinds = dict.fromkeys(change.kind for change in self.changes if change.kind != HAND_OVER)
        return tuple(map(reason_words, kinds))


def read_rebalances(live: LiveGroup) -> tuple[NotedRebalance, ...]:
    """Why a group rebalanced, as far as its records go back; the newest last."""
    snapshots = [*accumulate((noted.snapshot(live.group_id) for noted in live.records), keep_claims)]
    finder = SpanFinder()
    spans = [span for snapshot in snapshots for span in finder.add(snapshot)]
    found = [
        NotedRebalance(
            first_generation=one.generation, generation=one.generation, time_ms=one.time_us // 1000
        )
        for one in snapshots[:1]
    ]
    found += [
        NotedRebalance(
            first_generation=span.first_generation,
            generation=span.end.generation,
            time_ms=span.end.time_us // 1000,
            seconds=max(0, span.end.time_us - span.before.time_us) / 1e6,
            changes=span.reasons,
        )
        for span in (*spans, *finder.finish())
    ]
    return tuple(found)


def read_group(
    admin: Admin,
    group_id: str,
    *,
    records: int = 3,
    observe: float = 0.0,
    watch: Callable[[int, int], None] | None = None,
) -> LiveGroup:
    """Read a classic group and its newest records; see `explain`.

    Raises:
        NoSuchGroupError: There is no such group; `OtherProtocolError` if it is not of the classic protocol.
        ClusterError: The group's records cannot be read: the client may not read `__consumer_offsets`, say.
    """
    try:
        looks = [Look(*look) for look in _looks(lambda: _classic(admin, group_id), _rebalances, observe)]
        coordinator = coordinator_of(admin, group_id)  # being asked of a group, brokers have made the topic
        noted = _read_records(admin, group_id, coordinator.partition, records, watch)
        return LiveGroup(
            group_id=group_id,
            looks=tuple(looks),
            coordinator=coordinator,
            records=tuple(noted),
            record_limit=_record_limit(admin),
            topics=read_topics(admin),
            committed=_committed(admin, group_id),
        )
    except KafkaError as error:
        raise ClusterError(f"cannot read group {group_id!r} and its records: {error}") from error


def read_epoch_group(admin: Admin, group_id: str, *, observe: float = 0.0) -> LiveEpochGroup:
    """Read a group of KIP-848; see `explain`.

    Raises OtherProtocolError if it is none, ClusterError if the cluster does not say.
    """
    try:
        looks = _looks(lambda: _epochs(admin, group_id), lambda group: group.state not in SETTLED, observe)
        return LiveEpochGroup(
            looks=tuple(EpochLook(*look) for look in looks),
            coordinator=coordinator_of(admin, group_id),
            topics=read_topics(admin),
            committed=_committed(admin, group_id),
        )
    except KafkaError as error:
        raise ClusterError(f"cannot read group {group_id!r}: {error}") from error


def _looks(
    describe: Callable[[], Described], on_its_way: Callable[[Described], bool], observe: float
) -> Iterator[tuple[int, Described]]:
    """Have a group described, again and again while it is on its way, for so many seconds."""
    deadline = Deadline(observe)
    while True:
        group = describe()
        yield time.time_ns() // 1_000_000, group
        if not on_its_way(group) or deadline.passed:
            return
        time.sleep(LOOK_SECONDS)


def _rebalances(group: ClassicGroup) -> bool:
    return group.state in REBALANCING


def _classic(admin: Admin, group_id: str) -> ClassicGroup:
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
    return group


def _epochs(admin: Admin, group_id: str) -> EpochGroup:
    try:
        group = describe_consumer(admin, [group_id])[group_id]
    except IncompatibleBrokerVersion:
        group = None
    if isinstance(group, EpochGroup):
        return group
    if group is not None and not group.unknown:
        raise ClusterError(f"the coordinator does not describe group {group_id!r}: {group.why}")
    if any((one.group_id, one.kind) == (group_id, "share") for one in list_groups(admin)):
        raise OtherProtocolError(f"group {group_id!r} is a share group: its members are not read")
    raise OtherProtocolError(
        f"the cluster has no group {group_id!r} of a protocol that can be explained: of the classic"
        " one, or KIP-848's"
    )


def _committed(admin: Admin, group_id: str) -> Mapping[Partition, int]:
    committed = committed_offsets(admin, [group_id])[group_id]
    return {} if isinstance(committed, Refused) else committed


def _read_records(
    admin: Admin, group_id: str, partition: int, wanted: int, watch: Callable[[int, int], None] | None
) -> list[LiveRecord]:
    key = group_metadata_key(group_id)
    consumer = open_log(admin, partition)

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


def _record_limit(admin: Admin) -> int:
    wanted = [ConfigResource(ConfigResourceType.TOPIC, GROUPS_TOPIC)]
    try:
        configs = admin.ask(lambda client: client.describe_configs(wanted, config_filter="all"))
        return int(configs["topic"][GROUPS_TOPIC]["max.message.bytes"]["value"])
    except (KafkaError, KeyError):  # who may read the topic need not be allowed to see how it is configured
        return RECORD_LIMIT
