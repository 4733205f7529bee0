"""How the texts of options are read: functions whose ValueError says what is wrong."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

from kafka_assignors._common.times import in_utc


def whole(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text!r} is not a whole number of 0 or more")
    return int(text)


def up_to(most: int, what: str) -> Callable[[str], int]:
    """A whole number from 0 to this one; errors say what they are."""

    def read(text: str) -> int:
        if (number := whole(text)) > most:
            raise ValueError(f"{what} are at most {most}, not {number}")
        return number

    return read


def positive(text: str) -> int:
    """A whole number from 1 on."""
    number = whole(text)
    if number == 0:
        raise ValueError("0 is too few")
    return number


def seconds(text: str) -> float:
    """A number of seconds, from 0 on."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise ValueError(f"{text!r} is not a number of seconds, 0 or more")
    return number


def data_size(text: str) -> int:
    """Bytes, at least one and as many as Kafka can count: "1048576", "1MiB", "1.5 GB"."""
    found = _SIZE.fullmatch(text.strip())
    number = 0.0 if found is None else float(found["number"]) * _UNITS[found["unit"].lower()]
    if not 1 <= number < 2**63:
        raise ValueError(f"{text!r} is not a number of bytes, such as 10485760 or 10MiB")
    return int(number)


_UNITS: Final = {"": 1, "b": 1} | {
    f"{prefix}{unit}": base**power
    for power, prefix in enumerate("kmgt", 1)
    for unit, base in (("b", 1000), ("ib", 1024))
}
_SIZE: Final = re.compile(
    rf"(?P<number>[0-9]+(?:\.[0-9]+)?) ?(?P<unit>{'|'.join(_UNITS)})", re.IGNORECASE | re.ASCII
)


_AGO: Final = re.compile(r"(\d+)([smhdw])")
_TIMES: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def span(text: str) -> timedelta:
    """How long: 30m, 24h, 7d, 2w."""
    found = _AGO.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not a duration: write 24h, 7d or 2w")
    try:
        return timedelta(**{_TIMES[found[2]]: int(found[1])})
    except OverflowError as error:
        raise ValueError(f"{text!r} is too long") from error


def moment(text: str) -> datetime:
    """A date or time in ISO 8601, or how long ago: 90s, 30m, 24h, 7d, 2w."""
    try:
        if _AGO.fullmatch(text):
            return datetime.now(UTC) - span(text)
        return in_utc(datetime.fromisoformat(text))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{text!r} is neither a date or time nor a duration, such as 24h") from error
