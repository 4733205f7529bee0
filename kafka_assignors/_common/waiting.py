"""Waiting for what somebody else does, and the error if it does not happen in time."""

import time
from collections.abc import Callable, Sequence
from typing import Final

LOOK_SECONDS: Final = 0.05
"""The time between two looks at a condition."""


class Deadline:
    """The end of a wait.

    Args:
        seconds: How long the wait may last from now on.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def began(self) -> float:
        """When the wait began, as `time.monotonic()` says it."""
        return self._end - self.seconds

    @property
    def left(self) -> float:
        """How many seconds are left, 0 at the least."""
        return max(0.0, self._end - time.monotonic())

    @property
    def passed(self) -> bool:
        """Whether the time is over."""
        return time.monotonic() > self._end

    def text(self, what: str, wrong: Sequence[str]) -> str:
        """The error text of a wait that timed out, for "the cluster to be complete", say."""
        return listed(f"timed out after {self.seconds:g} s waiting for {what}", wrong)


def listed(headline: str, wrong: Sequence[str]) -> str:
    """A headline, and below it one line for each thing that is wrong."""
    return "\n".join([f"{headline}:" if wrong else headline, *(f"  - {each}" for each in wrong)])


def wait_until(
    condition: Callable[[], Sequence[str]],
    timeout: float,
    what: str,
    *,
    error: type[Exception] = TimeoutError,
    every: float = LOOK_SECONDS,
) -> None:
    """Wait until a condition finds nothing wrong; times are in seconds. It is asked at least once.

    Raises:
        Exception: Of the class `error`: something was still wrong at the end. The message says what.
    """
    deadline = Deadline(timeout)
    while wrong := condition():
        if deadline.passed:
            raise error(deadline.text(what, wrong))
        time.sleep(every)
