"""The `cooperative-sticky` strategy."""

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from kafka.coordinator.assignors.abstract import RebalanceProtocol

from kafka_assignors.arrays import IntArray
from kafka_assignors.assignors.adapter import Claim
from kafka_assignors.assignors.hand_over import HandOver
from kafka_assignors.assignors.host import calling
from kafka_assignors.assignors.sticky import StickyAssignor, decode_prior
from kafka_assignors.claims import Claimed, ClaimTable, TableClaims
from kafka_assignors.group import Group
from kafka_assignors.members import NO_GENERATION, Members
from kafka_assignors.plan import Plan
from kafka_assignors.protocol.codec import NOT_SAID, Subscriptions
from kafka_assignors.protocol.user_data import decode_generation, encode_generation


class CooperativeStickyAssignor(StickyAssignor):
    """As `StickyAssignor`, but members keep their partitions through the rebalance (KIP-429).

    A partition that changes hands is taken from its owner in one round and given away in the next, so that it
    never has two owners. Alone in `partition_assignment_strategy` the consumer is cooperative. Beside an
    eager strategy, say `[CooperativeStickyAssignor, RangeAssignor]`, kafka-python makes the consumer
    eager, and this assignor behaves accordingly: that is the first of the two rolling restarts from `range`.
    Shares a group with the strategy of this name of Java, librdkafka and kafka-python.
    """

    name = "cooperative-sticky"

    @cached_property
    def _hand_over(self) -> HandOver:
        return HandOver()

    def supported_protocols(self) -> list[RebalanceProtocol]:
        """Cooperative where all strategies of the consumer are, else eager."""
        return [RebalanceProtocol.COOPERATIVE, *super().supported_protocols()]

    def budget(self, group: Group) -> int | None:
        """As `StickyAssignor`; what the first round let move counts for the second as well."""
        limit = super().budget(group)
        return 0 if limit is not None and self._hand_over.goes_on_with(group) else limit

    def review(self, members: Members) -> Members:
        """Cut claims down to what a member was told, where it does not let go of the rest."""
        return self._hand_over.review(members)

    def this_round(self, plan: Plan) -> tuple[Plan, IntArray | None]:
        """The plan without what others still hold."""
        return self._hand_over.apply(plan)

    def metadata(self, topics: Collection[str]) -> Any:
        """As `StickyAssignor`; a rebalance begins."""
        self._hand_over.begin()
        return super().metadata(topics)

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """As `StickyAssignor`; if this member led and held something back, it sees to the next round."""
        super().on_assignment(assignment, generation)
        self._hand_over.delivered(calling())

    def tell_claim(self, claim: Claim) -> bytes | None:
        """The generation as Java does; a member that rebalances eagerly tells its prior assignment here."""
        if claim.held:
            return encode_generation(claim.generation, self._weight)
        return super().tell_claim(claim)

    def read_claims(self, ids: Sequence[str], subscriptions: Subscriptions) -> Claimed:
        """What the subscription says is held; the user data of a member that holds nothing is a wish.

        A subscription below v2 has no generation field. Java's is then in the user data, librdkafka's behind
        the prior assignment there, and kafka-python's own strategy sends none. Unreadable user data
        never makes a held partition free: its owner may be consuming it.
        """
        said = subscriptions.generations
        owns = np.bincount(subscriptions.owned.claimant, minlength=len(ids)) > 0
        told = np.full(len(ids), NO_GENERATION)
        weights = np.ones(len(ids), dtype=np.int64)
        longer = []  # user data that may be a prior assignment, where that could count
        for number, data in enumerate(subscriptions.user_data):
            short = decode_generation(data)
            if short is not None:
                told[number], weights[number] = short
            elif data and not (owns[number] and said[number] != NOT_SAID):
                longer.append(number)
        table, holds = subscriptions.owned, np.ones(len(ids), dtype=np.bool_)
        generations = np.where(said == NOT_SAID, told, said)
        if longer:
            prior = decode_prior(
                [ids[number] for number in longer], [subscriptions.user_data[number] for number in longer]
            )
            claims: list[TableClaims | dict[str, list[int]]] = [*table.claims()] or [{}] * len(ids)
            for number, wish, generation, weight in zip(
                longer, prior.table.claims(), prior.generations, prior.weights, strict=True
            ):
                weights[number] = weight
                if not owns[number]:
                    claims[number], holds[number] = wish, False
                    generations[number] = generation
                elif said[number] == NOT_SAID:
                    generations[number] = generation
            table = ClaimTable.of(claims)
        return Claimed(table=table, generations=generations, holds=holds, weights=weights)
