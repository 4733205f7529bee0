"""Which groups of 5,000 partitions and 500 members take a leader longest: a search, by a seed.

    python -m benchmarks.lab.worst_structures

Structures are drawn at random; then the slowest are changed in one of their numbers, again and again. All is
in CPU seconds of this process, from the members' bytes to the assignments' bytes. Beside it: the longest
stretch in which nothing looks at the time, and the plan that is taken when the exact one takes too long.
"""

import argparse
import dataclasses
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from rich.progress import track

from benchmarks import machine
from benchmarks.structures import EVENTS, MEMBERS, PARTITIONS, SHAPES, Made, Structure, make
from kafka_assignors._assignors import StickyAssignor, _messages as messages
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import check
from kafka_assignors._wire.codec import read_subscriptions
from kafka_assignors.planners import plan_exact
from kafka_assignors.planners._quick import plan_quickly

RESULT: Final = Path(__file__).parents[1] / "results" / "worst_structures.md"
SHOWN: Final = 15
_KEPT: Final = 8
"""Structures of which the search goes on."""

T = TypeVar("T")

CHOICES: Final[dict[str, Sequence[Any]]] = {
    "shape": SHAPES,
    "topics": (5000, 5000, 5000, 2500, 1000, 500, 100, 50),
    "uneven": (False, False, False, True),
    "width": (0.004, 0.02, 0.1, 0.3, 0.5, 0.9, 0.99),
    "racks": (0, 0, 3, 20, 20, 100, 500),
    "replicas": (1, 2, 3),
    "weights": (1, 1, 1, 3, 10, 1000),
    "event": EVENTS,
    "max_skew": (None, None, None, None, 0, 1, 10, 100),
    "max_moves": (None, None, None, None, 0, 10, 300),
}
NESTED: Final = tuple(
    Structure(shape="nested", topics=PARTITIONS, racks=racks, event=event)
    for racks in (0, 20)
    for event in ("fresh", "random owners", "join", "leave")
)
"""Looked at in any case: member k subscribes to the first 10 k topics of one partition each."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """CPU seconds of a structure.

    Attributes:
        structure: The structure.
        pairs: How many (member, topic) it has.
        decode, group, plan, encode: Of the steps of a leader.
        stretch: The longest one between two ticks, in all of them.
        quick: Of `plan_quickly`.
    """

    structure: Structure
    pairs: int
    decode: float
    group: float
    plan: float
    encode: float
    stretch: float
    quick: float

    @property
    def whole(self) -> float:
        """From bytes to bytes."""
        return self.decode + self.group + self.plan + self.encode


class _Watch:
    """The longest stretch between two ticks."""

    def __init__(self) -> None:
        self.longest, self.last = 0.0, time.process_time()

    def tick(self) -> None:
        now = time.process_time()
        self.longest, self.last = max(self.longest, now - self.last), now


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def measure(structure: Structure, repetitions: int = 1) -> Measured:
    """Measure a structure; of more repetitions the one that took least, stretch for stretch."""
    made = make(structure)
    runs = [_measure(structure, made) for _ in range(repetitions)]
    least = {
        each.name: min(getattr(run, each.name) for run in runs)
        for each in dataclasses.fields(Measured)
        if each.name not in {"structure", "pairs"}
    }
    return replace(runs[0], **least)


def _measure(structure: Structure, made: Made) -> Measured:
    assignor, watch = StickyAssignor(), _Watch()
    ids = [member_id for member_id, _, _ in made.members]
    blobs = [subscription for _, _, subscription in made.members]
    decode, members = _timed(lambda: assignor.decode(ids, [None] * len(ids), read_subscriptions(blobs)))
    watch.tick()
    group_time, group = _timed(lambda: Group.of(made.topics, members, made.racks, tick=watch.tick))
    watch.tick()
    plan_time, plan = _timed(lambda: plan_exact(group, **structure.options, tick=watch.tick))
    watch.tick()
    encode, _ = _timed(lambda: messages.encode_assignments(plan))
    watch.tick()
    stretch = watch.longest
    again = Group.of(made.topics, members, made.racks)
    quick, other = _timed(lambda: plan_quickly(again))
    # Partitions of topics without subscribers are in no group: the others must all be given away.
    check(plan, group)
    check(other, again)
    return Measured(
        structure=structure,
        pairs=made.pairs,
        decode=decode,
        group=group_time,
        plan=plan_time,
        encode=encode,
        stretch=stretch,
        quick=quick,
    )


def search(seed: int, drawn: int, changed: int) -> list[Measured]:
    """Measure structures drawn at random, then changes of the slowest; the slowest first.

    Args:
        seed: For all that is drawn.
        drawn: How many structures at random.
        changed: How many changes.
    """
    chance = random.Random(seed)
    found: dict[Structure, Measured] = {each: measure(each) for each in track(NESTED, "nested")}
    for _ in track(range(drawn), "at random"):
        numbers = {name: chance.choice(values) for name, values in CHOICES.items()}
        structure = Structure(**numbers, seed=chance.randrange(1000))
        found[structure] = measure(structure)
    for _ in track(range(changed), "changes"):
        worst = sorted(found.values(), key=lambda each: -each.whole)[:_KEPT]
        name = chance.choice(list(CHOICES))
        change = {name: chance.choice(CHOICES[name])}
        structure = replace(chance.choice(worst).structure, **change)
        if structure not in found:
            found[structure] = measure(structure)
    return sorted(found.values(), key=lambda each: -each.whole)


def report(found: Sequence[Measured], again: Sequence[Measured], command: str) -> str:
    """The result as a page.

    Args:
        found: All that was measured, each once.
        again: The slowest, measured again.
        command: How.
    """
    quickest = max(found, key=lambda each: each.quick)
    longest = max(found, key=lambda each: each.stretch)
    lines = [
        "# The structures that take a leader longest",
        "",
        f"{PARTITIONS:,} partitions and {MEMBERS} members in {len(found)} structures: nested, overlapping",
        "and chained subscriptions, all but a few topics each, random ones, many levels of load; with racks,",
        "weights, options, and owners that fit or do not. Drawn at random; then the slowest were changed.",
        "CPU milliseconds of one process, from members' bytes to assignments' bytes, the slowest first:",
        "the least of three repetitions. *Stretch* is the longest time in which no tick is called; *quick*",
        "is `plan_quickly`, which is taken when the exact plan takes too long.",
        "",
        f"`{command}`",
        "",
        "| structure | seed | pairs | decode | `Group.of` | `plan_exact` | whole | stretch | quick |",
        "|---|---|---|---|---|---|---|---|---|",
        *map(_row, again),
        "",
        "The nested ones, member k with the first 10 k topics of one partition each:",
        "",
        "| structure | seed | pairs | decode | `Group.of` | `plan_exact` | whole | stretch | quick |",
        "|---|---|---|---|---|---|---|---|---|",
        *(_row(each) for each in found if each.structure in NESTED),
        "",
        f"Of all that were measured once, the slowest took {found[0].whole * 1000:.0f} ms, half of them",
        f"{found[len(found) // 2].whole * 1000:.0f} ms at most. The longest stretch was",
        f"{longest.stretch * 1000:.0f} ms ({longest.structure});",
        f"the slowest quick plan took {quickest.quick * 1000:.0f} ms ({quickest.structure}).",
        "",
    ]
    return "\n".join(lines)


def _row(each: Measured) -> str:
    times = (each.decode, each.group, each.plan, each.whole, each.stretch, each.quick)
    shown = " | ".join(f"{seconds * 1000:.0f}" for seconds in times)
    return f"| {each.structure} | {each.structure.seed} | {each.pairs:,} | {shown} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lab.worst_structures", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="for all that is drawn (default: 1)")
    parser.add_argument("--drawn", type=int, default=300, help="structures at random (default: 300)")
    parser.add_argument("--changed", type=int, default=200, help="changes of the slowest (default: 200)")
    parser.add_argument(
        "--output", type=Path, default=RESULT, help="the page to write (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    about = machine.describe()
    found = search(options.seed, options.drawn, options.changed)
    again = [measure(each.structure, 3) for each in track(found[:SHOWN], "again")]
    again.sort(key=lambda each: -each.whole)
    command = (
        f"python -m benchmarks.lab.worst_structures --seed {options.seed} --drawn {options.drawn} "
        f"--changed {options.changed}"
    )
    text = report(found, again, command) + "\n" + "\n".join(machine.lines(about))
    options.output.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
