"""The steps of an exact plan, from stage to stage: each stands on what the one before left."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kafka_assignors._model.arrays import IntArray, added, all_same, before_in_run, clipped, nonzero, sums
from kafka_assignors.planners._exact.flow import UNLIMITED, send_if_any
from kafka_assignors.planners._exact.levels import ALL, Chosen, Levels, find_levels, part_of
from kafka_assignors.planners._exact.stage import Stage


class NoRoomError(Exception):
    """Not all partitions find room on the members that they are to go to."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Prices:
    """What a cheapest flow cost, and its dual solution: the distances of cells (A,), nodes and pools (V,).

    `free` (E,) are the partitions that cost nothing on each arc, beyond the settled ones.
    """

    free: IntArray
    cells: IntArray
    nodes: IntArray
    pools: IntArray


def level(stage: Stage) -> tuple[Stage, Levels]:
    """Spread the loads evenly, within what nodes are sure to get and may get."""
    network = stage.network(all_same(UNLIMITED, stage.arcs.size), stage.carried - stage.settled)
    levels = find_levels(network, stage.sizes(), stage.tick)
    return replace(stage, carried=added(stage.settled, network.flow)), levels


def move_least(stage: Stage) -> tuple[Stage, Prices]:
    """Let as many partitions as can be stay with their owners. Raises NoRoomError, as `send`."""
    stage = stage.split_owners()
    stage.tick()
    stage = replace(stage, stays_on=stage.arc_of_owned())
    stage.tick()
    return send(stage, stage.number_of_owned(), keep=True)


def send(stage: Stage, free: IntArray, *, keep: bool = False) -> tuple[Stage, Prices]:
    """Make the flow a cheapest one, block by block.

    On each arc `free` (E,) partitions cost nothing, beyond those that are settled. With `keep` it begins with
    as many of these as there is room for. Raises NoRoomError if the blocks are not those of a best balance.
    """
    whole = stage.network(free, _room_for(stage, free) if keep else np.zeros_like(free))
    sizes = whole.supply.size, whole.load.size, whole.load.size
    in_cells, in_nodes, in_pools = (np.zeros(size, dtype=np.int64) for size in sizes)
    for cells, nodes, arcs in _blocks(stage):
        stage.tick()
        part = part_of(whole, cells, nodes, arcs)
        taken = np.maximum(part.load, part.base).sum()
        part.pool = int(part.supply.sum() + part.load.sum() - taken)
        sent = send_if_any(part, stage.tick)
        if sent.stuck:
            raise NoRoomError
        stage.tick()
        if part is not whole:
            whole.flow[arcs] = part.flow
        in_cells[cells], in_nodes[nodes], in_pools[nodes] = sent.cells, sent.nodes, sent.pool
    prices = Prices(free=free, cells=in_cells, nodes=in_nodes, pools=in_pools)
    return replace(stage, carried=added(stage.settled, whole.flow)), prices


def _room_for(stage: Stage, wanted: IntArray) -> IntArray:
    """(E,) how much of what is wanted fits: nodes that want too much get of each cell in proportion."""
    nodes, block, node_of = stage.nodes, stage.nodes.block, stage.arcs.nodes
    wanted = np.minimum(wanted, stage.high)
    wanting = nonzero(wanted)
    total = sums(node_of[wanting], wanted[wanting], nodes.members.size)
    if (total <= nodes.sure).all():
        return wanted
    over = clipped(total - nodes.sure, 0, nodes.more)
    # Of each block's pool the first nodes get what they want.
    blocks = int(block.max()) + 1
    pool = sums(stage.cell_block, stage.supply, blocks) - sums(block, nodes.sure, blocks)
    order = np.argsort(block, kind="stable")
    before = before_in_run(block[order], over[order])
    granted = np.empty_like(over)
    granted[order] = clipped(pool[block[order]] - before, 0, over[order])
    room = np.minimum(total, nodes.sure + granted)
    short = room < total
    arcs = wanting[short[node_of[wanting]]]
    arcs = arcs[np.argsort(node_of[arcs], kind="stable")]
    node = node_of[arcs]
    part = wanted[arcs] * room[node] // total[node]
    left = (room - sums(node, part, room.size))[node]
    spare = (part < wanted[arcs]).astype(np.int64)
    wanted[arcs] = part + ((spare > 0) & (before_in_run(node, spare) < left))
    return wanted


def _blocks(stage: Stage) -> Iterator[tuple[Chosen, Chosen, Chosen]]:
    """Cells, nodes and arcs of each block."""
    number = int(stage.nodes.block.max()) + 1
    if number == 1:
        yield ALL, ALL, ALL
        return
    bounds = np.arange(1, number)
    parts = []
    for block in (stage.cell_block, stage.nodes.block, stage.cell_block[stage.arcs.cells]):
        order = np.argsort(block, kind="stable")
        parts.append(np.split(order, np.searchsorted(block[order], bounds)))
    yield from zip(*parts, strict=True)


def settle(stage: Stage, prices: Prices) -> Stage:
    """Shut and fix what is the same in all cheapest flows, as the dual solution tells.

    So no later step can spoil what this one reached.
    """
    stage.tick()
    cell, node, nodes = prices.cells, prices.nodes, stage.nodes
    saved = node - prices.pools
    sure = np.where(saved < 0, nodes.sure + nodes.more, nodes.sure)
    stage = stage.bounded(sure, np.where(saved == 0, nodes.more, 0))
    # What one more partition costs on an arc, in all: `excess` up to the free ones, 1 more beyond.
    if cell.size and cell.min() == cell.max() and node.min() == node.max():
        return _settle_all(stage, prices.free, int(cell[0] - node[0]))
    excess = np.repeat(cell, np.diff(stage.arcs.starts(cell.size)))
    excess -= node[stage.arcs.nodes]
    stage.tick()
    high, settled = stage.high, stage.settled
    left = np.minimum(prices.free, high)
    left[np.flatnonzero(excess > 0)] = 0
    stage.tick()
    saving = np.flatnonzero(excess < 0)
    if saving.size:
        fixed = np.where(excess[saving] < -1, high[saving], left[saving])
        stage.tick()
        left[saving] = high[saving] - fixed
        if fixed.any():
            settled = settled.copy()
            settled[saving] += fixed
    return replace(stage, high=left, settled=settled)


def _settle_all(stage: Stage, free: IntArray, excess: int) -> Stage:
    """The same if all arcs have one excess."""
    high = np.minimum(free, stage.high)
    if excess < 0:
        fixed = stage.high if excess < -1 else high
        return replace(stage, settled=stage.settled + fixed, high=stage.high - fixed)
    return replace(stage, high=all_same(0, stage.arcs.size) if excess > 0 else high)
