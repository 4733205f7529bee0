"""Chaos from the command line.

python -m tests.lab.chaos --assignor cooperative-sticky --events 100
"""

import random
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, get_args

import click

from benchmarks import machine
from kafka_assignors.testing._brokers.cluster import Cluster, kafka_cluster
from tests.lab.chaos._cases import CASES
from tests.lab.chaos._model import NODES, Limits
from tests.lab.chaos._report import page
from tests.lab.chaos._run import (
    BROKER_SETTINGS,
    ChaosError,
    Client,
    Outcome,
    unleash,
)
from tests.lab.chaos._script import Script, plan_events

MODULE: Final = "tests.lab.chaos"

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
        words += ["--assignor", self.assignor]
        if self.client != "kafka-python":
            words += ["--client", self.client]
        return shlex.join(["python", "-m", MODULE, *map(str, words)])

    def run(self, cluster: Cluster) -> Outcome:
        """Do the script; what goes wrong is printed."""
        try:
            outcome = unleash(
                self.script, CASES[self.assignor], cluster, client=self.client, repeat=self.command
            )
        except ChaosError as error:
            outcome = error.outcome
            click.echo(str(error), err=True)
        outcome.assignor = self.assignor
        word = f"failed at {outcome.failure.splitlines()[0]}" if outcome.failure else "done"
        click.echo(f"{self.assignor}, seed {self.script.seed}: {word} in {outcome.seconds:.0f} s", err=True)
        return outcome


def jobs(assignors: Sequence[str], seed: int, events: int, client: Client = "kafka-python") -> list[Job]:
    """Events for each assignor, in scripts of `_LONGEST_SCRIPT` at the most, with seeds counted up."""
    found = []
    for left in range(events, 0, -_LONGEST_SCRIPT):
        count = max(min(left, _LONGEST_SCRIPT), Limits().fewest)
        found += [
            Job(assignor=name, script=plan_events(seed + n, count, CASES[name].limits), client=client)
            for n, name in enumerate(assignors)
        ]
        seed += len(assignors)
    return found


@click.command(context_settings={"show_default": True})
@click.option("--seed", type=int, help="of the first script; the next ones count up  [default: drawn]")
@click.option("--events", type=click.IntRange(min=1), default=100, help="for each assignor")
@click.option(
    "--assignor",
    "assignors",
    multiple=True,
    type=click.Choice(["all", *CASES]),
    default=["all"],
    help="give it again for more",
)
@click.option("--client", type=click.Choice(get_args(Client)), default="kafka-python", help="of the members")
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
    keep_going: bool,
    script: bool,
    output: Path | None,
) -> None:
    """Put groups through random events on a Kafka of three brokers: do they get over them?"""
    seed = random.randrange(_SEEDS) if seed is None else seed
    todo = jobs([*CASES] if "all" in assignors else assignors, seed, events, client)
    click.echo(f"seed {seed}", err=True)
    if script:
        sys.stdout.writelines(f"{job.script}\n" for job in todo)
        return
    again = shlex.join(["python", "-m", MODULE, *sys.argv[1:]])
    outcomes: list[Outcome] = []
    with kafka_cluster(NODES, settings=BROKER_SETTINGS) as cluster:
        for job in todo:
            outcomes.append(job.run(cluster))
            written = page(outcomes, again, machine.describe(), client=client)
            if output is not None:
                output.write_text(written, encoding="utf-8")
            if outcomes[-1].failure and not keep_going:
                break
    sys.stdout.write(written)
    context.exit(any(outcome.failure for outcome in outcomes))


if __name__ == "__main__":
    main(prog_name=f"python -m {MODULE}")
