"""How a plan could be changed: its residual graph, and the search for a change that makes it better.

Partitions of one *cell* have the same subscribers and lie in the same of the members' racks. So they are
alike but for who owned them. A plan is then a flow of counts from cells to members, and from members to a
sink. Any other plan differs from it by cycles in the residual graph. An arc cell -> member gives the member
one more of the cell, member -> cell takes one away. Arcs member -> sink and sink -> member raise and lower a
load. All costs are convex. So a plan is best if and only if no cycle has negative cost (Ahuja, Magnanti,
Orlin, "Network Flows", theorems 9.1 and 14.1). The search for one is Bellman's and Ford's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from kafka_assignors._model.group import NOBODY, Group, IntArray
from kafka_assignors._model.racks import racks_matter

Graded = Sequence[tuple[IntArray, int]]
"""Costs of all arcs by goals, the first goal first, each with the most that a simple cycle can sum up to."""

_NEVER = 1 << 60  # the cost of an arc that is not there, and the distance of a node that is not reached


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """The partitions of a group put together in cells; C cells, A pairs of a cell and one of its subscribers.

    `cell_of` (N,) is the cell of each partition. `cell` and `member` (A,) are those of each pair, ascending.
    `away` (A,) is whether the member is in none of the racks of the cell's replicas; False where racks do not
    matter (KIP-881).
    """

    group: Group
    cell_of: IntArray
    cell: IntArray
    member: IntArray
    away: NDArray[np.bool_]
    racks: bool

    @classmethod
    def of(cls, group: Group) -> Self:
        """Put the partitions of a group together in cells."""
        alike: dict[tuple[int, ...], int] = {}
        topic_class = [alike.setdefault(subscribers, len(alike)) for subscribers in group.subscribers]
        member_racks = {member.rack for member in group.members if member.rack is not None}
        racks = group.replica_racks is not None and racks_matter(member_racks, group.replica_racks.sets)
        kinds: dict[frozenset[str], int] = {}
        kind = np.zeros(group.size, dtype=np.int64)
        if racks and group.replica_racks is not None:
            # Few sets of racks are distinct: cut each of them down to the members' racks once.
            near = {replicas: replicas & member_racks for replicas in group.replica_racks.sets}
            kinds = {
                replicas: number for number, replicas in enumerate(sorted(set(near.values()), key=sorted))
            }
            kind = np.array([kinds[near[replicas]] for replicas in group.replica_racks], dtype=np.int64)
        key = np.array(topic_class, dtype=np.int64)[group.topic_of] * max(len(kinds), 1) + kind
        keys, cell_of = np.unique(key, return_inverse=True)

        subscribers = [np.array(members, dtype=np.int64) for members in alike]
        lists = [subscribers[number // max(len(kinds), 1)] for number in keys.tolist()]
        cell = np.repeat(np.arange(keys.size), [members.size for members in lists])
        member = np.concatenate([np.empty(0, dtype=np.int64), *lists])
        away = np.zeros(cell.size, dtype=np.bool_)
        if kinds:
            names: list[str | None] = [None, *sorted(member_racks)]
            place = {name: number for number, name in enumerate(names)}
            rack_of = np.array([place[m.rack] for m in group.members])
            local = np.array([[name in replicas for name in names] for replicas in kinds])
            away = ~local[(keys % len(kinds))[cell], rack_of[member]]
        return cls(group=group, cell_of=cell_of, cell=cell, member=member, away=away, racks=racks)

    @property
    def count(self) -> int:
        """C, the number of cells."""
        return int(self.cell[-1]) + 1 if self.cell.size else 0

    def pair_of(self, partitions: IntArray, members: IntArray) -> IntArray:
        """The pair of each partition's cell and the member beside it, who subscribes to its topic."""
        size = len(self.group.members)
        found: IntArray = np.searchsorted(
            self.cell * size + self.member, self.cell_of[partitions] * size + members
        )
        return found

    def counts(self, owner: IntArray) -> IntArray:
        """(A,) how many partitions of the cell each pair's member has; `owner` may hold `NOBODY`."""
        owned = np.flatnonzero(owner != NOBODY)
        return np.bincount(self.pair_of(owned, owner[owned]), minlength=self.cell.size)

    @cached_property
    def prior(self) -> IntArray:
        """(A,) how many partitions of the cell each pair's member owned by a valid claim."""
        return self.counts(self.group.owner)


class Residual:
    """The residual graph of a plan's counts; nodes are the cells, then the members, then the sink.

    Arcs are all cell -> member, all member -> cell, all member -> sink and all sink -> member, in this order.
    `given` (A,) is how many partitions of the cell each pair's member has.
    """

    def __init__(self, cells: Cells, given: IntArray) -> None:
        self.cells = cells
        self.given = given
        size = len(cells.group.members)
        self.sink = cells.count + size
        pair_cell, pair_member = cells.cell, cells.member + cells.count
        every, sink = np.arange(size) + cells.count, np.full(size, self.sink)
        tail = np.concatenate((pair_cell, pair_member, every, sink))
        head = np.concatenate((pair_member, pair_cell, sink, every))
        self._order = np.argsort(head, kind="stable")
        self._tail, self._head = tail[self._order], head[self._order]
        self._starts = np.flatnonzero(np.diff(self._head, prepend=-1))
        self._sizes = np.diff(self._starts, append=self._head.size)

    @property
    def loads(self) -> IntArray:
        """(M,) the load of each member."""
        members = len(self.cells.group.members)
        return np.bincount(self.cells.member, self.given, members).astype(np.int64)

    @property
    def arcs(self) -> int:
        return self._tail.size

    def moves(self) -> tuple[IntArray, int]:
        """Costs: 1 for a partition that its member did not own, as long as it could have one that it did."""
        back = self.given < self.cells.prior
        own = self.given <= self.cells.prior
        return self._of_pairs(np.where(back, 0, 1), np.where(own, 0, -1)), self.cells.count

    def misses(self) -> tuple[IntArray, int]:
        """Costs: 1 for a partition with a member in none of its racks."""
        miss = self.cells.away.astype(np.int64)
        return self._of_pairs(miss, -miss), self.cells.count

    def imbalance(self) -> tuple[IntArray, int]:
        """Costs: slot j of a member of weight w costs (2j - 1) / w, which sums up to load^2 / w.

        A simple cycle passes the sink once, and only compares the slot that it fills with the one that it
        empties. So ranks stand for the values. Quotients of different value differ by 10^-6 or more, as
        weights go to 1,000. Doubles distinguish them, and give equal ones one value, up to 10^9 partitions.
        """
        loads, weights = self.loads, self.cells.group.weights
        values = np.concatenate(((2 * loads + 1) / weights, (2 * loads - 1) / weights))
        distinct, ranks = np.unique(values, return_inverse=True)
        gain, lose = np.split(ranks, 2)
        return self._of_loads(gain, -lose), distinct.size

    def outside(self, lowest: IntArray, highest: IntArray) -> tuple[IntArray, int]:
        """Costs: 1 for each partition by which a load is below or above its range."""
        loads = self.loads
        gain = np.where(loads >= highest, 1, np.where(loads < lowest, -1, 0))
        lose = np.where(loads > highest, -1, np.where(loads <= lowest, 1, 0))
        return self._of_loads(gain, lose), 2

    def bounded(self, lowest: IntArray, highest: IntArray) -> IntArray:
        """Costs for one goal that close the arcs by which a load would leave its range; 0 for the others."""
        loads = self.loads
        return self._of_loads(np.where(loads < highest, 0, _NEVER), np.where(loads > lowest, 0, _NEVER))

    def _of_pairs(self, give: IntArray, take: IntArray) -> IntArray:
        rest = np.zeros(2 * len(self.cells.group.members), dtype=np.int64)
        return np.concatenate((give, take, rest)).astype(np.int64)

    def _of_loads(self, gain: IntArray, lose: IntArray) -> IntArray:
        rest = np.zeros(2 * self.cells.cell.size, dtype=np.int64)
        return np.concatenate((rest, gain, lose)).astype(np.int64)

    def negative_cycle(self, costs: Graded) -> tuple[list[int], int]:
        """The nodes of a cycle that makes the plan better, in order, none if there is none; and the rounds.

        Raises OverflowError if the group is too large for sums of costs in 64 bits.
        """
        cost = self._sorted(_one_number(costs))
        distance = np.zeros(self.sink + 1, dtype=np.int64)
        parent = np.full(self.sink + 1, self.sink + 1)
        rounds = 1
        while self._relax(cost, distance, parent):
            # Parents that go round are a negative cycle; as long as they do not, distances are those of
            # simple paths and cannot overflow.
            cycle = _circle(parent)
            if cycle:
                return cycle, rounds
            rounds += 1
        return [], rounds

    def cheapest_path(self, cost: IntArray, source: int, target: int) -> tuple[list[int], int, int]:
        """The nodes of a cheapest path, none if there is no path; its cost, and the rounds.

        The graph must have no negative cycle.
        """
        cost = self._sorted(cost)
        distance = np.full(self.sink + 1, _NEVER)
        distance[source] = 0
        parent = np.full(self.sink + 1, self.sink + 1)
        rounds = 1
        while self._relax(cost, distance, parent):
            rounds += 1
        if distance[target] >= _NEVER // 2:
            return [], 0, rounds
        path = [target]
        while path[-1] != source:
            path.append(int(parent[path[-1]]))
        return path[::-1], int(distance[target]), rounds

    def steps(self, nodes: Sequence[int]) -> list[tuple[int, int, int]]:
        """What a path or cycle does: (member that gives, cell, member that gets), in order.

        A cycle begins behind the sink if it passes it, else anywhere.
        """
        ring = list(nodes)
        if self.sink in ring:
            place = ring.index(self.sink)
            ring = ring[place + 1 :] + ring[:place]
        elif ring[0] < self.cells.count:
            ring = ring[1:] + ring[:1]
        first = self.cells.count
        ends = ring[2::2] + ([] if len(ring) % 2 else ring[:1])
        return [(a - first, cell, b - first) for a, cell, b in zip(ring[::2], ring[1::2], ends, strict=False)]

    def apply(self, steps: Sequence[tuple[int, int, int]]) -> None:
        """Change the counts."""
        size = len(self.cells.group.members)
        key = self.cells.cell * size + self.cells.member
        for source, cell, target in steps:
            self.given[np.searchsorted(key, [cell * size + source, cell * size + target])] += [-1, 1]

    def _sorted(self, cost: IntArray) -> IntArray:
        """The costs in the order of heads; what nobody has cannot be taken away."""
        pairs, members = self.cells.cell.size, len(self.cells.group.members)
        there = np.ones(cost.size, dtype=np.bool_)
        there[pairs : 2 * pairs] = self.given > 0
        there[2 * pairs + members :] = self.loads > 0
        return np.where(there, cost, _NEVER)[self._order]

    def _relax(self, cost: IntArray, distance: IntArray, parent: IntArray) -> bool:
        """One round of Bellman and Ford in place; whether anything got nearer."""
        if not cost.size:
            return False
        start = distance[self._tail]
        through = np.where((start < _NEVER // 2) & (cost < _NEVER // 2), start + cost, _NEVER)
        best = np.minimum.reduceat(through, self._starts)
        better = best < distance[self._head[self._starts]]
        attains = np.flatnonzero((through == np.repeat(best, self._sizes)) & np.repeat(better, self._sizes))
        # Backwards, so that of several arcs the first one stays.
        parent[self._head[attains[::-1]]] = self._tail[attains[::-1]]
        distance[self._head[self._starts]] = np.where(better, best, distance[self._head[self._starts]])
        return bool(better.any())


def _one_number(costs: Graded) -> IntArray:
    """Costs of several goals as one: a unit of a goal weighs more than all that later goals can sum up to."""
    total = np.zeros_like(costs[0][0])
    unit = 1
    for cost, most in reversed(costs):
        total += cost * unit
        unit += unit * most
    if 2 * unit >= _NEVER // 2:
        raise OverflowError("the group is too large for a certificate")
    return total


def _circle(parent: IntArray) -> list[int]:
    """The nodes of a cycle among the parents, from parent to child; none if there is none."""
    end = parent.size
    up = np.append(parent, end)
    for _ in range(end.bit_length()):
        up = up[up]
    caught = np.flatnonzero(up != end)
    if not caught.size:
        return []
    first = int(up[caught[0]])
    nodes = [first]
    while (node := int(parent[nodes[-1]])) != first:
        nodes.append(node)
    return nodes[::-1]
