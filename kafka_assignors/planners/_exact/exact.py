"""The exact sticky plan: best balance, then racks, then fewest moves.

Members that are all alike need no search (`alike.py`). For all others partitions that are alike become one
*cell* and members that are alike one *node*. So the problem shrinks to how many partitions of each cell go to
each node, a flow (`flow.py`):

1. *Levels* (`levels.py`): a flow in which no load can be evened out falls into blocks.
   In a block all members have k or k + 1 partitions; nothing can pass from a block to another. (Optimal
   semi-matchings: Harvey, Ladner, Lovász and Tamir 2006.)
2. *Racks*, where they matter: a cheapest flow in which a partition outside its racks costs 1. Its dual
   solution shuts every arc that no cheapest flow uses, so that what follows cannot spoil it.
3. *Moves*: a cheapest flow in which a partition that leaves its owner costs 1.
4. *Handing out* the partitions of each cell by these numbers.

Why this is exact: all partitions of a cell are alike. So given how many of them a member gets, it can keep
that many of its own. Members of one subscription, weight and rack can be one node if none of them owns more
than it is sure to get. Then each keeps what it owns, and who gets the rest makes no difference. A member that
owns more is a node of its own, since it matters what it gives back.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from kafka_assignors._model.arrays import NOBODY, BoolArray, IntArray, all_same, nonzero, sums
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Goal, Plan
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors.planners._exact.alike import share_evenly
from kafka_assignors.planners._exact.cells import Arcs, Contraction
from kafka_assignors.planners._exact.flow import UNLIMITED
from kafka_assignors.planners._exact.hand_out import hand_out
from kafka_assignors.planners._exact.levels import Levels, quotas
from kafka_assignors.planners._exact.stage import Stage
from kafka_assignors.planners._exact.steps import NoRoomError, Prices, level, move_least, send, settle


def plan_exact(
    group: Group,
    *,
    max_skew: int | None = None,
    max_moves: int | None = None,
    tick: Tick = go_on,
) -> Plan:
    """Plan as `Goal` says: balance, then racks, then fewest moves; or within a window of loads.

    The same group always gives the same plan. With equal subscriptions and no racks, weights or options, a
    member that has too much keeps its lowest partition ids. What is free goes in order to the least loaded
    member, the first one if several are. That is Kafka's constrained algorithm (KIP-54) with the ties of its
    published examples. Otherwise a member that has too much gives back the highest ids of each cell. The
    nodes of a cell take turns to get what is free, so that they share its topics. In each node the least
    loaded member gets it.

    Args:
        group: The group.
        max_skew: See `Goal`.
        max_moves: See `Goal`.
        tick: Called again and again while a plan is made; it may raise to give up.

    Raises:
        ValueError: An option is negative.
    """
    for name, value in (("max_skew", max_skew), ("max_moves", max_moves)):
        if value is not None and value < 0:
            raise ValueError(f"{name} must be 0 or more, not {value}")
    goal = Goal(max_skew=max_skew, max_moves=max_moves)
    best_balance = goal == Goal()
    if not group.members or not group.size:
        owner = np.full(group.size, NOBODY, dtype=np.int64)
    elif best_balance and _all_alike(group):
        owner = share_evenly(group)
    else:
        start = Stage.start(Contraction.of(group, tick), tick)
        owner = hand_out(_in_blocks(start) if best_balance else _in_window(start, goal))
    return Plan.from_owner(group, owner, goal)


def _all_alike(group: Group) -> bool:
    return group.uniform and group.weights.min() == group.weights.max() and not group.local_racks


def _in_blocks(start: Stage) -> Stage:
    """Best balance; then in its blocks racks; then moves."""
    rack_of = start.contraction.rack_of
    has_owners = bool((start.group.owner != NOBODY).any())
    if has_owners and rack_of is None:
        moved = _in_one_block(start)
        if moved is not None:
            return moved
    stage, levels = level(start)
    nodes = replace(stage.nodes, sure=levels.sure, more=levels.more, block=levels.node_block)
    stage = replace(stage, nodes=nodes, cell_block=levels.cell_block)
    if levels.node_block.any():
        stage = stage.only(levels.cell_block[stage.arcs.cells] == levels.node_block[stage.arcs.nodes])
    else:
        stage = replace(stage, high=all_same(UNLIMITED, stage.arcs.size))
    if rack_of is not None:
        stage = stage.split(rack_of)
        stage = settle(*send(stage, stage.local()))
        stage = stage.only(stage.high > 0)
    return move_least(stage)[0] if has_owners else stage


def _in_one_block(start: Stage) -> Stage | None:
    """All members as one block, as in most groups: no flow is needed for the levels. None if they are not."""
    nothing = np.zeros(start.nodes.members.size, dtype=np.int64)
    try:
        return move_least(start.bounded(*quotas(start.group.size, start.sizes(), nothing)))[0]
    except NoRoomError:
        return None


class _Moved(NamedTuple):
    """What moving as little as possible has come to, with its prices and how many partitions move."""

    stage: Stage
    prices: Prices
    moves: int


def _in_window(start: Stage, goal: Goal) -> Stage:
    """Loads around those of the best balance: fewest moves; then racks; then balance."""
    least, most = _reach(*level(start))
    budget = start.group.size if goal.max_moves is None else goal.max_moves
    below = _least_skew(start, goal.skew, budget, least, most)
    moved = _in_skew(start, below, least, most)
    if moved.moves > budget:
        step, enough = 1, below + 1
        while (moved := _in_skew(start, enough, least, most)).moves > budget:
            below, step = enough, 2 * step
            enough = below + step
        while below + 1 < enough:
            middle = (below + enough) // 2
            tried = _in_skew(start, middle, least, most)
            if tried.moves > budget:
                below = middle
            else:
                enough, moved = middle, tried
    stage = settle(moved.stage, moved.prices).without_shut()
    if start.contraction.rack_of is not None:
        stage = settle(*send(stage, stage.local())).without_shut()
    return level(stage)[0]


def _least_skew(start: Stage, skew: int, budget: int, least: IntArray, most: IntArray) -> int:
    """A skew that is not too large, from this one on: counted, which is quicker than to try all below.

    Members that own more than they may have lose the rest. Those that own less than they must have gain
    the rest, and what is not free moves for that.
    """
    owner, kinds = start.group.owner, start.contraction.kind_of
    owned = np.bincount(owner[owner != NOBODY], minlength=kinds.size)
    free = int((owner == NOBODY).sum())

    def is_enough(skew: int) -> bool:
        lost = np.maximum(owned - most[kinds] - skew, 0).sum()
        gained = np.maximum(least[kinds] - skew - owned, 0).sum()
        return max(int(lost), int(gained) - free) <= budget

    below, enough = skew - 1, max(skew, start.group.size)
    while below + 1 < enough:
        middle = (below + enough) // 2
        below, enough = (below, middle) if is_enough(middle) else (middle, enough)
    return enough


def _in_skew(start: Stage, skew: int, least: IntArray, most: IntArray) -> _Moved:
    """Move as little as possible, with loads up to `skew` off those that members of a kind may have."""
    low = np.maximum(least - skew, 0)
    members = start.nodes.members
    stage = start.bounded(low * members, (most + skew - low) * members)
    if start.contraction.rack_of is not None:
        stage = stage.split(start.contraction.rack_of)
    stage, prices = move_least(stage)
    there = nonzero(stage.carried)
    kept = int(np.minimum(stage.carried[there], prices.free[there]).sum())
    return _Moved(stage, prices, int((start.group.owner != NOBODY).sum()) - kept)


def _reach(stage: Stage, levels: Levels) -> tuple[IntArray, IntArray]:
    """Of each kind the fewest and the most partitions that a member has in any best-balanced plan."""
    stage.tick()
    members = stage.nodes.members
    load = sums(stage.arcs.nodes, stage.carried, members.size)
    gives, takes = load > levels.sure, load < levels.sure + levels.more
    arcs, carrying = stage.arcs, stage.arcs.at(nonzero(stage.carried))
    if levels.node_block.any():
        arcs, carrying = (each.inside(levels.cell_block, levels.node_block) for each in (arcs, carrying))
    stage.tick()
    # A node can have one more if a chain of exchanges leads to it from one that can give; or one less.
    cells = stage.supply.size
    can_take = _spread(gives, carrying, arcs, cells, stage.tick)
    can_give = _spread(takes, arcs, carrying, cells, stage.tick)
    sure, one = levels.sure // members, levels.more > 0
    # Members of one node can change places: between its bounds each of them can have either load.
    return sure + (one & ~takes & ~can_give), sure + (one & (gives | can_take))


def _spread(start: BoolArray, back: Arcs, on: Arcs, cells: int, tick: Tick) -> BoolArray:
    """The nodes that are reached from some, back over arcs to cells and on over others."""
    reached, count = np.zeros_like(start), -1
    while int(reached.sum()) > count:
        count = int(reached.sum())
        tick()
        reached |= on.nodes_of(back.cells_of(start | reached, cells), start.size)
    return reached
