"""The hand-over of a cooperative rebalance (KIP-429): nothing is given away before it is let go."""

import numpy as np

from kafka_assignors.group import NOBODY
from kafka_assignors.plan import Plan


def hand_over(plan: Plan) -> Plan:
    """Leave out of a plan what somebody else still holds.

    A partition stays with its valid owner. Any other partition is given only if no other member holds
    it at this moment; otherwise nobody gets it in this round, its holder lets go of it, and
    the next round gives it away. That a holder's claim is stale, or that its member no longer subscribes,
    makes no difference: it may be consuming all the same.

    Returns:
        The plan for this round; the same plan if nothing is held by others.
    """
    group, owner = plan.group, plan.owner
    partition, holder = group.holders.T
    awaited = partition[(owner[partition] != holder) & (owner[partition] != group.owner[partition])]
    awaited = awaited[owner[awaited] != NOBODY]
    if not awaited.size:
        return plan
    owner = owner.copy()
    owner[awaited] = NOBODY
    return Plan.from_owner(group, owner)


def withheld(plan: Plan) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The partitions with subscribers that a plan gives to nobody: they need another round."""
    subscribed = np.array([bool(members) for members in plan.group.subscribers], dtype=np.bool_)
    return plan.unassigned[subscribed[plan.group.topic_of[plan.unassigned]]]
