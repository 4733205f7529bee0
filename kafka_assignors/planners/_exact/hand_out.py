"""Which partitions stay with their owners, and who gets the others, once the numbers are settled."""

import numpy as np

from kafka_assignors._model.arrays import NOBODY, IntArray, stable_order
from kafka_assignors._model.group import Group


def release(group: Group, owner: IntArray, *, kind: IntArray, has: IntArray, keeps: IntArray) -> None:
    """Take partitions from their owners: of each kind the lowest ids stay, in any topic.

    Args:
        group: The group.
        owner: (N,) the owners, changed in place.
        kind: (N,) the kind of each partition; -1 for those that are not in question.
        has: How many partitions there are of each kind.
        keeps: How many of each kind stay.
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


def least_loaded(loads: IntArray, up_to: IntArray, node: IntArray) -> IntArray:
    """Members by node, in the order in which they get a partition each: the least loaded first.

    Args:
        loads: (M,) the partitions that each member has.
        up_to: (M,) the partitions that it may have in the end.
        node: (M,) its node.
    """
    slots = np.maximum(up_to - loads, 0)
    member = np.arange(loads.size).repeat(slots)
    level = np.arange(member.size) - (slots.cumsum() - slots - loads).repeat(slots)
    key = node[member] * (int(up_to.max()) + 1) + level
    return member[stable_order(key, int(key.max(initial=0)) + 1)]
