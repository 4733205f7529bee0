"""A group's state, and when its rounds begin and end, as Kafka's `GroupMetadataManager` has it.

Joins are held until all members have joined, or the rebalance timeout is over; then everyone gets the same
generation, the leader with all subscriptions. Syncs are held until the leader's, which has the assignments.
Everything that makes the group rebalance is kept with its reason.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from kafka_assignors._groups.election import elect_leader, elect_strategy
from kafka_assignors._wire.offsets_topic import GroupMetadataValue, MemberMetadata
from kafka_assignors.coordinator._simulator.clock import Clock, Timer
from kafka_assignors.coordinator._simulator.known_members import KnownMember, KnownMembers, Sessions
from kafka_assignors.coordinator._simulator.messages import (
    Error,
    Joined,
    JoinReply,
    Synced,
    SyncReply,
    reply_to,
)
from kafka_assignors.coordinator._simulator.settings import BrokerSettings


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

EpochTrigger = Literal[
    "member joined",
    "member left",
    "member lost",
    "member did not revoke in time",
    "member changed its subscription",
    "topics changed",
]
"""What makes a new group epoch."""

NEW_MEMBER_MS: Final = 300_000
"""How long the broker keeps a new member that waits for its first round; it cannot send heartbeats."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebalanceCause:
    """Why a rebalance began, whose doing it was, and the generation that it ended.

    In a KIP-848 group: why there was a new epoch, whose heartbeat brought it about, and that epoch.
    """

    time_ms: int
    trigger: Trigger | EpochTrigger
    member_id: str
    generation: int


class Rounds:
    """A group's members and its rounds, as its coordinator knows them.

    `causes` has why each rebalance began, in order. `removed` is called with the id of each member that is
    removed. `passed_over` is called for each static member that a generation begins without: with its id, and
    by strategy what it sent for an earlier generation.
    """

    def __init__(self, clock: Clock, settings: BrokerSettings | None = None) -> None:
        self.state = State.EMPTY
        self.generation = 0
        self.strategy = ""
        self.leader: str | None = None
        self.causes: list[RebalanceCause] = []
        self.removed: Callable[[str], None] = lambda _: None
        self.passed_over: Callable[[str, Mapping[str, bytes]], None] = lambda *_: None
        self._clock = clock
        self._settings = settings or BrokerSettings()
        self._members = KnownMembers()
        self._sessions = Sessions(clock, self._expire)
        self._joins: dict[str, JoinReply] = {}
        self._syncs: dict[str, SyncReply] = {}
        self._pending: dict[str, Timer] = {}
        self._not_synced: set[str] = set()
        self._from_empty = False
        self._new_member_added = False
        self._written_state_since = self._stable_since = clock.now
        self._round: Timer | None = None
        self._sync_timer: Timer | None = None
        self._written: GroupMetadataValue | None = None
        self._cut_off: set[str] = set()

    @property
    def member_ids(self) -> Collection[str]:
        return self._members.order

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
                    group_instance_id=member.join.instance_id,
                    client_id=member.join.client_id,
                    client_host="/127.0.0.1",
                    rebalance_timeout=member.join.rebalance_timeout_ms,
                    session_timeout=member.join.session_timeout_ms,
                    subscription=member.join.protocols[self.strategy],
                    assignment=member.assignment,
                )
                for member in self._members.in_order()
            ),
        )

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
            for member in self._members.values():
                member.assignment = b""
            for waiting in list(self._syncs):
                self._sessions.renew(self._members[waiting])
                reply_to(self._syncs, waiting, Synced(error=Error.REBALANCE_IN_PROGRESS))
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
        for member in list(self._members.values()):
            if member.member_id not in self._joins:
                if member.join.instance_id is None:
                    self._remove(member.member_id)
                else:
                    self.passed_over(member.member_id, member.join.protocols)
        elected = elect_leader(self._members.order, leader=self.leader, joined=self._joins)
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
        answers = [(member, self._answer_to(member)) for member in self._members.values()]
        self._not_synced.update(self._members)
        generation = self.generation
        self._sync_timer = self._clock.after(
            self._members.rebalance_timeout_ms, lambda: self._expire_syncs(generation)
        )
        for member, answer in answers:
            member.is_new = False
            self._sessions.renew(member)
            reply_to(self._joins, member.member_id, answer)

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

    def _expire(self, member: KnownMember) -> None:
        # One that waits for an answer sends no heartbeats; but a new one has waited long enough.
        waits = member.member_id in self._joins or member.member_id in self._syncs
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
        reply_to(self._joins, member_id, Joined(error=Error.UNKNOWN_MEMBER_ID, member_id=member_id))
        # Kafka (4.3) never answers the SyncGroup of a member that is removed: its client times out.
        self._syncs.pop(member_id, None)
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
        return not self._pending and len(self._joins) == len(self._members)
