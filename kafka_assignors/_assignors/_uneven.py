"""When a member of `load-aware` finds its load uneven for so long that it asks for a rebalance."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

MATTERS = 0.5
"""The least part of its time that a member needs for its work, before it is compared with others."""

LONGEST: Final = 86_400.0
"""Seconds that a pause grows to at the most."""


@dataclass(slots=True, kw_only=True)
class Uneven:
    """Asks, at most once in each pause, after it found the same for long enough.

    Attributes:
        uneven_for: Seconds for which it has to be so.
        at_least: How many times the mean load counts as uneven.
        cool_down: Seconds after any rebalance of the group in which it does not ask. They double with each
            rebalance that it asked for, and that changed nothing for it: so it may be for good.
        ask: Asks for a rebalance, with a reason.
        since: When it began to be so, if it is.
        not_before: When it may ask.
        pause: The cool-down as of now.
        has_asked: Whether no rebalance has followed yet.
    """

    uneven_for: float
    at_least: float
    cool_down: float
    ask: Callable[[str], None]
    since: float | None = None
    not_before: float = 0.0
    pause: float = field(init=False)
    has_asked: bool = False

    def __post_init__(self) -> None:
        self.pause = self.cool_down

    def rebalanced(self, now: float, *, changed: bool) -> None:
        """The group has rebalanced, whoever wanted it, and this member's partitions have `changed` or not."""
        if changed:
            self.pause = self.cool_down
        elif self.has_asked:
            self.pause = min(2 * max(self.pause, self.uneven_for), max(self.cool_down, LONGEST))
        self.has_asked = False
        self.since, self.not_before = None, now + self.pause

    def look(self, now: float, mine: float, mean: float) -> None:
        """Compare what this member needs for its work of `uneven_for` seconds with what the mean one does."""
        if mine < MATTERS * self.uneven_for or mine < self.at_least * mean:
            self.since = None
            return
        if self.since is None:
            self.since = now
        if now - self.since >= self.uneven_for and now >= self.not_before:
            self.since, self.not_before = None, now + self.pause  # whether it comes to a rebalance or not
            self.has_asked = True
            than = f"{mine / mean:.3g} times the mean" if mean else "of which no mean is known yet"
            self.ask(
                f"for {self.uneven_for:g} s this member had {mine:.3g} s of work for the next"
                f" {self.uneven_for:g} s, {than}"
            )
