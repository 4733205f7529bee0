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

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kafka_assignors._model.arrays import (
    NOBODY,
    BoolArray,
    IntArray,
    added,
    all_same,
    before_in_run,
    chosen_of,
    clipped,
    distinct,
    find_in_runs,
    nonzero,
    stable_order,
    sums,
)
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Goal, Plan
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors.planners._exact.alike import share_evenly
from kafka_assignors.planners._exact.cells import Arcs, Contraction
from kafka_assignors.planners._exact.flow import UNLIMITED, FlowNetwork, send_if_any
from kafka_assignors.planners._exact.hand_out import least_loaded, release
from kafka_assignors.planners._exact.levels import ALL, Chosen, Levels, Sizes, find_levels, part_of, quotas

_NO_OWNER, _SHUT = -1, -2
"""What stands for an arc where there is none."""


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
    published examples. Otherwise a member that has too much gives back the highest ids of each cell. What is
    free in a cell goes in order to its nodes, in each to the least loaded member.

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
        flow = _Flow(Contraction.of(group, tick), tick)
        if best_balance:
            flow.in_blocks()
        else:
            flow.in_window(goal)
        owner = flow.hand_out()
    return Plan.from_owner(group, owner, goal)


def _all_alike(group: Group) -> bool:
    return group.uniform and group.weights.min() == group.weights.max() and not group.local_racks


@dataclass(kw_only=True, eq=False)
class _Nodes:
    """The members, as nodes.

    Attributes:
        of_member: (M,) the node of each member.
        members: (V,) how many members a node has.
        sure, more: (V,) partitions that its members get for certain, and that they may get beyond.
        block: (V,) the block that it is in.
    """

    of_member: IntArray
    members: IntArray
    sure: IntArray
    more: IntArray
    block: IntArray

    def split(self, key: IntArray) -> tuple["_Nodes", IntArray]:
        """The nodes by a key of each member (0..M) besides; and the node that each new one is a part of."""
        first, of_member = distinct(self.of_member * (self.of_member.size + 1) + key)
        parent = self.of_member[first]
        members = np.bincount(of_member)
        parts = _Nodes(
            of_member=of_member,
            members=members,
            sure=self.sure[parent] // self.members[parent] * members,
            more=self.more[parent] // self.members[parent] * members,
            block=self.block[parent],
        )
        return parts, parent


class _NoRoomError(Exception):
    """Not all partitions find room on the members that they are to go to."""


class _Flow:
    """How many partitions of each cell go to each node, step by step.

    `in_blocks` and `in_window` are the two orders of steps. Each step stands on what the one before left:

    1. `start`: members of one kind are one node; all arcs are open and carry nothing.
    2. `level` spreads the loads, and says what each node is sure to get and may get. `in_one_block` counts
       the same where all members are one block.
    3. For racks, then for moves: `split` tells members of a node apart where the goal does, `send` makes the
       flow a cheapest one, `settle` shuts and fixes what all cheapest flows have in common. So no later step
       can spoil what an earlier one reached. `settle` reads `free` and `distance` of the last `send`.
    4. `hand_out` turns numbers into owners, with `stays_on` of the last step for moves.

    Attributes:
        arcs: The arcs that are open.
        carried: (E,) partitions that each arc carries now.
        settled: (E,) those of them that it carries in every flow that is as good as this one.
        high: (E,) the most that it may carry beyond the settled ones.
        free, distance: The costs of the last step, and its dual solution.
        stays_on: (N,) by the last step for moves: see `arc_of_owned`.
    """

    def __init__(self, contraction: Contraction, tick: Tick) -> None:
        self.contraction = contraction
        self.group = contraction.group
        self.tick = tick
        self.supply = np.bincount(contraction.cell_of)
        self.start()

    def start(self) -> None:
        """Begin anew, with kinds of members as nodes, that may get anything."""
        kinds = self.contraction.kind_of
        members = np.bincount(kinds)
        nothing = np.zeros(members.size, dtype=np.int64)
        self.nodes = _Nodes(
            of_member=kinds, members=members, sure=nothing, more=members * self.group.size, block=nothing
        )
        self.cell_block = np.zeros(self.supply.size, dtype=np.int64)
        self.open(self.contraction.arcs)

    def open(self, arcs: Arcs) -> None:
        """Go on with these arcs, which carry nothing."""
        self.tick()
        self.arcs = arcs
        self.carried = self.settled = all_same(0, arcs.size)
        self.high = all_same(UNLIMITED, arcs.size)

    def shut_all_but(self, chosen: BoolArray) -> None:
        """Go on with some of the arcs; the others carry nothing."""
        carried = self.carried[chosen]
        self.open(self.arcs.only(chosen))
        self.carried = carried

    def leave_out_shut(self) -> None:
        """Go on without the arcs that `settle` has shut, if they are most: often all but a few thousand."""
        self.tick()
        is_open = self.high > 0
        is_open[nonzero(self.settled)] = True
        if 2 * np.count_nonzero(is_open) > self.arcs.size:
            return
        chosen = np.flatnonzero(is_open)
        self.arcs = self.arcs.at(chosen)
        self.carried, self.settled, self.high = (
            chosen_of(each, chosen) for each in (self.carried, self.settled, self.high)
        )
        self.stays_on = self.arc_of_owned()

    def in_blocks(self) -> None:
        """Best balance; then in its blocks racks; then moves."""
        has_owners = bool((self.group.owner != NOBODY).any())
        if has_owners and self.contraction.rack_of is None and self.in_one_block():
            return
        levels = self.level()
        self.nodes.sure, self.nodes.more, self.nodes.block = levels.sure, levels.more, levels.node_block
        self.cell_block = levels.cell_block
        if levels.node_block.any():
            self.shut_all_but(levels.cell_block[self.arcs.cells] == levels.node_block[self.arcs.nodes])
        else:
            self.high = all_same(UNLIMITED, self.arcs.size)
        if self.contraction.rack_of is not None:
            self.split(self.contraction.rack_of)
            self.send(self.local())
            self.settle()
            self.shut_all_but(self.high > 0)
        if has_owners:
            self.split_owners()
            self.send(self.owned(), keep=True)

    def in_one_block(self) -> bool:
        """Try all members as one block, as they are in most groups: then no flow is needed for the levels.

        Returns:
            Whether they are. If not, nothing has changed.
        """
        nothing = np.zeros(self.nodes.members.size, dtype=np.int64)
        self.nodes.sure, self.nodes.more = quotas(self.group.size, self.sizes(), nothing)
        self.split_owners()
        try:
            self.send(self.owned(), keep=True)
        except _NoRoomError:
            self.start()
            return False
        return True

    def in_window(self, goal: Goal) -> None:
        """Loads around those of the best balance: fewest moves; then racks; then balance."""
        least, most = self.reach(self.level())
        skew = goal.max_skew or 0
        budget = self.group.size if goal.max_moves is None else goal.max_moves
        skew = self.least_skew(skew, budget, least, most)
        if self.in_skew(skew, least, most) > budget:
            step, last = 1, skew + 1
            while self.in_skew(last, least, most) > budget:
                skew, step = last, 2 * step
                last = skew + step
            enough = last
            while skew + 1 < enough:
                last = (skew + enough) // 2
                if self.in_skew(last, least, most) > budget:
                    skew = last
                else:
                    enough = last
            if last != enough:
                self.in_skew(enough, least, most)
        self.settle()
        self.leave_out_shut()
        if self.contraction.rack_of is not None:
            self.send(self.local())
            self.settle()
            self.leave_out_shut()
        self.level()

    def least_skew(self, skew: int, budget: int, least: IntArray, most: IntArray) -> int:
        """A skew that is not too large, from this one on: counted, which is quicker than to try all below.

        Members that own more than they may have lose the rest. Those that own less than they must have gain
        the rest, and what is not free moves for that.
        """
        owner, kinds = self.group.owner, self.contraction.kind_of
        owned = np.bincount(owner[owner != NOBODY], minlength=kinds.size)
        free = int((owner == NOBODY).sum())

        def is_enough(skew: int) -> bool:
            lost = np.maximum(owned - most[kinds] - skew, 0).sum()
            gained = np.maximum(least[kinds] - skew - owned, 0).sum()
            return max(int(lost), int(gained) - free) <= budget

        below, enough = skew - 1, max(skew, self.group.size)
        while below + 1 < enough:
            middle = (below + enough) // 2
            below, enough = (below, middle) if is_enough(middle) else (middle, enough)
        return enough

    def in_skew(self, skew: int, least: IntArray, most: IntArray) -> int:
        """Move as little as possible, with loads up to `skew` off those of the best balance.

        Args:
            skew: Partitions more, or fewer.
            least: Of each kind the fewest partitions that a member has in best-balanced plans.
            most: And the most.

        Returns:
            How many partitions move.
        """
        self.start()
        low = np.maximum(least - skew, 0)
        members = self.nodes.members
        self.nodes.sure, self.nodes.more = low * members, (most + skew - low) * members
        if self.contraction.rack_of is not None:
            self.split(self.contraction.rack_of)
        self.split_owners()
        self.send(self.owned(), keep=True)
        there = nonzero(self.carried)
        kept = int(np.minimum(self.carried[there], self.free[there]).sum())
        return int((self.group.owner != NOBODY).sum()) - kept

    def split(self, key: IntArray) -> None:
        """Tell the members of a node apart by a key, 0 to M."""
        before = self.nodes.members.size
        self.nodes, parent = self.nodes.split(key)
        if parent.size > before:
            self.open(self.arcs.split_nodes(parent))
        elif self.carried.any():
            self.open(self.arcs)

    def split_owners(self) -> None:
        """Make a node of each member that owns more than it is sure to get."""
        nodes, owner = self.nodes, self.group.owner
        owned = np.bincount(owner + 1, minlength=nodes.of_member.size + 1)[1:]
        sure = (nodes.sure // nodes.members)[nodes.of_member]
        self.split(np.where(owned > sure, np.arange(1, owned.size + 1), 0))

    def local(self) -> IntArray:
        """(E,) which partitions cost nothing if they are to be in their racks: all on an arc, or none."""
        rack_of, is_local = self.contraction.rack_of, self.contraction.is_local
        assert rack_of is not None and is_local is not None  # noqa: PT018, S101 - asked where racks matter
        rack = np.empty_like(self.nodes.members)
        rack[self.nodes.of_member] = rack_of
        self.tick()
        place = rack[self.arcs.nodes]
        place += self.arcs.cells * is_local.shape[1]
        free = np.zeros_like(place)
        self.tick()
        free[np.flatnonzero(is_local.reshape(-1)[place])] = UNLIMITED
        return free

    def owned(self) -> IntArray:
        """(E,) which partitions cost nothing if they are to stay: those of each cell that the node owns."""
        self.tick()
        self.stays_on = self.arc_of_owned()
        self.tick()
        return self.number_of_owned()

    def number_of_owned(self) -> IntArray:
        """(E,) how many partitions stay on each arc if all do."""
        return np.bincount(self.stays_on - _SHUT, minlength=self.arcs.size - _SHUT)[-_SHUT:]

    def arc_of_owned(self) -> IntArray:
        """(N,) the arc that each partition is on if it stays; `_NO_OWNER`, or `_SHUT` if no plan keeps it."""
        owner, nodes = self.group.owner, self.nodes.members.size
        cells, node = self.contraction.cell_of, self.nodes.of_member[owner]
        if self.supply.size * nodes <= 4 * owner.size:
            table = np.full(self.supply.size * nodes, _SHUT)
            table[self.arcs.cells * nodes + self.arcs.nodes] = np.arange(self.arcs.size)
            arc = table[cells * nodes + node]
        else:
            starts = self.arcs.starts(self.supply.size)
            end = starts[cells + 1]
            arc = find_in_runs(self.arcs.nodes, starts[cells], end, node)
            is_there = arc < end
            is_there[is_there] = self.arcs.nodes[arc[is_there]] == node[is_there]
            arc = np.where(is_there, arc, _SHUT)
        return np.where(owner == NOBODY, _NO_OWNER, arc)

    def sizes(self) -> Sizes:
        """The members of the nodes, and what each of them is sure to get and may get."""
        nodes = self.nodes
        weight = np.empty_like(nodes.members)
        weight[nodes.of_member] = self.group.weights
        lower = nodes.sure // nodes.members
        return Sizes(
            members=nodes.members, weight=weight, lower=lower, upper=lower + nodes.more // nodes.members
        )

    def level(self) -> Levels:
        """Spread the loads evenly, within what nodes are sure to get and may get."""
        network = self.network(all_same(UNLIMITED, self.arcs.size), self.carried - self.settled)
        levels = find_levels(network, self.sizes(), self.tick)
        self.carried = added(self.settled, network.flow)
        return levels

    def network(self, free: IntArray, flow: IntArray) -> FlowNetwork:
        """All of the network with a flow beyond what is settled."""
        self.tick()
        carried = added(self.settled, flow)
        there = nonzero(carried)
        carried = carried[there]
        out = sums(self.arcs.cells[there], carried, self.supply.size)
        load = sums(self.arcs.nodes[there], carried, self.nodes.members.size)
        network = FlowNetwork(
            starts=self.arcs.starts(self.supply.size),
            heads=self.arcs.nodes,
            supply=self.supply - out,
            base=self.nodes.sure,
            extra=self.nodes.more,
            pool=0,
            free=free,
            high=self.high,
            flow=flow,
            load=load,
        )
        network.tails = self.arcs.cells
        return network

    def send(self, free: IntArray, *, keep: bool = False) -> None:
        """Make the flow a cheapest one, block by block.

        Args:
            free: (E,) how many partitions cost nothing on each arc, beyond those that are settled.
            keep: Whether to begin with as many of these as there is room for.

        Raises:
            _NoRoomError: The blocks are not those of a best balance.
        """
        whole = self.network(free, self.room_for(free) if keep else np.zeros_like(free))
        self.free = free
        sizes = whole.supply.size, whole.load.size, whole.load.size
        in_cells, in_nodes, in_pools = (np.zeros(size, dtype=np.int64) for size in sizes)
        self.distance = in_cells, in_nodes, in_pools
        for cells, nodes, arcs in self.blocks():
            self.tick()
            part = part_of(whole, cells, nodes, arcs)
            taken = np.maximum(part.load, part.base).sum()
            part.pool = int(part.supply.sum() + part.load.sum() - taken)
            sent = send_if_any(part, self.tick)
            if sent.stuck:
                raise _NoRoomError
            self.tick()
            if part is not whole:
                whole.flow[arcs] = part.flow
            in_cells[cells], in_nodes[nodes], in_pools[nodes] = sent.cells, sent.nodes, sent.pool
        self.carried = added(self.settled, whole.flow)

    def room_for(self, wanted: IntArray) -> IntArray:
        """(E,) how much of what is wanted fits: nodes that want too much get of each cell in proportion."""
        nodes, block = self.nodes, self.nodes.block
        wanted = np.minimum(wanted, self.high)
        wanting = nonzero(wanted)
        total = sums(self.arcs.nodes[wanting], wanted[wanting], nodes.members.size)
        if (total <= nodes.sure).all():
            return wanted
        over = clipped(total - nodes.sure, 0, nodes.more)
        # Of each block's pool the first nodes get what they want.
        blocks = int(block.max()) + 1
        pool = sums(self.cell_block, self.supply, blocks) - sums(block, nodes.sure, blocks)
        order = np.argsort(block, kind="stable")
        before = before_in_run(block[order], over[order])
        granted = np.empty_like(over)
        granted[order] = clipped(pool[block[order]] - before, 0, over[order])
        room = np.minimum(total, nodes.sure + granted)
        short = room < total
        arcs = wanting[short[self.arcs.nodes[wanting]]]
        arcs = arcs[np.argsort(self.arcs.nodes[arcs], kind="stable")]
        node = self.arcs.nodes[arcs]
        part = wanted[arcs] * room[node] // total[node]
        left = (room - sums(node, part, room.size))[node]
        spare = (part < wanted[arcs]).astype(np.int64)
        wanted[arcs] = part + ((spare > 0) & (before_in_run(node, spare) < left))
        return wanted

    def blocks(self) -> Iterator[tuple[Chosen, Chosen, Chosen]]:
        """Cells, nodes and arcs of each block."""
        number = int(self.nodes.block.max()) + 1
        if number == 1:
            yield ALL, ALL, ALL
            return
        bounds = np.arange(1, number)
        parts = []
        for block in (self.cell_block, self.nodes.block, self.cell_block[self.arcs.cells]):
            order = np.argsort(block, kind="stable")
            parts.append(np.split(order, np.searchsorted(block[order], bounds)))
        yield from zip(*parts, strict=True)

    def settle(self) -> None:
        """Shut and fix what is the same in all cheapest flows, as the dual solution tells."""
        self.tick()
        cell, node, pool = self.distance
        nodes, high = self.nodes, self.high
        saved = node - pool
        sure = np.where(saved < 0, nodes.sure + nodes.more, nodes.sure)
        self.nodes = replace(nodes, sure=sure, more=np.where(saved == 0, nodes.more, 0))
        # What one more partition costs on an arc, in all: `excess` up to the free ones, 1 more beyond.
        if cell.size and cell.min() == cell.max() and node.min() == node.max():
            self.settle_all(int(cell[0] - node[0]))
            return
        excess = np.repeat(cell, np.diff(self.arcs.starts(cell.size)))
        excess -= node[self.arcs.nodes]
        self.tick()
        left = np.minimum(self.free, high)
        left[np.flatnonzero(excess > 0)] = 0
        self.tick()
        saving = np.flatnonzero(excess < 0)
        if saving.size:
            fixed = np.where(excess[saving] < -1, high[saving], left[saving])
            self.tick()
            left[saving] = high[saving] - fixed
            if fixed.any():
                self.settled = self.settled.copy()
                self.settled[saving] += fixed
        self.high = left

    def settle_all(self, excess: int) -> None:
        """The same if all arcs have one excess."""
        high = np.minimum(self.free, self.high)
        if excess < 0:
            fixed = self.high if excess < -1 else high
            self.settled = self.settled + fixed
            high = self.high - fixed
        elif excess > 0:
            high = all_same(0, self.arcs.size)
        self.high = high

    def reach(self, levels: Levels) -> tuple[IntArray, IntArray]:
        """Of each kind the fewest and the most partitions that a member has in any best-balanced plan."""
        self.tick()
        members = self.nodes.members
        load = sums(self.arcs.nodes, self.carried, members.size)
        gives, takes = load > levels.sure, load < levels.sure + levels.more
        arcs, carrying = self.arcs, self.arcs.at(nonzero(self.carried))
        if levels.node_block.any():
            arcs, carrying = (each.inside(levels.cell_block, levels.node_block) for each in (arcs, carrying))
        self.tick()
        # A node can have one more if a chain of exchanges leads to it from one that can give; or one less.
        cells = self.supply.size
        can_take = _spread(gives, carrying, arcs, cells, self.tick)
        can_give = _spread(takes, arcs, carrying, cells, self.tick)
        sure, one = levels.sure // members, levels.more > 0
        # Members of one node can change places: between its bounds each of them can have either load.
        return sure + (one & ~takes & ~can_give), sure + (one & (gives | can_take))

    def hand_out(self) -> IntArray:
        """(N,) the owner of each partition by what the arcs carry."""
        self.tick()
        group, arcs, nodes = self.group, self.arcs, self.nodes
        owner = group.owner.copy()
        kept = np.zeros_like(self.carried)
        if (owner != NOBODY).any():
            arc = self.stays_on
            owned = self.number_of_owned()
            kept = np.minimum(owned, self.carried)
            owner[arc == _SHUT] = NOBODY
            release(group, owner, kind=np.maximum(arc, -1), has=owned, keeps=kept)
        self.tick()
        new = self.carried - kept
        there = nonzero(new)
        free = (owner == NOBODY).nonzero()[0]
        by_cell = stable_order(self.contraction.cell_of[free], self.supply.size)
        to = np.empty_like(free)
        to[by_cell] = arcs.nodes[there].repeat(new[there])
        by_node = stable_order(to, nodes.members.size)
        coming = np.bincount(to, minlength=nodes.members.size)
        loads = np.bincount(owner + 1, minlength=nodes.of_member.size + 1)[1:]
        up_to = ((nodes.sure + nodes.more) // nodes.members)[nodes.of_member]
        up_to = np.where((coming > 0)[nodes.of_member], up_to, 0)
        member = least_loaded(loads, up_to, nodes.of_member)
        slots = np.bincount(nodes.of_member[member], minlength=nodes.members.size)
        first = slots.cumsum() - slots
        chosen = np.arange(free.size) + (first - (coming.cumsum() - coming)).repeat(coming)
        owner[free[by_node]] = member[chosen]
        return owner


def _spread(start: BoolArray, back: Arcs, on: Arcs, cells: int, tick: Tick) -> BoolArray:
    """The nodes that are reached from some, back over arcs to cells and on over others."""
    reached, count = np.zeros_like(start), -1
    while int(reached.sum()) > count:
        count = int(reached.sum())
        tick()
        reached |= on.nodes_of(back.cells_of(start | reached, cells), start.size)
    return reached
