"""The best balance: how many partitions the members of each node get."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from kafka_assignors._model.arrays import BoolArray, IntArray, before_in_run, clipped, nonzero, ranges, sums
from kafka_assignors._model.tick import Tick
from kafka_assignors.planners._exact.flow import FlowNetwork, send_if_any


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    """The blocks of a best-balanced flow, by number for cells (A,) and nodes (V,).

    In a block every member has as many partitions as it is sure to get, and some members one more. As many of
    them have one more in all best-balanced flows. Nothing can pass from one block to another. `sure` and
    `more` (V,) are units that the members of each node get for certain, and that they may get beyond these.
    """

    sure: IntArray
    more: IntArray
    cell_block: IntArray
    node_block: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Sizes:
    """The members of each node (V,): how many, the weight of each, and its fewest and most units."""

    members: IntArray
    weight: IntArray
    lower: IntArray
    upper: IntArray

    def of(self, nodes: IntArray | slice) -> "Sizes":
        """Those of some nodes."""
        return Sizes(
            members=self.members[nodes],
            weight=self.weight[nodes],
            lower=self.lower[nodes],
            upper=self.upper[nodes],
        )


Chosen = IntArray | slice
"""Numbers of cells, nodes or arcs."""
ALL = slice(None)


def part_of(network: FlowNetwork, cells: Chosen, nodes: Chosen, arcs: Chosen) -> FlowNetwork:
    """A copy of some cells and nodes and the arcs between these, or all of it as it is; the pool is empty."""
    if isinstance(cells, slice) or isinstance(nodes, slice) or isinstance(arcs, slice):
        network.pool = 0
        return network
    return network.part(cells, nodes, arcs)


def find_levels(network: FlowNetwork, sizes: Sizes, tick: Tick) -> Levels:
    """Send all supply of a network so that the members' loads are best balanced.

    All loads that can be alike are tried to be: members get the same number, and some of them one more. What
    is then left over reaches members only that are full. With all that it reaches it is a part of its own,
    with more partitions a member than the rest. Nothing can pass from it to the rest, and what the rest sends
    to it already could only be less. So each of the two is solved by itself.

    The network's flow, load and supply are updated.
    """
    given = network.load - sums(network.heads, network.flow, network.load.size)
    sure, more = np.zeros_like(network.load), np.zeros_like(network.load)
    cell_block, node_block = np.zeros_like(network.supply), np.zeros_like(network.load)
    blocks = 0
    parts: list[tuple[Chosen, Chosen, Chosen]] = [(ALL, ALL, ALL)]
    while parts:
        cells, nodes, arcs = parts.pop()
        total = int(network.supply[cells].sum() + network.flow[arcs].sum() + given[nodes].sum())
        base, extra = quotas(total, sizes.of(nodes), given[nodes])
        tick()
        part = part_of(network, cells, nodes, arcs)
        part.base, part.extra, part.pool = base, extra, total - int(base.sum())
        tick()
        _take_back(part)
        _pour(part, tick)
        sent = send_if_any(part, tick)
        if part is not network:
            network.flow[arcs], network.supply[cells], network.load[nodes] = part.flow, part.supply, part.load
        if not sent.stuck:
            sure[nodes], more[nodes] = base, extra
            cell_block[cells], node_block[nodes] = blocks, blocks
            blocks += 1
            continue
        tick()
        cell_full, node_full = sent.cells > 0, sent.nodes > 0
        from_full, to_full = cell_full[part.tails], node_full[part.heads]
        between = from_full != to_full
        given[nodes] += sums(part.heads[between], part.flow[between], part.load.size)
        for inside, in_cells, in_nodes in (
            (~(from_full | to_full), ~cell_full, ~node_full),
            (from_full & to_full, cell_full, node_full),
        ):
            parts.append((_some(cells, in_cells), _some(nodes, in_nodes), _some(arcs, inside)))
            tick()
    return Levels(sure=sure, more=more, cell_block=cell_block, node_block=node_block)


def _some(chosen: Chosen, inside: BoolArray) -> IntArray:
    return np.flatnonzero(inside) if isinstance(chosen, slice) else chosen[inside]


def quotas(total: int, sizes: Sizes, given: IntArray) -> tuple[IntArray, IntArray]:
    """What each node gets for certain if units are spread evenly, and what beyond.

    The j-th unit of a member of weight w comes at (2j - 1) / w. To give always the unit that comes first
    makes the sum of load²/w least. All units before some point are sure, those at this point are for some.

    `total` includes the units `given` (V,), which the members of each node have in any case.
    """
    members, weight, lower, upper = sizes.members, sizes.weight, sizes.lower, sizes.upper

    def units_at(rounds: IntArray) -> IntArray:
        units: IntArray = np.maximum(members * clipped(rounds, lower, upper), given)
        return units

    def is_enough(of_weight: int, unit: int) -> bool:
        """Whether all is given away with what comes no later than a unit of members of a weight."""
        units = units_at(((2 * unit - 1) * weight + of_weight) // (2 * of_weight))
        return int(units.sum()) >= total

    best: tuple[int, int] | None = None  # the point at which all is given away, as (unit, weight)
    in_all = int((members * weight).sum())
    for of_weight in sorted(set(weight.tolist())):
        if best is not None:
            # Most weights give no earlier point than one before: its last unit before that says so at once.
            last = -((best[1] - 2 * best[0] * of_weight + of_weight) // (2 * best[1]))
            if not is_enough(of_weight, last):
                continue
        # It is near the mean, and if nothing but weights tells members apart, next to it.
        first = _bisect_near(total * of_weight // in_all, total + 1, partial(is_enough, of_weight))
        # Members of other weights may be the last to be full.
        if is_enough(of_weight, first) and (
            best is None or (2 * first - 1) * best[1] < (2 * best[0] - 1) * of_weight
        ):
            best = first, of_weight
    if best is None:
        full = np.maximum(members * upper, given)
        return full, np.zeros_like(full)
    unit, of_weight = best
    reach = (2 * unit - 1) * weight + of_weight
    before, at = units_at((reach - 1) // (2 * of_weight)), units_at(reach // (2 * of_weight))
    if at.sum() <= total:  # all of those at the point get it
        return at, np.zeros_like(at)
    return before, at - before


def _bisect_near(guess: int, end: int, is_enough: Callable[[int], bool]) -> int:
    """The least number below `end` that is enough, as all above it are; or `end`. Quick near the guess."""
    step = 1
    if is_enough(guess):
        last = guess
        while last >= step and is_enough(last - step):
            last, step = last - step, 2 * step
        first = max(last - step + 1, 0)
    else:
        first = guess + 1
        while first + step - 1 < end and not is_enough(first + step - 1):
            first, step = first + step, 2 * step
        last = min(first + step - 1, end)
    while first < last:
        middle = (first + last) // 2
        first, last = (first, middle) if is_enough(middle) else (middle + 1, last)
    return first


def _take_back(network: FlowNetwork) -> None:
    """Take back what nodes have beyond base and extra, and beyond the pool."""
    over = np.maximum(network.load - network.base, 0)
    wanted = np.minimum(over, network.extra)
    granted = clipped(network.pool - (wanted.cumsum() - wanted), 0, wanted)
    network.pool -= int(granted.sum())
    back = over - granted
    if not back.any():
        return
    carrying = nonzero(network.flow)
    order = carrying[np.argsort(network.heads[carrying], kind="stable")]
    heads, flow = network.heads[order], network.flow[order]
    taken = clipped(back[heads] - before_in_run(heads, flow), 0, flow)  # from the first arcs of a node
    network.flow[order] -= taken
    network.supply += sums(network.tails[order], taken, network.supply.size)
    network.load -= back


def _pour(network: FlowNetwork, tick: Tick) -> None:
    """Guess a flow: each cell in shares to its nodes, by their room for all that they could get.

    Whatever it leaves over or gets wrong is put right by paths; a good guess leaves few of them.
    """
    if network.flow.any() or not network.supply.any():
        return
    heads, tails = network.heads, network.tails
    room = np.minimum(network.base - network.load, network.high.max(initial=0)).clip(0)
    supply = np.repeat(network.supply, np.diff(network.starts))
    offered = np.bincount(heads, weights=supply, minlength=room.size)
    ratio = np.divide(room, offered, out=np.zeros(room.size), where=offered > 0)
    tick()
    shares = np.bincount(tails, weights=ratio[heads], minlength=network.supply.size)
    tick()
    # On most arcs of a large network that comes to less than a unit, and in most cells on all.
    pouring = np.flatnonzero((ratio.max(initial=0) * network.supply >= shares) & (shares > 0))
    arcs, number = ranges(network.starts[pouring], np.diff(network.starts)[pouring])
    share = ratio[heads[arcs]] * network.supply[pouring][number] / shares[pouring][number]
    arcs, share = arcs[share >= 1], share[share >= 1]
    heads = heads[arcs]
    poured = np.minimum(np.floor(share), network.high[arcs])
    coming = np.bincount(heads, weights=poured, minlength=room.size)
    fits = np.divide(room, coming, out=np.ones(room.size), where=coming > room)
    flow = np.floor(poured * fits[heads]).astype(np.int64)
    network.flow[arcs] += flow
    network.supply -= sums(tails[arcs], flow, network.supply.size)
    network.load += sums(heads, flow, room.size)
