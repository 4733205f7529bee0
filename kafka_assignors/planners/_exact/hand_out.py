"""Which partitions stay with their owners, and who gets the others, once the numbers are settled."""

import numpy as np

from kafka_assignors._model.arrays import NOBODY, IntArray, nonzero, stable_order, sums
from kafka_assignors._model.group import Group
from kafka_assignors.planners._exact.stage import SHUT, Stage


def hand_out(stage: Stage) -> IntArray:
    """(N,) the owner of each partition by what the arcs carry."""
    stage.tick()
    group, nodes, carried = stage.group, stage.nodes, stage.carried
    owner = group.owner.copy()
    kept = np.zeros_like(carried)
    if (owner != NOBODY).any():
        arc = stage.stays_on
        owned = stage.number_of_owned()
        kept = np.minimum(owned, carried)
        owner[arc == SHUT] = NOBODY
        release(group, owner, kind=np.maximum(arc, -1), has=owned, keeps=kept)
    stage.tick()
    new = carried - kept
    there = nonzero(new)
    free = (owner == NOBODY).nonzero()[0]
    by_cell = stable_order(stage.contraction.cell_of[free], stage.supply.size)
    to = np.empty_like(free)
    to[by_cell] = _in_turn(stage, there, new[there])
    by_node = stable_order(to, nodes.members.size)
    coming = np.bincount(to, minlength=nodes.members.size)
    loads = np.bincount(owner + 1, minlength=nodes.of_member.size + 1)[1:]
    # None gets above the load to which all that comes would raise a node's members if it were even.
    even = -(-(sums(nodes.of_member, loads, nodes.members.size) + coming) // nodes.members)
    up_to = np.minimum((nodes.sure + nodes.more) // nodes.members, even)[nodes.of_member]
    up_to = np.where((coming > 0)[nodes.of_member], up_to, 0)
    member = _least_loaded(loads, up_to, nodes.of_member)
    slots = np.bincount(nodes.of_member[member], minlength=nodes.members.size)
    first = slots.cumsum() - slots
    chosen = np.arange(free.size) + (first - (coming.cumsum() - coming)).repeat(coming)
    owner[free[by_node]] = member[chosen]
    return owner


def _in_turn(stage: Stage, arcs: IntArray, new: IntArray) -> IntArray:
    """The node of each new partition, by cell. Its nodes take turns, so that all of them share its topics."""
    group, contraction = stage.group, stage.contraction
    cells, nodes = stage.arcs.cells[arcs], stage.arcs.nodes[arcs]
    to = nodes.repeat(new)
    is_shared = np.ones(stage.supply.size, dtype=np.bool_)
    if contraction.rack_of is None:  # then a topic is in one cell
        if is_shared.size == len(group.topics):
            return to
        is_shared = np.bincount(contraction.cell_of[group.topic_bounds[:-1]]) > 1
    shared = is_shared[cells] & (np.bincount(cells, minlength=1)[cells] > 1)
    cell, node, count = (each[shared].repeat(new[shared]) for each in (cells, nodes, new))
    before = (new[shared].cumsum() - new[shared]).repeat(new[shared])
    turn = (2 * (np.arange(count.size) - before) + 1) / count  # each node's turns are equally far apart
    to[shared.repeat(new)] = node[np.lexsort((turn, cell))]
    return to


def release(group: Group, owner: IntArray, *, kind: IntArray, has: IntArray, keeps: IntArray) -> None:
    """Take partitions from their owners: of each kind the lowest ids stay, in any topic.

    `owner` (N,) is changed in place. `kind` (N,) is -1 for partitions that are not in question.
    """
    short = keeps < has
    if not short.any():
        return
    partitions = (short[kind] & (kind >= 0)).nonzero()[0]
    partitions = partitions[group.partition_ids[partitions].argsort(kind="stable")]
    kinds = kind[partitions]
    order = stable_order(kinds, keeps.size)
    kinds = kinds[order]
    counts = np.bincount(kinds, minlength=keeps.size)
    place = np.arange(kinds.size) - (counts.cumsum() - counts)[kinds]
    owner[partitions[order[place >= keeps[kinds]]]] = NOBODY


def _least_loaded(loads: IntArray, up_to: IntArray, node: IntArray) -> IntArray:
    """Members by node, in the order in which they get a partition each: the least loaded first."""
    slots = np.maximum(up_to - loads, 0)
    member = np.arange(loads.size).repeat(slots)
    level = np.arange(member.size) - (slots.cumsum() - slots - loads).repeat(slots)
    key = node[member] * (int(up_to.max()) + 1) + level
    return member[stable_order(key, int(key.max(initial=0)) + 1)]
