"""Lists and sizes in messages."""

from collections.abc import Sequence
from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_KIBI: Final = 1024


def first_of(things: Sequence[object], most: int, separator: str = ", ") -> str:
    """So many of the things at most, and how many more there are."""
    more = f" and {len(things) - most} more" if len(things) > most else ""
    return separator.join(map(str, things[:most])) + more


def size(number: int) -> str:
    """Bytes for people."""
    value, unit = float(number), 0
    while value >= _KIBI and unit < len(_UNITS) - 1:
        value, unit = value / _KIBI, unit + 1
    return f"{value:.1f} {_UNITS[unit]}" if unit else f"{number} B"
