"""How commands end: a line on stderr, and the exit status.

- 0: done.
- 1: it could not be done, or something is not as it should be.
- 2: it cannot be asked for.
- 130: ended by Ctrl-C.
- 143: ended by SIGTERM.
"""

import logging
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Final

from kafka_assignors._cli.output import filled
from kafka_assignors._common.errors import KafkaAssignorsError
from kafka_assignors._common.escaping import block, escaped, get_logger

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


class _Warnings(logging.Handler):
    """Prints what the library warns of."""

    def emit(self, record: logging.LogRecord) -> None:
        _say(escaped(record.getMessage()))


def ended(command: str, work: Callable[[], int | None], foreseen: tuple[type[Exception], ...]) -> int:
    """Do all of a command, named with its verb ("history capture"), from the import of its code on.

    Returns what the work returns. After a foreseen error it is 2 for a ValueError, else 1. After Ctrl-C it is
    130, after SIGTERM 143; 1 if an extra is not installed.
    """
    log, warnings = get_logger("kafka_assignors"), _Warnings(logging.WARNING)
    with ExitStack() as stack:
        terminated = stack.enter_context(_terminations())
        log.addHandler(warnings)
        stack.callback(log.removeHandler, warnings)
        try:
            return work() or 0
        except KeyboardInterrupt:
            print(f"interrupted{_AFTER_INTERRUPT.get(command, '')}", file=sys.stderr)
            return 128 + (signal.SIGTERM if terminated.is_set() else signal.SIGINT)
        except foreseen as error:
            _say(block(f"kafka-assignors {command}: {error}"))
            return 2 if isinstance(error, ValueError) else 1
        except ImportError as error:
            named = command if command in _EXTRAS else command.partition(" ")[0]
            if named not in _EXTRAS:
                raise
            return missing(named, error, _EXTRAS[named])


def _say(text: str) -> None:
    """Print escaped text on stderr, in lines of 80 columns on a terminal."""
    if sys.stderr.isatty():
        text = "\n".join(line for long in text.split("\n") for line in filled(long, "", "  "))
    print(text, file=sys.stderr)


def missing(command: str, error: ImportError, extra: str) -> int:
    """Say which extra a command needs ("" for any command); returns the exit status."""
    needs = f"needs {error.name}" if isinstance(error, ModuleNotFoundError) else f"cannot run: {error}"
    if "pip install" not in needs:
        needs += f": pip install 'kafka-assignors[{extra}]'"
    print(f"kafka-assignors {command}".rstrip(), needs, file=sys.stderr)
    return 1


@contextmanager
def _terminations() -> Iterator[threading.Event]:
    """Whether there was a SIGTERM, which does what Ctrl-C would do at that moment.

    Only the first does: `timeout` sends two, and the second must not interrupt the clean-up.
    """
    seen = threading.Event()

    def terminate(number: int, frame: FrameType | None) -> None:
        if seen.is_set():
            return
        seen.set()
        interrupt = signal.getsignal(signal.SIGINT)  # a command may have a handler of its own, and Spark has
        if not callable(interrupt):  # Ctrl-C is ignored, as in the background of a script
            raise KeyboardInterrupt
        interrupt(number, frame)

    main_thread = threading.current_thread() is threading.main_thread()
    if not main_thread or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield seen  # what SIGTERM does here is for others to say
        return
    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGTERM, before)
