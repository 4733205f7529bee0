"""The consumer that an assignor works for: what it may know of it, and ask of it."""

import contextlib
import sys
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Self

from kafka.structs import TopicPartition

from kafka_assignors._assignors._measures import Measures
from kafka_assignors._model.members import NO_GENERATION

Cancel = Callable[[], None]
"""Calls off what was to be done later."""


class Host(ABC):
    """What an assignor may know of its consumer, read at the moment of the call."""

    @property
    @abstractmethod
    def consumer(self) -> object:
        """The object that stands for the consumer; two hosts of one consumer have the same."""

    @property
    @abstractmethod
    def cooperative(self) -> bool:
        """Whether the consumer keeps its partitions through a rebalance (KIP-429); fixed when it is made."""

    @property
    @abstractmethod
    def generation(self) -> int:
        """The generation that the consumer joined last; negative when it is in none, or fell out of it."""

    @property
    @abstractmethod
    def strategy(self) -> str | None:
        """The strategy of that generation; None if it is in none."""

    @property
    @abstractmethod
    def partitions(self) -> frozenset[TopicPartition]:
        """The partitions that the consumer has at this moment."""

    @property
    def refused(self) -> int:
        """The generation whose assignment the consumer has refused; negative if it has refused none."""
        return NO_GENERATION

    @property
    @abstractmethod
    def heartbeat_interval(self) -> float:
        """The consumer's heartbeat interval, in seconds."""

    @property
    @abstractmethod
    def patience(self) -> float:
        """Seconds for which the consumer may be silent before it or its followers are given up."""

    @property
    def leading_since(self) -> float | None:
        """When it began to read what members sent (`time.monotonic()`); None if it does not lead just now."""
        return None

    @property
    def seconds(self) -> float:
        """Seconds by its clock (`time.monotonic()`)."""
        return time.monotonic()

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether the consumer was closed."""

    @property
    def namesakes(self) -> Collection[str]:
        """Names of strategies of which the consumer was given two and dropped one, as far as known."""
        return ()

    @property
    def namesakes_listed(self) -> Collection[str]:
        """The same by the list of strategies alone, while the consumer is being made."""
        return ()

    def weakly(self) -> Callable[[], "Host | None"]:
        """Gives this host for as long as its consumer is alive, without keeping it so."""
        consumer, of = weakref.ref(self.consumer), self.of

        def host() -> Host | None:
            alive = consumer()
            return None if alive is None else of(alive)

        return host

    @classmethod
    @abstractmethod
    def of(cls, consumer: Any) -> "Host":
        """The host of a consumer."""

    @abstractmethod
    def request_rejoin(self) -> None:
        """Let the consumer join the group again with its next poll."""

    @abstractmethod
    def call_later(self, seconds: float, action: Callable[["Host"], None]) -> Cancel:
        """Have something done after so many seconds, unless the consumer is gone by then."""

    def complete_joins(self, *, reads_on: bool) -> None:
        """Let the consumer do what by itself it does not: take an assignment that came between two polls."""
        del reads_on  # most consumers do all of it

    def measure(self, measures: Measures) -> None:
        """Let the consumer tell, from now on, which records its application gets, and when; once is enough.

        Consumers that cannot are not measured.
        """
        del measures

    def plans_with(self, cluster: Any) -> None:
        """Let the consumer know that it plans with what its client knows of topics at this moment.

        Most consumers remember that by themselves.
        """
        del cluster


LEADING_SINCE: Final = "_kafka_assignors_leading_since"
"""The attribute of a coordinator that says since when it leads its group in the present rebalance."""

_MAX_FRAMES: Final = 32
"""How far up the stack to look: a coordinator calls directly, subclasses and wrappers add a few frames."""


def calling_frames() -> Iterator[Any]:
    """The frames of the call stack, the nearest first."""
    frame: Any = sys._getframe(1)  # noqa: SLF001 - there is no public way to the caller
    for _ in range(_MAX_FRAMES):
        if frame is not None:
            yield frame
            frame = frame.f_back


@dataclass(frozen=True, slots=True)
class CoordinatorHost(Host):
    """A consumer that is known by its client's coordinator, of which each consumer has its own."""

    coordinator: Any

    @classmethod
    def on_the_stack(cls) -> Self | None:
        """The consumer whose coordinator is on the call stack; None where there is none.

        Clients hand an assignor nothing that says which consumer calls.
        """
        for frame in calling_frames():
            if (coordinator := cls._coordinator_of(frame.f_locals.get("self"))) is not None:
                return None if frame.f_code.co_name in cls._not_calling() else cls(coordinator)
        return None

    @classmethod
    @abstractmethod
    def _coordinator_of(cls, caller: Any) -> Any:
        """The coordinator that an object on the stack is, or belongs to; else None."""

    @classmethod
    def _not_calling(cls) -> Collection[str]:
        """The coordinator's functions that call the application: what that does, it does by hand."""
        return ()

    @classmethod
    def of(cls, consumer: Any) -> Self:
        return cls(consumer)

    @property
    def consumer(self) -> object:
        return self.coordinator

    @property
    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset(self.coordinator._subscription.assigned_partitions())  # noqa: SLF001

    @property
    def leading_since(self) -> float | None:
        since: float | None = vars(self.coordinator).get(LEADING_SINCE)
        return since

    def request_rejoin(self) -> None:
        self.coordinator.request_rejoin()

    def call_later(self, seconds: float, action: Callable[[Host], None]) -> Cancel:
        host = self.weakly()  # a timer must not keep the consumer alive

        def act() -> None:
            alive = host()
            if alive is not None:
                action(alive)

        return self._after(seconds, act)

    @abstractmethod
    def _after(self, seconds: float, act: Callable[[], None]) -> Cancel:
        """Have something done after so many seconds."""


CALLING: ContextVar[Host | None] = ContextVar("calling", default=None)
"""The consumer that has said that it calls."""


@contextlib.contextmanager
def calls(host: Host) -> Iterator[None]:
    """Let assignors that are called within know which consumer calls them."""
    token = CALLING.set(host)
    try:
        yield
    finally:
        CALLING.reset(token)
