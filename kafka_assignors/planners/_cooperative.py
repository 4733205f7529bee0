"""The hand-over of a cooperative rebalance (KIP-429): nothing is given away before it is let go."""

import numpy as np

from kafka_assignors._model.arrays import NOBODY, IntArray
from kafka_assignors._model.plan import Plan


def first_round(plan: Plan) -> tuple[Plan, IntArray]:
    """The plan for this round, as `hand_over` makes it, and whom it waits for, as `awaited_holders` says."""
    awaited = awaited_holders(plan)
    if not awaited.size:
        return plan, awaited
    owner = plan.owner.copy()
    owner[plan.whole(awaited[:, 0])] = NOBODY
    return Plan.from_owner(plan.group, owner, units=plan.units), awaited


def hand_over(plan: Plan) -> Plan:
    """Leave out of a plan what somebody else still holds.

    A partition stays with its valid owner if that one holds it, and nobody else does in a generation as new.
    Any other partition is assigned only if no other member holds it at this moment. Otherwise nobody gets it
    in this round, its holder revokes it, and the next round assigns it. That a holder's claim is stale, or
    that its member no longer subscribes, makes no difference: it may be consuming all the same.

    Partitions that belong together (`Plan.units`) are revoked and assigned together. If one of them has to
    wait, nobody gets any of them, and all holders revoke theirs.

    Returns:
        The plan for this round; the same plan if nothing is held by others.
    """
    return first_round(plan)[0]


def awaited_holders(plan: Plan) -> IntArray:
    """(K, 2) pairs (partition, member): who must revoke what before the plan can be carried out."""
    group, claims = plan.group, plan.group.claims
    partition, holder = group.holders.T
    generation = claims.generation[claims.held]
    owner, before = plan.owner[partition], group.owner[partition]
    # In which generation each valid owner holds its partition; one that only remembers it holds it in none.
    valid = np.full(group.size, np.iinfo(np.int64).min)
    by_owner = holder == before
    valid[partition[by_owner]] = generation[by_owner]
    stays = (owner == before) & (generation < valid[partition])
    waits = (owner != holder) & (owner != NOBODY) & ~stays
    if plan.units is not None:
        waits = np.isin(partition, plan.units.whole(partition[waits]))
    waiting: IntArray = group.holders[waits]
    return waiting
