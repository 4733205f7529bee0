"""What a plan reaches in each goal of a certificate, in numbers and in words."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from kafka_assignors._model.arrays import IntArray
from kafka_assignors._model.plan import Plan
from kafka_assignors.proofs._residual import Cells


@dataclass(frozen=True, kw_only=True, eq=False)
class Window:
    """The loads that options allow: `skew` partitions more, or fewer, than in any best-balanced plan.

    `lowest` and `highest` (M,) are the fewest and the most of each member.
    """

    skew: int
    lowest: IntArray
    highest: IntArray


def value(name: str, plan: Plan, cells: Cells, window: Window | None) -> int | Fraction:
    """What a plan reaches in a goal; see `Finding`."""
    loads, group = plan.loads, plan.group
    if name == "balance":
        weights: set[int] = {*group.weights.tolist()}  # a first call of numpy's `unique` imports numpy.ma
        return sum((Fraction(int((loads[group.weights == w] ** 2).sum()), w) for w in weights), Fraction(0))
    if name == "racks":
        return int((~cells.away)[cells.pair_of(np.arange(group.size), plan.owner)].sum())
    if name == "window" and window is not None:
        out = np.maximum(window.lowest - loads, 0) + np.maximum(loads - window.highest, 0)
        return int(out.sum())
    if name == "narrowest window":
        return 0 if window is None else window.skew
    return plan.moves


def text(name: str, reached: int | Fraction, plan: Plan) -> str:
    """The value that a plan reaches in a goal, in words."""
    loads, size = plan.loads, plan.group.size
    most, fewest = loads.max(initial=0), loads.min() if loads.size else 0
    return {
        "balance": f"{fewest} to {most} partitions a member, sum of load^2 / weight {plain(reached)}",
        "racks": f"{reached} of {size} partitions on a member in one of their racks",
        "moves": f"{reached} of {size} partitions move",
        "budget": f"{reached} partitions move, {plan.goal.max_moves} may",
        "window": f"loads are outside of what is allowed by {reached} partitions",
        "narrowest window": f"loads are up to {reached} away from best balance",
    }[name]


def gain(name: str, before: int | Fraction, after: int | Fraction) -> str:
    """What another plan would reach in a goal, in words."""
    return {
        "balance": f"load^2 / weight would sum up to {plain(after)} instead of {plain(before)}",
        "racks": f"{after} partitions would be in their rack instead of {before}",
        "moves": f"{after} partitions would move instead of {before}",
        "window": f"loads would be outside by {after} partitions instead of {before}",
    }[name]


def plain(number: int | Fraction) -> str:
    return str(int(number)) if number == int(number) else f"{float(number):.2f}"
