"""The planner of load beside CP-SAT, which tries all plans, on small random groups."""

from typing import Final

import numpy as np
import pytest

from kafka_assignors._model.plan import check
from kafka_assignors.planners._load import HORIZON, least_time, plan_load
from tests.support.load_oracle import Solved, random_problems
from tests.support.scale import block, few

BLOCKS: Final = [block(number, 250) for number in range(4)]
FARTHEST: Final = 0.25
"""How far a plan is from the best at the most; what is not reached takes chains of three partitions."""
MEAN: Final = 0.01


@pytest.mark.parametrize("seeds", BLOCKS, ids=str)
def test_a_plan_is_near_the_best_and_the_bound_is_below_it(seeds: range) -> None:
    gaps = []
    for seed, group, load in random_problems(seeds):
        plan = plan_load(group, load, tolerance=0)
        check(plan, group)
        solved = Solved(group, load)
        best = solved.best(plan.owner)
        gaps.append(solved.time(plan.owner) / best - 1)
        assert gaps[-1] <= FARTHEST, seed
        assert least_time(group, load) <= best * 1.002, seed
    assert few() or np.mean(gaps) <= MEAN


@pytest.mark.parametrize("seeds", BLOCKS, ids=str)
def test_what_moves_is_worth_it_and_hardly_more_than_has_to(seeds: range) -> None:
    moves = fewest = 0
    for seed, group, load in random_problems(seeds):
        plan, staying = plan_load(group, load), plan_load(group, load, max_moves=0)
        check(plan, group)
        solved = Solved(group, load)
        time, before = solved.time(plan.owner), solved.time(staying.owner)
        if load.is_even(group):
            continue
        if plan.moves:  # beside one partition that no plan relieves the others are balanced
            assert time <= before * (1 if group.uniform else 0.9) * 1.003, seed
        else:
            assert time == before, seed
        assert time <= solved.best(plan.owner) * (1 + FARTHEST) + 0.1 * HORIZON, seed
        if not group.local_racks:  # they come before moves
            moves += plan.moves
            fewest += solved.fewest(time)
    assert few() or moves <= 1.2 * fewest
