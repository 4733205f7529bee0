"""Until when a member's partitions are its own for certain, and when it sends heartbeats."""

import math
from collections.abc import Iterator
from typing import Final

LISTENING: Final = 0.05
"""Seconds from a rebalance to the first heartbeat after it; twice as long to the next one, and so on."""


class Certainty:
    """Until when the coordinator cannot have given a member's partitions away.

    Args:
        session: The session timeout, in seconds.
        rebalance: The rebalance timeout, in seconds: `max.poll.interval.ms`.

    Attributes:
        until: That time, of `time.monotonic()`.
    """

    def __init__(self, session: float, rebalance: float) -> None:
        self._session = session
        self._rebalance = rebalance
        self._awaited_until = -math.inf
        self.until = -math.inf

    def confirm(self, sent: float, *, awaited: bool = False) -> None:
        """Note that the coordinator had a request of the member, and knew the member.

        The session ends no sooner than the session timeout after that. When the answer came is no measure: a
        process that was frozen finds old ones when it runs again. In a rebalance the coordinator expels who
        has not joined by the rebalance timeout, in spite of heartbeats. That counts from after the last
        request at which it did not wait for this member.

        Args:
            sent: When the request was sent.
            awaited: Whether the coordinator may have waited for this member to join.
        """
        if not awaited:
            self._awaited_until = max(self._awaited_until, sent + self._rebalance)
        self.until = max(self.until, min(sent + self._session, self._awaited_until))


def sooner_than(interval: float) -> Iterator[float]:
    """Seconds between heartbeats after a rebalance, until the regular ones are as good.

    A second round begins as soon as somebody has revoked. By the next regular heartbeat a member would learn
    of it late. With these it learns of it within twice the time that the slowest listener took.

    Args:
        interval: The heartbeat interval, in seconds.
    """
    delay = LISTENING
    while delay < interval:
        yield delay
        delay *= 2
