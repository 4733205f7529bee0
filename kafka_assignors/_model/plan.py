"""Who gets what: the answer to a `Group`."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._model.arrays import NOBODY, IntArray, stable_order
from kafka_assignors._model.group import Group
from kafka_assignors._model.units import Units


class InvalidPlanError(KafkaAssignorsError, RuntimeError):
    """A planner made a plan that must not reach the group: neither client nor broker would notice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What a plan was to reach, beside giving every partition away.

    Without options, in this order: the best balance, the most partitions on members in a rack of one of their
    replicas, the fewest moves. If racks do not matter, the second is left out. Either option allows a window
    of loads around the best balance instead; in it come the fewest moves, then racks, then balance.

    Attributes:
        max_skew: How many partitions more, or fewer, than in any best-balanced plan a member may have.
        max_moves: How many partitions may move. The window is then the narrowest in which so few suffice.
    """

    max_skew: int | None = None
    max_moves: int | None = None

    @property
    def skew(self) -> int:
        """`max_skew`, 0 if there is none; at most as many partitions as a topic may have."""
        return min(self.max_skew or 0, 2**31)


@dataclass(frozen=True, eq=False)
class Plan:
    """The partitions of each member of one group.

    Attributes:
        group: The group that it is for.
        partitions: Partitions grouped by member, ascending within a member.
        bounds: (M + 1,) member m has partitions[bounds[m]:bounds[m + 1]].
        goal: What it was to reach, for its certificate.
        units: Which partitions belong together: a unit goes to one member as a whole, or to nobody. None if
            each is by itself.
    """

    group: Group
    partitions: IntArray
    bounds: IntArray
    goal: Goal = Goal()
    units: Units | None = None

    @classmethod
    def from_owner(
        cls, group: Group, owner: IntArray, goal: Goal = Goal(), units: Units | None = None
    ) -> Self:
        """Make a plan from the member of each partition.

        Args:
            group: The group.
            owner: (N,) the number of the member that gets each partition, or `NOBODY`.
            goal: What the plan was to reach.
            units: Which partitions belong together.

        Raises:
            InvalidPlanError: There is not one entry for each partition, or one that is no member's.
        """
        if owner.shape != (group.size,):
            raise InvalidPlanError(f"owners of shape {owner.shape} for a group of {group.size} partitions")
        if owner.size and not NOBODY <= owner.min() <= owner.max() < len(group.members):
            raise InvalidPlanError(
                f"owners from {owner.min()} to {owner.max()} for a group of {len(group.members)} members"
            )
        place = owner + 1  # those with nobody come first
        order = stable_order(place, len(group.members) + 1)
        bounds = np.bincount(place, minlength=len(group.members) + 1).cumsum()
        return cls(group, order[bounds[0] :], bounds - bounds[0], goal, units)

    @cached_property
    def loads(self) -> IntArray:
        """(M,) the number of partitions of each member."""
        return self.bounds[1:] - self.bounds[:-1]

    @cached_property
    def receivers(self) -> IntArray:
        """The member that gets each entry of `partitions`."""
        return np.arange(len(self.group.members)).repeat(self.loads)

    @cached_property
    def topics(self) -> IntArray:
        """The topic of each entry of `partitions`."""
        return self.group.topic_of[self.partitions]

    @cached_property
    def kept_first(self) -> IntArray:
        """`partitions`, but in each topic of a member first those that it had, as Kafka's classes do."""
        new = self.group.owner[self.partitions] != self.receivers
        behind_new = new[:-1] > new[1:]
        if not behind_new.any():
            return self.partitions
        run = self.receivers * len(self.group.topics) + self.topics
        if not (behind_new & (run[:-1] == run[1:])).any():
            return self.partitions
        runs = len(self.group.members) * len(self.group.topics)
        return self.partitions[stable_order(2 * run + new, 2 * runs)]

    @cached_property
    def owner(self) -> IntArray:
        """(N,) the member of each partition, or `NOBODY`; the last one where several have it (broadcast)."""
        owner = np.full(self.group.size, NOBODY, dtype=np.int64)
        owner[self.partitions] = self.receivers
        return owner

    @cached_property
    def moved(self) -> NDArray[np.int64]:
        """The partitions that their valid prior owner does not keep, ascending."""
        prior = self.group.owner
        kept = np.zeros(self.group.size, dtype=np.bool_)
        kept[self.partitions[prior[self.partitions] == self.receivers]] = True
        return np.flatnonzero((prior != NOBODY) & ~kept)

    @property
    def moves(self) -> int:
        """How many partitions moved away from their valid prior owner."""
        return self.moved.size

    @cached_property
    def unassigned(self) -> IntArray:
        """The partitions that no member gets, ascending."""
        return np.flatnonzero(self.owner == NOBODY)

    def whole(self, partitions: IntArray) -> IntArray:
        """Partitions with all that belong together with them."""
        return partitions if self.units is None else self.units.whole(partitions)

    def of(self, member: int) -> dict[str, list[int]]:
        """The partition ids of the member with this number, by topic; topics and ids ascending."""
        mine = self.partitions[self.bounds[member] : self.bounds[member + 1]]
        topics = self.group.topic_of[mine]
        starts = np.flatnonzero(np.diff(topics, prepend=-1))
        runs = np.split(self.group.partition_ids[mine], starts[1:]) if mine.size else []
        return {
            self.group.topics[topic]: run.tolist() for topic, run in zip(topics[starts], runs, strict=True)
        }

    def assignments(self) -> Mapping[str, dict[str, list[int]]]:
        """The partition ids of every member by member id and topic; an entry for each member."""
        return {member: self.of(number) for number, member in enumerate(self.group.members.ids)}


def check(plan: Plan, group: Group, *, shared: bool = False, held_back: IntArray | None = None) -> None:
    """Make sure that a plan may be sent; raises InvalidPlanError with the first fault found.

    Every partition that exists stands in it, once, and goes to a subscriber; every member has an entry. If it
    is shared (broadcast), several members may have one partition, each at most once even so. What is
    `held_back` nobody gets in this round of a cooperative rebalance; in a round a standby may keep something.
    """
    if plan.group is not group:
        raise InvalidPlanError("the plan is for another group")
    bounds, partitions = plan.bounds, plan.partitions
    if (
        bounds.size != len(group.members) + 1
        or bounds[0] != 0
        or bounds[-1] != partitions.size
        or plan.loads.min(initial=0) < 0
    ):
        raise InvalidPlanError(f"the plan does not have one entry for each of {len(group.members)} members")
    if partitions.size and (partitions.min() < 0 or partitions.max() >= group.size):
        raise InvalidPlanError(f"the plan holds partitions that do not exist: there are {group.size}")
    members = plan.receivers
    key = members * group.size + partitions if shared else partitions
    twice = _first_repeated(key, shared=shared)
    if twice is not None:
        topic, partition = group.name_of(twice % group.size)
        raise InvalidPlanError(f"the plan assigns {topic}-{partition} more than once")
    subscribes = group.subscribes(members, plan.topics)
    if held_back is not None and not subscribes.all():
        subscribes = group.has_sent(members, plan.topics)
    if not subscribes.all():
        foreign = int(subscribes.argmin())
        topic, _ = group.name_of(int(partitions[foreign]))
        raise InvalidPlanError(
            f"the plan assigns {group.members.ids[int(members[foreign])]} partitions of {topic}, "
            "which it does not subscribe to"
        )
    _check_units(plan)
    given = np.zeros(group.size, dtype=np.bool_)
    given[partitions] = True
    if held_back is not None:
        given[held_back] = True
    if not given.all():
        topic, partition = group.name_of(int(given.argmin()))
        raise InvalidPlanError(f"the plan assigns {topic}-{partition} to no member")


def _check_units(plan: Plan) -> None:
    """Make sure that what belongs together goes to one member."""
    if plan.units is None:
        return
    first = plan.units.first[plan.units.of]
    together = plan.owner == plan.owner[first]
    if not together.all():
        apart = int(together.argmin())
        (topic, partition), (other, number) = plan.group.name_of(apart), plan.group.name_of(int(first[apart]))
        raise InvalidPlanError(f"the plan separates {topic}-{partition} from {other}-{number}")


def _first_repeated(keys: IntArray, *, shared: bool) -> int | None:
    """The lowest key that comes more than once. Keys of partitions alone are few enough to be counted."""
    if not shared:
        times = np.bincount(keys, minlength=1)
        return int((times > 1).argmax()) if times.max() > 1 else None
    given, times = np.unique(keys, return_counts=True)
    return int(given[times > 1][0]) if (times > 1).any() else None
