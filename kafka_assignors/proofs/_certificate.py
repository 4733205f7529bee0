"""Whether a plan reaches its goals, with a reason that can be checked: a better plan, or that none exists.

The argument shares nothing with the planners. Any change to a plan is made of cycles in its residual graph
(`_residual.py`). If the search finds none that makes the plan better, the plan is optimal. If it finds one,
that is a chain of moves by which the plan becomes better.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np

from kafka_assignors._model.arrays import IntArray
from kafka_assignors._model.plan import Goal, InvalidPlanError, Plan, check
from kafka_assignors.proofs import _goals as goals
from kafka_assignors.proofs._findings import Certificate, Finding, Move
from kafka_assignors.proofs._goals import Window
from kafka_assignors.proofs._load_range import load_range
from kafka_assignors.proofs._residual import Cells, Graded, Residual
from kafka_assignors.proofs._witness import changed, moves_to, needed_moves, swapped

_PATIENCE = 1_000_000_000
"""How many arcs to look at, at most, for the proof that no narrower window would do: some ten seconds."""

_NAMED = 10
"""How many members of a chain to name."""


def require_complete(plan: Plan) -> None:
    """Raise ValueError if there can be no certificate of a plan."""
    try:
        check(plan, plan.group)
    except InvalidPlanError as error:
        raise ValueError(
            f"{error}; there are certificates only for complete plans, with one member for each "
            "partition: not for broadcast, nor for a round that holds back some"
        ) from error


class Examiner:
    """Looks at one plan, that is complete, and in which each partition is by itself."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.cells = Cells.of(plan.group)
        self.residual = Residual(self.cells, self.cells.counts(plan.owner))
        self.rounds = 0
        self.window: Window | None = None
        self.wasteful = plan.moves > needed_moves(self.cells, self.residual.given)

    def certificate(self) -> Certificate:
        goal, group = self.plan.goal, self.plan.group
        if goal.max_skew is None and goal.max_moves is None:
            names = ["balance", "racks", "moves"]
        else:
            self._open_window()
            names = ["budget", "window", "moves", "narrowest window", "racks", "balance"]
            names = [name for name in names if name in self._asked(goal)]
        if not self.cells.racks:
            names.remove("racks")
        findings = tuple(self._examine(names))
        skew: int | None = None
        allowed: tuple[tuple[str, int, int], ...] = ()
        if self.window is not None:
            ids = [member.member_id for member in group.members]
            skew, bounds = self.window.skew, (self.window.lowest.tolist(), self.window.highest.tolist())
            allowed = tuple(zip(ids, *bounds, strict=True))
        return Certificate(
            goal=goal,
            goals=findings,
            skew=skew,
            allowed=allowed,
            cells=self.cells.count,
            arcs=self.residual.arcs,
            rounds=self.rounds,
        )

    def _asked(self, goal: Goal) -> set[str]:
        """With a budget, the window is made so that the plan is in it: then it is to be the narrowest."""
        limit = {"window"} if goal.max_moves is None else {"budget", "narrowest window"}
        return {"moves", "racks", "balance"} | limit

    def _open_window(self) -> None:
        """Find the window: as given, or as narrow as the plan's loads are where there is a budget."""
        goal, loads = self.plan.goal, self.plan.loads
        self.fewest, self.most = load_range(self.plan)
        skew = goal.skew
        if goal.max_moves is not None:
            skew = max(skew, int(np.maximum(self.fewest - loads, loads - self.most).max(initial=0)))
        self.window = self._window(skew)

    def _window(self, skew: int) -> Window:
        return Window(skew=skew, lowest=np.maximum(self.fewest - skew, 0), highest=self.most + skew)

    def _examine(self, names: Sequence[str]) -> Iterator[Finding]:
        """Ask for all goals at once; only if that fails, for the first, the first two, and so on."""
        graded = [name for name in names if name in self._COSTS]
        everything_best = not self.wasteful and not self._cycle(graded)
        failed = ""
        for place, name in enumerate(names):
            if failed:
                yield self._finding(name, proved=None, reason=f"not looked at, as {failed} comes first")
            elif everything_best and name in graded:
                yield self._finding(name, proved=True)
            else:
                yield (finding := self._verdict(name, [n for n in names[: place + 1] if n in graded]))
                failed = name if finding.proved is False else ""

    def _verdict(self, name: str, so_far: Sequence[str]) -> Finding:
        """Whether this goal can be better, those before it being best."""
        if name == "budget":
            return self._budget()
        if name == "narrowest window":
            return self._narrowest()
        if name == "moves" and self.wasteful:
            return self._refuted(name, swapped(self.plan, self.cells, self.residual.given))
        nodes = self._cycle(so_far)
        if not nodes:
            return self._finding(name, proved=True)
        steps = self.residual.steps(nodes)
        return self._refuted(name, changed(self.plan, self.cells, steps, keep="moves" in so_far))

    _COSTS = ("window", "moves", "racks", "balance")

    def _cycle(self, names: Sequence[str]) -> list[int]:
        """A cycle that does better in the first of the goals in which it makes a difference."""
        graph = self.residual
        costs: dict[str, tuple[IntArray, int]] = {"moves": graph.moves(), "balance": graph.imbalance()}
        if "racks" in names:
            costs["racks"] = graph.misses()
        if self.window is not None:
            costs["window"] = graph.outside(self.window.lowest, self.window.highest)
        # With a budget the plan is in its window by definition, and has to stay there.
        ordered = names if self.window is None or "window" in names else ["window", *names]
        graded: Graded = [costs[name] for name in ordered]
        nodes, rounds = graph.negative_cycle(graded) if graph.arcs else ([], 0)
        self.rounds += rounds
        return nodes

    def _budget(self) -> Finding:
        budget = self.plan.goal.max_moves
        if budget is None or self.plan.moves <= budget:
            return self._finding("budget", proved=True)
        owner, moved = self.plan.owner.copy(), self.plan.moved
        owner[moved] = self.plan.group.owner[moved]
        return self._finding(
            "budget",
            proved=False,
            reason=f"{self.plan.moves - budget} too many; nothing needs to move in a wider window",
            witness=moves_to(self.plan, owner),
        )

    def _narrowest(self) -> Finding:
        """Whether a window narrower by one would need more moves than the budget has.

        The plan has the fewest moves in its window. Bring the members that are outside the narrower one
        into it one by one, each over a cheapest path: that keeps the moves the fewest for the members brought
        in so far, so as soon as they exceed the budget, they do in the narrower window.
        """
        name, budget = "narrowest window", self.plan.goal.max_moves
        if budget is None or self.window is None or self.window.skew == self.plan.goal.skew:
            return self._finding(name, proved=True)
        narrower = self._window(self.window.skew - 1)
        lowest, highest = narrower.lowest, narrower.highest
        graph = Residual(self.cells, self.residual.given.copy())
        loads, first, cost, looked = self.plan.loads, self.cells.count, self.plan.moves, 0
        steps: list[tuple[int, int, int]] = []
        for member in np.flatnonzero((loads > highest) | (loads < lowest)).tolist():
            now = graph.loads[member]
            if lowest[member] <= now <= highest[member]:
                continue
            ends = (first + member, graph.sink) if now > highest[member] else (graph.sink, first + member)
            moves = graph.moves()[0] + graph.bounded(lowest, highest)
            path, extra, rounds = graph.cheapest_path(moves, *ends)
            looked += rounds * graph.arcs
            self.rounds += rounds
            cost += extra
            if cost > budget:
                return self._finding(name, proved=True)
            if looked > _PATIENCE:
                return self._finding(
                    name,
                    proved=None,
                    reason=f"gave up after looking at {looked} arcs; the loads differ by no more than said",
                )
            steps.extend(taken := graph.steps(path))
            graph.apply(taken)
        return self._finding(
            name,
            proved=False,
            reason=f"{cost} moves are enough in a window of {narrower.skew}",
            witness=moves_to(self.plan, changed(self.plan, self.cells, steps, keep=True)),
        )

    def _refuted(self, name: str, owner: IntArray) -> Finding:
        """A finding with the better owners as its witness."""
        better = Plan.from_owner(self.plan.group, owner, self.plan.goal)
        gained = goals.gain(name, self._value(name, self.plan), self._value(name, better))
        witness = moves_to(self.plan, owner)
        ids = [member.member_id for member in self.plan.group.members]
        loads = dict(zip(ids, self.plan.loads.tolist(), strict=True))
        involved = dict.fromkeys(name for move in witness for name in (move.source, move.target))
        now = ", ".join(f"{member} has {loads[member]}" for member in list(involved)[:_NAMED])
        return self._finding(name, proved=False, reason=f"{gained}; {now}", witness=witness)

    def _finding(
        self, name: str, *, proved: bool | None, reason: str = "", witness: tuple[Move, ...] = ()
    ) -> Finding:
        reached = self._value(name, self.plan)
        text = goals.text(name, reached, self.plan)
        return Finding(name=name, value=reached, text=text, proved=proved, reason=reason, witness=witness)

    def _value(self, name: str, plan: Plan) -> int | Fraction:
        return goals.value(name, plan, self.cells, self.window)
