"""A member's side of the classic protocol, eager or cooperative, with a real assignor and real bytes.

It does what kafka-python's consumer does: a heartbeat every interval, from a thread of its own; everything
else when the application polls. An eager member lets go of all partitions before it joins; a cooperative one
of those that it lost when it gets an assignment, and then joins again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from kafka.coordinator.assignors.abstract import RebalanceProtocol
from kafka.structs import TopicPartition

from kafka_assignors.assignors.adapter import Claim
from kafka_assignors.coordinator.simulator.messages import Join, Sync
from kafka_assignors.leader import lead
from kafka_assignors.members import NO_GENERATION
from kafka_assignors.protocol.membership import by_topic, make_subscription
from kafka_assignors.protocol.offsets_topic import decode_assignment
from kafka_assignors.timelines.events import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.coordinator.simulator.classic_group import ClassicGroup
    from kafka_assignors.coordinator.simulator.clock import Clock, Timer
    from kafka_assignors.coordinator.simulator.messages import Joined, Synced

RETRY_MS: Final = 100
"""How long a member waits before it asks again after an error: `retry.backoff.ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSettings:
    """Settings of a consumer, in the clients' own defaults.

    Attributes:
        session_timeout_ms: How long it may send no heartbeat.
        heartbeat_interval_ms: How often it sends one.
        max_poll_interval_ms: How long it may not poll; also how long the others wait for it to join.
        poll_ms: How often the application polls.
        latency_ms: How long a request takes to the coordinator, and its answer back.
    """

    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3000
    max_poll_interval_ms: int = 300_000
    poll_ms: int = 100
    latency_ms: int = 1


class Member:
    """A simulated consumer.

    Args:
        name: Its name in the timeline.
        group: The coordinator's side.
        clock: The time.
        topics: What it subscribes to.
        partitions: Topic -> how many partitions it has now; asked whenever the member leads.
        assignors: Its assignors, the preferred first.
        instance_id: Makes it a static member.
        settings: Its consumer's settings.
        report: Gets its events.

    Attributes:
        name: Its name.
        member_id: The id that the coordinator gave it.
        generation: The generation that it is in; -1 if in none.
        held: The partitions that its application has.
        stable: Whether it has its assignment and nothing to ask for.
        running: Whether it has not ended.
        frozen: Whether it stands still.
    """

    def __init__(
        self,
        name: str,
        group: ClassicGroup,
        clock: Clock,
        *,
        topics: Collection[str],
        partitions: Callable[[], Mapping[str, Collection[int]]],
        assignors: Sequence[Assignor],
        instance_id: str | None,
        settings: MemberSettings,
        report: Callable[[Event], None],
    ) -> None:
        self.name = name
        self.member_id = ""
        self.generation = NO_GENERATION
        self.held: frozenset[TopicPartition] = frozenset()
        self.stable = False
        self.running = True
        self.instance_id = instance_id
        self.topics = frozenset(topics)
        self.settings = settings
        self._group = group
        self._clock = clock
        self._partitions = partitions
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self._report_to = report
        self._cooperative = all(
            RebalanceProtocol.COOPERATIVE in assignor.supported_protocols() for assignor in assignors
        )
        self._began = clock.now
        self._memory = Claim()
        self._strategy = ""
        self._leads = False
        self._led_with: Mapping[str, Collection[int]] | None = None
        self._asking = False
        self.frozen = False
        self._paused_at: int | None = None
        self._unheard: list[Callable[[], None]] = []
        self._poll: Timer | None = None
        self._beat: Timer | None = None
        self._attempt = 0
        self._report("started", instance_id=instance_id, client="simulated")
        self._join_at_next_poll()

    # What is done to it

    def leave(self) -> None:
        """Close the consumer: a dynamic member leaves the group, a static one only stops."""
        self._revoke(self.held)
        if self.instance_id is None and self.member_id:
            member_id = self.member_id
            self._send(lambda: self._group.leave(member_id))
        self._end("closed", reason="left")

    def crash(self) -> None:
        """End without a word."""
        self._end("crashed")

    def freeze(self) -> None:
        """Stand still: no heartbeats, no polls; answers are heard after `thaw`."""
        self.frozen = True
        self._report("frozen")

    def thaw(self) -> None:
        """Go on."""
        self.frozen = False
        self._report("thawed")
        unheard, self._unheard = self._unheard, []
        for hear in unheard:
            hear()

    def pause_polling(self) -> None:
        """Let the application hang; heartbeats go on until `max_poll_interval_ms` is over."""
        self._paused_at = self._clock.now
        self._report("paused")
        paused_at = self._paused_at
        self._clock.after(self.settings.max_poll_interval_ms, lambda: self._polled_too_late(paused_at))

    def resume_polling(self) -> None:
        """Let the application poll again."""
        self._paused_at = None
        self._report("resumed")
        if not self.stable:
            self._join_at_next_poll()

    def subscribe(self, topics: Collection[str]) -> None:
        """Change the subscription, and join again with it."""
        self.topics = frozenset(topics)
        self._report("subscribed", topics=sorted(topics))
        self._join_at_next_poll()

    def look_at_topics(self) -> None:
        """Get fresh metadata: a leader whose topics changed joins again."""
        if self._leads and self.stable and self._led_with != self._partitions():
            self._join_at_next_poll()

    # Joining

    def _join_at_next_poll(self) -> None:
        self.stable = False
        if self._poll is not None or self._asking or self._paused_at is not None:
            return
        every = self.settings.poll_ms
        since = (self._clock.now - self._began) % every
        self._poll = self._after(every - since if since else 0, self._poll_now)

    def _poll_now(self) -> None:
        self._poll = None
        if self._asking or self._paused_at is not None:
            return
        self._asking = True
        if not self._cooperative:
            self._revoke(self.held)
        self._ask_to_join()

    def _ask_to_join(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        protocols = {name: self._subscription(assignor) for name, assignor in self._assignors.items()}
        self._report(
            "metadata",
            member_id=self.member_id,
            topics=sorted(self.topics),
            claimed_generation=self._memory.generation,
        )
        request = Join(
            member_id=self.member_id,
            client_id=self.name,
            instance_id=self.instance_id,
            session_timeout_ms=self.settings.session_timeout_ms,
            rebalance_timeout_ms=self.settings.max_poll_interval_ms,
            protocols=protocols,
        )
        self._ask(lambda reply: self._group.join(request, reply), self._joined)

    def _subscription(self, assignor: Assignor) -> bytes:
        claim = Claim(self._memory.partitions, self._memory.generation, held=self._cooperative)
        claim = claim.within(self.topics)
        made = make_subscription(
            self.topics,
            owned=claim.partitions if claim.held else {},
            generation=claim.generation,
            rack=assignor.rack,
            user_data=assignor.tell_claim(claim),
        )
        encoded: bytes = made.encode()
        return encoded

    def _joined(self, answer: Joined) -> None:
        if answer.error == "MEMBER_ID_REQUIRED":
            self.member_id = answer.member_id
            self._ask_to_join()
        elif answer.error:
            self._failed(answer.error)
        else:
            self.member_id, self.generation = answer.member_id, answer.generation
            self._strategy = answer.strategy
            self._leads = answer.leader == answer.member_id
            assignments: Mapping[str, bytes] = {}
            if answer.skip_assignment:
                self._led_with = dict(self._partitions())
            elif self._leads:
                assignments = self._lead(answer.members)
            request = Sync(
                member_id=self.member_id,
                generation=self.generation,
                instance_id=self.instance_id,
                assignments=assignments,
            )
            self._ask(lambda reply: self._group.sync(request, reply), self._synced)
            self._keep_alive()

    def _lead(self, members: Sequence[tuple[str, str | None, bytes]]) -> dict[str, bytes]:
        self._led_with = dict(self._partitions())
        self._report("assign", generation=self.generation)
        return lead(self._led_with, members, self._assignors[self._strategy])

    def _synced(self, answer: Synced) -> None:
        if answer.error:
            self._failed(answer.error)
            return
        self._asking = False
        self.stable = True
        decoded = decode_assignment(answer.assignment)
        assigned = frozenset(
            TopicPartition(topic, partition)
            for topic, partitions in (decoded.assigned_partitions.items() if decoded is not None else ())
            for partition in partitions
        )
        self._report("assignment", generation=self.generation, partitions=assigned, member_id=self.member_id)
        lost = self.held - assigned
        added = assigned - self.held
        if self._cooperative:
            self._revoke(lost)
        self.held |= added
        self._report("assigned", generation=self.generation, partitions=added)
        self._memory = Claim(by_topic(self.held), self.generation)
        if self._cooperative and lost:
            self._join_at_next_poll()
        elif self._leads:
            self.look_at_topics()

    def _failed(self, error: str) -> None:
        """What a member does about an error of a join, a sync or a heartbeat."""
        self._asking = False
        self.stable = False
        if error in {"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION"}:
            if self.held:
                self._report("lost", partitions=self.held)
                self.held = frozenset()
            if error == "UNKNOWN_MEMBER_ID":
                self.member_id = ""
            self.generation = NO_GENERATION
            if self._cooperative:
                self._memory = Claim()
            self._after(RETRY_MS, self._join_at_next_poll)
        elif error == "REBALANCE_IN_PROGRESS":
            self._join_at_next_poll()
        elif error == "NOT_COORDINATOR":
            self._after(RETRY_MS, self._join_at_next_poll)
        else:
            self._report("error", text=error)
            self._end("closed", reason="errors")

    # Living

    def _keep_alive(self) -> None:
        if self._beat is not None:
            self._beat.cancel()
        self._beat = self._after(self.settings.heartbeat_interval_ms, self._send_heartbeat)

    def _send_heartbeat(self) -> None:
        member_id, generation = self.member_id, self.generation
        if generation == NO_GENERATION:
            return

        def sent(reply: Callable[[str], None]) -> None:
            reply(self._group.heartbeat(member_id, self.instance_id, generation))

        self._ask(sent, self._heard)
        self._keep_alive()

    def _heard(self, error: str) -> None:
        if self._asking:
            return
        if error == "REBALANCE_IN_PROGRESS":
            self._join_at_next_poll()
        elif error not in {"", "NOT_COORDINATOR"}:
            self._failed(error)

    def _polled_too_late(self, paused_at: int) -> None:
        if not self.running or self._paused_at != paused_at:
            return
        member_id = self.member_id
        self._send(lambda: self._group.leave(member_id))
        if self._beat is not None:
            self._beat.cancel()
        self._failed("UNKNOWN_MEMBER_ID")

    def _revoke(self, partitions: frozenset[TopicPartition]) -> None:
        if partitions:
            self.held -= partitions
            self._report("revoked", generation=self.generation, partitions=partitions)

    def _end(self, kind: str, **details: Any) -> None:
        self._report(kind, **details)
        self.running = self.stable = False
        self.held = frozenset()
        self._attempt += 1
        for timer in (self._poll, self._beat):
            if timer is not None:
                timer.cancel()
        self._report_to(Event(time=self._clock.now / 1000, member=self.name, kind="exited"))

    # The network

    def _send(self, request: Callable[[], object]) -> None:
        self._clock.after(self.settings.latency_ms, request)

    def _ask(self, request: Callable[[Callable[[Any], None]], None], hear: Callable[[Any], None]) -> None:
        """Send a request; its answer is heard unless the member has ended meanwhile, or when it is thawed."""
        attempt, latency = self._attempt, self.settings.latency_ms

        def arrived(answer: Any) -> None:
            self._clock.after(latency, lambda: self._deliver(attempt, lambda: hear(answer)))

        self._clock.after(latency, lambda: request(arrived))

    def _after(self, delay_ms: int, action: Callable[[], None]) -> Timer:
        attempt = self._attempt
        return self._clock.after(delay_ms, lambda: self._deliver(attempt, action))

    def _deliver(self, attempt: int, action: Callable[[], None]) -> None:
        if attempt != self._attempt:
            return
        if self.frozen:
            self._unheard.append(action)
        else:
            action()

    def _report(
        self,
        kind: str,
        *,
        generation: int = NO_GENERATION,
        partitions: frozenset[TopicPartition] = frozenset(),
        **details: Any,
    ) -> None:
        if self.running:
            self._report_to(
                Event(
                    time=self._clock.now / 1000,
                    member=self.name,
                    kind=kind,
                    generation=generation,
                    partitions=partitions,
                    details=details,
                )
            )
