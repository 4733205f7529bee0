"""Times as the brokers write them, and as Python has them."""

from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def moment(time_us: int) -> datetime:
    """The time so many microseconds after 1970, in UTC; exact, as `datetime.fromtimestamp` is not."""
    return _EPOCH + timedelta(microseconds=time_us)
