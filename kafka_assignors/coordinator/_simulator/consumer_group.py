"""The coordinator's side of KIP-848, as Kafka 4.3's `GroupMetadataManager` and its `HostedConsumerGroup`.

Members say by heartbeats who they are and what they have. The answers say what they may have. Each change of
the group makes a new *group epoch*. The next heartbeat of any member then makes a new *target assignment*,
though not sooner than an interval after the last. Each member reaches that by itself, as `reconcile`
describes. Nobody waits for the others, except for a partition that another has yet to revoke.

As in Kafka, the epoch of a new group is 1, so that of its first member is 2.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Literal

from kafka_assignors._wire.java.orders import HashKeys, hash_order, string_hash
from kafka_assignors.coordinator._simulator.clock import Clock, Timer
from kafka_assignors.coordinator._simulator.messages import (
    JOIN,
    LEAVE,
    LEAVE_STATIC,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    Error,
    TopicIdPartition,
)
from kafka_assignors.coordinator._simulator.reconciliation import GroupMember, reconcile
from kafka_assignors.coordinator._simulator.rounds import EpochTrigger, RebalanceCause
from kafka_assignors.coordinator._simulator.settings import BrokerSettings
from kafka_assignors.coordinator._simulator.target_assignment import (
    ASSIGNORS,
    MemberIds,
    Target,
    TargetTopic,
    next_targets,
    partitions_of,
    preferred_assignor,
)

ConsumerGroupState = Literal["Empty", "Assigning", "Reconciling", "Stable"]
"""The states of a KIP-848 group, under Kafka's names."""


class HostedConsumerGroup:
    """A KIP-848 group on its coordinator.

    Subscriptions are names of topics, not patterns. One thing is not as in Kafka. There, a member may join
    with an empty subscription while a new target is overdue. It is taken for one that subscribes to what all
    others do.

    `members` are in the order in which they came. `causes` has why there was each new group epoch, in order.
    If `topics_changed`, the next heartbeat looks whether topics that members subscribe to did.
    """

    def __init__(
        self, clock: Clock, topics: Mapping[str, TargetTopic], settings: BrokerSettings | None = None
    ) -> None:
        self.epoch = 1
        self.target_epoch = 1
        self.targets: dict[str, Target] = {}
        self.members: dict[str, GroupMember] = {}
        self.causes: list[RebalanceCause] = []
        self._clock = clock
        self._topics = dict(topics)
        self.settings = settings or BrokerSettings()
        self._exists = False
        self._order = MemberIds()
        self._static: dict[str, str] = {}
        self._owners: dict[TopicIdPartition, str] = {}
        self._subscribers: Counter[str] = Counter()
        self._target_made_at: int | None = None
        self._known_topics: dict[str, TargetTopic] = {}
        self.topics_changed = True
        self._sessions: dict[str, Timer] = {}
        self._revocations: dict[str, Timer] = {}

    @property
    def state(self) -> ConsumerGroupState:
        """Its state: a target is to be made, members are on their way to it, or all have it."""
        if not self.members:
            return "Empty"
        if self.epoch > self.target_epoch:
            return "Assigning"
        reconciled = all(member.reconciled_to(self.target_epoch) for member in self.members.values())
        return "Stable" if reconciled else "Reconciling"

    @property
    def member_ids(self) -> Collection[str]:
        """The members' ids, in the order of Kafka's map."""
        return self._order

    def change_topics(self, topics: Mapping[str, TargetTopic]) -> None:
        """Let there be these topics; a change in what members subscribe to makes a new epoch."""
        self._topics = dict(topics)
        self.topics_changed = True

    # Requests

    def heartbeat(self, request: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        leaves = request.epoch in {LEAVE, LEAVE_STATIC}
        error = self._invalid(request) or (self._unknown(request) if leaves else self._refused(request))
        if error:
            return ConsumerHeartbeatAnswer(error=error)
        if leaves:
            return self._leave(request)
        self._exists = True
        replaced = self._static_member(request.instance_id) if request.epoch == JOIN else None
        if replaced is None:
            member = self.members.get(request.member_id) or GroupMember(member_id=request.member_id)
        else:
            # A static member that came back has what its predecessor had.
            member = replace(replaced, member_id=request.member_id, epoch=0, previous_epoch=0)
            self.targets[member.member_id] = self.targets.get(replaced.member_id, {})
        updated = _updated(member, request)
        resubscribed = updated.topics != member.topics
        if resubscribed or self.topics_changed:
            self._look_at_topics(member, updated)
        if self.epoch > self.target_epoch and self._target_is_due:
            self._make_targets(updated)
        if resubscribed or not updated.reconciled_to(self.target_epoch):
            updated = self._reconcile(updated, request, resubscribed=resubscribed)
        self._put(updated, replaced)
        self._end(self._sessions, updated.member_id)
        self._sessions[updated.member_id] = self._clock.after(
            self.settings.session_timeout_ms, lambda: self._expire(updated.member_id)
        )
        full = None not in {request.rebalance_timeout_ms, request.topics, request.owned}
        changed = updated.assigned != member.assigned
        return ConsumerHeartbeatAnswer(
            epoch=updated.epoch,
            assignment=frozenset(updated.assigned) if full or changed else None,
        )

    @staticmethod
    def _invalid(request: ConsumerHeartbeat) -> Error:
        if (
            not request.member_id
            or Error.NONE in {request.instance_id, request.rack}
            or request.epoch < LEAVE_STATIC
        ):
            return Error.INVALID_REQUEST
        says_all = None not in {request.rebalance_timeout_ms, request.topics} and request.owned == frozenset()
        if request.epoch == JOIN and not says_all:
            return Error.INVALID_REQUEST
        if request.epoch == LEAVE_STATIC and request.instance_id is None:
            return Error.INVALID_REQUEST
        return Error.NONE if request.assignor in {None, *ASSIGNORS} else Error.UNSUPPORTED_ASSIGNOR

    def _refused(self, request: ConsumerHeartbeat) -> Error:
        """Whether the request comes from no member that is in the group, or may come into it."""
        if len(self.members) >= self.settings.max_size and request.member_id not in self.members:
            return Error.GROUP_MAX_SIZE_REACHED
        if request.epoch == JOIN:
            old = self._static_member(request.instance_id)
            return (
                Error.UNRELEASED_INSTANCE_ID if old is not None and old.epoch != LEAVE_STATIC else Error.NONE
            )
        error = self._unknown(request)
        if error:
            return error
        member = self.members[request.member_id]
        if request.epoch == member.epoch:
            return Error.NONE
        # The answer with the new epoch may have been lost.
        behind = request.epoch == member.previous_epoch and request.epoch < member.epoch
        within = request.owned is not None and request.owned <= member.assigned.keys()
        return Error.NONE if behind and within else Error.FENCED_MEMBER_EPOCH

    def _unknown(self, request: ConsumerHeartbeat) -> Error:
        if not self._exists:
            return Error.GROUP_ID_NOT_FOUND
        if request.instance_id is not None:
            member = self._static_member(request.instance_id)
            if member is not None and member.member_id != request.member_id:
                return Error.FENCED_INSTANCE_ID
        else:
            member = self.members.get(request.member_id)
        return Error.UNKNOWN_MEMBER_ID if member is None else Error.NONE

    def _static_member(self, instance_id: str | None) -> GroupMember | None:
        return None if instance_id is None else self.members.get(self._static.get(instance_id, ""))

    def _leave(self, request: ConsumerHeartbeat) -> ConsumerHeartbeatAnswer:
        member = self.members[request.member_id]
        if request.epoch == LEAVE:
            self._remove_and_go_on(member.member_id, "member left")
        else:
            # Its session goes on from its last heartbeat.
            kept = dict.fromkeys(member.assigned, 0)
            self._put(replace(member, epoch=LEAVE_STATIC, assigned=kept, pending_revocation={}))
        return ConsumerHeartbeatAnswer(epoch=request.epoch)

    # Epochs, targets, assignments

    def _look_at_topics(self, member: GroupMember, updated: GroupMember) -> None:
        """Begin a new epoch if a member's subscription, or a topic that anyone subscribes to, changed."""
        dropped = {name for name in member.topics - updated.topics if self._subscribers[name] == 1}
        topics = self._existing((self._subscribers.keys() | updated.topics) - dropped)
        if updated.topics != member.topics:
            joined = updated.member_id not in self.members and member.epoch == JOIN and not member.topics
            trigger: EpochTrigger = "member joined" if joined else "member changed its subscription"
            self._next_epoch(trigger, updated.member_id, topics)
        elif topics != self._known_topics:
            self._next_epoch("topics changed", updated.member_id, topics)
        self.topics_changed = False

    def _existing(self, names: Iterable[str]) -> dict[str, TargetTopic]:
        return {name: self._topics[name] for name in names if name in self._topics}

    def _next_epoch(self, trigger: EpochTrigger, member_id: str, topics: dict[str, TargetTopic]) -> None:
        self.epoch += 1
        self._known_topics = topics
        self.causes.append(
            RebalanceCause(
                time_ms=self._clock.now, trigger=trigger, member_id=member_id, generation=self.epoch
            )
        )

    @property
    def _target_is_due(self) -> bool:
        if self._target_made_at is None:
            return True
        return self._clock.now >= self._target_made_at + self.settings.assignment_interval_ms

    def _make_targets(self, updated: GroupMember) -> None:
        """Make the target assignment of the new epoch, one member being as its heartbeat says."""
        before = self._static.get(updated.instance_id or "", updated.member_id)
        walked = HashKeys(self._order, string_hash)
        for changed in hash_order((updated.member_id, before), string_hash):
            if changed == updated.member_id:
                walked.add(changed)
            else:
                walked.discard(changed)
        members = {**self.members, updated.member_id: updated}
        if before != updated.member_id:
            del members[before]
        assignor = preferred_assignor(members.values(), asking=updated.member_id)
        self.targets |= next_targets(assignor, members, walked, self.targets, self._topics)
        self.target_epoch = self.epoch
        self._target_made_at = self._clock.now

    def _reconcile(
        self, member: GroupMember, request: ConsumerHeartbeat, *, resubscribed: bool
    ) -> GroupMember:
        after = reconcile(
            member,
            target=partitions_of(self.targets.get(member.member_id, {})),
            target_epoch=self.target_epoch,
            topic_ids={topic.topic_id for topic in self._existing(member.topics).values()},
            subscription_changed=resubscribed,
            owned=request.owned,
            is_owned=self._owners.__contains__,
        )
        if after != member:
            self._end(self._revocations, member.member_id)
            if after.state == "UNREVOKED_PARTITIONS":
                self._revocations[member.member_id] = self._clock.after(
                    after.rebalance_timeout_ms, lambda: self._expire_revocation(after.member_id, after.epoch)
                )
        return after

    # Members

    def _put(self, updated: GroupMember, replaced: GroupMember | None = None) -> None:
        """Keep what became of a member; a static one that came back takes the place of its predecessor."""
        member_id = updated.member_id
        if replaced is not None:
            target = self.targets[member_id]
            self._remove(replaced.member_id)
            self.targets[member_id] = target
        known = self.members.get(member_id)
        if known != updated:
            self._release(known)
            self.members[member_id] = updated
            self._subscribers.update(updated.topics)
            for partitions in (updated.assigned, updated.pending_revocation):
                self._owners |= dict.fromkeys(partitions, member_id)
            self._order.put(member_id)
            self._order.put(member_id)  # The log has two records of a new member.
        if updated.instance_id is not None:
            self._static[updated.instance_id] = member_id

    def _release(self, member: GroupMember | None) -> None:
        if member is None:
            return
        self._subscribers -= Counter(member.topics)
        for partition in (*member.assigned, *member.pending_revocation):
            self._owners.pop(partition, None)

    def _remove(self, member_id: str) -> None:
        member = self.members.pop(member_id)
        self._release(member)
        self._order.discard(member_id)
        self.targets.pop(member_id, None)
        if member.instance_id is not None:
            self._static.pop(member.instance_id, None)

    def _remove_and_go_on(self, member_id: str, trigger: EpochTrigger) -> None:
        self._remove(member_id)
        self._end(self._sessions, member_id)
        self._end(self._revocations, member_id)
        self._next_epoch(trigger, member_id, self._existing(self._subscribers))

    def _expire(self, member_id: str) -> None:
        if member_id in self.members:
            self._remove_and_go_on(member_id, "member lost")

    def _expire_revocation(self, member_id: str, epoch: int) -> None:
        if member_id in self.members and self.members[member_id].epoch == epoch:
            self._remove_and_go_on(member_id, "member did not revoke in time")

    @staticmethod
    def _end(timers: dict[str, Timer], member_id: str) -> None:
        if member_id in timers:
            timers.pop(member_id).cancel()


def _updated(member: GroupMember, request: ConsumerHeartbeat) -> GroupMember:
    """The member with what its heartbeat says; what that leaves out did not change."""
    timeout = request.rebalance_timeout_ms
    return replace(
        member,
        instance_id=request.instance_id or member.instance_id,
        rack=request.rack or member.rack,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout is None else timeout,
        topics=member.topics if request.topics is None else request.topics,
        assignor=request.assignor or member.assignor,
    )
