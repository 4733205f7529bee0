"""The `sticky` strategy, and what it shares with `cooperative-sticky`."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from kafka_assignors._assignors._adapter import Assignor
from kafka_assignors._assignors._member_warnings import MemberWarnings
from kafka_assignors._assignors._membership.claims import Claim
from kafka_assignors._assignors._membership.standbys import LONGEST
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._model.arrays import IntArray
from kafka_assignors._model.claims import NO_EXTRA, Claimed, Extra
from kafka_assignors._model.group import Group
from kafka_assignors._model.members import MAX_PRIORITY, MAX_WEIGHT, NO_GENERATION
from kafka_assignors._model.plan import Plan
from kafka_assignors._model.tick import Tick
from kafka_assignors._wire.claims_of import claims_of
from kafka_assignors._wire.codec import Subscriptions
from kafka_assignors._wire.user_data import encode_sticky
from kafka_assignors.planners import _kip54, _quick, plan_exact

log = get_logger(__name__)

Planner = Callable[[Group], Plan]
"""Must give the same plan for the same group: a cooperative rebalance asks it in both of its rounds."""

PLANNERS: dict[str, Planner] = {"exact": plan_exact, "kip54": _kip54.plan_kip54}
"""The sticky planners by name."""

TIME_LIMIT: Final = 5.0
"""Seconds that planning may take where the consumer's settings allow as many."""


class _OutOfTimeError(Exception):
    """Planning takes longer than it may."""


class StickyAssignor(Assignor):
    """Balanced loads, and partitions stay with their owners as far as that allows (KIP-54, KIP-341).

    Each member's user data has what it owned and in which generation, in Java's layout. Rebalances are eager:
    members revoke everything first, and get back what they had. Shares a group with Java's StickyAssignor;
    kafka-python's own writes another layout, which is read here, but not there.

    While a leader plans it sends no heartbeats, and one that takes too long is expelled. An exact plan that
    is not ready in time is given up, with a warning, for a quick one, which may be less even.

    Args:
        rack: The rack of this consumer.
        weight: How much this consumer can take on beside the others: twice the weight, twice the partitions.
            The exact planner goes by it, if the leader is one of this class.
        priority: Of a topic's subscribers those of the highest priority share its partitions. The others
            stand by: they get nothing until the last of these has left the group, and then they take over.
            If the leader is of another client, all share.
        max_active: How many of them share a topic at most, first of all those that own most; the others stand
            by as well. With 1 one member has everything. The leader's counts.
        return_after: For how many seconds a member has to be in the group until it takes over from active
            ones of a lower priority. Until then it stands by. If all of these leave, it takes over at once.
            The leader's counts, and a new leader begins to count anew. None is not at all.
        planner: The name of a planner in `PLANNERS`, or a function from a Group to a Plan.
        max_skew: An option of the exact planner: how many partitions off the best balance loads may be, in
            order to move fewer. Give all members the same: the leader's counts.
        max_moves: An option of the exact planner: how many partitions may move in one rebalance, both
            rounds of a cooperative one together.
        time_limit: Seconds until an exact plan has to be ready, from when the leader begins to read what
            members sent. None is a third of what the consumer's timeouts allow, `TIME_LIMIT` at most.

    Raises:
        ValueError: There is no planner of this name, an option is out of range, or goes with another planner.
    """

    name = "sticky"
    _claims_as = "sticky"  # a subclass may have a name of its own

    def __init__(
        self,
        *,
        rack: str | None = None,
        weight: int = 1,
        priority: int = 0,
        max_active: int | None = None,
        return_after: float | None = None,
        planner: str | Planner = "exact",
        max_skew: int | None = None,
        max_moves: int | None = None,
        time_limit: float | None = None,
    ) -> None:
        super().__init__(rack=rack)
        if not _is_whole(weight) or not 1 <= weight <= MAX_WEIGHT:
            raise ValueError(f"weight must be a whole number from 1 to {MAX_WEIGHT}, not {weight!r}")
        if not _is_whole(priority) or abs(priority) > MAX_PRIORITY:
            raise ValueError(
                f"priority must be a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}, not {priority!r}"
            )
        if max_active is not None and (not _is_whole(max_active) or max_active < 1):
            raise ValueError(f"max_active must be a whole number, 1 or more, not {max_active!r}")
        if return_after is not None and not 0 < return_after <= LONGEST:
            raise ValueError(f"return_after must be more than 0 s, {LONGEST} at most, not {return_after!r}")
        if isinstance(planner, str) and planner not in PLANNERS:
            raise ValueError(f"there is no planner {planner!r}; choose one of {', '.join(PLANNERS)}")
        for option, value in (("max_skew", max_skew), ("max_moves", max_moves)):
            if value is not None and (not _is_whole(value) or value < 0):
                raise ValueError(f"{option} must be a whole number, 0 or more, not {value!r}")
            if value is not None and planner != "exact":
                raise ValueError(f"{option} is an option of the planner 'exact', not of {planner!r}")
        if time_limit is not None and not time_limit > 0:
            raise ValueError(f"time_limit must be more than 0 s, not {time_limit!r}")
        self._weight = weight
        self._priority = priority
        self._max_active, self._return_after = max_active, return_after
        self._planner = planner
        self._max_skew, self._max_moves = max_skew, max_moves
        self._time_limit = time_limit
        self._warnings = MemberWarnings("Ignoring what member %s says in its user data: %s")

    def settle(self, group: Group) -> Group:
        """The group without who stands by, as far as that is the leader's to say.

        Driven by hand, without a consumer, a leader has no clock, and nobody waits.
        """
        if self._return_after is not None and (host := self._host()) is not None:
            group = self._consumer.standbys.settle(group, host, self._return_after)
        if self._max_active is None:
            return group
        goes_on = self._consumer.hand_over.goes_on_with(group)
        return self._consumer.standbys.limit(group, self._max_active, goes_on=goes_on)

    def metadata(self, topics: Collection[str]) -> Any:
        """As `Assignor`; a rebalance begins."""
        sent = super().metadata(topics)
        self._consumer.standbys.begin()
        return sent

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """As `Assignor`; a leader sees to it that who waits to take over does so."""
        super().on_assignment(assignment, generation)
        if (host := self._host()) is not None:
            self._consumer.standbys.delivered(host, generation, assignment.user_data)

    def notes(self, sent: Plan, held_back: IntArray | None) -> Mapping[int, bytes]:
        """Shows static members that somebody waits to take over."""
        del held_back
        host = self._host()
        note = None if host is None else self._consumer.standbys.note(host)
        return {} if note is None else dict.fromkeys(sent.group.members.static, note)

    def plan(self, group: Group) -> Plan:
        """Plan by the planner chosen."""
        if self._planner != "exact":
            return PLANNERS[self._planner](group) if isinstance(self._planner, str) else self._planner(group)
        exactly, quickly = partial(self.plan_exactly, group), partial(self.plan_quickly, group)
        return self._in_time(group, exactly, quickly, "An exact plan")

    def _in_time(
        self, group: Group, planner: Callable[[Tick], Plan], quickly: Callable[[], Plan], what: str
    ) -> Plan:
        """The plan of a planner that calls a tick; a quicker one if it is not ready in time."""
        host = self._host()
        limit = self._time_limit
        if limit is None:
            limit = TIME_LIMIT if host is None else min(TIME_LIMIT, host.patience / 3)
        since = None if host is None else host.leading_since
        end = limit + (time.monotonic() if since is None else since)

        def tick() -> None:
            if time.monotonic() > end:
                raise _OutOfTimeError

        try:
            return planner(tick)
        except _OutOfTimeError:
            log.warning(
                "%s of %d partitions for %d members was not ready after %.3g s. "
                "Using a quicker one, which may be less balanced and move more",
                what,
                group.size,
                len(group.members),
                limit,
            )
            return quickly()

    def plan_exactly(self, group: Group, tick: Tick) -> Plan:
        """The best plan, if there is time: the tick raises when there is none left."""
        return plan_exact(group, max_skew=self._max_skew, max_moves=self.budget(group), tick=tick)

    def plan_quickly(self, group: Group) -> Plan:
        """A plan that is ready in time."""
        return _quick.plan_quickly(group)

    @property
    def extra(self) -> Extra:
        """What this member sends for the leader beside claim and weight."""
        return Extra(self._priority)

    def budget(self, group: Group) -> int | None:
        """How many partitions may move in this plan; None if that is not limited."""
        del group
        return self._max_moves

    def tell_claim(self, claim: Claim) -> bytes | None:
        """Prior assignment and generation in Java's layout; null before the first assignment."""
        if claim.generation == NO_GENERATION and self._weight == 1 and self.extra == NO_EXTRA:
            return None
        return encode_sticky(claim.partitions, claim.generation, self._weight, self.extra)

    def read_claims(self, ids: Sequence[str], subscriptions: Subscriptions) -> Claimed:
        """What counts with this strategy by `claims_of`; a warning where user data cannot be read."""
        claimed, faults = claims_of(self._claims_as, subscriptions)
        self._warnings.warn({ids[number]: str(fault) for number, fault in faults.items()})
        return claimed


def _is_whole(number: object) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)
