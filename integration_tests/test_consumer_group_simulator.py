"""The simulator of KIP-848 beside a real broker: the same life has the same epochs, targets and assignments.

The broker's side is read in its own log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from integration_tests.support.offsets_log import SECONDS, read_log, topic_id
from integration_tests.support.waiting import wait_for
from kafka_assignors._wire.offsets_topic import (
    ConsumerGroupCurrentMemberAssignment,
    ConsumerGroupMetadata,
    ConsumerGroupTargetAssignmentMember,
    EpochMemberState,
)
from kafka_assignors.coordinator._simulator.messages import TopicIdPartition
from kafka_assignors.coordinator._simulator.simulation import ConsumerGroupSimulation
from kafka_assignors.coordinator._simulator.target_assignment import ASSIGNORS
from kafka_assignors.testing import Cluster, ConsumerGroup, GroupFactory, Member, grow_topic

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


class RealLife:
    """A group of confluent-kafka's members on a broker."""

    def __init__(self, cluster: Cluster, topic: str, group: ConsumerGroup) -> None:
        self.topic = topic
        self.ids: dict[tuple[int, str], str] = {}
        self._cluster, self._group = cluster, group

    def live(self) -> list[Stable]:
        passed = []
        for number, (act, name) in enumerate(LIFE):
            if act == "leave":
                self._running[name].leave()
            elif act == "restart static":
                self._running[name].restart()
            elif act == "grow":
                grow_topic(self._cluster, self.topic, GROWN)
            else:
                self._group.join(name, instance_id=f"instance-{name}" if "static" in act else None)
            passed.append(self._settle())
            self.ids |= {(number, each): member.member_id for each, member in self._running.items()}
        return passed

    @property
    def _running(self) -> dict[str, Member]:
        members = self._group.members.values()
        return {member.name.partition(".")[0]: member for member in members if member.running}

    def _settle(self) -> Stable:
        self._group.wait_stable()
        found: list[Stable | None] = []

        def at_rest() -> bool:
            found[:] = [self._look()]
            return found != [None]

        wait_for("the log to say so", at_rest, SECONDS)
        (stable,) = found
        assert stable is not None
        return stable

    def _look(self) -> Stable | None:
        """What the broker has in its log, if by that and by the members' word all have come to rest."""
        log = read_log(self._cluster, self._group.group_id)

        def newest(kind: type[Any]) -> dict[Any, Any]:
            found = {getattr(one, "member_id", None): one.value for one in log if isinstance(one, kind)}
            return {member: value for member, value in found.items() if value is not None}

        names = {member.member_id: name for name, member in self._running.items()}
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
        told = {
            name: {part.partition for part in member.assignment} for name, member in self._running.items()
        }
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


def simulated_life(real: RealLife, assignor: Assignor, topic: UUID) -> list[Stable]:
    group = ConsumerGroupSimulation({real.topic: PARTITIONS}, assignor, topic_ids={real.topic: topic})
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
    kafka_cluster: Cluster, topic_factory: TopicFactory, consumer_group: GroupFactory, assignor: Assignor
) -> None:
    topic = topic_factory(PARTITIONS)
    settings = {"group_protocol": "consumer"}
    group = consumer_group(topic, [assignor], client="confluent-kafka", place="thread", settings=settings)
    real = RealLife(kafka_cluster, topic, group)
    lived = real.live()
    # A coordinator that hears of the topic only after the first heartbeat makes an epoch more.
    late = lived[0].epoch - 2
    assert late in {0, 1}
    simulated = simulated_life(real, assignor, topic_id(kafka_cluster, topic))
    for step, here, there in zip(LIFE, lived, simulated, strict=True):
        expected = there.later(late)
        different = {
            (name, part.partition): (here.assigned.get(name, {}).get(part), epoch)
            for name, parts in expected.assigned.items()
            for part, epoch in parts.items()
            if here.assigned.get(name, {}).get(part) != epoch
        }
        assert here == expected, f"{step}: in the log and simulated: {different}"
