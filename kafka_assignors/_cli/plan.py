"""The planner by itself: a group from a file, and the plan for it."""

from typing import Final

from kafka_assignors._cli.errors import Errors
from kafka_assignors._cli.group_file import read_group
from kafka_assignors._cli.outcome import PlanOutcome
from kafka_assignors._cli.output import Answer, screen_width
from kafka_assignors._cli.plan_text import lines
from kafka_assignors._cli.tree import FileError

ERRORS: Final = Errors(wrong=(FileError,))


def plan(
    *,
    file: str,
    strategy: str,
    max_skew: int | None,
    max_moves: int | None,
    cooperative: bool,
    certify: bool,
    check: bool,
    assignments: bool,
) -> Answer:
    """Plan the group in a file; the status is 1 if `check` and the plan is not proved to be optimal.

    With `cooperative` members hold what they own, where the file does not say.

    Raises:
        FileError: The file cannot be used.
    """
    read = read_group(file, cooperative=cooperative)
    outcome = PlanOutcome.of(
        read.group, strategy=strategy, max_skew=max_skew, max_moves=max_moves, certify=certify
    )
    return Answer(
        lambda: outcome.to_json(notes=read.notes, cooperative=cooperative),
        lines(
            outcome,
            notes=read.notes,
            assignments=assignments,
            cooperative=cooperative,
            width=screen_width(),
        ),
        1 if check and not outcome.optimal else 0,
    )
