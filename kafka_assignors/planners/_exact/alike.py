"""The plan of a group whose members are all alike: no search, and the plan that Kafka's classes make.

With equal subscriptions, and no racks or weights that matter, the best balance and the fewest moves leave
four choices open. Here they are made as Kafka's `ConstrainedAssignmentBuilder` (AbstractStickyAssignor, 4.x)
makes them. So a group led by Java and by this package in turn gets one plan:

1. Who keeps one partition more, if more members have it than can: the first in the order in which a
   `java.util.HashMap` walks member ids.
2. What a member keeps that has too much: its lowest partition ids, then topic names.
3. Who gets what is free: members below the quota in turn, by member id, one each in a round.
4. Who gets what is then left: members at the quota. First come those that were there from the beginning, by
   member id, then the others in the order in which they reached it.

Ids of one bin of the hash map are walked as they were put. Java puts them in the order of the JoinGroup
response, which changes with the coordinator. Here it is their own order, so that each leader plans the same.
"""

import numpy as np

from kafka_assignors._model.arrays import NOBODY, IntArray, stable_order
from kafka_assignors._model.group import Group
from kafka_assignors._wire.java.orders import hash_order, string_hashes, string_order
from kafka_assignors.planners._exact.hand_out import release


def share_evenly(group: Group) -> IntArray:
    """(N,) the owners: `extras` members get `quota` + 1 partitions, the others `quota`."""
    quota, extras = divmod(group.size, len(group.members))
    owner = group.owner.copy()
    owned = np.bincount(owner + 1, minlength=len(group.members) + 1)[1:]
    keeps = np.minimum(owned, quota)
    above = (owned > quota).nonzero()[0]
    by_id = _by_id(group)
    if 0 < extras < above.size:
        above = _walked(group, by_id, above)[:extras]
    elif not extras:
        above = above[:0]
    keeps[above] += 1
    release(group, owner, kind=owner, has=owned, keeps=keeps)
    free = (owner == NOBODY).nonzero()[0]
    owner[free] = _in_turn(by_id, quota - keeps)[: free.size]
    return owner


def _in_turn(members: IntArray, missing: IntArray) -> IntArray:
    """Members in the order in which they get a partition each: choices 3 and 4.

    `missing` (M,) is what each lacks of the quota; below 0 it gets nothing.
    """
    lacks = missing[members]
    rounds = np.maximum(lacks, 0)
    end = int(rounds.max()) + 1
    below = members.repeat(rounds)
    number = np.arange(below.size) - (rounds.cumsum() - rounds).repeat(rounds)
    at_quota = lacks >= 0
    last = members[at_quota][stable_order(lacks[at_quota], end)]
    return np.concatenate((below[stable_order(number, end)], last))


def _by_id(group: Group) -> IntArray:
    """(M,) the members by id, in Java's order of strings: their own order, unless some are static."""
    ids, instances = group.members.ids, group.members.instance_ids
    if instances.count(None) == len(ids):
        return np.arange(len(ids))
    return np.array(sorted(range(len(ids)), key=lambda number: string_order(ids[number])))


def _walked(group: Group, by_id: IntArray, chosen: IntArray) -> IntArray:
    """Some of the members, as a HashMap of all walks them: choice 1."""
    ids = group.members.ids
    hashes = string_hashes(ids).tolist()
    is_chosen = np.zeros(len(ids), dtype=np.bool_)
    is_chosen[chosen] = True
    walked: IntArray = np.array(hash_order(by_id.tolist(), hashes.__getitem__))
    first: IntArray = walked[is_chosen[walked]]
    return first
