"""Assignors to replay a course with, by name; docs/history.md says what is left out.

Ours, Kafka's own sticky algorithm and the models of KIP-848 are called as planners. What each member had
after the rebalance before is its claim. Members of one group that take part in each rebalance have no others.
Cooperative ones are called again until nothing is held back any more, as the members would join again.

A class that implements kafka-python's contract is called by that contract, one assignor for each member.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from kafka_assignors._common.strategies import KAFKA_PYTHON, REPLAYED, STRATEGIES, load
from kafka_assignors._model.arrays import NOBODY, IntArray
from kafka_assignors._model.claims import Claims, ClaimTable
from kafka_assignors._model.group import Group
from kafka_assignors._model.members import Member, Members
from kafka_assignors._wire.java.orders import hash_order, string_hash
from kafka_assignors.planners._cooperative import first_round
from kafka_assignors.planners._load import plan_load

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from kafka_assignors._assignors._measured_load import Known
    from kafka_assignors._groups.snapshots import Partitions
    from kafka_assignors._model.plan import Plan
    from kafka_assignors.history._what_if.commits import Records
    from kafka_assignors.history._what_if.course import CourseStep

GONE: Final = NOBODY - 1
"""Stands for a member that is in the group no more."""
LOAD_AWARE: Final = "load-aware"
"""The assignor that is replayed only where there are commits."""
ROUNDS: Final = 10
"""How many rounds a cooperative rebalance may have; more are cut off."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Situation:
    """A step of a course, with members to give partitions to, and these as planners see them.

    By topic and id, and by identity, partitions and members have their numbers in the group. `rates` are
    records a second, as far as they are known.
    """

    group: Group
    place_of: Mapping[tuple[str, int], int]
    number_of: Mapping[str, int]
    rates: Records

    @classmethod
    def of(cls, step: CourseStep, rates: Records) -> Situation:
        """What the members of a step see."""
        members = Members.of(
            Member(member_id=one.member_id, instance_id=one.instance_id, topics=one.topics, rack=one.rack)
            for one in step.members
        ).in_order()
        subscriptions = tuple([members.topics[number] for number in members.topics_of.tolist()])
        nameless, place_of = _nameless(step.partitions, subscriptions)
        group = replace(nameless, members=members)
        number_of = {one: number for number, one in enumerate(_identities(group))}
        return cls(group=group, place_of=place_of, number_of=number_of, rates=rates)

    def owners_after(self, before: Situation, owner: IntArray) -> IntArray:
        """(n,) the member that had each partition, by whom each went to in the situation before.

        It is `NOBODY`, or `GONE` if it is in the group no more.
        """
        had = _numbers_after(before, self)[owner]
        if self.place_of is before.place_of:
            return had
        place_of = before.place_of.get
        return np.append(had, NOBODY)[[place_of(one, -1) for one in self.place_of]]


@lru_cache(maxsize=8)
def _numbers_after(before: Situation, after: Situation) -> IntArray:
    """(M + 1,) the numbers that members of a situation have later, and `NOBODY`: the same in all replays."""
    number_of = after.number_of.get
    return np.array([*(number_of(one, GONE) for one in before.number_of), NOBODY])


def kept(group: Group, had: IntArray) -> IntArray:
    """(n,) the member that had each partition and still subscribes to its topic, or `NOBODY`."""
    if group.uniform:
        return had
    owned = np.flatnonzero(had != NOBODY)
    wanted = group.subscribes(had[owned], group.topic_of[owned])
    found = had.copy()
    found[owned[~wanted]] = NOBODY
    return found


def _claiming(group: Group, owner: IntArray, *, held: bool) -> Group:
    """The group with members that claim what they have: (n,) the owner of each partition, or `NOBODY`."""
    # Each partition is there, subscribed to, and claimed by one member, so that nothing is left to find.
    owned = np.flatnonzero(owner != NOBODY)
    owned = owned[np.argsort(owner[owned], kind="stable")]
    claimant, once = owner[owned], np.ones(owned.size, dtype=np.int64)
    table = ClaimTable(
        claimants=len(group.members),
        names=group.topics,
        claimant=claimant,
        topic=group.topic_of[owned],
        sizes=once,
        ids=group.partition_ids[owned],
    )
    claims = Claims(
        partition=owned,
        member=claimant,
        generation=np.zeros_like(owned),
        subscribed=once.astype(np.bool_),
        held=np.full(owned.size, held, dtype=np.bool_),
    )
    return replace(group, members=replace(group.members, claims=table), claims=claims, owner=owner)


@lru_cache(maxsize=8)
def _nameless(
    partitions: Partitions, subscriptions: tuple[frozenset[str], ...]
) -> tuple[Group, dict[tuple[str, int], int]]:
    """A group but for who its members are, which most often is all that changes in a rebalance."""
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    members = [Member(member_id=f"{n:09}", topics=topics) for n, topics in enumerate(subscriptions)]
    group = Group.of(topics, members)
    return group, {group.name_of(number): number for number in range(group.size)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A leader that is a planner; with `in_rounds` what moves is given away in a round of its own."""

    plan: Callable[[Group], Plan]
    sticky: bool = False
    in_rounds: bool = False

    def assign(self, situation: Situation, had: IntArray) -> IntArray:
        """Who gets each partition (n,) in the end; `had` is who had it. Either may be `NOBODY`."""
        group = situation.group
        if not self.sticky:
            return self.plan(group).owner
        has = kept(group, had)
        if not self.in_rounds:
            return self.plan(_claiming(group, has, held=False)).owner
        for _ in range(ROUNDS):
            # What a member no longer subscribes to it holds as well until it is told to let go. By the next
            # round it has, so that it makes no difference to who gets it in the end.
            sent, awaited = first_round(self.plan(_claiming(group, has, held=True)))
            has = sent.owner
            if not awaited.size:
                break
        return has


@dataclass(slots=True)
class ByLoad:
    """A leader that plans by what it knows of the work, and remembers it, as that of `load-aware` does."""

    _known: Known | None = None

    def assign(self, situation: Situation, had: IntArray) -> IntArray:
        """As `Planned`. As with costs by hand, members are taken to need half of their time for all."""
        from kafka_assignors._assignors._measured_load import Known, load_of  # noqa: PLC0415 - slow

        group, known_of = situation.group, situation.rates.get
        measured = np.full((group.size, 3), np.nan)
        measured[:, 2] = [known_of(one, np.nan) for one in situation.place_of]
        measured[~np.isnan(measured[:, 2]), :2] = 1, 0
        before = Known.nothing(group) if self._known is None else self._known.of(group)
        alike, stays = np.ones(len(group.members)), np.zeros(group.size, dtype=np.bool_)
        self._known = replace(before, numbers=np.where(np.isnan(measured), before.numbers, measured))
        load = load_of(self._known, alike, stays)
        times = alike.size / 2 / (load.arriving.sum() or 1)
        plan = partial(plan_load, load=replace(load, arriving=load.arriving * times))
        return Planned(plan=plan, sticky=True, in_rounds=True).assign(situation, had)


@dataclass(slots=True)
class ByContract:
    """A leader that is an assignor of kafka-python's contract, one for each member."""

    make: Callable[[], Any]
    cooperative: bool
    _assignors: dict[str, Any] = field(default_factory=dict)
    _leader: str = ""
    _generation: int = 0

    def assign(self, situation: Situation, had: IntArray) -> IntArray:
        """As `Planned`; raises what the assignor raises, and a ValueError if its answer cannot be."""
        group = situation.group
        ids = group.members.ids
        order = hash_order(range(len(ids)), lambda number: string_hash(ids[number]))
        who = _identities(group)
        self._assignors = {one: self._assignors.get(one) or self.make() for one in who}
        if self._leader not in self._assignors:
            self._leader = who[order[0]]
        has = had
        for _ in range(ROUNDS):
            had, has = has, self._round(situation, order)
            if not self.cooperative or not (has != had)[had != NOBODY].any():
                break  # nobody lost anything, so that nobody joins again
        return has

    def _round(self, situation: Situation, order: Sequence[int]) -> IntArray:
        from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment  # noqa: PLC0415 - slow to import

        from kafka_assignors.coordinator._simulator.exchange import lead_by_contract  # noqa: PLC0415 - as above

        group, places = situation.group, situation.place_of
        members = group.members
        assignors = [self._assignors[one] for one in _identities(group)]
        joined = [
            (
                members.ids[number],
                members.instance_ids[number],
                assignors[number].metadata(set(members.topics[members.topics_of[number]])).encode(),
            )
            for number in order
        ]
        topics: dict[str, list[int]] = {}
        for topic, partition in places:
            topics.setdefault(topic, []).append(partition)
        answer = lead_by_contract(self._assignors[self._leader], topics, joined)
        self._generation += 1
        has = np.full(group.size, NOBODY, dtype=np.int64)
        for number in order:
            name = members.ids[number]
            if name not in answer:
                continue  # kafka-python tells its assignor nothing of this
            assigned = ConsumerProtocolAssignment.decode(answer[name])
            assignors[number].on_assignment(assigned, self._generation)
            for topic, partition in assigned.partitions():
                place = places.get((topic, partition))
                if place is None:
                    raise ValueError(f"{name} was given {topic}-{partition}, which does not exist")
                if has[place] != NOBODY:
                    raise ValueError("a partition was given to two members")
                has[place] = number
        return has


def _identities(group: Group) -> list[str]:
    ids = zip(group.members.instance_ids, group.members.ids, strict=True)
    return [instance_id or member_id for instance_id, member_id in ids]


_PLANNED: Final = {
    name: Planned(plan=load(STRATEGIES[name].planner or ""), **how)
    for name, how in {
        "range": {},
        "roundrobin": {},
        "sticky": {"sticky": True},
        "cooperative-sticky": {"sticky": True, "in_rounds": True},
        "copartitioned": {"sticky": True, "in_rounds": True},
        "kip54": {"sticky": True},
        "kip848:uniform": {"sticky": True},
        "kip848:range": {},
    }.items()
}


def leader_of(name: str) -> Planned | ByLoad | ByContract:
    """A leader for one replay, by a name of `REPLAYED` or the `module:Class` of an assignor for kafka-python.

    If there is none, or its class needs arguments, that is a ValueError.
    """
    if name in _PLANNED:
        return _PLANNED[name]
    if name == LOAD_AWARE:
        return ByLoad()
    path = KAFKA_PYTHON.get(name, name)
    module, _, attribute = path.partition(":")
    from kafka.coordinator.assignors.abstract import RebalanceProtocol  # noqa: PLC0415 - slow to import

    known = f"choose one of {', '.join(REPLAYED)}, or module:Class of your own"
    if not module or not attribute or module in {"kafka-python", "kip848"}:
        raise ValueError(f"there is no assignor {name!r}; {known}")
    try:
        made = load(path)
    except (ImportError, AttributeError, TypeError) as fault:
        raise ValueError(f"there is no assignor {name!r} ({fault}); {known}") from fault
    missing = [method for method in ("metadata", "assign", "on_assignment") if not hasattr(made, method)]
    if not callable(made) or missing:
        raise ValueError(
            f"{name!r} is no assignor of kafka-python's contract"
            f" (it has no {', '.join(missing) or 'constructor'}); {known}"
        )
    try:
        protocols = made().supported_protocols()
    except Exception as fault:
        raise ValueError(f"{name!r} cannot be made without arguments ({fault}); {known}") from fault
    return ByContract(make=made, cooperative=RebalanceProtocol.COOPERATIVE in protocols)
