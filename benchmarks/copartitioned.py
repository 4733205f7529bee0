"""How many partitions move when members of a group that joins topics come and go, beside other strategies.

    python -m benchmarks.copartitioned

Rebalances are drawn from a seed. Each strategy goes through the same ones, with what it assigned before.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final

import numpy as np

from benchmarks import machine
from kafka_assignors import Group, Member, Plan
from kafka_assignors.planners import plan_exact
from kafka_assignors.planners._copartitioned import plan_copartitioned
from kafka_assignors.planners._range import plan_range
from kafka_assignors.planners._round_robin import plan_round_robin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

RESULT: Final = Path(__file__).parent / "results" / "copartitioned.md"
REBALANCES: Final = 50
SEED: Final = 42
FEWEST, MOST = 4, 10  # members

CASES: Final[Mapping[str, tuple[Mapping[str, int], Sequence[tuple[str, ...]]]]] = {
    "two topics of 24": ({"impressions": 24, "clicks": 24}, [("impressions", "clicks")]),
    "sets of three topics of 12 and of two topics of 24": (
        {"a": 12, "b": 12, "c": 12, "d": 24, "e": 24},
        [("a", "b", "c"), ("d", "e")],
    ),
}


@dataclass(kw_only=True)
class Sum:
    """What a strategy came to in all rebalances.

    `owned` is how many partitions had an owner that stayed, `moved` how many of them went to another.
    `separated` is how many ids of a set were not with one member, `spread` how far loads were apart at most.
    """

    owned: int = 0
    moved: int = 0
    separated: int = 0
    spread: int = 0

    def add(self, plan: Plan, sets: Sequence[tuple[str, ...]]) -> None:
        """Count one rebalance."""
        group = plan.group
        self.owned += int((group.owner >= 0).sum())
        self.moved += plan.moves
        self.spread = max(self.spread, int(plan.loads.max() - plan.loads.min()))
        for names in sets:
            ranges = [plan.owner[group.partitions_of(group.topics.index(name))] for name in names]
            self.separated += int((np.ptp(np.stack(ranges), axis=0) > 0).sum())


def lives(random: Random) -> Iterator[list[str]]:
    """The members of each rebalance; one joins, leaves or is replaced at a time, as in a deployment."""
    names, count = [f"m{number:02}" for number in range(FEWEST + 2)], FEWEST + 2
    yield [*names]
    for _ in range(REBALANCES):
        # Member ids of clients are random: a new one is anywhere in their order.
        kind = random.choice(["join", "leave", "replace"])
        kind = {FEWEST: "join", MOST: "leave"}.get(len(names), kind)
        if kind != "join":
            names.remove(random.choice(names))
        if kind != "leave":
            count += 1
            names.append(f"m{random.randrange(100):02}-{count}")
        yield [*names]


def measure(
    topics: Mapping[str, int], sets: Sequence[tuple[str, ...]], planner: Callable[[Group], Plan]
) -> Sum:
    """What a strategy comes to in all rebalances."""
    total, before = Sum(), dict[str, dict[str, list[int]]]()
    for number, names in enumerate(lives(Random(SEED))):
        everything = frozenset(topics)
        members = [
            Member(member_id=name, topics=everything, claims=before.get(name, {}), generation=number)
            for name in names
        ]
        plan = planner(Group.of({name: range(count) for name, count in topics.items()}, members))
        if number:
            total.add(plan, sets)
        before = dict(plan.assignments())
    return total


def main() -> None:
    """Run the command."""
    about = machine.describe()
    lines = [
        "# Moves of a group that joins topics",
        "",
        f"{REBALANCES} rebalances drawn from seed {SEED}, of {FEWEST} to {MOST} members: each time one",
        "joins, leaves or is replaced. *moved* is of the partitions whose owner stayed in the group.",
        "*separated* is how many ids of a set were not with one member, in all rebalances.",
        "",
        "`python -m benchmarks.copartitioned`",
    ]
    for name, (topics, sets) in CASES.items():
        planners: dict[str, Callable[[Group], Plan]] = {
            "copartitioned": partial(plan_copartitioned, together=sets),
            "range": plan_range,
            "roundrobin": plan_round_robin,
            "sticky": plan_exact,
        }
        heads = ["strategy", "moved", "share", "separated", "loads apart by at most"]
        lines += ["", f"## {name.capitalize()}", "", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for strategy, planner in planners.items():
            total = measure(topics, sets, planner)
            share = f"{total.moved / total.owned:.0%}"
            lines.append(f"| {strategy} | {total.moved} | {share} | {total.separated} | {total.spread} |")
    lines += ["", *machine.lines(about)]
    text = "\n".join(lines) + "\n"
    RESULT.write_text(text, encoding="utf-8")
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
