"""Partitions of different sizes packed into members of different speeds, with few moves.

Longest first to whoever is done with it soonest (Graham 1969; Gonzalez, Ibarra and Sahni 1977 for speeds).
Then the member that takes longest gives one partition away, or exchanges it for a smaller one, until each is
done in time, or nothing makes it better.
"""

from functools import cache, cached_property
from typing import Final

import numpy as np

from kafka_assignors._model.arrays import NOBODY, BoolArray, FloatArray, IntArray, stable_order
from kafka_assignors._model.group import Group
from kafka_assignors._model.tick import Tick
from kafka_assignors.planners._exact.cells import Contraction

_MANY: Final = 5_000
"""From how many partitions on they are placed, or given up, in one go at first."""

_TRIED: Final = 64
"""How many partitions of a member are tried, and how many members to give them to."""

_EXCHANGED: Final = 16
"""How many partitions of each of these are tried in exchange."""

_STEPS: Final = 2_000
"""How many times one is given away or exchanged, at the most."""

_GAIN: Final = 1e-4
"""By what share of its time the member that takes longest has to become quicker in a step."""

_PUSHES: Final = 8
"""How many times a partition goes to a member that has no room, and how many members are tried."""

_NOTHING: Final = -1


class Places:
    """A group as a packing sees it: who may get what, and whose rack it is in."""

    def __init__(self, group: Group, tick: Tick) -> None:
        self.group, self.tick = group, tick
        self.alike = Contraction.of(group, tick)
        self.cell_of = self.alike.cell_of
        self.cells = int(self.cell_of.max()) + 1
        self.has_racks = self.alike.rack_of is not None
        self.members_of = cache(self._members_of)
        self.home_of = cache(self._home_of)

    @cached_property
    def _starts(self) -> IntArray:
        return self.alike.arcs.starts(self.cells)

    def _members_of(self, cell: int) -> IntArray:
        """The members that may get partitions of a cell."""
        kinds = self.alike.arcs.nodes[self._starts[cell] : self._starts[cell + 1]]
        return np.flatnonzero(np.isin(self.alike.kind_of, kinds))

    def _home_of(self, cell: int) -> IntArray:
        """Which of these are in a rack of the cell's replicas; all if none is, or racks do not matter."""
        members = self.members_of(cell)
        home = members[self.is_home(cell, members)]
        return home if home.size else members

    def is_home(self, cell: int | IntArray, member: IntArray) -> BoolArray:
        """Whether members are in racks of the partitions of cells; true where racks do not matter."""
        if self.alike.is_local is None or self.alike.rack_of is None:
            return np.ones(np.broadcast(cell, member).shape, dtype=np.bool_)
        home: BoolArray = self.alike.is_local[cell, self.alike.rack_of[member]]
        return home

    def is_moved(self, partition: IntArray, member: IntArray) -> IntArray:
        """1 where a partition moves if it is a member's, else 0."""
        prior = self.group.owner[partition]
        moved: IntArray = ((prior != NOBODY) & (prior != member)).astype(np.int64)
        return moved

    def moves(self, owner: IntArray) -> int:
        """How many partitions move."""
        return int(self.is_moved(np.arange(owner.size), owner).sum())

    def away(self, owner: IntArray) -> int:
        """How many partitions are on members in none of their racks."""
        return int(np.count_nonzero(~self.is_home(self.cell_of, owner)))


def bound_of(places: Places, sizes: FloatArray, speed: FloatArray) -> float:
    """A time in which no plan is done; `least_time` says why."""
    places.tick()
    members, fastest = speed.size, np.sort(speed)[::-1]
    most = min(sizes.size, 20 * members + 1)
    largest = np.sort(np.partition(sizes, sizes.size - most)[sizes.size - most :])[::-1]
    together = np.cumsum(largest[:members]) / np.cumsum(fastest)[: largest[:members].size]
    bounds = [sizes.sum() / speed.sum(), together.max()]
    sums = np.concatenate(([0.0], np.cumsum(largest)))
    share = np.arange(1, (most - 1) // members + 1)  # k, of whom one has k + 1 of the largest k * M + 1
    last = share * members + 1
    bounds.extend((sums[last] - sums[last - share - 1]) / fastest[0])
    if not places.group.uniform:
        total, largest = np.bincount(places.cell_of, weights=sizes), np.zeros(places.cells)
        np.maximum.at(largest, places.cell_of, sizes)
        theirs = [speed[places.members_of(cell)] for cell in range(places.cells)]
        bounds.append(max(total / [each.sum() for each in theirs]))
        bounds.append(max(largest / [each.max() for each in theirs]))
    return float(max(bounds))


class Packing:
    """Owners on their way to a time in which each member is to be done.

    Args:
        places: The group.
        owner: (N,) the owners to begin with; `NOBODY` for what is to be placed.
        sizes: (N,) the work of each partition, in seconds of speed 1.
        speed: (M,) of the members.
        time: Seconds in which each member is to be done.
        fixed: (N,) what stays with its owner.
    """

    def __init__(
        self,
        places: Places,
        owner: IntArray,
        *,
        sizes: FloatArray,
        speed: FloatArray,
        time: float,
        fixed: BoolArray,
    ) -> None:
        self.places, self.sizes, self.speed, self.time, self.fixed = places, sizes, speed, time, fixed
        self.owner = owner.copy()
        given = owner != NOBODY
        # If nothing is given, numpy counts in whole numbers.
        self.work = np.bincount(owner[given], sizes[given], speed.size).astype(np.float64)

    def settle(self, budget: int | None) -> IntArray:
        """The owners, after all that helps was done; at most so many of them new ones."""
        if self.owner.size > _MANY and budget is None:
            self._give_up()
        self.place()
        order = stable_order(self.owner, self.speed.size)
        order = order[~self.fixed[order]]
        ends = np.bincount(self.owner[order], minlength=self.speed.size).cumsum()
        self.movable = np.split(order, ends[:-1])
        left = self.owner.size if budget is None else budget - self.places.moves(self.owner)
        left = self._descend(left)
        for _ in range(_PUSHES):
            pushed = self._push(left)
            if pushed is None:
                break
            left = pushed
        return self.owner

    def _descend(self, left: int) -> int:
        """Step as long as that helps; how many partitions may still move."""
        for _ in range(_STEPS):
            self.places.tick()
            cost = self._step(left)
            if cost is None:
                break
            left -= cost
        return left

    def _push(self, left: int) -> int | None:
        """Give the largest partition of the member that takes longest to one that then has to give more away.

        Returns how many may still move; None if that helps with none of the members tried.
        """
        done = self.work / self.speed
        giver = int(done.argmax())
        if done[giver] <= self.time or not self.movable[giver].size:
            return None
        partition = self.movable[giver][self.sizes[self.movable[giver]].argmax()]
        start = self.owner, self.work, self.movable
        others = self.places.members_of(int(self.places.cell_of[partition]))
        for taker in others[np.argsort(done[others], kind="stable")][:_PUSHES].tolist():
            before, after = self.places.is_moved(np.array(partition), np.array([giver, taker])).tolist()
            cost = after - before
            if taker == giver or cost > left:
                continue
            self.owner, self.work, self.movable = start[0].copy(), start[1].copy(), [*start[2]]
            self._move(int(partition), giver, taker)
            theirs, self.movable[taker] = (
                self.movable[taker],
                self.movable[taker][:-1],
            )  # it is not to go back
            rest = self._descend(left - cost)
            self.movable[taker] = np.append(self.movable[taker], theirs[-1:])
            if (self.work / self.speed).max() < done[giver] * (1 - _GAIN):
                return rest
        self.owner, self.work, self.movable = start
        return None

    def _give_up(self) -> None:
        """Members with too much give up what is no more than that, the largest partitions first."""
        while True:
            self.places.tick()
            excess = (self.work - self.time * self.speed)[self.owner]
            given = np.flatnonzero(~self.fixed & (self.owner != NOBODY) & (self.sizes <= excess))
            if not given.size:
                return
            given = given[np.lexsort((-self.sizes[given], self.owner[given]))]
            member, total = self.owner[given], self.sizes[given].cumsum()
            before = (total - self.sizes[given])[np.searchsorted(member, member)]  # of other members
            given = given[total - before <= excess[given]]
            self.work -= np.bincount(self.owner[given], self.sizes[given], self.speed.size)
            self.owner[given] = NOBODY

    def place(self) -> None:
        """Give free partitions away, longest first; of very many the smaller ones without weighing each."""
        free = np.flatnonzero(self.owner == NOBODY)
        free = free[np.argsort(-self.sizes[free], kind="stable")]
        for partition in free[:_MANY].tolist():
            self.places.tick()
            cell, size = int(self.places.cell_of[partition]), self.sizes[partition]
            chosen, done = self._soonest(self.places.home_of(cell), size)
            if done > self.time:
                chosen, _ = self._soonest(self.places.members_of(cell), size)
            self.owner[partition] = chosen
            self.work[chosen] += size
        if free.size > _MANY:
            self._pour(np.sort(free[_MANY:]))

    def _soonest(self, members: IntArray, size: float) -> tuple[int, float]:
        """Who of some members is done soonest with a partition of this size, and when."""
        done = (self.work[members] + size) / self.speed[members]
        first = int(done.argmin())
        return int(members[first]), float(done[first])

    def _pour(self, free: IntArray) -> None:
        """Share out many small partitions, cell by cell, as water finds its level."""
        free = free[stable_order(self.places.cell_of[free], self.places.cells)]
        ends = np.bincount(self.places.cell_of[free], minlength=self.places.cells).cumsum()
        for cell, mine in enumerate(np.split(free, ends[:-1])):
            self.places.tick()
            if not mine.size:
                continue
            members, amounts = self.places.home_of(cell), self.sizes[mine]
            members = members[np.argsort(self.work[members] / self.speed[members], kind="stable")]
            work, speed = self.work[members], self.speed[members]
            # The level to which the work raises those who are done soonest: it is the lowest of these.
            level = ((amounts.sum() + work.cumsum()) / speed.cumsum()).min()
            filled = np.maximum(level * speed - work, 0.0).cumsum()
            at = np.searchsorted(filled[:-1], amounts.cumsum() - amounts / 2)
            self.owner[mine] = members[at]
            self.work += np.bincount(members[at], amounts, self.speed.size)

    def _step(self, budget: int) -> int | None:
        """Relieve the member that takes longest by one partition; None if it is in time or nothing helps.

        Returns how many partitions more move than before. What brings both members in time is preferred, and
        of that what is good for racks, then what moves least. Else both are to be done as soon as possible.
        """
        done = self.work / self.speed
        giver = int(done.argmax())
        if done[giver] <= self.time or not self.movable[giver].size:
            return None
        mine = _spread(self.movable[giver], self.sizes, _TRIED)
        cells = np.unique(self.places.cell_of[mine])
        others = np.unique(np.concatenate([self.places.members_of(cell) for cell in cells.tolist()]))
        others = others[np.argsort(done[others], kind="stable")[: _TRIED + 1]]
        others = others[others != giver]
        back = [_spread(self.movable[other], self.sizes, _EXCHANGED) for other in others.tolist()]
        takers = np.concatenate([others, np.repeat(others, [each.size for each in back])])
        back_ids = np.concatenate([np.full(others.size, _NOTHING), *back])
        is_back = back_ids != _NOTHING
        less = self.sizes[mine][:, np.newaxis] - np.where(is_back, self.sizes[back_ids], 0.0)
        after = (
            np.maximum(
                (self.work[giver] - less) / self.speed[giver], (self.work[takers] + less) / self.speed[takers]
            )
            / done[giver]
        )
        topic_of, subscribes = self.places.group.topic_of, self.places.group.subscribes
        helps = (after < 1 - _GAIN) & subscribes(takers, topic_of[mine][:, np.newaxis])
        helps &= ~is_back | subscribes(np.array(giver), topic_of[back_ids])
        cost, nearer = self._changes(giver, mine, takers, back_ids)
        helps &= cost <= budget
        if not helps.any():
            return None
        in_time = after * done[giver] <= self.time
        key = np.where(in_time, after - 100 - 10 * nearer + cost, after + cost / 1000)
        row, column = divmod(int(np.where(helps, key, np.inf).argmin()), takers.size)
        taker = int(takers[column])
        self._move(int(mine[row]), giver, taker)
        if is_back[column]:
            self._move(int(back_ids[column]), taker, giver)
        return int(cost[row, column])

    def _changes(
        self, giver: int, mine: IntArray, takers: IntArray, back: IntArray
    ) -> tuple[IntArray, IntArray]:
        """Of each exchange, how many partitions more move, and how many more are in their racks."""
        places, here = self.places, np.array(giver)
        mine = mine[:, np.newaxis]
        there = back != _NOTHING
        cost = places.is_moved(mine, takers) - places.is_moved(mine, here)
        cost += np.where(there, places.is_moved(back, here) - places.is_moved(back, takers), 0)
        if not places.has_racks:
            return cost, np.zeros_like(cost)
        cell, cell_back = places.cell_of[mine], places.cell_of[back]
        nearer = places.is_home(cell, takers).astype(np.int64) - places.is_home(cell, here)
        gained = places.is_home(cell_back, here).astype(np.int64) - places.is_home(cell_back, takers)
        return cost, nearer + np.where(there, gained, 0)

    def _move(self, partition: int, giver: int, taker: int) -> None:
        self.owner[partition] = taker
        size = self.sizes[partition]
        self.work[giver] -= size
        self.work[taker] += size
        self.movable[giver] = self.movable[giver][self.movable[giver] != partition]
        self.movable[taker] = np.append(self.movable[taker], partition)


def _spread(partitions: IntArray, sizes: FloatArray, most: int) -> IntArray:
    """Some of the partitions, of all sizes that there are."""
    if partitions.size <= most:
        return partitions
    ordered = partitions[np.argsort(sizes[partitions], kind="stable")]
    return ordered[np.linspace(0, ordered.size - 1, most).astype(np.int64)]
