"""A group's history once more, with another assignor.

Each step of the course (`course`) is given to the assignor with what members had after the step before. What
comes of it are snapshots of the group, which are counted by the rules of what happened: *moved* by
`find_owner_moves`, time without an owner by `Span`. So

- all partitions that had an owner have none while an eager assignor rebalances, for as long as the rebalance
  really took from when all had joined;
- while a cooperative one does, or KIP-848, those of members that are gone have none, and those that go from a
  member to another. The latter have none for as long as such partitions really had none;
- partitions that the assignor leaves out have no owner until the end of the next rebalance;
- those of members that are away, and that the group does not miss, have none either (see `scenarios`).

A rebalance has *failed* if the assignor raised, or left partitions out. If it raised, members keep what they
had, and the rest is left out. So has a first step, of which nothing else counts: nobody knows what there was
before.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

import numpy as np

from kafka_assignors._common.escaping import get_logger
from kafka_assignors._common.times import moment
from kafka_assignors._groups.moved import find_owner_moves
from kafka_assignors._groups.rebalances import Span
from kafka_assignors._groups.saving import ACTUAL, AS_IT_WAS, WhatIf
from kafka_assignors._groups.snapshots import Snapshot, SnapshotMember
from kafka_assignors._model.arrays import NOBODY
from kafka_assignors.history._what_if.assignors import Situation, kept, leader_of
from kafka_assignors.history._what_if.course import CountedRebalance, Course

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kafka_assignors._model.arrays import IntArray
    from kafka_assignors.history._what_if.course import CourseStep

log = get_logger(__name__)

_EAGER: Final = "sticky"
_COOPERATIVE: Final = "cooperative-sticky"
"""The strategies as which replays count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """What happened, or a course replayed.

    Time without an owner after the last rebalance is in partition-seconds. With what failed before the first
    count records of the group that could not be read.
    """

    course: Course
    assignor: str
    scenario: str
    rebalances: tuple[CountedRebalance, ...]
    unowned_after: float = 0.0
    failed_before: int = 0

    @classmethod
    def of_what_happened(cls, course: Course, *, undecoded: int = 0) -> Replay:
        """What there is to compare with."""
        return cls(
            course=course,
            assignor=ACTUAL,
            scenario=AS_IT_WAS,
            rebalances=course.happened,
            failed_before=undecoded + (not course.began_well),
        )

    @property
    def row(self) -> WhatIf:
        """The replay in one row; the mean of imbalance is over rebalances after which there were members."""
        every = self.rebalances
        imbalances = [one.imbalance for one in every if one.members]
        return WhatIf(
            group=self.course.group,
            since=self.course.since,
            assignor=self.assignor,
            scenario=self.scenario,
            rebalances=len(every),
            moved=sum(one.moved for one in every),
            imbalance=sum(imbalances) / max(1, len(imbalances)),
            worst_imbalance=max(imbalances, default=0),
            unowned_seconds=self.unowned_after + sum(one.unowned_seconds for one in every),
            failed=self.failed_before + sum(one.failed for one in every),
            avoided=tuple(map(moment, self.course.avoided)),
        )


def replay_course(
    course: Course, assignors: Sequence[str], scenario: str = AS_IT_WAS, *, undecoded: int = 0
) -> list[Replay]:
    """Replay a course, after its scenario, with several assignors that `leader_of` knows."""
    players = [Player(course.group, name) for name in assignors]
    for _, steps in groupby(course.steps, key=lambda step: step.rebalance):
        for step in steps:
            situation = Situation.of(step) if step.members else None
            for player in players:
                player.play(step, situation)
        for player in players:
            player.end_rebalance()
    return [
        Replay(
            course=course,
            assignor=player.name,
            scenario=scenario,
            rebalances=tuple(player.rebalances),
            unowned_after=player.pass_time(course.until_us, course.away) / 1e6,
            failed_before=player.failed_before + undecoded,
        )
        for player in players
    ]


class Player:
    """A replay on its way: the group after the last step, and the rebalances that are over."""

    def __init__(self, group: str, name: str) -> None:
        self.name = name
        self.last = Snapshot(group=group, generation=0, time_us=0)
        self.rebalances: list[CountedRebalance] = []
        self.failed_before = 0
        self._leader = leader_of(name)
        self._strategy = _COOPERATIVE if self._leader.cooperative else _EAGER
        self._situation: Situation | None = None
        self._owner: IntArray = np.empty(0, dtype=np.int64)  # who got each partition of it
        self._span: Span | None = None
        self._failed = False
        self._left_out = 0
        self._idle_us = 0

    def play(self, step: CourseStep, situation: Situation | None) -> None:
        """The next step; no situation if nobody is left."""
        last = self.last
        self._idle_us = self.pass_time(step.ended_us, step.away)
        members, self._left_out = self._assigned(situation)
        time_us = step.assigned_us
        if not self._leader.cooperative:
            time_us = max(time_us, step.began_us + step.handed_us)  # no less than a cooperative assignor pays
        now = Snapshot(
            group=last.group,
            generation=0,
            time_us=time_us,
            state_time_us=step.began_us if step.began_us < time_us else None,
            strategy=self._strategy if members else None,
            members=members,
        )
        self._failed |= self._left_out > 0
        self.last = now if time_us == step.ended_us else replace(now, time_us=step.ended_us)
        if step.rebalance == 0:
            return
        if self._span is None:
            self._span = Span(before=last, began_us=step.began_us, first_generation=0, end=last)
        self._span.add_rejoining(last, now)
        if now.cooperative:
            self._span.add_unowned(_handed_over(last, now), step.handed_us)
        self._span.end = self.last

    def end_rebalance(self) -> None:
        """All steps of a rebalance were played."""
        span, failed = self._span, self._failed
        self._span, self._failed = None, False
        if span is None:
            self.failed_before += failed
            return
        counted = CountedRebalance.of(
            span,
            ended_us=self.last.time_us,
            left_out=self._left_out,
            failed=failed,
            unowned_us=self._idle_us,
        )
        self._idle_us = 0
        self.rebalances.append(counted)

    def pass_time(self, until_us: int, away: Iterable[tuple[str, int]]) -> int:
        """Partition-microseconds without an owner since the last rebalance, if nothing changes until then."""
        here = self.last.by_identity
        idle = self._left_out * max(0, until_us - self.last.time_us)
        return self._idle_us + idle + sum(len(here[who].assignment) * us for who, us in away if who in here)

    def _assigned(self, situation: Situation | None) -> tuple[tuple[SnapshotMember, ...], int]:
        """The members with what they get, and how many partitions are left out."""
        before, self._situation = self._situation, situation
        if situation is None:
            self._leader = leader_of(self.name)  # whoever comes now remembers nothing
            return (), 0
        nobody = np.full(situation.group.size, NOBODY)
        had = nobody if before is None else situation.owners_after(before, self._owner)
        try:
            owner = self._leader.assign(situation.group, had)
        except Exception as fault:  # noqa: BLE001 - any assignor may fail in any way
            log.info("%s failed in a replay: %r", self.name, fault)
            self._failed = True
            owner = kept(situation.group, had)
        self._owner = owner
        return situation.assigned(owner), int(np.count_nonzero(owner == NOBODY))


def _handed_over(last: Snapshot, now: Snapshot) -> set[tuple[str, int]]:
    """What goes from a member that is still there to another."""
    return {
        (one.topic, one.partition)
        for one in find_owner_moves(last, now)
        if one.source in now.by_identity and one.target is not None
    }
