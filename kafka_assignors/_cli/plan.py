"""The planner by itself: a group from a file, and the plan for it."""

import shutil
import sys

from kafka_assignors._cli.errors import exit_status
from kafka_assignors._cli.group_file import read_group
from kafka_assignors._cli.outcome import Outcome
from kafka_assignors._cli.output import show, show_json
from kafka_assignors._cli.plan_text import lines
from kafka_assignors._cli.tree import FileError

_WIDTH = 80


def plan(
    name: str,
    *,
    strategy: str,
    max_skew: int | None,
    max_moves: int | None,
    cooperative: bool,
    certify: bool,
    strict: bool,
    assignments: bool,
    as_json: bool,
) -> int:
    """Plan the group in a file and print the plan.

    Args:
        name: The file's name, `-` for the standard input.
        strategy: The planner's name.
        max_skew: An option of the exact planner.
        max_moves: The same.
        cooperative: Show the rounds of a cooperative hand-over. Members then hold what they own, where the
            file does not say.
        certify: Find out whether the plan could be better.
        strict: Make it an error if the plan is not proved to be optimal.
        assignments: Show who gets what however large the group is.
        as_json: Print JSON.

    Returns:
        0 if it was planned, 1 if `strict` and not proved to be optimal, 2 for a file that cannot be used.
    """

    def planned() -> int:
        read = read_group(name, cooperative=cooperative)
        outcome = Outcome.of(
            read.group, strategy=strategy, max_skew=max_skew, max_moves=max_moves, certify=certify
        )
        if as_json:
            show_json(outcome.to_json(notes=read.notes, cooperative=cooperative))
        else:
            width = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else _WIDTH
            shown = lines(
                outcome,
                notes=read.notes,
                assignments=assignments,
                cooperative=cooperative,
                width=max(width, _WIDTH),
            )
            show("\n".join(shown))
        return 1 if strict and not outcome.optimal else 0

    return exit_status("plan", planned, wrong=(FileError,))
