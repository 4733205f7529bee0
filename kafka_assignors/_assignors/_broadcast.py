"""The `broadcast` strategy."""

from kafka_assignors._assignors._adapter import Assignor
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors.planners import plan_broadcast


class BroadcastAssignor(Assignor):
    """Every member gets every partition of its topics, so that each message reaches all of them.

    **Offsets are the group's, not the member's.** All members commit to the same offset of a partition and
    overwrite each other: the last commit of any member counts. A member that joins, or comes back, starts
    there. So it misses messages that others committed before it had them, or gets some again. Do not use it
    where every member must see every message across restarts. Give each member a group id of its own instead,
    or commit nothing (`enable_auto_commit=False`) and seek by yourself.
    """

    name = "broadcast"
    shared = True

    def plan(self, group: Group) -> Plan:
        """Plan by `plan_broadcast`."""
        return plan_broadcast(group)
