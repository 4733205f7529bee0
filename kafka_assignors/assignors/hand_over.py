"""A leader's care that what it held back in a cooperative rebalance is given away in the end."""

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from kafka_assignors.arrays import IntArray
from kafka_assignors.assignors.host import Cancel, Host
from kafka_assignors.group import Group
from kafka_assignors.members import Members
from kafka_assignors.plan import Plan
from kafka_assignors.planners.cooperative import first_round

log = logging.getLogger(__name__)

PATIENCE: Final = 3
"""Rounds in a row in which a member may claim what it was told to let go of."""

Partitions = Mapping[str, Collection[int]]
"""Partition ids by topic."""


class HandOver:
    """Whom this member, leading, waits for, and whom no longer.

    A holder that is told to let go joins again by itself, and the round that this starts gives the partition
    away. But a claim can be stale: kafka-python's own class goes on claiming what it lost. Then nobody lets
    go, no round follows, and the partition has no owner until the next change of the group. So the
    leader starts a round itself if it hears of none; by then every member has been told what it has, and
    claims that. A member that claims more than it was told, `PATIENCE` rounds in a row, is believed to have
    what it was told and no more.
    """

    def __init__(self) -> None:
        # By delivered plans: what each member that was waited for got, and how often it did not obey.
        self._told: dict[str, Partitions] = {}
        self._strikes: dict[str, int] = {}
        # The same by the plan of the present rebalance, which may not reach the group.
        self._telling: dict[str, Partitions] = {}
        self._striking: dict[str, int] = {}
        self._waiting = False
        self._joined: frozenset[str] = frozenset()
        # The members of the last delivered plan if it waits for some of them, else nobody.
        self._round_for: frozenset[str] = frozenset()
        self._cancel: Cancel | None = None

    def goes_on_with(self, group: Group) -> bool:
        """Whether a group is to be given what was held back from the same members in the round before."""
        return bool(self._round_for) and self._round_for == frozenset(group.members.ids)

    def begin(self) -> None:
        """A rebalance begins."""
        self._telling, self._striking, self._waiting = {}, {}, False
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def review(self, members: Members) -> Members:
        """The members, without the claims that are not believed."""
        disbelieved = {}
        for number, name in enumerate(members.ids):
            told = self._told.get(name)
            if told is not None and not _within(members[number].claims, told):
                strikes = self._strikes.get(name, 0) + 1
                self._striking[name] = strikes
                if strikes >= PATIENCE:
                    log.error(
                        "Not believing all that member %s says it holds: told %d times to let go of some, "
                        "it claims it all the same",
                        name,
                        PATIENCE,
                    )
                    disbelieved[number] = replace(members[number], claims=told)
        if not disbelieved:
            return members
        return Members.of(disbelieved.get(number, member) for number, member in enumerate(members))

    def apply(self, plan: Plan) -> tuple[Plan, IntArray]:
        """The plan for this round, and the partitions that nobody gets in it."""
        round_plan, awaited = first_round(plan)
        holders = set(awaited[:, 1].tolist())
        self._waiting = bool(holders)
        self._joined = frozenset(plan.group.members.ids)
        self._telling = {
            member: round_plan.of(number)
            for number, member in enumerate(plan.group.members.ids)
            if number in holders or member in self._striking
        }
        return round_plan, awaited[:, 0]

    def delivered(self, host: Host | None) -> None:
        """The plan of the present rebalance, if it was this member's, has reached the group."""
        self._told, self._strikes = self._telling, self._striking
        self._round_for = self._joined if self._waiting else frozenset()
        if self._waiting and host is not None:
            # A round that a holder starts reaches this member with its next heartbeat.
            generation = host.generation
            self._cancel = host.call_later(
                2 * host.heartbeat_interval, lambda host: _rejoin(host, generation)
            )


def _within(claims: Partitions, told: Partitions) -> bool:
    return all(set(ids) <= set(told.get(topic, ())) for topic, ids in claims.items())


def _rejoin(host: Host, generation: int) -> None:
    if host.generation == generation:
        log.warning("Partitions that were to change hands were not let go; joining again to give them away")
        host.request_rejoin()
