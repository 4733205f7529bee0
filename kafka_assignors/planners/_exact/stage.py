"""How far a plan has come: how many partitions of each cell go to each node. Each step makes a new stage."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kafka_assignors._model.arrays import (
    NOBODY,
    BoolArray,
    IntArray,
    added,
    all_same,
    chosen_of,
    distinct,
    find_in_runs,
    nonzero,
    sums,
)
from kafka_assignors._model.group import Group
from kafka_assignors._model.tick import Tick
from kafka_assignors.planners._exact.cells import Arcs, Contraction
from kafka_assignors.planners._exact.flow import UNLIMITED, FlowNetwork
from kafka_assignors.planners._exact.levels import Sizes

NO_OWNER, SHUT = -1, -2
"""What stands for an arc where there is none."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Nodes:
    """The members, as nodes: the node of each member (M,), and of each node (V,) its members and its block.

    `sure` and `more` are partitions that its members get for certain, and that they may get beyond.
    """

    of_member: IntArray
    members: IntArray
    sure: IntArray
    more: IntArray
    block: IntArray

    def split(self, key: IntArray) -> tuple["Nodes", IntArray]:
        """The nodes by a key of each member (0..M) besides; and the node that each new one is a part of."""
        first, of_member = distinct(self.of_member * (self.of_member.size + 1) + key)
        parent = self.of_member[first]
        members = np.bincount(of_member)
        parts = Nodes(
            of_member=of_member,
            members=members,
            sure=self.sure[parent] // self.members[parent] * members,
            more=self.more[parent] // self.members[parent] * members,
            block=self.block[parent],
        )
        return parts, parent


@dataclass(frozen=True, kw_only=True, eq=False)
class Stage:
    """What is known after a step.

    Attributes:
        contraction: The group, contracted.
        tick: See `plan_exact`.
        supply: (A,) the partitions of each cell.
        nodes: The nodes.
        cell_block: (A,) the block of each cell.
        arcs: The arcs that are open.
        carried: (E,) partitions that each arc carries.
        settled: (E,) those of them that it carries in every flow that is as good as this one.
        high: (E,) the most that it may carry beyond the settled ones.
        stays_on: (N,) by the last step for moves: see `arc_of_owned`.
    """

    contraction: Contraction
    tick: Tick
    supply: IntArray
    nodes: Nodes
    cell_block: IntArray
    arcs: Arcs
    carried: IntArray
    settled: IntArray
    high: IntArray
    stays_on: IntArray

    @classmethod
    def start(cls, contraction: Contraction, tick: Tick) -> Self:
        """Kinds of members as nodes, that may get anything; all arcs are open and carry nothing."""
        tick()
        kinds, arcs = contraction.kind_of, contraction.arcs
        members, supply = np.bincount(kinds), np.bincount(contraction.cell_of)
        nothing = np.zeros(members.size, dtype=np.int64)
        return cls(
            contraction=contraction,
            tick=tick,
            supply=supply,
            nodes=Nodes(
                of_member=kinds,
                members=members,
                sure=nothing,
                more=members * contraction.group.size,
                block=nothing,
            ),
            cell_block=np.zeros(supply.size, dtype=np.int64),
            arcs=arcs,
            carried=all_same(0, arcs.size),
            settled=all_same(0, arcs.size),
            high=all_same(UNLIMITED, arcs.size),
            stays_on=np.empty(0, dtype=np.int64),
        )

    @property
    def group(self) -> Group:
        return self.contraction.group

    def bounded(self, sure: IntArray, more: IntArray) -> Self:
        """With what nodes get for certain, and may get beyond."""
        return replace(self, nodes=replace(self.nodes, sure=sure, more=more))

    def opened(self, arcs: Arcs) -> Self:
        """With these arcs, which carry nothing."""
        self.tick()
        nothing = all_same(0, arcs.size)
        return replace(self, arcs=arcs, carried=nothing, settled=nothing, high=all_same(UNLIMITED, arcs.size))

    def only(self, chosen: BoolArray) -> Self:
        """With some of the arcs; the others carry nothing."""
        return replace(self.opened(self.arcs.only(chosen)), carried=self.carried[chosen])

    def without_shut(self) -> Self:
        """Without the arcs that `settle` has shut, if they are most: often all but a few thousand."""
        self.tick()
        is_open = self.high > 0
        is_open[nonzero(self.settled)] = True
        if 2 * np.count_nonzero(is_open) > self.arcs.size:
            return self
        chosen = np.flatnonzero(is_open)
        carried, settled, high = (chosen_of(each, chosen) for each in (self.carried, self.settled, self.high))
        left = replace(self, arcs=self.arcs.at(chosen), carried=carried, settled=settled, high=high)
        return replace(left, stays_on=left.arc_of_owned())

    def split(self, key: IntArray) -> Self:
        """With the members of a node told apart by a key, 0 to M."""
        nodes, parent = self.nodes.split(key)
        made = replace(self, nodes=nodes)
        if parent.size > self.nodes.members.size:
            return made.opened(self.arcs.split_nodes(parent))
        return made.opened(self.arcs) if self.carried.any() else made

    def split_owners(self) -> Self:
        """With a node of each member that owns more than it is sure to get."""
        nodes, owner = self.nodes, self.group.owner
        owned = np.bincount(owner + 1, minlength=nodes.of_member.size + 1)[1:]
        sure = (nodes.sure // nodes.members)[nodes.of_member]
        return self.split(np.where(owned > sure, np.arange(1, owned.size + 1), 0))

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

    def number_of_owned(self) -> IntArray:
        """(E,) how many partitions stay on each arc if all do."""
        return np.bincount(self.stays_on - SHUT, minlength=self.arcs.size - SHUT)[-SHUT:]

    def arc_of_owned(self) -> IntArray:
        """(N,) the arc that each partition is on if it stays; `NO_OWNER`, or `SHUT` if no plan keeps it."""
        owner, nodes = self.group.owner, self.nodes.members.size
        cells, node = self.contraction.cell_of, self.nodes.of_member[owner]
        if self.supply.size * nodes <= 4 * owner.size:
            table = np.full(self.supply.size * nodes, SHUT)
            table[self.arcs.cells * nodes + self.arcs.nodes] = np.arange(self.arcs.size)
            arc = table[cells * nodes + node]
        else:
            starts = self.arcs.starts(self.supply.size)
            end = starts[cells + 1]
            arc = find_in_runs(self.arcs.nodes, starts[cells], end, node)
            is_there = arc < end
            is_there[is_there] = self.arcs.nodes[arc[is_there]] == node[is_there]
            arc = np.where(is_there, arc, SHUT)
        return np.where(owner == NOBODY, NO_OWNER, arc)

    def sizes(self) -> Sizes:
        """The members of the nodes, and what each of them is sure to get and may get."""
        nodes = self.nodes
        weight = np.empty_like(nodes.members)
        weight[nodes.of_member] = self.group.weights
        lower = nodes.sure // nodes.members
        return Sizes(
            members=nodes.members, weight=weight, lower=lower, upper=lower + nodes.more // nodes.members
        )

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
