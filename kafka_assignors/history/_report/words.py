"""Numbers, times and durations, as people write them."""

from datetime import datetime, timedelta
from typing import Final

_UNITS: Final = ((86_400, "day", "d"), (3600, "hour", "h"), (60, "minute", "min"), (1, "second", "s"))
_ROUNDED: Final = ((86_400, 3600), (3600, 60))


def number(value: float) -> str:
    """A number with commas between thousands; below 10 with one decimal if it has any."""
    if abs(value) < 10 and round(value, 1) != round(value):  # noqa: PLR2004 - one digit before the point
        return f"{value:.1f}"
    return f"{round(value):,}"


def count(value: int, what: str, several: str | None = None) -> str:
    """So many things, such as "1 rebalance" and "2 rebalances"."""
    return f"{value:,} {what if value == 1 else several or what + 's'}"


def times(value: int) -> str:
    """So often: once, twice, 3 times; never."""
    return {0: "never", 1: "once", 2: "twice"}.get(value) or f"{value:,} times"


def duration(seconds: float, *, short: bool = False) -> str:
    """A time in its two largest units, such as "9 minutes 20 seconds", or "9 min 20 s" if short."""
    seconds = max(seconds, 0.0)
    if 0 < seconds < 10:  # noqa: PLR2004 - one digit before the point
        digits = number(seconds) if seconds >= 0.1 else f"{seconds:.1g}"  # noqa: PLR2004
        return f"{digits} s" if short else f"{digits} second{'' if digits == '1' else 's'}"
    # Rounded in the smaller unit that is shown, so that a minute never has 60 seconds.
    smallest = next((below for above, below in _ROUNDED if seconds >= above), 1)
    rest = round(seconds / smallest) * smallest
    parts: list[str] = []
    for unit, name, letters in _UNITS:
        value, rest = divmod(rest, unit)
        if value and len(parts) < 2:  # noqa: PLR2004 - of the units
            parts.append(f"{value:,} {letters}" if short else count(value, name))
        elif parts:
            break
    return " ".join(parts) or ("0 s" if short else "0 seconds")


def moment(time: datetime, *, seconds: bool = False) -> str:
    """A time of UTC, such as "20 Nov 2026 14:02"."""
    return f"{time.day} {time:%b %Y %H:%M:%S}" if seconds else f"{time.day} {time:%b %Y %H:%M}"


def is_brief(since: datetime, until: datetime) -> bool:
    """Whether times in between are shown with their seconds."""
    return until - since < timedelta(hours=1)
