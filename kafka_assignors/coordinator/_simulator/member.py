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

from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import TopicPartition

from kafka_assignors._assignors._joins import FRESH
from kafka_assignors._assignors._membership.host import calls
from kafka_assignors._timelines import events
from kafka_assignors.coordinator._simulator.clock import Timer
from kafka_assignors.coordinator._simulator.exchange import (
    RETRY_MS,
    Attempt,
    EndedExchange,
    JoiningMember,
    Trouble,
)
from kafka_assignors.coordinator._simulator.messages import Error

_AT_ONCE: Final = frozenset(
    {Error.ILLEGAL_GENERATION, Error.MEMBER_ID_REQUIRED, Error.REBALANCE_IN_PROGRESS, Error.UNKNOWN_MEMBER_ID}
)
"""Errors of a join after which the same poll joins again without waiting."""

_LATER: Final = frozenset({Error.NOT_COORDINATOR, "NETWORK", "NOT_JOINING", "ASSIGNOR"})
"""Errors of a join that are tried again after `RETRY_MS`; all others end the member."""

_NOTHING: Final = ConsumerProtocolAssignment(0, [], b"")


class SimulatedMember(JoiningMember):
    """A simulated consumer of the classic protocol, as kafka-python's `KafkaConsumer`."""

    _poll_end: Timer | None = None

    def __init__(self, *where: Any, **options: Any) -> None:
        super().__init__(*where, **options)
        self._rejoining = False
        self._join: Attempt | None = None
        self._awaiting = False  # whether a poll waits for the join
        self._completes_joins = False  # as `kafka_assignors._assignors._joins` does
        self._look()

    # What is done to it

    def leave(self) -> None:
        """Close the consumer: a dynamic member leaves the group, a static one only stops."""
        if self._is_lost:
            self._lose_all()
        else:
            self._revoke(self.held)
        self._leave_group()
        self._end(events.Closed(*self._now, reason="left"))

    def pause_polling(self) -> None:
        super().pause_polling()
        self._stop_waiting()

    def subscribe(self, topics: Collection[str]) -> None:
        """Change the subscription, and join again with it, unless it is the same."""
        super().subscribe(topics)
        self._look()

    def look_at_topics(self) -> None:
        self._known = dict(self._partitions())
        self._look()

    def request_rejoin(self) -> None:
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
            if not self._rejoining:
                self._prepare()
                self._rejoining = True
                self._stop_heartbeats()
            self._join = Attempt()
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

    # Joins completed (`kafka_assignors._assignors._joins`)

    def complete_joins(self, *, reads_on: bool) -> None:
        """Take an assignment that came between two polls with the next poll."""
        del reads_on
        self._completes_joins = True

    def _take_or_join(self, attempt: Attempt) -> None:
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
        if self._clock.now - late.at < limit * FRESH:
            self._ended = late
            self._join_ended(attempt, Error.NONE, late.assignment)
        else:
            self._confirm(attempt, late)

    def _confirm(self, attempt: Attempt, late: EndedExchange) -> None:
        """Take an assignment that came long ago only if the coordinator still knows it."""

        def heard(error: str) -> None:
            self._heard(error)
            if error in {Error.NONE, Error.REBALANCE_IN_PROGRESS}:
                self._ended = replace(late, at=self._clock.now)
                self._join_ended(attempt, Error.NONE, late.assignment)
            elif self.running:
                self._join_prepared(attempt)

        self._ask_alive(late.member_id, late.generation, heard)

    def _join_prepared(self, attempt: Attempt) -> None:
        gone = self._is_lost or any(one.topic not in self.topics for one in self.assigned)
        if self._rejoining and self.cooperative and self.assigned and gone:
            self._rejoining = False
            self._join_ended(attempt, Error.REBALANCE_IN_PROGRESS)
        else:
            self._ask_to_join(attempt)

    def _join_ended(
        self,
        attempt: Attempt,
        error: Trouble,
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
            self._report(events.Failed(*self._now, text=error))
            self._end(events.Closed(*self._now, reason="errors"))

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
            events.AssignmentReceived(
                *self._now, generation=self.generation, partitions=given, member_id=self.member_id
            )
        )
        if self._has_others(given):
            self._report(events.Rejected(*self._now, generation=self.generation, partitions=given))
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
        self._report(events.Assigned(*self._now, generation=self.generation, partitions=added))

    def _has_others(self, given: Collection[TopicPartition]) -> bool:
        return any(partition.topic not in self.topics for partition in given)

    def _tell(self, assignment: Any) -> None:
        with calls(self):
            self._assignors[self.strategy or ""].on_assignment(assignment, self.generation)

    def _polled_too_late(self) -> None:
        if self._state == "STABLE":
            self._leave_group()
            self._reset_generation()


def _decode(assignment: bytes) -> Any:
    return ConsumerProtocolAssignment.decode(assignment) if assignment else _NOTHING
