"""When a member of `load-aware` finds its load uneven for so long that it asks for a rebalance."""

from collections.abc import Callable
from dataclasses import dataclass

MATTERS = 0.5
"""The least part of its time that a member needs for its work, before it is compared with others."""


@dataclass(slots=True, kw_only=True)
class Uneven:
    """Asks, at most once in each pause, after it found the same for long enough.

    Attributes:
        uneven_for: Seconds for which it has to be so.
        at_least: How many times the mean load counts as uneven.
        cool_down: Seconds after any rebalance of the group in which it does not ask.
        ask: Asks for a rebalance, with a reason.
        since: When it began to be so, if it is.
        not_before: When it may ask.
    """

    uneven_for: float
    at_least: float
    cool_down: float
    ask: Callable[[str], None]
    since: float | None = None
    not_before: float = 0.0

    def rebalanced(self, now: float) -> None:
        """The group has rebalanced, whoever wanted it."""
        self.since, self.not_before = None, now + self.cool_down

    def look(self, now: float, mine: float, mean: float) -> None:
        """Compare what this member needs for its work of `uneven_for` seconds with what the mean one does."""
        if mine < MATTERS * self.uneven_for or mine < self.at_least * mean:
            self.since = None
            return
        if self.since is None:
            self.since = now
        if now - self.since >= self.uneven_for and now >= self.not_before:
            self.rebalanced(now)  # whether it comes to a rebalance or not
            than = f"{mine / mean:.3g} times the mean" if mean else "of which no mean is known yet"
            self.ask(
                f"for {self.uneven_for:g} s this member had {mine:.3g} s of work for the next"
                f" {self.uneven_for:g} s, {than}"
            )
