"""Whether a plan reaches its goals, with a reason that can be checked: a better plan, or that none exists.

The argument shares nothing with the planners. Any change to a plan is made of cycles in its residual graph
(`_residual.py`). If the search finds none that makes the plan better, it is optimal; if it finds
one, that is a chain of moves by which it gets better.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from kafka_assignors._model.group import NOBODY, IntArray
from kafka_assignors._model.plan import Goal, InvalidPlanError, Plan, check
from kafka_assignors.proofs._load_range import load_range
from kafka_assignors.proofs._residual import Cells, Graded, Residual

_PATIENCE = 1_000_000_000
"""How many arcs to look at, at most, for the proof that no narrower window would do: some ten seconds."""

_SHOWN = 10
"""How many moves of a chain to print."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A partition that could go to another member.

    Attributes:
        topic: Its topic.
        partition: Its id in the topic.
        source: The id of the member that the plan gives it to.
        target: The id of the member that it could go to.
    """

    topic: str
    partition: int
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found out about one goal.

    Attributes:
        name: `balance`, `racks`, `moves`, and with options `budget`, `window` and `narrowest window`.
        value: What the plan reaches: the sum of load^2 / weight over the members, partitions on a member in
            one of their racks, partitions moved, partitions moved (budget), partitions by which loads are
            outside the window, the window.
        text: The same in words.
        proved: True if no valid plan does better without doing worse in an earlier goal; False if the
            witness does; None if that was not looked at.
        reason: Why it was not looked at, or what the witness gains; empty if proved.
        witness: Moves that all together make the plan better, and keep it valid.
    """

    name: str
    value: int | Fraction
    text: str
    proved: bool | None
    reason: str = ""
    witness: tuple[Move, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The finding in plain types; a value that is no whole number as a float."""
        whole = self.value == int(self.value)
        return {
            "name": self.name,
            "value": int(self.value) if whole else float(self.value),
            "text": self.text,
            "proved": self.proved,
            "reason": self.reason,
            "witness": [
                {
                    "topic": move.topic,
                    "partition": move.partition,
                    "source": move.source,
                    "target": move.target,
                }
                for move in self.witness
            ],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Whether a plan reaches its goal, and how that was found out.

    Attributes:
        goal: What the plan was to reach.
        goals: A finding for each single goal, the most important first. Racks stand there where they matter.
        skew: The window s: how many partitions more, or fewer, than in any best-balanced plan a member may
            have. None without options.
        allowed: With options, for each member its id and the fewest and the most partitions that the window
            allows it.
        cells: How many kinds of partitions there are: with the same subscribers, in the same racks.
        arcs: The size of the residual graph.
        rounds: How many times the search went through all arcs.
    """

    goal: Goal
    goals: tuple[Finding, ...]
    skew: int | None
    allowed: tuple[tuple[str, int, int], ...]
    cells: int
    arcs: int
    rounds: int

    @property
    def optimal(self) -> bool:
        """Whether every goal is proved: no valid plan is better."""
        return all(finding.proved is True for finding in self.goals)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        failed = [finding for finding in self.goals if finding.proved is False]
        if self.optimal:
            yield "optimal: no valid plan does better"
        elif failed:
            yield f"not optimal: the first goal that it misses is {failed[0].name}"
        else:
            yield "not proved to be optimal"
        yield from self._promises()
        for number, finding in enumerate(self.goals, start=1):
            state = {True: "proved", False: "could be better", None: "not checked"}[finding.proved]
            yield f"{number}. {finding.name}: {finding.text} - {state}"
            if finding.reason:
                yield f"   {finding.reason}"
            for move in finding.witness[:_SHOWN]:
                yield f"   {move.topic}-{move.partition} could go from {move.source} to {move.target}"
            if len(finding.witness) > _SHOWN:
                yield f"   and {len(finding.witness) - _SHOWN} more moves"
        yield f"searched {self.cells} kinds of partitions, {self.arcs} arcs, {self.rounds} rounds"

    def _promises(self) -> Iterator[str]:
        if self.skew is not None:
            lowest = min((low for _, low, _ in self.allowed), default=0)
            highest = max((high for _, _, high in self.allowed), default=0)
            yield (
                f"loads may be up to {self.skew} away from best balance: {lowest} to {highest} partitions, "
                "each member in its own range"
            )
        if self.goal.max_moves is not None:
            yield f"at most {self.goal.max_moves} partitions may move, in the narrowest window that allows it"

    def as_json(self) -> dict[str, Any]:
        """The certificate in plain types."""
        return {
            "optimal": self.optimal,
            "max_skew": self.goal.max_skew,
            "max_moves": self.goal.max_moves,
            "goals": [finding.as_json() for finding in self.goals],
            "skew": self.skew,
            "allowed": [
                {"member": member, "lowest": lowest, "highest": highest}
                for member, lowest, highest in self.allowed
            ],
            "cells": self.cells,
            "arcs": self.arcs,
            "rounds": self.rounds,
        }


def certify(plan: Plan) -> Certificate:
    """Check whether a plan reaches its goal.

    Args:
        plan: A complete plan of any planner: each partition with one member, who subscribes to its topic.

    Raises:
        ValueError: The plan is not complete. A cooperative first round and a broadcast are not: ask for the
            certificate of the plan that the round leads to.
        OverflowError: The group is too large for sums of costs in 64 bits (10^8 kinds of partitions).
    """
    try:
        check(plan, plan.group)
    except InvalidPlanError as error:
        raise ValueError(
            f"{error}; there are certificates only for complete plans, in which each partition has one "
            "member (not for broadcast or for a round that holds partitions back)"
        ) from error
    return _Examiner(plan).certificate()


class _Examiner:
    """Looks at one plan."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.cells = Cells.of(plan.group)
        self.residual = Residual(self.cells, self.cells.counts(plan.owner))
        self.rounds = 0
        self.skew: int | None = None
        self.lowest = self.highest = np.zeros(len(plan.group.members), dtype=np.int64)

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
        ids = [member.member_id for member in group.members]
        bounds = zip(ids, self.lowest.tolist(), self.highest.tolist(), strict=True)
        return Certificate(
            goal=goal,
            goals=findings,
            skew=self.skew,
            allowed=() if self.skew is None else tuple(bounds),
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
        self.skew = goal.max_skew or 0
        if goal.max_moves is not None:
            self.skew = max(self.skew, int(np.maximum(self.fewest - loads, loads - self.most).max(initial=0)))
        self.lowest, self.highest = self._window(self.skew)

    def _window(self, skew: int) -> tuple[IntArray, IntArray]:
        return np.maximum(self.fewest - skew, 0), self.most + skew

    def _examine(self, names: Sequence[str]) -> Iterator[Finding]:
        """Ask for all goals at once; only if that fails, for the first, the first two, and so on."""
        graded = [name for name in names if name in self._COSTS]
        everything_best = not self._wasted() and not self._cycle(graded)
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
        owner = self._swapped() if name == "moves" else None
        if owner is None:
            nodes = self._cycle(so_far)
            if not nodes:
                return self._finding(name, proved=True)
            owner = self._changed(self.residual.steps(nodes), keep="moves" in so_far)
        return self._refuted(name, owner)

    _COSTS = ("window", "moves", "racks", "balance")

    def _cycle(self, names: Sequence[str]) -> list[int]:
        """A cycle that does better in the first of the goals in which it makes a difference."""
        graph = self.residual
        costs: dict[str, tuple[IntArray, int]] = {"moves": graph.moves(), "balance": graph.imbalance()}
        if "racks" in names:
            costs["racks"] = graph.misses()
        if self.skew is not None:
            costs["window"] = graph.outside(self.lowest, self.highest)
        # With a budget the plan is in its window by definition, and has to stay there.
        ordered = names if self.skew is None or "window" in names else ["window", *names]
        graded: Graded = [costs[name] for name in ordered]
        nodes, rounds = graph.negative_cycle(graded) if graph.arcs else ([], 0)
        self.rounds += rounds
        return nodes

    def _wasted(self) -> bool:
        """Whether partitions go round among alike ones: some member has others in place of its own."""
        return self.plan.moves > self._needed_moves()

    def _needed_moves(self) -> int:
        """The fewest moves with the plan's counts."""
        return int(np.maximum(self.cells.prior - self.residual.given, 0).sum())

    def _swapped(self) -> IntArray | None:
        """The plan with one partition back at its prior owner in exchange for an alike one, if that helps."""
        if not self._wasted():
            return None
        owner, prior = self.plan.owner, self.plan.group.owner
        kept = self.cells.counts(np.where(owner == prior, owner, NOBODY))
        short = kept < np.minimum(self.residual.given, self.cells.prior)
        pair = int(np.flatnonzero(short)[0])
        cell, member = int(self.cells.cell[pair]), int(self.cells.member[pair])
        alike = self.cells.cell_of == cell
        back = int(np.flatnonzero(alike & (prior == member) & (owner != member))[0])
        out = int(np.flatnonzero(alike & (prior != member) & (owner == member))[0])
        changed = owner.copy()
        changed[back], changed[out] = member, owner[back]
        return changed

    def _changed(self, steps: Iterable[tuple[int, int, int]], *, keep: bool) -> IntArray:
        """The owners after changes of counts; `keep` picks the partitions so that the fewest move."""
        owner = self.plan.owner.copy()
        # Nobody's own is anybody's where it does not matter.
        prior = self.plan.group.owner if keep else np.full_like(owner, NOBODY)
        for source, cell, target in steps:
            _hand_on(owner, prior, np.flatnonzero(self.cells.cell_of == cell), (source, target))
        return owner

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
            witness=self._moves_to(owner),
        )

    def _narrowest(self) -> Finding:
        """Whether a window narrower by one would need more moves than the budget has.

        The plan has the fewest moves in its window. Bring the members that are outside the narrower one
        into it one by one, each over a cheapest path: that keeps the moves the fewest for the members brought
        in so far, so as soon as they exceed the budget, they do in the narrower window.
        """
        name, budget = "narrowest window", self.plan.goal.max_moves
        if budget is None or self.skew is None or self.skew == (self.plan.goal.max_skew or 0):
            return self._finding(name, proved=True)
        lowest, highest = self._window(self.skew - 1)
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
            reason=f"{cost} moves are enough in a window of {self.skew - 1}",
            witness=self._moves_to(self._changed(steps, keep=True)),
        )

    def _refuted(self, name: str, owner: IntArray) -> Finding:
        """A finding with the better owners as its witness."""
        better = Plan.from_owner(self.plan.group, owner, self.plan.goal)
        before, after = self._value(name, self.plan), self._value(name, better)
        gains = {
            "balance": f"load^2 / weight would sum up to {_plain(after)} instead of {_plain(before)}",
            "racks": f"{after} partitions would be in their rack instead of {before}",
            "moves": f"{after} partitions would move instead of {before}",
            "window": f"loads would be outside by {after} partitions instead of {before}",
        }
        witness = self._moves_to(owner)
        ids = [member.member_id for member in self.plan.group.members]
        loads = dict(zip(ids, self.plan.loads.tolist(), strict=True))
        involved = dict.fromkeys(name for move in witness for name in (move.source, move.target))
        now = ", ".join(f"{member} has {loads[member]}" for member in list(involved)[:_SHOWN])
        return self._finding(name, proved=False, reason=f"{gains[name]}; {now}", witness=witness)

    def _moves_to(self, owner: IntArray) -> tuple[Move, ...]:
        """The moves from the plan to other owners, as chains: where one goes to, the next one comes from."""
        group, before = self.plan.group, self.plan.owner
        waiting: dict[int, list[int]] = {}  # partitions that could go, by the member that has them
        for partition in np.flatnonzero(owner != before)[::-1].tolist():
            waiting.setdefault(int(before[partition]), []).append(partition)
        getters = set(owner[owner != before].tolist())
        starts = sorted(waiting, key=lambda member: (member in getters, member))
        moves = []
        for start in starts:
            member = start
            while waiting[start]:
                if not waiting.get(member):
                    member = start
                partition = waiting[member].pop()
                topic, number = group.name_of(partition)
                source, member = group.members[member].member_id, int(owner[partition])
                target = group.members[member].member_id
                moves.append(Move(topic=topic, partition=number, source=source, target=target))
        return tuple(moves)

    def _finding(
        self, name: str, *, proved: bool | None, reason: str = "", witness: tuple[Move, ...] = ()
    ) -> Finding:
        value = self._value(name, self.plan)
        return Finding(
            name=name,
            value=value,
            text=self._text(name, value),
            proved=proved,
            reason=reason,
            witness=witness,
        )

    def _value(self, name: str, plan: Plan) -> int | Fraction:
        """What a plan for the same group reaches in a goal."""
        loads, group = plan.loads, plan.group
        if name == "balance":
            weights = np.unique(group.weights)
            return sum(
                (Fraction(int((loads[group.weights == w] ** 2).sum()), int(w)) for w in weights), Fraction(0)
            )
        if name == "racks":
            return int((~self.cells.away)[self.cells.pair_of(np.arange(group.size), plan.owner)].sum())
        if name == "window":
            out = np.maximum(self.lowest - loads, 0) + np.maximum(loads - self.highest, 0)
            return int(out.sum())
        if name == "narrowest window":
            return self.skew or 0
        return plan.moves

    def _text(self, name: str, value: int | Fraction) -> str:
        loads, size = self.plan.loads, self.plan.group.size
        most, fewest = loads.max(initial=0), loads.min() if loads.size else 0
        return {
            "balance": f"{fewest} to {most} partitions a member, sum of load^2 / weight {_plain(value)}",
            "racks": f"{value} of {size} partitions on a member in one of their racks",
            "moves": f"{value} of {size} partitions move",
            "budget": f"{value} partitions move, {self.plan.goal.max_moves} may",
            "window": f"loads are outside of what is allowed by {value} partitions",
            "narrowest window": f"loads are up to {value} away from best balance",
        }[name]


def _hand_on(owner: IntArray, prior: IntArray, alike: IntArray, ends: tuple[int, int]) -> None:
    """Let the first of two members have one fewer of the partitions `alike`, the second one more, in place.

    As many as possible are with their prior owner after that if they were before. For that the second one may
    have to get its own from a third member, that gets the first one's instead.
    """
    source, target = ends
    mine = alike[owner[alike] == source]
    # What the target owned before anything that was not the source's before anything.
    given = min(mine.tolist(), key=lambda p: (prior[p] != target, prior[p] == source))
    wanted = alike[(prior[alike] == target) & (owner[alike] != target)]
    if prior[given] != target and wanted.size:
        owner[given] = owner[wanted[0]]
        given = wanted[0]
    owner[given] = target


def _plain(value: int | Fraction) -> str:
    return str(int(value)) if value == int(value) else f"{float(value):.2f}"
