"""A cooperative consumer of kafka-python that reads on while it joins (KIP-429).

kafka-python 3.0 returns nothing from `poll` while a join is on its way: `ConsumerCoordinator.poll` waits for
JoinGroup and SyncGroup, though the consumer keeps its partitions. Here the join continues in the I/O thread.
A poll starts it, returns the records of what the consumer keeps, and takes the assignment once it is there.
`kafka_assignors.assignors._membership` has the rules: the phases, whose answers count, until when partitions
are certainly the consumer's, and when heartbeats are sent.

JoinGroup and SyncGroup go over a connection of their own. A broker answers a connection in order, so commits,
heartbeats and LeaveGroup would wait behind a JoinGroup until all members have joined.

The application's thread runs `poll` and `time_to_next_poll`, with what these read. `request_rejoin` may
come from any thread. All else runs in the I/O thread.
"""

import logging
import math
import time
from collections.abc import Collection, Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.coordinator.base import UnjoinedGroupException
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import (
    CommitFailedError,
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    IllegalGenerationError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    MemberIdRequiredError,
    NodeNotReadyError,
    RebalanceInProgressError,
    RetriableError,
    UnknownMemberIdError,
)
from kafka.protocol.consumer import HeartbeatRequest, JoinGroupRequest, SyncGroupRequest
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.protocol.metadata import CoordinatorType
from kafka.structs import MemberState, OffsetAndMetadata, TopicPartition
from kafka.util import Timer

from kafka_assignors.assignors._joins import REFUSED, completes
from kafka_assignors.assignors._membership.certainty import Certainty, sooner_than
from kafka_assignors.assignors._membership.phases import (
    REBALANCE_IN_PROGRESS,
    Event,
    Phase,
    Sender,
    Verdict,
    after,
    verdict,
)
from kafka_assignors.assignors._relied_on import FLOW, new_future, wait

log = logging.getLogger(__name__)

_TICK: Final = 0.05
"""Seconds after which a poll that waits for records looks at the join again."""

_LOOK: Final = 1.0
"""Seconds after which a poll that waits for a join shows again that the application polls."""

_AT_ONCE: Final = (
    IllegalGenerationError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
"""Errors of a join after which the next one begins without a pause, as in `join_group_async`."""


def install(coordinator: Any) -> bool:
    """Let a consumer read on while it joins; once is enough.

    Returns:
        Whether it does. An eager consumer does not, nor one whose joins are completed in the other way. Nor
        does it if this release of kafka-python differs from what was tried.
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
    flow = _FlowState(Certainty(config["session_timeout_ms"] / 1000, config["max_poll_interval_ms"] / 1000))
    coordinator._flow = flow  # noqa: SLF001 - declared below
    coordinator._manager = _JoinsApart(coordinator._manager, flow, coordinator.group_id)  # noqa: SLF001
    # The consumer has made its coordinator already, and has no setting for another one.
    kind = type(coordinator)
    coordinator.__class__ = (
        FlowingCoordinator
        if kind is ConsumerCoordinator
        else type(kind.__name__, (FlowingCoordinator, kind), {})
    )
    return True


class _FlowState:
    """Where one consumer is in its group.

    Args:
        certainty: Until when its partitions are its own.

    Attributes:
        phase: As `Phase`.
        rejoins: Whether it was asked to join again since JoinGroup was answered.
        not_before: When the next join may begin.
        listens_until: Until when it sends heartbeats sooner than due.
        joins_apart: Whether joins go over a connection of their own. After one that could not connect they
            do not, until one succeeds.
        commits: Commits that are not answered yet, in order.
        former_join: The join that was on its way when it last left its group.
    """

    def __init__(self, certainty: Certainty) -> None:
        self.certainty = certainty
        self.phase = Phase.OUT
        self.rejoins = False
        self.not_before = 0.0
        self.listens_until = 0.0
        self.joins_apart = True
        self.commits: list[_Commit] = []
        self.former_join: Any = None
        self._waiting: list[Any] = []

    def on(self, event: Event) -> None:
        """Go to the next phase; what waits for the end of a join continues, also when another one begins."""
        before, self.phase = self.phase, after(self.phase, event)
        if self.phase not in {before, Phase.SYNCING}:
            waiting, self._waiting = self._waiting, []
            for future in waiting:
                future.success(None)

    async def no_join(self, future: Any) -> None:
        """Wait until no join is on its way.

        Args:
            future: A new one.
        """
        if self.phase in {Phase.JOINING, Phase.SYNCING}:
            self._waiting.append(future)
            await future


class FlowingCoordinator(ConsumerCoordinator):
    """kafka-python's coordinator, whose consumer reads on while it joins; made by `install` only."""

    _flow: _FlowState

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

        A poll of 20 s on an idle topic then takes the assignment as soon as it is there.
        """
        if not self._subscription.partitions_auto_assigned():
            return float(super().time_to_next_poll())
        if self._has_to_step:
            return _TICK
        now = time.monotonic()
        usual = min(float(super().time_to_next_poll()), self._flow.certainty.until - now)
        soon = now < self._flow.listens_until or self.heartbeat.last_send > self.heartbeat.last_receive
        return min(usual, _TICK) if soon else usual

    def refresh_committed_offsets_if_needed(self, timeout_ms: float | None = None) -> bool:
        """As ConsumerCoordinator's; a poll waits for them only while the rest is certainly its own."""
        if timeout_ms is not None and self._subscription.partitions_auto_assigned():
            # Half of that: the poll looks again, and records are to be handed out before it is over.
            left = max(0.0, self._flow.certainty.until - time.monotonic()) / 2
            timeout_ms = min(timeout_ms, 1000 * left)
        return bool(super().refresh_committed_offsets_if_needed(timeout_ms))

    def stable(self) -> bool:
        """Whether heartbeats are sent: in a join, too. They learn of an expulsion, or have it leave.

        A member whose application has not polled for `max_poll_interval_ms` leaves by them.
        """
        return self._flow.phase.is_member

    def generation_if_stable(self) -> Any:
        """The generation to commit in: in a join, too, as a commit waits while it would be refused."""
        with self._lock:
            return self._generation if self._flow.phase.is_member else None

    def request_rejoin(self) -> None:
        """As BaseCoordinator's; after JoinGroup's answer it holds beyond the taking of the assignment."""
        self._flow.rejoins = True
        super().request_rejoin()

    def coordinator_dead(self, error: Any) -> None:
        """As BaseCoordinator's; a join on its way fails, which would wait for `max_poll_interval_ms` else."""
        was_known = self.coordinator_id is not None
        super().coordinator_dead(error)
        if was_known:
            self._manager.call_soon(self._manager.close_joins)  # not in the midst of an answer

    def reset_generation(self, member_id: str = "") -> None:
        """As BaseCoordinator's: it has fallen out of the group."""
        super().reset_generation(member_id)
        self._flow.on(Event.FELL_OUT)

    async def maybe_leave_group_async(
        self, reason: str | None = None, timeout_ms: float | None = None
    ) -> None:
        """As BaseCoordinator's; nothing is delivered any more while LeaveGroup is on its way."""
        self._flow.on(Event.FELL_OUT)
        self._flow.former_join = self._join_task
        await super().maybe_leave_group_async(reason, timeout_ms)

    def _lose_to_namesake(self) -> None:
        """Fall out of the group: another consumer has the instance id, and so the partitions.

        The member id stays. A JoinGroup without one would take the instance id back. With it the answer is
        FENCED_INSTANCE_ID again, or UNKNOWN_MEMBER_ID if nobody has the instance id any more: a coordinator
        whose record of a new static member was not replicated has the former one again, until its session
        ends (Kafka 4.3.1).
        """
        self.reset_generation(self._generation.member_id)

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
    def _delivers(self) -> bool:
        return self._is_certain and bool(self._subscription.assigned_partitions())

    @property
    def _patience(self) -> float:
        """Milliseconds for which partitions that it is to revoke may wait for their commits."""
        return float(self.config["session_timeout_ms"]) / 3

    # A join ----------------------------------------------------------------------------------------------

    async def _step(self, timeout_ms: float | None) -> bool:
        """Give up what has to be, begin a join, take its assignment, or have the coordinator confirm.

        Returns:
            Whether the poll may look for records.
        """
        timer = Timer(timeout_ms)
        while self._is_joining and not self._is_leaving:
            await self._give_up()
            if self._join_task is None and not await self._begin_join(timer):
                return self._delivers
            await self._wait_for_join(timer)
            if not self._join_task.is_done:
                return self._delivers
            await self._end_join()
        if not self._is_certain and await self.ensure_coordinator_ready_async(timeout_ms=timer.timeout_ms):
            self._maybe_start_heartbeat_loop()  # an error may have ended it
            self.heartbeat.heartbeat_failed = True  # so the next is due retry_backoff_ms after the last
            self._heartbeat_wakeup.notify()
            left = timer.timeout_ms
            await self._net.sleep(_TICK if left is None else min(_TICK, left / 1000))
        return self._is_certain  # if so, the heartbeats look for a coordinator that moved

    async def _give_up(self) -> None:
        """Give up all if it fell out of the group, else the topics that it does not subscribe to any more."""
        held, topics = self._subscription.assigned_partitions(), self._subscription.subscription or ()
        if held and (self._generation.is_lost() or any(one.topic not in topics for one in held)):
            await self._on_join_prepare_async(
                self._generation.generation_id, self._generation.member_id, timeout_ms=self._patience
            )

    async def _begin_join(self, timer: Any) -> bool:
        """Send JoinGroup; False if it is too early for that, and the poll is not to wait."""
        pause = self._flow.not_before - time.monotonic()
        if pause > 0:
            if self._delivers:
                return False
            left = math.inf if timer.timeout_ms is None else timer.timeout_ms / 1000
            await self._net.sleep(min(pause, left))
            if left < pause:
                return False
        # What _on_join_prepare_async does beside committing and giving up.
        self._is_leader = False
        self._subscription.reset_group_subscription()
        self._maybe_start_heartbeat_loop()
        if self._flow.phase.is_member:
            self._send_heartbeats()
        else:
            self._disable_heartbeat()
        self._join_task = self._manager.call_soon(self._join)
        return True

    def _send_heartbeats(self) -> None:
        """As _enable_heartbeat, but for the time of the last poll, which it sets."""
        self._heartbeat_enabled = True
        self._heartbeat_wakeup.notify()

    async def _wait_for_join(self, timer: Any) -> None:
        while not (self._join_task.is_done or self._delivers or timer.expired):
            self.heartbeat.poll()
            left = timer.timeout_ms
            await wait(self, self._join_task, 1000 * _LOOK if left is None else min(left, 1000 * _LOOK))

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
                assignment: bytes = await super()._do_join_and_sync_async()
                break
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
        with self._lock:
            if flow.phase is not Phase.ASSIGNED:
                raise UnjoinedGroupException
            self.state = MemberState.STABLE
            # As _enable_heartbeat, but for the time of the last poll: the application may be at work.
            self.heartbeat.last_reset = time.monotonic()
            self.heartbeat.heartbeat_failed = False
            self._send_heartbeats()
        return assignment

    @property
    def _joins_unseen(self) -> bool:
        """Whether it may join again without a poll: not if a poll has to give something up before."""
        topics = self._subscription.subscription or ()
        left = self._heartbeat_closed or self.heartbeat.poll_timeout_expired() or self.coordinator_unknown()
        return (
            self._flow.phase.is_member
            and not left
            and all(one.topic in topics for one in self._subscription.assigned_partitions())
        )

    async def _end_join(self) -> None:
        """Take the assignment of a join that has ended, or see to its error.

        Raises:
            KafkaError: One that no other try would mend, or that of a listener.
        """
        task, self._join_task = self._join_task, None
        flow = self._flow
        if task.failed():
            flow.on(Event.FAILED)
            if isinstance(task.exception, KafkaConnectionError | NodeNotReadyError):
                flow.joins_apart = False  # until one succeeds: there may be no second connection to be had
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
            self.rejoin_needed = flow.rejoins
            self._enable_heartbeat()
        now = self._generation
        await self._on_join_complete_async(now.generation_id, now.member_id, now.protocol, task.value)

    async def _on_join_complete_async(
        self, generation: int, member_id: str, protocol: str, member_assignment_bytes: bytes
    ) -> None:
        """As ConsumerCoordinator's, after what is revoked was committed and its listener has returned."""
        flow, topics = self._flow, self._subscription.subscription or ()
        flow.on(Event.TAKEN)
        flow.joins_apart = True
        self._manager.close_joins()
        given = _partitions_in(member_assignment_bytes)
        refused = any(one.topic not in topics for one in given or ())
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

    async def _revoke(self, revoked: Collection[TopicPartition]) -> Exception | None:
        """Stop delivery, commit, call the listener and give partitions up.

        Meanwhile a pattern may lose topics. Their partitions go with the rest, and the listener hears it.

        Returns:
            What the listener raised.
        """
        subscription, error = self._subscription, None
        kept = subscription.assigned_partitions()
        while revoked:
            subscription.mark_pending_revocation(revoked)
            await self._commit_before_revoking(revoked)
            if subscription.rebalance_listener:
                try:
                    await self._invoke_rebalance_listener_async("on_partitions_revoked", set(revoked))
                except Exception as raised:  # it comes out of the poll, once the assignment is taken
                    log.exception("on_partitions_revoked of group %s failed for %s", self.group_id, revoked)
                    error = raised
            kept = kept.difference(revoked)
            topics = subscription.subscription or ()
            revoked = {one for one in kept if one.topic not in topics}
        subscription.assign_from_subscribed(sorted(kept))
        return error

    async def _commit_before_revoking(self, revoked: Collection[TopicPartition]) -> None:
        """Have commits answered that are on their way, and with auto-commit commit what was consumed."""
        for last in self._flow.commits[-1:]:
            await wait(self, last.done, self._patience)
        if self.config["enable_auto_commit"]:
            consumed = self._subscription.all_consumed_offsets()
            offsets = {one: consumed[one] for one in revoked if one in consumed}
            try:
                await self._commit_offsets_sync_async(offsets, timeout_ms=self._patience)
            except Exception as failure:  # noqa: BLE001 - they have to go all the same
                log.warning("Committing before partitions are revoked failed: %s", failure)

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

    async def _send_heartbeat_request(self) -> None:
        """As BaseCoordinator's, but for an answer that a join overtook: it does not reset the generation."""
        if self.coordinator_unknown():
            raise CoordinatorNotAvailableError(self.coordinator_id)
        flow, generation, node = self._flow, self._generation, self.coordinator_id
        request = HeartbeatRequest(
            group_id=self.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self.group_instance_id,
        )
        sent = time.monotonic()
        try:
            response = await self._manager.send(request, node_id=node)
        except KafkaError as error:
            self._failed_request(node, request, error)
            raise
        sender, code = self._sender(generation), response.error_code
        if sender is not Sender.FORMER and code in {0, REBALANCE_IN_PROGRESS}:
            flow.certainty.confirm(sent, awaited=code == REBALANCE_IN_PROGRESS)
        if verdict(code, sender, flow.phase) is Verdict.COUNTS:
            self._handle_heartbeat_response(response, sent)

    def _handle_heartbeat_response(self, response: Any, send_time: float) -> None:
        """As BaseCoordinator's; a consumer that is fenced joins, by which its application hears of it."""
        try:
            super()._handle_heartbeat_response(response, send_time)
        except FencedInstanceIdError:
            self._lose_to_namesake()
            raise

    def _sender(self, generation: Any) -> Sender:
        now = self._generation
        if generation is now:
            return Sender.CURRENT
        return Sender.OLDER if generation.member_id == now.member_id else Sender.FORMER

    # Commits ---------------------------------------------------------------------------------------------

    async def _send_offset_commit_request(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """As ConsumerCoordinator's; a commit that a join overtook is sent again when the join is over.

        One commit follows another: sent again, an earlier one would undo a later one. All that wait for a
        join at once would be more requests than a connection takes.

        Raises:
            CommitFailedError: The consumer has fallen out of its group, or partitions were revoked meanwhile;
                the others' offsets are committed nevertheless.
        """
        if not self._subscription.partitions_auto_assigned():
            await super()._send_offset_commit_request(offsets)
            return
        flow, commit = self._flow, _Commit(self._subscription, offsets, new_future(self))
        earlier = flow.commits[-1:]
        flow.commits.append(commit)
        try:
            for one in earlier:
                await one.done
            while True:
                while flow.phase.holds_commits:
                    await flow.no_join(new_future(self))
                commit.sent_in = self._generation
                commit.leave_out_revoked()
                try:
                    await super()._send_offset_commit_request(commit)
                    break
                except _OvertakenError:
                    await flow.no_join(new_future(self))
        finally:
            flow.commits = [other for other in flow.commits if other is not commit]
            commit.done.success(None)
        if commit.revoked:
            names = ", ".join(f"{one.topic}-{one.partition}" for one in sorted(commit.revoked))
            raise CommitFailedError(f"revoked meanwhile, so not committed: {names}")

    def _handle_offset_commit_response(self, offsets: Any, send_time: float, response: Any) -> None:
        """As ConsumerCoordinator's, but for an answer that a join overtook."""
        if self._subscription.partitions_auto_assigned():
            # Of a commit that somebody sent by kafka-python's own method, only the past is certain.
            sender = self._sender(offsets.sent_in) if isinstance(offsets, _Commit) else Sender.OLDER
            codes = {code for _, partitions in response.topics for _, code in partitions}
            verdicts = {verdict(code, sender, self._flow.phase) for code in codes}
            if Verdict.VOID in verdicts:
                raise CommitFailedError(
                    f"group {self.group_id} moved on without this consumer, which joins again: its offsets"
                    " are not committed"
                )
            if Verdict.OVERTAKEN in verdicts:
                raise _OvertakenError("a rebalance came between the commit and its answer")
        try:
            super()._handle_offset_commit_response(offsets, send_time, response)
        except FencedInstanceIdError:
            self._lose_to_namesake()
            raise


class _OvertakenError(CommitFailedError):
    """A join came between a commit and its answer."""


class _Commit(dict[TopicPartition, OffsetAndMetadata]):
    """Offsets of a commit, which may be sent again when some of the partitions are gone.

    A partition that has gone and come back may have been committed by another consumer in between.

    Args:
        subscription: The consumer's SubscriptionState.
        offsets: What is asked for.
        done: A future, done once the commit is answered.

    Attributes:
        sent_in: The generation in which it was sent last.
        revoked: The partitions that were left out.
    """

    def __init__(
        self, subscription: Any, offsets: Mapping[TopicPartition, OffsetAndMetadata], done: Any
    ) -> None:
        super().__init__(offsets)
        self.done = done
        self._subscription = subscription
        self._states = {one: subscription.assignment.get(one) for one in offsets}
        self.sent_in: Any = None
        self.revoked: set[TopicPartition] = set()

    def leave_out_revoked(self) -> None:
        """Leave out what has not been the consumer's all the time."""
        now = self._subscription.assignment
        gone = {one for one in self if now.get(one) is not self._states[one]}
        self.revoked |= gone
        for one in gone:
            del self[one]


class _JoinsApart:
    """kafka-python's connection manager, as the coordinator sees it: joins have a connection of their own.

    Args:
        manager: The manager.
        flow: The consumer's, which learns of requests and answers here.
        group_id: The consumer's group.
    """

    def __init__(self, manager: Any, flow: _FlowState, group_id: str) -> None:
        self._manager = manager
        self._flow = flow
        self._group_id = group_id
        self._node_id: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._manager, name)

    def send(self, request: Any, node_id: Any = None, request_timeout_ms: Any = None) -> Any:
        """As the manager's."""
        flow, joins = self._flow, isinstance(request, JoinGroupRequest)
        if not joins and not isinstance(request, SyncGroupRequest):
            return self._manager.send(request, node_id=node_id, request_timeout_ms=request_timeout_ms)
        sent = time.monotonic()
        if joins:
            flow.on(Event.JOIN_SENT)
        if flow.joins_apart:
            node_id = self._apart(node_id)

        def answered(response: Any) -> None:
            if response.error_code == 0 and joins:
                flow.rejoins = False
                flow.on(Event.JOIN_ANSWERED)
            elif response.error_code == 0:
                flow.certainty.synced(sent)
                flow.on(Event.SYNC_ANSWERED)

        future = self._manager.send(request, node_id=node_id, request_timeout_ms=request_timeout_ms)
        future.add_callback(answered)
        return future

    def _apart(self, node_id: Any) -> Any:
        """Another node id for the same broker: kafka-python has one connection for each."""
        broker = self._manager.cluster.broker_metadata(node_id)
        if broker is None:
            return node_id
        node = SimpleNamespace(
            error_code=0, node_id=f"{node_id}-joins", host=broker.host, port=broker.port
        )  # as FindCoordinator's answer
        self._node_id = self._manager.cluster.add_coordinator(
            node, CoordinatorType.GROUP, f"{self._group_id} (joins)", synthesize_node_id=False
        )
        return self._node_id

    def close_joins(self) -> None:
        """Close the joins' connection; the next join has a new one.

        It is idle between joins. A firewall may drop it then, and nobody would notice before the next join.
        """
        connection = self._manager._conns.pop(self._node_id, None)  # noqa: SLF001
        if connection is not None:
            connection.close()


def _partitions_in(assignment: bytes) -> set[TopicPartition] | None:
    """The partitions of an assignment; None if it cannot be decoded, which kafka-python raises itself."""
    try:
        return set(ConsumerProtocolAssignment.decode(assignment).partitions())
    except Exception:  # noqa: BLE001 - the leader may have sent anything
        return None
