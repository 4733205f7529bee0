"""What a member of a group sends and gives up while its consumer reads on; `_flow` has when it joins.

A join has a connection of its own, so it overtakes commits and heartbeats. `phases.verdict` says what their
answers still mean.
"""

import contextlib
import time
from collections.abc import Collection, Mapping
from typing import Any, Final

from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.errors import (
    CommitFailedError,
    CoordinatorNotAvailableError,
    FencedInstanceIdError,
    KafkaError,
    TooManyInFlightRequests,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.consumer import HeartbeatRequest
from kafka.structs import MemberState, OffsetAndMetadata, TopicPartition

from kafka_assignors._assignors._flow_state import Commit, FlowState
from kafka_assignors._assignors._membership.offsets import revoked_text
from kafka_assignors._assignors._membership.phases import (
    REBALANCE_IN_PROGRESS,
    Event,
    Phase,
    Sender,
    Verdict,
    verdict,
)
from kafka_assignors._assignors._relied_on import new_future, wait
from kafka_assignors._common.escaping import get_logger

log = get_logger(__name__)

_MOST_COMMITS: Final = 100
"""How many commits may wait for their answers: a revocation waits for all of them."""


class _OvertakenError(CommitFailedError):
    """A join came between a commit and its answer."""


class MemberCoordinator(ConsumerCoordinator):
    """kafka-python's coordinator that acts by its phase: it is a member of its group throughout a join."""

    _flow: FlowState

    # Membership ------------------------------------------------------------------------------------------

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
        self._flow.asked_again = True
        super().request_rejoin()

    def coordinator_dead(self, error: Any) -> None:
        """As BaseCoordinator's; a join on its way fails, which would wait for `max_poll_interval_ms` else."""
        super().coordinator_dead(error)
        if not self._heartbeat_closed:  # else all connections are being closed
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

    def _process_join_group_response(self, response: Any, send_time: float) -> Any:
        joined = super()._process_join_group_response(response, send_time)
        self._flow.asked_again = False
        self._flow.certainty.joined()
        self._flow.on(Event.JOIN_ANSWERED)
        return joined

    def _process_sync_group_response(self, response: Any, send_time: float) -> Any:
        assignment = super()._process_sync_group_response(response, send_time)
        self._flow.certainty.synced(send_time)
        self._flow.on(Event.SYNC_ANSWERED)
        if self._flow.phase is Phase.ASSIGNED:
            # Here, as a consumer's first join began before this class was its coordinator's.
            with self._lock:
                self.state = MemberState.STABLE
                self.heartbeat.last_reset = time.monotonic()
                self.heartbeat.heartbeat_failed = False
                self._send_heartbeats()
        return assignment

    # Heartbeats ------------------------------------------------------------------------------------------

    def _send_heartbeats(self) -> None:
        """As _enable_heartbeat, but for the time of the last poll: the application may be at work."""
        self._heartbeat_enabled = True
        self._heartbeat_wakeup.notify()

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
        sent = self.heartbeat.last_send
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
            TooManyInFlightRequests: So many commits wait that their answers come too late to be of use.
        """
        if not self._subscription.partitions_auto_assigned():
            await super()._send_offset_commit_request(offsets)
            return
        flow, commit = self._flow, Commit(self._subscription, offsets, new_future(self))
        if len(flow.commits) >= _MOST_COMMITS:
            raise TooManyInFlightRequests(f"{_MOST_COMMITS} commits wait for their answers: ask for fewer")
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
            raise CommitFailedError(revoked_text(commit.revoked))

    def _handle_offset_commit_response(self, offsets: Any, send_time: float, response: Any) -> None:
        """As ConsumerCoordinator's, but for an answer that a join overtook, or of deleted topics.

        kafka-python commits to a deleted topic again and again, and its revocation would wait for that.
        """
        if self._subscription.partitions_auto_assigned():
            # Of a commit that somebody sent by kafka-python's own method, only the past is certain.
            sender = self._sender(offsets.sent_in) if isinstance(offsets, Commit) else Sender.OLDER
            codes = {code for _, partitions in response.topics for _, code in partitions}
            verdicts = {verdict(code, sender, self._flow.phase) for code in codes}
            if Verdict.VOID in verdicts:
                raise CommitFailedError(
                    f"group {self.group_id} moved on without this consumer, which joins again: its offsets"
                    " are not committed"
                )
            if Verdict.OVERTAKEN in verdicts:
                raise _OvertakenError("a rebalance came between the commit and its answer")
            if codes <= {0, UnknownTopicOrPartitionError.errno} and any(codes) and self._reads_none(response):
                raise CommitFailedError("topics were deleted whose partitions are revoked")
        try:
            super()._handle_offset_commit_response(offsets, send_time, response)
        except FencedInstanceIdError:
            self._lose_to_namesake()
            raise

    def _reads_none(self, response: Any) -> bool:
        """Whether the partitions that the answer to a commit refuses give no records, as they are revoked."""
        refused = (
            TopicPartition(topic, partition)
            for topic, partitions in response.topics
            for partition, code in partitions
            if code
        )
        return not any(map(self._subscription.is_fetchable, refused))

    # What is given up ------------------------------------------------------------------------------------

    @property
    def _patience(self) -> float:
        """Milliseconds for which partitions that it is to revoke may wait for their commits."""
        return float(self.config["session_timeout_ms"]) / 3

    def maybe_auto_commit_offsets_now(self) -> None:
        """As ConsumerCoordinator's, for `unsubscribe`: all is committed and revoked, as by `close`.

        `assign` calls this, too. If it raises that the consumer is subscribed, that joins again.
        """
        if not self._subscription.partitions_auto_assigned():
            super().maybe_auto_commit_offsets_now()
            return
        held = self._subscription.assigned_partitions()
        self._subscription.mark_pending_revocation(held)
        self._net.run(self._commit_before_revoking, held)
        with contextlib.suppress(KafkaError):  # the listener's, which kafka-python has logged
            self._net.run(self._on_close_prepare_async)
        self.request_rejoin()

    async def _give_up(self) -> None:
        """Give up all if it fell out of the group, else the topics that it does not subscribe to any more."""
        subscription = self._subscription
        held = subscription.assigned_partitions()
        if held and self._generation.is_lost():
            await self._on_join_prepare_async(
                self._generation.generation_id, self._generation.member_id, timeout_ms=self._patience
            )
            return
        if held and subscription.subscribed_pattern and not subscription.subscription:
            # The topics of a new pattern are known with the next metadata, for which kafka-python waits, too.
            await wait(self, self._cluster.request_update(), self.config["request_timeout_ms"])
        error = await self._revoke(self._of_other_topics(held))
        if error is not None:
            raise KafkaError("User rebalance callback throws an error") from error

    def _of_other_topics(self, partitions: Collection[TopicPartition]) -> set[TopicPartition]:
        """Those of topics that the consumer does not subscribe to."""
        topics = self._subscription.subscription or ()
        return {one for one in partitions if one.topic not in topics}

    async def _revoke(self, revoked: Collection[TopicPartition]) -> Exception | None:
        """Stop delivery, commit, call the listener and give partitions up. Returns what the listener raised.

        Meanwhile a pattern may lose topics. Their partitions go with the rest, and the listener hears it.
        """
        if not revoked:
            return None
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
            revoked = self._of_other_topics(kept)
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
