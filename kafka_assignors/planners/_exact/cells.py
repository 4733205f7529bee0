"""A group contracted: partitions that are alike are one cell, members that are alike are one node."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from kafka_assignors._model.arrays import BoolArray, IntArray, distinct, ranges, stable_order
from kafka_assignors._model.group import MAX_WEIGHT, Group
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors._model.topic_sets import TopicNumbers


@dataclass(frozen=True, kw_only=True, eq=False)
class Arcs:
    """Which node may get partitions of which cell; sorted by (cell, node).

    Attributes:
        cells, nodes: (E,) the ends of each arc.
        table: (A, V) whether there is an arc, where most are there: then it is the quicker way to others.
    """

    cells: IntArray
    nodes: IntArray
    table: BoolArray | None = None

    @classmethod
    def of(cls, table: BoolArray) -> "Arcs":
        """The arcs in a table."""
        cells = np.arange(len(table)).repeat(table.sum(axis=1))
        nodes = table.reshape(-1).nonzero()[0]
        nodes -= cells * table.shape[1]
        return cls(cells=cells, nodes=nodes, table=table)

    @property
    def size(self) -> int:
        """E, the number of arcs."""
        return self.cells.size

    def only(self, chosen: BoolArray) -> "Arcs":
        """Some of the arcs."""
        return self if chosen.all() else Arcs(cells=self.cells[chosen], nodes=self.nodes[chosen])

    def split_cells(self, parent: IntArray) -> "Arcs":
        """The arcs after each cell fell into parts, of which part i is of cell parent[i]."""
        if self.table is not None:
            return Arcs.of(self.table[parent])
        bounds = np.searchsorted(self.cells, np.arange(parent.max(initial=-1) + 2))
        arcs, part = ranges(bounds[parent], np.diff(bounds)[parent])
        return Arcs(cells=part, nodes=self.nodes[arcs])

    def split_nodes(self, parent: IntArray) -> "Arcs":
        """The same for nodes; the parents of the parts ascend."""
        if self.table is not None:
            return Arcs.of(np.take(self.table, parent, axis=1))
        bounds = np.searchsorted(parent, np.arange(parent.max(initial=-1) + 2))
        nodes, arcs = ranges(bounds[self.nodes], np.diff(bounds)[self.nodes])
        return Arcs(cells=self.cells[arcs], nodes=nodes)


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
        sets = group.local_racks
        if not sets:
            return cls(group=group, cell_of=cell_of, kind_of=kind_of, arcs=arcs)
        numbers: dict[tuple[int, frozenset[str]], int] = {}
        keys = zip(cell_of.tolist(), sets, strict=True)
        cell_of = np.array([numbers.setdefault(key, len(numbers)) for key in keys])
        tick()
        racks = {rack: number for number, rack in enumerate(sorted({*filter(None, group.members.racks)}), 1)}
        is_local = np.zeros((len(numbers), len(racks) + 1), dtype=np.bool_)
        for number, (_, local) in enumerate(numbers):
            is_local[number, [racks[rack] for rack in local]] = True
        tick()
        return cls(
            group=group,
            cell_of=cell_of,
            kind_of=kind_of,
            arcs=arcs.split_cells(np.array([parent for parent, _ in numbers])),
            rack_of=np.array([racks[rack] if rack else 0 for rack in group.members.racks]),
            is_local=is_local,
        )


def _cells_of_topics(
    subscribed: TopicNumbers, subscription_of: IntArray, tick: Tick
) -> tuple[IntArray, Arcs]:
    """Make one cell of all topics with the same subscribers.

    Args:
        subscribed: The different subscriptions; each topic is in one.
        subscription_of: The subscription of each kind of member.
        tick: See `plan_exact`.

    Returns:
        (T,) the cell of each topic, and the arcs from cells to kinds.
    """
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
        return cell_of_topic, Arcs.of(table[first])
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
    return cell_of_topic, Arcs(cells=cells, nodes=np.concatenate(kinds_of))
