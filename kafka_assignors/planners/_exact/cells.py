"""A group contracted: partitions that are alike are one cell, members that are alike are one node."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Self

import numpy as np

from kafka_assignors._model.arrays import BoolArray, IntArray, distinct, places, ranges, stable_order
from kafka_assignors._model.group import MAX_WEIGHT, Group
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors._model.topic_sets import TopicNumbers


@dataclass(kw_only=True, eq=False)
class Arcs:
    """Which node may get partitions of which cell; sorted by (cell, node).

    Where most arcs are there, a table (A, V) says so: then it is the quicker way to others. Else `listed` has
    the cell and the node of each (E,).
    """

    listed: tuple[IntArray, IntArray] | None = None
    table: BoolArray | None = None

    @cached_property
    def ends(self) -> tuple[IntArray, IntArray]:
        """(E,) the cell and the node of each arc; of a table not listed before somebody asks."""
        if self.table is None:
            assert self.listed is not None  # noqa: S101 - one of the two is there
            return self.listed
        cells = np.arange(len(self.table)).repeat(self.table.sum(axis=1))
        nodes = self.table.reshape(-1).nonzero()[0]
        nodes -= cells * self.table.shape[1]
        return cells, nodes

    @property
    def cells(self) -> IntArray:
        """(E,) the cell of each arc."""
        return self.ends[0]

    @property
    def nodes(self) -> IntArray:
        """(E,) the node of each arc."""
        return self.ends[1]

    @cached_property
    def size(self) -> int:
        """E, the number of arcs."""
        return self.cells.size if self.table is None else int(np.count_nonzero(self.table))

    def starts(self, cells: int) -> IntArray:
        """(A + 1,) the arcs of cell a, one of so many, are starts[a]..starts[a + 1] - 1."""
        if self.table is None:
            return self.cells.searchsorted(np.arange(cells + 1))
        starts: IntArray = np.zeros(cells + 1, dtype=np.int64)
        self.table.sum(axis=1).cumsum(out=starts[1:])
        return starts

    def at(self, places: IntArray) -> "Arcs":
        """Some of the arcs, by their places."""
        return Arcs(listed=(self.cells[places], self.nodes[places]))

    def only(self, chosen: BoolArray) -> "Arcs":
        return self if chosen.all() else Arcs(listed=(self.cells[chosen], self.nodes[chosen]))

    def inside(self, cell_block: IntArray, node_block: IntArray) -> "Arcs":
        """Those of the arcs whose ends are in one block."""
        if self.table is not None:
            return Arcs(table=self.table & (cell_block[:, np.newaxis] == node_block))
        return self.only(cell_block[self.cells] == node_block[self.nodes])

    def cells_of(self, nodes: BoolArray, cells: int) -> BoolArray:
        """(A,) which cells have an arc to one of some nodes."""
        if self.table is not None:
            having: BoolArray = np.logical_or.reduce(self.table & nodes, axis=1)
            return having
        found = np.zeros(cells, dtype=np.bool_)
        found[self.cells[nodes[self.nodes]]] = True
        return found

    def nodes_of(self, cells: BoolArray, nodes: int) -> BoolArray:
        """(V,) which nodes have an arc from one of some cells."""
        if self.table is not None:
            having: BoolArray = np.logical_or.reduce(self.table[cells], axis=0)
            return having
        found = np.zeros(nodes, dtype=np.bool_)
        found[self.nodes[cells[self.cells]]] = True
        return found

    def split_cells(self, parent: IntArray) -> "Arcs":
        """The arcs after each cell fell into parts, of which part i is of cell parent[i]."""
        if self.table is not None:
            return Arcs(table=self.table[parent])
        bounds = np.searchsorted(self.cells, np.arange(parent.max(initial=-1) + 2))
        arcs, part = ranges(bounds[parent], np.diff(bounds)[parent])
        return Arcs(listed=(part, self.nodes[arcs]))

    def split_nodes(self, parent: IntArray) -> "Arcs":
        """The same for nodes; the parents of the parts ascend."""
        if self.table is not None:
            return Arcs(table=np.take(self.table, parent, axis=1))
        bounds = np.searchsorted(parent, np.arange(parent.max(initial=-1) + 2))
        nodes, arcs = ranges(bounds[self.nodes], np.diff(bounds)[self.nodes])
        return Arcs(listed=(self.cells[arcs], nodes))


@dataclass(frozen=True, kw_only=True, eq=False)
class Contraction:
    """What is alike in a group.

    Attributes:
        group: The group.
        cell_of: (N,) the cell of each partition: topics with the same subscribers and replicas in the same
            racks of members.
        kind_of: (M,) the kind of each member: subscription and weight.
        arcs: From cells to kinds.
        rack_of: (M,) the number of each member's rack, 0 for none; None where racks do not matter.
        is_local: (A, racks) whether the partitions of a cell have a replica in a rack.
    """

    group: Group
    cell_of: IntArray
    kind_of: IntArray
    arcs: Arcs
    rack_of: IntArray | None = None
    is_local: BoolArray | None = None

    @classmethod
    def of(cls, group: Group, tick: Tick = go_on) -> Self:
        """Contract a group that has members and partitions; see `plan_exact` for the tick."""
        key = group.subscription_of * (MAX_WEIGHT + 1) + group.weights
        first, kind_of = distinct(key)
        cell_of_topic, arcs = _cells_of_topics(group.subscribed, group.subscription_of[first], tick)
        tick()
        cell_of = cell_of_topic[group.topic_of]
        local = group.local_racks
        if local is None:
            return cls(group=group, cell_of=cell_of, kind_of=kind_of, arcs=arcs)
        # The parts of a cell, numbered as their partitions come first.
        sets = len(local.sets)
        first, part_of = distinct(cell_of * sets + local.which, len(group.topics) * sets)
        tick()
        order = first.argsort()
        first = first[order]
        racks = {rack: number for number, rack in enumerate(sorted({*filter(None, group.members.racks)}), 1)}
        is_in = np.zeros((sets, len(racks) + 1), dtype=np.bool_)
        for number, replicas in enumerate(local.sets):
            is_in[number, [racks[rack] for rack in replicas]] = True
        return cls(
            group=group,
            cell_of=places(order, order.size)[part_of],
            kind_of=kind_of,
            arcs=arcs.split_cells(cell_of[first]),
            rack_of=np.array([racks[rack] if rack else 0 for rack in group.members.racks]),
            is_local=is_in[local.which[first]],
        )


def _cells_of_topics(
    subscribed: TopicNumbers, subscription_of: IntArray, tick: Tick
) -> tuple[IntArray, Arcs]:
    """(T,) the cell of each topic, one of all with the same subscribers; and the arcs from cells to kinds."""
    topics = subscribed.topics
    numbers: dict[bytes, int] = {}
    if subscribed.is_dense:
        # A table of who subscribes to what, in bits to compare rows, in bytes to list them: no sorting.
        table = np.ascontiguousarray(subscribed.table[subscription_of].T)
        tick()
        rows = np.packbits(table, axis=1)
        raw, width = rows.tobytes(), rows.shape[1]
        cell_of_topic = np.array(
            [
                numbers.setdefault(raw[start : start + width], len(numbers))
                for start in range(0, len(raw), width)
            ]
        )
        first, _ = distinct(cell_of_topic)
        tick()
        return cell_of_topic, Arcs(table=table[first])
    sizes = np.diff(subscribed.bounds)[subscription_of]
    entries, kind = ranges(subscribed.bounds[subscription_of], sizes)
    topic = subscribed.numbers[entries]
    tick()
    order = stable_order(topic, topics)
    tick()
    kind = kind[order]
    bounds = np.searchsorted(topic[order], np.arange(topics + 1)).tolist()
    kinds_of: list[IntArray] = []
    cell_of_topic = np.empty(topics, dtype=np.int64)
    for number, (start, stop) in enumerate(pairwise(bounds)):
        subscribers = kind[start:stop]
        cell = numbers.setdefault(subscribers.tobytes(), len(numbers))
        cell_of_topic[number] = cell
        if cell == len(kinds_of):
            kinds_of.append(subscribers)
    cells = np.repeat(np.arange(len(kinds_of)), [subscribers.size for subscribers in kinds_of])
    return cell_of_topic, Arcs(listed=(cells, np.concatenate(kinds_of)))
