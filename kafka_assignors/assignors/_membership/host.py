"""The consumer that an assignor works for: what it may know of it, and ask of it."""

import contextlib
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

from kafka.structs import TopicPartition

from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors.assignors._sent import Sent

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
        """Let the consumer take an assignment that came between two polls, if by itself it does not.

        Args:
            reads_on: Whether it is to read on while it joins, if it is cooperative.
        """
        del reads_on  # most consumers do all of it

    def plans_with(self, cluster: Any) -> None:
        """Let the consumer know that it plans with what its client knows of topics at this moment.

        Most consumers remember that by themselves.

        Args:
            cluster: The client's metadata.
        """
        del cluster

    def show_members_first(self, look: Callable[[Sequence[Any]], Sent | None]) -> None:
        """Let a function see and change the group's members before this consumer decodes what they sent.

        Once for each consumer, whichever of its strategies the group chooses.

        Args:
            look: Called on the leader, with members whose `metadata` is still bytes. If it gives what they
                sent, the consumer may decode something smaller in their place; see `AllMembers`.
        """
        del look


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
