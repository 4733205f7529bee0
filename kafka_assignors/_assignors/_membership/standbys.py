"""A leader's care for who is active: how many members, and who has to wait before it takes over.

A static leader that restarts gets its assignment back without a rebalance, and does not know who waits. So
the assignments of static members say for how long somebody still waits. Other clients do not read that.
"""

import math
from typing import Final

import numpy as np

from kafka_assignors._assignors._membership.host import Cancel, Host
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._model.arrays import NOBODY
from kafka_assignors._model.group import Group
from kafka_assignors._model.members import NO_GENERATION, Members
from kafka_assignors._model.standbys import NO_OWNER, of_first, of_highest_priority
from kafka_assignors._model.topic_sets import Numbers
from kafka_assignors._wire.reader import INT32

log = get_logger(__name__)

LONGEST: Final = 10**9
"""Seconds that a member may have to wait at the most."""

_WAITS: Final = b"waits"
_GRACE: Final = 16
"""Heartbeats that others leave to the leader to begin a rebalance, as `HandOver.follow` does."""


def lasting_names(members: Members) -> list[str]:
    """What members are called for as long as they are in the group, restarts of static ones included."""
    return [instance or name for instance, name in zip(members.instance_ids, members.ids, strict=True)]


class Standbys:
    """Whom this leader has made active, for how long it has seen each member, and who waits to take over."""

    def __init__(self) -> None:
        self._order: dict[str, int] = {}  # by member id, who was active first
        self._since: dict[str, float] = {}  # by instance id, or by member id
        self._led = NO_GENERATION  # the last generation that it led
        self._until: float | None = None  # when the first of those who wait has waited long enough
        self._cancel: Cancel | None = None

    def begin(self) -> None:
        self._until = None
        self.end()

    def end(self) -> None:
        """Begin no rebalance."""
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def limit(self, group: Group, most: int, *, goes_on: bool) -> Group:
        """The group in which a topic has so many members at most, first of all those that own most.

        When a rebalance goes on, what was revoked is nobody's. So the same members come first as before.
        """
        if not goes_on:
            owned = np.bincount(group.owner[group.owner != NOBODY], minlength=len(group.members))
            first = np.argsort(-owned, kind="stable").tolist()
            self._order = {group.members.ids[number]: place for place, number in enumerate(first)}
        order = np.argsort([self._order[member] for member in group.members.ids])
        return group.with_subscriptions(of_first((group.subscribed, group.subscription_of), order, most))

    def settle(self, group: Group, host: Host, return_after: float) -> Group:
        """The group in which a higher priority waits before it takes over from a lower one.

        A member waits until it has been in each generation for so many seconds. This leader has to have led
        all of them: of others nobody knows who was in them.
        """
        now, members = host.seconds, group.members
        if not self._led <= host.generation <= self._led + 1:
            self._since = {}
        self._led = host.generation
        names = lasting_names(members)
        self._since = {name: self._since.get(name, now) for name in names}
        left = np.array([self._since[name] + return_after - now for name in names])
        everybody = group.with_subscriptions(group.sent)
        owned = np.flatnonzero(everybody.owner != NOBODY)
        priorities = members.priorities
        # Topics of the same subscribers have the same active members: a set of them is not to be separated.
        alike = Numbers[tuple[int, ...]]()
        number = np.array([alike[subscribers] for subscribers in everybody.subscribers], dtype=np.int64)
        active = np.full(len(alike), -NO_OWNER)
        np.maximum.at(active, number[group.topic_of[owned]], priorities[everybody.owner[owned]])
        has_none = active == -NO_OWNER  # of its own; then whoever is active somewhere is before who waits
        active[has_none] = active[~has_none].min() if owned.size else NO_OWNER
        active = active[number]
        subscriptions, waiting = of_highest_priority(group.sent, priorities, active, left > 0)
        self._until = now + left[waiting].min() if waiting.any() else None
        return everybody.with_subscriptions(subscriptions)

    def note(self, host: Host) -> bytes | None:
        """The user data of static members' assignments; None if nobody waits."""
        if self._until is None:
            return None
        return _WAITS + INT32.pack(math.ceil(max(0.0, self._until - host.seconds)))

    def delivered(self, host: Host, generation: int, note: bytes | None) -> None:
        """The plan of the present rebalance has reached the group: see to it that who waits takes over."""
        until, note = self._until, note or b""
        if until is None and note.startswith(_WAITS) and len(note) >= len(_WAITS) + INT32.size:
            left = INT32.unpack_from(note, len(_WAITS))[0]
            until = host.seconds + left + _GRACE * host.heartbeat_interval
        if until is not None:
            delay = max(0.0, until - host.seconds)
            self._cancel = host.call_later(delay, lambda host: self._begin_round(host, generation))

    @staticmethod
    def _begin_round(host: Host, generation: int) -> None:
        if host.generation == generation and not host.closed:
            log.info(
                "Members of a higher priority have waited long enough: joining again, so that they take over"
            )
            host.request_rejoin()
