"""What a test breaks on purpose, mended when its context ends."""

from collections.abc import Callable
from typing import Self


class Disturbance:
    """Something that was done to a broker or a member. As a context manager it is undone on leaving.

        with broker.kill():
            group.wait_stable()

    `undo` does nothing if that has happened already.
    """

    def __init__(self, undo: Callable[[], object]) -> None:
        self._undo = undo

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo()
