"""A member's side of the classic protocol, as kafka-python's consumer has it: real assignors, real bytes.

What makes kafka-python differ from the protocol's description is modelled function by function, and held to
the client on a real broker (integration_tests/test_client_behaviour.py):

- Its application polls for a time, then works. Only a poll begins a join, applies an assignment, and calls
  listeners; heartbeats and a join under way continue between polls.
- A join that ends between two polls is discarded, and the next poll joins again
  (`BaseCoordinator.join_group_async`).
- What a member revokes before it joins, it revokes only in the first try of a join
  (`ConsumerCoordinator._on_join_prepare_async`, skipped while `rejoining`).
- It counts as in a generation once JoinGroup is answered, before it has its assignment.
- From then on it sends no heartbeat until a poll has applied the assignment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._timelines.events import (
    Assigned,
    AssignmentReceived,
    Closed,
    Failed,
    Joining,
    Led,
    Rejected,
)
from kafka_assignors.assignors import Assignor
from kafka_assignors.assignors._joins import FRESH
from kafka_assignors.assignors._membership.host import Cancel, Host, calls
from kafka_assignors.coordinator._simulator.consumer import ClassicConsumer
from kafka_assignors.coordinator._simulator.messages import Error, Join, Sync
from kafka_assignors.leader import lead

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kafka.structs import TopicPartition

    from kafka_assignors._timelines.events import Event
    from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
    from kafka_assignors.coordinator._simulator.clock import Clock, Timer
    from kafka_assignors.coordinator._simulator.messages import Joined, Synced
    from kafka_assignors.coordinator._simulator.settings import MemberSettings

RETRY_MS: Final = 100
"""How long a member waits before it asks again after an error: `retry.backoff.ms`."""

REQUEST_TIMEOUT_MS: Final = 30_000
"""How long it waits for an answer: `request.timeout.ms`."""

_AT_ONCE: Final = frozenset(
    {Error.ILLEGAL_GENERATION, Error.MEMBER_ID_REQUIRED, Error.REBALANCE_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID}
)
"""Errors of a join after which the same poll joins again without waiting."""

_LATER: Final = frozenset({Error.NOT_COORDINATOR, "NETWORK", "NOT_JOINING", "ASSIGNOR"})
"""Errors of a join that are tried again after `RETRY_MS`; all others end the member."""

_State = Literal["UNJOINED", "REBALANCING", "STABLE"]


@dataclass(slots=True, eq=False)
class _Attempt:
    """One exchange of JoinGroup and SyncGroup; `done` once it has ended, whoever hears of it."""

    done: bool = False


@dataclass(frozen=True, slots=True)
class _EndedExchange:
    """An exchange that gave an assignment: as whom, in which generation, and when."""

    member_id: str
    generation: int
    assignment: bytes
    at: int


class SimulatedMember(ClassicConsumer):
    """A simulated consumer of the classic protocol, as kafka-python's `KafkaConsumer`.

    `assigned` are its client's partitions, `held` its application's. `refused` is the generation whose
    assignment it refused last. Raises ValueError if the assignors have no way to rebalance in common.
    """

    def __init__(
        self,
        name: str,
        group: HostedClassicGroup,
        clock: Clock,
        *,
        topics: Collection[str],
        partitions: Callable[[], Mapping[str, Collection[int]]],
        assignors: Sequence[AbstractPartitionAssignor],
        instance_id: str | None,
        settings: MemberSettings,
        report: Callable[[Event], None],
    ) -> None:
        super().__init__(
            name, clock, topics=topics, instance_id=instance_id, settings=settings, report=report
        )
        self.generation = NO_GENERATION
        self.assigned: frozenset[TopicPartition] = frozenset()
        self._group = group
        self._partitions = partitions
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._host = SimulatedHost(self)
        with calls(self._host):
            ways = [set(assignor.supported_protocols()) for assignor in self._assignors.values()]
        common = set.intersection(*ways)
        if not common:
            raise ValueError(f"{', '.join(self._assignors)} are not all eager, nor all cooperative")
        self.cooperative = RebalanceProtocol.COOPERATIVE in common
        self._state: _State = "UNJOINED"
        self._rejoin_needed = True
        self._rejoining = False
        self._join: _Attempt | None = None
        self._joined_topics: frozenset[str] | None = None
        self.strategy: str | None = None
        self.refused = NO_GENERATION
        self._leads = False
        self._known: Mapping[str, Collection[int]] = {}
        self._led_with: Mapping[str, Collection[int]] | None = None
        self._awaiting = False  # whether a poll waits for the join
        self._poll_end: Timer | None = None
        self._completes_joins = False  # as `kafka_assignors.assignors._joins` does
        self._ended: _EndedExchange | None = None
        self._losing = 0  # answers of the coordinator that will get lost
        self._misses_coordinator = False  # one that is cut off, and knows; it looks for it before it joins
        self._look()

    # What is done to it

    def leave(self) -> None:
        """Close the consumer: a dynamic member leaves the group, a static one only stops."""
        if self._is_lost:
            self._lose_all()
        else:
            self._revoke(self.held)
        self._leave_group()
        self._end(Closed(*self._now, reason="left"))

    def pause_polling(self) -> None:
        """Let the application hang; heartbeats continue until `max_poll_interval_ms` is over."""
        super().pause_polling()
        self._stop_waiting()

    def subscribe(self, topics: Collection[str]) -> None:
        """Change the subscription, and join again with it, unless it is the same."""
        super().subscribe(topics)
        self._look()

    def look_at_topics(self) -> None:
        """Get fresh metadata: a leader whose topics changed joins again."""
        self._known = dict(self._partitions())
        self._look()

    def lose_answers(self, count: int) -> None:
        """Let so many of the coordinator's next answers to joins and syncs get lost."""
        self._losing = count

    def cut(self) -> None:
        """Let nothing pass; a join under way fails."""
        super().cut()
        if self._join is not None and not self._join.done:
            self._fail(self._join)

    def reconnect(self) -> None:
        self._misses_coordinator = False
        super().reconnect()

    def _fail(self, attempt: _Attempt) -> None:
        self._misses_coordinator = True
        self._after(RETRY_MS, lambda: self._join_ended(attempt, "NETWORK"))

    def request_rejoin(self) -> None:
        """Join again with the next poll."""
        self._rejoin_needed = True
        self._look()

    # Polls

    @property
    def needs_rejoin(self) -> bool:
        """Whether the next poll joins (`ConsumerCoordinator.need_rejoin`)."""
        return (
            (self._led_with is not None and self._led_with != self._known)
            or self._joined_topics != self.topics
            or self._rejoin_needed
        )

    def _look(self) -> None:
        """Let the next poll join if there is a reason to."""
        needed = self.needs_rejoin
        self.stable = self._state == "STABLE" and not needed
        if needed and self._poll is None and not self._awaiting and self._paused_at is None:
            self._at_next_poll(self._poll_now)

    def _poll_now(self) -> None:
        self._poll = None
        if not self.needs_rejoin:
            return
        self._awaiting = True
        if self.settings.work_ms:
            self._poll_end = self._after(self.settings.poll_ms, self._stop_waiting_and_work)
        self._go_on()

    def _stop_waiting_and_work(self) -> None:
        self._stop_waiting()
        self._poll = self._after(self.settings.work_ms, self._poll_now)

    def _stop_waiting(self) -> None:
        self._awaiting = False
        if self._poll_end is not None:
            self._poll_end.cancel()
            self._poll_end = None

    def _go_on(self) -> None:
        """What a poll does as long as the consumer has to join (`BaseCoordinator.join_group_async`)."""
        if not self.needs_rejoin:
            self._stop_waiting()
            return
        if self._join is None or self._join.done:  # what ended between two polls is thrown away
            if self._misses_coordinator:
                self._join = _Attempt()
                self._fail(self._join)
                return
            if not self._rejoining:
                self._prepare()
                self._rejoining = True
                self._stop_heartbeats()
            self._join = _Attempt()
            if self._completes_joins:
                self._take_or_join(self._join)
            else:
                self._ask_to_join(self._join)

    def _prepare(self) -> None:
        """What comes before a join, once (`ConsumerCoordinator._on_join_prepare_async`)."""
        if self._is_lost and self.assigned:
            self._lose_all()
            self.assigned = frozenset()
        elif not self.cooperative:
            self._revoke(self.held)
        else:
            gone = frozenset(one for one in self.assigned if one.topic not in self.topics)
            self._revoke(gone)
            self.assigned -= gone
        self._leads = False

    # Joins completed (`kafka_assignors.assignors._joins`)

    def complete_joins(self, *, reads_on: bool) -> None:
        """Take an assignment that came between two polls with the next poll."""
        del reads_on
        self._completes_joins = True

    def _take_or_join(self, attempt: _Attempt) -> None:
        late, self._ended = self._ended, None
        if late is None or (late.member_id, late.generation) != (self.member_id, self.generation):
            self._join_prepared(attempt)
            return
        if self._state != "REBALANCING":  # it was taken
            if self._has_others(_decode(late.assignment).partitions()):
                self.refused = late.generation
            self._join_prepared(attempt)
            return
        limit = min(self.settings.session_timeout_ms, self.settings.max_poll_interval_ms)
        if self.cut_off and self._clock.now - late.at >= limit * FRESH:
            self._join_prepared(attempt)
            return
        if self._clock.now - late.at < limit * FRESH:
            self._ended = late
            self._join_ended(attempt, Error.NONE, late.assignment)
            return

        def sent(reply: Callable[[str], None]) -> None:
            reply(self._group.heartbeat(late.member_id, self.instance_id, late.generation))

        def heard(error: str) -> None:
            self._heard(error)
            if error in {Error.NONE, Error.REBALANCE_IN_PROGRESS}:
                self._ended = replace(late, at=self._clock.now)
                self._join_ended(attempt, Error.NONE, late.assignment)
            elif self.running:
                self._join_prepared(attempt)

        self._ask(sent, heard)

    def _join_prepared(self, attempt: _Attempt) -> None:
        gone = self._is_lost or any(one.topic not in self.topics for one in self.assigned)
        if self._rejoining and self.cooperative and self.assigned and gone:
            self._rejoining = False
            self._join_ended(attempt, Error.REBALANCE_IN_PROGRESS)
        else:
            self._ask_to_join(attempt)

    # A join (`BaseCoordinator._do_join_and_sync_async`)

    def _ask_to_join(self, attempt: _Attempt) -> None:
        self._state = "REBALANCING"
        self._joined_topics = self.topics
        with calls(self._host):
            said = {name: assignor.metadata(self.topics) for name, assignor in self._assignors.items()}
        self._report(
            Joining(
                *self._now,
                member_id=self.member_id,
                topics=tuple(sorted(self.topics)),
                claimed_generation=max(one.generation_id for one in said.values()),
            )
        )
        request = Join(
            member_id=self.member_id,
            client_id=self.name,
            instance_id=self.instance_id,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.max_poll_interval_ms,
            protocols={name: one.encode() for name, one in said.items()},
        )
        timeout = max(REQUEST_TIMEOUT_MS, self.settings.max_poll_interval_ms + 5000)
        self._request(
            attempt, lambda reply: self._group.join(request, reply), self._joined, timeout_ms=timeout
        )

    def _request(
        self,
        attempt: _Attempt,
        request: Callable[[Callable[[Any], None]], None],
        hear: Callable[[_Attempt, Any], None],
        *,
        timeout_ms: int,
    ) -> None:
        if self.cut_off:
            self._fail(attempt)
            return
        is_lost, self._losing = self._losing > 0, max(self._losing - 1, 0)
        answered = False

        def arrived(answer: Any) -> None:
            nonlocal answered
            answered = not is_lost
            if answered and not attempt.done:
                hear(attempt, answer)

        def timed_out() -> None:
            # Who thaws reads what has come before it looks for what has not.
            if not answered:
                self._join_ended(attempt, "NETWORK")

        self._ask(request, arrived)
        self._after(timeout_ms, timed_out)

    def _joined(self, attempt: _Attempt, answer: Joined) -> None:
        if answer.error == Error.MEMBER_ID_REQUIRED:
            self._reset_generation(answer.member_id)
        elif answer.error == Error.UNKNOWN_MEMBER_ID:
            self._reset_generation()
        if answer.error:
            self._join_ended(attempt, answer.error)
            return
        if self._state != "REBALANCING":
            self._join_ended(attempt, "NOT_JOINING")
            return
        self.member_id, self.generation = answer.member_id, answer.generation
        self.strategy = answer.strategy
        assignments: Mapping[str, bytes] = {}
        if answer.leader == answer.member_id:
            self._leads = True
            self._led_with = self._known = dict(self._partitions())
            if not answer.skip_assignment:
                try:
                    assignments = self._lead(answer.members)
                except Exception as error:
                    if isinstance(self._assignors[answer.strategy], Assignor):
                        raise
                    # What another's assignor raises comes out of its application's poll; the next one joins.
                    self._report(Failed(*self._now, text=repr(error)))
                    self._join_ended(attempt, "ASSIGNOR")
                    return
        request = Sync(
            member_id=self.member_id,
            generation=self.generation,
            instance_id=self.instance_id,
            assignments=assignments,
        )
        self._request(
            attempt,
            lambda reply: self._group.sync(request, reply),
            self._synced,
            timeout_ms=REQUEST_TIMEOUT_MS,
        )

    def _lead(self, members: Sequence[tuple[str, str | None, bytes]]) -> dict[str, bytes]:
        assert self._led_with is not None  # noqa: S101 - for the type checker
        self._report(Led(*self._now, generation=self.generation))
        assignor = self._assignors[self.strategy or ""]
        with calls(self._host):
            if isinstance(assignor, Assignor):
                return lead(self._led_with, members, assignor)
            made = assignor.assign(
                KnownTopics(self._led_with),
                [
                    JoinGroupResponse.JoinGroupResponseMember(
                        member_id=member_id,
                        group_instance_id=instance_id,
                        metadata=ConsumerProtocolSubscription.decode(subscription),
                    )
                    for member_id, instance_id, subscription in members
                ],
            )
        return {member_id: assignment.encode() for member_id, assignment in made.items()}

    def _synced(self, attempt: _Attempt, answer: Synced) -> None:
        if answer.error:
            self._rejoin_needed = True
            if answer.error == Error.UNKNOWN_MEMBER_ID:
                self._reset_generation()
            elif answer.error == Error.ILLEGAL_GENERATION:
                self._reset_generation(self.member_id)
        else:
            self._ended = _EndedExchange(self.member_id, self.generation, answer.assignment, self._clock.now)
        self._join_ended(attempt, answer.error, answer.assignment)

    def _join_ended(
        self,
        attempt: _Attempt,
        error: Error | Literal["NETWORK", "NOT_JOINING", "ASSIGNOR"],
        assignment: bytes = b"",
    ) -> None:
        if attempt.done:  # given up before
            return
        attempt.done = True
        if not self._awaiting:
            return
        self._join = None
        if not error:
            self._rejoining = self._rejoin_needed = False
            self._state = "STABLE"
            self._keep_alive()
            self._stop_waiting()
            self._take(assignment)
            self._look()
        elif error in _AT_ONCE:
            self._go_on()
        elif error in _LATER:
            self._after(RETRY_MS, self._try_again)
        else:
            self._report(Failed(*self._now, text=error))
            self._end(Closed(*self._now, reason="errors"))

    def _try_again(self) -> None:
        if self._awaiting and self._join is None:
            self._go_on()

    def _take(self, encoded: bytes) -> None:
        """Apply an assignment (`ConsumerCoordinator._on_join_complete_async`)."""
        if not self._leads:
            self._led_with = None
        assignment = _decode(encoded)
        given = frozenset(assignment.partitions())
        self._report(
            AssignmentReceived(
                *self._now, generation=self.generation, partitions=given, member_id=self.member_id
            )
        )
        if self._has_others(given):
            self._report(Rejected(*self._now, generation=self.generation, partitions=given))
            self._rejoin_needed = True
            return
        before, self.assigned = self.assigned, given
        self._tell(assignment)
        if self.cooperative:
            self._revoke(before - given)
            self._rejoin_needed |= bool(before - given)
            added = given - before
        else:
            added = given
        self.held |= added
        self._report(Assigned(*self._now, generation=self.generation, partitions=added))

    def _has_others(self, given: Collection[TopicPartition]) -> bool:
        """Whether there are partitions of topics that it does not subscribe to."""
        return any(partition.topic not in self.topics for partition in given)

    def _tell(self, assignment: Any) -> None:
        with calls(self._host):
            self._assignors[self.strategy or ""].on_assignment(assignment, self.generation)

    # Membership

    @property
    def _is_lost(self) -> bool:
        return self.generation == NO_GENERATION or not self.member_id

    def _reset_generation(self, member_id: str = "") -> None:
        self.generation, self.member_id = NO_GENERATION, member_id
        self._rejoin_needed = True
        self._state = "UNJOINED"
        self._stop_heartbeats()
        self._look()

    def _leave_group(self) -> None:
        """Tell the coordinator; static members never do (`BaseCoordinator.maybe_leave_group_async`)."""
        if self.instance_id is None and self.member_id:
            member_id = self.member_id
            self._send(lambda: self._group.leave(member_id))

    def _keep_alive(self) -> None:
        self._stop_heartbeats()
        self._beat = self._after(self.settings.heartbeat_interval_ms, self._send_heartbeat)

    def _stop_heartbeats(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
            self._beat = None

    def _send_heartbeat(self) -> None:
        member_id, generation = self.member_id, self.generation

        def sent(reply: Callable[[str], None]) -> None:
            reply(self._group.heartbeat(member_id, self.instance_id, generation))

        self._ask(sent, self._heard)
        self._keep_alive()

    def _heard(self, error: str) -> None:
        """The answer to a heartbeat; one sent before a join may come in its midst."""
        if error == Error.REBALANCE_IN_PROGRESS:
            self.request_rejoin()
        elif error == Error.UNKNOWN_MEMBER_ID:
            self._reset_generation()
        elif error == Error.ILLEGAL_GENERATION:
            self._reset_generation(self.member_id)
        elif error not in {Error.NONE, Error.NOT_COORDINATOR}:
            self._report(Failed(*self._now, text=error))
            self._end(Closed(*self._now, reason="errors"))

    def _polled_too_late(self) -> None:
        if self._state == "STABLE":
            self._leave_group()
            self._reset_generation()


@dataclass(frozen=True, slots=True)
class SimulatedHost(Host):
    """A simulated consumer, as its assignors see it."""

    member: SimulatedMember

    @classmethod
    def of(cls, consumer: Any) -> SimulatedHost:
        return cls(consumer)

    @property
    def consumer(self) -> object:
        return self.member

    @property
    def cooperative(self) -> bool:
        return self.member.cooperative

    @property
    def generation(self) -> int:
        return self.member.generation

    @property
    def strategy(self) -> str | None:
        return self.member.strategy

    @property
    def refused(self) -> int:
        return self.member.refused

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return self.member.assigned

    @property
    def heartbeat_interval(self) -> float:
        return self.member.settings.heartbeat_interval_ms / 1000

    @property
    def patience(self) -> float:
        settings = self.member.settings
        return min(settings.session_timeout_ms, settings.max_poll_interval_ms, REQUEST_TIMEOUT_MS) / 1000

    @property
    def closed(self) -> bool:
        return not self.member.running

    def request_rejoin(self) -> None:
        self.member.request_rejoin()

    def complete_joins(self, *, reads_on: bool) -> None:
        self.member.complete_joins(reads_on=reads_on)

    def call_later(self, seconds: float, action: Callable[[Host], None]) -> Cancel:
        """As `Host`, in virtual time."""
        return self.member.call_later(round(seconds * 1000), lambda: action(self))


_NOTHING: Final = ConsumerProtocolAssignment(0, [], b"")


def _decode(assignment: bytes) -> Any:
    return ConsumerProtocolAssignment.decode(assignment) if assignment else _NOTHING


class KnownTopics:
    """kafka-python's ClusterMetadata, as far as assignors ask it."""

    def __init__(self, topics: Mapping[str, Collection[int]]) -> None:
        self._topics = topics

    def topics(self) -> set[str]:
        return set(self._topics)

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """The partition ids of a topic; None for one that does not exist."""
        return set(self._topics[topic]) if topic in self._topics else None

    def brokers(self) -> list[Any]:
        """None: replicas are in no racks."""
        return []
