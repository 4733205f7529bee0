"""A leader's care that what it held back in a cooperative rebalance is given away in the end."""

import logging
import threading
import weakref
from dataclasses import replace
from typing import Final

import numpy as np

from kafka_assignors.assignors.host import Host
from kafka_assignors.plan import Plan
from kafka_assignors.planners.cooperative import awaited_holders, hand_over

log = logging.getLogger(__name__)

PATIENCE: Final = 3
"""Delivered rounds in a row in which one holder of one partition is waited for."""

Hold = tuple[str, int, str]
"""A topic, a partition id, and the member id of who holds it."""


class HandOver:
    """What this member, leading, held back, from whom, and for how many rounds.

    A holder that is told to let go joins again by itself, and the round that this starts gives the partition
    away. But a claim can be stale: kafka-python's own class goes on claiming what it lost. Then nobody lets
    go, no round follows, and the partition has no owner until the next change of the group. So the
    leader starts a round itself if it hears of none; by then every member has been told what it has, and
    claims that. A holder that after some rounds still claims what it was told to let go is not believed.
    """

    def __init__(self) -> None:
        self._awaited: frozenset[Hold] = frozenset()  # by the plan of the present rebalance
        self._rounds: dict[Hold, int] = {}
        self._timer: threading.Timer | None = None

    def begin(self) -> None:
        """A rebalance begins."""
        self._awaited = frozenset()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def apply(self, plan: Plan) -> Plan:
        """The plan for this round."""
        group = plan.group

        def hold(partition: int, member: int) -> Hold:
            return (*group.name_of(partition), group.members[member].member_id)

        pairs = awaited_holders(plan).tolist()
        stuck = [pair for pair in pairs if self._rounds.get(hold(*pair), 0) >= PATIENCE]
        if stuck:
            log.error(
                "No longer waiting for holders that were told %d times to let go: %s",
                PATIENCE,
                ", ".join("{2} of {0}-{1}".format(*hold(*pair)) for pair in stuck),
            )
            believed = ~(group.holders[:, None] == np.array(stuck)).all(axis=2).any(axis=1)
            plan = Plan(replace(group, holders=group.holders[believed]), plan.partitions, plan.bounds)
        self._awaited = frozenset(hold(*pair) for pair in awaited_holders(plan).tolist())
        return hand_over(plan)

    def delivered(self, host: Host | None) -> None:
        """The plan of the present rebalance, if it was this member's, has reached the group."""
        self._rounds = {held: self._rounds.get(held, 0) + 1 for held in self._awaited}
        if self._awaited and host is not None:
            coordinator = weakref.ref(host.coordinator)
            # A round that a holder starts reaches this member with its next heartbeat.
            delay = 2 * host.heartbeat_interval
            self._timer = threading.Timer(delay, _rejoin, (coordinator, len(self._awaited)))
            self._timer.daemon = True
            self._timer.start()


def _rejoin(coordinator: "weakref.ref[object]", count: int) -> None:
    alive = coordinator()
    if alive is not None:
        log.warning("%d partitions were not let go; joining again to give them away", count)
        Host(alive).request_rejoin()
