"""Lists in messages."""

from collections.abc import Sequence


def first_of(things: Sequence[object], most: int, separator: str = ", ") -> str:
    """So many of the things at most, and how many more there are."""
    more = f" and {len(things) - most} more" if len(things) > most else ""
    return separator.join(map(str, things[:most])) + more
