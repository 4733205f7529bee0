"""How commands end: a line on stderr, and the exit status.

- 0: done.
- 1: it could not be done, or something is not as it should be.
- 2: it cannot be asked for.
- 130: ended by Ctrl-C.
- 143: ended by SIGTERM.
"""

import signal
import sys
from collections.abc import Callable
from typing import Final, NamedTuple

from kafka_assignors._cli.output import filled, joined
from kafka_assignors._cli.signals import terminations
from kafka_assignors._common.errors import KafkaAssignorsError

_EXTRAS: Final = {
    "demo": "demo",
    "history": "history",
    "placement": "placement",
    "group export": "prometheus",
}
"""Commands, or all of one word, and the extra that each needs beside click."""

_AFTER_INTERRUPT: Final = {
    "demo": "; nothing is left running",
    "history capture": "; the same command continues with the rest",
}


class WrongError(KafkaAssignorsError, ValueError):
    """What cannot be asked for."""


class FailedError(KafkaAssignorsError, RuntimeError):
    """What could not be done."""


class Errors(NamedTuple):
    """The errors that a command foresees; others are defects and come out.

    Attributes:
        wrong: Of what cannot be asked for: exit status 2.
        failed: Of what could not be done: exit status 1.
        words: What to print of one.
    """

    wrong: tuple[type[Exception], ...] = ()
    failed: tuple[type[Exception], ...] = (KafkaAssignorsError,)
    words: Callable[[Exception], str] = str


def exit_status(command: str, work: Callable[[], int], errors: Errors | None = None) -> int:
    """Do the work of a command, named with its verb ("history capture").

    Returns:
        What the work returns; after an error of the library 2 if it is a ValueError, else 1.
    """
    foreseen = Errors() if errors is None else errors
    try:
        return work()
    except (*foreseen.wrong, *foreseen.failed) as error:
        lines = f"kafka-assignors {command}: {foreseen.words(error)}".split("\n")
        if sys.stderr.isatty():
            lines = [line for long in lines for line in filled(long, "", "  ")]
        print(joined(lines), file=sys.stderr)
        wrong = isinstance(error, ValueError if errors is None else foreseen.wrong)
        return 2 if wrong else 1


def ended(command: str, work: Callable[[], int]) -> int:
    """Do all of a command, from the import of its code on.

    Returns:
        What the work returns; 130 after Ctrl-C, 143 after SIGTERM, 1 if an extra is not installed.
    """
    with terminations() as terminated:
        try:
            return work()
        except KeyboardInterrupt:
            print(f"interrupted{_AFTER_INTERRUPT.get(command, '')}", file=sys.stderr)
            return 128 + (signal.SIGTERM if terminated.is_set() else signal.SIGINT)
        except ImportError as error:
            named = command if command in _EXTRAS else command.partition(" ")[0]
            if named not in _EXTRAS:
                raise
            return missing(named, error, _EXTRAS[named])


def missing(command: str, error: ImportError, extra: str) -> int:
    """Say which extra a command needs; "" for any command.

    Returns:
        The exit status.
    """
    needs = f"needs {error.name}" if isinstance(error, ModuleNotFoundError) else f"cannot run: {error}"
    named = f"kafka-assignors {command}".rstrip()
    print(f"{named} {needs}: pip install 'kafka-assignors[{extra}]'", file=sys.stderr)
    return 1
