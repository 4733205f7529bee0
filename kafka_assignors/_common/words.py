"""Lists and sizes in messages."""

from collections.abc import Collection, Sequence
from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_KIBI: Final = 1024
_MOST_IDS: Final = 10


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


def are(brokers: Collection[int]) -> str:
    """Some brokers and the verb: "broker 3 is", "brokers 3, 4 are"."""
    ids = first_of(sorted(brokers), _MOST_IDS)
    return f"broker {ids} is" if len(brokers) == 1 else f"brokers {ids} are"


def named(partitions: Sequence[tuple[str, int]], most: int = 3) -> str:
    """The first of some partitions, and how many more there are."""
    return first_of([f"{topic}-{partition}" for topic, partition in partitions], most)
