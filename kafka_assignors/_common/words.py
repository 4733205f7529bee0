"""Lists and sizes in messages."""

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
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


def or_meant(name: str, known: Iterable[str]) -> str:
    """What an unknown name may have been meant to be, to follow it; nothing if nothing is near."""
    near = get_close_matches(name, [*known])
    return f": did you mean {' or '.join(near)}?" if near else ""


def are(brokers: Collection[int]) -> str:
    """Some brokers and the verb: "broker 3 is", "brokers 3, 4 are"."""
    ids = first_of(sorted(brokers), _MOST_IDS)
    return f"broker {ids} is" if len(brokers) == 1 else f"brokers {ids} are"


def by_topic(partitions: Iterable[tuple[str, int]]) -> dict[str, list[int]]:
    """Partition ids by topic, both ascending, each once."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(set(partitions)):
        topics.setdefault(topic, []).append(partition)
    return topics


def partitions_in_words(partitions: Iterable[tuple[str, int]]) -> str:
    """Partitions in short: "orders 0 1 4, events 2"."""
    listed = by_topic(partitions).items()
    return ", ".join(f"{topic} {' '.join(map(str, ids))}" for topic, ids in listed) or "none"


def named(partitions: Sequence[tuple[str, int]], most: int = 3) -> str:
    """The first of some partitions, and how many more there are."""
    return first_of([f"{topic}-{partition}" for topic, partition in partitions], most)
