"""Printing what a command found."""

import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

from kafka_assignors._common.escaping import escaped
from kafka_assignors._common.plain import to_json

WIDTH: Final = 80
"""How wide prose is, and tables where nothing says that there is more room."""

_SEVERITY: Final = re.compile(r"(?m)(?:^|(?<=  ))(error|warning)(?: \(\+\d+\))?(?=: )")
"""What is wrong, at the start of a line or of a table's cell."""

_COLOURS: Final = {"error": "\x1b[1;31m", "warning": "\x1b[1;35m"}
"""Red and magenta: readable on black and on white, where yellow is not."""

_PLAIN: Final = "\x1b[0m"


def show_result(result: Any, lines: Iterable[str], *, as_json: bool) -> None:
    """Print what a function found, as JSON or for people; only one of the two is made."""
    if as_json:
        show_json(result)
    else:
        text = joined(lines)
        show(coloured(text) if is_coloured() else text)


def screen_width() -> int:
    """How many columns a table may have: as many as the terminal, and 80 if it has fewer or is none."""
    columns = shutil.get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    return max(columns, WIDTH)


def is_coloured() -> bool:
    """Whether the terminal wants colours: it is one, and `NO_COLOR` is not set."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def coloured(text: str) -> str:
    """Text whose errors and warnings stand out."""
    return _SEVERITY.sub(lambda found: f"{_COLOURS[found[1]]}{found[0]}{_PLAIN}", text)


def joined(lines: Iterable[str]) -> str:
    """Lines for people as one text; a line break within one of them is escaped as in a name.

    A terminal gets prose in lines of 80 columns. Rows of tables are whole: two blanks separate their cells.
    """
    wraps = sys.stdout.isatty()
    return "\n".join(part for line in lines for part in (_wrapped(line) if wraps else [escaped(line)]))


def _wrapped(line: str) -> list[str]:
    prose = line.lstrip()
    if len(line) <= WIDTH or "  " in prose:
        return [escaped(line)]
    indent = line[: -len(prose)]
    return filled(prose, indent, f"{indent}  ")


def show(text: str) -> bool:
    """Print, also into a pipe that somebody like `head` closes early; whether somebody reads on."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return False
    return True


def show_json(result: Any) -> None:
    show(json.dumps(to_json(result), indent=2))


def filled(text: str, first: str, rest: str, width: int = WIDTH) -> list[str]:
    """Text in lines that begin with this; what is copied from a screen is whole, as names and options are."""
    return textwrap.wrap(
        escaped(text),
        width,
        initial_indent=first,
        subsequent_indent=rest,
        break_long_words=False,
        break_on_hyphens=False,
    )


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
