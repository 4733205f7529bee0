"""Groups of simulated consumers, of the classic protocol and of KIP-848, to be disturbed and looked at."""

import itertools
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from random import Random
from typing import Any, Generic, TypeVar

from kafka_assignors._assignors import Assignor
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.garbage import no_garbage_collection
from kafka_assignors._timelines.events import Event
from kafka_assignors._timelines.timeline import Timeline
from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.consumer import ClassicConsumer, SimulatedConsumer
from kafka_assignors.coordinator._simulator.consumer_group import HostedConsumerGroup
from kafka_assignors.coordinator._simulator.consumer_member import ConsumerMember
from kafka_assignors.coordinator._simulator.member import SimulatedMember
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.target_assignment import Assignor as BrokersAssignor, TargetTopic

_STEP_MS = 50
_PATIENCE_MS = 3_600_000

ConsumerT = TypeVar("ConsumerT", bound=SimulatedConsumer)


def next_name(name: str) -> str:
    """What a member's successor is called: "m1.2" after "m1"."""
    base, _, count = name.rpartition(".")
    return f"{base}.{int(count) + 1}" if count.isdecimal() and base else f"{name}.2"


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
        return self.is_stable and all(member.stable for member in self.members.values() if member.running)

    @property
    def is_stable(self) -> bool:
        """Whether the coordinator has the members that run and no others, and its group is stable."""
        running = {member.member_id: member for member in self.members.values() if member.running}
        known = self.group.member_ids
        return (
            self.group.state == ("Stable" if running else "Empty")
            and len(known) == len(running)
            and all(member_id in known for member_id in running)
            and all(member.generation == self.generation for member in running.values())
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
        with no_garbage_collection():
            self._clock.run(self._clock.now + round(seconds * 1000))

    def run_until_stable(self, *, timeout: float = _PATIENCE_MS / 1000) -> dict[str, frozenset[Any]]:
        """Let time pass until all members that run have their assignments and the group is stable.

        Returns:
            The partitions of each member that runs.

        Raises:
            NotStableError: It does not come to that.
        """
        deadline = self._clock.now + round(timeout * 1000)
        with no_garbage_collection():
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
        names = (f"m{number}" for number in itertools.count(len(self.members) + 1))
        return next(one for one in names if one not in self.members) if name is None else name

    def _new_uuid(self) -> uuid.UUID:
        return uuid.UUID(int=self._random.getrandbits(128), version=4)


class Simulation(SimulatedLife[ClassicConsumer]):
    """A group of the classic protocol in virtual time.

    Args:
        topics: Topic -> how many partitions.
        assignors: Makes a member's assignors: classes, each called without arguments, the preferred first.
        seed: Decides member ids, and with them all that Kafka leaves to chance.
        broker: The broker's settings.
        member: The consumers' settings, unless others are given when they join.
        metadata_max_age_ms: How long it takes until a leader hears of changed topics.
        watch: Called with each event as it happens.
        new_id: Makes the unique part of each member id; drawn by `seed` by default. Sticky plans break ties
            by member ids, as Kafka's do: a real group's plans come out of a real group's ids.

    Attributes:
        group: The coordinator's side; `group.causes` says why each rebalance began.
        members: All members that ever were, by name.
    """

    group: HostedClassicGroup

    def __init__(
        self,
        topics: Mapping[str, int],
        assignors: Sequence[Callable[[], Assignor]],
        *,
        seed: int = 0,
        broker: BrokerSettings | None = None,
        member: MemberSettings | None = None,
        metadata_max_age_ms: int = 300_000,
        watch: Callable[[Event], None] | None = None,
        new_id: Callable[[], str] | None = None,
    ) -> None:
        super().__init__(seed=seed, watch=watch)
        self._topics = dict(topics)
        self._assignors = assignors
        self._settings = member or MemberSettings()
        self._metadata_max_age_ms = metadata_max_age_ms
        self.group = HostedClassicGroup(self._clock, new_id or (lambda: str(self._new_uuid())), broker)

    def join(
        self,
        name: str | None = None,
        *,
        topics: Collection[str] | None = None,
        assignors: Sequence[Callable[[], Assignor]] | None = None,
        instance_id: str | None = None,
        settings: MemberSettings | None = None,
        client: Callable[..., ClassicConsumer] = SimulatedMember,
    ) -> ClassicConsumer:
        """Start a member; see `SimulatedMember`.

        Args:
            name: Its name; one that is new by default.
            topics: What it subscribes to; all topics by default.
            assignors: Makes its assignors; the group's by default.
            instance_id: Makes it a static member.
            settings: Its settings; the group's by default.
            client: As which client it behaves.
        """
        name = self._new_name(name)
        member = client(
            name,
            self.group,
            self._clock,
            topics=self._topics if topics is None else topics,
            partitions=lambda: {topic: range(count) for topic, count in self._topics.items()},
            assignors=[make() for make in assignors or self._assignors],
            instance_id=instance_id,
            settings=settings or self._settings,
            report=self._note,
        )
        self.members[name] = member
        return member

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions, or a topic; the leader hears of it when its metadata is too old."""
        self._topics[topic] = partitions
        self._tell_leader()

    def delete(self, topic: str) -> None:
        """Delete a topic; the leader hears of it when its metadata is too old."""
        self._topics.pop(topic, None)
        self._tell_leader()

    def _tell_leader(self) -> None:
        def heard() -> None:
            for member in self.members.values():
                if member.running:
                    member.after(0, member.look_at_topics)  # once it is thawed

        self._clock.after(self._metadata_max_age_ms, heard)

    def move_coordinator(self, *, away: float = 1.0) -> None:
        """Let another broker become the coordinator; for so many seconds none answers."""
        self.group.move(round(away * 1000))

    @property
    def generation(self) -> int:
        """The group's generation."""
        return self.group.generation


class ConsumerGroupSimulation(SimulatedLife[ConsumerMember]):
    """A group in virtual time whose members have `group.protocol=consumer` (KIP-848).

    Its timeline calls epochs generations. Each member comes to an epoch by itself, so who owned what is to be
    read by "callback", the default, not by "generation".

    Args:
        topics: Topic -> how many partitions.
        assignor: The assignor that members ask for, "uniform" or "range"; None for the broker's default,
            which is uniform.
        seed: Decides member ids and topic ids, and with them all that Kafka leaves to chance.
        broker: The broker's settings.
        member: The consumers' settings, unless others are given when they join. Session timeout and heartbeat
            interval are the broker's.
        topic_ids: The ids of topics, for those that are known.

    Attributes:
        group: The coordinator's side; `group.causes` says why there was each new epoch.
        members: All members that ever were, by name.
    """

    group: HostedConsumerGroup

    def __init__(
        self,
        topics: Mapping[str, int],
        assignor: BrokersAssignor | None = None,
        *,
        seed: int = 0,
        broker: BrokerSettings | None = None,
        member: MemberSettings | None = None,
        topic_ids: Mapping[str, uuid.UUID] | None = None,
    ) -> None:
        super().__init__(seed=seed)
        known = topic_ids or {}
        self._topics = {
            name: TargetTopic(known[name] if name in known else self._new_uuid(), partitions)
            for name, partitions in topics.items()
        }
        self._assignor = assignor
        self._settings = member or MemberSettings()
        self.group = HostedConsumerGroup(self._clock, self._topics, broker)

    def join(
        self,
        name: str | None = None,
        *,
        topics: Collection[str] | None = None,
        assignor: BrokersAssignor | None = None,
        instance_id: str | None = None,
        rack: str | None = None,
        member_id: str | None = None,
        settings: MemberSettings | None = None,
    ) -> ConsumerMember:
        """Start a member; see `ConsumerMember`. It makes up its id if it is given none."""
        name = self._new_name(name)
        member = ConsumerMember(
            name,
            str(self._new_uuid()) if member_id is None else member_id,
            self.group,
            self._clock,
            topics=self._topics if topics is None else topics,
            known_topics=lambda: self._topics,
            assignor=assignor or self._assignor,
            rack=rack,
            instance_id=instance_id,
            settings=settings or self._settings,
            report=self._note,
        )
        self.members[name] = member
        return member

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions; the coordinator hears of it at once, and acts with the next heartbeat."""
        self._topics[topic] = self._topics[topic]._replace(partitions=partitions)
        self.group.change_topics(self._topics)

    @property
    def generation(self) -> int:
        """The group's epoch."""
        return self.group.epoch

    @property
    def is_stable(self) -> bool:
        """As of every group; and the coordinator has looked at topics that changed."""
        return not self.group.topics_changed and super().is_stable
