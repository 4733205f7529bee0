"""A cooperative consumer of kafka-python that reads on while it joins (KIP-429).

docs/design.md says under "Records flow while a group rebalances" what kafka-python 3.0 does, and how this
differs. `kafka_assignors._assignors._membership` has the rules.

The application's thread runs `poll` and `time_to_next_poll`, with what these read. `request_rejoin` may
come from any thread. All else runs in the I/O thread.
"""

import math
import time
from collections.abc import Iterable
from typing import Any, Final

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import (
    FencedInstanceIdError,
    IllegalGenerationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MemberIdRequiredError,
    NodeNotReadyError,
    RebalanceInProgressError,
    RequestTimedOutError,
    RetriableError,
    UnknownMemberIdError,
)
from kafka.structs import MemberState, TopicPartition
from kafka.util import Timer

from kafka_assignors._assignors._flow_member import MemberCoordinator
from kafka_assignors._assignors._flow_state import FlowState, JoinsApart
from kafka_assignors._assignors._joins import REFUSED, completes, partitions_in, subscribes
from kafka_assignors._assignors._membership.certainty import Certainty, sooner_than
from kafka_assignors._assignors._membership.phases import Event, Phase
from kafka_assignors._assignors._relied_on import FLOW, wait
from kafka_assignors._common.escaping import get_logger

log = get_logger(__name__)

_TICK: Final = 0.05
"""Seconds after which a poll that waits for records first looks at the join again."""

_LONGEST_TICK: Final = 0.5
"""The same of a long join: after this the client's fetches return anyway (its `fetch_max_wait_ms`)."""

_LOOK: Final = 1.0
"""Seconds after which a poll that waits for a join shows again that the application polls."""

_AT_ONCE: Final = (
    IllegalGenerationError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
"""Errors of a join after which the next one begins without a pause, as in `join_group_async`."""

_NO_CONNECTION: Final = (KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, RequestTimedOutError)
"""Errors of a join whose own connection is refused, or never answered, as at a broker that has too many."""


def install(coordinator: Any) -> bool:
    """Let a consumer read on while it joins; once is enough. Returns whether it does.

    An eager consumer does not, nor one whose joins are completed in the other way. Nor does it if this
    release of kafka-python differs from what was tried.
    """
    if isinstance(coordinator, FlowingCoordinator):
        return True
    if (
        coordinator._rebalance_protocol != RebalanceProtocol.COOPERATIVE  # noqa: SLF001
        or completes(coordinator)
        or not FLOW.is_in(coordinator)
    ):
        return False
    config = coordinator.config
    flow = FlowState(Certainty(config["session_timeout_ms"] / 1000, config["max_poll_interval_ms"] / 1000))
    coordinator._flow = flow  # noqa: SLF001 - declared below
    coordinator._manager = JoinsApart(coordinator._manager, flow, coordinator.group_id)  # noqa: SLF001
    # The consumer has made its coordinator already, and has no setting for another one.
    kind = type(coordinator)
    coordinator.__class__ = (
        FlowingCoordinator
        if kind is ConsumerCoordinator
        else type(kind.__name__, (FlowingCoordinator, kind), {})
    )
    return True


class FlowingCoordinator(MemberCoordinator):
    """kafka-python's coordinator, whose consumer reads on while it joins; made by `install` only."""

    _manager: JoinsApart

    # What the consumer asks ------------------------------------------------------------------------------

    def poll(self, timeout_ms: float | None = None) -> bool:
        """As ConsumerCoordinator's; it waits for a join only if there is nothing to deliver meanwhile.

        It waits as well if the coordinator has not confirmed for so long that its partitions may be others'.
        """
        if self.group_id is None or not self._subscription.partitions_auto_assigned():
            return bool(super().poll(timeout_ms))
        timer = Timer(timeout_ms)
        try:
            self._invoke_completed_offset_commit_callbacks()
            if self._has_to_step:
                self.heartbeat.poll()
                if not self._net.run(self._step, timer.timeout_ms):
                    return False
            self.poll_heartbeat()
            self._maybe_auto_commit_offsets_async()
        except KafkaTimeoutError:
            return False
        return True

    def time_to_next_poll(self) -> float:
        """As ConsumerCoordinator's, in seconds; short while a join may end, or a heartbeat is to be answered.

        A poll of 20 s on an idle topic then takes the assignment soon after it is there. While a join waits
        for others, the look grows to a tenth of that time: 200 consumers that look every 50 ms keep two
        processors busy.
        """
        usual = float(super().time_to_next_poll())
        if not self._subscription.partitions_auto_assigned():
            return usual
        flow, now = self._flow, time.monotonic()
        usual = min(usual, flow.certainty.until - now)
        if self._has_to_step:
            lasts = now - flow.changed if flow.phase.waits_for_others else 0.0
            return max(_TICK, min(lasts / 10, _LONGEST_TICK, usual))
        soon = now < flow.listens_until or self.heartbeat.last_send > self.heartbeat.last_receive
        return min(usual, _TICK) if soon else usual

    def refresh_committed_offsets_if_needed(self, timeout_ms: float | None = None) -> bool:
        """As ConsumerCoordinator's; a poll waits for them only while the rest is certainly its own."""
        if timeout_ms is not None and self._subscription.partitions_auto_assigned():
            # Half of that: the poll looks again, and records are to be handed out before it is over.
            left = max(0.0, self._flow.certainty.until - time.monotonic()) / 2
            timeout_ms = min(timeout_ms, 1000 * left)
        return bool(super().refresh_committed_offsets_if_needed(timeout_ms))

    @property
    def _is_joining(self) -> bool:
        return self._join_task is not None or bool(self.need_rejoin())

    @property
    def _is_leaving(self) -> bool:
        """Whether LeaveGroup is on its way: its answer resets the generation that there is by then."""
        return self._flow.phase is Phase.OUT and not self._generation.is_lost()

    @property
    def _has_to_step(self) -> bool:
        return self._is_joining or bool(self.coordinator_unknown()) or not self._is_certain

    @property
    def _is_certain(self) -> bool:
        """Whether what it has is certainly its own."""
        return self._flow.phase.is_member and time.monotonic() < self._flow.certainty.until

    @property
    def _may_take(self) -> bool:
        """Whether a join that has ended may be looked at: its assignment only while the member is known.

        A process that was frozen finds an assignment of which others may have got all since.
        """
        flow = self._flow
        return flow.phase is not Phase.ASSIGNED or time.monotonic() < flow.certainty.known_until

    @property
    def _delivers(self) -> bool:
        """Whether a poll may give records though the group rebalances.

        A member delivers what it holds while nobody else can have it: it is in a generation, and the
        coordinator has confirmed that within a session. A poll that finds this goes on for records, and looks
        at the join again with the next. One that does not waits, as there is nothing else to do.
        """
        return self._is_certain and bool(self._subscription.assigned_partitions())

    # A join ----------------------------------------------------------------------------------------------

    async def _step(self, timeout_ms: float | None) -> bool:
        """Give up what has to be, begin a join, take its assignment, or have the coordinator confirm.

        Returns whether the poll may look for records.
        """
        timer = Timer(timeout_ms)
        while self._is_joining and not self._is_leaving:
            await self._give_up()
            if self._join_task is None:
                if not await self._may_begin(timer):
                    return self._delivers
                self._begin_join()
            task = self._join_task
            while not (task.is_done or self._delivers or timer.expired):
                self.heartbeat.poll()
                await wait(self, task, 1000 * min(_LOOK, _left(timer)))
            if not task.is_done:
                return self._delivers
            if task is not self._join_task:
                continue  # the next poll has it: this one's application was called away, as by a signal
            if not self._may_take:
                break
            await self._end_join()
        if not self._is_certain and await self.ensure_coordinator_ready_async(timeout_ms=timer.timeout_ms):
            self._maybe_start_heartbeat_loop()  # an error may have ended it
            self.heartbeat.heartbeat_failed = True  # so the next is due retry_backoff_ms after the last
            self._heartbeat_wakeup.notify()
            await self._net.sleep(min(_TICK, _left(timer)))
        return self._is_certain  # if so, the heartbeats look for a coordinator that moved

    async def _may_begin(self, timer: Any) -> bool:
        """Whether it is time for a join; waits for that only if there is nothing to deliver."""
        pause = max(0.0, self._flow.not_before - time.monotonic())
        left = _left(timer)
        if pause and not self._delivers:
            await self._net.sleep(min(pause, left))
            return left >= pause
        return not pause

    def _begin_join(self) -> None:
        # What _on_join_prepare_async does beside committing and giving up.
        self._is_leader = False
        self._subscription.reset_group_subscription()
        self._maybe_start_heartbeat_loop()
        if self._flow.phase.is_member:
            self._send_heartbeats()
        else:
            self._disable_heartbeat()
        self._join_task = self._manager.call_soon(self._join)

    async def _join(self) -> bytes:
        """One join, from the look for the coordinator on."""
        await self.ensure_coordinator_ready_async(timeout_ms=self.config["session_timeout_ms"])
        if self._subscription.subscribed_pattern:  # as ConsumerCoordinator.poll: see KAFKA-3949
            await wait(self, self._cluster.request_update(), self.config["request_timeout_ms"])
        return await self._do_join_and_sync_async()

    async def _do_join_and_sync_async(self) -> bytes:
        """As BaseCoordinator's; another round that begins meanwhile is joined as well.

        That is so without a poll: all others wait for this member, if it leads for its plan, too.
        """
        flow = self._flow
        while True:
            try:
                return bytes(await super()._do_join_and_sync_async())
            except BaseException as error:
                again = isinstance(error, RebalanceInProgressError)
                if isinstance(error, RetriableError) and flow.phase is Phase.SYNCING:
                    # Such as LeaderNotAvailableError of an assignor that waits for metadata. The phase stays,
                    # as a commit would be refused.
                    again = True
                    await self._net.sleep(self.config["retry_backoff_ms"] / 1000)
                if again and self._joins_unseen:
                    continue
                flow.on(Event.FAILED)
                if isinstance(error, FencedInstanceIdError):
                    self._lose_to_namesake()
                raise

    @property
    def _joins_unseen(self) -> bool:
        """Whether it may join again without a poll: not if a poll has to give something up before."""
        left = self._heartbeat_closed or self.heartbeat.poll_timeout_expired() or self.coordinator_unknown()
        return (
            self._flow.phase.is_member
            and not left
            and subscribes(self, self._subscription.assigned_partitions())
        )

    async def _end_join(self) -> None:
        """Take the assignment of a join that has ended, or see to its error.

        Raises a KafkaError that no other try would mend, or that of a listener.
        """
        task, self._join_task = self._join_task, None
        flow = self._flow
        if task.failed():
            flow.on(Event.FAILED)
            if isinstance(task.exception, _NO_CONNECTION):
                self._manager.apart = False  # until one succeeds: there may be no second connection to be had
            if isinstance(task.exception, RetriableError) and not isinstance(task.exception, _AT_ONCE):
                flow.not_before = time.monotonic() + self.config["retry_backoff_ms"] / 1000
            elif not isinstance(task.exception, _AT_ONCE) and task is not flow.former_join:
                await self._give_up()  # now: who hears the error may not poll again
                raise task.exception
            return
        if flow.phase is not Phase.ASSIGNED:  # it fell out meanwhile
            return
        with self._lock:
            self.state = MemberState.STABLE
            self.rejoin_needed = flow.asked_again
            self._enable_heartbeat()
        now = self._generation
        await self._on_join_complete_async(now.generation_id, now.member_id, now.protocol, task.value)

    async def _on_join_complete_async(
        self, generation: int, member_id: str, protocol: str, member_assignment_bytes: bytes
    ) -> None:
        """As ConsumerCoordinator's, after what is revoked was committed and its listener has returned."""
        self._flow.on(Event.TAKEN)
        # Answers that no poll waited for: kafka-python would take them for today's committed offsets.
        self._offset_fetch_futures.clear()
        self._manager.apart = True
        self._manager.close_joins()
        given = partitions_in(member_assignment_bytes)
        refused = not subscribes(self, given or ())
        revoked: set[TopicPartition] = set()
        if given is not None and not refused:
            revoked = self._subscription.assigned_partitions() - given
        error = await self._revoke(revoked)
        try:
            await super()._on_join_complete_async(generation, member_id, protocol, member_assignment_bytes)
        finally:
            if refused:
                setattr(self, REFUSED, generation)
            if revoked:
                self.request_rejoin()
            self._listen()
        if error is not None:
            raise KafkaError("User rebalance callback throws an error") from error

    # Heartbeats ------------------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Send heartbeats sooner than due, so as to hear of a second round; see `sooner_than`."""
        delays = [*sooner_than(self.config["heartbeat_interval_ms"] / 1000)]
        self._flow.listens_until = time.monotonic() + sum(delays)
        self._manager.call_soon(self._send_heartbeats_after, self._generation, delays)

    async def _send_heartbeats_after(self, generation: Any, delays: Iterable[float]) -> None:
        for delay in delays:
            await self._net.sleep(delay)
            if (
                self._generation is not generation
                or self._flow.phase is not Phase.STABLE
                or self.rejoin_needed
                or self._heartbeat_closed
                or self.heartbeat.poll_timeout_expired()
                or self.coordinator_unknown()
            ):
                return
            await self._do_heartbeat()


def _left(timer: Any) -> float:
    """Seconds."""
    return math.inf if timer.timeout_ms is None else float(timer.timeout_ms) / 1000
