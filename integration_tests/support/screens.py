"""What a command shows on a terminal, kept as a picture: an SVG in the colours that its reader prefers."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import Final, NamedTuple

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

_ROWS: Final = 60
_CELL: Final = 7.2
_LINE: Final = 16
_EDGE: Final = 12

_PALETTE: Final[Mapping[str, tuple[str, str]]] = {
    "red": ("#b3261e", "#ff8a80"),
    "yellow": ("#7a5c00", "#ffd54f"),
    "green": ("#1b6e2d", "#8ee59b"),
    "cyan": ("#00687a", "#7fdbe8"),
    "blue": ("#1d4ed8", "#90b4ff"),
    "magenta": ("#8e24aa", "#e3a3f0"),
}
"""The colours that a terminal is asked for, on white and on black."""

_NAMES: Final[Mapping[int, str]] = {
    1: "red",
    2: "green",
    3: "yellow",
    4: "blue",
    5: "magenta",
    6: "cyan",
}
"""The colours by their numbers; what is asked for in others is drawn as text is."""

_STYLE: Final = (
    "text{font:12px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:#24292f}"
    ".paper{fill:#fff;stroke:#d0d7de}.prompt{font-weight:bold}.bold{font-weight:bold}.dim{opacity:.65}"
    + "".join(f".{name}{{fill:{light}}}" for name, (light, _) in _PALETTE.items())
    + "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.paper{fill:#0d1117;stroke:#30363d}"
    + "".join(f".{name}{{fill:{dark}}}" for name, (_, dark) in _PALETTE.items())
    + "}"
)


class Screen(NamedTuple):
    status: int
    shown: str
    columns: int

    @property
    def text(self) -> str:
        """Without colours."""
        return Text.from_ansi(self.shown).plain


def run_on_terminal(
    command: Sequence[str], *, columns: int, environment: Mapping[str, str], timeout: float
) -> Screen:
    """Run a command to its end on a terminal of so many columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", _ROWS, columns, 0, 0))
    kept = {name: value for name, value in environment.items() if name not in {"COLUMNS", "NO_COLOR"}}
    with subprocess.Popen(
        command, stdin=its, stdout=its, stderr=its, env={**kept, "TERM": "xterm-256color"}
    ) as process:
        os.close(its)
        shown = b"".join(_chunks(ours))
        os.close(ours)
        status = process.wait(timeout)
    return Screen(status, _left(shown.decode()), columns)


def _left(written: str) -> str:
    """What is left on a terminal on which lines were written again: by a carriage return, or further up."""
    rows, at = [""], 0
    for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\n|\r|[^\x1b\n\r]+", written.replace("\r\n", "\n")):
        if part == "\n":
            at += 1
            rows += [""] * (at == len(rows))
        elif part == "\r" or (part[0] == "\x1b" and part[-1] == "K"):
            rows[at] = ""
        elif part[0] == "\x1b" and part[-1] == "A":
            at = max(0, at - int(part[2:-1] or 1))
        elif part[0] != "\x1b" or part[-1] == "m":
            rows[at] += part
    return "\n".join(rows)


def _chunks(terminal: int) -> Iterator[bytes]:
    while True:
        try:
            chunk = os.read(terminal, 1 << 16)
        except OSError:  # how Linux says that nobody writes to it any more
            return
        if not chunk:
            return
        yield chunk


def picture(prompt: str, screen: Screen) -> str:
    """The SVG of a screen: the command, and what came of it, in lines as the terminal breaks them."""
    lines = [Text(f"$ {prompt}", style="prompt"), *Text.from_ansi(screen.shown.rstrip("\n")).split("\n")]
    rows = [row for line in lines for row in _broken(line, screen.columns)]
    width = round(screen.columns * _CELL + 2 * _EDGE)
    height = len(rows) * _LINE + 2 * _EDGE
    body = "\n".join(_row(number, row) for number, row in enumerate(rows) if row.plain.strip())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}">\n<title>{escape(prompt)}</title>\n<style>{_STYLE}</style>\n'
        f'<rect class="paper" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="6"/>\n'
        f"{body}\n</svg>\n"
    )


def _broken(line: Text, columns: int) -> list[Text]:
    """A line in rows of a terminal, which breaks it wherever its edge is."""
    places = range(columns, max(len(line.plain), 1), columns)
    return [*line.divide(places)]


def _row(number: int, row: Text) -> str:
    y = _EDGE + number * _LINE + 12
    plain = row.plain.rstrip()
    spans = sorted({0, len(plain), *(place for span in row.spans for place in (span.start, span.end))})
    parts = []
    for start, end in pairwise(spans):
        if not plain[start:end].strip():
            continue
        styles = [span.style for span in row.spans if span.start <= start < span.end]
        if isinstance(row.style, str) and row.style:
            styles.append(row.style)
        classes = " ".join(name for style in styles for name in _classes(style))
        x, length = _EDGE + cell_len(plain[:start]) * _CELL, cell_len(plain[start:end]) * _CELL
        named = f' class="{classes}"' if classes else ""
        parts.append(
            f'<text x="{x:g}" y="{y}" textLength="{length:g}" xml:space="preserve"{named}>'
            f"{escape(plain[start:end])}</text>"
        )
    return "".join(parts)


def _classes(style: str | Style) -> Iterator[str]:
    if isinstance(style, str):
        yield style
        return
    if style.color is not None and (number := style.color.number) is not None and number in _NAMES:
        yield _NAMES[number]
    if style.bold:
        yield "bold"
    if style.dim:
        yield "dim"
