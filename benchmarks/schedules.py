"""The stored searches of schedules: how many were run in which groups, and how soon planted faults are found.

    python -m benchmarks.schedules

A million drawn schedules of cooperative groups, fewer of others, and all there are of three members. The page
is written anew after each search.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine
from kafka_assignors.testing.schedules import broken, draw, every, search
from kafka_assignors.testing.schedules._clients import CLIENTS
from tests.support.planted_faults import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_assignors.testing.schedules import Schedule, Tally

RESULT: Final = Path(__file__).parent / "results" / "schedules.md"
LENGTH: Final = 40
MOST: Final = 20_000
"""Schedules in which a planted fault is looked for."""

MIXED: Final = tuple(CLIENTS)
FIRST_SEED: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Schedules to run.

    Attributes:
        strategy: The strategy of all members.
        clients: What members are.
        count: How many schedules are drawn; 0 for all of three members of the first client.
        depth: Up to how many steps those have after the first join.
    """

    strategy: str = "cooperative-sticky"
    clients: tuple[str, ...] = ("ours",)
    count: int = 0
    depth: int = 0

    def schedules(self) -> Iterator[Schedule]:
        """The schedules."""
        for depth in range(1, self.depth + 1):
            yield from every(depth, client=self.clients[0], strategy=self.strategy)
        for seed in range(FIRST_SEED, FIRST_SEED + self.count):
            yield draw(seed, LENGTH, strategy=self.strategy, clients=self.clients)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A search, and what it came to in how many seconds."""

    search: Search
    tally: Tally
    seconds: float


def searches(scale: float) -> list[Search]:
    """What is searched.

    Args:
        scale: The part of the drawn schedules that is run; below 1 also fewer of all there are.
    """

    def drawn(
        count: int, clients: tuple[str, ...] = ("ours",), strategy: str = "cooperative-sticky"
    ) -> Search:
        return Search(strategy=strategy, clients=clients, count=round(count * scale))

    return [
        Search(depth=4),
        Search(depth=4, clients=("unaided",)),
        *(drawn(20_000, strategy=strategy) for strategy in ("range", "roundrobin", "sticky", "random")),
        *(drawn(20_000, MIXED, strategy) for strategy in ("range", "sticky")),
        drawn(250_000, MIXED),
        drawn(150_000, ("unaided",)),
        drawn(600_000),
        *([Search(depth=5)] if scale >= 1 else []),
    ]


def run(one: Search) -> Row:
    """Run a search."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns) as progress:
        bar = progress.add_task(f"{one.strategy}, {' '.join(one.clients)}", total=one.count or None)
        began = time.monotonic()
        tally = search(
            one.schedules(),
            stop_at_first=False,
            watch=lambda tally: progress.update(bar, completed=tally.schedules),
        )
    return Row(search=one, tally=tally, seconds=time.monotonic() - began)


def plant() -> dict[str, int]:
    """How many schedules it takes until each planted fault is found; 0 if it is not."""
    found = {}
    for fault, clients in FAULTS.items():
        with pytest.MonkeyPatch.context() as patch:
            fault(patch)
            numbers = (
                number
                for number in range(1, MOST + 1)
                if broken(draw(FIRST_SEED + number, LENGTH, clients=clients))
            )
            found[fault.__name__] = next(numbers, 0)
    return found


_HEAD: Final = """# Schedules

**{total:,} schedules, {drawn:,} of them drawn for cooperative groups: {wrong} broken.**

`python -m benchmarks.schedules --scale {scale:g}`

Drawn ones have up to {length} steps, and the seeds from {seed:,} on. *All* are those of three members and
three partitions, each step amid an exchange of requests or after a period of polls, up to so many steps
after the first join. At every instant no partition has two owners by what applications were told, but for
members that the coordinator has removed or left behind; after the last step the group comes to rest with
one owner for each partition. *By others*: how often a leader of another client gave a partition a second
owner. *unaided* is kafka-python's consumer whose joins our assignors cannot complete. *Most*: to settle.

| strategy | members | schedules | generations | broken | by others | most s | most generations | minutes |
|---|---|---|---|---|---|---|---|---|"""


def page(rows: Sequence[Row], planted: Mapping[str, int], told: Mapping[str, str], scale: float = 1.0) -> str:
    """What the searches came to, as a page."""
    drawn = sum(row.tally.schedules for row in rows if row.search.count and _is_cooperative(row))
    wrong = [pair for row in rows for pair in row.tally.broken]
    total = sum(row.tally.schedules for row in rows)
    lines = [
        _HEAD.format(total=total, drawn=drawn, wrong=len(wrong), length=LENGTH, seed=FIRST_SEED, scale=scale),
        *map(_line, rows),
    ]
    if planted:
        lines += [
            "",
            "Faults planted into the assignors, and the number of the first schedule that shows them:",
            "",
            "| fault | among | schedule |",
            "|---|---|---|",
            *(
                f"| {fault.__name__.replace('_', ' ')} | {' '.join(clients)}"
                f" | {planted[fault.__name__] or f'not in {MOST:,}'} |"
                for fault, clients in FAULTS.items()
            ),
        ]
    lines += ["", *(f"- {name}: {value}" for name, value in told.items())]
    for schedule, fault in wrong[:3]:
        lines += ["", f"## Broken: seed {schedule.seed}", "", "```", fault, "```"]
    return "\n".join(lines) + "\n"


def _is_cooperative(row: Row) -> bool:
    return row.search.strategy == "cooperative-sticky"


def _line(row: Row) -> str:
    one, tally = row.search, row.tally
    kind = f"{tally.schedules:,}" if one.count else f"all {tally.schedules:,} of up to {one.depth} steps"
    return (
        f"| {one.strategy} | {' '.join(one.clients)} | {kind} | {tally.generations:,} | {len(tally.broken)}"
        f" | {tally.by_others} | {tally.longest_ms / 1000:g} | {tally.most_rounds} | {row.seconds / 60:.1f} |"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.schedules", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="the part of the drawn schedules to run")
    parser.add_argument("--output", type=Path, default=RESULT, help="the page (default: %(default)s)")
    options = parser.parse_args(arguments)
    told = machine.describe()
    planted = plant()
    rows: list[Row] = []
    for one in searches(options.scale):
        rows.append(run(one))
        options.output.write_text(page(rows, planted, told, options.scale), encoding="utf-8")


if __name__ == "__main__":
    main()
