"""Replicas moved on a running cluster: planned, copied, looked at and broken off."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka_assignors._cluster.admin import Admin, ClusterError
from kafka_assignors._cluster.handle import Cluster, connect
from kafka_assignors._common.words import are, named, size
from kafka_assignors.placement._cluster import reassign as moving, topics as live
from kafka_assignors.placement._cluster.logs import Logs, read_logs
from kafka_assignors.placement._cluster.source import Opened, PlacementFile, Topics, holders, opened
from kafka_assignors.placement._cluster.stall import STALLED_SECONDS, Reason, reasons
from kafka_assignors.placement._cluster.throttle import (
    Throttle,
    Throttles,
    read_throttles,
    remove_all,
    remove_left,
)
from kafka_assignors.placement._explicit import check_placement
from kafka_assignors.placement._placement import PlacementError
from kafka_assignors.placement._planning.moves import MovePlan, Moves, moves_between, plan_moves
from kafka_assignors.placement._planning.volume import Volume

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from kafka import TopicPartition

    from kafka_assignors.placement._placement import Placement
    from kafka_assignors.placement._quality import TopicPartitions

UNTHROTTLED_BYTES: Final = 1 << 30
"""Up to so much is copied without a throttle if nobody says anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How gently to move replicas.

    Attributes:
        throttle: Bytes per second that each broker may send, and as many that it may get; None for no limit.
        unthrottled: Whether more than 1 GiB may be copied without a throttle.
        at_once: How many partitions are moved at once.
        stalled_after: After how many seconds without progress to say why there is none.
    """

    throttle: int | None = None
    unthrottled: bool = False
    at_once: int = moving.AT_ONCE
    stalled_after: float = STALLED_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentPlan:
    """Which replicas are to move, and what that takes.

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
        allow_fenced: Whether fenced brokers count as up.
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
    allow_fenced: bool

    @property
    def much(self) -> str:
        """What is too much to be copied before somebody says how fast, in words; empty if it is not."""
        if self.unknown:
            return f"{named(self.unknown)}, of unknown size,"
        return size(self.volume.total) if self.volume.total > UNTHROTTLED_BYTES else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassigned:
    """A plan, and what became of it.

    Attributes:
        executed: Whether it was done, and not only planned.
        reassigned: How many partitions were reassigned.
        plan: The plan.
        throttle: Bytes per second of each broker, each way.
    """

    executed: bool
    reassigned: int
    plan: ReassignmentPlan
    throttle: int | None

    def to_json(self) -> dict[str, Any]:
        """In types that JSON has."""
        volume, rate = self.plan.volume, self.throttle
        return {
            "executed": self.executed,
            "reassigned": self.reassigned,
            "plan": asdict(self.plan.moves),
            "after": self.plan.after,
            "bytes": {"sent": volume.sent, "got": volume.got},
            "throttle": rate,
            "estimated_seconds": None if rate is None else volume.seconds(rate),
            "under_way": self.plan.under_way,
        }


def plan_reassignment(
    source: Cluster | PlacementFile,
    topics: Sequence[str] = (),
    *,
    target: Mapping[str, Placement] | None = None,
    to_brokers: Collection[int] | None = None,
    replication_factor: int | None = None,
    per_topic: bool = False,
    count_replicas: bool = False,
    allow_fenced: bool = False,
) -> ReassignmentPlan:
    """Plan where replicas should be, as `plan_moves` does; nothing is changed.

    Args:
        source: The cluster, or a file.
        topics: The topics' names; empty for all but internal ones.
        target: The placements to reach, in place of all that follows; what it does not name stays.
        to_brokers: The brokers that may have replicas; None for all.
        replication_factor: Another than now.
        per_topic: Balance each topic by itself.
        count_replicas: Copy the fewest replicas; else the fewest bytes if these are known.
        allow_fenced: Count fenced brokers as up.

    Raises:
        PlacementError: An argument cannot be, or no placement is allowed.
        ClusterError: No broker answers.
        ImportError: OR-tools is not installed.
    """
    wanted = None if target is None else _copied(target)
    with opened(source, [*(wanted or topics)]) as found:
        moves = {} if found.admin is None else _under_way(found.admin, found.topics)
        cluster = _settled(found, moves, allow_fenced=allow_fenced)
        logs = None if found.admin is None else read_logs(found.admin, cluster.topics, found.racks)
        left = {} if topics or found.admin is None else _internal_left(found.admin, to_brokers or ())
    begun = moving.targets(moves)
    sizes = None if logs is None else logs.largest(cluster.topics)
    plan: Moves
    if wanted is not None:
        plan = _given(cluster, wanted, sizes)
    else:
        counted = None if count_replicas else sizes
        plan = _best(cluster, begun, counted, to_brokers, replication_factor, per_topic=per_topic)
        wanted = plan.after
    there, elsewhere = _compared(begun, wanted)
    return ReassignmentPlan(
        moves=plan,
        after=wanted,
        volume=Volume.of(plan.moves, _leaders(cluster), sizes or {}),
        under_way=_pairs(sorted(moves)),
        there=there,
        elsewhere=elsewhere,
        unknown=() if logs is None else _unknown(plan, logs),
        fenced=tuple(sorted(cluster.down)),
        untold={} if logs is None else {**logs.silent, **logs.untold},
        internal_left=left,
        allow_fenced=allow_fenced,
    )


def reassign(
    cluster: Cluster,
    plan: ReassignmentPlan,
    pacing: Pacing | None = None,
    *,
    watch: Callable[[moving.Progress], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> Reassigned:
    """Move replicas until topics are placed as planned, and let preferred leaders lead.

    The same call continues a run that ended in any way. On Ctrl-C or an error a throttle is removed, and what
    is under way under it is broken off. Without a throttle it continues in the cluster.

    Args:
        cluster: The cluster.
        plan: See `plan_reassignment`.
        pacing: How gently; None for `Pacing()`.
        watch: Gets the progress whenever it changes.
        warn: Gets what there is to know beside it.

    Raises:
        PlacementError: Something is fenced, does not exist, or is on its way elsewhere, or much is to be
            copied without a word on its rate. Nothing was begun.
        ClusterError: The cluster did not do it.
    """
    pace, say = pacing or Pacing(), warn or _nobody
    if plan.much and pace.throttle is None and not pace.unthrottled:
        raise PlacementError(
            f"{plan.much} would be copied as fast as brokers can, and slow down producers:"
            " say --throttle BYTES (per second, 10MiB), or --no-throttle. Nothing was begun"
        )
    with connect(cluster) as admin:
        throttle = None if pace.throttle is None else Throttle(pace.throttle, say)
        if throttle is None:
            remove_left(admin, plan.after, say, moving.by_partition(plan.after))
        done = moving.reassign(
            admin,
            plan.after,
            at_once=pace.at_once,
            watch=watch,
            warn=say,
            allow_fenced=plan.allow_fenced,
            throttle=throttle,
            stalled_after=pace.stalled_after,
        )
        if not done:  # what a killed run began has ended by itself
            remove_left(admin, plan.after, say)
    return Reassigned(executed=True, reassigned=done, plan=plan, throttle=pace.throttle)


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
        """In types that JSON has."""
        return {"under_way": self.under_way, "waits_for": self.waits_for, "throttles": self.throttles}


def verify(
    cluster: Cluster,
    topics: Sequence[str] = (),
    *,
    remove_throttles: bool = False,
    warn: Callable[[str], None] | None = None,
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
    with opened(cluster, topics) as found:
        assert found.admin is not None  # noqa: S101 - for the type checker
        situation = moving.read_situation(found.admin, moving.by_partition(found.topics))
        if situation.adding:
            left = read_throttles(found.admin, found.racks, found.topics)
        else:
            left = _clear(found.admin, found.topics, warn or _nobody, everything=remove_throttles)
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
    """What was broken off.

    Attributes:
        cancelled: The partitions that stay where they were.
        throttles: The replication quotas that there are.
    """

    cancelled: TopicPartitions
    throttles: Throttles


def cancel(
    cluster: Cluster,
    topics: Sequence[str] = (),
    *,
    remove_throttles: bool = False,
    warn: Callable[[str], None] | None = None,
) -> Cancelled:
    """Break off what is under way in some topics, and remove the throttle of a killed run.

    Arguments and errors are those of `verify`; a ClusterError also says what the cluster did not break off.
    """
    say = warn or _nobody
    with opened(cluster, topics) as found:
        assert found.admin is not None  # noqa: S101 - for the type checker
        partitions = moving.by_partition(found.topics)
        try:
            cancelled = moving.cancel(found.admin, partitions)
        except ClusterError:
            if not moving.under_way(found.admin, partitions):
                _clear(found.admin, found.topics, say, everything=remove_throttles)
            raise
        left = _clear(found.admin, found.topics, say, everything=remove_throttles)
    return Cancelled(_pairs(cancelled), left)


def _nobody(_: str) -> None:
    pass


def _clear(
    admin: Admin, topics: Collection[str], say: Callable[[str], None], *, everything: bool
) -> Throttles:
    """Remove what a killed run left, or all that there is; what is still there."""
    remove_left(admin, topics, say)
    brokers = live.read_brokers(admin).up
    left = read_throttles(admin, brokers, topics)
    if not everything:
        return left
    remove_all(admin, left)
    return read_throttles(admin, brokers, topics)


def _pairs(partitions: Iterable[TopicPartition]) -> TopicPartitions:
    return tuple((tp.topic, tp.partition) for tp in partitions)


def _copied(topics: Mapping[str, Placement]) -> Topics:
    return {topic: {p: [*replicas] for p, replicas in of.items()} for topic, of in topics.items()}


def _under_way(admin: Admin, topics: Topics) -> dict[TopicPartition, moving.Reassignment]:
    found = moving.read_under_way(admin)
    return {tp: one for tp, one in found.items() if tp.partition in topics.get(tp.topic, {})}


def _settled(
    cluster: Opened, under_way: Mapping[TopicPartition, moving.Reassignment], *, allow_fenced: bool
) -> Opened:
    """The cluster as if nothing were under way; and as if fenced brokers were up, if they are allowed."""
    if cluster.admin is not None and cluster.topics:
        # Again: what has arrived since the topics were described had too many replicas in that.
        states = live.read_states(cluster.admin, cluster.topics)
        topics = {topic: live.replicas_of(partitions) for topic, partitions in states.items()}
        cluster = cluster._replace(topics=moving.settled(topics, under_way), states=states)
    return cluster._replace(racks=cluster.all_racks, down={}) if allow_fenced else cluster


def _compared(begun: Topics, target: Topics) -> tuple[TopicPartitions, TopicPartitions]:
    """Partitions of a target that are under way: to where it has them, and to other brokers."""
    same = {
        (topic, partition): replicas == target[topic][partition]
        for topic, placement in sorted(begun.items())
        for partition, replicas in sorted(placement.items())
        if partition in target.get(topic, {})
    }
    return (
        tuple(one for one, is_same in same.items() if is_same),
        tuple(one for one, is_same in same.items() if not is_same),
    )


def _unknown(plan: Moves, logs: Logs) -> TopicPartitions:
    return tuple(sorted({(move.topic, move.partition) for move in plan.moves} - logs.known))


def _leaders(cluster: Opened) -> dict[tuple[str, int], int]:
    return {
        (topic, partition): state.leader
        for topic, states in cluster.states.items()
        for partition, state in states.items()
        if state.leader is not None
    }


def _given(cluster: Opened, target: Topics, sizes: Mapping[tuple[str, int], int] | None) -> Moves:
    """What is to move for given placements; partitions that these do not name stay."""
    after = {topic: {**placement, **target[topic]} for topic, placement in cluster.topics.items()}
    for topic, placement in target.items():
        present = cluster.topics[topic]
        if missing := sorted(placement.keys() - present.keys()):
            raise PlacementError(f"{topic}-{missing[0]} does not exist: the topic has no such partition")
        try:
            known = [*cluster.racks, *cluster.down, *holders(present)]
            check_placement(placement, known, mixed=True)
        except PlacementError as error:
            raise PlacementError(f"topic {topic}: {error}") from error
    brokers = sorted({*cluster.racks, *(broker for placed in after.values() for broker in holders(placed))})
    return moves_between(cluster.topics, after, cluster.racks, brokers=brokers, sizes=sizes)


def _best(
    cluster: Opened,
    begun: Topics,
    sizes: Mapping[tuple[str, int], int] | None,
    to_brokers: Collection[int] | None,
    replication_factor: int | None,
    *,
    per_topic: bool,
) -> MovePlan:
    if fenced := cluster.down.keys() & {*(to_brokers or ())}:
        raise PlacementError(f"--to-brokers: {are(fenced)} fenced: {live.FENCED_WAYS_OUT}")
    return plan_moves(
        cluster.topics,
        cluster.racks,
        replication_factor=replication_factor,
        sizes=sizes,
        brokers=to_brokers,
        per_topic=per_topic,
        under_way=begun,
    )


def _internal_left(admin: Admin, to_brokers: Collection[int]) -> dict[str, tuple[int, ...]]:
    """The internal topics with replicas on brokers that are to have none, and these brokers."""
    if not to_brokers:
        return {}
    begun = moving.targets(moving.read_under_way(admin))
    found = {
        topic: holders({**live.replicas_of(states), **begun.get(topic, {})}) - {*to_brokers}
        for topic, states in live.read_states(admin, internal="only").items()
    }
    return {topic: tuple(sorted(brokers)) for topic, brokers in found.items() if brokers}
