"""The `range` strategy."""

from kafka_assignors._assignors._adapter import Assignor
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors.planners import plan_range


class RangeAssignor(Assignor):
    """Each topic in ranges, one range a subscriber: exactly what Kafka's RangeAssignor does.

    Equal partition ids of topics with equal partitions and subscribers go to one member, which is what joins
    need. Loads differ by up to one partition *per topic*. With `rack` set on members, partitions stay in the
    rack as far as the ranges' sizes allow (KIP-881).
    """

    name = "range"

    def plan(self, group: Group) -> Plan:
        """Plan by `plan_range`."""
        return plan_range(group)
