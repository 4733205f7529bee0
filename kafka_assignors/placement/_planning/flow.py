"""Cheapest flows with bounds, by OR-tools, and all flows that are as cheap.

Goals that come one after another are reached one after another. Potentials (a dual solution) say of all
cheapest flows of one cost which arcs none of them uses beyond its lower bound. They also say which ones all
of them fill. With these fixed, what is left is exactly the cheapest flows, and the next cost is put on them.
So no goal is weighed against another one, and costs stay small enough for 64 bits.
"""

from dataclasses import dataclass, replace

import numpy as np

from kafka_assignors._model.arrays import IntArray, sums
from kafka_assignors.placement._placement import PlacementError

_RANGE = 2**62
"""OR-tools multiplies costs by the number of nodes; it was seen to refuse products from 2**62.8 on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PlacementNetwork:
    """Arcs with bounds between nodes 0..N - 1."""

    tail: IntArray  # (A,) the node that each arc leaves
    head: IntArray  # (A,) the node that it enters
    lower: IntArray  # (A,) the least flow on it, at least 0
    upper: IntArray  # (A,) the most
    supply: IntArray  # (N,) how much more leaves each node than enters it; sums up to 0

    def cheapest(self, cost: IntArray) -> IntArray:
        """A cheapest flow; for the same arcs in the same order always the same one.

        Raises PlacementError for costs too high to be exact, ValueError if no flow is within the bounds.
        """
        try:
            from ortools.graph.python.min_cost_flow import SimpleMinCostFlow  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ImportError(
                f"planning replicas needs OR-tools ({error}): pip install 'kafka-assignors[placement]'"
            ) from error
        nodes = self.supply.size
        moved = sums(self.tail, self.lower, nodes) - sums(self.head, self.lower, nodes)
        supply = self.supply - moved
        free = np.flatnonzero(self.lower < self.upper)
        # Nodes of fixed arcs only would narrow the range of costs.
        used = np.zeros(nodes, dtype=np.bool_)
        used[self.tail[free]] = used[self.head[free]] = True
        used |= supply != 0
        number = np.cumsum(used) - 1
        highest, largest = int(np.abs(cost[free]).max(initial=0)), _RANGE // (int(used.sum()) + 1)
        if highest > largest:
            raise PlacementError(
                f"a partition has {highest} bytes, and with so many partitions at most {largest} can be"
                " counted exactly: plan fewer topics, --per-topic, or --count-replicas"
            )
        solver = SimpleMinCostFlow()
        arcs = solver.add_arcs_with_capacity_and_unit_cost(
            number[self.tail[free]].astype(np.int32),
            number[self.head[free]].astype(np.int32),
            self.upper[free] - self.lower[free],
            cost[free],
        )
        solver.set_nodes_supplies(np.arange(used.sum(), dtype=np.int32), supply[used])
        status = solver.solve()
        if status != solver.OPTIMAL:
            raise ValueError(f"no flow keeps to the bounds of {free.size} arcs: {status}")
        flow = self.lower.copy()
        flow[free] += solver.flows(arcs)
        return flow

    def as_cheap(self, cost: IntArray, flow: IntArray) -> "PlacementNetwork":
        """The network of which every flow is a cheapest one of this."""
        potential = self._potentials(cost, flow)
        reduced = cost + potential[self.tail] - potential[self.head]
        return replace(
            self,
            lower=np.where(reduced == 0, self.lower, flow),
            upper=np.where(reduced == 0, self.upper, flow),
        )

    def _potentials(self, cost: IntArray, flow: IntArray) -> IntArray:
        """(N,) how near each node is over arcs on which the flow could change, by Bellman and Ford."""
        more, less = np.flatnonzero(flow < self.upper), np.flatnonzero(flow > self.lower)
        head = np.concatenate([self.head[more], self.tail[less]])
        order = np.argsort(head, kind="stable")
        head = head[order]
        tail = np.concatenate([self.tail[more], self.head[less]])[order]
        length = np.concatenate([cost[more], -cost[less]])[order]
        first = np.flatnonzero(np.diff(head, prepend=-1))
        ends = head[first]
        distance = np.zeros(self.supply.size, dtype=np.int64)
        while first.size:
            nearer = np.minimum.reduceat(distance[tail] + length, first)
            if not (nearer < distance[ends]).any():
                break
            distance[ends] = np.minimum(distance[ends], nearer)
        return distance
