"""The loads that members have in best-balanced plans, found by paths that even out the loads.

For balance only counts matter, and members with the same topics and weight, a *team*, can swap everything. In
a team of n members of weight w with L partitions, the next one costs (2 (L // n) + 1) / w. The last one costs
(2 ((L - 1) // n) + 1) / w. Balance is best when no team can hand a partition on, over other teams, to one
where it costs less (Harvey et al. 2006, "Semi-matchings for bipartite graphs and load balancing").
"""

from collections.abc import Callable, Iterable
from fractions import Fraction

import numpy as np

from kafka_assignors._model.group import IntArray
from kafka_assignors._model.plan import Plan

_Path = list[tuple[int, int, int]]  # (team that gives, class of topics, team that gets)


def load_range(plan: Plan) -> tuple[IntArray, IntArray]:
    """The fewest and the most partitions of each member in any best-balanced plan for the plan's group.

    Two arrays (M,); they differ by at most 1, as a member has no two slots that cost the same. The nearer the
    plan is to balance, the faster.
    """
    teams = _Teams(plan)
    teams.even_out()
    lowest, highest = teams.range()
    return lowest[teams.team_of], highest[teams.team_of]


def best_balance(plan: Plan) -> Fraction:
    """The sum of load^2 / weight in a best-balanced plan for the plan's group."""
    teams = _Teams(plan)
    teams.even_out()
    total = Fraction(0)
    for load, size, weight in zip(teams.load, teams.size, teams.weight, strict=True):
        each, over = divmod(load, size)
        total += Fraction((size - over) * each**2 + over * (each + 1) ** 2, weight)
    return total


class _Teams:
    """Members in teams, topics with the same subscribers in classes, and how many partitions go where."""

    def __init__(self, plan: Plan) -> None:
        group = plan.group
        numbers: dict[tuple[tuple[int, ...], int], int] = {}
        keys = zip(group.subscriptions, group.weights.tolist(), strict=True)
        self.team_of = np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)
        self.size: list[int] = np.bincount(self.team_of).tolist()
        self.weight = [weight for _, weight in numbers]
        classes: dict[tuple[int, ...], int] = {}
        class_of = np.array(
            [classes.setdefault(members, len(classes)) for members in group.subscribers], dtype=np.int64
        )
        self.classes = [set(class_of[list(topics)].tolist()) for topics, _ in numbers]
        self.subscribers = [set(self.team_of[list(members)].tolist()) for members in classes]
        self.held: list[dict[int, int]] = [{} for _ in numbers]  # team -> class -> count, none of them 0
        self.holders: list[set[int]] = [set() for _ in classes]
        self.load = [0] * len(numbers)
        if group.size:
            key = self.team_of[plan.owner] * len(classes) + class_of[group.topic_of]
            for pair, count in zip(*map(np.ndarray.tolist, np.unique(key, return_counts=True)), strict=True):
                self._add(pair // len(classes), pair % len(classes), count)

    def _add(self, team: int, topic_class: int, count: int) -> None:
        self.load[team] += count
        left = self.held[team].pop(topic_class, 0) + count
        if left:
            self.held[team][topic_class] = left
            self.holders[topic_class].add(team)
        else:
            self.holders[topic_class].discard(team)

    def gain(self, team: int, more: int = 0) -> float:
        """What the next partition costs in this team when it got `more` before. Exact enough to compare."""
        return (2 * ((self.load[team] + more) // self.size[team]) + 1) / self.weight[team]

    def lose(self, team: int, fewer: int = 0) -> float:
        """What the last partition costs in this team when it gave `fewer` before; -1 if there is none."""
        if self.load[team] <= fewer:
            return -1.0
        return (2 * ((self.load[team] - 1 - fewer) // self.size[team]) + 1) / self.weight[team]

    def even_out(self) -> None:
        """Make balance best.

        Take the team where a partition costs least, and all that can hand one on to it. If none of these
        gains by that, they are done for good: no other can reach them, and where they can go it costs more.
        """
        active = {team for team, classes in enumerate(self.classes) if classes}
        while active:
            low = min(active, key=lambda team: (self.gain(team), team))
            givers = self._givers([low], active)
            useful = [team for team in givers if self.lose(team) > self.gain(low)]
            if not useful:
                active.difference_update(givers)
            for team in sorted(useful, key=lambda team: (-self.lose(team), team)):
                self._push(_path(team, givers))

    def _push(self, path: _Path) -> None:
        """Hand on as many as help along a path; none if earlier ones have used it up."""
        source, target = path[0][0], path[-1][2]
        most = min(self.held[team].get(topic_class, 0) for team, topic_class, _ in path)
        low, high = 0, most
        while low < high:
            middle = (low + high + 1) // 2
            helps = self.lose(source, middle - 1) > self.gain(target, middle - 1)
            low, high = (middle, high) if helps else (low, middle - 1)
        if low:
            for giver, topic_class, getter in path:
                self._add(giver, topic_class, -low)
                self._add(getter, topic_class, low)

    def _givers(self, teams: Iterable[int], active: set[int]) -> dict[int, tuple[int, int] | None]:
        """All teams that can hand a partition on to one of these, each with (class, next team)."""
        found: dict[int, tuple[int, int] | None] = dict.fromkeys(teams)
        queue = list(found)
        unseen = set(range(len(self.subscribers)))
        for team in queue:
            for topic_class in sorted(unseen & self.classes[team]):
                unseen.discard(topic_class)
                for giver in sorted(self.holders[topic_class] & active - found.keys()):
                    found[giver] = (topic_class, team)
                    queue.append(giver)
        return found

    def range(self) -> tuple[IntArray, IntArray]:
        """The fewest and the most that a member of each team has, once balance is best.

        A team whose members do not all have as much has both. Else one more, or one fewer, is as good if
        the partition can come from, or go to, a team where it costs the same.
        """
        teams = range(len(self.load))
        best_source = self._spread(sorted(teams, key=lambda t: -self.lose(t)), self.lose, self._getters_of)
        best_target = self._spread(sorted(teams, key=self.gain), self.gain, self._givers_of)
        lowest, highest = [], []
        for team in teams:
            each, over = divmod(self.load[team], self.size[team])
            more = over or best_source[team] == self.gain(team)
            fewer = not over and each and best_target[team] == self.lose(team)
            lowest.append(each - 1 if fewer else each)
            highest.append(each + 1 if more else each)
        return np.array(lowest, dtype=np.int64), np.array(highest, dtype=np.int64)

    def _spread(
        self, order: list[int], value: Callable[[int], float], neighbours: Callable[[int, set[int]], set[int]]
    ) -> dict[int, float]:
        """For each team the value of the first one in the order from which it is reached."""
        reached: dict[int, float] = {}
        unseen = set(range(len(self.subscribers)))
        for first in order:
            if first in reached:
                continue
            reached[first] = value(first)
            queue = [first]
            for team in queue:
                new = sorted(neighbours(team, unseen) - reached.keys())
                reached.update(dict.fromkeys(new, value(first)))
                queue.extend(new)
        return reached

    def _getters_of(self, team: int, unseen: set[int]) -> set[int]:
        """The teams to which this one can hand a partition of classes not yet seen."""
        classes = unseen & self.held[team].keys()
        unseen -= classes
        return set[int]().union(*(self.subscribers[topic_class] for topic_class in classes))

    def _givers_of(self, team: int, unseen: set[int]) -> set[int]:
        """The teams that can hand this one a partition of classes not yet seen."""
        classes = unseen & self.classes[team]
        unseen -= classes
        return set[int]().union(*(self.holders[topic_class] for topic_class in classes))


def _path(team: int, givers: dict[int, tuple[int, int] | None]) -> _Path:
    path = []
    while (step := givers[team]) is not None:
        path.append((team, *step))
        team = step[1]
    return path
