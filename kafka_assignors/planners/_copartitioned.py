"""The plan of groups that join topics: what belongs together stays together.

Partition i of all topics of a set is one unit. Where units are of one size, the exact plan of the group of
units is the exact plan: best balance, then racks, then fewest moves of units.

Units of several sizes are planned size by size, the largest first. Each member takes part with as many units
as it has load already, rounded down, so that what is smaller evens out what is larger. Each size has the
fewest moves that its balance allows. Let members have equal topics and weights. Then loads differ by at most
the largest size, or 2 s - 1 for a smaller size s that does not divide all larger ones (`Units.spread`):

- Units of the largest size give loads that differ by one unit at most.
- Let members have loads L before the units of size s, and u = L // s + t, with the t units that they get.
  Balance is best, so u of a member with t > 0 is at most 1 above u of any other. Its load is s u + L % s, and
  L % s < s. So it is at most 2 s - 1 above any other load, or s if s divides all loads.
- A member with t = 0 is not further above others than before.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import Final

import numpy as np

from kafka_assignors._common.words import first_of
from kafka_assignors._model.arrays import NOBODY, IntArray, ranges
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Goal, Plan
from kafka_assignors._model.racks import ReplicaRacks
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors._model.topic_sets import TopicNumbers
from kafka_assignors._model.units import Units
from kafka_assignors.planners._cooperative import awaited_holders
from kafka_assignors.planners._exact.exact import plan_exact

Together = Sequence[Collection[str]]
"""Sets of topics that are joined; a topic is in one of them at most."""

_NAMED: Final = 10
_ID_BITS: Final = 32


def plan_copartitioned(
    group: Group,
    together: Together | Units | None = None,
    *,
    max_skew: int | None = None,
    max_moves: int | None = None,
    tick: Tick = go_on,
) -> Plan:
    """Plan a group so that each member has the same partition ids of all topics of a set.

    Args:
        group: The group.
        together: The sets, or what `units_of` makes of them. None for all topics that have as many partitions
            and the same subscribers.
        max_skew: See `Goal`; in units.
        max_moves: See `Goal`; in units.
        tick: Called again and again while a plan is made; it may raise to give up.

    Raises:
        ValueError: An option is negative.
    """
    units = together if isinstance(together, Units) else units_of(group, together)[0]
    goal = Goal(max_skew=max_skew, max_moves=max_moves)
    owner, loads = np.full(units.first.size, NOBODY), np.zeros_like(group.weights)
    sizes = np.unique(units.sizes)[::-1].tolist() if group.members else []
    exact = partial(plan_exact, max_skew=max_skew, tick=tick)
    for size in sizes:
        chosen = np.flatnonzero(units.sizes == size)
        part = _beside(units.as_group(group, chosen), loads // size)
        plan = exact(part, max_moves=max_moves)
        max_moves = None if max_moves is None else max_moves - plan.moves
        waits, before = _waiting(group, units, chosen, plan.owner), 0
        # In the second round another of equal members could get these, and smaller units would move for it.
        # So they are planned as they will be then, until no more of them stay with those who hold them.
        while len(sizes) > 1 and waits.size not in {0, before}:
            before, prior = waits.size, plan.owner.copy()
            prior[waits] = NOBODY
            plan = exact(replace(part, owner=prior), max_moves=None if max_moves is None else 0)
            waits = _waiting(group, units, chosen, plan.owner)
        owner[chosen] = plan.owner[: chosen.size]
        loads += size * np.bincount(owner[chosen], minlength=loads.size)
    return Plan.from_owner(group, owner[units.of], goal, units)


def _waiting(group: Group, units: Units, chosen: IntArray, owner: IntArray) -> IntArray:
    """Which of the chosen units their owners, which come first, get in the second round only, by place."""
    of = np.full(units.first.size, NOBODY)
    of[chosen] = owner[: chosen.size]
    awaited = awaited_holders(Plan.from_owner(group, of[units.of], units=units))
    return np.flatnonzero(np.isin(chosen, units.of[awaited[:, 0]]))


def _beside(group: Group, loads: IntArray) -> Group:
    """The group in which each member has so many partitions more, of a topic that it alone subscribes to.

    What all have by their weights is left out, as it makes no difference.
    """
    loads = loads - (loads // group.weights).min() * group.weights
    loaded = np.flatnonzero(loads)
    if not loaded.size:
        return group
    subscribed, topics = group.subscribed, len(group.topics)
    own = np.repeat(loaded, loads[loaded])
    sets = group.subscription_of[loaded]
    sizes = np.diff(subscribed.bounds)[sets]
    entries, _ = ranges(subscribed.bounds[sets], sizes)
    numbers = np.insert(subscribed.numbers[entries], sizes.cumsum(), topics + np.arange(loaded.size))
    which = group.subscription_of.copy()
    which[loaded] = len(subscribed) + np.arange(loaded.size)
    racks = group.replica_racks
    if racks is not None:  # a load is where all replicas are, so that racks matter as without it
        everywhere, which_racks = frozenset[str]().union(*racks.sets), np.full(own.size, len(racks.sets))
        racks = ReplicaRacks(sets=(*racks.sets, everywhere), which=np.concatenate((racks.which, which_racks)))
    return replace(
        group,
        topics=(*group.topics, *(f"load of {group.members.ids[member]}" for member in loaded.tolist())),
        partition_ids=np.concatenate((group.partition_ids, np.arange(own.size))),
        topic_bounds=np.concatenate((group.topic_bounds, group.size + np.cumsum(loads[loaded]))),
        subscribed=TopicNumbers(
            topics=topics + loaded.size,
            bounds=np.concatenate((subscribed.bounds, subscribed.numbers.size + np.cumsum(sizes + 1))),
            numbers=np.concatenate((subscribed.numbers, numbers)),
        ),
        subscription_of=which,
        owner=np.concatenate((group.owner, own)),
        replica_racks=racks,
    )


def units_of(group: Group, together: Together | None) -> tuple[Units, Mapping[str, str]]:
    """What belongs together in a group, and what is odd about its topics, by their names.

    A topic with other subscribers than most of its set is by itself.
    """
    set_of, counts = np.arange(len(group.topics)), np.diff(group.topic_bounds)
    odd: dict[str, str] = {}
    if together is None:
        # Topics with the same subscribers have one tuple of them.
        alike: dict[tuple[int, int], int] = {}
        keys = zip(counts.tolist(), map(id, group.subscribers), strict=True)
        set_of = np.array([alike.setdefault(key, topic) for topic, key in enumerate(keys)], dtype=np.int64)
    else:
        numbers = {topic: number for number, topic in enumerate(group.topics)}
        for names in together:
            found = sorted(numbers[name] for name in names if name in numbers)
            kept = _subscribed_alike(group, found, odd)
            set_of[kept] = kept[:1]
            if len({*counts[kept].tolist()}) > 1:
                odd[first_of([group.topics[topic] for topic in kept], _NAMED)] = (
                    f"they have {first_of(counts[kept].tolist(), _NAMED)} partitions; "
                    "what only the longer ones have is joined with nothing"
                )
    return Units.by(set_of[group.topic_of] << _ID_BITS | group.partition_ids), odd


def _subscribed_alike(group: Group, topics: Sequence[int], odd: dict[str, str]) -> Sequence[int]:
    """The topics of a set with the subscribers that most of them have, of several those with the most."""
    by_subscribers: dict[tuple[int, ...], list[int]] = {}
    for topic in topics:
        by_subscribers.setdefault(group.subscribers[topic], []).append(topic)
    if len(by_subscribers) <= 1:
        return topics
    members, kept = max(by_subscribers.items(), key=lambda one: (len(one[1]), len(one[0])))
    for others, listed in by_subscribers.items():
        differing = [group.members.ids[number] for number in sorted({*others} ^ {*members})]
        for topic in listed if others != members else ():
            odd[group.topics[topic]] = (
                f"it is left out of its set with {first_of([group.topics[each] for each in kept], _NAMED)}, "
                f"as these members do not subscribe to both: {first_of(differing, _NAMED)}"
            )
    return kept


def digest(together: Together | None) -> bytes:
    """What members tell of their sets, to be compared: 4 bytes, none without sets."""
    if together is None:
        return b""
    return blake2b(json.dumps(sorted(map(sorted, together))).encode(), digest_size=4).digest()
