"""A KIP-848 group of simulated consumers, to be disturbed and looked at."""

from collections.abc import Collection, Mapping
from uuid import UUID

from kafka_assignors.coordinator._simulator.consumer_group import HostedConsumerGroup
from kafka_assignors.coordinator._simulator.consumer_member import ConsumerMember
from kafka_assignors.coordinator._simulator.life import SimulatedLife
from kafka_assignors.coordinator._simulator.settings import BrokerSettings, MemberSettings
from kafka_assignors.coordinator._simulator.target_assignment import Assignor, TargetTopic


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
        assignor: Assignor | None = None,
        *,
        seed: int = 0,
        broker: BrokerSettings | None = None,
        member: MemberSettings | None = None,
        topic_ids: Mapping[str, UUID] | None = None,
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
        assignor: Assignor | None = None,
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
