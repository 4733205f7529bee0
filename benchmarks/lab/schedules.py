"""The stored searches of schedules: how many were run in which groups, and how soon planted faults are found.

    python -m benchmarks.lab.schedules

A million drawn schedules of cooperative groups, fewer of others, and all there are of three members. That
takes hours. What is done is kept after each part in a file beside the page; a later run goes on from there.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from benchmarks import machine
from kafka_assignors._common.progress import progress_bar
from tests.lab.schedules import Tally, broken, draw, every, search
from tests.lab.schedules._clients import CLIENTS
from tests.support.planted_faults import FAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.lab.schedules import Schedule

RESULT: Final = Path(__file__).parents[1] / "results" / "schedules.md"
LENGTH: Final = 40
MOST: Final = 20_000
"""Schedules in which a planted fault is looked for."""

WAITS: Final = ("waits",)
OTHERS: Final = ("unaided", "kafka-python", "java", "librdkafka")
MIXED: Final = ("ours", "waits", *OTHERS)
AIO: Final = ("aio",)
EVERY_CLIENT: Final = tuple(CLIENTS)
TAKEN_OVER: Final = ("take over",)
FIRST_SEED: Final = 1_000_000
PART: Final = 25_000
"""Drawn schedules after which what was done is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """Schedules to run.

    Attributes:
        strategy: The strategy of all members.
        clients: What members are.
        count: How many schedules are drawn; 0 for all of three members of the first client.
        depth: Up to how many steps those have after the first join.
        first: The seed of the first one drawn.
        rare: Kinds of steps that are drawn, too.
    """

    strategy: str = "cooperative-sticky"
    clients: tuple[str, ...] = ("ours",)
    count: int = 0
    depth: int = 0
    first: int = FIRST_SEED
    rare: tuple[str, ...] = ()

    def schedules(self) -> Iterator[Schedule]:
        """The schedules."""
        for depth in range(1, self.depth + 1):
            yield from every(depth, client=self.clients[0], strategy=self.strategy)
        for seed in range(self.first, self.first + self.count):
            yield draw(seed, LENGTH, strategy=self.strategy, clients=self.clients, rare=self.rare)

    def parts(self) -> Iterator[Search]:
        """The same in parts."""
        if self.depth:
            yield self
        for done in range(0, self.count, PART):
            yield replace(self, first=self.first + done, count=min(PART, self.count - done))


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A search, what it came to, and in how many seconds.

    Attributes:
        broken: The seeds of schedules that broke a group, and how.
        revisions: Of the sources that ran.
    """

    search: Search
    schedules: int
    generations: int
    by_others: int
    longest_ms: int
    most_rounds: int
    seconds: float
    unplanned: int = 0
    broken: tuple[tuple[int, str], ...] = ()
    revisions: tuple[str, ...] = ()

    @classmethod
    def of(cls, search: Search, tally: Tally, seconds: float, revision: str) -> Row:
        """A search that was run."""
        return cls(
            search=search,
            schedules=tally.schedules,
            generations=tally.generations,
            by_others=tally.by_others,
            longest_ms=tally.longest_ms,
            most_rounds=tally.most_rounds,
            seconds=seconds,
            unplanned=tally.unplanned,
            broken=tuple((schedule.seed, fault) for schedule, fault in tally.broken),
            revisions=(revision,),
        )

    def joined(self, other: Row) -> Row:
        """One of both, of the same strategy and clients."""
        return Row(
            search=replace(self.search, count=self.search.count + other.search.count),
            schedules=self.schedules + other.schedules,
            generations=self.generations + other.generations,
            by_others=self.by_others + other.by_others,
            longest_ms=max(self.longest_ms, other.longest_ms),
            most_rounds=max(self.most_rounds, other.most_rounds),
            seconds=self.seconds + other.seconds,
            unplanned=self.unplanned + other.unplanned,
            broken=self.broken + other.broken,
            revisions=tuple(dict.fromkeys(self.revisions + other.revisions)),
        )


def searches(scale: float) -> list[Search]:
    """What is searched.

    Args:
        scale: The part of the drawn schedules that is run.
    """

    def drawn(
        count: int, clients: tuple[str, ...] = ("ours",), strategy: str = "cooperative-sticky"
    ) -> Search:
        return Search(strategy=strategy, clients=clients, count=round(count * scale))

    return [
        Search(depth=4),
        Search(depth=4, clients=WAITS),
        Search(depth=4, clients=("unaided",)),
        drawn(450_000),
        drawn(250_000, MIXED),
        drawn(150_000, WAITS),
        drawn(150_000, ("unaided",)),
        *(drawn(20_000, strategy=strategy) for strategy in ("range", "roundrobin", "sticky", "random")),
        *(
            drawn(20_000, ("ours", *OTHERS), strategy)
            for strategy in ("range", "roundrobin", "sticky", "random")
        ),
        Search(depth=3, clients=AIO),
        drawn(50_000, AIO),
        drawn(50_000, EVERY_CLIENT),
        *(drawn(5000, ("aiokafka",), strategy) for strategy in ("range", "roundrobin", "sticky", "random")),
        replace(drawn(10_000), rare=TAKEN_OVER),
        replace(drawn(10_000, WAITS), rare=TAKEN_OVER),
        replace(drawn(5000, AIO), rare=TAKEN_OVER),
    ]


def run(one: Search, revision: str, processes: int | None) -> Row:
    """Run a search, with so many processes as `search` has it."""
    with progress_bar() as progress:
        label = f"{one.strategy}, {' '.join(one.clients)}, from {one.first:,}"
        bar = progress.add_task(label, total=one.count or None)

        def watch(tally: Tally) -> None:
            progress.update(bar, completed=tally.schedules)

        began = time.monotonic()
        tally = search(one.schedules(), processes=processes, stop_at_first=False, watch=watch)
    return Row.of(one, tally, time.monotonic() - began, revision)


def read(file: Path) -> tuple[dict[str, int], list[Row]]:
    """What earlier runs have done: the faults found, and the searches."""
    if not file.exists():
        return {}, []
    kept = json.loads(file.read_text(encoding="utf-8"))
    return kept["planted"], [
        Row(
            **{
                **row,
                "search": Search(
                    **{**row["search"], **{name: tuple(row["search"][name]) for name in ("clients", "rare")}}
                ),
                "broken": tuple((seed, fault) for seed, fault in row["broken"]),
                "revisions": tuple(row["revisions"]),
            }
        )
        for row in kept["rows"]
    ]


def joined(rows: Sequence[Row]) -> list[Row]:
    """One row for each strategy and clients, in the order of the first parts."""
    found: dict[tuple[object, ...], Row] = {}
    for row in rows:
        key = row.search.strategy, row.search.clients, row.search.depth, row.search.rare
        found[key] = found[key].joined(row) if key in found else row
    return [*found.values()]


def plant(known: Mapping[str, int]) -> dict[str, int]:
    """How many schedules it takes until each planted fault is found; 0 if it is not.

    Args:
        known: The same of those that an earlier run has planted.
    """
    found = dict(known)
    for fault, clients in FAULTS.items():
        if fault.__name__ in known:
            continue
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

`python -m benchmarks.lab.schedules --scale {scale:g}`

Drawn ones have up to {length} steps, and the seeds from {seed:,} on. *All* are those of three members and
three partitions of two topics, up to so many steps after the first join. A step is a join, a leave, a crash,
a changed subscription, a lost answer, a freeze, a hang or a cut and its end, or a move of the coordinator.
Each comes 2 ms (amid an exchange of requests) or 1,101 ms (more than a period of polls) after the one before.
Those members are dynamic and alike: polls of 100 ms, 900 ms of work. Their topics do not grow. Schedules
are counted, not states: two that lead to the same state count twice.

At every instant no partition has two owners by what applications were told, but for members that the
coordinator has removed or left behind; after the last step the group comes to rest with one owner for each
partition. *ours* are kafka-python's consumers with our assignors, whose records flow in a rebalance: one that
was removed or left behind delivers nothing. *waits* are those with `records_in_rebalances=False`, as all were
before. *By others*: how often a leader of another client gave a partition a second owner. *No plan*:
groups that never come to rest because the assignor of another client's leader raises. *unaided* is
kafka-python's consumer whose joins our assignors cannot complete; *aio* is `CooperativeConsumer`, *aiokafka*
aiokafka's own consumer with our assignors. *Take over*: a second consumer starts with an instance id that is
in use. *Most*: to settle.

| strategy | members | schedules | generations | broken | by others | no plan | most s | rounds \
| minutes | revision |
|---|---|---|---|---|---|---|---|---|---|---|"""


def page(rows: Sequence[Row], planted: Mapping[str, int], told: Mapping[str, str], scale: float = 1.0) -> str:
    """What the searches came to, as a page."""
    rows = joined(rows)
    drawn = sum(row.schedules for row in rows if row.search.count and _is_cooperative(row))
    wrong = [pair for row in rows for pair in row.broken]
    total = sum(row.schedules for row in rows)
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
    revisions = dict.fromkeys(revision for row in rows for revision in row.revisions)
    told = {**told, "revision": ", ".join(revisions)}
    lines += ["", *machine.lines(told)]
    for seed, fault in wrong[:3]:
        lines += ["", f"## Broken: seed {seed}", "", "```", fault, "```"]
    return "\n".join(lines) + "\n"


def _is_cooperative(row: Row) -> bool:
    return row.search.strategy == "cooperative-sticky"


def _line(row: Row) -> str:
    one = row.search
    kind = f"{row.schedules:,}" if one.count else f"all {row.schedules:,} of up to {one.depth} steps"
    kind = ", ".join([kind, *one.rare])
    return (
        f"| {one.strategy} | {' '.join(one.clients)} | {kind} | {row.generations:,} | {len(row.broken)}"
        f" | {row.by_others} | {row.unplanned} | {row.longest_ms / 1000:g} | {row.most_rounds}"
        f" | {row.seconds / 60:.1f} | {', '.join(row.revisions)} |"
    )


def _in_turn(those: Sequence[Search]) -> Iterator[Search]:
    """A part of each search in turn, so that a run that is ended has some of all."""
    rounds = zip_longest(*(one.parts() for one in those))
    yield from (one for some in rounds for one in some if one is not None)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lab.schedules", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="the part of the drawn schedules to run")
    parser.add_argument("--output", type=Path, default=RESULT, help="the page (default: %(default)s)")
    parser.add_argument("--processes", type=int, help="how many (default: one a core; 0: this one)")
    parser.add_argument("--anew", action="store_true", help="begin again with the first part")
    options = parser.parse_args(arguments)
    told = machine.describe()
    kept = options.output.with_suffix(".json")
    planted, rows = ({}, []) if options.anew else read(kept)
    planted = plant(planted)
    done = {row.search for row in rows}
    for part in (one for one in _in_turn(searches(options.scale)) if one not in done):
        rows.append(run(part, told["revision"], options.processes))
        state = {"planted": planted, "rows": [asdict(row) for row in rows]}
        kept.write_text(json.dumps(state, indent=1) + "\n", encoding="utf-8")
        options.output.write_text(page(rows, planted, told, options.scale), encoding="utf-8")


if __name__ == "__main__":
    main()
