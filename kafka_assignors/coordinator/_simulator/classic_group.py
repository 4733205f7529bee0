"""The coordinator of a group of the classic protocol: its answers, as of Kafka's `GroupMetadataManager`."""

from collections.abc import Callable
from dataclasses import replace

from kafka_assignors._groups.election import elect_strategy
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.known_members import KnownMember, KnownMembers
from kafka_assignors.coordinator._simulator.messages import (
    Error,
    Join,
    Joined,
    JoinReply,
    Sync,
    Synced,
    SyncReply,
    reply_to,
)
from kafka_assignors.coordinator._simulator.rounds import NEW_MEMBER_MS, Rounds, State, Trigger
from kafka_assignors.coordinator._simulator.settings import BrokerSettings


class HostedClassicGroup(Rounds):
    """A group on its coordinator. `new_id` makes the unique part of a member id, 36 letters as of a UUID."""

    def __init__(
        self, clock: Clock, new_id: Callable[[], str], settings: BrokerSettings | None = None
    ) -> None:
        super().__init__(clock, settings)
        self._new_id = new_id
        self._moves = 0  # that are not over yet

    def move(self, away_ms: int) -> None:
        """Let another broker become the coordinator; for so long none answers.

        It knows what was written at the end of the last rebalance, and nothing of one that is on. Members
        whose joins or syncs are cut off ask again, and that begins a new one. A stable group continues. Moves
        that overlap are over with the one that ends last.
        """
        self._cut_off |= {*self._joins, *self._syncs, *self._not_synced}
        for timer in (self._round, self._sync_timer, *self._pending.values()):
            if timer is not None:
                timer.cancel()
        for member in self._members.values():
            self._sessions.end(member)
        joins, syncs = self._joins, self._syncs
        self._joins, self._syncs = {}, {}
        self._moves += 1
        for join in joins.values():
            join(Joined(error=Error.NOT_COORDINATOR))
        for sync in syncs.values():
            sync(Synced(error=Error.NOT_COORDINATOR))
        self._load()
        self._clock.after(away_ms, self._come_back)

    def _load(self) -> None:
        value = self._written
        members = () if value is None else value.members
        self._members = KnownMembers(
            KnownMember(
                member.member_id,
                Join(
                    member_id=member.member_id,
                    client_id=member.client_id,
                    instance_id=member.group_instance_id,
                    session_timeout_ms=member.session_timeout,
                    rebalance_timeout_ms=member.rebalance_timeout,
                    # Of what it knows, only what was taken is written down.
                    protocols={value.protocol or "": member.subscription} if value is not None else {},
                ),
                member.assignment,
            )
            for member in members
        )
        self._pending, self._not_synced = {}, set()
        self._round = self._sync_timer = None
        self._new_member_added = False
        if value is not None:
            self._written_state_since = self._stable_since = value.current_state_timestamp
        self.generation = 0 if value is None else value.generation
        self.strategy = "" if value is None else value.protocol or ""
        self.leader = None if value is None else value.leader
        self.state = State.STABLE if self._members else State.EMPTY

    def _come_back(self) -> None:
        self._moves -= 1
        if self._moves:
            return
        for member in self._members.values():
            self._sessions.renew(member)
        # Static members that were passed over may be too many.
        if len(self._members) > self._settings.max_size:
            self._rebalance("coordinator moved", self.leader or "")

    # Requests

    def join(self, request: Join, reply: JoinReply) -> None:
        """JoinGroup; the answer may come much later."""
        settings = self._settings
        if self._moves:
            reply(Joined(error=Error.NOT_COORDINATOR))
        elif not (
            settings.min_session_timeout_ms <= request.session_timeout_ms <= settings.max_session_timeout_ms
        ):
            reply(Joined(error=Error.INVALID_SESSION_TIMEOUT))
        elif not self._has_room_for(request.member_id):
            self._drop(request.member_id)
            reply(Joined(error=Error.GROUP_MAX_SIZE_REACHED))
        elif not self._members.supports(request.protocols):
            reply(Joined(error=Error.INCONSISTENT_GROUP_PROTOCOL))
        elif request.member_id:
            self._join_again(request, reply)
        elif request.instance_id is not None:
            self._join_static(request, reply)
        else:
            # KIP-394: so that members whose answer gets lost do not stay in the group.
            member_id = f"{request.client_id}-{self._new_id()}"
            self._pending[member_id] = self._clock.after(
                request.session_timeout_ms, lambda: self._forget_pending(member_id)
            )
            reply(Joined(error=Error.MEMBER_ID_REQUIRED, member_id=member_id))

    def sync(self, request: Sync, reply: SyncReply) -> None:
        """SyncGroup; the answer comes with the leader's."""
        error = self._check(request.member_id, request.instance_id, request.generation)
        if error:
            reply(Synced(error=error))
            return
        member = self._members[request.member_id]
        if self.state == State.PREPARING:
            reply(Synced(error=Error.REBALANCE_IN_PROGRESS))
        elif self.state == State.COMPLETING:
            self._syncs[member.member_id] = reply
            self._not_synced.discard(member.member_id)
            if member.member_id == self.leader:
                for other in self._members.values():
                    other.assignment = request.assignments.get(other.member_id, b"")
                self.state = State.STABLE
                self._written = self.record()
                self._stable_since = self._clock.now
                for waiting in list(self._syncs):
                    self._sessions.renew(self._members[waiting])
                    reply_to(self._syncs, waiting, Synced(assignment=self._members[waiting].assignment))
            self._end_sync_timer()
        else:
            self._not_synced.discard(member.member_id)
            self._end_sync_timer()
            reply(Synced(assignment=member.assignment))

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> Error:
        error = self._check(member_id, instance_id, generation)
        if error:
            return error
        self._sessions.renew(self._members[member_id])
        return Error.REBALANCE_IN_PROGRESS if self.state == State.PREPARING else Error.NONE

    def commit(self, member_id: str, instance_id: str | None, generation: int) -> Error:
        """OffsetCommit, without the offsets. It renews the session, as a heartbeat does."""
        if generation < 0 and self.state == State.EMPTY and not self._moves:
            return Error.NONE
        error = self._check(member_id, instance_id, generation)
        if error:
            return error
        if self.state == State.COMPLETING:
            return Error.REBALANCE_IN_PROGRESS
        self._sessions.renew(self._members[member_id])
        return Error.NONE

    def leave(self, member_id: str, instance_id: str | None = None) -> Error:
        """LeaveGroup: of a member by its id, or of a static one by its instance id."""
        if instance_id is not None and not member_id:
            member_id = self._members.of_instance(instance_id) or ""
        if member_id in self._pending:
            self._pending.pop(member_id).cancel()
        else:
            error = self._check(member_id, instance_id)
            if error:
                return error
            self._remove(member_id)
        if self.state != State.EMPTY:
            self._rebalance_or_complete("member left", member_id)
        return Error.NONE

    # Joining

    def _has_room_for(self, member_id: str) -> bool:
        """Whether a member may join (`GroupMetadataManager.acceptJoiningMember`)."""
        if self.state == State.EMPTY:
            return True
        if self.state == State.PREPARING:
            return member_id in self._joins or len(self._joins) < self._settings.max_size
        return member_id in self._members or len(self._members) < self._settings.max_size

    def _drop(self, member_id: str) -> None:
        """Forget a member that is refused; that continues no round that waits for it."""
        if member_id in self._pending:
            self._pending.pop(member_id).cancel()
        elif member_id in self._members:
            self._remove(member_id)

    def _join_again(self, request: Join, reply: JoinReply) -> None:
        if request.member_id in self._pending:
            self._pending.pop(request.member_id).cancel()
            self._add(request.member_id, request, reply)
            return
        error = self._check(request.member_id, request.instance_id)
        if error:
            reply(Joined(error=error))
            return
        member = self._members[request.member_id]
        changed = list(member.join.protocols.items()) != list(request.protocols.items())
        if self.state == State.PREPARING:
            self._update(member, request, reply)
            self._maybe_complete()
        elif not changed and (
            self.state == State.COMPLETING or (self.state == State.STABLE and member.member_id != self.leader)
        ):
            reply(self._answer_to(member))
        else:
            self._update(member, request, reply)
            self._rebalance(self._why_again(member), member.member_id)

    def _why_again(self, member: KnownMember) -> Trigger:
        if member.member_id in self._cut_off:
            return "coordinator moved"
        leads = member.member_id == self.leader
        return "leader joined again" if leads else "member joined again with other metadata"

    def _join_static(self, request: Join, reply: JoinReply) -> None:
        assert request.instance_id is not None  # noqa: S101 - for the type checker
        member_id = f"{request.instance_id}-{self._new_id()}"
        old_id = self._members.of_instance(request.instance_id)
        if old_id is None:
            self._add(member_id, request, reply)
            return
        old = self._members[old_id]
        reply_to(self._joins, old_id, Joined(error=Error.FENCED_INSTANCE_ID, member_id=old_id))
        reply_to(self._syncs, old_id, Synced(error=Error.FENCED_INSTANCE_ID))
        self._sessions.end(old)
        was_leader = self.leader == old_id
        # Kafka (4.3) keeps the old client id, and the old session timeout until the next heartbeat. It still
        # waits for the old member id's sync, so that in the end it rebalances without need.
        member = KnownMember(member_id, replace(request, client_id=old.join.client_id), old.assignment)
        self._members.remove(old_id)
        self.removed(old_id)
        self._members.add(member)
        if was_leader:
            self.leader = member_id
        self._sessions.renew(member, old.join.session_timeout_ms)
        if self.state == State.STABLE:
            if elect_strategy(self._members.preferences()).strategy == self.strategy:
                # Nobody notices; what it subscribes to now counts in the next round only.
                self._written_state_since = self._stable_since
                self._written = self.record()
                reply(replace(self._answer_to(member), skip_assignment=was_leader))
                return
            trigger: Trigger = "static member came back with another strategy"
        else:
            trigger = "static member came back in a rebalance"
        self._joins[member_id] = reply
        self._rebalance_or_complete(trigger, member_id)

    def _add(self, member_id: str, request: Join, reply: JoinReply) -> None:
        if self.state == State.PREPARING and self._from_empty:
            self._new_member_added = True
        member = KnownMember(member_id, request, is_new=True)
        self._members.add(member)
        self._joins[member_id] = reply
        if self.leader is None:
            self.leader = member_id
        self._sessions.renew(member, NEW_MEMBER_MS)
        self._rebalance_or_complete("member joined", member_id)

    def _update(self, member: KnownMember, request: Join, reply: JoinReply) -> None:
        self._members.rejoin(member, request)
        self._joins[member.member_id] = reply

    def _check(self, member_id: str, instance_id: str | None, generation: int | None = None) -> Error:
        if self._moves:
            return Error.NOT_COORDINATOR
        if instance_id is not None:
            known = self._members.of_instance(instance_id)
            if known is None:
                return Error.UNKNOWN_MEMBER_ID
            if known != member_id:
                return Error.FENCED_INSTANCE_ID
        if member_id not in self._members:
            return Error.UNKNOWN_MEMBER_ID
        return Error.ILLEGAL_GENERATION if generation not in {None, self.generation} else Error.NONE
