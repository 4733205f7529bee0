"""A reassignment on a real cluster, some partitions at a time, that can be broken off and continued.

The target is all that has to be kept. Partitions that are there already are left out, and reassignments that
are under way are waited for. So the same command continues a run that ended in any way.
"""

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Final

from kafka import TopicPartition
from kafka.errors import KafkaError, NoReassignmentInProgressError, UnknownTopicOrPartitionError
from kafka.protocol.admin import ElectionType

from kafka_assignors._cluster.admin import LOOK_SECONDS, Admin, ClusterError, reason
from kafka_assignors.placement._cluster.logs import read_logs
from kafka_assignors.placement._cluster.stall import Pace, Reason, StallSituation, reasons
from kafka_assignors.placement._cluster.throttle import entries_of, read_throttles, throttled
from kafka_assignors.placement._cluster.topics import (
    Reassignment,
    by_partition,
    by_topic,
    check_up,
    placed,
    read_brokers,
    read_moving,
    read_states,
    read_topics,
    wait_described,
)
from kafka_assignors.placement._placement import Placement, PlacementError

_LOOKS: Final = 6  # at the logs of brokers, in the time after which nothing has got on


@dataclass(frozen=True, slots=True, kw_only=True)
class Pacing:
    """How gently to move replicas.

    Attributes:
        throttle: Bytes per second that each broker may send, and as many that it may get; None for no limit.
        unthrottled: Whether more than 1 GiB may be copied without a throttle.
        at_once: How many partitions are moved at once.
        stalled_after: After how many seconds without progress to say why there is none.

    Raises:
        PlacementError: With such a `throttle`, or so many `at_once`, nothing would ever move.
    """

    throttle: int | None = None
    unthrottled: bool = False
    at_once: int = 10
    stalled_after: float = 30.0

    def __post_init__(self) -> None:
        for name, value in (("throttle", self.throttle), ("at_once", self.at_once)):
            if value is not None and value < 1:
                raise PlacementError(f"{name} is {value}: give 1 or more, or leave it out")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a reassignment is, in partitions that were not from the start where they are to be.

    If nothing has got on for a while, `stalled` says why.
    """

    done: int
    under_way: int
    total: int
    stalled: tuple[Reason, ...] = ()


def reassign(
    admin: Admin,
    targets: Mapping[str, Placement],
    pacing: Pacing = Pacing(),
    *,
    watch: Callable[[Progress], None] = lambda _: None,
    warn: Callable[[str], None] = lambda _: None,
    allow_fenced: bool = False,
) -> int:
    """See `kafka_assignors.placement.reassign`; returns how many partitions were not in their places."""
    wanted = by_partition(targets)
    present = by_partition(read_topics(admin, {*targets}))
    moving = read_moving(admin)
    _check(wanted, present, moving)
    # All that others do with the rest of the target is theirs.
    moves = {
        tp: moving.get(tp)
        or Reassignment(present[tp], replicas, [one for one in replicas if one not in present[tp]])
        for tp, replicas in sorted(wanted.items())
        if tp in moving or present[tp] != replicas
    }
    waiting = [tp for tp in moves if tp not in moving]
    brokers = read_brokers(admin)
    check_up({tp: moves[tp].adding for tp in waiting}, brokers, allow_fenced=allow_fenced)
    copies = entries_of(moves)
    run = _Run(admin, {tp: move.target for tp, move in moves.items()}, waiting, warn)
    held: AbstractContextManager[None] = nullcontext()
    if pacing.throttle is not None and copies:
        give_up = partial(cancel, admin, moves)
        held = throttled(admin, pacing.throttle, copies, up=brokers.up, give_up=give_up, warn=warn)
    try:
        with held:
            run.do(pacing, watch)
            run.wait_placed()
    except KeyboardInterrupt:
        if pacing.throttle is None or not copies:
            warn("what is under way continues in the cluster; the same command does the rest")
        raise
    # Also if nothing was left to move: an interrupted run has elected nobody.
    _elect(admin, _read(admin, wanted).keys() & wanted.keys())
    return len(run.wanted)


@dataclass(slots=True)
class _Run:
    """The partitions that a run moves, or that were under way, and those of them that are not begun."""

    admin: Admin
    wanted: dict[TopicPartition, list[int]]
    waiting: list[TopicPartition]
    warn: Callable[[str], None]

    def drop(self, deleted: Collection[TopicPartition]) -> None:
        for tp in sorted(deleted):
            del self.wanted[tp]
            self.warn(f"{tp.topic}-{tp.partition} was deleted meanwhile: it is left out")

    def wait_placed(self) -> None:
        """Wait until the cluster describes all as wanted."""

        def wrong() -> list[str]:
            present = _read(self.admin, self.wanted)
            self.drop(self.wanted.keys() - present.keys())
            other = [tp for tp, replicas in sorted(self.wanted.items()) if present[tp] != replicas]
            return [
                f"{tp.topic}-{tp.partition} is on {present[tp]} and not on {self.wanted[tp]}, although"
                f" nothing is under way: it was cancelled, or reassigned by others ({len(other)} partitions)"
                for tp in other[:1]
            ]

        wait_described(wrong)

    def do(self, pacing: Pacing, watch: Callable[[Progress], None]) -> None:
        """Begin and wait, so many at once, until nothing is left."""
        running = under_way(self.admin, self.wanted)
        said: Progress | None = None
        pace, looked = Pace(), time.monotonic()
        stalled: tuple[Reason, ...] = ()
        while True:
            free = max(0, pacing.at_once - len(running))
            begun, self.waiting = self.waiting[:free], self.waiting[free:]
            if begun:
                asked = {tp: self.wanted[tp] for tp in begun}
                self.drop(_alter(self.admin, asked, UnknownTopicOrPartitionError))
            running = under_way(self.admin, self.wanted)
            total = len(self.wanted)  # without what was deleted meanwhile
            done = total - len(self.waiting) - len(running)
            if running and time.monotonic() - looked >= pacing.stalled_after / _LOOKS:
                situation = read_situation(self.admin, running)
                pace.look(done, situation.behind())
                looked = time.monotonic()
                is_stalled = looked - pace.since >= pacing.stalled_after
                stalled = tuple(reasons(situation, stalled=True)) if is_stalled else ()
            progress = Progress(done=done, under_way=len(running), total=total, stalled=stalled)
            if total and progress != said:
                watch(progress)
                said = progress
            if not running and not self.waiting:
                return
            time.sleep(LOOK_SECONDS)


def under_way(admin: Admin, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
    """Those of some partitions whose reassignment is under way."""
    return {*partitions} & read_moving(admin).keys()


def read_situation(admin: Admin, partitions: Collection[TopicPartition]) -> StallSituation:
    """Ask for all that says why the reassignment of these partitions does not get on."""
    moving = {tp: move.adding for tp, move in read_moving(admin).items() if tp in partitions}
    topics = read_states(admin, by_topic(moving), missing=True)
    # Others were deleted meanwhile.
    states = {tp: topics[tp.topic][tp.partition] for tp in moving if tp.partition in topics.get(tp.topic, {})}
    brokers = read_brokers(admin)
    return StallSituation(
        {tp: moving[tp] for tp in states},
        states,
        brokers,
        read_logs(admin, by_topic(states), brokers.up),
        read_throttles(admin, brokers.up, {tp.topic for tp in partitions}),
    )


def cancel(admin: Admin, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
    """Break off what is under way of some partitions; they stay where they were.

    Returns those that were broken off; not what has ended, or was deleted, meanwhile.
    """
    running = under_way(admin, partitions)
    gone = NoReassignmentInProgressError, UnknownTopicOrPartitionError
    ended = _alter(admin, dict.fromkeys(sorted(running)), *gone) if running else set()
    return sorted(running - ended)


def _read(admin: Admin, partitions: Mapping[TopicPartition, object]) -> dict[TopicPartition, list[int]]:
    """Where partitions are now, by their topics; nothing of topics that do not exist."""
    return by_partition(placed(read_states(admin, {tp.topic for tp in partitions}, missing=True)))


def _check(
    wanted: Mapping[TopicPartition, list[int]],
    present: Mapping[TopicPartition, list[int]],
    moving: Mapping[TopicPartition, Reassignment],
) -> None:
    for tp, replicas in sorted(wanted.items()):
        name = f"{tp.topic}-{tp.partition}"
        if tp not in present:
            raise PlacementError(f"{name} does not exist: the topic has no such partition")
        if tp in moving and (begun := moving[tp].target) != replicas:
            raise PlacementError(
                f"{name} is being moved to {begun}, and should be on {replicas}: wait until that is done,"
                f" or break it off with `placement cancel {tp.topic}`. If --output kept the plan that"
                " began it, --file continues that plan"
            )


def _alter(
    admin: Admin,
    replicas: Mapping[TopicPartition, list[int] | None],
    *ended: type[KafkaError],
) -> set[TopicPartition]:
    """Begin reassignments, or break off those of partitions that are to have None.

    Returns those that the cluster answered with one of the errors `ended`.
    """
    try:
        answers = admin.ask(lambda client: client.alter_partition_reassignments(replicas))
    except KafkaError as error:
        raise ClusterError(f"the cluster did not take the reassignment: {reason(error)}") from error
    refused = {tp: error for tp, error in answers.items() if error is not None and error not in ended}
    for tp, why in sorted(refused.items()):
        raise ClusterError(
            f"the cluster refused {tp.topic}-{tp.partition} on {replicas[tp]}: {why.__name__};"
            f" {len(refused)} of {len(replicas)} partitions were refused and no more begun"
        )
    return {tp for tp, error in answers.items() if error in ended}


def _elect(admin: Admin, partitions: Collection[TopicPartition]) -> None:
    """Let the preferred leaders lead now: a cluster does it by itself, but may take minutes."""
    wanted = {topic: sorted(of) for topic, of in by_topic(dict.fromkeys(sorted(partitions))).items()}
    if not wanted:
        return
    try:
        # That none is needed is no error to kafka-python.
        admin.ask(lambda client: client.elect_leaders(ElectionType.PREFERRED, wanted))
    except KafkaError as error:
        raise ClusterError(
            f"all replicas are in their places, but not all preferred leaders lead: {reason(error)}"
        ) from error
