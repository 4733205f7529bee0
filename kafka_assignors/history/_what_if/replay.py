"""A group's history once more, with another assignor; docs/history.md says what is counted.

Each step of the course (`course`) is given to the assignor with what members had after the step before. If it
raises, members keep what they had, and the rest is left out. Of the first step nothing counts but a failure:
nobody knows what there was before.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import attrgetter
from statistics import fmean

import numpy as np

from kafka_assignors._common.escaping import get_logger
from kafka_assignors._common.times import moment
from kafka_assignors._groups.saving import ACTUAL, AS_IT_WAS, WhatIf
from kafka_assignors._model.arrays import NOBODY, IntArray
from kafka_assignors.history._what_if.assignors import LOAD_AWARE, Situation, kept, leader_of
from kafka_assignors.history._what_if.commits import Records
from kafka_assignors.history._what_if.course import CountedRebalance, Course, CourseStep

log = get_logger(__name__)


def row_of(
    course: Course,
    rebalances: Sequence[CountedRebalance],
    failed_before: int,
    *,
    assignor: str = ACTUAL,
    scenario: str = AS_IT_WAS,
    hottest: float | None = None,
    problem: str | None = None,
) -> WhatIf:
    """A replay in one row; the mean of imbalance is over rebalances after which there were members."""
    imbalances = [one.imbalance for one in rebalances if one.members]
    return WhatIf(
        group=course.group,
        since=moment(course.steps[0].began_us) if course.steps else None,
        assignor=assignor,
        scenario=scenario,
        rebalances=len(rebalances),
        moved=sum(one.moved for one in rebalances),
        imbalance=sum(imbalances) / max(1, len(imbalances)),
        worst_imbalance=max(imbalances, default=0),
        failed=failed_before + sum(one.failed for one in rebalances),
        avoided=tuple(map(moment, course.avoided)),
        hottest=hottest,
        problem=problem,
    )


def hottest_of(loads: Iterable[tuple[float, float]]) -> float | None:
    """How many times the mean member's records the most loaded ones had, all added up; None without any."""
    most, mean = map(sum, zip((0.0, 0.0), *loads, strict=True))
    return most / mean if mean else None


def loads_of(course: Course) -> Iterator[tuple[float, float]]:
    """From each rebalance to the end of the next, records of its most loaded member, and of the mean one."""
    ends = [*(one.ended_us for one in course.happened), course.commits.until_us]
    for one, (begin_us, end_us) in zip(course.happened, pairwise(ends), strict=True):
        records = course.commits.between(begin_us, end_us)
        if one.assigned:
            loads = [sum(records.get(each, 0.0) for each in partitions) for partitions in one.assigned]
            yield max(loads), fmean(loads)


def replay_course(course: Course, assignors: Sequence[str]) -> list["Player"]:
    """Replay a course with several assignors that `leader_of` knows."""
    players = [Player(name) for name in assignors]
    commits, has_begun = course.commits, False
    rebalances = [[*steps] for _, steps in groupby(course.steps, key=attrgetter("rebalance"))]
    ends = [*(steps[-1].ended_us for steps in rebalances), commits.until_us]
    for steps, (begin_us, end_us) in zip(rebalances, pairwise(ends), strict=True):
        for step in steps:
            rates = commits.rates(step.began_us) if LOAD_AWARE in assignors else {}
            situation = Situation.of(step, rates) if step.members else None
            for player in players:
                player.play(situation)
        for player in players:
            player.end_rebalance(step)
        has_begun |= step.rebalance != 0
        if commits and has_begun:
            records = commits.between(begin_us, end_us)
            for player in players:
                player.work(records)
    return players


class Player:
    """A replay on its way: who got each partition in the last step, and the rebalances that are over."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.situation: Situation | None = None
        self.owner: IntArray = np.empty(0, dtype=np.int64)
        self.rebalances: list[CountedRebalance] = []
        self.failed_before = 0
        self.loads: list[tuple[float, float]] = []  # as of `loads_of`
        self._leader = leader_of(name)
        self._before: tuple[Situation | None, IntArray] = (None, self.owner)  # the last rebalance left it so
        self._failed = False

    def play(self, situation: Situation | None) -> None:
        """The next step; no situation if nobody is left."""
        before, self.situation = self.situation, situation
        if situation is None:
            self._leader = leader_of(self.name)  # whoever comes now remembers nothing
            return
        had = np.full(situation.group.size, NOBODY)
        if before is not None:
            had = np.maximum(situation.owners_after(before, self.owner), NOBODY)
        try:
            self.owner = self._leader.assign(situation, had)
        except Exception as fault:  # noqa: BLE001 - any assignor may fail in any way
            log.info("%s failed in a replay: %r", self.name, fault)
            self._failed = True
            self.owner = kept(situation.group, had)
        self._failed |= bool((self.owner == NOBODY).any())

    def work(self, records: Records) -> None:
        """Members worked off so many records of each partition before the next rebalance."""
        if self.situation is not None:
            given, members = self.owner != NOBODY, len(self.situation.number_of)
            each = np.array([records.get(one, 0.0) for one in self.situation.place_of])
            loads = np.bincount(self.owner[given], each[given], members)
            self.loads.append((float(loads.max()), float(loads.mean())))

    def end_rebalance(self, step: CourseStep) -> None:
        """All steps of a rebalance were played, and this was the last."""
        (before, owner), self._before = self._before, (self.situation, self.owner)
        failed, self._failed = self._failed, False
        if step.rebalance == 0:
            self.failed_before += failed
            return
        moved, loads = 0, np.zeros(1, dtype=np.int64)
        if self.situation is not None:
            given = self.owner != NOBODY
            loads = np.bincount(self.owner[given], minlength=len(step.members))
            if before is not None:
                had = self.situation.owners_after(before, owner)
                moved = int(np.count_nonzero(given & (had != NOBODY) & (had != self.owner)))
        self.rebalances.append(
            CountedRebalance(
                ended_us=step.ended_us,
                members=len(step.members),
                moved=moved,
                imbalance=int(np.ptp(loads)),
                failed=failed,
            )
        )
