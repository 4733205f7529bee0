"""What is found out about a plan: certificates and findings, in words and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from kafka_assignors._model.plan import Goal

_SHOWN = 10
"""How many moves of a chain to print."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A partition that could go from the member `source`, which the plan gives it to, to `target`; by ids."""

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
            one of their racks, partitions moved. Then partitions moved (budget), partitions by which loads
            are outside the window, the window.
        text: The same in words.
        proved: True if no valid plan does better without doing worse in an earlier goal. False if the witness
            does; None if that was not looked at.
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
            **asdict(self),
            "value": int(self.value) if whole else float(self.value),
            "witness": [asdict(move) for move in self.witness],
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
            **asdict(self.goal),
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
