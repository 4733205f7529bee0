"""Work that may take long calls a function again and again, which may raise to end it. No clock is in it."""

from collections.abc import Callable

Tick = Callable[[], None]
"""Is called every few milliseconds, some tens at the most; what it raises comes through."""


def go_on() -> None:
    """Never give up."""
