"""A connection to a broker, which answers its requests in order: what follows a JoinGroup waits for that."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(slots=True, eq=False)
class Connection:
    """A connection.

    Attributes:
        open: Whether it was not broken.
        unanswered: Each fails a request that is not answered yet.
    """

    open: bool = True
    unanswered: dict[Callable[[], None], None] = field(default_factory=dict)
    _busy: bool = False
    _waiting: deque[Callable[[], None]] = field(default_factory=deque)

    def close(self) -> None:
        """Break it: requests without an answer fail."""
        self.open = False
        self._waiting.clear()
        failures, self.unanswered = self.unanswered, {}
        for fail in failures:
            fail()

    def arrives(self, handle: Callable[[], None]) -> None:
        """Let the broker handle a request when those before it are answered."""
        if self.open:
            self._waiting.append(handle)
            self._handle_next()

    def _handle_next(self) -> None:
        if self._waiting and not self._busy:
            self._busy = True
            self._waiting.popleft()()

    def answered(self) -> None:
        """It has answered."""
        self._busy = False
        self._handle_next()
