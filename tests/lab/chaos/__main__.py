"""Chaos from the command line.

python -m tests.lab.chaos --assignor cooperative-sticky --events 100
"""

from __future__ import annotations

import argparse
import contextlib
import json
import queue
import random
import shlex
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

from rich.console import Console

from benchmarks import machine
from kafka_assignors import _leader
from kafka_assignors._common.progress import progress_bar
from kafka_assignors.testing._brokers.cluster import Cluster, kafka_cluster
from kafka_assignors.testing._groups.imports import imported
from tests.lab.chaos._model import Limits, ScriptStep
from tests.lab.chaos._report import page
from tests.lab.chaos._run import (
    BROKER_SETTINGS,
    ChaosError,
    Client,
    Outcome,
    name_of_assignor,
    unleash,
)
from tests.lab.chaos._script import Script, plan_events

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from rich.progress import Progress

    from kafka_assignors.testing._groups.specs import AssignorSpec

__tracebackhide__ = True

MODULE: Final = "tests.lab.chaos"

ASSIGNORS: Final[Mapping[str, AssignorSpec]] = _leader.STRATEGIES

_LONGEST_SCRIPT: Final = 50  # events: what is found in a short one is easier to understand
_SEEDS: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A script for a group of an assignor and a client."""

    assignor: str
    script: Script
    client: Client = "kafka-python"

    @property
    def command(self) -> str:
        """Does it again."""
        words = ["--seed", self.script.seed, "--events", len(self.script.steps)]
        if self.script.limits.slow != Limits().slow:
            words += ["--slow", self.script.limits.slow]
        words += ["--assignor", self.assignor]
        if self.client != "kafka-python":
            words += ["--client", self.client]
        return shlex.join(["python", "-m", MODULE, *map(str, words)])


def jobs(
    assignors: Sequence[str], seed: int, events: int, limits: Limits, client: Client = "kafka-python"
) -> list[Job]:
    """Events for each assignor, in scripts of `_LONGEST_SCRIPT` at the most, with seeds counted up."""
    found = []
    for left in range(events, 0, -_LONGEST_SCRIPT):
        count = max(min(left, _LONGEST_SCRIPT), limits.fewest)
        found += [
            Job(assignor=name, script=plan_events(seed + n, count, limits), client=client)
            for n, name in enumerate(assignors)
        ]
        seed += len(assignors)
    return found


def work(
    todo: Sequence[Job],
    clusters: Sequence[Cluster],
    progress: Progress,
    *,
    keep_going: bool = False,
    done: Callable[[Sequence[Outcome]], None] = lambda _: None,
) -> tuple[list[Outcome], list[ChaosError]]:
    """Do the jobs, one at a time on each cluster.

    `done` is called after each job with what came of all that are done, in the order of the jobs.
    """
    free: queue.SimpleQueue[Cluster] = queue.SimpleQueue()
    for cluster in clusters:
        free.put(cluster)
    total = progress.add_task("all", total=sum(len(job.script.steps) for job in todo))
    failures: list[ChaosError] = []
    came: dict[int, Outcome] = {}
    noting = threading.Lock()
    interrupted = threading.Event()

    def do(number: int, job: Job) -> None:
        if interrupted.is_set() or (failures and not keep_going):
            return
        cluster = free.get()
        title = f"{job.assignor}, seed {job.script.seed}"
        task = progress.add_task(title, total=len(job.script.steps))

        def watch(step_number: int, step: ScriptStep) -> None:
            if interrupted.is_set():
                raise KeyboardInterrupt
            progress.update(task, completed=step_number - 1, description=f"{title}: {step}")
            progress.advance(total)

        try:
            spec = ASSIGNORS.get(job.assignor, job.assignor)
            outcome = unleash(job.script, spec, cluster, client=job.client, watch=watch, repeat=job.command)
        except ChaosError as error:
            failures.append(error)
            outcome = error.outcome
            progress.console.print(str(error), highlight=False, markup=False)
        finally:
            progress.remove_task(task)
            free.put(cluster)
        word = f"failed at {outcome.failure.splitlines()[0]}" if outcome.failure else "done"
        progress.console.print(f"{title}: {word} in {outcome.seconds:.0f} s", highlight=False, markup=False)
        with noting:
            came[number] = outcome
            done([came[one] for one in sorted(came)])

    with ThreadPoolExecutor(len(clusters)) as pool:
        try:
            for _ in pool.map(do, range(len(todo)), todo):
                pass
        except BaseException:
            interrupted.set()  # each ends before its next step
            raise
    return [came[one] for one in sorted(came)], failures


def main(arguments: Sequence[str] | None = None) -> int:
    """Run chaos."""
    arguments = sys.argv[1:] if arguments is None else arguments
    options = _parser().parse_args(arguments)
    console = Console(stderr=True)
    seed = random.randrange(_SEEDS) if options.seed is None else options.seed
    limits = Limits() if options.slow is None else Limits(slow=options.slow)
    chosen = options.assignor or ["all"]
    names = [*ASSIGNORS] if "all" in chosen else chosen
    if options.replay is None:
        todo = jobs(names, seed, options.events, limits, options.client)
        console.print(f"seed {seed}", highlight=False)
    else:
        script = Script.from_json(options.replay.read_text(encoding="utf-8"))
        todo = [Job(assignor=name, script=script, client=options.client) for name in names]
        console.print(f"a script of seed {script.seed}", highlight=False)
    if options.script:
        sys.stdout.writelines(f"{job.script.to_json() if options.json else job.script}\n" for job in todo)
        return 0

    def written(outcomes: Sequence[Outcome]) -> str:
        again = shlex.join(["python", "-m", MODULE, *arguments])
        return page(outcomes, again, machine.describe(), client=options.client)

    def write(outcomes: Sequence[Outcome]) -> None:
        if options.output is not None:
            options.output.write_text(written(outcomes), encoding="utf-8")

    bar = progress_bar(console)
    with contextlib.ExitStack() as stack:
        clusters = [
            stack.enter_context(kafka_cluster(limits.nodes, settings=BROKER_SETTINGS))
            for _ in range(min(options.at_once, len(todo)))
        ]
        stack.enter_context(bar)
        outcomes, failures = work(todo, clusters, bar, keep_going=options.keep_going, done=write)
    sys.stdout.write(
        f"{json.dumps([asdict(one) for one in outcomes])}\n" if options.json else written(outcomes)
    )
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {MODULE}",
        description="Put groups through random events on a Kafka of three brokers: do they get over them?",
    )
    parser.add_argument(
        "--seed", type=int, help="of the first script; the next ones count up (default: drawn)"
    )
    parser.add_argument(
        "--events", type=_positive, default=100, help="for each assignor (default: %(default)s)"
    )
    parser.add_argument(
        "--assignor",
        action="append",
        type=_assignor,
        metavar="NAME",
        help=f"all, {', '.join(ASSIGNORS)}, or a class of yours, package.module:Class; give it again for "
        "more (default: all)",
    )
    parser.add_argument(
        "--client",
        choices=get_args(Client),
        default="kafka-python",
        help="the members' library (default: %(default)s)",
    )
    parser.add_argument(
        "--slow",
        type=_share,
        help=f"share of members that poll briefly and work for long (default: {Limits().slow:g})",
    )
    parser.add_argument(
        "--at-once",
        type=_positive,
        default=1,
        help="so many groups, each on a cluster of its own (default: 1)",
    )
    parser.add_argument("--keep-going", action="store_true", help="begin other scripts after a failure, too")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="a script, saved by --script --json")
    parser.add_argument("--script", action="store_true", help="print the scripts only")
    parser.add_argument("--output", type=Path, metavar="FILE.md", help="write a page of results")
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share from 0 to 1")
    return share


def _assignor(text: str) -> str:
    if text != "all" and text not in ASSIGNORS:
        try:
            name_of_assignor(imported(text))
        except (ValueError, ImportError, AttributeError) as error:
            known = ", ".join(["all", *ASSIGNORS])
            raise argparse.ArgumentTypeError(f"no assignor: {error}. By name there are {known}") from error
    return text


if __name__ == "__main__":
    sys.exit(main())
