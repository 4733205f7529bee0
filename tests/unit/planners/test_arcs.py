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


def pairs(arcs: Arcs) -> list[tuple[int, int]]:
    """The ends of each arc."""
    return list(zip(arcs.cells.tolist(), arcs.nodes.tolist(), strict=True))


def test_arcs_of_a_table_are_the_listed_ones(table: BoolArray) -> None:
    assert pairs(Arcs(table=table)) == pairs(listed(table))
    assert Arcs(table=table).size == listed(table).size == table.sum()
    assert Arcs(table=table).starts(CELLS).tolist() == listed(table).starts(CELLS).tolist()


def test_parts_of_a_table_are_those_of_the_list(table: BoolArray) -> None:
    parts_of_cells, parts_of_nodes = np.array([0, 0, 1, 3, 6, 6]), np.array([0, 1, 1, 1, 2, 3, 4])
    blocks = np.arange(CELLS) % 2, np.arange(NODES) % 2
    for arcs in (Arcs(table=table), listed(table)):
        assert pairs(arcs.split_cells(parts_of_cells)) == pairs(listed(table[parts_of_cells]))
        assert pairs(arcs.split_nodes(parts_of_nodes)) == pairs(listed(table[:, parts_of_nodes]))
        assert pairs(arcs.inside(*blocks)) == [
            (cell, node) for cell, node in pairs(arcs) if (cell - node) % 2 == 0
        ]
        assert pairs(arcs.at(np.arange(0, arcs.size, 2))) == pairs(arcs)[::2]


def test_ends_at_the_other_side_are_those_of_the_list(table: BoolArray) -> None:
    cells, nodes = np.arange(CELLS) % 3 == 0, np.arange(NODES) % 3 == 0
    for arcs in (Arcs(table=table), listed(table)):
        assert arcs.cells_of(nodes, CELLS).tolist() == table[:, nodes].any(axis=1).tolist()
        assert arcs.nodes_of(cells, NODES).tolist() == table[cells].any(axis=0).tolist()
