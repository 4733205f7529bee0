"""What the best placement reaches, by trying all (`Oracle`) or by CP-SAT (`Solved`), and random cases.

Nothing here is a flow. The rules are put in other words than the planner's: racks are filled most evenly if
the sum of squares of a partition's replicas in each is least; loads are best if, sorted, they are the
lexicographically least.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from itertools import combinations
from random import Random
from typing import Any

from ortools.sat.python import cp_model

from kafka_assignors.placement._planning.moves import MovePlan, plan_moves

_BITS = 8
"""Loads are counted in the bytes of one integer."""

_MANY = 2**10
"""More than anything that is counted here, but for bytes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """Arguments of `plan_moves`."""

    topics: dict[str, dict[int, list[int]]]
    racks: dict[int, str | None]
    replication_factor: int | None = None
    sizes: dict[tuple[str, int], int] | None = None
    brokers: list[int] | None = None
    fixed: list[str] = field(default_factory=list)
    per_topic: bool = False
    under_way: dict[str, dict[int, list[int]]] = field(default_factory=dict)

    def plan(self) -> MovePlan:
        return plan_moves(**{field.name: getattr(self, field.name) for field in fields(self)})

    @property
    def allowed(self) -> list[int]:
        return sorted(self.racks if self.brokers is None else self.brokers)

    @property
    def planned(self) -> list[tuple[str, int]]:
        return [(t, p) for t in sorted(self.topics) if t not in self.fixed for p in sorted(self.topics[t])]

    def factor(self, topic: str, partition: int) -> int:
        return self.replication_factor or len(self.topics[topic][partition])

    def problems(self) -> list[list[tuple[str, int]]]:
        """The partitions that are balanced together."""
        if not self.per_topic:
            return [self.planned]
        return [
            [(t, p) for t, p in self.planned if t == topic] for topic in sorted({t for t, _ in self.planned})
        ]

    def beside(self) -> list[list[int]]:
        """The replicas of partitions that count and stay."""
        return [] if self.per_topic else [rs for t in self.fixed for rs in self.topics[t].values()]

    def shuffled(self, random: Random) -> "Case":
        def mixed(mapping: Mapping[Any, Any]) -> dict[Any, Any]:
            return dict(random.sample(list(mapping.items()), len(mapping)))

        return replace(
            self,
            topics=mixed({topic: mixed(of) for topic, of in self.topics.items()}),
            racks=mixed(self.racks),
            sizes=None if self.sizes is None else mixed(self.sizes),
            brokers=None if self.brokers is None else random.sample(self.brokers, len(self.brokers)),
            fixed=random.sample(self.fixed, len(self.fixed)),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """What a placement of partitions that are balanced together reaches, goal by goal.

    Attributes:
        loads: The brokers' replicas, most first.
        moved: Bytes added, replicas added, present leaders that lose their replica.
        leaders: The brokers' leaders, most first.
        changed: Partitions with another leader.
    """

    loads: list[int]
    moved: tuple[int, int, int]
    leaders: list[int]
    changed: int


Replicas = dict[tuple[str, int], list[int]]


def reached(case: Case, problem: list[tuple[str, int]], after: Replicas) -> Reached:
    replicas, leaders = Counter[int](), Counter[int]()
    for brokers in [*case.beside(), *(after[key] for key in problem)]:
        replicas.update(brokers)
        leaders[brokers[0]] += 1
    return Reached(
        loads=sorted((replicas[broker] for broker in case.allowed), reverse=True),
        moved=total(cost(case, key, after[key]) for key in problem),
        leaders=sorted((leaders[broker] for broker in case.allowed), reverse=True),
        changed=sum(after[t, p][0] != case.topics[t][p][0] for t, p in problem),
    )


def cost(case: Case, key: tuple[str, int], brokers: Collection[int]) -> tuple[int, int, int]:
    """Bytes added, replicas added, leaders that lose their replica."""
    present = case.topics[key[0]][key[1]]
    added = len(set(brokers) - set(present))
    size = case.sizes[key] if case.sizes else 0
    return size * added, added, int(present[0] not in brokers)


def total(costs: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    first, second, third = zip(*costs, strict=True)
    return sum(first), sum(second), sum(third)


@cache
def even_sets(racks: tuple[tuple[int, str | None], ...], factor: int) -> list[tuple[int, ...]]:
    """The sets of brokers that a partition may have, all of which are tried."""
    rack_of = dict(racks)

    def unevenness(brokers: tuple[int, ...]) -> int:
        return sum(count**2 for count in Counter(rack_of[broker] for broker in brokers).values())

    found = list(combinations(sorted(rack_of), factor))
    least = min(map(unevenness, found))
    return [brokers for brokers in found if unevenness(brokers) == least]


def sets_of(case: Case, key: tuple[str, int]) -> list[tuple[int, ...]]:
    return even_sets(tuple((broker, case.racks[broker]) for broker in case.allowed), case.factor(*key))


_Choices = list[tuple[tuple[int, ...], int]]
"""For a partition: brokers that it may go to together, and what that costs."""


class Oracle:
    """All placements of partitions, one partition after another, as the loads that they lead to."""

    def __init__(self, case: Case, problem: list[tuple[str, int]]) -> None:
        self.case, self.problem = case, problem
        self.one = {broker: 1 << _BITS * at for at, broker in enumerate(case.allowed)}

    def best(self, after: Replicas) -> Reached:
        """The best there is; leaders among the replicas that a placement has."""
        case = self.case
        beside = case.beside()
        options: list[_Choices] = [
            [(brokers, self._weight(cost(case, key, brokers))) for brokers in sets_of(case, key)]
            for key in self.problem
        ]
        loads, moved = self._try_all(options, [broker for replicas in beside for broker in replicas])
        leads: list[_Choices] = [
            [((broker,), int(broker != case.topics[key[0]][key[1]][0])) for broker in after[key]]
            for key in self.problem
        ]
        leaders, changed = self._try_all(leads, [replicas[0] for replicas in beside])
        bytes_and_added, lost = divmod(moved, _MANY)
        return Reached(
            loads=loads, moved=(*divmod(bytes_and_added, _MANY), lost), leaders=leaders, changed=changed
        )

    @staticmethod
    def _weight(moved: tuple[int, int, int]) -> int:
        return (moved[0] * _MANY + moved[1]) * _MANY + moved[2]

    def _try_all(self, options: list[_Choices], beside: Iterable[int]) -> tuple[list[int], int]:
        """The best loads, most first, and the least cost with them."""
        states = {sum(self.one.get(broker, 0) for broker in beside): 0}
        for choices in options:
            coded = [(sum(self.one[broker] for broker in brokers), weight) for brokers, weight in choices]
            following: dict[int, int] = {}
            for state, so_far in states.items():
                for code, weight in coded:
                    loads, now = state + code, so_far + weight
                    if now < following.get(loads, now + 1):
                        following[loads] = now
            states = following
        width = len(self.one)
        return min((sorted(state.to_bytes(width), reverse=True), weight) for state, weight in states.items())


class Solved:
    """The same by CP-SAT, for cases with too many placements to try."""

    def __init__(self, case: Case, problem: list[tuple[str, int]]) -> None:
        self.case, self.problem = case, problem

    def best(self, after: Replicas) -> Reached:
        """The best there is; leaders among the replicas that a placement has."""
        case = self.case
        beside = case.beside()
        keys = self.problem
        model = cp_model.CpModel()
        on = {(key, broker): model.new_bool_var(f"{key} {broker}") for key in keys for broker in case.allowed}
        for key in keys:
            shapes = [Counter(case.racks[broker] for broker in brokers) for brokers in sets_of(case, key)]
            model.add(sum(on[key, broker] for broker in case.allowed) == case.factor(*key))
            for rack in {case.racks[broker] for broker in case.allowed}:
                there = sum(on[key, broker] for broker in case.allowed if case.racks[broker] == rack)
                model.add(there >= min(shape[rack] for shape in shapes))
                model.add(there <= max(shape[rack] for shape in shapes))
        held = Counter(broker for replicas in beside for broker in replicas)
        loads = self._even_out(model, {b: [on[key, b] for key in keys] for b in case.allowed}, held)
        present = {key: case.topics[key[0]][key[1]] for key in keys}
        absent = [(key, b) for key in keys for b in case.allowed if b not in present[key]]
        at_leader = [on[key, present[key][0]] for key in keys if present[key][0] in case.allowed]
        sizes = case.sizes or {}
        moved = (
            self._minimize(model, sum(sizes.get(key, 0) * on[key, b] for key, b in absent)),
            self._minimize(model, sum(on[key, b] for key, b in absent)),
            self._minimize(model, len(keys) - sum(at_leader)),
        )
        model = cp_model.CpModel()
        leads = {(key, b): model.new_bool_var(f"{key} {b}") for key in keys for b in after[key]}
        for key in keys:
            model.add_exactly_one(leads[key, b] for b in after[key])
        led = {b: [leads[key, b] for key in keys if b in after[key]] for b in case.allowed}
        leaders = self._even_out(model, led, Counter(replicas[0] for replicas in beside))
        changes = [var for (key, b), var in leads.items() if b != present[key][0]]
        return Reached(loads=loads, moved=moved, leaders=leaders, changed=self._minimize(model, sum(changes)))

    @staticmethod
    def _even_out(model: Any, taken: dict[int, list[Any]], held: Counter[int]) -> list[int]:
        """Find the least sum of squares, demand it from now on, and return such loads, most first."""
        steps: list[tuple[int, Any]] = []
        loads = {}
        for broker, variables in taken.items():
            levels = [model.new_bool_var("") for _ in variables]
            model.add(sum(levels) == sum(variables))
            steps += [(2 * (held[broker] + at) + 1, level) for at, level in enumerate(levels)]
            loads[broker] = sum(levels) + held[broker]
        squares = sum(slope * level for slope, level in steps)
        solver = Solved._solve(model, squares)
        model.add(squares <= round(solver.objective_value))
        return sorted((int(solver.value(load)) for load in loads.values()), reverse=True)

    @staticmethod
    def _minimize(model: Any, objective: Any) -> int:
        if isinstance(objective, int):
            return objective
        solver = Solved._solve(model, objective)
        least = int(solver.value(objective))
        model.add(objective <= least)  # `==` of sizes up to 2**40 took half an hour, this none
        return least

    @staticmethod
    def _solve(model: Any, objective: Any) -> Any:
        model.minimize(objective)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 1
        status = solver.solve(model)
        assert status == cp_model.OPTIMAL, solver.status_name(status)
        return solver


def random_case(seed: int, *, brokers: int = 6, partitions: int = 8) -> Case:
    """A case of any kind; most are smaller than these limits."""
    random = Random(seed)
    ids = sorted(random.sample(range(12), random.randint(2, brokers)))
    rack_names = random.choice(["", "", "a", "ab", "aab", "abc", "aaab", "abcdef"])
    racks = {broker: random.choice(rack_names) if rack_names else None for broker in ids}
    gone = (
        random.sample(ids, random.randint(1, len(ids) - 1)) if len(ids) > 2 and random.random() < 0.3 else []
    )
    allowed = sorted(set(ids) - set(gone))
    dead = [90] if random.random() < 0.2 else []
    most = min(len(allowed), 4)
    names = random.sample(["t", "u", "v"], random.randint(1, 3))
    left = random.randint(1, partitions)
    one_factor = random.randint(1, most) if random.random() < 0.5 else None
    crowd = random.sample(ids, random.randint(most, len(ids))) if random.random() < 0.3 else ids
    topics: dict[str, dict[int, list[int]]] = {}
    for name in names:
        count = left if name == names[-1] else random.randint(0, left)
        left -= count
        topics[name] = {
            p: random.sample(crowd + dead, one_factor or random.randint(1, most))
            for p in random.sample(range(30), count)
        }
    factors = [None, None, random.randint(1, most)]
    fixed = [name for name in names if random.random() < 0.15]
    keys = [(t, p) for t, of in topics.items() for p in of]
    highest = random.choice([1, 3, 2**20, 2**40])
    return Case(
        topics=topics,
        racks=racks,
        replication_factor=random.choice(factors),
        sizes={key: random.randint(0, highest) for key in keys} if random.random() < 0.5 else None,
        brokers=allowed if gone or random.random() < 0.1 else None,
        fixed=fixed,
        per_topic=random.random() < 0.2,
    )
