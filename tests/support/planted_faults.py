"""Faults to plant into the hand-over of partitions, each of which a search of schedules has to find."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kafka_assignors._assignors import (
    _adapter as adapter,
    _cooperative_sticky as cooperative_sticky,
    _flow_member as flow_member,
)
from kafka_assignors._assignors._flow import FlowingCoordinator
from kafka_assignors._assignors._membership import hand_over
from kafka_assignors._assignors._membership.certainty import Certainty
from kafka_assignors._assignors._membership.claims import Claim, Memory
from kafka_assignors._assignors._membership.phases import Phase, Verdict
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors.aio._coordinator import CooperativeCoordinator, EagerCoordinator
from kafka_assignors.aio._host import AiokafkaHost
from kafka_assignors.coordinator._simulator.member import SimulatedMember
from kafka_assignors.coordinator._simulator.messages import Error
from kafka_assignors.planners._cooperative import awaited_holders

FLOWS = ("ours",)
WAITS = ("waits",)
PLAIN = ("unaided",)
"""kafka-python's consumer without its joins completed: its members are often late."""
AIO = ("aio",)

_claim = adapter.Assignor._claim
_look = Memory.look
_awaited = awaited_holders


def gives_away_what_is_held(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hand_over, "awaited_holders", lambda _: np.empty((0, 2), dtype=np.int64))


def gives_away_what_is_claimed_without_a_subscription(patch: pytest.MonkeyPatch) -> None:
    def awaited(plan: Plan) -> Any:
        pairs = _awaited(plan)
        topics = plan.group.topic_of[pairs[:, 0]]
        return pairs[plan.group.subscribes(pairs[:, 1], topics)]

    patch.setattr(hand_over, "awaited_holders", awaited)


def believes_no_claim_for_more_than_three_rounds(patch: pytest.MonkeyPatch) -> None:
    """What the leader did before: strikes, whoever began the round."""
    strikes: dict[tuple[int, str], int] = {}

    def awaited(plan: Plan) -> Any:
        pairs = _awaited(plan)
        ids = plan.group.members.ids
        struck = {ids[number] for number in pairs[:, 1].tolist()}
        for name in ids:
            strikes[0, name] = strikes.get((0, name), 0) + 1 if name in struck else 0
        believed = [number for number, name in enumerate(ids) if strikes[0, name] <= hand_over.PATIENCE]
        return pairs[np.isin(pairs[:, 1], believed)]

    patch.setattr(hand_over, "awaited_holders", awaited)


def never_begins_another_round(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedMember, "call_later", lambda *_: lambda: None)


def does_not_tell_static_members_that_a_round_follows(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cooperative_sticky.CooperativeStickyAssignor, "notes", lambda *_: {})


def claims_only_topics_that_are_subscribed(patch: pytest.MonkeyPatch) -> None:
    def claim(self: Any, host: Any) -> Any:
        return _claim(self, host).within(host.topics)

    patch.setattr(adapter.Assignor, "_claim", claim)


def claims_nothing_before_its_assignment_came(patch: pytest.MonkeyPatch) -> None:
    def claim(self: Any, host: Any) -> Any:
        made = _claim(self, host)
        return made if made.generation == host.generation else Claim(held=made.held)

    patch.setattr(adapter.Assignor, "_claim", claim)


def claims_nothing_that_it_kept(patch: pytest.MonkeyPatch) -> None:
    def look(self: Any, generation: int, partitions: Any, *, chosen: bool) -> None:
        _look(self, generation, frozenset(list(partitions)[1:]), chosen=chosen)

    patch.setattr(Memory, "look", look)


def forgets_joins(patch: pytest.MonkeyPatch) -> None:
    """Those that assignors ask for: whom a heartbeat's answer asks to join does so."""
    rejoin, hear = SimulatedMember.request_rejoin, SimulatedMember._heard

    def heard(self: Any, error: str) -> None:
        if error == Error.REBALANCE_IN_PROGRESS:
            rejoin(self)
        else:
            hear(self, error)

    patch.setattr(SimulatedMember, "_heard", heard)
    patch.setattr(SimulatedMember, "request_rejoin", lambda _: None)


def throws_joins_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedMember, "complete_joins", lambda _, **__: None)


def does_not_say_that_it_refused_an_assignment(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedMember, "refused", property(lambda _: -1, lambda *_: None))


def takes_a_newer_claim_for_a_lie(patch: pytest.MonkeyPatch) -> None:
    """Of two claims the older one is believed."""

    def settle(self: Any, group: Group, host: Any) -> Group:
        del self, host
        claims = group.claims
        return group.with_claims(replace(claims, generation=-claims.generation))

    patch.setattr(hand_over.HandOver, "settle", settle)


def resets_its_generation_by_an_old_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(flow_member, "verdict", lambda *_: Verdict.COUNTS)


def delivers_what_may_be_given_away(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FlowingCoordinator, "_is_certain", property(lambda self: self._flow.phase.is_member))


def takes_it_that_nobody_waits_for_its_join(patch: pytest.MonkeyPatch) -> None:
    """Its JoinGroup may be lost while heartbeats, on another connection, are answered."""
    confirm = Certainty.confirm

    def confirmed(self: Any, sent: float, *, awaited: bool = False) -> None:
        del awaited
        confirm(self, sent)

    patch.setattr(Certainty, "confirm", confirmed)


def delivers_while_it_leaves(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(flow_member.MemberCoordinator, "maybe_leave_group_async")


def goes_on_owning_when_it_is_fenced(patch: pytest.MonkeyPatch) -> None:
    """Only a schedule in which another consumer takes over an instance id shows it."""
    patch.setattr(FlowingCoordinator, "_lose_to_namesake", lambda *_: None)


def gives_nothing_up_before_it_joins(patch: pytest.MonkeyPatch) -> None:
    async def nothing(_: Any) -> None:
        pass

    patch.setattr(FlowingCoordinator, "_give_up", nothing)


def claims_nothing_in_a_join(patch: pytest.MonkeyPatch) -> None:
    def claim(self: Any, host: Any) -> Any:
        made = _claim(self, host)
        coordinator = host.coordinator
        joins = isinstance(coordinator, FlowingCoordinator) and coordinator._flow.phase is not Phase.STABLE
        return Claim(held=made.held) if joins else made

    patch.setattr(adapter.Assignor, "_claim", claim)


def revokes_and_does_not_join_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(FlowingCoordinator, "request_rejoin", lambda _: None)


def claims_nothing_on_aiokafka(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AiokafkaHost, "partitions", frozenset())


def says_on_aiokafka_that_it_rebalances_eagerly(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(AiokafkaHost, "cooperative", False)


def lets_go_on_aiokafka_without_a_word(patch: pytest.MonkeyPatch) -> None:
    async def revoke(self: Any, partitions: Any) -> None:
        self._keep(self._owned.difference(partitions))

    patch.setattr(CooperativeCoordinator, "_revoke", revoke)


def takes_every_refusal_on_aiokafka_for_overtaken(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EagerCoordinator, "_was_overtaken", lambda _: True)


def leaves_to_nobody_what_a_static_member_left_out(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EagerCoordinator, "_came_back", property(lambda _: False, lambda *_: None), raising=False)


def forgets_what_a_listener_of_aiokafka_unsubscribed(patch: pytest.MonkeyPatch) -> None:
    """What was done before: it was not the member's any more, and nobody told the application."""
    revoke = CooperativeCoordinator._revoke

    async def revoke_and_forget(self: Any, partitions: Any) -> None:
        await revoke(self, partitions)
        self._keep(self._subscribed(self._owned))

    patch.setattr(CooperativeCoordinator, "_revoke", revoke_and_forget)


def takes_its_instance_id_back_on_aiokafka(patch: pytest.MonkeyPatch) -> None:
    """Only a schedule in which another consumer takes over an instance id shows it."""
    reset = EagerCoordinator.reset_generation

    def reset_generation(self: Any) -> None:
        reset(self)
        if self.generation < 0:
            self._known_as = ""

    patch.setattr(EagerCoordinator, "reset_generation", reset_generation)


FAULTS: dict[Callable[[Any], None], tuple[str, ...]] = {
    gives_away_what_is_held: FLOWS,
    gives_away_what_is_claimed_without_a_subscription: PLAIN,
    believes_no_claim_for_more_than_three_rounds: PLAIN,
    never_begins_another_round: ("waits", "kafka-python"),
    does_not_tell_static_members_that_a_round_follows: WAITS,
    claims_only_topics_that_are_subscribed: PLAIN,
    claims_nothing_before_its_assignment_came: PLAIN,
    claims_nothing_that_it_kept: FLOWS,
    forgets_joins: WAITS,
    throws_joins_away: WAITS,
    does_not_say_that_it_refused_an_assignment: WAITS,
    takes_a_newer_claim_for_a_lie: ("ours", "kafka-python"),
    resets_its_generation_by_an_old_answer: FLOWS,
    delivers_what_may_be_given_away: FLOWS,
    takes_it_that_nobody_waits_for_its_join: FLOWS,
    delivers_while_it_leaves: FLOWS,
    gives_nothing_up_before_it_joins: FLOWS,
    claims_nothing_in_a_join: FLOWS,
    revokes_and_does_not_join_again: FLOWS,
    claims_nothing_on_aiokafka: AIO,
    says_on_aiokafka_that_it_rebalances_eagerly: AIO,
    lets_go_on_aiokafka_without_a_word: AIO,
    takes_every_refusal_on_aiokafka_for_overtaken: AIO,
    leaves_to_nobody_what_a_static_member_left_out: AIO,
    forgets_what_a_listener_of_aiokafka_unsubscribed: AIO,
}
"""Each fault, and the clients among which it is looked for."""
