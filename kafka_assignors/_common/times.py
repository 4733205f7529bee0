"""Times as the brokers write them, and as Python has them."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

FIRST_MS: Final = -62_135_596_800_000
LAST_MS: Final = 253_402_300_799_999
"""The first and last milliseconds since 1970 that have a date: those of the years 1 to 9999."""


def moment(time_us: int) -> datetime:
    """The time so many microseconds after 1970, in UTC; exact, as `datetime.fromtimestamp` is not."""
    return _EPOCH + timedelta(microseconds=time_us)


def in_utc(when: datetime) -> datetime:
    """The same moment in UTC; one without a time zone is meant so."""
    return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)


def begins_after(since: datetime | None, asked: datetime | None) -> bool:
    """Whether nothing is known of when a history was asked to begin, but only of later."""
    return since is not None and asked is not None and since > in_utc(asked)


def micros(when: datetime) -> int:
    """Microseconds since 1970: what `moment` is the moment of."""
    return (in_utc(when) - _EPOCH) // timedelta(microseconds=1)
