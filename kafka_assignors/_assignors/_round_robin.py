"""The `roundrobin` strategy."""

from kafka_assignors._assignors._adapter import Assignor
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors.planners import plan_round_robin


class RoundRobinAssignor(Assignor):
    """All partitions in order to the members in turn: exactly what Kafka's RoundRobinAssignor does.

    If all members subscribe to the same topics, loads differ by at most one. Otherwise members that do not
    subscribe to a topic are skipped, and loads can differ by much.
    """

    name = "roundrobin"

    def plan(self, group: Group) -> Plan:
        """Plan by `plan_round_robin`."""
        return plan_round_robin(group)
