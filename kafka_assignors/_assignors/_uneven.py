"""When a member of `load-aware` finds its load uneven for so long that it asks for a rebalance."""

from dataclasses import dataclass
from typing import Final

MATTERS: Final = 0.5
"""The least part of its time that a member needs for its work, before it is compared with others."""

LONGEST: Final = 86_400.0
"""Seconds that a pause grows to at the most."""


@dataclass(slots=True, kw_only=True)
class Uneven:
    """Finds a reason to ask, at most once in each pause, after it found the same for long enough.

    Attributes:
        uneven_for: Seconds for which it has to be so.
        at_least: How many times the mean load counts as uneven.
        cool_down: Seconds after any rebalance of the group in which it does not ask. They double with each
            rebalance that it asked for, and that changed nothing for it: so it may be for good.
        mean: Seconds of work that waited for the mean member at the last rebalance, and that arrive a second.
        at: When that was.
        since: When it began to be so, if it is.
        not_before: When it may ask.
        pause: The cool-down as of now.
        has_asked: Whether no rebalance has followed yet.
    """

    uneven_for: float
    at_least: float
    cool_down: float
    mean: tuple[float, float] = (0.0, 0.0)
    at: float = 0.0
    since: float | None = None
    not_before: float = 0.0
    pause: float = 0.0
    has_asked: bool = False

    def rebalanced(self, now: float, mean: tuple[float, float], *, changed: bool) -> None:
        """The group has rebalanced, whoever wanted it, and this member's partitions have `changed` or not."""
        self.mean, self.at = mean, now
        if changed:
            self.pause = self.cool_down
        elif self.has_asked:
            self.pause = min(2 * max(self.pause, self.uneven_for), max(self.cool_down, LONGEST))
        self.has_asked = False
        self.since, self.not_before = None, now + self.pause

    def look(self, now: float, mine: float) -> str | None:
        """Compare what this member needs for its work of `uneven_for` seconds with what the mean one does.

        The mean member has worked off what waited, and what arrived, since the last rebalance. Returns why to
        ask for a rebalance; None if there is no reason, or it is too soon.
        """
        waits, arrives = self.mean
        mean = max(0.0, waits - (now - self.at) * (1 - arrives)) + self.uneven_for * arrives
        if mine < MATTERS * self.uneven_for or mine < self.at_least * mean:
            self.since = None
            return None
        self.since = now if self.since is None else self.since
        if now - self.since < self.uneven_for or now < self.not_before:
            return None
        self.since, self.not_before = None, now + self.pause  # whether it comes to a rebalance or not
        self.has_asked = True
        than = f"{mine / mean:.3g} times the mean" if mean else "the mean member nothing"
        return (
            f"for {self.uneven_for:g} s this member had {mine:.3g} s of work for the next"
            f" {self.uneven_for:g} s, {than}"
        )
