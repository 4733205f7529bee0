"""The random numbers of `java.util.Random`, by which Kafka draws where a placement starts."""

import secrets
from collections.abc import MutableSequence
from typing import TypeVar

_T = TypeVar("_T")

_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 0xB
_MASK = (1 << 48) - 1
_INT_LIMIT = 1 << 31


class JavaRandom:
    """The linear congruential generator of 48 bits that `java.util.Random` documents.

    Of a seed the lower 48 bits count; None draws one from the system.
    """

    def __init__(self, seed: int | None = None) -> None:
        start = secrets.randbits(48) if seed is None else seed
        self._state = (start ^ _MULTIPLIER) & _MASK

    def next_31_bits(self) -> int:
        """The next 31 random bits, from which all else is made: Java's `next(31)`."""
        self._state = (self._state * _MULTIPLIER + _INCREMENT) & _MASK
        return self._state >> 17

    def next_int(self, bound: int) -> int:
        """Java's `nextInt(bound)`: a number from 0 to below the bound.

        Raises ValueError if the bound is out of Java's range.
        """
        if not 1 <= bound < _INT_LIMIT:
            raise ValueError(f"bound is {bound}: Java draws below a bound of 1 to 2147483647")
        bits = self.next_31_bits()
        if bound & (bound - 1) == 0:
            return bound * bits >> 31
        # The last run of numbers is cut off by the int range: Java draws again, for no number to be favoured.
        while bits - bits % bound + bound > _INT_LIMIT:
            bits = self.next_31_bits()
        return bits % bound

    def shuffle(self, items: MutableSequence[_T]) -> None:
        """Shuffle in place, as `java.util.Collections.shuffle(list, random)` does."""
        for end in range(len(items), 1, -1):
            other = self.next_int(end)
            items[end - 1], items[other] = items[other], items[end - 1]
