"""A member's side of KIP-848, as Java's consumer (4.3) plays it.

Heartbeats do everything. One is sent when the member joins, when it has done what it was to do, and otherwise
at the interval that the coordinator says. The member takes its assignment when the application polls. It
revokes what it is to lose, takes what is new, and says at once what it has now. The coordinator gives what it
waited for in the answer to that, or later.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafka.structs import TopicPartition

from kafka_assignors._timelines import events
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.consumer import SimulatedConsumer
from kafka_assignors.coordinator._simulator.consumer_group import HostedConsumerGroup
from kafka_assignors.coordinator._simulator.messages import (
    JOIN,
    LEAVE,
    LEAVE_STATIC,
    ConsumerHeartbeat,
    ConsumerHeartbeatAnswer,
    Error,
    TopicIdPartition,
)
from kafka_assignors.coordinator._simulator.target_assignment import Assignor, TargetTopic

_Sent = tuple[frozenset[str] | None, frozenset[TopicIdPartition] | None]
"""What a member sent last of its topics and partitions, so that it does not send it again."""


class ConsumerMember(SimulatedConsumer):
    """A simulated consumer of KIP-848.

    Of its settings, the session timeout and the heartbeat interval do not count: they are the broker's.

    It calls its epoch its generation, as do its events.
    """

    def __init__(
        self,
        name: str,
        member_id: str,
        group: HostedConsumerGroup,
        clock: Clock,
        *,
        known_topics: Callable[[], Mapping[str, TargetTopic]],
        assignor: Assignor | None,
        rack: str | None,
        **options: Any,
    ) -> None:
        super().__init__(name, clock, **options)
        self.member_id = member_id
        self.rack = rack
        self.assignor = assignor
        self._group = group
        self._known_topics = known_topics
        self._names: dict[TopicIdPartition, TopicPartition] = {}
        self._assigned: frozenset[TopicIdPartition] | None = None
        self._has: frozenset[TopicIdPartition] | None = None
        self._sent_last: _Sent = None, None
        self._requests = 0
        self._in_flight = False
        self._at_once = False
        self._at_next_poll(self._join)

    # What is done to it

    def leave(self) -> None:
        """Close the consumer: a dynamic member leaves the group, a static one says that it will be back."""
        self._revoke(self.held)
        if self.generation != events.NO_GENERATION:
            self._send_leave()
        self._end(events.Closed(*self._now, reason="left"))

    def resume_polling(self) -> None:
        super().resume_polling()
        self._at_next_poll(self._join if self.generation == events.NO_GENERATION else self._reconcile)

    def subscribe(self, topics: Collection[str]) -> None:
        """Change the subscription; the next heartbeat says it."""
        self.stable = False
        super().subscribe(topics)

    # Heartbeats

    def _join(self) -> None:
        if self._paused_at is not None or self.generation != events.NO_GENERATION:
            return
        self.stable = False
        self._sent_last = None, None
        self._assigned = self._has = None
        self._report(events.Joining(*self._now, member_id=self.member_id, topics=tuple(sorted(self.topics))))
        self.generation = JOIN
        self._send_heartbeat()

    def _send_heartbeat(self) -> None:
        """Say what is new; the next heartbeat is due after an interval, or at once after the answer."""
        if self._beat is not None:
            self._beat.cancel()
        if self._in_flight:
            self._at_once = True
            return
        self._in_flight, self._at_once = True, False
        joins = self.generation == JOIN
        has = frozenset[TopicIdPartition]() if joins else self._has
        sent_topics, sent_owned = self._sent_last
        request = ConsumerHeartbeat(
            member_id=self.member_id,
            epoch=self.generation,
            instance_id=self.instance_id,
            rack=self.rack if joins else None,
            rebalance_timeout_ms=self.settings.max_poll_interval_ms if joins else None,
            topics=self.topics if joins or self.topics != sent_topics else None,
            assignor=self.assignor if joins else None,
            owned=has if joins or has != sent_owned else None,
        )
        self._sent_last = self.topics, has
        self._requests += 1
        number = self._requests

        def hear(answer: ConsumerHeartbeatAnswer) -> None:
            if number == self._requests:  # it has not left meanwhile
                self._in_flight = False
                self._hear(answer)

        self._ask(lambda reply: reply(self._group.heartbeat(request)), hear)
        self._beat = self._after(self._group.settings.heartbeat_interval_ms, self._send_heartbeat)

    def _hear(self, answer: ConsumerHeartbeatAnswer) -> None:
        if answer.error:
            self._failed(answer.error)
            return
        new_epoch, self.generation = answer.epoch != self.generation, answer.epoch
        if answer.assignment is not None:
            self._assigned = answer.assignment
            self._learn_names(answer.assignment - self._names.keys())
        if new_epoch or answer.assignment is not None:
            self._report(
                events.AssignmentReceived(
                    *self._now,
                    generation=self.generation,
                    partitions=frozenset(self._names[partition] for partition in self._assigned or ()),
                    member_id=self.member_id,
                )
            )
        if self._assigned != self._has:
            self.stable = False
            if self._paused_at is None:
                self._at_next_poll(self._reconcile)
        else:
            self.stable = self._sent_last == (self.topics, self._has)
        if self._at_once:
            self._send_heartbeat()

    def _reconcile(self) -> None:
        """Get from what it has to what it was told to have, and say so."""
        if self._paused_at is not None or self._assigned is None or self._assigned == self._has:
            return
        wanted = frozenset(self._names[partition] for partition in self._assigned)
        self._revoke(self.held - wanted)
        added = wanted - self.held
        if added or self._has is None:
            self.held |= added
            self._report(events.Assigned(*self._now, generation=self.generation, partitions=added))
        self._has = self._assigned
        self._send_heartbeat()

    def _failed(self, error: str) -> None:
        """Lose everything and join again, under the same id; other errors are the end."""
        if error in {Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID}:
            self._forget_group()
            self._at_next_poll(self._join)
        else:
            self._report(events.Failed(*self._now, text=error))
            self._lose_all()
            self._end(events.Closed(*self._now, reason="errors"))

    def _polled_too_late(self) -> None:
        self._send_leave()
        self._forget_group()

    def _forget_group(self) -> None:
        self.stable = False
        self.generation = events.NO_GENERATION
        self._requests += 1
        self._in_flight = self._at_once = False
        if self._beat is not None:
            self._beat.cancel()
        self._lose_all()

    def _send_leave(self) -> None:
        epoch = LEAVE if self.instance_id is None else LEAVE_STATIC
        request = ConsumerHeartbeat(member_id=self.member_id, epoch=epoch, instance_id=self.instance_id)
        self._send(lambda: self._group.heartbeat(request))

    def _learn_names(self, partitions: Collection[TopicIdPartition]) -> None:
        if partitions:
            names = {topic.topic_id: name for name, topic in self._known_topics().items()}
            self._names |= {one: TopicPartition(names[one.topic_id], one.partition) for one in partitions}
