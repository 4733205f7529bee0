"""A group of simulated consumers, to be disturbed and looked at."""

from __future__ import annotations

import uuid
from random import Random
from typing import TYPE_CHECKING, Any

from kafka_assignors.coordinator.simulator.classic_group import BrokerSettings, ClassicGroup
from kafka_assignors.coordinator.simulator.clock import Clock
from kafka_assignors.coordinator.simulator.member import Member, MemberSettings
from kafka_assignors.timelines.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kafka_assignors.assignors import Assignor
    from kafka_assignors.timelines.events import Event

_STEP_MS = 50
_PATIENCE_MS = 3_600_000


class NotStableError(RuntimeError):
    """A simulated group did not come to rest."""


class Simulation:
    """A group in virtual time.

    Args:
        topics: Topic -> how many partitions.
        assignors: Makes a member's assignors: classes, each called without arguments, the preferred first.
        seed: Decides member ids, and with them whatever Kafka leaves to chance.
        broker: The broker's settings.
        member: The consumers' settings unless told otherwise when they join.
        metadata_max_age_ms: How long it takes until a leader hears of changed topics.

    Attributes:
        group: The coordinator's side; `group.causes` says why each rebalance began.
        members: All members that ever were, by name.
    """

    def __init__(
        self,
        topics: Mapping[str, int],
        assignors: Sequence[Callable[[], Assignor]],
        *,
        seed: int = 0,
        broker: BrokerSettings | None = None,
        member: MemberSettings | None = None,
        metadata_max_age_ms: int = 300_000,
    ) -> None:
        self._random = Random(seed)
        self._clock = Clock()
        self._topics = dict(topics)
        self._assignors = assignors
        self._settings = member or MemberSettings()
        self._metadata_max_age_ms = metadata_max_age_ms
        self._events: list[Event] = []
        self.group = ClassicGroup(self._clock, self._new_id, broker)
        self.members: dict[str, Member] = {}

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self._clock.now / 1000

    @property
    def timeline(self) -> Timeline:
        """All that happened, as of a real group."""
        return Timeline(self._events, end=self.now)

    def join(
        self,
        name: str | None = None,
        *,
        topics: Collection[str] | None = None,
        assignors: Sequence[Callable[[], Assignor]] | None = None,
        instance_id: str | None = None,
        settings: MemberSettings | None = None,
    ) -> Member:
        """Start a member; see `Member`."""
        name = f"m{len(self.members) + 1}" if name is None else name
        member = Member(
            name,
            self.group,
            self._clock,
            topics=self._topics if topics is None else topics,
            partitions=lambda: {topic: range(count) for topic, count in self._topics.items()},
            assignors=[make() for make in assignors or self._assignors],
            instance_id=instance_id,
            settings=settings or self._settings,
            report=self._events.append,
        )
        self.members[name] = member
        return member

    def restart(self, name: str, *, crash: bool = False, **changes: Any) -> Member:
        """End a member and start another in its place; its name is the old one's with a count."""
        old = self.members[name]
        old.crash() if crash else old.leave()
        base, _, count = name.partition(".")
        return self.join(
            f"{base}.{int(count or 1) + 1}",
            **{"instance_id": old.instance_id, "topics": old.topics, "settings": old.settings, **changes},
        )

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions; the leader hears of it when its metadata is too old."""
        self._topics[topic] = partitions

        def heard() -> None:
            for member in self.members.values():
                if member.running:
                    member.look_at_topics()

        self._clock.after(self._metadata_max_age_ms, heard)

    def move_coordinator(self, *, away: float = 1.0) -> None:
        """Let another broker become the coordinator; for so many seconds none answers."""
        self.group.move(round(away * 1000))

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
            running = [member for member in self.members.values() if member.running]
            state = "Stable" if running else "Empty"
            if (
                self.group.state == state
                and all(member.stable for member in running)
                and self._agree(running)
            ):
                return {member.name: member.held for member in running}
            self._clock.run(self._clock.now + _STEP_MS)
        raise NotStableError(
            f"the group is {self.group.state} after {timeout:g} s: "
            + ", ".join(f"{m.name} {'stable' if m.stable else 'not stable'}" for m in self.members.values())
        )

    def _agree(self, running: Sequence[Member]) -> bool:
        return {member.member_id for member in running} == {*self.group.member_ids} and all(
            member.generation == self.group.generation for member in running
        )

    def _new_id(self) -> str:
        return str(uuid.UUID(int=self._random.getrandbits(128), version=4))
