"""What simulated groups of both protocols have in common: members by name, time that passes, a timeline."""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from random import Random
from typing import Any, Generic, TypeVar

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._timelines.events import Event
from kafka_assignors._timelines.timeline import Timeline
from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.consumer import SimulatedConsumer
from kafka_assignors.coordinator._simulator.consumer_group import HostedConsumerGroup

_STEP_MS = 50
_PATIENCE_MS = 3_600_000

ConsumerT = TypeVar("ConsumerT", bound=SimulatedConsumer)


def next_name(name: str) -> str:
    """What a member's successor is called: "m1.2" after "m1"."""
    base, _, count = name.partition(".")
    return f"{base}.{int(count or 1) + 1}"


class NotStableError(KafkaAssignorsError, RuntimeError):
    """A simulated group did not come to rest."""


class SimulatedLife(ABC, Generic[ConsumerT]):
    """A group in virtual time; see `Simulation`."""

    group: HostedClassicGroup | HostedConsumerGroup

    def __init__(self, *, seed: int, watch: Callable[[Event], None] | None = None) -> None:
        self._random = Random(seed)
        self._clock = Clock()
        self._events: list[Event] = []
        self._watch = watch
        self.members: dict[str, ConsumerT] = {}

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self._clock.now / 1000

    @property
    def at_rest(self) -> bool:
        """Whether all members that run have their assignments, and the group is stable."""
        running = [member for member in self.members.values() if member.running]
        return self.is_stable and all(member.stable for member in running)

    @property
    def is_stable(self) -> bool:
        """Whether the coordinator has the members that run and no others, and its group is stable."""
        running = [member for member in self.members.values() if member.running]
        return (
            self.group.state == ("Stable" if running else "Empty")
            and {*self.group.member_ids} == {member.member_id for member in running}
            and all(member.generation == self.generation for member in running)
        )

    @property
    @abstractmethod
    def generation(self) -> int:
        """The group's generation; of a KIP-848 group its epoch."""

    @abstractmethod
    def join(self, *args: Any, **options: Any) -> ConsumerT:
        """Start a member."""

    @property
    def timeline(self) -> Timeline:
        """All that happened, as of a real group."""
        return Timeline(self._events, end=self.now)

    def restart(self, name: str, *, crash: bool = False, **changes: Any) -> ConsumerT:
        """End a member and start another in its place; its name is the old one's with a count."""
        old = self.members[name]
        if crash:
            old.crash()
        else:
            old.leave()
        settings = {"instance_id": old.instance_id, "topics": old.topics, "settings": old.settings}
        return self.join(next_name(name), **{**settings, **changes})

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        self._clock.run(self._clock.now + round(seconds * 1000))

    def run_until_stable(self, *, timeout: float = _PATIENCE_MS / 1000) -> dict[str, frozenset[Any]]:
        """Let time pass until all members that run have their assignments and the group is stable.

        Returns:
            The partitions of each member that runs.

        Raises:
            NotStableError: It does not come to that.
        """
        deadline = self._clock.now + round(timeout * 1000)
        while self._clock.now < deadline:
            if self.at_rest:
                return {member.name: member.held for member in self.members.values() if member.running}
            self._clock.run(self._clock.now + _STEP_MS)
        raise NotStableError(
            f"the group is {self.group.state} after {timeout:g} s: "
            + ", ".join(f"{m.name} {'stable' if m.stable else 'not stable'}" for m in self.members.values())
        )

    def _note(self, event: Event) -> None:
        self._events.append(event)
        if self._watch is not None:
            self._watch(event)

    def _new_name(self, name: str | None) -> str:
        return f"m{len(self.members) + 1}" if name is None else name

    def _new_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)
