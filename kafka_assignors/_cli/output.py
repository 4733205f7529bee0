"""Printing what a command found."""

import json
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """What a command found.

    Only one of `value` and `lines` is made.

    Attributes:
        value: For machines, in types that JSON has or `str` makes readable.
        lines: For people.
        status: The exit status.
    """

    value: Callable[[], Any]
    lines: Iterable[str]
    status: int = 0

    def show(self, *, as_json: bool) -> None:
        """Print it."""
        if as_json:
            show_json(self.value())
        else:
            show("\n".join(self.lines))


def show(text: str) -> None:
    """Print, also into a pipe that somebody like `head` closes early."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def show_json(value: Any) -> None:
    """Print plain types as JSON; what JSON does not have (times, sets) as text."""
    show(json.dumps(value, indent=2, default=str))


def table(rows: Iterable[Sequence[str]], *, left: Collection[int] = (0,)) -> Iterator[str]:
    """Rows in columns; those of these numbers to the left, all others to the right."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "  ".join(cells).rstrip()


def count(number: int, what: str) -> str:
    """A number of things, in words: "1 member", "1,200 members"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
