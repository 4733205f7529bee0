"""Chaos from the command line.

python -m tests.lab.chaos --assignor cooperative-sticky --events 100
"""

from __future__ import annotations

import random
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, get_args

import click
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

    from rich.progress import Progress, TaskID

    from kafka_assignors.testing._groups.specs import AssignorSpec

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
    cluster: Cluster,
    progress: Progress,
    *,
    keep_going: bool = False,
    done: Callable[[Sequence[Outcome]], None] = lambda _: None,
) -> list[Outcome]:
    """Do the jobs. `done` is called after each with what came of all that are done."""
    total = progress.add_task("all", total=sum(len(job.script.steps) for job in todo))
    outcomes: list[Outcome] = []
    for job in todo:
        title = f"{job.assignor}, seed {job.script.seed}"
        task = progress.add_task(title, total=len(job.script.steps))

        def watch(number: int, step: ScriptStep, title: str = title, task: TaskID = task) -> None:
            progress.update(task, completed=number - 1, description=f"{title}: {step}")
            progress.advance(total)

        try:
            spec = ASSIGNORS.get(job.assignor, job.assignor)
            outcome = unleash(job.script, spec, cluster, client=job.client, watch=watch, repeat=job.command)
        except ChaosError as error:
            outcome = error.outcome
            progress.console.print(str(error), highlight=False, markup=False)
        progress.remove_task(task)
        word = f"failed at {outcome.failure.splitlines()[0]}" if outcome.failure else "done"
        progress.console.print(f"{title}: {word} in {outcome.seconds:.0f} s", highlight=False, markup=False)
        outcomes.append(outcome)
        done(outcomes)
        if outcome.failure and not keep_going:
            break
    return outcomes


class _Assignor(click.ParamType[str]):
    """The name of a strategy, `all`, or the path of a class."""

    name = "NAME"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value != "all" and value not in ASSIGNORS:
            try:
                name_of_assignor(imported(value))
            except (ValueError, ImportError, AttributeError) as error:
                known = ", ".join(["all", *ASSIGNORS])
                self.fail(f"no assignor: {error}. By name there are {known}", param, ctx)
        return value


@click.command(context_settings={"show_default": True})
@click.option("--seed", type=int, help="of the first script; the next ones count up  [default: drawn]")
@click.option("--events", type=click.IntRange(min=1), default=100, help="for each assignor")
@click.option(
    "--assignor",
    "assignors",
    multiple=True,
    type=_Assignor(),
    default=["all"],
    help=f"all, {', '.join(ASSIGNORS)}, or a class, package.module:Class; give it again for more",
)
@click.option("--client", type=click.Choice(get_args(Client)), default="kafka-python", help="of the members")
@click.option(
    "--slow",
    type=click.FloatRange(0, 1),
    default=Limits().slow,
    help="share of members that poll briefly and work for long",
)
@click.option("--keep-going", is_flag=True, help="begin other scripts after a failure, too")
@click.option("--script", is_flag=True, help="print the scripts only")
@click.option("--output", type=click.Path(path_type=Path), metavar="FILE.md", help="write a page of results")
@click.pass_context
def main(
    context: click.Context,
    *,
    seed: int | None,
    events: int,
    assignors: Sequence[str],
    client: Client,
    slow: float,
    keep_going: bool,
    script: bool,
    output: Path | None,
) -> None:
    """Put groups through random events on a Kafka of three brokers: do they get over them?"""
    console = Console(stderr=True)
    seed = random.randrange(_SEEDS) if seed is None else seed
    limits = Limits(slow=slow)
    names = [*ASSIGNORS] if "all" in assignors else assignors
    todo = jobs(names, seed, events, limits, client)
    console.print(f"seed {seed}", highlight=False)
    if script:
        sys.stdout.writelines(f"{job.script}\n" for job in todo)
        return

    def written(outcomes: Sequence[Outcome]) -> str:
        again = shlex.join(["python", "-m", MODULE, *sys.argv[1:]])
        return page(outcomes, again, machine.describe(), client=client)

    def write(outcomes: Sequence[Outcome]) -> None:
        if output is not None:
            output.write_text(written(outcomes), encoding="utf-8")

    bar = progress_bar(console)
    with kafka_cluster(limits.nodes, settings=BROKER_SETTINGS) as cluster, bar:
        outcomes = work(todo, cluster, bar, keep_going=keep_going, done=write)
    sys.stdout.write(written(outcomes))
    context.exit(any(outcome.failure for outcome in outcomes))


if __name__ == "__main__":
    main(prog_name=f"python -m {MODULE}")
