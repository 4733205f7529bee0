"""Replicas moved on a running cluster: planned, copied, looked at and broken off."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from kafka import TopicPartition

from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors._cluster.handle import Cluster, connect
from kafka_assignors._common.words import are, first_of, named, size
from kafka_assignors.placement._cluster import reassign as moving, topics as live
from kafka_assignors.placement._cluster.logs import read_logs
from kafka_assignors.placement._cluster.reassign import Pacing
from kafka_assignors.placement._cluster.source import Opened, Topics, opened
from kafka_assignors.placement._cluster.stall import Reason, reasons
from kafka_assignors.placement._cluster.throttle import (
    Throttles,
    read_throttles,
    remove_all,
    remove_left,
)
from kafka_assignors.placement._explicit import check_placements
from kafka_assignors.placement._placement import Placement, PlacementError, Racks, holders
from kafka_assignors.placement._planning.moves import MovePlan, Moves, moves_between, plan_moves
from kafka_assignors.placement._planning.volume import Volume
from kafka_assignors.placement._quality import TopicPartitions
from kafka_assignors.placement._reassignment_file import Placements

UNTHROTTLED_BYTES: Final = 1 << 30
"""Up to so much is copied without a throttle if nobody says anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentPlan:
    """Which replicas are to move, what that takes, and what became of it.

    Attributes:
        moves: The replicas, with the placements before and after; a `MovePlan` if they were planned here.
        after: The placements to reach.
        volume: The bytes that brokers send and get.
        under_way: Partitions that are being reassigned already.
        there: Those of them that are to be where the plan has them.
        elsewhere: Those that are to be on other brokers. No run begins while there are any.
        unknown: The partitions to copy of which no broker says how large they are.
        fenced: The brokers that are fenced, and count as gone.
        untold: Why brokers do not say what their logs hold.
        internal_left: Internal topics that were not named -> their brokers that are to have no replicas.
        racks: Broker -> rack, as the plan goes by them.
        allow_fenced: Whether fenced brokers count as up.
        throttle: Bytes per second of each broker, each way.
        reassigned: How many partitions were reassigned; None if nothing was begun.
    """

    moves: Moves
    after: Topics
    volume: Volume
    under_way: TopicPartitions
    there: TopicPartitions
    elsewhere: TopicPartitions
    unknown: TopicPartitions
    fenced: tuple[int, ...]
    untold: dict[int, str]
    internal_left: dict[str, tuple[int, ...]]
    racks: Racks
    allow_fenced: bool
    throttle: int | None = None
    reassigned: int | None = None

    @property
    def proved(self) -> MovePlan | None:
        """The moves with what is proved about them; None if placements were given."""
        return self.moves if isinstance(self.moves, MovePlan) else None

    @property
    def crowded_racks(self) -> tuple[str, ...]:
        """Racks with so few brokers that each of them has to hold more than an even share of the replicas."""
        loads = {} if self.proved is None else self.proved.replica_loads
        by_rack: dict[str, list[int]] = {}
        for broker, load in loads.items():
            by_rack.setdefault(self.racks[broker] or "", []).append(load)
        return tuple(
            sorted(
                rack
                for rack, held in by_rack.items()
                if len(by_rack) > 1 and (min(held) - 1) * len(loads) >= sum(loads.values())
            )
        )

    @property
    def much(self) -> str:
        """What is too much to be copied before somebody says how fast, in words; empty if it is not."""
        if self.unknown:
            return f"{named(self.unknown)}, of unknown size,"
        return size(self.volume.total) if self.volume.total > UNTHROTTLED_BYTES else ""

    def to_json(self) -> dict[str, Any]:
        return {
            "executed": self.reassigned is not None,
            "reassigned": self.reassigned or 0,
            "plan": asdict(self.moves),
            "after": self.after,
            "bytes": {"sent": self.volume.sent, "got": self.volume.got},
            "throttle": self.throttle,
            "estimated_seconds": None if self.throttle is None else self.volume.seconds(self.throttle),
            "under_way": self.under_way,
            "crowded_racks": self.crowded_racks,
        }


def plan_reassignment(
    source: Cluster | Placements,
    topics: Sequence[str] = (),
    *,
    target: Mapping[str, Placement] | None = None,
    to_brokers: Collection[int] | None = None,
    replication_factor: int | None = None,
    per_topic: bool = False,
    count_replicas: bool = False,
    allow_fenced: bool = False,
    rack_aware: bool = True,
) -> ReassignmentPlan:
    """Plan where replicas should be, with the fewest moves; nothing is changed.

    Args:
        source: The cluster, or placements.
        topics: The topics' names; empty for all but internal ones.
        target: The placements to reach, in place of all that follows; what it does not name stays.
        to_brokers: The brokers that may have replicas; None for all.
        replication_factor: Another than now.
        per_topic: Balance each topic by itself.
        count_replicas: Copy the fewest replicas; else the fewest bytes if these are known.
        allow_fenced: Count fenced brokers as up.
        rack_aware: Whether each partition spreads over the racks; all brokers need one then, or none.

    Raises:
        PlacementError: An argument cannot be, or no placement is allowed.
        ClusterError: No broker answers.
        ImportError: OR-tools is not installed.
    """
    logs = sizes = left = None
    with opened(source, [*(target or topics)], moving=True, rack_aware=rack_aware) as cluster:
        if cluster.admin is not None:
            logs = read_logs(cluster.admin, cluster.topics, cluster.brokers.up)
            sizes = logs.largest(cluster.topics)
            if to_brokers and not topics:
                left = _internal_left(cluster, to_brokers)
    if allow_fenced:
        cluster = cluster._replace(brokers=live.Brokers(cluster.brokers.all, {}))
    if target is not None:
        plan, after = _given(cluster, target, sizes)
    else:
        counted = None if count_replicas else sizes
        plan = _best(cluster, counted, to_brokers, replication_factor, per_topic=per_topic)
        after = plan.after
    there, elsewhere = _compared(cluster, after)
    return ReassignmentPlan(
        moves=plan,
        after=after,
        volume=Volume.of(plan.moves, _leaders(cluster), sizes or {}),
        under_way=_pairs(_under_way(cluster, cluster.topics)),
        there=there,
        elsewhere=elsewhere,
        unknown=() if logs is None else logs.unknown((move.topic, move.partition) for move in plan.moves),
        fenced=tuple(sorted(cluster.brokers.down)),
        untold={} if logs is None else {**logs.silent, **logs.untold},
        internal_left=left or {},
        racks=cluster.brokers.up,
        allow_fenced=allow_fenced,
    )


def reassign(
    cluster: Cluster,
    plan: ReassignmentPlan,
    pacing: Pacing = Pacing(),  # noqa: B008 - frozen
    *,
    watch: Callable[[moving.Progress], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
) -> ReassignmentPlan:
    """Move replicas until topics are placed as planned, and let preferred leaders lead.

    The same call continues a run that ended in any way. On Ctrl-C or an error a throttle is removed, and what
    is under way under it is broken off. Without a throttle it continues in the cluster.

    Args:
        cluster: The cluster.
        plan: See `plan_reassignment`.
        pacing: How gently.
        watch: Gets the progress whenever it changes.
        warn: Gets what there is to know beside it.

    Raises:
        PlacementError: Something is fenced, does not exist, or is on its way elsewhere, or much is to be
            copied without a word on its rate. Nothing was begun.
        ClusterError: The cluster did not do it.
    """
    if plan.much and pacing.throttle is None and not pacing.unthrottled:
        raise PlacementError(
            f"{plan.much} would be copied as fast as brokers can, and slow down producers:"
            " say --throttle BYTES (per second, 10MiB), or --no-throttle. Nothing was begun"
        )
    with connect(cluster) as admin:
        if pacing.throttle is None:
            remove_left(admin, plan.after, warn, live.by_partition(plan.after))
        done = moving.reassign(
            admin, plan.after, pacing, watch=watch, warn=warn, allow_fenced=plan.allow_fenced
        )
        if not done:  # what a killed run began has ended by itself
            remove_left(admin, plan.after, warn)
    return replace(plan, reassigned=done, throttle=pacing.throttle)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """What is under way in some topics.

    Attributes:
        under_way: The partitions that are being reassigned.
        replicas: How many new replicas of them are not in sync.
        missing: How many bytes these lack.
        waits_for: Why they do not get on, or what they wait for.
        throttles: The replication quotas that there are.
    """

    under_way: TopicPartitions
    replicas: int
    missing: int
    waits_for: tuple[Reason, ...]
    throttles: Throttles

    def to_json(self) -> dict[str, Any]:
        return {"under_way": self.under_way, "waits_for": self.waits_for, "throttles": self.throttles}


def verify(
    cluster: Cluster,
    topics: Sequence[str] = (),
    *,
    remove_throttles: bool = False,
    warn: Callable[[str], None] = lambda _: None,
) -> UnderWay:
    """What is under way in some topics and why it does not get on.

    If nothing is, the throttle of a killed run is removed.

    Args:
        cluster: The cluster.
        topics: The topics' names; empty for all but internal ones.
        remove_throttles: Then remove all replication quotas of brokers and of these topics.
        warn: Gets what became of a killed run's throttle.

    Raises:
        PlacementError: There is no such topic.
        ClusterError: No broker answers.
    """
    with connect(cluster) as admin:
        partitions = live.by_partition(live.read_topics(admin, topics or None))
        situation = moving.read_situation(admin, partitions)
        left = situation.throttles
        if not situation.adding:
            left = _clear(admin, partitions, warn, everything=remove_throttles)
    behind = situation.behind()
    return UnderWay(
        under_way=_pairs(sorted(situation.adding)),
        replicas=len(behind),
        missing=sum(one or 0 for one in behind.values()),
        waits_for=tuple(reasons(situation, stalled=False)),
        throttles=left,
    )


@dataclass(frozen=True, slots=True)
class Cancelled:
    """The partitions that stay where they were, and the replication quotas that there are."""

    cancelled: TopicPartitions
    throttles: Throttles


def cancel(
    cluster: Cluster,
    topics: Sequence[str] = (),
    *,
    remove_throttles: bool = False,
    warn: Callable[[str], None] = lambda _: None,
) -> Cancelled:
    """Break off what is under way in some topics, and remove the throttle of a killed run.

    Arguments and errors are those of `verify`; a ClusterError also says what the cluster did not break off.
    """
    with connect(cluster) as admin:
        partitions = live.by_partition(live.read_topics(admin, topics or None))
        try:
            cancelled = moving.cancel(admin, partitions)
        except ClusterError:
            if not moving.under_way(admin, partitions):
                _clear(admin, partitions, warn, everything=remove_throttles)
            raise
        left = _clear(admin, partitions, warn, everything=remove_throttles)
    return Cancelled(_pairs(cancelled), left)


def _clear(
    admin: Admin, partitions: Iterable[TopicPartition], warn: Callable[[str], None], *, everything: bool
) -> Throttles:
    """Remove what a killed run left, or all that there is; what is still there."""
    topics = {tp.topic for tp in partitions}
    remove_left(admin, topics, warn)
    brokers = live.read_brokers(admin).up
    left = read_throttles(admin, brokers, topics)
    if not everything:
        return left
    remove_all(admin, left)
    return read_throttles(admin, brokers, topics)


def _pairs(partitions: Iterable[TopicPartition]) -> TopicPartitions:
    return tuple((tp.topic, tp.partition) for tp in partitions)


def _under_way(cluster: Opened, topics: Topics) -> list[TopicPartition]:
    """The partitions of these topics that are being reassigned."""
    return [tp for tp in sorted(cluster.moving) if tp.partition in topics.get(tp.topic, {})]


def _compared(cluster: Opened, after: Topics) -> tuple[TopicPartitions, TopicPartitions]:
    """Partitions of a plan that are under way: to where it has them, and to other brokers."""
    planned = _under_way(cluster, after)
    there = [tp for tp in planned if cluster.moving[tp].target == after[tp.topic][tp.partition]]
    return _pairs(there), _pairs(sorted({*planned} - {*there}))


def _leaders(cluster: Opened) -> dict[tuple[str, int], int]:
    return {
        (topic, partition): state.leader
        for topic, states in cluster.states.items()
        for partition, state in states.items()
        if state.leader is not None
    }


def _given(
    cluster: Opened, target: Mapping[str, Placement], sizes: Mapping[tuple[str, int], int] | None
) -> tuple[Moves, Topics]:
    """What is to move for given placements, and these; partitions that they do not name stay."""
    named = {topic: {p: [*replicas] for p, replicas in of.items()} for topic, of in target.items()}
    after = {topic: {**cluster.topics[topic], **placement} for topic, placement in named.items()}
    for topic, placement in target.items():
        present = cluster.topics[topic]
        if missing := sorted(placement.keys() - present.keys()):
            raise PlacementError(f"{topic}-{missing[0]} does not exist: the topic has no such partition")
        check_placements({topic: placement}, cluster.brokers.all.keys() | holders(present))
    up = cluster.brokers.up
    brokers = sorted(up.keys() | holders(*after.values()))
    return moves_between(cluster.topics, after, up, brokers=brokers, sizes=sizes), named


def _best(
    cluster: Opened,
    sizes: Mapping[tuple[str, int], int] | None,
    to_brokers: Collection[int] | None,
    replication_factor: int | None,
    *,
    per_topic: bool,
) -> MovePlan:
    wanted, known = {*(to_brokers or ())}, cluster.brokers.all
    if unknown := wanted - known.keys():
        there = first_of(sorted(known), 10)
        raise PlacementError(f"--to-brokers: {are(unknown)} not known: there are {there}")
    if fenced := wanted & cluster.brokers.down.keys():
        raise PlacementError(f"--to-brokers: {are(fenced)} fenced: {live.FENCED_WAYS_OUT}")
    return plan_moves(
        cluster.topics,
        cluster.brokers.up,
        replication_factor=replication_factor,
        sizes=sizes,
        brokers=to_brokers,
        per_topic=per_topic,
        under_way=live.by_topic({tp: move.target for tp, move in cluster.moving.items()}),
    )


def _internal_left(cluster: Opened, to_brokers: Collection[int]) -> dict[str, tuple[int, ...]]:
    """The internal topics with replicas on brokers that are to have none, and these brokers."""
    begun = live.by_topic({tp: move.target for tp, move in cluster.moving.items()})
    found = {
        topic: holders({**placement, **begun.get(topic, {})}) - {*to_brokers}
        for topic, placement in live.placed(cluster.states).items()
        if topic not in cluster.topics
    }
    return {topic: tuple(sorted(brokers)) for topic, brokers in found.items() if brokers}
