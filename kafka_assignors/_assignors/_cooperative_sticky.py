"""The `cooperative-sticky` strategy."""

from collections.abc import Collection, Mapping
from typing import Any

from kafka.coordinator.assignors.abstract import RebalanceProtocol

from kafka_assignors._assignors._membership.claims import Claim
from kafka_assignors._assignors._sticky import Planner, StickyAssignor
from kafka_assignors._model.arrays import IntArray
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors._wire.user_data import UNFINISHED, encode_generation
from kafka_assignors.planners._cooperative import first_round


class CooperativeStickyAssignor(StickyAssignor):
    """As `StickyAssignor`, but members keep their partitions through the rebalance (KIP-429).

    A partition that moves is revoked by its owner in one round and assigned in the next. So it never has two
    owners. Alone in `partition_assignment_strategy` the consumer is cooperative. Beside an eager strategy,
    say `[CooperativeStickyAssignor, RangeAssignor]`, kafka-python makes the consumer eager, and this assignor
    behaves accordingly. That is the first of the two rolling restarts from `range`. Shares a group with the
    strategy of this name of Java, librdkafka and kafka-python.

    A cooperative consumer of kafka-python reads and commits what it keeps while the rebalance is on, which
    kafka-python's own does not. Options that are not listed here are `StickyAssignor`'s.

    Args:
        priority: As `StickyAssignor`'s. Who takes over waits until the others have revoked.
        records_in_rebalances: False leaves that to kafka-python: `poll` returns nothing during a rebalance.
    """

    name = "cooperative-sticky"
    _claims_as = "cooperative-sticky"
    _cooperative = True  # a subclass may let its consumers be eager

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
        records_in_rebalances: bool = True,
    ) -> None:
        super().__init__(
            rack=rack,
            weight=weight,
            priority=priority,
            max_active=max_active,
            return_after=return_after,
            planner=planner,
            max_skew=max_skew,
            max_moves=max_moves,
            time_limit=time_limit,
        )
        self.records_in_rebalances = records_in_rebalances

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Cooperative where all strategies of the consumer are, else eager."""
        eager = super().supported_protocols()
        return [RebalanceProtocol.COOPERATIVE, *eager] if self._cooperative else eager

    def budget(self, group: Group) -> int | None:
        """As `StickyAssignor`; what the first round let move counts for the second as well."""
        limit = super().budget(group)
        return 0 if limit is not None and self._consumer.hand_over.goes_on_with(group) else limit

    def settle(self, group: Group) -> Group:
        """The group with the claims that count; see `kafka_assignors._assignors._membership.hand_over`.

        Driven by hand, without a consumer, a leader believes what members say.
        """
        host = self._host()
        return super().settle(group if host is None else self._consumer.hand_over.settle(group, host))

    def this_round(self, plan: Plan) -> tuple[Plan, IntArray | None]:
        """The plan without what others still hold."""
        if (host := self._host()) is not None:
            return self._consumer.hand_over.apply(plan, host)
        sent, awaited = first_round(plan)
        return sent, plan.whole(awaited[:, 0])

    def notes(self, sent: Plan, held_back: IntArray | None) -> Mapping[int, bytes]:
        """As `StickyAssignor`; or shows that a round is to follow: see `HandOver.follow`."""
        if held_back is None or not held_back.size:
            return super().notes(sent, held_back)
        return dict.fromkeys(sent.group.members.static, UNFINISHED)

    def metadata(self, topics: Collection[str]) -> Any:
        """As `StickyAssignor`."""
        self._consumer.hand_over.begin()
        return super().metadata(topics)

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """As `StickyAssignor`; if something was held back, a leader sees to the next round."""
        super().on_assignment(assignment, generation)
        if (host := self._host()) is not None:
            self._consumer.hand_over.delivered(host, generation)
            if (assignment.user_data or b"").startswith(UNFINISHED):
                self._consumer.hand_over.follow(host, generation)

    def tell_claim(self, claim: Claim) -> bytes | None:
        """The generation as Java does; a member that rebalances eagerly has its prior assignment here."""
        if claim.held:
            return encode_generation(claim.generation, self._weight, self.extra)
        return super().tell_claim(claim)
