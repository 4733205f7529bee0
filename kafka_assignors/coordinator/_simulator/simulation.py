"""A group of simulated consumers, to be disturbed and looked at."""

from collections.abc import Callable, Collection, Mapping, Sequence

from kafka_assignors._assignors import Assignor
from kafka_assignors._timelines.events import Event
from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
from kafka_assignors.coordinator._simulator.consumer import ClassicConsumer
from kafka_assignors.coordinator._simulator.life import NotStableError, SimulatedLife
from kafka_assignors.coordinator._simulator.member import SimulatedMember
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings

__all__ = ["NotStableError", "Simulation"]


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
