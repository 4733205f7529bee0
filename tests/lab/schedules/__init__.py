"""Schedules of a simulated group: drawn at random or all there are, run, and shortened if one breaks it."""

from tests.lab.schedules._exhaustive import every
from tests.lab.schedules._run import BrokenError, Told, run
from tests.lab.schedules._schedule import Schedule, Step, draw
from tests.lab.schedules._search import Tally, broken, search, shorten

__all__ = [
    "BrokenError",
    "Schedule",
    "Step",
    "Tally",
    "Told",
    "broken",
    "draw",
    "every",
    "run",
    "search",
    "shorten",
]
