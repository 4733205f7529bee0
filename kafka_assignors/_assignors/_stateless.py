"""The strategies that remember nothing: `range`, `roundrobin`, `broadcast` and `random`."""

import numpy as np

from kafka_assignors._assignors._adapter import Assignor
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors.planners import _broadcast, _random, _range, _round_robin


class RangeAssignor(Assignor):
    """Each topic in ranges, one range a subscriber: exactly what Kafka's RangeAssignor does.

    Equal partition ids of topics with equal partitions and subscribers go to one member, which is what joins
    need. Loads differ by up to one partition *per topic*. With `rack` set on members, partitions stay in the
    rack as far as the ranges' sizes allow (KIP-881).
    """

    name = "range"

    def plan(self, group: Group) -> Plan:
        """Plan as the class says."""
        return _range.plan_range(group)


class RoundRobinAssignor(Assignor):
    """All partitions in order to the members in turn: exactly what Kafka's RoundRobinAssignor does.

    If all members subscribe to the same topics, loads differ by at most one. Otherwise members that do not
    subscribe to a topic are skipped, and loads can differ by much.
    """

    name = "roundrobin"

    def plan(self, group: Group) -> Plan:
        """Plan as the class says."""
        return _round_robin.plan_round_robin(group)


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
        """Plan as the class says."""
        return _broadcast.plan_broadcast(group)


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
        """Plan as the class says."""
        return _random.plan_random(group, self._generator)
