"""Arcs: a table of them and a list of them are the same arcs."""

from random import Random

import numpy as np
import pytest

from kafka_assignors._model.arrays import BoolArray
from kafka_assignors.planners._exact.cells import Arcs

CELLS, NODES = 7, 5


@pytest.fixture(params=range(20))
def table(request: pytest.FixtureRequest) -> BoolArray:
    """Who may get what, drawn by a seed; some cells and nodes have no arcs."""
    return np.random.default_rng(request.param).random((CELLS, NODES)) < Random(request.param).random()


def listed(table: BoolArray) -> Arcs:
    """The arcs of a table, one by one."""
    cells, nodes = table.nonzero()
    return Arcs(listed=(cells, nodes))


def test_ends_at_the_other_side_are_those_of_the_list(table: BoolArray) -> None:
    cells, nodes = np.arange(CELLS) % 3 == 0, np.arange(NODES) % 3 == 0
    for arcs in (Arcs(table=table), listed(table)):
        assert arcs.cells_of(nodes, CELLS).tolist() == table[:, nodes].any(axis=1).tolist()
        assert arcs.nodes_of(cells, NODES).tolist() == table[cells].any(axis=0).tolist()
