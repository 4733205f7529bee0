"""Offsets of a commit that may be sent again when some of the partitions are gone."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any


class Offsets(dict[Any, Any]):
    """Offsets by partition; `revoked` are those that have been left out.

    A partition that has gone and come back may have been committed by another consumer in between. So what
    counts is the client's state of it, which is another object then.
    """

    def __init__(self, offsets: Mapping[Any, Any], state_of: Callable[[Any], object]) -> None:
        super().__init__(offsets)
        self._state_of = state_of
        self._states = {one: state_of(one) for one in offsets}
        self.revoked: dict[Any, Any] = {}

    def leave_out_revoked(self) -> None:
        """Leave out what has not been the consumer's all the time."""
        for one in [one for one in self if self._state_of(one) is not self._states[one]]:
            self.revoked[one] = self.pop(one)


def revoked_text(partitions: Iterable[Any]) -> str:
    """The text of the error that a commit ends with if some partitions were left out of it."""
    return f"revoked meanwhile, so not committed: {names_of(partitions)}"


def names_of(partitions: Iterable[Any]) -> str:
    """Partitions for a message."""
    return ", ".join(f"{one.topic}-{one.partition}" for one in sorted(partitions))
