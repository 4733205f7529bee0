"""Joins that kafka-python leaves half done, completed: of eager consumers, and where records do not flow on.

docs/design.md says under "Joins are completed" what kafka-python 3.0.12 does, and what is done in its place.
`complete` wraps `_do_join_and_sync_async` of one coordinator.

That the consumer refused an assignment, as it does not subscribe to all of its topics, is noted as well. A
static member that comes back with fewer topics gets its old assignment again and again. Only a subscription
that differs from the last one ends that (KIP-345).
"""

import time
import weakref
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.errors import KafkaError, RebalanceInProgressError
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import MemberState, TopicPartition

from kafka_assignors._assignors._relied_on import JOINS
from kafka_assignors._common.escaping import get_logger

log = get_logger(__name__)

_JOINS: Final = "_do_join_and_sync_async"

REFUSED: Final = "_kafka_assignors_refused"
"""The coordinator's attribute that has the generation whose assignment the consumer refused."""

FRESH: Final = 2 / 3
"""For which part of the session the coordinator's last answer counts as its word that it knows the member."""


@dataclass(frozen=True, slots=True)
class _EndedJoin:
    """A join that has ended: in which generation, with which assignment, and when."""

    generation: Any
    assignment: bytes
    at: float


def completes(coordinator: Any) -> bool:
    """Whether a coordinator's joins are completed here."""
    return _JOINS in vars(coordinator)


def complete(coordinator: Any) -> None:
    """Let a coordinator of kafka-python complete its joins; once is enough.

    A release that differs from what was tried, or has been changed already, is left as it is.
    """
    kind, own = type(coordinator), vars(coordinator)
    if completes(coordinator) or not JOINS.is_in(coordinator):
        return
    join = getattr(kind, _JOINS)
    known = weakref.ref(coordinator)  # which would otherwise be kept by what it keeps
    ended: _EndedJoin | None = None
    taken: Any = None

    async def take_or_join() -> bytes:
        nonlocal ended, taken
        consumer: Any = known()
        if consumer.state is MemberState.STABLE:
            taken = consumer._generation  # noqa: SLF001
        late, ended = ended, None
        if late is not None and (heard := await _heard(consumer, late)) is not None:
            ended = replace(late, at=heard)  # for the next poll, if this one is over before it takes it
            return late.assignment
        if late is not None and _is_refused(consumer, late):
            own[REFUSED] = late.generation.generation_id
            taken = None
        if _has_to_prepare(consumer):
            # What the poll does about this error is to join again, with all that comes before.
            consumer.rejoining = False
            raise RebalanceInProgressError("partitions have to be given up before the next join")
        assignment: bytes = await join(consumer)
        # As of the answer: what is asked from here on is no word that the coordinator knows the member.
        done = _EndedJoin(consumer._generation, assignment, time.monotonic())  # noqa: SLF001
        if not _follows(taken, done.generation):
            await _continue_at_commits(consumer, assignment)
        ended = done
        return assignment

    own[_JOINS] = take_or_join


async def _heard(coordinator: Any, late: _EndedJoin) -> float | None:
    """When the coordinator last knew the member, whose assignment is still to be taken; None if it is not."""
    taken = coordinator.state is not MemberState.REBALANCING
    if taken or coordinator._generation is not late.generation:  # noqa: SLF001
        return None
    config = coordinator.config
    limit = min(float(config["session_timeout_ms"]), float(config["max_poll_interval_ms"])) / 1000
    if time.monotonic() - late.at < limit * FRESH:
        return late.at
    try:
        await coordinator._send_heartbeat_request()  # noqa: SLF001
    except RebalanceInProgressError:
        pass  # the others wait for this member: nothing of its assignment has been given away
    except KafkaError as error:
        log.info("Discarding an assignment that came between two polls: %s", error)
        return None
    return time.monotonic()


def _follows(taken: Any, generation: Any) -> bool:
    """Whether no generation lies between the last one that a member took and this one."""
    return taken is not None and (taken.member_id, taken.generation_id + 1) == (
        generation.member_id,
        generation.generation_id,
    )


async def _continue_at_commits(coordinator: Any, assignment: bytes) -> None:
    """Move an eager consumer, in partitions that it had and gets again, to what the group has committed."""
    subscription = coordinator._subscription  # noqa: SLF001
    if (
        coordinator._rebalance_protocol != RebalanceProtocol.EAGER  # noqa: SLF001
        or not subscription.partitions_auto_assigned()
    ):
        return
    again = (partitions_in(assignment) or set()) & subscription.assigned_partitions()
    try:
        commits = await coordinator._send_offset_fetch_request(again)  # noqa: SLF001
    except KafkaError as error:
        log.warning("Records may come twice, as the commits of %s cannot be read: %s", sorted(again), error)
        return
    for partition, commit in commits.items():
        if partition in subscription.assigned_partitions():
            subscription.seek(partition, commit.offset)


def _is_refused(coordinator: Any, late: _EndedJoin) -> bool:
    """Whether a consumer got an assignment with topics that it does not subscribe to."""
    if coordinator._generation is not late.generation:  # noqa: SLF001
        return False
    given = partitions_in(late.assignment)
    return not subscribes(coordinator, given or ())


def partitions_in(assignment: bytes) -> set[TopicPartition] | None:
    """The partitions of an assignment; None if it cannot be decoded, which kafka-python raises itself."""
    try:
        return set(ConsumerProtocolAssignment.decode(assignment).partitions())
    except Exception:  # noqa: BLE001 - the leader may have sent anything
        return None


def subscribes(coordinator: Any, partitions: Iterable[TopicPartition]) -> bool:
    """Whether a consumer subscribes to the topics of all of these."""
    topics = coordinator._subscription.subscription or ()  # noqa: SLF001
    return all(one.topic in topics for one in partitions)


def _has_to_prepare(coordinator: Any) -> bool:
    """Whether a cooperative consumer in the midst of a join has partitions that it must not hold any more."""
    held = coordinator._subscription.assigned_partitions()  # noqa: SLF001
    if (
        not held
        or not coordinator.rejoining
        or coordinator._rebalance_protocol != RebalanceProtocol.COOPERATIVE  # noqa: SLF001
    ):
        return False
    return coordinator._generation.is_lost() or not subscribes(coordinator, held)  # noqa: SLF001
