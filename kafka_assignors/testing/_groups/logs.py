"""What of a member's log is worth a look: the first exception of the application, and the end."""

import re
import sysconfig
from pathlib import Path
from typing import Final

import kafka_assignors

_LAST_LINES: Final = 15
_SLOW_TASK: Final = " It is blocking the event loop"
# An exception's message may have several lines, but nothing says where the next record begins.
_TRACEBACK: Final = re.compile(
    r"^Traceback \(most recent call last\):\n"
    r'(?:  .*\n)*?(?P<frames>  File ".*\n(?:  .*\n)*)(?P<error>(?!  ).*)',
    re.MULTILINE,
)
_FRAME: Final = re.compile(r'  File ".*\n(?:  (?!File ").*\n)*')
# What comes with Python, what is installed, and the kit: an application's own code is elsewhere.
_NOT_OURS: Final = (
    *(f"{sysconfig.get_path(name)}/" for name in ("stdlib", "purelib", "platlib")),
    f"{Path(kafka_assignors.__file__).parent}/",
    "<frozen ",
)


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
    found = [*_TRACEBACK.finditer("\n".join(lines))]
    if not found:
        return "\n".join(last)
    first = next((one for one in found if _frames_of_application(one)), found[0])
    frames = _FRAME.findall(first["frames"])
    shown = _frames_of_application(first) or frames
    left_out = len(frames) - len(shown)
    start = first.string.count("\n", 0, first.start())
    if start >= len(lines) - len(last) and not left_out:
        return "\n".join(last)
    return "\n".join(
        [
            "the first exception:",
            *lines[max(start - 1, 0) : start],
            "Traceback (most recent call last):"
            + (f" [{left_out} frames of libraries left out]" if left_out else ""),
            "".join(shown) + first["error"],
            f"the last {len(last)} lines:",
            *last,
        ]
    )


def _frames_of_application(traceback: re.Match[str]) -> list[str]:
    frames = _FRAME.findall(traceback["frames"])
    return [frame for frame in frames if not frame.partition('"')[2].startswith(_NOT_OURS)]
