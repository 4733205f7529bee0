"""Arrays: many numbers that are the same take the memory of one, and count as they are."""

import numpy as np

from kafka_assignors._model.arrays import added, all_same


def test_nothing_is_copied_where_0_is_added_to_many_numbers() -> None:
    numbers = np.arange(20_000)
    assert added(all_same(0, numbers.size), numbers) is numbers


def test_any_other_numbers_are_added() -> None:
    numbers = np.arange(20_000)
    assert (added(all_same(2, numbers.size), numbers) == numbers + 2).all()
    assert (added(numbers, numbers) == 2 * numbers).all()
    assert added(all_same(0, 3), np.arange(3)).tolist() == [0, 1, 2]
