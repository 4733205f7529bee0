"""Small random groups with a load, and the best plans for them by CP-SAT, which tries all."""

from collections.abc import Iterator
from dataclasses import replace
from random import Random
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from kafka_assignors._model.group import NOBODY, Group, IntArray
from kafka_assignors.planners._load import (
    HORIZON,
    IDLE,
    SATURATED,
    Load,
    work_times,
)
from tests.support.random_groups import random_case

SOLVED: Final = 14
"""Partitions of groups that the solver has done with in a second."""

_SCALE: Final = 10**5
"""The solver's whole numbers: this is the time that a plan is held to."""


def random_load(group: Group, rng: Random) -> Load:
    """Equal costs, a few hot partitions or any; little lag, much, or none; members alike or not."""
    n, m = group.size, len(group.members)
    kind = rng.choice(["equal", "hot", "zipf", "any"])
    arriving = [
        {
            "equal": 1.0,
            "hot": rng.choice([1, 1, 1, 1, 10]),
            "zipf": 1 / (1 + rng.randrange(30)),
            "any": rng.random(),
        }[kind]
        for _ in range(n)
    ]
    speeds = rng.choice([[1.0], [1.0, 0.3], [0.5, 1.0, 2.0]])
    share = rng.choice([0.0, 0.2, 0.5, 0.8, 1.2]) * m / max(sum(arriving), 1)
    lag = rng.choice([0.0, 0.1, 50.0, 5000.0])
    return Load(
        arriving=np.array(arriving, dtype=np.float64) * share,
        waiting=np.array([lag * rng.random() for _ in range(n)]),
        speed=np.array([rng.choice(speeds) for _ in range(m)]),
        stays=np.array([rng.random() < 0.1 for _ in range(n)], dtype=np.bool_) & (rng.random() < 0.3),
    )


def random_problems(seeds: range) -> Iterator[tuple[int, Group, Load]]:
    """Groups with members, partitions, and a load in which no partition counts as more than it costs."""
    for seed in seeds:
        group = random_case(seed).group
        if 0 < group.size <= SOLVED and group.members:
            load = random_load(group, Random(seed))
            if load.arriving.any() or load.waiting.any():
                least = IDLE * len(group.members) / group.size
                yield seed, group, replace(load, arriving=np.maximum(load.arriving, least))


class Solved:
    """The best plans of a group by a solver."""

    def __init__(self, group: Group, load: Load) -> None:
        self.group, self.load = group, load
        self.fixed = np.flatnonzero(load.stays & (group.owner != NOBODY)).tolist()

    def time(self, owner: IntArray) -> float:
        return float(work_times(owner, self.load).max())

    def best(self, owner: IntArray) -> float:
        """The least time of any plan, from one that there is: each is the best for the time of the last."""
        time = self.time(owner)
        while True:
            found = self.solve(time, moves=False)
            if found is None or self.time(found) >= time * (1 - 1e-3):
                return time
            time = self.time(found)

    def fewest(self, time: float) -> int:
        """The fewest moves of a plan of at most this time."""
        found = self.solve(time * 1.001, moves=True)
        assert found is not None
        prior = self.group.owner
        return int(((prior != NOBODY) & (prior != found)).sum())

    def solve(self, time: float, *, moves: bool) -> IntArray | None:
        """The plan of the least work, or of the fewest moves, whose members are done by then."""
        group, model = self.group, cp_model.CpModel()
        horizon = min(max(time, HORIZON), SATURATED)
        sizes = (self.load.waiting + horizon * self.load.arriving) / time * _SCALE
        has = {
            (p, m): model.new_bool_var("")
            for p, topic in enumerate(group.topic_of.tolist())
            for m in group.subscribers[topic]
        }
        for p in range(group.size):
            model.add_exactly_one(var for (q, _), var in has.items() if q == p)
        for p in self.fixed:
            model.add(has[p, int(group.owner[p])] == 1)
        share = model.new_int_var(0, _SCALE, "")
        for m, speed in enumerate(self.load.speed.tolist()):
            work = sum(int(sizes[p] / speed) * var for (p, q), var in has.items() if q == m)
            model.add(work <= share)
        moved = sum(var for (p, m), var in has.items() if group.owner[p] not in {NOBODY, m})
        model.minimize(moved if moves else share)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        solver.parameters.relative_gap_limit = 0 if moves else 1e-3
        if solver.solve(model) != cp_model.OPTIMAL:
            return None
        owner = np.full(group.size, NOBODY, dtype=np.int64)
        for (p, m), var in has.items():
            if solver.value(var):
                owner[p] = m
        return owner
