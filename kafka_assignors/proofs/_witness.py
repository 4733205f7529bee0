"""Better plans that prove a plan not to be the best: from counts that change to partitions that move."""

from collections.abc import Iterable

import numpy as np

from kafka_assignors._model.arrays import NOBODY, IntArray
from kafka_assignors._model.plan import Plan
from kafka_assignors.proofs._findings import Move
from kafka_assignors.proofs._residual import Cells


def needed_moves(cells: Cells, given: IntArray) -> int:
    """The fewest moves with which members can have so many of each cell: (A,), see `Cells`."""
    return int(np.maximum(cells.prior - given, 0).sum())


def swapped(plan: Plan, cells: Cells, given: IntArray) -> IntArray:
    """The owners with one partition back at its prior owner, in exchange for an alike one.

    The plan has more moves than it needs: some member has others in place of its own.
    """
    owner, prior = plan.owner, plan.group.owner
    kept = cells.counts(np.where(owner == prior, owner, NOBODY))
    short = kept < np.minimum(given, cells.prior)
    pair = int(np.flatnonzero(short)[0])
    cell, member = int(cells.cell[pair]), int(cells.member[pair])
    alike = cells.cell_of == cell
    back = int(np.flatnonzero(alike & (prior == member) & (owner != member))[0])
    out = int(np.flatnonzero(alike & (prior != member) & (owner == member))[0])
    changed = owner.copy()
    changed[back], changed[out] = member, owner[back]
    return changed


def changed(plan: Plan, cells: Cells, steps: Iterable[tuple[int, int, int]], *, keep: bool) -> IntArray:
    """The owners after changes of counts; `keep` picks the partitions so that the fewest move.

    A step (source, cell, target) has a member with one fewer of a cell, and one with one more.
    """
    owner = plan.owner.copy()
    # Nobody's own is anybody's where it does not matter.
    prior = plan.group.owner if keep else np.full_like(owner, NOBODY)
    for source, cell, target in steps:
        _hand_on(owner, prior, np.flatnonzero(cells.cell_of == cell), (source, target))
    return owner


def moves_to(plan: Plan, owner: IntArray) -> tuple[Move, ...]:
    """The moves from the plan to other owners, as chains: where one goes to, the next one comes from."""
    group, before = plan.group, plan.owner
    waiting: dict[int, list[int]] = {}  # partitions that could go, by the member that has them
    for partition in np.flatnonzero(owner != before)[::-1].tolist():
        waiting.setdefault(int(before[partition]), []).append(partition)
    getters = set(owner[owner != before].tolist())
    starts = sorted(waiting, key=lambda member: (member in getters, member))
    moves = []
    for start in starts:
        member = start
        while waiting[start]:
            if not waiting.get(member):
                member = start
            partition = waiting[member].pop()
            topic, number = group.name_of(partition)
            source, member = group.members[member].member_id, int(owner[partition])
            target = group.members[member].member_id
            moves.append(Move(topic=topic, partition=number, source=source, target=target))
    return tuple(moves)


def _hand_on(owner: IntArray, prior: IntArray, alike: IntArray, ends: tuple[int, int]) -> None:
    """Let the first of two members have one fewer of the partitions `alike`, the second one more, in place.

    As many as possible are with their prior owner after that if they were before. For that the second one may
    have to get its own from a third member, that gets the first one's instead.
    """
    source, target = ends
    mine = alike[owner[alike] == source]
    # What the target owned before anything that was not the source's before anything.
    given = min(mine.tolist(), key=lambda p: (prior[p] != target, prior[p] == source))
    wanted = alike[(prior[alike] == target) & (owner[alike] != target)]
    if prior[given] != target and wanted.size:
        owner[given] = owner[wanted[0]]
        given = wanted[0]
    owner[given] = target
