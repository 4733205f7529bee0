"""Arrays: what looks at fewer of many numbers finds what a look at all of them finds."""

from bisect import bisect_left
from random import Random

import numpy as np

from kafka_assignors._model.arrays import added, all_same, find_in_runs


def test_numbers_are_found_in_runs_of_their_own_as_one_by_one() -> None:
    rng = Random(1)
    for _ in range(100):
        runs = [sorted(rng.sample(range(12), rng.randint(0, 12))) for _ in range(6)]
        bounds = np.cumsum([0, *map(len, runs)])
        chosen = [rng.randrange(6) for _ in range(10)]
        wanted = [rng.randrange(13) for _ in chosen]
        found = find_in_runs(
            np.array([number for run in runs for number in run], dtype=np.int64),
            bounds[chosen],
            bounds[np.array(chosen) + 1],
            np.array(wanted),
        )
        each = zip(chosen, wanted, strict=True)
        assert found.tolist() == [bounds[run] + bisect_left(runs[run], number) for run, number in each]


def test_nothing_is_copied_where_0_is_added_to_many_numbers() -> None:
    numbers = np.arange(20_000)
    assert added(all_same(0, numbers.size), numbers) is numbers


def test_any_other_numbers_are_added() -> None:
    numbers = np.arange(20_000)
    assert (added(all_same(2, numbers.size), numbers) == numbers + 2).all()
    assert (added(numbers, numbers) == 2 * numbers).all()
    assert added(all_same(0, 3), np.arange(3)).tolist() == [0, 1, 2]
