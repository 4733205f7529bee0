"""Printing what a command found."""

import json
import os
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

_UNSHOWN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of characters that a terminal obeys, hides or cannot print."""


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
            show(joined(self.lines))


def escaped(text: str) -> str:
    r"""Text with its control and format characters as Python writes them: `\x1b`, `\n`, `\u202e`.

    Any member chooses its names, and a terminal would obey what is in them. What is escaped already stays.
    """
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if unicodedata.category(char) in _UNSHOWN else char
        for char in text
    )


def joined(lines: Iterable[str]) -> str:
    """Lines for people as one text; a line break within one of them is escaped as in a name."""
    return "\n".join(map(escaped, lines))


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
    rows = [[escaped(cell) for cell in row] for row in rows]
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
