"""How a command ends that cannot do what it is asked for: a line on stderr, and the exit status."""

import sys
from collections.abc import Callable
from typing import NamedTuple

from kafka_assignors._cli.output import filled, joined


class Errors(NamedTuple):
    """The errors that a command foresees; others are defects and come out.

    Attributes:
        wrong: Of what cannot be asked for: exit status 2.
        failed: Of what could not be done: exit status 1.
        words: What to print of one.
    """

    wrong: tuple[type[Exception], ...] = ()
    failed: tuple[type[Exception], ...] = ()
    words: Callable[[Exception], str] = str


def exit_status(command: str, work: Callable[[], int], errors: Errors) -> int:
    """Do the work of a command, named with its verb ("history capture").

    Returns:
        What the work returns; after an error 2 if it is `wrong`, 1 if it is `failed`.
    """
    try:
        return work()
    except (*errors.wrong, *errors.failed) as error:
        lines = f"kafka-assignors {command}: {errors.words(error)}".split("\n")
        if sys.stderr.isatty():
            lines = [line for long in lines for line in filled(long, "", "  ")]
        print(joined(lines), file=sys.stderr)
        return 2 if isinstance(error, errors.wrong) else 1
