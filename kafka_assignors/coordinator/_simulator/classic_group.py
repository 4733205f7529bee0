"""The coordinator's side of the classic group protocol, as Kafka's `GroupMetadataManager` and `ClassicGroup`.

Joins are held until all members have joined, or the rebalance timeout is over; then everyone gets the same
generation, the leader with all subscriptions. Syncs are held until the leader's, which has the assignments.
Everything that makes the group rebalance is kept with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final, Literal

from kafka_assignors._groups.election import elect_leader, elect_strategy
from kafka_assignors._wire.offsets_topic import GroupMetadataValue, MemberMetadata
from kafka_assignors.coordinator._simulator.held_answers import HeldAnswers
from kafka_assignors.coordinator._simulator.known_members import KnownMember, KnownMembers, Sessions
from kafka_assignors.coordinator._simulator.messages import Error, Joined, Synced
from kafka_assignors.coordinator._simulator.settings import BrokerSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors.coordinator._simulator.clock import Clock, Timer
    from kafka_assignors.coordinator._simulator.messages import Join, JoinReply, Sync, SyncReply


class State(StrEnum):
    """The states of a group, under Kafka's names."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


Trigger = Literal[
    "member joined",
    "member left",
    "member lost",
    "member did not sync in time",
    "leader joined again",
    "member joined again with other metadata",
    "static member came back with another strategy",
    "static member came back in a rebalance",
    "coordinator moved",
]
"""What makes a group rebalance."""

NEW_MEMBER_MS: Final = 300_000
"""How long the broker keeps a new member that waits for its first round; it cannot send heartbeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceCause:
    """Why a rebalance began.

    Attributes:
        time_ms: When.
        trigger: The kind of reason.
        member_id: Whose doing it was.
        generation: The generation that it ended.
    """

    time_ms: int
    trigger: Trigger
    member_id: str
    generation: int


class HostedClassicGroup:
    """A group on its coordinator. `causes` has why each rebalance began, in order.

    `new_id` makes the unique part of a member id, 36 letters as of a UUID. `removed` is called with the id of
    each member that is removed. `passed_over` is called for each static member that a generation begins
    without. It gets the member's id, and by strategy what the member sent for an earlier one. With that it is
    still in the group.
    """

    def __init__(
        self, clock: Clock, new_id: Callable[[], str], settings: BrokerSettings | None = None
    ) -> None:
        self.state = State.EMPTY
        self.generation = 0
        self.strategy = ""
        self.leader: str | None = None
        self.causes: list[RebalanceCause] = []
        self.removed: Callable[[str], None] = lambda _: None
        self.passed_over: Callable[[str, Mapping[str, bytes]], None] = lambda *_: None
        self._clock = clock
        self._new_id = new_id
        self._settings = settings or BrokerSettings()
        self._members = KnownMembers()
        self._sessions = Sessions(clock, self._expire)
        self._held = HeldAnswers()
        self._pending: dict[str, Timer] = {}
        self._not_synced: set[str] = set()
        self._from_empty = False
        self._new_member_added = False
        self._written_state_since = self._stable_since = clock.now
        self._round: Timer | None = None
        self._sync_timer: Timer | None = None
        self._written: GroupMetadataValue | None = None
        self._moves = 0  # that are not over yet
        self._cut_off: set[str] = set()

    @property
    def member_ids(self) -> Sequence[str]:
        """The members' ids, in the order of Kafka's map."""
        return self._members.ids

    def record(self) -> GroupMetadataValue:
        """The group as the coordinator writes it to `__consumer_offsets`.

        Kafka notes since when it was in the state in which it was written. When its leader answers that is
        still CompletingRebalance, so since all had joined. When a static member comes back it is Stable.
        """
        return GroupMetadataValue(
            version=3,
            protocol_type="consumer",
            generation=self.generation,
            protocol=self.strategy or None,
            leader=self.leader,
            current_state_timestamp=self._written_state_since,
            members=tuple(
                MemberMetadata(
                    member_id=member.member_id,
                    group_instance_id=member.instance_id,
                    client_id=member.client_id,
                    client_host="/127.0.0.1",
                    rebalance_timeout=member.rebalance_timeout_ms,
                    session_timeout=member.session_timeout_ms,
                    subscription=member.protocols[self.strategy],
                    assignment=member.assignment,
                )
                for member in self._members.in_order()
            ),
        )

    def move(self, away_ms: int) -> None:
        """Let another broker become the coordinator; for so long none answers.

        It knows what was written at the end of the last rebalance, and nothing of one that is on. Members
        whose joins or syncs are cut off ask again, and that begins a new one. A stable group continues. Moves
        that overlap are over with the one that ends last.
        """
        self._cut_off |= {*self._held.joins, *self._held.syncs, *self._not_synced}
        for timer in (self._round, self._sync_timer, *self._pending.values()):
            if timer is not None:
                timer.cancel()
        for member in self._members:
            self._sessions.end(member)
        held, self._held = self._held, HeldAnswers()
        self._moves += 1
        held.refuse_all(Error.NOT_COORDINATOR)
        self._load()
        self._clock.after(away_ms, self._come_back)

    def _load(self) -> None:
        """Begin with what was written."""
        value = self._written
        members = () if value is None else value.members
        self._members = KnownMembers(
            KnownMember(
                member_id=member.member_id,
                client_id=member.client_id,
                instance_id=member.group_instance_id,
                session_timeout_ms=member.session_timeout,
                rebalance_timeout_ms=member.rebalance_timeout,
                # Of what it knows, only what was taken is written down.
                protocols={value.protocol or "": member.subscription} if value is not None else {},
                assignment=member.assignment,
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
        for member in self._members:
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
        if self._moves:
            reply(Synced(error=Error.NOT_COORDINATOR))
            return
        error = self._check(request.member_id, request.instance_id, request.generation)
        if error:
            reply(Synced(error=error))
            return
        member = self._members[request.member_id]
        if self.state == State.PREPARING:
            reply(Synced(error=Error.REBALANCE_IN_PROGRESS))
        elif self.state == State.COMPLETING:
            self._held.syncs[member.member_id] = reply
            self._not_synced.discard(member.member_id)
            if member.member_id == self.leader:
                for other in self._members:
                    other.assignment = request.assignments.get(other.member_id, b"")
                self.state = State.STABLE
                self._written = self.record()
                self._stable_since = self._clock.now
                for waiting in list(self._held.syncs):
                    self._sessions.renew(self._members[waiting])
                    self._held.answer_sync(waiting, Synced(assignment=self._members[waiting].assignment))
            self._end_sync_timer()
        else:
            self._not_synced.discard(member.member_id)
            self._end_sync_timer()
            reply(Synced(assignment=member.assignment))

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> Error:
        if self._moves:
            return Error.NOT_COORDINATOR
        error = self._check(member_id, instance_id, generation)
        if error:
            return error
        self._sessions.renew(self._members[member_id])
        return Error.REBALANCE_IN_PROGRESS if self.state == State.PREPARING else Error.NONE

    def commit(self, member_id: str, instance_id: str | None, generation: int) -> Error:
        """OffsetCommit, without the offsets. It renews the session, as a heartbeat does."""
        if self._moves:
            return Error.NOT_COORDINATOR
        if generation < 0 and self.state == State.EMPTY:
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
        if self._moves:
            return Error.NOT_COORDINATOR
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
            return member_id in self._held.joins or len(self._held.joins) < self._settings.max_size
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
        changed = list(member.protocols.items()) != list(request.protocols.items())
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
        self._held.answer_join(old_id, Joined(error=Error.FENCED_INSTANCE_ID, member_id=old_id))
        self._held.answer_sync(old_id, Synced(error=Error.FENCED_INSTANCE_ID))
        self._sessions.end(old)
        was_leader = self.leader == old_id
        member = KnownMember.of(member_id, request)
        # Kafka (4.3) keeps the old client id, and the old session timeout until the next heartbeat. It still
        # waits for the old member id's sync, so that in the end it rebalances without need.
        member.client_id, member.assignment = old.client_id, old.assignment
        self._members.remove(old_id)
        self.removed(old_id)
        self._members.add(member)
        if was_leader:
            self.leader = member_id
        self._sessions.renew(member, old.session_timeout_ms)
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
        self._held.joins[member_id] = reply
        self._rebalance_or_complete(trigger, member_id)

    def _add(self, member_id: str, request: Join, reply: JoinReply) -> None:
        if self.state == State.PREPARING and self._from_empty:
            self._new_member_added = True
        member = KnownMember.of(member_id, request)
        member.is_new = True
        self._members.add(member)
        self._held.joins[member_id] = reply
        if self.leader is None:
            self.leader = member_id
        self._sessions.renew(member, NEW_MEMBER_MS)
        self._rebalance_or_complete("member joined", member_id)

    def _update(self, member: KnownMember, request: Join, reply: JoinReply) -> None:
        self._members.update(member, request)
        self._held.joins[member.member_id] = reply

    # Rounds

    def _rebalance_or_complete(self, trigger: Trigger, member_id: str) -> None:
        if self.state == State.PREPARING:
            self._maybe_complete()
        else:
            self._rebalance(trigger, member_id)

    def _rebalance(self, trigger: Trigger, member_id: str) -> None:
        self._cut_off = set()
        self.causes.append(
            RebalanceCause(
                time_ms=self._clock.now, trigger=trigger, member_id=member_id, generation=self.generation
            )
        )
        if self.state == State.COMPLETING:
            for member in self._members:
                member.assignment = b""
            for waiting in list(self._held.syncs):
                self._sessions.renew(self._members[waiting])
                self._held.answer_sync(waiting, Synced(error=Error.REBALANCE_IN_PROGRESS))
        self._not_synced.clear()
        self._end_sync_timer()
        self._from_empty = self.state == State.EMPTY
        self.state = State.PREPARING
        if self._from_empty:
            delay = self._settings.initial_rebalance_delay_ms
            self._wait_for_first(delay, max(self._members.rebalance_timeout_ms - delay, 0))
        elif self._all_joined:
            self._complete()
        else:
            self._round = self._clock.after(self._members.rebalance_timeout_ms, self._complete)

    def _wait_for_first(self, delay: int, remaining: int) -> None:
        """Wait for more members; once more as long as some came, up to the rebalance timeout."""

        def look() -> None:
            if self._new_member_added and remaining:
                self._new_member_added = False
                again = min(self._settings.initial_rebalance_delay_ms, remaining)
                self._wait_for_first(again, max(remaining - delay, 0))
            else:
                self._complete()

        self._round = self._clock.after(delay, look)

    def _maybe_complete(self) -> None:
        if self.state == State.PREPARING and self._all_joined and not self._from_empty:
            self._complete()

    def _complete(self) -> None:
        """End the round: those that have joined are the next generation."""
        if self._round is not None:
            self._round.cancel()
            self._round = None
        for member in list(self._members):
            if member.member_id not in self._held.joins:
                if member.instance_id is None:
                    self._remove(member.member_id)
                else:
                    self.passed_over(member.member_id, member.protocols)
        elected = elect_leader(self._members.order, leader=self.leader, joined=self._held.joins)
        if elected is None and self._members:  # static members that may yet come back
            self._round = self._clock.after(self._members.rebalance_timeout_ms, self._complete)
            return
        self.leader = elected
        self.generation += 1
        self._written_state_since = self._clock.now
        self._not_synced.clear()
        if not self._members:
            self.state, self.strategy = State.EMPTY, ""
            self._written = self.record()
            return
        self.strategy = elect_strategy(self._members.preferences()).strategy
        self.state = State.COMPLETING
        answers = [(member, self._answer_to(member)) for member in self._members]
        self._not_synced.update(member.member_id for member in self._members)
        generation = self.generation
        self._sync_timer = self._clock.after(
            self._members.rebalance_timeout_ms, lambda: self._expire_syncs(generation)
        )
        for member, answer in answers:
            member.is_new = False
            self._sessions.renew(member)
            self._held.answer_join(member.member_id, answer)

    def _expire_syncs(self, generation: int) -> None:
        if generation != self.generation or self.state not in {State.COMPLETING, State.STABLE}:
            return
        late = [member_id for member_id in self.member_ids if member_id in self._not_synced]
        replaced = sorted(self._not_synced.difference(late))
        for member_id in late:
            self._remove(member_id)
        if late or replaced:
            self._rebalance("member did not sync in time", [*late, *replaced][0])

    def _end_sync_timer(self) -> None:
        if self._sync_timer is not None and not self._not_synced:
            self._sync_timer.cancel()
            self._sync_timer = None

    # Members

    def _check(self, member_id: str, instance_id: str | None, generation: int | None = None) -> Error:
        if instance_id is not None:
            known = self._members.of_instance(instance_id)
            if known is None:
                return Error.UNKNOWN_MEMBER_ID
            if known != member_id:
                return Error.FENCED_INSTANCE_ID
        if member_id not in self._members:
            return Error.UNKNOWN_MEMBER_ID
        return Error.ILLEGAL_GENERATION if generation not in {None, self.generation} else Error.NONE

    def _expire(self, member: KnownMember) -> None:
        # One that waits for an answer sends no heartbeats; but a new one has waited long enough.
        waits = member.member_id in self._held
        if self._members.get(member.member_id) is member and (member.is_new or not waits):
            self._remove(member.member_id)
            if self.state == State.PREPARING:
                self._complete_without_lost()
            else:
                self._rebalance("member lost", member.member_id)

    def _forget_pending(self, member_id: str) -> None:
        self._pending.pop(member_id, None)
        self._complete_without_lost()

    def _complete_without_lost(self) -> None:
        """End the round if all others have joined. Even the first of an empty group waits no longer."""
        if self.state == State.PREPARING and self._all_joined:
            self._complete()

    def _remove(self, member_id: str) -> None:
        member = self._members.remove(member_id)
        self.removed(member_id)
        self._not_synced.discard(member_id)
        self._sessions.end(member)
        self._held.answer_join(member_id, Joined(error=Error.UNKNOWN_MEMBER_ID, member_id=member_id))
        # Kafka (4.3) never answers the SyncGroup of a member that is removed: its client times out.
        self._held.drop_sync(member_id)
        if self.leader == member_id:
            self.leader = elect_leader(self._members.order)

    def _answer_to(self, member: KnownMember) -> Joined:
        return Joined(
            member_id=member.member_id,
            generation=self.generation,
            strategy=self.strategy,
            leader=self.leader or "",
            members=self._members.subscriptions(self.strategy) if member.member_id == self.leader else (),
        )

    @property
    def _all_joined(self) -> bool:
        return not self._pending and len(self._held.joins) == len(self._members)
