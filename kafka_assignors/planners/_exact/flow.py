"""Cheapest flows on a small network: from cells of partitions to nodes of members.

A *cell* is a number of partitions that are alike, a *node* a number of members that are alike. An *arc* says
that the members of a node may get partitions of a cell. A node takes `base` units for certain, and up to
`extra` more, which come out of a pool that all nodes share. On an arc the first `free` units cost nothing and
each further one costs 1.

The algorithm is the primal-dual one (Ahuja, Magnanti and Orlin: Network Flows, section 9.8). Flow goes along
the cheapest paths that are left. If there are no more of one length, a search finds the next length. Among
paths of one length those with the fewest arcs come first (Dinic's blocking flows). Costs are 0 or 1, so the
search needs buckets and no heap.

If `_flow.c` could be compiled, it does this step by step in the same order. So its flows are the same,
hundreds of times as fast. What is written here in Python is what it means, and runs without it.
"""

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Any, Final

import numpy as np

from kafka_assignors._model.arrays import IntArray, chosen_of, places
from kafka_assignors._model.tick import Tick

try:
    _compiled: Any = import_module("kafka_assignors.planners._exact._flow")
except ImportError:  # installed without a compiler
    _compiled = None

UNLIMITED: Final = 2**62
"""The capacity of an arc without limit."""

_FAR: Final = 2**62
_BREATH = 2**16
"""After how many arcs looked at to call `tick`: some 30 ms."""
_COMPILED_BREATH = 2**20
"""The same in steps of the compiled module: some milliseconds."""


@dataclass(kw_only=True, eq=False)
class FlowNetwork:
    """Cells, nodes, the arcs between them, and the flow so far. Arcs are sorted by (cell, node).

    Attributes:
        starts: (A + 1,) the arcs of cell a are starts[a]..starts[a + 1] - 1.
        heads: (E,) the node of each arc.
        supply: (A,) units that are still to be sent.
        base: (V,) units that a node takes for certain.
        extra: (V,) units that it may take from the pool.
        pool: Units left in the pool.
        free: (E,) units that cost nothing on each arc.
        high: (E,) the most units that it may carry.
        flow: (E,) units that it carries.
        load: (V,) units that each node has; the flow that comes in, and what else is given.
    """

    starts: IntArray
    heads: IntArray
    supply: IntArray
    base: IntArray
    extra: IntArray
    pool: int
    free: IntArray
    high: IntArray
    flow: IntArray
    load: IntArray

    @cached_property
    def tails(self) -> IntArray:
        """(E,) the cell of each arc."""
        return np.repeat(np.arange(self.supply.size), np.diff(self.starts))

    def part(self, cells: IntArray, nodes: IntArray, arcs: IntArray) -> "FlowNetwork":
        """A copy of some cells and nodes, and of arcs between these, all ascending; the pool is empty."""
        return FlowNetwork(
            starts=np.searchsorted(self.tails[arcs], np.append(cells, self.supply.size)),
            heads=places(nodes, self.load.size)[self.heads[arcs]],
            supply=self.supply[cells],
            base=self.base[nodes],
            extra=self.extra[nodes],
            pool=0,
            free=chosen_of(self.free, arcs),
            high=chosen_of(self.high, arcs),
            flow=self.flow[arcs],
            load=self.load[nodes],
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class SentFlow:
    """How sending ended; `stuck` if supply is left that reaches no room.

    If so, cells, nodes and pool are 1 for what the supply left reaches and 0 for the rest. Else they are the
    distance from the supply, up to that of the room (a dual solution).
    """

    stuck: bool
    cells: IntArray
    nodes: IntArray
    pool: int


def send(network: FlowNetwork, tick: Tick) -> SentFlow:
    """Send all supply as cheaply as possible.

    The flow that is there must be a cheapest one of its value. The network's flow, load, supply and pool are
    updated in place. The tick may raise to give up. The network is then as it was.

    Raises:
        ValueError: The flow that is there is not a cheapest one; not every such flow is noticed. Compiled, it
            refuses arrays that do not fit each other, and numbers out of range, too.
    """
    if _compiled is not None:
        return _send_compiled(network, tick)
    return _Sender(network, tick).run()


def send_if_any(network: FlowNetwork, tick: Tick) -> SentFlow:
    """As `send`, but without a look at the arcs if there is no supply: all is sent, and nothing is far."""
    if network.supply.any():
        return send(network, tick)
    cells, nodes = np.zeros_like(network.supply), np.zeros_like(network.load)
    return SentFlow(stuck=False, cells=cells, nodes=nodes, pool=0)


def _send_compiled(network: FlowNetwork, tick: Tick) -> SentFlow:
    n = network
    distance = np.zeros(n.supply.size + n.base.size + 1, dtype=np.int64)
    arrays = n.starts, n.heads, n.supply, n.base, n.extra, n.free, n.high, n.flow, n.load, distance
    stuck, n.pool = _compiled.send(*arrays, n.pool, tick, _COMPILED_BREATH)
    return _sent(network, stuck, distance)


def _sent(network: FlowNetwork, stuck: bool, distance: IntArray) -> SentFlow:
    cells = network.supply.size
    return SentFlow(stuck=stuck, cells=distance[:cells], nodes=distance[cells:-1], pool=int(distance[-1]))


class _Sender:
    """The network as lists. Cells, nodes and the pool are *places*, numbered in this order."""

    def __init__(self, network: FlowNetwork, tick: Tick) -> None:
        self.network = network
        self.tick = tick
        self.arcs_seen = 0
        self.cells = network.supply.size
        self.the_pool = self.cells + network.base.size
        self.high: list[int] = network.high.tolist()
        self.free: list[int] = network.free.tolist()
        self.flow: list[int] = network.flow.tolist()
        self.supply: list[int] = network.supply.tolist()
        self.base: list[int] = network.base.tolist()
        self.extra: list[int] = network.extra.tolist()
        self.load: list[int] = network.load.tolist()
        self.pool = network.pool
        # The places next to each place, with the arc between; the pool is next to all nodes, without arcs.
        self.next_to: list[list[tuple[int, int]]] = [[] for _ in range(self.the_pool + 1)]
        for arc, (cell, node) in enumerate(zip(network.tails.tolist(), network.heads.tolist(), strict=True)):
            if arc % _BREATH == _BREATH - 1:
                tick()
            self.next_to[cell].append((self.cells + node, arc))
            self.next_to[self.cells + node].append((cell, arc))
        for node in range(self.cells, self.the_pool):
            self.next_to[node].append((self.the_pool, -1))
            self.next_to[self.the_pool].append((node, -1))
        # Distances from the supply. No open arc is shorter than the difference of its ends; on the cheapest
        # paths it is exactly as long.
        self.distance = [0] * (self.the_pool + 1)
        self.room_distance = 0
        # Of a place: how many arcs of cheapest paths lie before it, and which arc to try next.
        self.level: list[int] = []
        self.next_try: list[int] = []

    def breathe(self, place: int) -> None:
        """Call `tick` now and then, where all arcs of a place are looked at."""
        self.arcs_seen += len(self.next_to[place])
        if self.arcs_seen >= _BREATH:
            self.arcs_seen = 0
            self.tick()

    def run(self) -> SentFlow:
        stuck = False
        while any(self.supply) and not stuck:
            self.tick()
            if self.rank():
                self.push()
            else:
                stuck = not self.lengthen()
        network = self.network
        network.flow[:], network.load[:], network.supply[:] = self.flow, self.load, self.supply
        network.pool = self.pool
        return _sent(network, stuck, np.array(self.distance, dtype=np.int64))

    def room(self, place: int) -> int:
        """How many units a node can take; none in other places."""
        if not self.cells <= place < self.the_pool:
            return 0
        node = place - self.cells
        room = self.base[node] - self.load[node]
        return room if room > 0 else min(self.pool, room + self.extra[node])

    def capacity(self, place: int, there: int, arc: int) -> tuple[int, int]:
        """How many units can go from a place to one next to it, and what each of them costs."""
        if there == self.the_pool:  # the node takes a unit out of the pool, that another one must give back
            node = place - self.cells
            over = self.load[node] - self.base[node]
            return (self.extra[node] - over if self.pool <= 0 <= over else 0), 0
        if place == self.the_pool:
            node = there - self.cells
            return self.load[node] - self.base[node], 0
        flow, free = self.flow[arc], self.free[arc]
        if place < self.cells:
            high = self.high[arc]
            return (min(free, high) - flow, 0) if flow < free else (high - flow, 1)
        return (flow, 0) if flow <= free else (flow - free, -1)

    def is_cheapest(self, place: int, there: int, arc: int) -> bool:
        """Whether an arc can carry more and lies on a cheapest path."""
        capacity, cost = self.capacity(place, there, arc)
        return capacity > 0 and self.distance[place] + cost == self.distance[there]

    def is_end(self, place: int) -> bool:
        """Whether cheapest paths end at a place."""
        return self.distance[place] == self.room_distance and self.room(place) > 0

    def rank(self) -> bool:
        """Give each place its level, up to that at which the first paths end; False if none does."""
        level = self.level = [-1] * (self.the_pool + 1)
        reached = [cell for cell, supply in enumerate(self.supply) if supply]
        for cell in reached:
            level[cell] = 0
        depth, found = 0, False
        while reached and not found:
            depth += 1
            frontier, reached = reached, []
            for place in frontier:
                self.breathe(place)
                for there, arc in self.next_to[place]:
                    if level[there] < 0 and self.is_cheapest(place, there, arc):
                        level[there] = depth
                        reached.append(there)
                        found = found or self.is_end(there)
        return found

    def push(self) -> None:
        """Send along paths on which the level rises with each arc, until none is left (a blocking flow)."""
        self.next_try = [0] * (self.the_pool + 1)
        for cell in range(self.cells):
            while self.supply[cell] and self.push_from(cell):
                pass

    def push_from(self, cell: int) -> bool:
        path, arcs = [cell], [-1]
        while path:
            if self.is_end(path[-1]):
                self.augment(path, arcs)
                return True
            step = self.step(path[-1])
            if step is None:
                self.breathe(path[-1])
                self.level[path.pop()] = -1
                arcs.pop()
            else:
                path.append(step[0])
                arcs.append(step[1])
        return False

    def step(self, place: int) -> tuple[int, int] | None:
        """The next place on a path, and the arc to it."""
        choices = self.next_to[place]
        for number in range(self.next_try[place], len(choices)):
            there, arc = choices[number]
            if self.level[there] == self.level[place] + 1 and self.is_cheapest(place, there, arc):
                self.next_try[place] = number
                return choices[number]
        self.next_try[place] = len(choices)
        return None

    def augment(self, path: list[int], arcs: list[int]) -> None:
        """Send along a path as much as all of it takes at its present cost."""
        steps = list(zip(path, path[1:], arcs[1:], strict=False))
        amount = min(self.supply[path[0]], self.room(path[-1]), *(self.capacity(*step)[0] for step in steps))
        for place, there, arc in steps:
            if there == self.the_pool:
                self.load[place - self.cells] += amount
            elif place == self.the_pool:
                self.load[there - self.cells] -= amount
            else:
                self.flow[arc] += amount if place < self.cells else -amount
        self.supply[path[0]] -= amount
        last = path[-1] - self.cells
        if self.load[last] >= self.base[last]:
            self.pool -= amount
        self.load[last] += amount

    def lengthen(self) -> bool:
        """Find the length of the cheapest path that is left (Dijkstra's search with Dial's buckets).

        If there is none, distances are then 1 for what can be reached, and 0 for the rest.
        """
        distance = self.distance
        further = [_FAR] * (self.the_pool + 1)  # all lengths here are those beyond `distance`
        nearest = _FAR
        buckets: dict[int, list[int]] = {0: [cell for cell, supply in enumerate(self.supply) if supply]}
        for cell in buckets[0]:
            further[cell] = 0
        while buckets and min(buckets) < nearest:
            length = min(buckets)
            bucket = buckets[length]
            while bucket:
                place = bucket.pop()
                if further[place] != length:
                    continue
                if self.room(place):
                    nearest = min(nearest, length + distance[place] - self.room_distance)
                self.breathe(place)
                for there, arc in self.next_to[place]:
                    capacity, cost = self.capacity(place, there, arc)
                    longer = length + distance[place] + cost - distance[there]
                    if capacity > 0 and longer < min(nearest, further[there]):
                        if longer < length:
                            raise ValueError("the flow given is not a cheapest one of its value")
                        further[there] = longer
                        buckets.setdefault(longer, []).append(there)
            del buckets[length]
        if nearest == _FAR:
            self.distance = [int(length < _FAR) for length in further]
            return False
        self.distance = [old + min(new, nearest) for old, new in zip(distance, further, strict=True)]
        self.room_distance += nearest
        return True
