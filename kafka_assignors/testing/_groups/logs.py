"""What of a member's log is worth a look: the first exception of the application, and the end."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import kafka_assignors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__tracebackhide__ = True

_LAST_LINES: Final = 15
_SLOW_TASK: Final = " It is blocking the event loop"
_HEADING: Final = "Traceback (most recent call last):"
# What comes with Python, what is installed, and the kit: an application's own code is elsewhere.
_NOT_OURS: Final = (
    *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "purelib", "platlib")),
    f"{Path(kafka_assignors.__file__).parent}/",
    "<frozen ",
)


class _Traceback(NamedTuple):
    """A traceback in a log."""

    start: int
    frames: Sequence[Sequence[str]]
    error: str

    @property
    def ours(self) -> Sequence[Sequence[str]]:
        """The frames in the application's code."""
        return [frame for frame in self.frames if not frame[0].partition('"')[2].startswith(_NOT_OURS)]


def summary(log: str) -> str:
    """The first exception in a log that passed through the application's code, and the log's last lines.

    Clients log what a listener raises among all of their own frames, and continue to log. When a wait for a
    group times out, the cause stands far above the last lines.

    The last lines are 15. Unless they contain the exception without a frame of a library, it comes before
    them. It has the line by which it was logged, and its frames in the application's code. If no exception
    passed through the application's code, it is the log's first one, whole. Left out is what kafka-python
    warns of whenever a machine is slow.
    """
    lines = [line for line in log.splitlines() if _SLOW_TASK not in line]
    last = lines[-_LAST_LINES:]
    found = list(_tracebacks(lines))
    if not found:
        return "\n".join(last)
    first = next((one for one in found if one.ours), found[0])
    shown = first.ours or first.frames
    left_out = len(first.frames) - len(shown)
    if first.start >= len(lines) - len(last) and not left_out:
        return "\n".join(last)
    return "\n".join(
        [
            "the first exception:",
            *lines[max(first.start - 1, 0) : first.start],
            f"{_HEADING}{f' [{left_out} frames of libraries left out]' if left_out else ''}",
            *(line for frame in shown for line in frame),
            first.error,
            f"the last {len(last)} lines:",
            *last,
        ]
    )


def _tracebacks(lines: Sequence[str]) -> Iterator[_Traceback]:
    at = 0
    while at < len(lines):
        start, at = at, at + 1
        if lines[start] != _HEADING:
            continue
        frames: list[list[str]] = []
        while at < len(lines) and lines[at].startswith("  "):
            if lines[at].startswith('  File "'):
                frames.append([])
            if frames:
                frames[-1].append(lines[at])
            at += 1
        if frames and at < len(lines):
            # An exception's message may have several lines, but nothing says where the next record begins.
            yield _Traceback(start, frames, lines[at])
            at += 1
