"""The `sticky` strategy, and what it shares with `cooperative-sticky`."""

import logging
from collections.abc import Callable
from typing import Any

from kafka_assignors.assignors.adapter import Assignor, Claim
from kafka_assignors.group import NO_GENERATION, Group
from kafka_assignors.plan import Plan
from kafka_assignors.planners import plan_kip54
from kafka_assignors.protocol import membership
from kafka_assignors.protocol.user_data import UserDataError, decode_sticky, encode_sticky

log = logging.getLogger(__name__)

Planner = Callable[[Group], Plan]
"""Must give the same plan for the same group: a cooperative rebalance asks it in both of its rounds."""

PLANNERS: dict[str, Planner] = {"kip54": plan_kip54}
"""The sticky planners by name."""


class StickyAssignor(Assignor):
    """Balanced loads, and partitions stay with their owners as far as that allows (KIP-54, KIP-341).

    Each member tells in its user data, in Java's layout, what it owned and in which generation. Rebalances
    are eager: members let go of everything first, and get back what they had. Shares a group with Java's
    StickyAssignor; kafka-python's own writes another layout, which is read here, but not there.

    Args:
        rack: The rack of this consumer.
        planner: The name of a planner in `PLANNERS`, or a function from a Group to a Plan.

    Raises:
        ValueError: There is no planner of this name.
    """

    name = "sticky"

    def __init__(self, *, rack: str | None = None, planner: str | Planner = "kip54") -> None:
        super().__init__(rack=rack)
        if isinstance(planner, str) and planner not in PLANNERS:
            raise ValueError(f"there is no planner {planner!r}; choose one of {', '.join(PLANNERS)}")
        self._planner = PLANNERS[planner] if isinstance(planner, str) else planner

    def plan(self, group: Group) -> Plan:
        """Plan by the planner chosen."""
        return self._planner(group)

    def tell_claim(self, claim: Claim) -> bytes | None:
        """Prior assignment and generation in Java's layout; null before the first assignment."""
        if claim.generation == NO_GENERATION:
            return None
        return encode_sticky(claim.partitions, claim.generation)

    def read_claim(self, member: Any) -> Claim:
        """What the user data says; where there is none, what the subscription itself says."""
        data = membership.user_data_in(member.metadata)
        if data:
            return prior_assignment(member, data)
        generation = membership.generation_in(member.metadata)
        return Claim(
            membership.owned_in(member.metadata), NO_GENERATION if generation is None else generation
        )


def prior_assignment(member: Any, data: bytes) -> Claim:
    """The prior assignment in a member's user data; none, and a warning, if it cannot be read."""
    try:
        prior = decode_sticky(data)
    except UserDataError as fault:
        log.warning("Ignoring what member %s says in its user data: %s", member.member_id, fault)
        return Claim()
    return Claim(prior.claims, prior.generation)
