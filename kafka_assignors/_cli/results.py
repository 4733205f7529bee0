"""What a demo found out: plain data, and how it follows from a timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kafka import TopicPartition

from kafka_assignors import Group, Member
from kafka_assignors._common.plain import fields_of
from kafka_assignors._common.words import by_topic
from kafka_assignors.planners import plan_exact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka_assignors._timelines.ownership import Overlap
    from kafka_assignors._timelines.rebalances import Holdings, SeenRebalance


@dataclass(frozen=True, kw_only=True)
class DemoStep:
    """One thing that was done to the group, and what became of it.

    `seconds` are from there until the group was stable again, in so many generations (`rebalances`). `before`
    has those who are gone, too. `silence` is, for each partition that there was before, the longest time in
    seconds without consuming it. It is `shared` if the strategy gives partitions to several members
    (broadcast).
    """

    title: str
    seconds: float
    rebalances: tuple[SeenRebalance, ...]
    before: Holdings
    after: Holdings
    silence: Mapping[TopicPartition, float]
    shared: bool

    @property
    def moved(self) -> dict[TopicPartition, tuple[str, str]]:
        """The partitions taken from a member that is still there: who had and who has them."""
        if self.shared:
            return {}
        owner = {tp: member for member, partitions in self.after.items() for tp in partitions}
        return {
            tp: (member, owner.get(tp, "nobody"))
            for member, partitions in self.before.items()
            if member in self.after
            for tp in sorted(partitions - self.after[member])
        }

    @property
    def least_moves(self) -> int:
        """How many must move at the least for balanced loads: all members subscribe to all topics here."""
        if self.shared:
            return 0
        partitions = frozenset[TopicPartition]().union(*self.after.values())
        topics = by_topic(partitions)
        members = [
            Member(member_id=name, topics=frozenset(topics), claims=by_topic(self.before.get(name, ())))
            for name in self.after
        ]
        return plan_exact(Group.of(topics, members)).moves

    def to_json(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "seconds": self.seconds,
            "generations": [
                {"generation": rebalance.generation, "leader": rebalance.leader}
                for rebalance in self.rebalances
            ],
            "assignment": {member: by_topic(partitions) for member, partitions in self.after.items()},
            "moved": [
                {"topic": tp.topic, "partition": tp.partition, "from": source, "to": target}
                for tp, (source, target) in self.moved.items()
            ],
            "least_moves": self.least_moves,
            "not_consumed_seconds": {
                f"{tp.topic}-{tp.partition}": seconds for tp, seconds in sorted(self.silence.items())
            },
        }


@dataclass(frozen=True, kw_only=True)
class DemoRun:
    """All of one strategy.

    `produced` are messages that the broker acknowledged, `consumed` those of them that some member reported.
    `duplicates` are deliveries on top of each message's first. Where two members had one partition at once,
    by their own callbacks, it is in `overlaps`. One generation gave those of `double_assigned` to two
    members.
    """

    assignor: str
    steps: tuple[DemoStep, ...]
    produced: int
    consumed: int
    duplicates: int
    overlaps: tuple[Overlap, ...]
    double_assigned: int

    @property
    def shared(self) -> bool:
        """Whether several owners are what the strategy is for."""
        return any(step.shared for step in self.steps)

    @property
    def lost(self) -> int:
        """Messages that nobody consumed."""
        return self.produced - self.consumed

    @property
    def owned_twice(self) -> int:
        """How often a partition had two owners; 0 where that is the purpose."""
        return 0 if self.shared else len(self.overlaps) + self.double_assigned

    @property
    def ok(self) -> bool:
        """Whether no message was lost and no partition had two owners."""
        return not self.lost and not self.owned_twice

    @property
    def moves(self) -> int:
        return sum(len(step.moved) for step in self.steps)

    @property
    def least_moves(self) -> int:
        return sum(step.least_moves for step in self.steps)

    @property
    def longest_silence(self) -> float:
        """The longest time in seconds in which a partition was not consumed."""
        return max((seconds for step in self.steps for seconds in step.silence.values()), default=0.0)

    def to_json(self) -> dict[str, Any]:
        return {
            **fields_of(
                self, "ok", "lost", "owned_twice", "moves", "least_moves", without=("double_assigned",)
            ),
            "rebalances": sum(len(step.rebalances) for step in self.steps),
            "longest_not_consumed_seconds": self.longest_silence,
            "overlaps": [
                {
                    "partition": f"{one.partition.topic}:{one.partition.partition}",
                    "members": one.members,
                    "seconds": one.seconds,
                }
                for one in (() if self.shared else self.overlaps)
            ],
            "steps": self.steps,
        }
