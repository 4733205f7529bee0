"""Until when a member's partitions are its own for certain, and when it sends heartbeats."""

import math
from collections.abc import Iterator
from typing import Final

LISTENING: Final = 0.05
"""Seconds between the first two heartbeats after a rebalance; twice as long to the next one, and so on."""


class Certainty:
    """Until when (of `time.monotonic()`) the coordinator cannot have given a member's partitions away.

    Only heartbeats confirm it. A group that is stable answers SyncGroup, and JoinGroup with nothing new, and
    renews no session (Kafka's `classicGroupSyncToClassicGroup`). A client cannot see in which state it was.
    """

    def __init__(self, session: float, rebalance: float) -> None:
        self._session = session  # in seconds, as is the rebalance timeout, max.poll.interval.ms
        self._rebalance = rebalance
        self._awaited_until = -math.inf
        self._has_assignment = False  # of the generation in which it is
        self.until = -math.inf
        self.known_until = -math.inf
        """Until when the coordinator's last answer shows that it knows the member."""

    def confirm(self, sent: float, *, awaited: bool = False) -> None:
        """Note that the coordinator answered a heartbeat, and knew the member.

        The session ends no sooner than the session timeout after that. When the answer came is no measure: a
        process that was frozen finds old ones when it runs again. In a rebalance the coordinator expels who
        has not joined by the rebalance timeout, in spite of heartbeats. That counts from after the last
        request at which it did not wait for this member (`awaited`). Without an assignment nobody knows: a
        coordinator that moved counts a lost generation's number again, and may wait for a SyncGroup of it.
        """
        if self._has_assignment and not awaited:
            self.synced(sent)
        self.until = max(self.until, min(sent + self._session, self._awaited_until))
        self._known(sent)

    def joined(self) -> None:
        """Note that JoinGroup was answered with a generation: its assignment is yet to come."""
        self._has_assignment = False

    def synced(self, sent: float) -> None:
        """Note that a SyncGroup, sent then, was answered: the coordinator did not wait for this member."""
        self._has_assignment = True
        self._awaited_until = max(self._awaited_until, sent + self._rebalance)
        self._known(sent)

    def _known(self, sent: float) -> None:
        self.known_until = max(self.known_until, sent + min(self._session, self._rebalance))


def sooner_than(interval: float) -> Iterator[float]:
    """Seconds before each heartbeat after a rebalance, until the regular ones are as good.

    The first is sent at once, as a new member delivers nothing before it is answered. A second round begins
    as soon as somebody has revoked. By the next regular heartbeat a member would learn of it late. With these
    it learns of it within twice the time that the slowest listener took.
    """
    yield 0.0
    delay = LISTENING
    while delay < interval:
        yield delay
        delay *= 2
