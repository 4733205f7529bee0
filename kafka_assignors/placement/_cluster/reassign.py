"""A reassignment on a real cluster, some partitions at a time, that can be broken off and continued.

The target is all that has to be kept. Partitions that are there already are left out, and reassignments that
are under way are waited for. So the same command continues a run that ended in any way.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka import TopicPartition
from kafka.errors import KafkaError, NoReassignmentInProgressError, UnknownTopicOrPartitionError
from kafka.protocol.admin import ElectionType

from kafka_assignors._cluster.admin import LOOK_SECONDS, ClusterError
from kafka_assignors.placement._cluster.logs import read_logs
from kafka_assignors.placement._cluster.stall import STALLED_SECONDS, Pace, StallSituation, reasons
from kafka_assignors.placement._cluster.throttle import Copies, read_throttles, throttled
from kafka_assignors.placement._cluster.topics import (
    check_up,
    read_brokers,
    read_states,
    read_topics,
    replicas_of,
    wait_described,
)
from kafka_assignors.placement._placement import PlacementError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors.placement._cluster.stall import Reason
    from kafka_assignors.placement._cluster.throttle import Throttle
    from kafka_assignors.placement._placement import Placement

AT_ONCE = 10
"""How many partitions are reassigned at once by default."""

_LOOKS: Final = 6  # at the logs of brokers, in the time after which nothing has got on


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a reassignment is.

    Attributes:
        done: How many partitions are where they are to be, those that were so from the start not counted.
        under_way: How many are being reassigned.
        total: How many were elsewhere at the start.
        stalled: If nothing has got on for a while, why.
    """

    done: int
    under_way: int
    total: int
    stalled: tuple[Reason, ...] = ()


def reassign(
    admin: Admin,
    targets: Mapping[str, Placement],
    *,
    at_once: int = AT_ONCE,
    watch: Callable[[Progress], None] | None = None,
    warn: Callable[[str], None] | None = None,
    allow_fenced: bool = False,
    throttle: Throttle | None = None,
    stalled_after: float = STALLED_SECONDS,
) -> int:
    """Move replicas until topics are placed like this, and let preferred leaders lead.

    A throttle is removed in the end, and nothing continues without it: on Ctrl-C or an error, what is under
    way is broken off. Without a throttle it continues in the cluster.
    """
    wanted = by_partition(targets)
    present = by_partition(read_topics(admin, {*targets}))
    moving = read_under_way(admin, wanted)
    running = {tp: one.target for tp, one in moving.items()}
    _check(wanted, present, running)
    brokers = read_brokers(admin)
    check_up(_new_replicas(wanted, present, running), brokers, allow_fenced=allow_fenced)
    waiting = [tp for tp, replicas in sorted(wanted.items()) if tp not in running and present[tp] != replicas]
    # All that others do with the rest of the target is theirs.
    own = {tp: wanted[tp] for tp in [*waiting, *running]}
    say = warn or (lambda _: None)
    work = _Work(admin, own, waiting, say)
    moves: dict[TopicPartition, tuple[Collection[int], Collection[int]]] = {
        tp: (moving[tp].before, moving[tp].adding)
        if tp in moving
        else (present[tp], {*replicas} - {*present[tp]})
        for tp, replicas in own.items()
    }
    copies = Copies.of(moves)
    copies = copies._replace(brokers=copies.brokers & brokers.up.keys())
    with (
        _left_to_the_cluster(say)
        if throttle is None or not copies.replicas
        else throttled(admin, throttle, copies, lambda: cancel(admin, moves))
    ):
        work.do(at_once, watch or (lambda _: None), stalled_after)
        work.wait_placed()
    # Also if nothing was left to move: an interrupted run has elected nobody.
    _elect(admin, _read(admin, wanted).keys() & wanted.keys())
    return work.total


@contextmanager
def _left_to_the_cluster(say: Callable[[str], None]) -> Iterator[None]:
    """Say after Ctrl-C what becomes of the moves: there is no throttle to remove."""
    try:
        yield
    except KeyboardInterrupt:
        say("what is under way continues in the cluster; the same command does the rest")
        raise


@dataclass(slots=True)
class _Work:
    """The partitions that a run moves, or that were under way, and those of them that are not begun."""

    admin: Admin
    wanted: dict[TopicPartition, list[int]]
    waiting: list[TopicPartition]
    warn: Callable[[str], None]

    @property
    def total(self) -> int:
        """How many there are, those that were deleted meanwhile not counted."""
        return len(self.wanted)

    def drop(self, deleted: Collection[TopicPartition]) -> None:
        """Leave out what no longer exists."""
        for tp in sorted(deleted):
            del self.wanted[tp]
            self.warn(f"{tp.topic}-{tp.partition} was deleted meanwhile: it is left out")

    def wait_placed(self) -> None:
        """Wait until the cluster describes all as wanted."""

        def wrong() -> list[str]:
            present = _read(self.admin, self.wanted)
            self.drop(self.wanted.keys() - present.keys())
            other = [tp for tp, replicas in sorted(self.wanted.items()) if present[tp] != replicas]
            if not other:
                return []
            tp = other[0]
            return [
                (
                    f"{tp.topic}-{tp.partition} is on {present[tp]} and not on {self.wanted[tp]}, although"
                    " nothing is under way: it was cancelled, or reassigned by others"
                    f" ({len(other)} partitions)"
                )
            ]

        wait_described(wrong)

    def do(self, at_once: int, watch: Callable[[Progress], None], stalled_after: float) -> None:
        """Begin and wait, so many at once, until nothing is left."""
        running = under_way(self.admin, self.wanted)
        said: Progress | None = None
        pace, looked = Pace(), time.monotonic()
        stalled: tuple[Reason, ...] = ()
        while True:
            free = max(0, at_once - len(running))
            begun, self.waiting = self.waiting[:free], self.waiting[free:]
            if begun:
                asked = {tp: self.wanted[tp] for tp in begun}
                self.drop(_alter(self.admin, asked, ended=(UnknownTopicOrPartitionError,)))
            running = under_way(self.admin, self.wanted)
            done = self.total - len(self.waiting) - len(running)
            if running and time.monotonic() - looked >= stalled_after / _LOOKS:
                situation = read_situation(self.admin, running)
                pace.look(done, situation.behind())
                looked = time.monotonic()
                stalled = (
                    tuple(reasons(situation, stalled=True)) if looked - pace.since >= stalled_after else ()
                )
            progress = Progress(done=done, under_way=len(running), total=self.total, stalled=stalled)
            if self.total and progress != said:
                watch(progress)
                said = progress
            if not running and not self.waiting:
                return
            time.sleep(LOOK_SECONDS)


class Reassignment(NamedTuple):
    """What is under way of a partition."""

    before: list[int]  # the brokers that it would stay on if that were cancelled
    target: list[int]
    adding: list[int]


def read_under_way(
    admin: Admin, partitions: Mapping[TopicPartition, object] | None = None
) -> dict[TopicPartition, Reassignment]:
    """What is under way of some partitions, or of all."""
    return {
        partition: Reassignment(
            [broker for broker in state["replicas"] if broker not in state["adding_replicas"]],
            [broker for broker in state["replicas"] if broker not in state["removing_replicas"]],
            list(state["adding_replicas"]),
        )
        for partition, state in admin.ask(lambda client: client.list_partition_reassignments()).items()
        if partitions is None or partition in partitions
    }


def under_way(admin: Admin, partitions: Mapping[TopicPartition, object]) -> dict[TopicPartition, list[int]]:
    """Of some partitions, those whose reassignment is under way, and what they are to have after it."""
    return {partition: one.target for partition, one in read_under_way(admin, partitions).items()}


def settled(
    topics: Mapping[str, Placement], moves: Mapping[TopicPartition, Reassignment]
) -> dict[str, dict[int, list[int]]]:
    """Placements without what reassignments are adding: where partitions would stay if all were cancelled."""
    return {
        topic: {
            partition: list(
                moves[tp].before if (tp := TopicPartition(topic, partition)) in moves else replicas
            )
            for partition, replicas in placement.items()
        }
        for topic, placement in topics.items()
    }


def targets(moves: Mapping[TopicPartition, Reassignment]) -> dict[str, dict[int, list[int]]]:
    """Where partitions are to be whose reassignment is under way, by topic."""
    return by_topic({tp: one.target for tp, one in moves.items()})


def read_situation(admin: Admin, partitions: Mapping[TopicPartition, object]) -> StallSituation:
    """Ask for all that says why the reassignment of these partitions does not get on."""
    adding = {tp: one.adding for tp, one in read_under_way(admin, partitions).items()}
    topics = by_topic(adding)
    states = read_states(admin, topics)
    brokers = read_brokers(admin)
    return StallSituation(
        adding,
        {tp: states[tp.topic][tp.partition] for tp in adding},
        brokers,
        read_logs(admin, topics, brokers.up),
        read_throttles(admin, brokers.up, topics),
    )


def cancel(admin: Admin, partitions: Collection[TopicPartition]) -> list[TopicPartition]:
    """Break off what is under way of some partitions; they stay where they were.

    Returns those that were broken off; not what has ended, or was deleted, meanwhile.
    """
    running = sorted(under_way(admin, dict.fromkeys(partitions)))
    if not running:
        return []
    ended = _alter(
        admin, dict.fromkeys(running), ended=(NoReassignmentInProgressError, UnknownTopicOrPartitionError)
    )
    return [tp for tp in running if tp not in ended]


def _read(admin: Admin, partitions: Mapping[TopicPartition, object]) -> dict[TopicPartition, list[int]]:
    """Where partitions are now, by their topics; nothing of topics that do not exist."""
    topics = read_states(admin, {tp.topic for tp in partitions}, missing=True)
    return by_partition({topic: replicas_of(states) for topic, states in topics.items()})


def by_partition(topics: Mapping[str, Placement]) -> dict[TopicPartition, list[int]]:
    """Placements of topics as those of partitions."""
    return {
        TopicPartition(topic, p): [*brokers]
        for topic, placed in topics.items()
        for p, brokers in placed.items()
    }


def by_topic(partitions: Mapping[TopicPartition, Any]) -> dict[str, dict[int, Any]]:
    """What partitions have, topic by topic."""
    found: dict[str, dict[int, Any]] = {}
    for tp, one in partitions.items():
        found.setdefault(tp.topic, {})[tp.partition] = one
    return found


def _new_replicas(
    wanted: Mapping[TopicPartition, list[int]],
    present: Mapping[TopicPartition, list[int]],
    running: Mapping[TopicPartition, list[int]],
) -> dict[str, dict[int, list[int]]]:
    """By topic and partition, the brokers that get a replica; those that are getting it already left out."""
    return by_topic(
        {
            tp: [broker for broker in replicas if broker not in present[tp]]
            for tp, replicas in wanted.items()
            if tp not in running
        }
    )


def _check(
    wanted: Mapping[TopicPartition, list[int]],
    present: Mapping[TopicPartition, list[int]],
    running: Mapping[TopicPartition, list[int]],
) -> None:
    for tp, replicas in sorted(wanted.items()):
        name = f"{tp.topic}-{tp.partition}"
        if tp not in present:
            raise PlacementError(f"{name} does not exist: the topic has no such partition")
        if not replicas or len({*replicas}) < len(replicas):
            raise PlacementError(f"{name} is to have replicas {replicas}: brokers must differ")
        if tp in running and running[tp] != replicas:
            raise PlacementError(
                f"{name} is on its way to {running[tp]} and is to be on {replicas}: wait until it is there,"
                f" or break that off with `placement cancel {tp.topic}`. If --output kept the plan that"
                " began it, --file continues that"
            )


def _alter(
    admin: Admin,
    replicas: Mapping[TopicPartition, list[int] | None],
    *,
    ended: tuple[type[KafkaError], ...] = (),
) -> list[TopicPartition]:
    """Begin reassignments, or break off those of partitions that are to have None.

    Returns those that the cluster answered with one of the errors `ended`.
    """
    try:
        answers = admin.ask(lambda client: client.alter_partition_reassignments(replicas))
    except KafkaError as error:
        raise ClusterError(f"the cluster did not take the reassignment: {error}") from error
    refused = {tp: error for tp, error in answers.items() if error is not None and error not in ended}
    for tp, why in sorted(refused.items()):
        raise ClusterError(
            f"the cluster refused {tp.topic}-{tp.partition} on {replicas[tp]}: {why.__name__};"
            f" {len(refused)} of {len(replicas)} partitions were refused and no more begun"
        )
    return sorted(tp for tp, error in answers.items() if error in ended)


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
            f"all replicas are in their places, but not all preferred leaders lead: {error}"
        ) from error
