"""What simulated consumers of both protocols have in common: the application, the network, the end."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Any

from kafka.structs import TopicPartition

from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._timelines import events
from kafka_assignors.coordinator._simulator.clock import Clock, Timer
from kafka_assignors.coordinator._simulator.settings import MemberSettings


class SimulatedConsumer(ABC):
    """A consumer in virtual time, static if it has an instance id. `report` gets its events.

    `held` are the partitions that its application has. It is `stable` when it has its assignment and nothing
    to ask for. Its `generation`, of KIP-848 its epoch, is -1 if it is in none.
    """

    generation: int = NO_GENERATION

    def __init__(
        self,
        name: str,
        clock: Clock,
        *,
        topics: Collection[str],
        instance_id: str | None,
        settings: MemberSettings,
        report: Callable[[events.Event], None],
    ) -> None:
        self.name = name
        self.member_id = ""
        self.held: frozenset[TopicPartition] = frozenset()
        self.stable = False
        self.running = True
        self.frozen = False
        self.instance_id = instance_id
        self.topics = frozenset(topics)
        self.settings = settings
        self._clock = clock
        self._report_to = report
        self._began = clock.now
        self._paused_at: int | None = None
        self._unheard: list[tuple[int, Callable[[], None]]] = []
        self._poll: Timer | None = None
        self._beat: Timer | None = None
        self._attempt = 0
        self._report(events.Started(*self._now, instance_id=instance_id, client="simulated"))

    def after(self, delay_ms: int, action: Callable[[], None]) -> Callable[[], None]:
        """Have something done after so many milliseconds, unless it has ended; what is given calls it off."""
        return self._after(delay_ms, action).cancel

    @abstractmethod
    def leave(self) -> None:
        """Close the consumer."""

    def crash(self) -> None:
        """End without a word."""
        self._end(events.Crashed(*self._now))

    def freeze(self) -> None:
        """Stand still: no heartbeats, no polls; answers are heard after `thaw`."""
        self.frozen = True
        self._report(events.Frozen(*self._now))

    def thaw(self) -> None:
        self.frozen = False
        self._report(events.Thawed(*self._now))
        unheard, self._unheard = self._unheard, []
        for attempt, hear in unheard:
            self._deliver(attempt, hear)  # what it hears first may end it

    @property
    def paused(self) -> bool:
        """Whether its application hangs."""
        return self._paused_at is not None

    def pause_polling(self) -> None:
        """Let the application hang; heartbeats continue until `max_poll_interval_ms` is over."""
        self._paused_at = self._clock.now
        self._report(events.Paused(*self._now))
        paused_at = self._paused_at
        self._clock.after(self.settings.max_poll_interval_ms, lambda: self._look_at_polls(paused_at))

    def resume_polling(self) -> None:
        self._paused_at = None
        self._report(events.Resumed(*self._now))

    def subscribe(self, topics: Collection[str]) -> None:
        self.topics = frozenset(topics)
        self._report(events.Subscribed(*self._now, topics=tuple(sorted(topics))))

    def _look_at_polls(self, paused_at: int) -> None:
        if self.running and self._paused_at == paused_at:
            self._polled_too_late()

    @abstractmethod
    def _polled_too_late(self) -> None:
        """Give up the group: `max_poll_interval_ms` is over."""

    def _at_next_poll(self, action: Callable[[], None]) -> None:
        """Have something done when the application polls next; only one thing at a time."""
        every = max(self.settings.poll_ms + self.settings.work_ms, 1)
        since = (self._clock.now - self._began) % every
        self._poll = self._after(every - since if since else 0, action)

    def _revoke(self, partitions: frozenset[TopicPartition]) -> None:
        if partitions:
            self.held -= partitions
            self._report(events.Revoked(*self._now, generation=self.generation, partitions=partitions))

    def _lose_all(self) -> None:
        if self.held:
            self._report(events.Lost(*self._now, partitions=self.held))
            self.held = frozenset()

    def _end(self, event: events.Closed | events.Crashed) -> None:
        self._report(event)
        self.running = self.stable = False
        self.held = frozenset()
        self._attempt += 1
        for timer in (self._poll, self._beat):
            if timer is not None:
                timer.cancel()
        self._report_to(events.Exited(*self._now))

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
            self._unheard.append((attempt, action))
        else:
            action()

    @property
    def _now(self) -> tuple[float, str]:
        """What each event begins with: the time in seconds, and the member."""
        return self._clock.now / 1000, self.name

    def _report(self, event: events.Event) -> None:
        if self.running:
            self._report_to(event)


class ClassicConsumer(SimulatedConsumer):
    """A consumer of the classic protocol, of whichever client."""

    def pause_polling(self) -> None:
        """Let the application hang; it joins no more."""
        super().pause_polling()
        if self._poll is not None:
            self._poll.cancel()
            self._poll = None

    def resume_polling(self) -> None:
        super().resume_polling()
        self._look()

    @abstractmethod
    def _look(self) -> None:
        """Note its state, and what its next poll is to do."""

    @abstractmethod
    def look_at_topics(self) -> None:
        """Get fresh metadata: a leader whose topics changed joins again."""
