"""Simulated consumers whose network fails: it is cut, or loses the coordinator's answers."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from kafka_assignors._timelines.events import CutOff, Reconnected
from kafka_assignors.coordinator._simulator.consumer import ClassicConsumer
from kafka_assignors.coordinator._simulator.exchange import RETRY_MS, Attempt, EndedExchange
from kafka_assignors.coordinator._simulator.member import SimulatedMember


class NetworkedConsumer(ClassicConsumer):
    """A consumer with a network. While it is `cut_off`, nothing passes between it and the coordinator."""

    cut_off = False

    def cut(self) -> None:
        """Let nothing pass; what is on its way is lost."""
        self.cut_off = True
        self._report(CutOff(*self._now))

    def reconnect(self) -> None:
        self.cut_off = False
        self._report(Reconnected(*self._now))

    @abstractmethod
    def lose_answers(self, count: int) -> None:
        """Let so many of the coordinator's next answers to joins and syncs get lost."""

    def _send(self, request: Callable[[], object]) -> None:
        if not self.cut_off:
            super()._send(request)

    def _ask(self, request: Callable[[Callable[[Any], None]], None], hear: Callable[[Any], None]) -> None:
        if not self.cut_off:
            super()._ask(request, lambda answer: None if self.cut_off else hear(answer))


class NetworkedMember(NetworkedConsumer, SimulatedMember):
    """kafka-python's consumer as it is simulated, with a network."""

    _losing = 0  # answers of the coordinator that will get lost
    _misses_coordinator = False  # it knows that it is cut off, and looks for the coordinator before it joins

    def lose_answers(self, count: int) -> None:
        self._losing = count

    def cut(self) -> None:
        """Let nothing pass; a join under way fails."""
        super().cut()
        if self._join is not None and not self._join.done:
            self._fail(self._join)

    def reconnect(self) -> None:
        self._misses_coordinator = False
        super().reconnect()

    def _fail(self, attempt: Attempt) -> None:
        self._misses_coordinator = True
        self._after(RETRY_MS, lambda: self._join_ended(attempt, "NETWORK"))

    def _request(
        self,
        attempt: Attempt,
        request: Callable[[Callable[[Any], None]], None],
        hear: Callable[[Attempt, Any], None],
        *,
        timeout_ms: int,
    ) -> None:
        if self.cut_off:
            self._fail(attempt)
            return
        is_lost, self._losing = self._losing > 0, max(self._losing - 1, 0)
        sent = (lambda _: request(lambda _: None)) if is_lost else request
        super()._request(attempt, sent, hear, timeout_ms=timeout_ms)

    def _go_on(self) -> None:
        if self._misses_coordinator and self.needs_rejoin and (self._join is None or self._join.done):
            self._join = Attempt()
            self._fail(self._join)
        else:
            super()._go_on()

    def _confirm(self, attempt: Attempt, late: EndedExchange) -> None:
        if self.cut_off:
            self._join_prepared(attempt)
        else:
            super()._confirm(attempt, late)
