"""Unit tests start no process and use no network: who tries is refused. They belong to tests/system."""

import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

REFUSED: Final = frozenset(
    {
        "os.fork",
        "os.posix_spawn",
        "os.system",
        "socket.bind",
        "socket.connect",
        "subprocess.Popen",
    }
)
"""Audit events, see the documentation of Python."""

_testing = False


class NotInAUnitTestError(OSError):
    """A process was to be started, or a connection made.

    An OSError, as libraries pass over it where a program that they look for is missing.
    """


def _refuse(event: str, arguments: tuple[Any, ...]) -> None:
    if _testing and event in REFUSED:
        raise NotInAUnitTestError(f"{event}{arguments} in a unit test: move it to tests/system")


# There is no way to remove it again.
sys.addaudithook(_refuse)


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    global _testing  # noqa: PLW0603 - the hook cannot be given anything
    _testing = True
    yield
    _testing = False
