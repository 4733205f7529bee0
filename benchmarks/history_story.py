"""What a record costs on its way from an archive to metrics, what-if and a report, now and before; no Spark.

    python -m benchmarks.history_story

The groups are those of `history_archive`: sticky, 20 members, 200 partitions, one member replaced and one
partition elsewhere in each generation. A report measures them, replays them with its assignors and scenarios,
and keeps what is to be drawn. Spark only hands the records over; its part is not in these times.

*Before* each command decoded records one by one, once for each step. Those sources and these run the same
steps in turn, each round in a process of its own, and who is first changes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks import machine
from benchmarks.history_story_job import BEST_OF
from benchmarks.trees import ROOT, check_out, in_turn, run_in
from kafka_assignors._common.progress import progress_bar

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

RESULT: Final = Path(__file__).parent / "results" / "history_story.md"
BEFORE: Final = "ae7debf"
LARGEST_US: Final = 150
"""CPU microseconds of a record that metrics may take."""
LARGEST_PART: Final = 1 / 3
"""Of the CPU of before that a report may take."""

_TITLES: Final = {
    "decoded": "records to snapshots",
    "metrics": "metrics",
    "what-if": "what-if (4 assignors, 2 scenarios)",
    "report": "report: metrics, what-if, states to draw",
}

_PAGE: Final = """# The way of a record, from an archive to metrics, what-if and a report

Records of sticky groups with 20 members and 200 partitions, 7.2 kB each; {groups} groups of {generations}
generations. One process, without Spark; CPU microseconds a record, the least of {rounds} rounds of {best}
runs each. Before ({before}) and now ran in turn.

| step | before | now | of before |
|---|---|---|---|
{rows}

- Metrics may take {largest} microseconds a record: {metrics}.
- A report may take a third of the CPU of before: {report}.

Made by `python -m benchmarks.history_story`.

{machine}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print and write down.

    Args:
        arguments: The command line without the program's name; that of the process if None.

    Returns:
        1 if metrics or a report take too much, else 0.
    """
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.history_story", description="Measure the way of a record."
    )
    parser.add_argument("--groups", type=int, default=4)
    parser.add_argument("--generations", type=int, default=150, help="of each group")
    parser.add_argument("--rounds", type=int, default=5, help="of both trees (%(default)s)")
    parser.add_argument("--before", default=BEFORE, help="the revision of before (%(default)s)")
    parser.add_argument("--output", type=Path, default=RESULT, help="the page (%(default)s)")
    options = parser.parse_args(arguments)
    about = machine.describe()
    with tempfile.TemporaryDirectory() as folder:
        trees = {"before": Path(folder) / "tree", "now": ROOT}
        check_out(options.before, trees["before"], ["history_story_job"])
        found: dict[str, list[dict[str, float]]] = {tree: [] for tree in trees}
        with progress_bar() as bar:
            task = bar.add_task("the way of a record", total=len(trees) * options.rounds)
            for number in range(options.rounds):
                for tree in in_turn([*trees], number):
                    job = ("-m", "benchmarks.history_story_job", tree)
                    size = (str(options.groups), str(options.generations))
                    found[tree].append(run_in(trees[tree], *job, *size))
                    bar.advance(task)
    least = {
        tree: {name: min(one[name] for one in rounds) for name in _TITLES} for tree, rounds in found.items()
    }
    text, held = page(least, options, about)
    options.output.write_text(text, encoding="utf-8")
    sys.stdout.write(text)
    return int(not held)


def page(
    least: Mapping[str, Mapping[str, float]], options: argparse.Namespace, about: Mapping[str, str]
) -> tuple[str, bool]:
    """The page, and whether the goals are held.

    Args:
        least: CPU microseconds a record, by the tree and the step.
        options: Those of the command.
        about: The machine.
    """
    before, now = least["before"], least["now"]
    rows = [
        f"| {title} | {before[name]:,.0f} | {now[name]:,.0f} | {now[name] / before[name]:.2f} |"
        for name, title in _TITLES.items()
    ]
    quick = now["metrics"] <= LARGEST_US
    small = now["report"] <= before["report"] * LARGEST_PART
    words = {True: "held", False: "NOT held"}
    text = _PAGE.format(
        groups=options.groups,
        generations=options.generations,
        rounds=options.rounds,
        best=BEST_OF,
        before=options.before,
        rows="\n".join(rows),
        largest=LARGEST_US,
        metrics=words[quick],
        report=words[small],
        machine="\n".join(machine.lines(about)),
    )
    return text, quick and small


if __name__ == "__main__":
    sys.exit(main())
