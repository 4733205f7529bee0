"""The simulator of KIP-848 beside a real broker: the same life has the same epochs, targets and assignments.

The broker's side is read in its own log.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer

from integration_tests.support.offsets_log import SECONDS, read_log, topic_id
from kafka_assignors._wire.offsets_topic import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMetadata,
    ConsumerGroupTargetAssignmentMember,
    EpochMemberState,
)
from kafka_assignors.coordinator._simulator.consumer_simulation import ConsumerGroupSimulation
from kafka_assignors.coordinator._simulator.messages import TopicIdPartition
from kafka_assignors.coordinator._simulator.target_assignment import ASSIGNORS
from kafka_assignors.testing import Cluster, grow_topic

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from kafka_assignors.coordinator._simulator.target_assignment import Assignor
    from kafka_assignors.testing._plugin import TopicFactory

PARTITIONS = 40
GROWN = 47

LIFE: Sequence[tuple[str, str]] = (
    ("join", "a"),
    ("join", "b"),
    ("join static", "c"),
    ("join", "d"),
    ("leave", "b"),
    ("restart static", "c"),
    ("grow", ""),
    ("leave", "a"),
)
"""What happens to a group; each step once it is stable after the last."""


@dataclass(frozen=True)
class Stable:
    """A group that is stable."""

    epoch: int
    assigned: Mapping[str, Mapping[TopicIdPartition, int]]
    targets: Mapping[str, Sequence[tuple[UUID, Sequence[int]]]]

    def later(self, epochs: int) -> Stable:
        """The same, so many epochs later; epoch 0, which static members come back with, stays."""
        assigned = {
            member: {partition: epoch and epoch + epochs for partition, epoch in partitions.items()}
            for member, partitions in self.assigned.items()
        }
        return Stable(self.epoch + epochs, assigned, self.targets)


@dataclass
class RealLife:
    """Members of confluent-kafka in the test's own thread."""

    cluster: Cluster
    topic: str
    assignor: Assignor
    stack: ExitStack
    partitions: int = PARTITIONS
    consumers: dict[str, Consumer] = field(default_factory=dict)
    ids: dict[tuple[int, str], str] = field(default_factory=dict)

    @property
    def group_id(self) -> str:
        return f"{self.topic}-{self.assignor}"

    def live(self) -> list[Stable]:
        passed = []
        for number, (act, name) in enumerate(LIFE):
            if act in {"leave", "restart static"}:
                self.consumers.pop(name).close()
            if act == "grow":
                self.partitions = GROWN
                grow_topic(self.cluster, self.topic, GROWN)
            elif act != "leave":
                self.join(name, static="static" in act)
            passed.append(self.wait())
            self.ids |= {(number, each): consumer.memberid() for each, consumer in self.consumers.items()}
        return passed

    def join(self, name: str, *, static: bool) -> None:
        settings = {
            **self.cluster.access.librdkafka(),
            "group.id": self.group_id,
            "group.protocol": "consumer",
            "group.remote.assignor": self.assignor,
        }
        if static:
            settings["group.instance.id"] = f"instance-{name}"
        consumer = Consumer(settings)
        self.stack.callback(consumer.close)
        consumer.subscribe([self.topic])
        self.consumers[name] = consumer

    def wait(self) -> Stable:
        deadline = time.monotonic() + SECONDS
        while True:
            for _ in range(5):
                for consumer in self.consumers.values():
                    consumer.poll(0.05)
            stable = self.look()
            if stable is not None:
                return stable
            assert time.monotonic() < deadline

    def look(self) -> Stable | None:
        """What the broker has in its log, if by the members' word and by that all have come to rest."""
        told = {name: {part.partition for part in c.assignment()} for name, c in self.consumers.items()}
        if sum(map(len, told.values())) != self.partitions:
            return None
        log = read_log(self.cluster, self.group_id)

        def newest(kind: type[Any]) -> dict[Any, Any]:
            found = {getattr(one, "member_id", None): one.value for one in log if isinstance(one, kind)}
            return {member: value for member, value in found.items() if value is not None}

        names = {consumer.memberid(): name for name, consumer in self.consumers.items()}
        current, targets = (
            newest(ConsumerGroupCurrentMemberAssignment),
            newest(ConsumerGroupTargetAssignmentMember),
        )
        if current.keys() != names.keys():
            return None
        (group,) = newest(ConsumerGroupMetadata).values()
        assigned = {
            names[member]: {
                TopicIdPartition(part.topic_id, number): epoch
                for part in value.assigned_partitions
                for number, epoch in zip(part.partitions, part.assignment_epochs, strict=True)
            }
            for member, value in current.items()
        }
        at_rest = all(
            (value.member_epoch, value.state) == (group.epoch, EpochMemberState.STABLE)
            for value in current.values()
        )
        heard = told == {name: {part.partition for part in parts} for name, parts in assigned.items()}
        if not (at_rest and heard):
            return None
        return Stable(
            group.epoch,
            assigned,
            {
                names[member]: [(part.topic_id, part.partitions) for part in value.topic_partitions]
                for member, value in targets.items()
            },
        )


def simulated_life(real: RealLife, topic: UUID) -> list[Stable]:
    group = ConsumerGroupSimulation({real.topic: PARTITIONS}, real.assignor, topic_ids={real.topic: topic})
    passed = []
    for number, (act, name) in enumerate(LIFE):
        running = {m.name.partition(".")[0]: m for m in group.members.values() if m.running}
        if act in {"leave", "restart static"}:
            running[name].leave()
        if act == "grow":
            group.grow(real.topic, GROWN)
        elif act != "leave":
            group.join(
                f"{name}.{number}",
                member_id=real.ids[number, name],
                instance_id=f"instance-{name}" if "static" in act else None,
            )
        group.run_until_stable()
        names = {m.member_id: m.name.partition(".")[0] for m in group.members.values()}
        passed.append(
            Stable(
                group.group.epoch,
                {names[each]: member.assigned for each, member in group.group.members.items()},
                {names[each]: [*target.items()] for each, target in group.group.targets.items()},
            )
        )
    return passed


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_simulated_life_is_the_real_one(
    kafka_cluster: Cluster, topic_factory: TopicFactory, assignor: Assignor
) -> None:
    topic = topic_factory(PARTITIONS)
    with ExitStack() as stack:
        real = RealLife(kafka_cluster, topic, assignor, stack)
        lived = real.live()
    # A coordinator that hears of the topic only after the first heartbeat makes an epoch more.
    late = lived[0].epoch - 2
    assert late in {0, 1}
    for step, here, there in zip(
        LIFE, lived, simulated_life(real, topic_id(kafka_cluster, topic)), strict=True
    ):
        expected = there.later(late)
        different = {
            (name, part.partition): (here.assigned.get(name, {}).get(part), epoch)
            for name, parts in expected.assigned.items()
            for part, epoch in parts.items()
            if here.assigned.get(name, {}).get(part) != epoch
        }
        assert here == expected, f"{step}: in the log and simulated: {different}"
