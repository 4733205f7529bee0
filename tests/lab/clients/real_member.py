"""A simulated consumer that runs its library's own coordinator code, in virtual time."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from kafka.structs import TopicPartition

from kafka_assignors._timelines.events import Assigned, AssignmentReceived, Joining, Led
from kafka_assignors.coordinator._simulator.classic_group import HostedClassicGroup
from kafka_assignors.coordinator._simulator.clock import Clock
from kafka_assignors.coordinator._simulator.simulation import Simulation
from tests.lab.clients.network import NetworkedConsumer


class RealMember(NetworkedConsumer):
    """A simulated consumer of the classic protocol, with the code of its library."""

    _coordinator: Any = None
    _subscription: Any = None

    def __init__(
        self,
        name: str,
        group: HostedClassicGroup,
        clock: Clock,
        *,
        partitions: Callable[[], Mapping[str, Collection[int]]],
        assignors: Sequence[Any],
        **options: Any,
    ) -> None:
        super().__init__(name, clock, **options)
        self._group = group
        self._loop: Any = self._make_loop()
        self._client: Any = self._make_client(
            name, group, clock, self._loop, partitions=partitions, latency_ms=self.settings.latency_ms
        )
        self._client.on_join = self._report_join
        self._client.on_plan = lambda: self._report(Led(*self._now, generation=self.generation))
        self.do(lambda: self._begin(assignors))

    _make_client: Callable[..., Any]

    @abstractmethod
    def _make_loop(self) -> Any:
        """The event loop of its process."""

    @abstractmethod
    def _begin(self, assignors: Sequence[Any]) -> None:
        """Make the coordinator, and subscribe."""

    def do(self, action: Callable[[], object]) -> None:
        self._loop.do(action)

    def cut(self) -> None:
        super().cut()
        self._client.cut()

    def _polled_too_late(self) -> None:
        """Its heartbeats notice it."""

    def subscribe(self, topics: Collection[str]) -> None:
        super().subscribe(topics)
        self.do(lambda: self._subscribe(topics))

    @abstractmethod
    def _subscribe(self, topics: Collection[str]) -> None:
        """Change the subscription of its library."""

    def look_at_topics(self) -> None:
        self.do(self._client.update_metadata)

    def lose_answers(self, count: int) -> None:
        self._client.losing = count

    def close(self) -> None:
        self.running = False
        self._loop.end()

    @abstractmethod
    def _note(self) -> None:
        """Note the member id and the generation that its coordinator has."""

    def _report_join(self, member_id: str, claimed: int) -> None:
        topics = tuple(sorted(self.topics))
        self._report(Joining(*self._now, member_id=member_id, topics=topics, claimed_generation=claimed))

    def received(self, given: frozenset[TopicPartition]) -> None:
        self._note()
        self._report(
            AssignmentReceived(
                *self._now, generation=self.generation, partitions=given, member_id=self.member_id
            )
        )

    def revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._note()
        self._revoke(self.held & frozenset(partitions))

    def lost(self) -> None:
        self._lose_all()

    def given(self, partitions: Collection[TopicPartition]) -> None:
        added = frozenset(partitions)
        self._note()
        self.held |= added
        self._report(Assigned(*self._now, generation=self.generation, partitions=added))


def close(group: Simulation) -> None:
    """End what a group's members have under way. Nothing can be done to the group after it."""
    for member in group.members.values():
        if isinstance(member, RealMember):
            member.close()
