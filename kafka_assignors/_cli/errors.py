"""How a command ends that cannot do what it is asked for: a line on stderr, and the exit status."""

import sys
from collections.abc import Callable


def complain(command: str, what: str) -> None:
    """Say on stderr what is wrong.

    Args:
        command: The command, with its verb: "history capture".
        what: The thing, the value and the way out.
    """
    print(f"kafka-assignors {command}: {what}", file=sys.stderr)


def exit_status(
    command: str,
    work: Callable[[], int],
    *,
    wrong: tuple[type[Exception], ...],
    failed: tuple[type[Exception], ...] = (),
) -> int:
    """Do the work of a command.

    Args:
        command: The command, with its verb.
        work: Returns the exit status.
        wrong: Errors of what cannot be asked for.
        failed: Errors of what could not be done.

    Returns:
        What the work returns; after an error 2 if it is `wrong`, 1 if it is `failed`.
    """
    try:
        return work()
    except wrong as error:
        complain(command, str(error))
        return 2
    except failed as error:
        complain(command, str(error))
        return 1
