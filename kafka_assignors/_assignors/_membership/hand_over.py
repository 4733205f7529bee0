"""A leader's care for what changes hands in a cooperative rebalance: nothing early, and nothing for ever.

docs/design.md has under this heading the rules 1 to 5 by which a leader believes members' claims;
docs/guarantees.md says what a false claim costs. By rule 4 a member that says no generation is taken for new.
By rule 5 partitions are given to the claimant if it subscribes to their topics, a standby among them.

Of partitions that belong together (`Plan.units`) all wait if one does, by any of these rules: all holders
revoke theirs. By rule 5 a claimant gets all of them. If several members claim some, or the claimant does not
subscribe to all, and none lets go, nobody is given any, and the leader asks on, at intervals that double.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kafka_assignors._assignors._membership.host import Cancel, Host
from kafka_assignors._common.escaping import get_logger
from kafka_assignors._model.arrays import NOBODY, BoolArray, IntArray
from kafka_assignors._model.claims import Existing
from kafka_assignors._model.group import Group
from kafka_assignors._model.members import NO_GENERATION
from kafka_assignors._model.plan import Plan
from kafka_assignors.planners._cooperative import awaited_holders

log = get_logger(__name__)

PATIENCE: Final = 3
"""Rounds that a leader begins because nobody lets go, before it leaves partitions with claimants."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Given:
    """What a plan gave to whom, without the group that it was made for.

    `owner` (N,) is the number in `members` of who was given each partition, `NOBODY` if it was held back.
    `waits` is whether something was. `unheard` has, by member id, what generation each said that may have
    taken another leader's plan.
    """

    members: Sequence[str]
    existing: Existing
    owner: IntArray
    waits: bool
    unheard: Mapping[str, int]

    def assigned(self, group: Group) -> IntArray:
        """(N,) the member of a later group that each of its partitions was given to, or `NOBODY`."""
        numbers = {member: number for number, member in enumerate(group.members.ids)}
        now = np.array([*(numbers.get(member, NOBODY) for member in self.members), NOBODY], dtype=np.int64)
        before = self.existing.places_of(group.existing)
        owner: IntArray = now[np.append(self.owner, NOBODY)[before]]
        return owner


def _static_behind(group: Group, generation: int) -> BoolArray:
    """(M,) whether each member is static and says an older generation, or none."""
    instances = group.members.instance_ids
    is_static = np.array([instance is not None for instance in instances], dtype=np.bool_)
    return is_static & (group.members.generations < generation)


class HandOver:
    """The leader's state between two rounds of a cooperative rebalance."""

    def __init__(self) -> None:
        self._making: _Given | None = None  # in the present rebalance, which may not reach the group
        self._given: _Given | None = None  # by the plan that was this leader's and the group's last
        self._generation = NO_GENERATION  # in which that was
        self._unheard: Mapping[str, int] = {}  # in the present rebalance, as in `_Given`
        self._rounds = 0  # that this leader began since then because nobody let go
        self._counted = NO_GENERATION  # the generation in which that was counted
        self._is_own = False  # whether it has begun the present round for that reason
        self._cancel: Cancel | None = None

    def goes_on_with(self, group: Group) -> bool:
        """Whether a group is to be given what was held back from the same members in the round before."""
        given = self._given
        return given is not None and given.waits and {*given.members} == {*group.members.ids}

    def begin(self) -> None:
        self._making = None
        self.end()

    def end(self) -> None:
        """Begin no further round."""
        if self._cancel is not None:
            self._cancel()
            self._cancel = None

    def settle(self, group: Group, host: Host) -> Group:
        """The group with the claims that count as what they say, by rules 2 and 3."""
        self._unheard = self._may_hold_more(group, host)
        claims, assigned = group.claims, None
        generation = np.where(claims.generation < host.generation, claims.generation, NO_GENERATION)
        if self._given is not None:
            assigned = self._given.assigned(group)
            elsewhere = assigned[claims.partition] != claims.member
            generation = np.where(
                (generation == self._generation) & elsewhere & claims.held, NO_GENERATION, generation
            )
        if not np.array_equal(generation, claims.generation):
            group = group.with_claims(replace(claims, generation=generation))
        return group if assigned is None else self._with_silent(group, assigned)

    def _may_hold_more(self, group: Group, host: Host) -> Mapping[str, int]:
        """By member id, what generation the members say that rule 4 is about."""
        stated, last = group.members.generations, host.generation - 1
        behind = np.flatnonzero(_static_behind(group, last) & (stated >= 0))
        found = {group.members.ids[number]: int(stated[number]) for number in behind.tolist()}
        if self._given is None or self._generation < last:
            return found
        return {member: one for member, one in found.items() if self._given.unheard.get(member) == one}

    def _unclaimed(self, plan: Plan) -> IntArray:
        """The partitions that rule 4 keeps from those that the plan gives them to."""
        group = plan.group
        free = plan.owner != NOBODY
        free[group.holders[:, 0]] = False
        wanted = np.zeros(group.size, dtype=np.bool_)
        for number, member in enumerate(group.members.ids):
            if member in self._unheard:
                wanted |= group.has_sent(np.full(group.size, number), group.topic_of)
        return np.flatnonzero(free & wanted)

    def _with_silent(self, group: Group, assigned: IntArray) -> Group:
        """The group in which static members that have not taken the last plan hold what it gave them."""
        silent = _static_behind(group, self._generation)
        if not silent.any():
            return group
        partition = np.flatnonzero((assigned != NOBODY) & silent[assigned])
        claims = group.claims
        size = len(group.members)
        known = np.isin(partition * size + assigned[partition], claims.partition * size + claims.member)
        partition = partition[~known]
        member = assigned[partition]
        return group.with_claims(
            replace(
                claims,
                partition=np.concatenate((claims.partition, partition)),
                member=np.concatenate((claims.member, member)),
                generation=np.concatenate((claims.generation, np.full(member.size, self._generation))),
                subscribed=np.concatenate(
                    (claims.subscribed, group.subscribes(member, group.topic_of[partition]))
                ),
                held=np.concatenate((claims.held, np.ones(member.size, dtype=np.bool_))),
            )
        )

    def apply(self, plan: Plan, host: Host) -> tuple[Plan, IntArray]:
        """The plan for this round, and the partitions that nobody gets in it."""
        group = plan.group
        self._count(group, host)
        awaited = awaited_holders(plan)
        owner, held_back = plan.owner, awaited[:0, 0]
        if self._rounds < PATIENCE:
            held_back = plan.whole(np.concatenate((awaited[:, 0], self._unclaimed(plan))))
        if held_back.size:
            owner = plan.owner.copy()
            owner[held_back] = NOBODY
        elif awaited.size:
            owner = plan.owner.copy()
            held_back = self._leave(plan, awaited, owner)
        sent = plan if owner is plan.owner else Plan.from_owner(group, owner, units=plan.units)
        self._making = _Given(
            members=group.members.ids,
            existing=group.existing,
            owner=owner,
            waits=bool(held_back.size),
            unheard=self._unheard,
        )
        return sent, held_back

    def _count(self, group: Group, host: Host) -> None:
        """Count this round if it is one that nobody but this leader wanted."""
        if host.generation == self._counted:
            return  # asked again in one generation
        in_a_row = host.generation == self._generation + 1
        self._rounds = self._rounds + 1 if self._is_own and in_a_row and self.goes_on_with(group) else 0
        self._counted = host.generation
        self._is_own = False

    @staticmethod
    def _leave(plan: Plan, awaited: IntArray, owner: IntArray) -> IntArray:
        """Leave what is not let go of with those that claim it; of several with the newest claim.

        Returns what nobody gets: partitions that belong together, and that no claimant can have as a whole.
        """
        group, claims, split = plan.group, plan.group.claims, awaited[:0, 0]
        may_keep = group.has_sent(claims.member, group.topic_of[claims.partition])
        possible = claims.held & may_keep & np.isin(claims.partition, awaited[:, 0])
        left = np.flatnonzero(possible)
        left = left[np.argsort(claims.generation[left], kind="stable")]
        partition = claims.partition[left]
        owner[partition] = claims.member[left]  # of several the last one written stays
        if plan.units is not None:
            claimant = plan.units.agreed(partition, owner[partition])
            partition = plan.units.whole(partition)
            unit = plan.units.of[partition]
            # A standby may subscribe to some topics of a set only.
            claimant[unit[~group.has_sent(claimant[unit], group.topic_of[partition])]] = NOBODY
            owner[partition] = claimant[unit]
            split = partition[owner[partition] == NOBODY]
        names = ", ".join(sorted({group.members.ids[number] for number in awaited[:, 1].tolist()}))
        log.error(
            "Leaving %d partitions with members that still claim them, though asked %d times to revoke "
            "some. If their load is uneven, restart them: %s",
            np.unique(partition).size - split.size,
            PATIENCE + 1,
            names,
        )
        if split.size:
            log.error(
                "Leaving %d partitions without an owner: they belong together, and no claimant can have "
                "all of them. Restart these members: %s",
                split.size,
                names,
            )
        return split

    def delivered(self, host: Host, generation: int) -> None:
        """The plan of the present rebalance, if it was this member's, has reached the group."""
        self._given, self._generation = self._making, generation
        if self._given is not None and self._given.waits:
            # A holder that lets go joins again by itself: this member hears of it with its next heartbeat.
            delay = 2 * host.heartbeat_interval * 2**self._rounds
            self._cancel = host.call_later(delay, lambda host: self._begin_round(host, generation))

    def follow(self, host: Host, generation: int) -> None:
        """The assignment says that a round is to follow: begin it if nobody else does.

        A static leader that restarts between two rounds gets its assignment back without a rebalance. It does
        not know any more that it waits for members. So all static members know.
        """
        if self._cancel is None:
            delay = 2 * host.heartbeat_interval * 2**PATIENCE
            self._cancel = host.call_later(delay, lambda host: self._begin_round(host, generation))

    def _begin_round(self, host: Host, generation: int) -> None:
        if host.generation == generation and not host.closed:
            log.warning("Members have not revoked all partitions as asked; joining again to assign these")
            self._is_own = self._given is not None
            host.request_rejoin()
