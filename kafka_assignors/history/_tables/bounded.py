"""A dictionary that remembers what bytes said, and takes no more than so much memory.

The bytes of groups come again and again. What a member is assigned it has in the next generation, claims when
it joins, and mostly is assigned again. Once the memory is used up everything is discarded. That costs nothing
while there is room. To know what was used last would, for each look-up.
"""

from typing import TypeVar

_K = TypeVar("_K")
_V = TypeVar("_V")


class Bounded(dict[_K, _V]):
    """What is remembered.

    Args:
        most_bytes: How much it may take, about.
    """

    def __init__(self, most_bytes: int) -> None:
        super().__init__()
        self._most_bytes = most_bytes
        self._taken = 0

    def remember(self, key: _K, value: _V, size: int) -> None:
        """Remember a value, which takes so many bytes with its key."""
        if self._taken + size > self._most_bytes:
            self.clear()
            self._taken = 0
        self[key] = value
        self._taken += size
