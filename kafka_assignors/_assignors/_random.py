"""The `random` strategy."""

import numpy as np

from kafka_assignors._assignors._adapter import Assignor
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors.planners import plan_random


class RandomAssignor(Assignor):
    """Every partition to a subscriber drawn at random in each rebalance, each with the same chance.

    Loads are uneven, and almost everything moves in every rebalance. It is for tests, and for consumers so
    different in speed that a backlog should not stay where it is.

    Args:
        rack: Sent to the leader, not used here.
        seed: Makes this member's plans repeatable whenever it leads; drawn by the system if None.
    """

    name = "random"

    def __init__(self, *, rack: str | None = None, seed: int | None = None) -> None:
        super().__init__(rack=rack)
        self._generator = np.random.default_rng(seed)

    def plan(self, group: Group) -> Plan:
        """Plan by `plan_random`."""
        return plan_random(group, self._generator)
