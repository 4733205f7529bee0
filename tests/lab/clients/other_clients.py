"""Members as other clients have them, where they differ from kafka-python's.

By their sources: Java's consumer 3.9 (`AbstractCoordinator`, `ConsumerCoordinator`,
`AbstractStickyAssignor`) and librdkafka 2.15 (`rdkafka_cgrp.c`, `rdkafka_assignor.c`).
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment
from kafka.structs import TopicPartition

from kafka_assignors._assignors import CooperativeStickyAssignor, _messages as messages
from kafka_assignors._assignors._host import calling
from kafka_assignors._assignors._sent import Sent
from kafka_assignors._common.words import by_topic
from kafka_assignors._model.group import NOBODY, Group
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._timelines.events import Assigned, AssignmentReceived
from kafka_assignors._wire.user_data import encode_generation
from kafka_assignors.coordinator._simulator.consumer import SimulatedConsumer
from kafka_assignors.coordinator._simulator.exchange import Attempt
from kafka_assignors.coordinator._simulator.messages import Error, Joined, Synced
from kafka_assignors.planners._kip54 import plan_kip54
from tests.lab.clients.network import NetworkedMember


class _Alone(NetworkedMember):
    """A member whose joins no assignor completes: it does by itself, or nothing can be done."""

    def complete_joins(self, *, reads_on: bool) -> None:
        """Do nothing."""


class UnaidedMember(_Alone):
    """kafka-python's consumer in a release in which assignors cannot complete its joins.

    Attributes:
        unheard: What its application had when the client fell out of the group, and may still have. While it
            is rejoining, the client does not call on_partitions_lost.
    """

    unheard: frozenset[TopicPartition] = frozenset()

    def _reset_generation(self, member_id: str = "") -> None:
        self.unheard |= self.held
        super()._reset_generation(member_id)

    def _take(self, encoded: bytes) -> None:
        self.unheard = frozenset()
        super()._take(encoded)


class JavaMember(_Alone):
    """Java's consumer: what a join gave between two polls is kept, and the next poll applies it."""

    _unread: tuple[Attempt, Joined] | None = None
    _kept: bytes | None = None

    @property
    def needs_rejoin(self) -> bool:
        """Also for what was kept (`rejoinNeededOrPending`)."""
        return super().needs_rejoin or self._kept is not None or self._unread is not None

    def _go_on(self) -> None:
        if self._unread is not None:
            unread, self._unread = self._unread, None
            self._joined(*unread)
        elif self._kept is not None:
            self._apply()
        else:
            super()._go_on()

    def _ask_to_join(self, attempt: Attempt) -> None:
        self._stop_heartbeats()
        self._rejoin_needed = True
        super()._ask_to_join(attempt)

    def _joined(self, attempt: Attempt, answer: Joined) -> None:
        # Only a poll reads this answer: the heartbeat thread is off.
        if not self._awaiting:
            self._unread = attempt, answer
            self._look()
            return
        super()._joined(attempt, answer)
        if not answer.error and self._state == "REBALANCING":
            self._keep_alive()

    def _synced(self, attempt: Attempt, answer: Synced) -> None:
        if attempt.done or answer.error or self._state != "REBALANCING":
            super()._synced(attempt, answer)
            return
        attempt.done = True
        self._join = None
        self._state = "STABLE"
        self._rejoin_needed = False
        self._kept = answer.assignment
        if self._awaiting:
            self._apply()
        else:
            self._look()

    def _apply(self) -> None:
        kept, self._kept = self._kept, None
        self._stop_waiting()
        self._rejoining = False
        if kept is not None:
            self._take(kept)
        self._look()

    def _heard(self, error: str) -> None:
        if error == Error.REBALANCE_IN_PROGRESS and self._state == "REBALANCING":
            return
        super()._heard(error)

    def _reset_generation(self, member_id: str = "") -> None:
        self._rejoining = False  # so that the next poll calls onPartitionsLost
        if self._unread is not None:
            self._join = None
        self._kept = self._unread = None
        super()._reset_generation(member_id)


class LibrdkafkaMember(_Alone):
    """librdkafka's consumer: a thread of its own joins; the application hears of it when it polls next."""

    _to_hear: Callable[[], None] | None = None  # by the application, with its next poll
    _gave_up = False  # the group, until the application polls again

    @property
    def _serving(self) -> bool:
        return self._to_hear is not None

    @property
    def needs_rejoin(self) -> bool:
        """Not before the application has heard of the last rebalance."""
        return not self._serving and super().needs_rejoin

    def _look(self) -> None:
        needed = self.needs_rejoin
        self.stable = self._state == "STABLE" and not needed and not self._serving
        if needed and self._poll is None and not self._awaiting and not self._gave_up:
            self._poll = self._after(0, self._poll_now)

    def _poll_now(self) -> None:
        self._poll = None
        if self.needs_rejoin:
            self._awaiting = True
            self._go_on()

    def _ask_to_join(self, attempt: Attempt) -> None:
        self._rejoin_needed = True
        super()._ask_to_join(attempt)

    def pause_polling(self) -> None:
        """Let the application hang; joins continue until `max_poll_interval_ms` is over."""
        SimulatedConsumer.pause_polling(self)

    def resume_polling(self) -> None:
        self._gave_up = False
        super().resume_polling()

    def _polled_too_late(self) -> None:
        self._gave_up = True
        super()._polled_too_late()

    def _reset_generation(self, member_id: str = "") -> None:
        """Also let the application hear that all is lost before it joins again.

        Not if a join was answered UNKNOWN_MEMBER_ID: but the next is answered MEMBER_ID_REQUIRED, unless the
        member is static (`rd_kafka_cgrp_handle_JoinGroup`, `rd_kafka_cgrp_revoke_all_rejoin`).
        """
        if member_id and self.cooperative and self.assigned:
            self._at_poll(self._lose)
        super()._reset_generation(member_id)

    def _lose(self) -> None:
        self._lose_all()
        self.assigned = frozenset()

    def _serve(self, revoked: frozenset[TopicPartition], added: frozenset[TopicPartition]) -> None:
        """Let the application hear of an assignment with its next poll."""

        def hear() -> None:
            self._revoke(revoked & self.held)
            self.held |= added
            self._report(Assigned(*self._now, generation=self.generation, partitions=added))
            self._rejoin_needed |= bool(revoked)

        self._at_poll(hear)

    def _at_poll(self, hear: Callable[[], None]) -> None:
        """Let the application hear something with its next poll; before that nothing is joined.

        What it was to hear, and has not heard, counts no more.
        """
        waits, self._to_hear = self._serving, hear
        if waits:
            return

        def heard() -> None:
            if self._paused_at is not None:
                self._after(self.settings.poll_ms or 1, heard)
                return
            hear, self._to_hear = self._to_hear, None
            if hear is not None:
                hear()
            self._look()

        if self.settings.work_ms:
            every = self.settings.poll_ms + self.settings.work_ms
            self._after(every - (self._clock.now - self._began) % every, heard)
        else:
            self._after(0, heard)

    def _take(self, encoded: bytes) -> None:
        if not self._leads:
            self._led_with = None
        assignment = ConsumerProtocolAssignment.decode(encoded)
        given = frozenset(assignment.partitions())
        self._report(
            AssignmentReceived(
                *self._now, generation=self.generation, partitions=given, member_id=self.member_id
            )
        )
        before, self.assigned = self.assigned, given
        self._tell(assignment)
        if self.cooperative:
            self._serve(before - given, given - before)
        else:
            self._serve(frozenset(), given)


class JavaCooperativeSticky(AbstractPartitionAssignor):
    """Java's `CooperativeStickyAssignor`: what it says as a member, and whom it believes as leader.

    It says the generation that its consumer joined, whether or not it has its assignment.
    """

    name = "cooperative-sticky"

    def __init__(self) -> None:
        self._taken = NO_GENERATION

    def supported_protocols(self) -> list[RebalanceProtocol]:
        return [RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER]

    def metadata(self, topics: Collection[str]) -> Any:
        host = calling()
        assert host is not None
        return messages.make_subscription(
            topics,
            owned=by_topic(host.partitions) if host.cooperative else {},
            generation=self._stated(host.generation),
            rack=None,
            user_data=encode_generation(self._taken, 1),
        )

    def _stated(self, joined: int) -> int:
        return joined

    def on_assignment(self, assignment: Any, generation: int) -> None:
        del assignment
        self._taken = generation

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
        """Kafka's sticky plan, without what changes hands by the members' raw claims."""
        reader = CooperativeStickyAssignor()
        sent = Sent.by(members)
        decoded = reader.decode(sent.ids, sent.instance_ids, sent.subscriptions)
        group = Group.of(
            {topic: ids for topic in decoded.wanted if (ids := cluster.partitions_for_topic(topic))}, decoded
        )
        plan = plan_kip54(group)
        last: dict[int, int] = {}
        for partition, holder in group.holders.tolist():
            last[partition] = self._owner_of(group, last, partition, holder)
        made: dict[str, Mapping[str, list[int]]] = {}
        for number, name in enumerate(group.members.ids):
            mine: dict[str, list[int]] = defaultdict(list)
            for partition, owner in enumerate(plan.owner.tolist()):
                if owner == number and last.get(partition, owner) == owner:
                    topic, partition_id = group.name_of(partition)
                    mine[topic].append(partition_id)
            made[name] = mine
        return {name: ConsumerProtocolAssignment(1, sorted(mine.items()), b"") for name, mine in made.items()}

    def _owner_of(self, group: Group, last: Mapping[int, int], partition: int, holder: int) -> int:
        """Who is taken for the owner of a partition that somebody claims."""
        believed = int(group.owner[partition])
        if group.uniform:
            return believed if believed != NOBODY else _NEITHER
        return holder if partition not in last or believed != last[partition] else last[partition]


class LibrdkafkaCooperativeSticky(JavaCooperativeSticky):
    """librdkafka's: it says the generation of its last assignment; of several claimants it takes the last."""

    def _stated(self, joined: int) -> int:
        del joined
        return self._taken

    def _owner_of(self, group: Group, last: Mapping[int, int], partition: int, holder: int) -> int:
        del group, last, partition
        return holder


_NEITHER = -2
"""Stands for the owner of a partition that two members claim as of one generation: nobody gets it."""
