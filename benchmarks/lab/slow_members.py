"""Whether a cooperative group with slow members gives a partition to two at once, and when it settles.

    python -m benchmarks.lab.slow_members --runs 20

A quick member leads, slow ones have joined: their polls are short, and they work long between two. Then
others join, one after the other. kafka-python throws a join away that completes between two polls. So slow
members often hold what they had before, though they are in the newest generation.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shlex
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks import machine
from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors.testing import (
    ConsumerGroup,
    GroupNotStableError,
    create_topic,
    delete_topic,
    kafka_cluster,
)
from tests.lab.chaos._promises import without_excuse

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors._timelines.timeline import Timeline
    from kafka_assignors.testing import Cluster

PARTITIONS: Final = 24
SESSION_MS: Final = 10_000
PATIENCE: Final = 120.0
RESULT: Final = Path(__file__).parents[1] / "results" / "slow_members.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is done to a group.

    Attributes:
        slow: Slow members, that are there beside a quick leader before the others join.
        poll_ms: How long a poll of a slow one waits.
        work_ms: How long it works between two.
        joins: Quick members that join then.
        gap: Seconds between two of them.
    """

    slow: int = 2
    poll_ms: int = 100
    work_ms: int = 1000
    joins: int = 6
    gap: float = 1.0

    def __str__(self) -> str:
        return (
            f"{self.slow} slow members ({self.poll_ms} ms polls, {self.work_ms / 1000:g} s of work), a quick"
            f" leader, {self.joins} joins {self.gap:g} s apart"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What came of a scenario, done once.

    Attributes:
        seed: The seed.
        twice: Partitions that two applications had at once while both were in the group.
        longest: The longest time that one had two, in seconds.
        seconds: From the last join until every partition had one owner and the group was stable.
        generations: How many there were from the first of the joins on.
        failure: Why it did not settle; empty if it did.
    """

    seed: int
    twice: int
    longest: float
    seconds: float
    generations: int
    failure: str = ""


def live(cluster: Cluster, scenario: Scenario, seed: int) -> tuple[Run, Timeline]:
    """Do a scenario once, to a group and topic of its own.

    Args:
        cluster: Where.
        scenario: What is done.
        seed: Draws how far the slow members are apart; in step, each would take what the other waits for.
    """
    rng = random.Random(seed)
    topic = create_topic(cluster, PARTITIONS)
    group = ConsumerGroup(
        cluster,
        topic,
        [CooperativeStickyAssignor],
        place="thread",
        # Nobody is expelled, however laden the machine.
        settings={"session_timeout_ms": SESSION_MS},
        timeout=PATIENCE,
    )
    failure = ""
    with group:
        group.join("leader")
        group.wait_stable()
        for number in range(1, scenario.slow + 1):
            time.sleep(rng.uniform(0, scenario.work_ms / 1000))
            group.join(f"slow{number}", poll_ms=scenario.poll_ms, work_ms=scenario.work_ms)
        before = group.wait_stable().generation
        for number in range(1, scenario.joins + 1):
            time.sleep(scenario.gap)
            group.join(f"quick{number}")
        joined = time.monotonic()
        try:
            group.wait_stable()
        except GroupNotStableError as error:
            failure = str(error)
        seconds = time.monotonic() - joined
        timeline = group.timeline
    with contextlib.suppress(Exception):  # of no interest here
        delete_topic(cluster, topic)
    overlaps = [*without_excuse(timeline)]
    run = Run(
        seed=seed,
        twice=len({one.partition for one in overlaps}),
        longest=max((one.seconds for one in overlaps), default=0.0),
        seconds=seconds,
        generations=timeline.rebalances[-1].generation - before,
        failure=failure,
    )
    return run, timeline


def measure(scenario: Scenario, runs: int, seed: int, at_once: int) -> list[Run]:
    """Do a scenario so often, on a cluster of one broker."""
    bar = Progress(TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with kafka_cluster() as kafka, ThreadPoolExecutor(at_once) as pool, bar:
        task = bar.add_task("runs", total=runs)

        def once(number: int) -> Run:
            run, _ = live(kafka, scenario, seed + number)
            bar.update(task, advance=1)
            return run

        return list(pool.map(once, range(runs)))


_PAGE = """\
# Slow members in a cooperative group

**{runs} runs (seeds {first} to {last}): {wrong} with a partition of two owners; {unsettled} did not settle
within {patience:.0f} s.**

{scenario}: {partitions} partitions, CooperativeStickyAssignor, one broker.

`{command}`

- *two owners*: two applications had a partition at once by what they were told, while both were in the group;
- *settled*: seconds from the last join until every partition had one owner and the group was stable.

| | median | most |
|---|---|---|
"""


def report(scenario: Scenario, runs: Sequence[Run], command: str, about: Mapping[str, str]) -> str:
    """The result as a page."""
    wrong = [run for run in runs if run.twice]
    unsettled = [run for run in runs if run.failure]
    head = _PAGE.format(
        runs=len(runs),
        first=min(run.seed for run in runs),
        last=max(run.seed for run in runs),
        wrong=len(wrong),
        unsettled=len(unsettled),
        patience=PATIENCE,
        scenario=str(scenario),
        partitions=PARTITIONS,
        command=command,
    )
    columns: Mapping[str, Sequence[float]] = {
        "partitions with two owners": [run.twice for run in runs],
        "longest such time, s": [run.longest for run in runs],
        "generations": [run.generations for run in runs],
        "settled, s": [run.seconds for run in runs],
    }
    lines = [
        f"| {name} | {statistics.median(found):.3g} | {max(found):.3g} |" for name, found in columns.items()
    ]
    lines += ["", *machine.lines(about), ""]
    for run in unsettled:
        lines += [f"## Not settled: seed {run.seed}", "", "```", run.failure, "```", ""]
    return head + "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and write the page.

    Returns:
        0 if no partition had two owners and every group settled.
    """
    arguments = sys.argv[1:] if arguments is None else arguments
    usual = Scenario()
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lab.slow_members", description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next ones count up")
    parser.add_argument("--slow", type=int, default=usual.slow)
    parser.add_argument("--poll-ms", type=int, default=usual.poll_ms)
    parser.add_argument("--work-ms", type=int, default=usual.work_ms)
    parser.add_argument("--joins", type=int, default=usual.joins)
    parser.add_argument("--gap", type=float, default=usual.gap, help="seconds between two joins")
    parser.add_argument("--at-once", type=int, default=1, help="groups at once (default: 1)")
    parser.add_argument(
        "--output", type=Path, default=RESULT, help="the page to write (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print the runs as JSON")
    options = parser.parse_args(arguments)
    scenario = replace(
        usual,
        slow=options.slow,
        poll_ms=options.poll_ms,
        work_ms=options.work_ms,
        joins=options.joins,
        gap=options.gap,
    )
    about = machine.describe()
    runs = measure(scenario, options.runs, options.seed, options.at_once)
    command = shlex.join(["python", "-m", "benchmarks.lab.slow_members", *arguments])
    page = report(scenario, runs, command, about)
    options.output.write_text(page, encoding="utf-8")
    printed = json.dumps([asdict(run) for run in runs]) if options.json else page
    sys.stdout.write(f"{printed}\n")
    return 1 if any(run.twice or run.failure for run in runs) else 0


if __name__ == "__main__":
    sys.exit(main())
