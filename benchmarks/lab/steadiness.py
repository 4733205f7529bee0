"""How steady the test kit is: many runs of one scenario on a laden machine, and how many of them flaked.

    python -m benchmarks.lab.steadiness --runs 500

A run is a group's life: three members join, a fourth joins, one crashes, one leaves, one restarts as the same
static member. After each step the group has to become stable with balanced loads; at the end every produced
record must have been consumed and no partition have had two owners. The strategies take turns. Meanwhile
other processes keep the machine busy.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import statistics
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine
from kafka_assignors import CooperativeStickyAssignor, RangeAssignor, RoundRobinAssignor, StickyAssignor
from kafka_assignors.testing import ConsumerGroup, Load, create_topic, delete_topic, kafka_cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from kafka_assignors.testing._groups.stability import StableGroup

STRATEGIES = (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
STEPS = ("three join", "a fourth joins", "one crashes", "one leaves", "one restarts")
PARTITIONS = 12
SESSION_MS = 6000
PATIENCE = 90.0  # seconds; a wait that takes longer is a flake
RESULT = Path(__file__).parents[1] / "results" / "steadiness.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One life of a group.

    Attributes:
        number: 1, 2, ...
        strategy: The assignor's name.
        seconds: How long each step took until the group was stable.
        flake: What went wrong; empty if nothing did.
    """

    number: int
    strategy: str
    seconds: Sequence[float]
    flake: str


def live(number: int, servers: list[str]) -> Run:
    """Let a group live once."""
    assignor = STRATEGIES[number % len(STRATEGIES)]
    topic = create_topic(servers, PARTITIONS)
    settings = {"session_timeout_ms": SESSION_MS}
    group = ConsumerGroup(servers, topic, [assignor], settings=settings, timeout=PATIENCE)
    seconds: list[float] = []
    flake = ""
    with group, Load(servers, topic, rate=50) as load:
        try:
            for act, loads in _steps(group):
                began = time.monotonic()
                act()
                stable = group.wait_stable()
                seconds.append(time.monotonic() - began)
                _judge_loads(stable, loads)
            load.stop()
            group.wait_consumed(load)
            _judge(group, load)
        except Exception as error:  # noqa: BLE001 - whatever a run dies of is what is looked for
            flake = f"{type(error).__name__} after {len(seconds)} steps: {error}"
    with contextlib.suppress(Exception):  # of no interest here
        delete_topic(servers, topic)
    return Run(number=number, strategy=assignor.name, seconds=seconds, flake=flake)


def _steps(group: ConsumerGroup) -> Iterator[tuple[Callable[[], object], Sequence[int]]]:
    """What is done to the group, one after the other, and the loads that it has then."""

    def three_join() -> None:
        for name in "abc":
            group.join(name, instance_id=f"instance-{name}")

    yield three_join, [4, 4, 4]
    yield lambda: group.join("d"), [3, 3, 3, 3]
    yield group.members["b"].crash, [4, 4, 4]
    yield group.members["d"].leave, [6, 6]
    yield group.members["c"].restart, [6, 6]


def _judge_loads(stable: StableGroup, loads: Sequence[int]) -> None:
    found = sorted(map(len, stable.assignments.values()))
    if found != loads:
        raise AssertionError(f"loads {found} instead of {loads}")


def _judge(group: ConsumerGroup, load: Load) -> None:
    timeline = group.timeline
    if missing := timeline.missing(load.produced):
        raise AssertionError(f"never consumed: {dict(missing)}")
    if twice := timeline.double_assigned():
        raise AssertionError(f"two owners: {dict(twice)}")
    if overlaps := timeline.overlaps():
        raise AssertionError(f"two owners by their callbacks: {overlaps}")


def _burn() -> None:
    while True:
        pass


@contextlib.contextmanager
def laden(processes: int) -> Iterator[None]:
    """Keep so many processes computing."""
    burning = [multiprocessing.Process(target=_burn, daemon=True) for _ in range(processes)]
    for one in burning:
        one.start()
    try:
        yield
    finally:
        for one in burning:
            one.kill()
            one.join()


def measure(runs: int, at_once: int, burners: int) -> list[Run]:
    """Do the runs, some at once, on a cluster of one broker."""
    done: list[Run] = []
    bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        kafka_cluster() as kafka,
        laden(burners),
        ThreadPoolExecutor(at_once) as pool,
        bar,
    ):
        task = bar.add_task("0 flakes", total=runs)
        numbers = iter(range(1, runs + 1))
        pending: set[Future[Run]] = set()
        while len(done) < runs:
            while len(pending) < at_once and (number := next(numbers, None)) is not None:
                pending.add(pool.submit(live, number, kafka.bootstrap_servers))
            finished, pending = wait(pending, return_when=FIRST_COMPLETED)
            for one in finished:
                done.append(one.result())
                flakes = sum(bool(run.flake) for run in done)
                bar.update(task, advance=1, description=f"{flakes} flakes")
    return sorted(done, key=lambda run: run.number)


_PAGE = """\
# How steady the test kit is

**{runs} runs, {flakes} flakes** ({strategies}).

A run: {steps} (as the same static member). After each step the
group has to be stable, by the members' and the broker's word, with balanced loads; at the end every record
must have been consumed, and no partition have had two owners. No run is repeated, and no sleep stands for a
condition; a wait may take {patience:.0f} s.
`session_timeout_ms` is {session}, which is what a crash takes.

`python -m benchmarks.lab.steadiness --runs {runs} --at-once {at_once} --burners {burners}`:
{at_once} groups at once, beside {burners} other processes that keep computing; {minutes:.0f} minutes.

| step | median s | 95 % | longest |
|---|---|---|---|
"""


def report(runs: Sequence[Run], at_once: int, burners: int, seconds: float, about: Mapping[str, str]) -> str:
    """The result as a page."""
    flakes = [run for run in runs if run.flake]
    whole = [run for run in runs if not run.flake]
    strategies = Counter(run.strategy for run in runs)
    head = _PAGE.format(
        runs=len(runs),
        flakes=len(flakes),
        strategies=", ".join(f"{count} {name}" for name, count in sorted(strategies.items())),
        steps=", ".join(STEPS),
        patience=PATIENCE,
        session=SESSION_MS,
        at_once=at_once,
        burners=burners,
        minutes=seconds / 60,
    )
    lines = []
    for place, step in enumerate(STEPS):
        took = sorted(run.seconds[place] for run in whole)
        if took:
            figures = statistics.median(took), took[int(len(took) * 0.95)], took[-1]
            lines.append(" | ".join([f"| {step}", *(f"{figure:.2f}" for figure in figures)]) + " |")
    lines += ["", *machine.lines(about), ""]
    for run in flakes:
        lines += [f"## Run {run.number}, {run.strategy}", "", "```", run.flake, "```", ""]
    return head + "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page.

    Returns:
        0 if no run flaked.
    """
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lab.steadiness", description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--at-once", type=int, default=2, help="groups at once (default: 2)")
    parser.add_argument(
        "--burners", type=int, default=os.cpu_count(), help="busy processes beside them (default: one a core)"
    )
    parser.add_argument(
        "--output", type=Path, default=RESULT, help="the page to write (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the runs as JSON")
    options = parser.parse_args(arguments)
    about = machine.describe()
    began = time.monotonic()
    runs = measure(options.runs, options.at_once, options.burners)
    page = report(runs, options.at_once, options.burners, time.monotonic() - began, about)
    options.output.write_text(page, encoding="utf-8")
    printed: Any = json.dumps([asdict(run) for run in runs]) if options.json else page
    sys.stdout.write(f"{printed}\n")
    return 1 if any(run.flake for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
