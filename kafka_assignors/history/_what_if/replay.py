"""A group's history once more, with another assignor.

Each step of the course (`course`) is given to the assignor with what members had after the step before. Steps
of one rebalance are counted as one. The rule is also that of what happened (`ACTUAL`):

- *moved*: partitions that another member has after the rebalance than before it; those of members that are
  gone count.
- *imbalance*: the largest load less the smallest, among all members, with any subscriptions; 0 of nobody.
- *unowned*: partition-seconds without an owner, the sum of
  1. the rebalance's own time. It takes as long as it really took, with each assignor. An eager assignor pays
     it for all partitions that had an owner; a cooperative one, and KIP-848, for those that another member
     gets, or nobody.
  2. what is left out: partitions that are subscribed to and go to nobody, until the end of the next
     rebalance.
  3. absences that the group does not know of, for the partitions of the absent member (see `scenarios`).
- *failed*: rebalances in which the assignor raised, or left partitions out. If it raised, members keep what
  they had, and the rest is left out. A cooperative hand-over that in truth was overtaken by the next change
  is left out, too, but no failure.

The first step of a course is no rebalance, as nobody knows what there was before: the assignor gives members
what they begin with. All that counts of it is whether that failed. That the last member goes is a rebalance,
after which nobody has anything.

Not counted is what is the same for all: how long the group waited for joins, and that nobody is there.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from kafka_assignors._groups.saving import ACTUAL, WhatIf
from kafka_assignors._model.arrays import NOBODY, IntArray
from kafka_assignors.history._what_if.assignors import Situation, leader_of
from kafka_assignors.history._what_if.course import Course
from kafka_assignors.history._what_if.scenarios import AS_IT_WAS, Scenario

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka_assignors._groups.snapshots import Snapshot
    from kafka_assignors._groups.topics import TopicsSeen
    from kafka_assignors.history._what_if.course import CourseStep

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedRebalance:
    """What came of one rebalance.

    Attributes:
        ended_us: When it ended, in microseconds since 1970.
        members: How many members there were.
        moved: How many partitions changed their owner.
        imbalance: The largest load less the smallest.
        unowned_seconds: Partition-seconds without an owner, from the end of the rebalance before to its own.
        left_out: How many partitions went to nobody.
        failed: Whether the assignor raised, or left them out.
        failure: What the assignor raised; empty if it did not.
        owners: (N,) the number of the identity that has each partition of the course now, or `NOBODY`; None
            unless it was asked for.
    """

    ended_us: int
    members: int
    moved: int
    imbalance: int
    unowned_seconds: float
    left_out: int
    failed: bool
    failure: str
    owners: IntArray | None = None

    def continued(self, later: ReplayedRebalance) -> ReplayedRebalance:
        """The same with a later step of it, whose moves are counted from before the rebalance."""
        return replace(
            later,
            unowned_seconds=self.unowned_seconds + later.unowned_seconds,
            failed=self.failed or later.failed,
            failure=self.failure or later.failure,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """A course, replayed.

    Attributes:
        rebalances: One after the other.
        beginning: What members had when the history begins; None if it is empty, or could not be replayed.
        unowned_after: Partition-seconds without an owner after the last one.
        undecoded: Records of the group that could not be read; each counts as a failure.
    """

    group: str
    assignor: str
    scenario: str
    rebalances: tuple[ReplayedRebalance, ...]
    beginning: ReplayedRebalance | None = None
    unowned_after: float = 0.0
    undecoded: int = 0

    @property
    def row(self) -> WhatIf:
        """The replay in one row."""
        return WhatIf(
            group=self.group,
            assignor=self.assignor,
            scenario=self.scenario,
            rebalances=len(self.rebalances),
            moved=self.moved,
            imbalance=self.imbalance,
            worst_imbalance=self.worst_imbalance,
            unowned_seconds=self.unowned_seconds,
            failed=self.failed,
        )

    @property
    def moved(self) -> int:
        """How many partitions changed their owner."""
        return sum(one.moved for one in self.rebalances)

    @property
    def imbalance(self) -> float:
        """The mean of imbalance over the rebalances after which there were members; 0 if there are none."""
        found = [one.imbalance for one in self.rebalances if one.members]
        return sum(found) / max(1, len(found))

    @property
    def worst_imbalance(self) -> int:
        """The largest imbalance."""
        return max((one.imbalance for one in self.rebalances), default=0)

    @property
    def unowned_seconds(self) -> float:
        """Partition-seconds without an owner."""
        return sum(one.unowned_seconds for one in self.rebalances) + self.unowned_after

    @property
    def failed(self) -> int:
        """How often the assignor raised, or left partitions out; and how many records could not be read."""
        began = self.beginning is not None and self.beginning.failed
        return self.undecoded + began + sum(one.failed for one in self.rebalances)


def replay(
    snapshots: Iterable[Snapshot],
    assignor: str,
    *,
    topics: Mapping[str, int] | TopicsSeen | None = None,
    scenario: Scenario = AS_IT_WAS,
) -> Replay:
    """Replay a group's history with an assignor that `leader_of` knows, or `ACTUAL` for what happened.

    Raises:
        ValueError: There is no such assignor, or `ACTUAL` is asked for of what did not happen.
    """
    if assignor == ACTUAL and scenario != AS_IT_WAS:
        raise ValueError(
            f"what happened was {AS_IT_WAS.name!r}, not {scenario.name!r}: take another assignor"
        )
    course = scenario.apply(Course.of(snapshots, topics))
    return replay_course(course, [assignor], scenario.name)[0]


def replay_course(
    course: Course,
    assignors: Sequence[str],
    scenario: str = AS_IT_WAS.name,
    *,
    undecoded: int = 0,
    owners: bool = False,
) -> list[Replay]:
    """Replay a course, after its scenario, with several assignors; with `owners` each says who had what.

    Raises:
        ValueError: There is no such assignor.
    """
    players = [_Player(course, name, owners=owners) for name in assignors]
    for step in course.steps:
        situation = Situation.of(course, step) if step.members else None
        for player in players:
            player.play(step, situation)
    return [
        Replay(
            group=course.group,
            assignor=player.name,
            scenario=scenario,
            rebalances=tuple(player.rebalances),
            beginning=player.beginning,
            unowned_after=player.unowned_after(course),
            undecoded=undecoded,
        )
        for player in players
    ]


class _Player:
    """One replay on its way."""

    def __init__(self, course: Course, name: str, *, owners: bool) -> None:
        self.name = name
        self.beginning: ReplayedRebalance | None = None
        self.rebalances: list[ReplayedRebalance] = []
        self._tells_owners = owners
        self._leader = None if name == ACTUAL else leader_of(name)
        self._owners: IntArray = np.full(course.size, NOBODY, dtype=np.int64)
        self._left_out = 0
        self._ended = 0
        self._rebalance = 0
        self._before = self._owners  # who had what before the rebalance that is on
        self._waste = 0.0  # partition-seconds that count for the next rebalance

    def play(self, step: CourseStep, situation: Situation | None) -> None:
        """The next step; no situation if nobody is left."""
        before, waste = self._owners, self._waste + self.until(step.ended_us, step.away)
        goes_on = step.rebalance != 0 and step.rebalance == self._rebalance
        self._rebalance, self._waste, self._ended = step.rebalance, 0.0, step.ended_us
        if not goes_on:
            self._before = before
        found = self._play(step, situation, before, waste)
        if self.beginning is None:
            self.beginning = replace(found, unowned_seconds=0.0)
        elif step.rebalance == 0:
            self._waste = found.unowned_seconds
        elif goes_on and self.rebalances:
            self.rebalances[-1] = self.rebalances[-1].continued(found)
        else:
            self.rebalances.append(found)

    def _play(
        self, step: CourseStep, situation: Situation | None, before: IntArray, waste: float
    ) -> ReplayedRebalance:
        self._owners = np.full(before.size, NOBODY, dtype=np.int64)
        self._left_out = 0
        if situation is None:
            return ReplayedRebalance(
                ended_us=step.ended_us,
                members=0,
                moved=0,
                imbalance=0,
                unowned_seconds=waste,
                left_out=0,
                failed=False,
                failure="",
                owners=self._owners if self._tells_owners else None,
            )
        has, failure = self._assigned(step, situation, before)
        given = has != NOBODY
        after = np.where(given, situation.who[has], NOBODY)
        had = before[situation.at]
        owned = had != NOBODY
        stops = owned & (had != after) if self._cooperative(step) else owned
        loads = np.bincount(has[given], minlength=situation.who.size)
        self._owners[situation.at] = after
        if self._leader is None and step.owners is not None:
            # Also what members have of topics that they are not known to subscribe to.
            self._owners = step.owners.astype(np.int64)
        self._left_out = int(given.size - np.count_nonzero(given))
        to_hand_over = 0
        if self._left_out and self._leader is None and step.cooperative:
            to_hand_over = int(np.count_nonzero(~given & (situation.kept(before) != NOBODY)))
        had_one = (self._before != NOBODY) & (self._owners != NOBODY)
        return ReplayedRebalance(
            ended_us=step.ended_us,
            members=situation.who.size,
            moved=int(np.count_nonzero(had_one & (self._before != self._owners))),
            imbalance=int(loads.max() - loads.min()),
            unowned_seconds=waste + int(np.count_nonzero(stops)) * step.seconds,
            left_out=self._left_out,
            failed=bool(failure) or self._left_out > to_hand_over,
            failure=failure,
            owners=self._owners if self._tells_owners else None,
        )

    def unowned_after(self, course: Course) -> float:
        """Partition-seconds without an owner after the last rebalance."""
        return self._waste + self.until(course.until_us, course.away)

    def until(self, time_us: int, away: Iterable[tuple[int, float]]) -> float:
        """Partition-seconds without an owner since the end of the last step."""
        waste = self._left_out * max(0, time_us - self._ended) / 1e6
        return waste + sum(int(np.count_nonzero(self._owners == who)) * seconds for who, seconds in away)

    def _cooperative(self, step: CourseStep) -> bool:
        return step.cooperative if self._leader is None else self._leader.cooperative

    def _assigned(self, step: CourseStep, situation: Situation, before: IntArray) -> tuple[IntArray, str]:
        if self._leader is None:
            assert step.owners is not None  # noqa: S101 - for the type checker
            had = step.owners[situation.at]
            return np.where(had == NOBODY, NOBODY, situation.member_of[had]), ""
        try:
            return self._leader.assign(situation, before), ""
        except Exception as fault:  # noqa: BLE001 - any assignor may fail in any way
            log.info("%s failed in a replay: %r", self.name, fault)
            return situation.kept(before), f"{type(fault).__name__}: {fault}"
