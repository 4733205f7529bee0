"""A group of a running cluster: what its coordinator says of it, and what it wrote down."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, TopicAuthorizationFailedError

from kafka_assignors._cluster.admin import LOOK_SECONDS, Admin, ClusterError, reason
from kafka_assignors._cluster.groups import (
    ClassicGroup,
    EpochGroup,
    Leaders,
    Partition,
    Refused,
    committed_offsets,
    describe_classic,
    describe_consumer,
    list_groups,
    read_topics,
)
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.strategies import Client
from kafka_assignors._common.waiting import Deadline
from kafka_assignors._groups.account import RECORD_LIMIT
from kafka_assignors._groups.advice import ReasonWords, reason_words
from kafka_assignors._groups.classic import classic_snapshot
from kafka_assignors._groups.epochs import SETTLED, explain_epochs
from kafka_assignors._groups.explanation import Explanation, explain
from kafka_assignors._groups.finding import GROUPS_TOPIC
from kafka_assignors._groups.joining import REBALANCING, Look, OngoingRebalance, find_joining
from kafka_assignors._groups.reasons import HAND_OVER, Change
from kafka_assignors._groups.rebalances import SpanFinder
from kafka_assignors._groups.snapshots import ArchivedRecord, keep_claims
from kafka_assignors._wire.offsets_topic import (
    GroupMetadata,
    GroupMetadataValue,
    RecordError,
    decode_record,
    group_metadata_key,
)
from kafka_assignors.groups._coordinator import GroupCoordinator, coordinator_of
from kafka_assignors.groups._log import archived, open_log, read_backwards, read_log


class NoSuchGroupError(KafkaAssignorsError, ValueError):
    """The cluster knows no group of this id."""


class LiveRecord(NamedTuple):
    """A record of a classic group, and what it says."""

    record: ArchivedRecord
    value: GroupMetadataValue


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveGroup:
    """A group on its cluster.

    `looks` are how its coordinator described it, at least once; several times if it was in a rebalance.
    `records` are those of a classic group still in the log, the newest last: at most as many as were asked
    for, and no larger than a limit.
    """

    looks: tuple[Look, ...]
    coordinator: GroupCoordinator
    topics: Leaders
    committed: Mapping[Partition, int]
    records: tuple[LiveRecord, ...] = ()
    record_limit: int = RECORD_LIMIT

    @property
    def group(self) -> ClassicGroup | EpochGroup:
        """As it was described last."""
        return self.looks[-1].group

    @property
    def joining(self) -> OngoingRebalance | None:
        last = self.records[-1] if self.records else None
        if last is None:
            return find_joining(self.looks, None, None)
        return find_joining(self.looks, last.value, last.record.time_us // 1000)

    def explain(self, leader_client: Client | None = None) -> Explanation:
        """Explain it, by its newest record; without one, by its last description."""
        committed = {topic for topic, _ in self.committed}
        if isinstance(self.group, EpochGroup):
            seconds = (self.looks[-1].time_ms - self.looks[0].time_ms) / 1000
            return explain_epochs(self.group, self.topics, committed=committed, seen_seconds=seconds)
        return explain(
            self.group.group_id,
            self.records[-1].value if self.records else self.group.value,
            self.topics,
            committed=committed,
            record_limit=self.record_limit,
            leader_client=leader_client,
        )


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
    noted = (classic_snapshot(one.record, live.group.group_id, one.value) for one in live.records)
    snapshots = [*accumulate(noted, keep_claims)]
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
    """Read a group and, if it is classic, its newest records; see `explain`.

    Raises:
        NoSuchGroupError: There is no such group of the classic protocol, or of KIP-848.
        ClusterError: The cluster does not say: the client may not read `__consumer_offsets`, for example.
    """
    try:
        looks = [*_looks(admin, group_id, observe)]
        coordinator = coordinator_of(admin, group_id)  # being asked of a group, brokers have made the topic
        committed = committed_offsets(admin, [group_id])[group_id]
        live = LiveGroup(
            # A group that changes its protocol meanwhile is as new.
            looks=tuple(look for look in looks if type(look.group) is type(looks[-1].group)),
            coordinator=coordinator,
            topics=read_topics(admin),
            committed={} if isinstance(committed, Refused) else committed,
        )
        if isinstance(live.group, EpochGroup):
            return live
        noted = _read_records(admin, group_id, coordinator.partition, records, watch)
        return replace(live, records=tuple(noted), record_limit=_record_limit(admin))
    except KafkaError as error:
        raise ClusterError(f"cannot read group {group_id!r}: {reason(error)}") from error


def _looks(admin: Admin, group_id: str, observe: float) -> Iterator[Look]:
    """Have a group described, again and again while it is in a rebalance, for so many seconds."""
    deadline = Deadline(observe)
    while True:
        group = _describe(admin, group_id)
        yield Look(time.time_ns() // 1_000_000, group)
        if not is_rebalancing(group) or deadline.passed:
            return
        time.sleep(LOOK_SECONDS)


def is_rebalancing(group: ClassicGroup | EpochGroup | Refused | None) -> bool:
    """Whether a group was described in a rebalance, or on its way to a new assignment."""
    if isinstance(group, EpochGroup):
        return group.state not in SETTLED
    return isinstance(group, ClassicGroup) and group.state in REBALANCING


def _describe(admin: Admin, group_id: str) -> ClassicGroup | EpochGroup:
    classic = describe_classic(admin, [group_id])[group_id]
    group: ClassicGroup | EpochGroup | Refused = classic
    # Brokers before 4.0 call groups of other protocols dead, and those that do not exist.
    other = "not a classic group" in classic.why if isinstance(classic, Refused) else classic.state == "Dead"
    if other:
        group = describe_consumer(admin, [group_id])[group_id]
    if isinstance(group, ClassicGroup | EpochGroup):
        return group
    if not group.unknown:
        raise ClusterError(f"the coordinator does not describe group {group_id!r}: {group.why}")
    kinds = {one.group_id: one.kind for one in list_groups(admin)} if other else {}
    if group_id not in kinds:
        raise NoSuchGroupError(f"the cluster has no group {group_id!r}")
    if kinds[group_id] == "share":
        raise NoSuchGroupError(f"group {group_id!r} is a share group: its members are not read")
    raise NoSuchGroupError(
        f"group {group_id!r} is of a protocol that cannot be explained: only the classic one and KIP-848's"
        " can"
    )


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
    except TopicAuthorizationFailedError as error:
        raise ClusterError(f"{GROUPS_TOPIC} cannot be read: {reason(error)}") from error
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
        yield LiveRecord(archived(message), record.value)


def _record_limit(admin: Admin) -> int:
    wanted = [ConfigResource(ConfigResourceType.TOPIC, GROUPS_TOPIC)]
    try:
        configs = admin.ask(lambda client: client.describe_configs(wanted, config_filter="all"))
        return int(configs["topic"][GROUPS_TOPIC]["max.message.bytes"]["value"])
    except (KafkaError, KeyError):  # who may read the topic need not be allowed to see how it is configured
        return RECORD_LIMIT
