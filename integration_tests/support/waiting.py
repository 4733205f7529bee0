"""Waiting for what sends no word of itself."""

from collections.abc import Callable

from kafka_assignors.testing._brokers.waiting import wait_until
from tests.support.scale import longer


def wait_for(what: str, done: Callable[[], object], seconds: float) -> None:
    """Wait until something is done; fail if it is not in so many seconds of an idle machine."""
    wait_until(lambda: [] if done() else ["not yet"], longer(seconds), what)
