"""Certificates of all plans, those that keep partitions together among them.

With units of one size, a unit is a partition of a smaller group, and its proofs hold. With several sizes it
is a problem of packing. Then a bound says how far from best the balance can be: what is best if each
partition is by itself. No plan that keeps some together is better.
"""

from dataclasses import replace

from kafka_assignors._model.plan import Goal, Plan
from kafka_assignors._model.units import Units
from kafka_assignors.proofs import _goals as goals
from kafka_assignors.proofs._certificate import Examiner, require_complete
from kafka_assignors.proofs._findings import Certificate, Finding
from kafka_assignors.proofs._load_range import best_balance
from kafka_assignors.proofs._residual import Cells


def certify(plan: Plan) -> Certificate:
    """Check whether a plan reaches its goal.

    Args:
        plan: A complete plan of any planner: each partition with one member, who subscribes to its topic.
            Where partitions belong together, it counts in units of them.

    Raises:
        ValueError: The plan is not complete. A cooperative first round and a broadcast are not: ask for the
            certificate of the plan that the round leads to.
        OverflowError: The group is too large for sums of costs in 64 bits (10^8 kinds of partitions).
    """
    require_complete(plan)
    units = plan.units
    if units is None or units.first.size == plan.group.size:
        return Examiner(plan).certificate()
    if len({*units.sizes.tolist()}) > 1:
        return _bounded(plan, units)
    owner = plan.owner[units.first]
    found = Examiner(Plan.from_owner(units.as_group(plan.group), owner, plan.goal)).certificate()
    in_units = (replace(one, text=one.text.replace("partition", "unit")) for one in found.goals)
    return replace(found, goals=tuple(in_units))


def _bounded(plan: Plan, units: Units) -> Certificate:
    """How far from best a plan with units of several sizes can be."""
    cells, least = Cells.of(plan.group), best_balance(plan)
    found = []
    for name in ("balance", "racks", "moves") if cells.racks else ("balance", "moves"):
        value = goals.value(name, plan, cells, None)
        reason = "sought for units of each size, the largest first"
        if name == "balance":
            spread = plan.loads.max() - plan.loads.min()
            reason = f"no plan is below {goals.plain(least)}; loads differ by {spread}"
            if plan.goal == Goal():
                reason += f", of members with equal topics and weights by {units.spread} at most"
        is_best = value == least if name == "balance" else name == "moves" and not value
        found.append(
            Finding(
                name=name,
                value=value,
                text=goals.text(name, value, plan),
                proved=True if is_best else None,
                reason="" if is_best else reason,
            )
        )
    return Certificate(
        goal=plan.goal, goals=tuple(found), skew=None, allowed=(), cells=cells.count, arcs=0, rounds=0
    )
