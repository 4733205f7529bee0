"""What the best plan for a group reaches, by OR-tools: minimum-cost flow over single partitions.

A partition is a node with one unit of supply and an arc to each subscriber of its topic; a member has an arc
of capacity 1 to the sink for each slot that it could fill. Goals become one cost, a unit of an earlier goal
being more than later ones can sum up to. For small groups only.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import count
from math import lcm

import numpy as np
from ortools.graph.python.min_cost_flow import SimpleMinCostFlow

from kafka_assignors._model.group import NOBODY, Group, IntArray
from kafka_assignors._model.plan import Goal, Plan

_BEST = Goal()


@dataclass(frozen=True)
class Reached:
    """What a plan reaches.

    Attributes:
        balance: The sum of load^2 / weight.
        local: How many partitions are on a member in one of their racks; 0 where racks do not matter.
        moves: How many partitions move.
    """

    balance: Fraction
    local: int
    moves: int


class Oracle:
    def __init__(self, group: Group, goal: Goal = _BEST) -> None:
        self.group = group
        self.goal = goal
        self.size, self.members = group.size, range(len(group.members))
        self.scale = lcm(*(member.weight for member in group.members))
        pairs = [(p, m) for p, topic in enumerate(group.topic_of.tolist()) for m in group.subscribers[topic]]
        self.pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        prior = group.owner.tolist()
        self.moved = np.array([prior[p] not in {NOBODY, m} for p, m in pairs], dtype=np.int64)
        self.racks = _look_at_racks(group)
        self.away = np.array([self.racks and not self.is_local(p, m) for p, m in pairs], dtype=np.int64)
        # The most that all slots can cost, and one more.
        self.unit = self.scale * self.size**2 + 1

    def is_local(self, partition: int, member: int) -> bool:
        replicas = self.group.replica_racks
        return replicas is not None and self.group.members[member].rack in replicas[partition]

    def slot(self, member: int, number: int) -> int:
        """The cost of slot 1, 2, ... of a member for balance."""
        return self.scale // self.group.members[member].weight * (2 * number - 1)

    def reached(self, plan: Plan) -> Reached:
        owner, prior = plan.owner.tolist(), self.group.owner.tolist()
        loads = [owner.count(member) for member in self.members]
        return Reached(
            balance=sum(
                (Fraction(loads[m] ** 2, self.group.members[m].weight) for m in self.members), Fraction(0)
            ),
            local=sum(self.is_local(p, m) for p, m in enumerate(owner)) if self.racks else 0,
            moves=sum(was not in {NOBODY, now} for was, now in zip(prior, owner, strict=True)),
        )

    def plan(self) -> Plan:
        goal = self.goal
        if goal.max_skew is None and goal.max_moves is None:
            more = self.size + 1
            owner = self.solve(more * self.away + self.moved, lambda m, j: more**2 * self.slot(m, j))
            return Plan.from_owner(self.group, owner, goal)
        return self.in_window(self.skew)

    @cached_property
    def skew(self) -> int:
        least, budget = self.goal.max_skew or 0, self.goal.max_moves
        if budget is None:
            return least
        return next(skew for skew in count(least) if self.in_window(skew).moves <= budget)

    def window(self, skew: int) -> list[tuple[int, int]]:
        """The fewest and the most partitions that each member may have."""
        return [(max(0, lowest - skew), highest + skew) for lowest, highest in self._extremes]

    @cached_property
    def _extremes(self) -> list[tuple[int, int]]:
        # Two flows a member: made anew for each plan, they were seven tenths of what tests of windows took.
        return [(self.extreme(m, 1), self.extreme(m, -1)) for m in self.members]

    def extreme(self, member: int, cost: int) -> int:
        """The load of a member in the best-balanced plan where it is least (cost 1) or most (cost -1)."""
        more = self.size + 1
        nothing = np.zeros(len(self.pairs), dtype=np.int64)
        owner = self.solve(nothing, lambda m, j: more * self.slot(m, j) + (cost if m == member else 0))
        return int((owner == member).sum())

    def in_window(self, skew: int) -> Plan:
        """The plan with the fewest moves, then the best racks, then the best balance, in a window."""
        window = self.window(skew)
        more, must = self.size + 1, self.unit * (self.size + 1) ** 2

        def slot(member: int, number: int) -> int | None:
            lowest, highest = window[member]
            if number > highest:
                return None
            return self.slot(member, number) - (must if number <= lowest else 0)

        owner = self.solve(self.unit * (more * self.moved + self.away), slot)
        for member, (lowest, highest) in enumerate(window):
            assert lowest <= (owner == member).sum() <= highest
        return Plan.from_owner(self.group, owner, self.goal)

    def solve(self, pair_cost: IntArray, slot_cost: Callable[[int, int], int | None]) -> IntArray:
        """The member of each partition in a flow of least cost."""
        if not self.size:
            return np.empty(0, dtype=np.int64)
        slots = [(m, slot_cost(m, j)) for m in self.members for j in range(1, self.size + 1)]
        sink = self.size + len(self.members)
        tails = np.concatenate((self.pairs[:, 0], [self.size + m for m, cost in slots if cost is not None]))
        open_slots = [cost for _, cost in slots if cost is not None]
        heads = np.concatenate((self.pairs[:, 1] + self.size, [sink] * len(open_slots)))
        costs = np.concatenate((pair_cost, np.array(open_slots, dtype=np.int64)))
        # The solver multiplies costs by the number of nodes.
        assert int(np.abs(costs).max()) < 2**61 // (sink + 2)

        flow = SimpleMinCostFlow()
        arcs = flow.add_arcs_with_capacity_and_unit_cost(
            tails.astype(np.int32), heads.astype(np.int32), np.ones(tails.size, dtype=np.int64), costs
        )
        supplies = np.array([1] * self.size + [0] * len(self.members) + [-self.size], dtype=np.int64)
        flow.set_nodes_supplies(np.arange(sink + 1, dtype=np.int32), supplies)
        assert flow.solve() == flow.OPTIMAL
        used = np.asarray(flow.flows(arcs[: len(self.pairs)])) == 1
        owner = np.full(self.size, NOBODY, dtype=np.int64)
        owner[self.pairs[used, 0]] = self.pairs[used, 1]
        return owner


def _look_at_racks(group: Group) -> bool:
    """KIP-881: some member is in a rack of some replica, and not all partitions are in the same racks."""
    if group.replica_racks is None:
        return False
    mine = {member.rack for member in group.members if member.rack is not None}
    shared = any(mine & racks for racks in group.replica_racks)
    return shared and len(set(group.replica_racks)) > 1
