"""The best balance: how many partitions the members of each node get."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kafka_assignors.arrays import IntArray, places
from kafka_assignors.planners.flow import UNLIMITED, Network, send


@dataclass(frozen=True, kw_only=True, eq=False)
class Levels:
    """The blocks of a best-balanced flow.

    In a block every member has as many partitions as it is sure to get, and some members one more; in all
    best-balanced flows as many of them. Nothing can pass from one block to another.

    Attributes:
        sure: (V,) units that the members of each node get for certain.
        more: (V,) units that they may get beyond these.
        cell_block, node_block: (A,) and (V,) the number of the block.
    """

    sure: IntArray
    more: IntArray
    cell_block: IntArray
    node_block: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Sizes:
    """The members of each node.

    Attributes:
        members: (V,) how many there are.
        weight: (V,) the weight of each of them.
        lower, upper: (V,) the least and the most units that each of them may get.
    """

    members: IntArray
    weight: IntArray
    lower: IntArray
    upper: IntArray


def find_levels(network: Network, sizes: Sizes, tick: Callable[[], None]) -> Levels:
    """Send all supply of a network so that the members' loads are best balanced.

    All loads that can be alike are tried to be: members get the same number, and some of them one more. What
    is then left over reaches members only that are full. With all that it reaches it is a part
    of its own, with more partitions a member than the rest: nothing can pass from it to the rest, and what
    the rest sends to it already could only be less. So each of the two is solved by itself.

    Args:
        network: Arcs and supply, with or without a flow. Flow, load and supply are updated.
        sizes: The members of its nodes.
        tick: Called between the steps; it may raise to give up.
    """
    given = network.load - np.bincount(
        network.heads, weights=network.flow, minlength=network.load.size
    ).astype(np.int64)
    sure, more = np.zeros_like(network.load), np.zeros_like(network.load)
    cell_block, node_block = np.zeros_like(network.supply), np.zeros_like(network.load)
    blocks = 0
    tails = network.tails
    everything = np.arange(network.supply.size), np.arange(network.load.size), np.arange(network.heads.size)
    parts = [everything]
    while parts:
        cells, nodes, arcs = parts.pop()
        total = int(network.supply[cells].sum() + network.flow[arcs].sum() + given[nodes].sum())
        base, extra = _quotas(total, sizes, nodes, given[nodes])
        part = Network(
            starts=np.searchsorted(tails[arcs], np.append(cells, network.supply.size)),
            heads=places(nodes, network.load.size)[network.heads[arcs]],
            supply=network.supply[cells],
            base=base,
            extra=extra,
            pool=total - int(base.sum()),
            free=np.full(arcs.size, UNLIMITED),
            high=network.high[arcs],
            flow=network.flow[arcs],
            load=network.load[nodes],
        )
        _take_back(part)
        _pour(part)
        sent = send(part, tick)
        network.flow[arcs], network.supply[cells], network.load[nodes] = part.flow, part.supply, part.load
        if not sent.stuck:
            sure[nodes], more[nodes] = base, extra
            cell_block[cells], node_block[nodes] = blocks, blocks
            blocks += 1
            continue
        cell_full, node_full = sent.cells > 0, sent.nodes > 0
        from_full, to_full = cell_full[part.tails], node_full[part.heads]
        between = from_full != to_full
        given[nodes] += np.bincount(
            part.heads[between], weights=part.flow[between], minlength=nodes.size
        ).astype(np.int64)
        parts.append((cells[~cell_full], nodes[~node_full], arcs[~from_full & ~to_full]))
        parts.append((cells[cell_full], nodes[node_full], arcs[from_full & to_full]))
    return Levels(sure=sure, more=more, cell_block=cell_block, node_block=node_block)


def _quotas(total: int, sizes: Sizes, nodes: IntArray, given: IntArray) -> tuple[IntArray, IntArray]:
    """What each node gets for certain if `total` units are spread evenly over these nodes, and what beyond.

    The j-th unit of a member of weight w comes at (2j - 1) / w: giving always the unit that comes first
    makes the sum of load²/w least. All units before some point are sure, those at this point are for some.

    Args:
        total: The units, those that are given included.
        sizes: The members of all nodes.
        nodes: The nodes in question.
        given: Units that the members of each of these have in any case.
    """
    members, weight = sizes.members[nodes], sizes.weight[nodes]
    lower, upper = sizes.lower[nodes], sizes.upper[nodes]

    def units_at(rounds: IntArray) -> IntArray:
        return np.maximum(members * np.clip(rounds, lower, upper), given)

    def sum_at(unit: int, of_weight: int) -> int:
        return int(units_at(((2 * unit - 1) * weight + of_weight) // (2 * of_weight)).sum())

    best: tuple[int, int] | None = None  # the point at which all is given away, as (unit, weight)
    for of_weight in np.unique(weight).tolist():
        first, last = 0, total + 1
        while first < last:
            middle = (first + last) // 2
            first, last = (first, middle) if sum_at(middle, of_weight) >= total else (middle + 1, last)
        # Members of other weights may be the last to be full.
        enough = sum_at(first, of_weight) >= total
        if enough and (best is None or (2 * first - 1) * best[1] < (2 * best[0] - 1) * of_weight):
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


def _take_back(network: Network) -> None:
    """Take back what nodes have beyond base and extra, and beyond the pool."""
    over = np.maximum(network.load - network.base, 0)
    wanted = np.minimum(over, network.extra)
    granted = np.clip(network.pool - (np.cumsum(wanted) - wanted), 0, wanted)
    network.pool -= int(granted.sum())
    back = over - granted
    if not back.any():
        return
    order = np.argsort(network.heads, kind="stable")
    heads, flow = network.heads[order], network.flow[order]
    before = np.cumsum(flow) - flow
    before -= before[np.searchsorted(heads, heads)]  # what earlier arcs bring to the same node
    taken = np.clip(back[heads] - before, 0, flow)
    network.flow[order] -= taken
    network.supply += np.bincount(network.tails[order], weights=taken, minlength=network.supply.size).astype(
        np.int64
    )
    network.load -= back


def _pour(network: Network) -> None:
    """Guess a flow: each cell in shares to its nodes, by their room for all that they could get.

    Whatever it leaves over or gets wrong is put right by paths; a good guess leaves few of them.
    """
    if network.flow.any() or not network.supply.any():
        return
    heads, tails = network.heads, network.tails
    room = np.minimum(network.base - network.load, network.high.max(initial=0)).clip(0)
    offered = np.bincount(heads, weights=network.supply[tails], minlength=room.size)
    share = np.divide(room, offered, out=np.zeros(room.size), where=offered > 0)[heads]
    shares = np.bincount(tails, weights=share, minlength=network.supply.size)[tails]
    poured = np.floor(
        np.divide(network.supply[tails] * share, shares, out=np.zeros(heads.size), where=shares > 0)
    )
    poured = np.minimum(poured, network.high)
    coming = np.bincount(heads, weights=poured, minlength=room.size)
    fits = np.divide(room, coming, out=np.ones(room.size), where=coming > room)
    flow = np.floor(poured * fits[heads]).astype(np.int64)
    network.flow += flow
    network.supply -= np.bincount(tails, weights=flow, minlength=network.supply.size).astype(np.int64)
    network.load += np.bincount(heads, weights=flow, minlength=room.size).astype(np.int64)
