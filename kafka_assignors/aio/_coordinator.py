"""aiokafka's coordinator: one that joins once for all strategies, and a cooperative one (KIP-429)."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Collection, Coroutine, Iterator, Mapping
from contextvars import ContextVar
from types import SimpleNamespace
from typing import Any, Final

from aiokafka import errors
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.protocol import ConsumerProtocol, ConsumerProtocolMemberAssignment
from aiokafka.protocol.commit import OffsetCommitRequest
from aiokafka.protocol.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)
from aiokafka.structs import OffsetAndMetadata, TopicPartition

from kafka_assignors._assignors._membership.certainty import Certainty, sooner_than
from kafka_assignors._assignors._membership.offsets import Offsets, names_of, revoked_text
from kafka_assignors._assignors._membership.phases import REBALANCE_IN_PROGRESS
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.escaping import get_logger
from kafka_assignors.aio._partitions import LastingAssignment, LastingState
from kafka_assignors.aio._strategies import lead, look_when_syncing

log = get_logger(__name__)

JOINING: Final = 2
"""The connection for JoinGroup and SyncGroup, beside aiokafka's 0 and 1.

A broker answers a connection in order. A commit behind a JoinGroup would wait until all have joined. Then it
would be refused, and the consumer would join once more (librdkafka issue 4059 is of that kind).
"""

GRACE: Final = 5.0
"""Seconds after the rebalance timeout in which a JoinGroup must be answered (as Java's client has it)."""

NEWS: Final = 5.0
"""Seconds for which the application's commit is tried again if the broker does not know a partition.

A broker learns of a new topic a little later than others do.
"""

_OVERTAKEN: Final = (
    errors.IllegalGenerationError,
    errors.RebalanceInProgressError,
    errors.UnknownMemberIdError,
)

_SENT_IN: ContextVar[tuple[int, bool] | None] = ContextVar("sent_in", default=None)
"""The generation in which a commit or heartbeat was sent, and whether the consumer was joining."""

FENCED_INSTANCE_ID: Final = 82
"""Kafka's error code, which aiokafka does not know."""


class FencedInstanceIdError(KafkaAssignorsError, errors.KafkaError):
    """Another consumer has joined with this one's `group_instance_id`."""

    retriable = False


class UnknownPartitionsError(KafkaAssignorsError, errors.CommitFailedError):
    """The broker knows no such partitions; other offsets of the commit are stored."""

    def __init__(self, partitions: Collection[TopicPartition]) -> None:
        # CommitFailedError's own says that the group has rebalanced. A copy is made of `args`, which are set.
        self.partitions = partitions

    def __str__(self) -> str:
        return (
            f"{type(self).__name__}: the broker does not know these, so not committed:"
            f" {names_of(self.partitions)}; create the topic, or leave it out of the subscription"
        )


class EagerCoordinator(GroupCoordinator):
    """aiokafka's, eager, which joins once for all of its strategies.

    A cooperative one's members keep their partitions through a rebalance. While it is `joining`, a JoinGroup
    or SyncGroup is on its way. While it is `syncing`, the group has a new generation, and waits for its plan.
    """

    cooperative = False
    leads_beside_the_loop = True

    member_id: str
    _heartbeat_task: asyncio.Task[None] | None
    _commit_refresh_task: asyncio.Task[None] | None

    def __init__(self, *args: Any, **settings: Any) -> None:
        self.joining = False
        self.syncing = False
        self._fenced = False
        self._came_back = False
        self._known_as = ""
        super().__init__(*args, **settings)

    async def _perform_assignment(self, response: Any) -> Any:
        planning = asyncio.ensure_future(lead(self, response, super()._perform_assignment))
        planned = await self._unless_closing(planning)
        look_when_syncing(self)
        return planned or {}  # SyncGroup is not sent while it closes

    async def _send_req(self, request: Any) -> Any:
        if isinstance(request, OffsetCommitRequest):
            return _without_unknown(await super()._send_req(request))
        if not isinstance(request, JoinGroupRequest | SyncGroupRequest):
            return await super()._send_req(request)
        if isinstance(request, JoinGroupRequest):
            self._came_back = self._group_instance_id is not None and not self.member_id
        # aiokafka asks once for each strategy, with one more each time (PR 1168). Only the last counts.
        if isinstance(request, JoinGroupRequest) and len(request._group_protocols) < len(self._assignors):  # noqa: SLF001
            return SimpleNamespace(error_code=0)
        # A leader that stops while it plans has no plan: sent without one, the others would get nothing.
        stopped = self._closing.done()
        answer = (
            None if stopped else await self._unless_closing(asyncio.ensure_future(self._send_join(request)))
        )
        if answer is None:
            raise errors.KafkaError(f"{type(request).__name__} is not waited for: the consumer is stopped")
        self._fenced = answer.error_code == FENCED_INSTANCE_ID
        self.syncing = isinstance(request, JoinGroupRequest) and answer.error_code == 0
        return answer

    async def _unless_closing(self, task: asyncio.Future[Any]) -> Any:
        """What a task gives; None, and the task ended, if the consumer is stopped before that.

        A join takes as long as its slowest member, and nobody needs it any more.
        """
        try:
            await asyncio.wait([task, self._closing], return_when=asyncio.FIRST_COMPLETED)
        finally:
            task.cancel()
            await asyncio.wait([task])
        return None if task.cancelled() else task.result()

    async def _maybe_leave_group(self) -> None:
        """As aiokafka's, and before the first generation: others would wait for a session timeout."""
        if self.generation < 0 and self.member_id and self._group_instance_id is None:
            try:
                await self._send_req(LeaveGroupRequest(self.group_id, self.member_id))
            except errors.KafkaError as error:
                log.warning("LeaveGroup was not answered: %s", error)
        await super()._maybe_leave_group()

    async def _send_join(self, request: Any) -> Any:
        """As `_send_req`, on a connection of its own."""
        if self.coordinator_id is None:
            raise errors.GroupCoordinatorNotAvailableError
        node = self.coordinator_id
        try:
            if await self._client.ready(node, group=JOINING):
                # It is answered when all have joined: `request_timeout_ms` may be over before.
                connection = self._client._conns[node, JOINING]  # noqa: SLF001
                longest = self._rebalance_timeout_ms / 1000 + GRACE
                connection._request_timeout = max(connection._request_timeout, longest)  # noqa: SLF001
            return await self._client.send(node, request, group=JOINING)
        except errors.KafkaError as error:
            log.warning("%s was not answered: %s", type(request).__name__, error)
            self.coordinator_dead()
            raise

    async def _do_rejoin_group(self, subscription: Any) -> Any:
        self.joining = True
        self.member_id, self._known_as = self.member_id or self._known_as, ""
        try:
            return await super()._do_rejoin_group(subscription)
        except errors.KafkaError as error:
            if self._fenced:
                raise FencedInstanceIdError(
                    f"another consumer has joined group {self.group_id} as {self._group_instance_id!r}: give"
                    " each consumer a group_instance_id of its own"
                ) from error
            raise
        finally:
            self._joined()

    async def _on_join_complete(
        self, generation: int, member_id: str, protocol: str, member_assignment_bytes: bytes
    ) -> None:
        _, assignment = self._given(protocol, member_assignment_bytes)
        await super()._on_join_complete(generation, member_id, protocol, assignment.encode())

    def _given(self, protocol: str, assignment_bytes: bytes) -> tuple[Any, Any]:
        """The strategy that the group chose, and what its leader has assigned to this member.

        Topics that are not subscribed to are left out: aiokafka's coordination would end with them. A static
        member that came back gets its old assignment without a rebalance (KIP-345). If that has such topics,
        it joins again, so that others get them.

        Raises:
            KafkaError: It is no strategy of this consumer, or the assignment cannot be read. The application
                hears it where it polls, and the consumer joins again then.
        """
        strategy = self._lookup_assignor(protocol)
        if strategy is None:
            raise self._refused(f"chose {protocol!r}, which is no strategy of this consumer")
        try:
            assignment = ConsumerProtocol.ASSIGNMENT.decode(assignment_bytes)
            given = frozenset(assignment.partitions())
        except Exception as error:  # whatever a leader may send
            start = bytes(assignment_bytes[:64])
            raise self._refused(f"has a leader whose assignment cannot be read: {start!r}") from error
        topics = self._subscription.topics
        if unknown := sorted((one for one in given if one.topic not in topics), key=str):
            log.error("Leaving out partitions of topics without a subscription: %s", unknown)
            # Once: a leader that goes on giving them would make the group rebalance for ever.
            if self._came_back:
                self.request_rejoin()
        known = [(topic, numbers) for topic, numbers in assignment.assignment if topic in topics]
        return strategy, ConsumerProtocolMemberAssignment(assignment.version, known, assignment.user_data)

    def _refused(self, what: str) -> errors.KafkaError:
        self.request_rejoin()
        return errors.KafkaError(f"group {self.group_id} {what} (generation {self.generation})")

    def _joined(self) -> None:
        """No request is on its way any more."""
        self.joining = self.syncing = False
        self._close_joins()

    def _close_joins(self) -> None:
        """Close the joins' connection. It is idle between joins, so a firewall may drop it unseen."""
        connection = self._client._conns.pop((self.coordinator_id, JOINING), None)  # noqa: SLF001
        if connection is not None:
            connection.close()

    def coordinator_dead(self) -> None:
        """As aiokafka's; a join on its way fails, which would wait for the rebalance timeout else."""
        self._close_joins()
        super().coordinator_dead()

    def _start_heartbeat_task(self) -> None:
        """As aiokafka's, whose coordination turns without a pause beside heartbeats that have ended."""
        super()._start_heartbeat_task()
        if self._heartbeat_task is not None:
            self._heartbeat_task.add_done_callback(self._heartbeats_ended)

    def _heartbeats_ended(self, task: asyncio.Task[None]) -> None:
        if self._heartbeat_task is task and (task.cancelled() or task.exception() is None):
            self._heartbeat_task = None

    async def _stop_heartbeat_task(self) -> None:
        """As aiokafka's; a heartbeat task that is cancelled while it leaves the group ends nobody else."""
        task, self._heartbeat_task = self._heartbeat_task, None
        await _stop(task)

    async def _stop_commit_offsets_refresh_task(self) -> None:
        """As aiokafka's; one that is cancelled before it ran ends nobody else."""
        task, self._commit_refresh_task = self._commit_refresh_task, None
        await _stop(task)

    async def _push_error_to_user(self, error: BaseException) -> None:
        """As aiokafka's; heartbeats that ended with the error begin anew once the application heard of it.

        It may have mended what was wrong, such as a permission. aiokafka raises the error for ever.
        """
        await super()._push_error_to_user(error)
        task = self._heartbeat_task
        if task is not None and task.done() and not task.cancelled() and task.exception() is error:
            self._heartbeat_task = None
            if not self._closing.done():
                self._start_heartbeat_task()

    def reset_generation(self) -> None:
        """As aiokafka's, but for a commit or heartbeat that a rebalance overtook, which proves nothing.

        A static member joins with its former member id, so that it hears whether it is fenced. A consumer
        that joins without one takes the instance id from its present owner. So two consumers of one instance
        id would expel each other for ever. Until it joins it has none: aiokafka's heartbeats end by that.
        """
        if self._was_overtaken():
            return
        known_as = self.member_id or self._known_as
        super().reset_generation()
        # By a commit, too: what was sent in a generation that is over is not taken for overtaken here.
        super().request_rejoin()
        self._known_as = known_as if self._group_instance_id is not None and not self.joining else ""

    def request_rejoin(self) -> None:
        """As aiokafka's, but for a commit or heartbeat that a rebalance overtook."""
        if not self._was_overtaken():
            super().request_rejoin()

    def _was_overtaken(self) -> bool:
        """Whether the failure of what is sent says no more than that a rebalance came in between.

        What was sent in this generation, while no join was on its way then or is now, says more.
        """
        sent_in = _SENT_IN.get()
        if sent_in is None:
            return False
        return self.generation < 0 or self.joining or sent_in != (self.generation, False)

    async def commit_offsets(
        self, assignment: Any, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        """As aiokafka's, which tries for ever to commit for a partition whose topic was deleted (1095).

        Raises UnknownPartitionsError if the broker does not know partitions, and went on so for a while.
        """
        await self._commit(assignment, dict(offsets), NEWS)

    async def _commit(
        self, assignment: Any, offsets: dict[TopicPartition, OffsetAndMetadata], patience: float = 0.0
    ) -> None:
        loop = asyncio.get_running_loop()
        end = loop.time() + patience
        while True:
            try:
                await super().commit_offsets(assignment, offsets)
            except UnknownPartitionsError as error:
                if loop.time() >= end:
                    raise
                for stored in offsets.keys() - error.partitions:  # newer ones of these may be by now
                    del offsets[stored]
            else:
                return
            await asyncio.sleep(self._retry_backoff_ms / 1000)

    async def _maybe_do_last_autocommit(self, assignment: Any) -> None:
        """As aiokafka's, without patience: neither a join nor `stop` waits for a topic to come."""
        if self._enable_auto_commit:
            await self._commit(assignment, assignment.all_consumed_offsets())

    async def _maybe_do_autocommit(self, assignment: Any) -> Any:
        """As aiokafka's; partitions that the broker does not know are tried at the next interval."""
        try:
            return await super()._maybe_do_autocommit(assignment)
        except UnknownPartitionsError:  # aiokafka has logged it
            interval = self._auto_commit_interval_ms / 1000
            self._next_autocommit_deadline = time.monotonic() + interval
            return interval

    async def _do_commit_offsets(
        self, assignment: Any, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        if offsets and self.coordinator_id is None and self._closing.done():
            # aiokafka looks for the coordinator no more, and would try again for ever.
            raise errors.KafkaError(
                f"group {self.group_id}: the coordinator is away, and the consumer is stopped"
            )
        if (task := asyncio.current_task()) is not None:
            # Whoever asked may be cancelled. This goes on, and nobody is left to hear that it was refused.
            task.add_done_callback(_hear)
        with self._sending():
            await super()._do_commit_offsets(assignment, offsets)

    async def _do_heartbeat(self) -> Any:
        with self._sending():
            return await super()._do_heartbeat()

    @contextlib.contextmanager
    def _sending(self) -> Iterator[None]:
        token = _SENT_IN.set((self.generation, self.joining))
        try:
            yield
        finally:
            _SENT_IN.reset(token)


def _hear(task: asyncio.Task[Any]) -> None:
    """Have asyncio not report what a task raised, if nobody awaits it any more."""
    if not task.cancelled():
        task.exception()


@contextlib.asynccontextmanager
async def _beside(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Has coroutines run meanwhile, and cancels them in the end."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _stop(task: asyncio.Task[None] | None) -> None:
    """Cancel a task, and wait for its end.

    aiokafka awaits the task itself. Its cancellation is raised there, and ends the coordination.
    """
    if task is None or task.done():
        return
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


class RevokingCoordinator(EagerCoordinator):
    """What a cooperative consumer commits, revokes and loses of the partitions that it keeps."""

    cooperative = True

    def __init__(self, fetcher: Any, client: Any, subscription: LastingState, **settings: Any) -> None:
        self._fetcher = fetcher
        self._not_joining = asyncio.Event()
        self._not_joining.set()
        self._committing: set[asyncio.Future[None]] = set()
        self._listening: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._giving_up = asyncio.Lock()  # a listener may unsubscribe
        super().__init__(client, subscription, **settings)
        self._certainty = Certainty(self._session_timeout_ms / 1000, self._rebalance_timeout_ms / 1000)

    @property
    def _lasting(self) -> LastingAssignment | None:
        unsubscribed = self._subscription.unsubscribed
        lasting: LastingAssignment | None = unsubscribed[0] if unsubscribed else self._subscription.lasting
        return lasting

    @property
    def _owned(self) -> frozenset[TopicPartition]:
        return frozenset(self._lasting.tps if self._lasting else ())

    def _subscribed(self, partitions: Collection[TopicPartition]) -> frozenset[TopicPartition]:
        topics = self._subscription.topics
        return frozenset(one for one in partitions if one.topic in topics)

    # Revoking --------------------------------------------------------------------------------------------

    async def _revoke(self, partitions: Collection[TopicPartition]) -> None:
        """Stop delivery, commit, call the listener, and give partitions up."""
        async with self._giving_up:
            lasting, partitions = self._lasting, self._owned.intersection(partitions)
            if not partitions or lasting is None:
                return
            lasting.withhold(partitions)  # their positions stay readable
            if self._committing:  # commits that the join overtook are made good first
                await asyncio.wait({*self._committing}, timeout=self._session_timeout_ms / 3000)
            if self._enable_auto_commit:
                consumed = lasting.all_consumed_offsets()
                try:
                    await self._commit(lasting, {one: consumed[one] for one in partitions if one in consumed})
                except errors.KafkaError as error:
                    log.warning("Committing before partitions are revoked failed: %s", error)
            await self._tell("on_partitions_revoked", partitions)
            self._keep(self._owned.difference(partitions))

    def _keep(self, partitions: Collection[TopicPartition]) -> None:
        if (lasting := self._lasting) is None:
            return
        for one in lasting.tps.difference(partitions):
            self._fetcher._records.pop(one, None)  # noqa: SLF001 - or it would not fetch them if they return
        lasting.change(partitions)
        if lasting is self._subscription.lasting:  # else aiokafka's fetcher would look for another
            self._subscription._notify_assignment_waiters()  # noqa: SLF001 - for who waits for records of those

    async def _tell(self, method: str, partitions: Collection[TopicPartition]) -> None:
        """Call the listener; what it raises is logged, as aiokafka does."""
        unsubscribed = self._subscription.unsubscribed
        listener = unsubscribed[1] if unsubscribed else self._subscription.listener
        if listener is None:
            return
        call = getattr(listener, method, None) or listener.on_partitions_revoked
        try:
            called = call(set(partitions))
            if asyncio.iscoroutine(called):
                await called
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is not None and task.cancelling():
                raise
            # What the listener awaited was cancelled, not the coordination.
            log.exception("The listener %r of group %s failed in %s", listener, self.group_id, method)
        except Exception:
            log.exception("The listener %r of group %s failed in %s", listener, self.group_id, method)

    # Falling out -----------------------------------------------------------------------------------------

    def reset_generation(self) -> None:
        """As aiokafka's; partitions may be others' from now on, so nothing of them is delivered."""
        if self._was_overtaken():
            return
        super().reset_generation()
        self._lose()

    def _lose(self) -> None:
        if self._lasting is not None and self._owned:
            self._lasting.lost = True
            self._lasting.withhold(self._owned)

    @property
    def _is_lost(self) -> bool:
        return self._lasting is not None and self._lasting.lost

    def _is_out(self, generation: int) -> bool:
        """Whether the consumer has fallen out of this generation, or is leaving."""
        is_leaving = self._leaving is not None and not self._leaving.done()
        return self.generation != generation or self._is_lost or is_leaving

    async def _give_up_what_was_lost(self) -> None:
        async with self._giving_up:
            lasting, owned = self._lasting, self._owned
            if lasting is None or not lasting.lost:
                return
            log.warning("Lost %s: fallen out of group %s", sorted(owned), self.group_id)
            await self._tell("on_partitions_lost", owned)
            self._keep(frozenset())
            lasting.lost = False  # now only: a commit within the listener is refused, and says "lost" again

    # Leaving ---------------------------------------------------------------------------------------------

    def maybe_leave_group(self) -> asyncio.Task[None]:
        """As aiokafka's, for `unsubscribe`, which does not wait; the next join does."""
        self._leaving = asyncio.create_task(self._leave())
        return self._leaving

    async def _maybe_leave_group(self) -> None:
        """As aiokafka's; others may have the partitions before LeaveGroup is answered."""
        if self._closing.done():
            if self._leaving is not None:
                await asyncio.wait({self._leaving})
            await self._leave()
        else:  # its application does not poll, and hears of it when it does
            self._lose()
            await super()._maybe_leave_group()

    async def _leave(self) -> None:
        """Give up everything, and then leave the group."""
        async with _beside(self._beat()):
            await self._give_up_what_was_lost()
            await self._revoke(self._owned)
        self._subscription.unsubscribed = None
        await super()._maybe_leave_group()

    async def _beat(self) -> None:
        """Send heartbeats while a join is on, so as to know whether the partitions are still its own."""
        while True:
            await asyncio.sleep(self._heartbeat_interval_ms / 1000)
            if self.generation < 0 or self._heartbeat_task is not None:
                continue
            # What is wrong with the coordinator or the permissions, the join hears, too.
            with contextlib.suppress(errors.KafkaError):
                await self.ensure_coordinator_known()
                await self._do_heartbeat()

    # Commits ---------------------------------------------------------------------------------------------

    def sends_again(self, error: Exception) -> bool:
        """Whether a commit that failed with this will be sent once more, as a rebalance came in between."""
        return isinstance(error, _OVERTAKEN) and self.generation >= 0 and not self._is_lost

    async def _commit(
        self, assignment: Any, offsets: dict[TopicPartition, OffsetAndMetadata], patience: float = 0.0
    ) -> None:
        """As above; a commit that a rebalance overtook is sent again when it is over.

        Raises:
            CommitFailedError: The consumer has fallen out of its group, or partitions were revoked
                meanwhile; the others' offsets are committed nevertheless.
        """
        if not isinstance(assignment, LastingAssignment):  # assigned by hand
            await super()._commit(assignment, offsets, patience)
            return
        # Of what is not assigned the state is always another one.
        asked = Offsets(
            offsets, lambda one: assignment.state_value(one) if one in assignment.tps else object()
        )
        with self._commit_under_way():
            unknown = await self._commit_again(assignment, asked, patience)
        if asked.revoked:
            raise revoked_meanwhile(asked.revoked) from unknown
        if unknown is not None:
            raise unknown

    async def _commit_again(
        self, assignment: LastingAssignment, asked: Offsets, patience: float
    ) -> UnknownPartitionsError | None:
        while True:
            if self.syncing:  # it would be refused
                await self._not_joining.wait()
            sent_in = self.generation, self.joining
            try:
                await super()._commit(assignment, asked, patience)
            except UnknownPartitionsError as error:
                return error
            except errors.CommitFailedError:
                fell_out = self.generation < 0 and not self.joining
                if fell_out or not (self.joining or sent_in != (self.generation, False)):
                    raise
            else:
                return None
            await self._not_joining.wait()

    async def _do_commit_offsets(
        self, assignment: Any, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> None:
        if isinstance(offsets, Offsets):
            offsets.leave_out_revoked()
        # Without a member id a broker may take them: the group may be empty.
        if offsets and isinstance(assignment, LastingAssignment) and (assignment.lost or self.generation < 0):
            raise errors.UnknownMemberIdError(self.group_id)
        with self._commit_under_way():  # whoever asked may be cancelled, and the request goes on
            await super()._do_commit_offsets(assignment, offsets)

    @contextlib.contextmanager
    def _commit_under_way(self) -> Iterator[None]:
        """Around a commit, which is waited for before partitions are revoked."""
        done = asyncio.get_running_loop().create_future()
        self._committing.add(done)
        try:
            yield
        finally:
            self._committing.discard(done)
            done.set_result(None)


class CooperativeCoordinator(RevokingCoordinator):
    """One whose consumer keeps its partitions through a rebalance: when it joins, and what it is given."""

    async def close(self) -> None:
        self._stop_listening()
        await super().close()
        self._stop_listening()  # a rebalance may have ended meanwhile

    async def _on_join_prepare(self, previous_assignment: Any) -> None:
        """Commit. Nothing stops."""
        self._group_subscription = None
        if self.generation < 0:
            return
        if previous_assignment is not None:
            try:
                await self._maybe_do_last_autocommit(previous_assignment)
            except errors.KafkaError as error:
                log.warning("Committing before the join failed: %s", error)

    async def _do_rejoin_group(self, subscription: Any) -> Any:
        if self._leaving is not None:
            await asyncio.wait({self._leaving})
        self._stop_listening()  # its heartbeats would speak of the generation before
        async with _beside(self._beat(), self._autocommit()):
            try:
                # For each attempt: aiokafka prepares once for many, and between two a member may fall out,
                # or subscribe to other topics.
                await self._give_up_what_was_lost()
                await self._revoke(self._owned - self._subscribed(self._owned))
                await self._give_up_what_was_lost()  # within the listener
                if not subscription.active:
                    return False
                self._not_joining.clear()
                return await super()._do_rejoin_group(subscription)
            except FencedInstanceIdError:
                self.reset_generation()
                await self._give_up_what_was_lost()  # now: who hears the error may not poll again
                raise

    async def _autocommit(self) -> None:
        """Commit what is consumed while a join is on, which takes aiokafka's coordination task."""
        while (lasting := self._lasting) is not None:
            if self.syncing:  # it would be refused
                await self._not_joining.wait()
            try:
                due = await self._maybe_do_autocommit(lasting)
            except errors.KafkaError:  # aiokafka has logged it; the coordination comes upon it after the join
                return
            if due is None:
                return
            await asyncio.sleep(due)

    def _joined(self) -> None:
        super()._joined()
        self._not_joining.set()

    async def _on_join_complete(
        self, generation: int, member_id: str, protocol: str, member_assignment_bytes: bytes
    ) -> None:
        del member_id
        strategy, assignment = self._given(protocol, member_assignment_bytes)
        self._joined()
        self._start_heartbeat_task()  # listeners may take their time
        given = frozenset(assignment.partitions())
        revoked = self._owned - self._subscribed(given)
        await self._revoke(revoked)
        # The consumer may have fallen out meanwhile.
        if not self._subscription.partitions_auto_assigned() or self._is_out(generation):
            return
        # Nor may it subscribe to all of it any more. What it had it keeps: the next join revokes it.
        added = self._subscribed(given) - self._owned
        self._subscription.assign_from_subscribed(self._owned | added)
        strategy.on_assignment(assignment)
        lasting = self._subscription.lasting
        lasting.confirm(self._certainty.until)
        await self._stop_commit_offsets_refresh_task()
        self.start_commit_offsets_refresh_task(lasting)
        self._fetcher._notify(self._fetcher._wait_consume_future)  # noqa: SLF001 - so that it looks at them
        if revoked:
            self.request_rejoin()
        self._stop_listening()
        self._listening = asyncio.create_task(self._listen(generation))
        await self._tell("on_partitions_assigned", added)
        if not self._is_out(generation):
            lasting.release(added)

    async def _listen(self, generation: int) -> None:
        """Send heartbeats sooner than due, so as to hear of a second round; see `sooner_than`."""
        for delay in sooner_than(self._heartbeat_interval_ms / 1000):
            await asyncio.sleep(delay)
            if generation != self.generation or self.joining or self._rejoin_needed_fut.done():
                return
            with contextlib.suppress(errors.KafkaError):
                await self._do_heartbeat()

    def _stop_listening(self) -> None:
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None

    async def _send_req(self, request: Any) -> Any:
        sent = time.monotonic()
        answer = await super()._send_req(request)
        if isinstance(request, JoinGroupRequest) and answer.error_code == 0:
            self._certainty.joined()
        elif isinstance(request, SyncGroupRequest) and answer.error_code == 0:
            self._certainty.synced(sent)
        elif isinstance(request, HeartbeatRequest) and answer.error_code in {0, REBALANCE_IN_PROGRESS}:
            self._confirm(sent, awaited=answer.error_code == REBALANCE_IN_PROGRESS)
        return answer

    def _confirm(self, sent: float, *, awaited: bool = False) -> None:
        self._certainty.confirm(sent, awaited=awaited)
        if self._lasting is not None:
            self._lasting.confirm(self._certainty.until)


def _without_unknown(answer: Any) -> Any:
    """The answer to a commit without the partitions that the broker does not know.

    Other errors come first: whatever is sent again then has those partitions, too. If all others are stored,
    this raises UnknownPartitionsError.
    """
    unknown = frozenset(
        TopicPartition(topic, number)
        for topic, partitions in answer.topics
        for number, error in partitions
        if error == errors.UnknownTopicOrPartitionError.errno
    )
    if not unknown:
        return answer
    others = [
        (topic, [(number, error) for number, error in partitions if (topic, number) not in unknown])
        for topic, partitions in answer.topics
    ]
    if not any(error for _, partitions in others for _, error in partitions):
        raise UnknownPartitionsError(unknown)
    return SimpleNamespace(topics=others)


def revoked_meanwhile(partitions: Collection[TopicPartition]) -> errors.CommitFailedError:
    """The error of a commit for partitions that were this consumer's, and are not any more."""
    return errors.CommitFailedError(revoked_text(partitions))
