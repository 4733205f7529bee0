"""A plan by what partitions cost: the slowest member is done soonest, then racks, then few moves.

A member with W seconds of work that waits, A that arrive a second, and speed s is done after W / (s - A).
That says little where next to nothing waits, and nothing where more arrives than it can take. So a plan's
*time* is the least t of its slowest member with W + h * A <= t * s. There h is t, but at least `HORIZON` and
at most `SATURATED`. Between the two the time is W / (s - A); at both ends A / s decides.

For a given t this is to pack partitions of given sizes into members of given room. `_packing.py` does that
from the present owners on. Here is which t to ask for, and whether what is gained is worth it.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from kafka_assignors._model.arrays import NOBODY, BoolArray, FloatArray, IntArray
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Goal, Plan
from kafka_assignors._model.tick import Tick, go_on
from kafka_assignors.planners._exact.exact import plan_exact
from kafka_assignors.planners._packing import Packing, Places, bound_of

HORIZON: Final = 60.0
"""Seconds of arrivals that count at the least: lag of less is noise."""

SATURATED: Final = 86_400.0
"""Seconds of arrivals that count at the most: who is not done in a day is taken for never done."""

_LEAST_SHARE: Final = 0.01
"""What a partition costs at the least, of the mean: so that idle ones are not all one member's."""

IDLE: Final = 0.01
"""What all partitions cost at the least, of the members' time: in an idle group counts are balanced."""

_GIANT: Final = 1.1
"""How many times the share of a member a partition counts as at the most."""

_FINE: Final = 0.01
"""How near to the bound a search ends."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Load:
    """What partitions cost, and how fast members are; N partitions, M members. All numbers are finite.

    Attributes:
        arriving: (N,) seconds of work of a member of speed 1 that arrive a second.
        waiting: (N,) seconds of such work that wait (lag).
        speed: (M,) how fast members are, more than 0; 1 is the mean.
        stays: (N,) whether it was moved for load lately: it stays with its owner, if that is there.
    """

    arriving: FloatArray
    waiting: FloatArray
    speed: FloatArray
    stays: BoolArray

    def is_even(self, group: Group) -> bool:
        """Whether all partitions cost the same, and members are as fast as their weights say."""
        columns = self.arriving, self.waiting, self.speed / group.weights
        return not self.stays.any() and all(np.allclose(each, each[:1], atol=0) for each in columns)

    def within(self, time: float) -> FloatArray:
        """(N,) the work of each partition that has to be done in so many seconds."""
        return self.waiting + min(max(time, HORIZON), SATURATED) * self.arriving

    def counted(self, group: Group) -> "Load":
        """The load that a plan goes by: each partition costs something, and only what has an owner stays."""
        share = (self.arriving.mean() + self.waiting.mean() / SATURATED) * _LEAST_SHARE
        floor = max(share, IDLE * len(group.members) / group.size)
        stays = self.stays & (group.owner != NOBODY)
        return replace(self, arriving=np.maximum(self.arriving, floor), stays=stays)


def work_times(owner: IntArray, load: Load) -> FloatArray:
    """(M,) the time of each member, as this module defines it: finite, and never without arrivals."""
    given = owner != NOBODY
    arriving, waiting = (
        np.bincount(owner[given], each[given], load.speed.size) for each in (load.arriving, load.waiting)
    )
    least, most = ((waiting + h * arriving) / load.speed for h in (HORIZON, SATURATED))
    spare = np.maximum(load.speed - arriving, np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):
        between = np.clip(waiting / spare, HORIZON, SATURATED)
    return np.where(least <= HORIZON, least, np.where(most >= SATURATED, most, between))


def least_time(group: Group, load: Load) -> float:
    """Seconds below which no plan's time is, racks and moves aside: a bound, which need not be reached.

    For each horizon: the members of a topic take all of it, and one of them its costliest partition. The j
    costliest partitions of all are with j members, and one has k + 1 of the k * M + 1 costliest.
    """
    if not group.size or not group.members:
        return 0.0
    return _least_time(Places(group, go_on), load)


def plan_load(
    group: Group,
    load: Load,
    *,
    tolerance: float = 0.1,
    least_gain: float = 0.0,
    max_moves: int | None = None,
    tick: Tick = go_on,
) -> Plan:
    """Plan for the least time, within a tolerance; in that for racks (KIP-881), then for few moves.

    Partitions stay with their owners unless the time can be cut by more than the tolerance. Then it is, and
    to within half of the tolerance of the best plan found: noise does not make them move again. Free
    partitions go where they are done soonest, the costliest first. If all costs are equal, the members'
    weights are their speeds, and nothing has to stay, the plan is `plan_exact`'s.

    Args:
        group: The group.
        load: What its partitions cost, and how fast its members are.
        tolerance: A share of the time, from 0 to below 1.
        least_gain: Seconds of the time that have to be gained as well, 0 or more.
        max_moves: How many partitions may move; the gain is as large as so few make it.
        tick: Called again and again while a plan is made; it may raise to give up.
    """
    if not group.size or load.is_even(group):
        return plan_exact(group, max_moves=max_moves, tick=tick)
    places, load = Places(group, tick), load.counted(group)
    search = _Search(places, load)
    owner = search.better(search.placed(), tolerance, least_gain, max_moves)
    others = _without_giants(places, load) if group.uniform else None
    if others is not None:
        balanced = _Search(places, others).better(owner, tolerance, least_gain, max_moves)
        owner = balanced if search.time(balanced) <= search.time(owner) else owner
    return Plan.from_owner(group, owner, Goal(max_moves=max_moves))


def place_load(group: Group, load: Load) -> Plan:
    """A plan in little time: partitions stay with their owners, free ones go where they are done soonest.

    Racks do not count: there is no time to even out what they would pile up.
    """
    load, owned = load.counted(group), group.owner != NOBODY
    sizes, places = load.within(HORIZON), Places(replace(group, replica_racks=None), go_on)
    packing = Packing(places, group.owner, sizes=sizes, speed=load.speed, time=0.0, fixed=owned)
    packing.place()
    return Plan.from_owner(group, packing.owner)


def _without_giants(places: Places, load: Load) -> Load | None:
    """The load in which what is more than a member's share stays, and counts as little more than a share.

    No plan relieves a member of its one partition. If that counted as a whole, no other member would have too
    much. None if there is no such partition.
    """
    sizes = load.within(_least_time(places, load))
    order = np.argsort(-sizes, kind="stable")[: load.speed.size - 1]
    before = np.cumsum(sizes[order]) - sizes[order]
    share = (sizes.sum() - before) / (load.speed.sum() - np.arange(order.size))
    giants = order[: int(np.argmax(np.append(sizes[order] <= _GIANT * share, [True])))]
    if giants.size in {0, sizes.size}:
        return None
    less, stays = np.ones(sizes.size), load.stays.copy()
    rest = np.delete(sizes, giants).sum()
    less[giants] = _GIANT * rest / (load.speed.sum() - giants.size) / sizes[giants]
    stays[giants] = True
    return replace(load, arriving=load.arriving * less, waiting=load.waiting * less, stays=stays)


class _Search:
    """Asks for one time after another."""

    def __init__(self, places: Places, load: Load) -> None:
        self.places, self.load = places, load
        self.least = _least_time(places, load)
        self.owned = places.group.owner != NOBODY

    def time(self, owner: IntArray) -> float:
        return float(work_times(owner, self.load).max())

    def pack(self, owner: IntArray, fixed: BoolArray, time: float, budget: int | None = None) -> IntArray:
        """Owners after a try to bring each member to this time; as good as it came if it failed."""
        sizes, speed = self.load.within(time), self.load.speed
        return Packing(self.places, owner, sizes=sizes, speed=speed, time=time, fixed=fixed).settle(budget)

    def placed(self) -> IntArray:
        """The present owners, and free partitions as well placed as they can be."""
        start = self.pack(self.places.group.owner, self.owned, self.least * (1 + _FINE / 2))
        return start if self.owned.all() else self.best(start, self.owned)[0]

    def best(self, start: IntArray, fixed: BoolArray) -> list[IntArray]:
        """Better and better owners, the best first, by bisection between the bound and what there is."""
        found, low, high = [start], self.least, self.time(start)
        target = low * (1 + _FINE / 2)  # most often the bound is reached
        while high > low * (1 + _FINE):
            tried = self.pack(start, fixed, target)
            time = self.time(tried)
            if time < high:
                found.insert(0, tried)
                high = time
            if time > target * (1 + _FINE / 4):
                low = target
            target = (low * high) ** 0.5
        return found

    def better(self, start: IntArray, tolerance: float, least_gain: float, max_moves: int | None) -> IntArray:
        """Owners whose time is within the tolerance of the best, or the present ones if little is gained."""
        now = self.time(start)
        enough = now - max(tolerance * now, least_gain)
        if self.least >= enough or max_moves == 0:
            return start
        stays = self.load.stays
        found = self.best(start, stays)
        best = self.time(found[0])
        if best > min(self.least * (1 + tolerance), enough):
            # Few moves do not reach what is possible: whether many do is worth a look, and rarely the price.
            anew = np.where(stays, start, NOBODY)
            others = self.best(self.pack(anew, stays, self.least * (1 + _FINE / 2)), stays)
            if best > min(self.time(others[0]) * (1 + tolerance), enough):
                found += others
                best = min(map(self.time, found))
        if best > enough:
            return start
        limit = max(best, min(best * (1 + tolerance / 2), enough))
        found = [self.pack(start, stays, limit), *found]
        within = [owner for owner in found if self.time(owner) <= limit * (1 + _FINE / 4)]
        chosen = min(within, key=lambda owner: (self.places.away(owner), self.places.moves(owner)))
        if max_moves is not None and self.places.moves(chosen) > max_moves:
            return self.pack(start, stays, limit, max_moves)
        return chosen


def _least_time(places: Places, load: Load) -> float:
    low, high = (bound_of(places, load.within(h), load.speed) for h in (HORIZON, SATURATED))
    if low <= HORIZON:
        return low
    if high >= SATURATED:
        return high
    # In between the bound grows more slowly than the time, so that they meet once.
    low, high = HORIZON, SATURATED
    while high > low * (1 + _FINE / 10):
        middle = (low * high) ** 0.5
        if bound_of(places, load.within(middle), load.speed) > middle:
            low = middle
        else:
            high = middle
    return low
