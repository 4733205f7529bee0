"""Schedules of a simulated group: drawn at random or all there are, run, and shortened if one breaks it."""

from kafka_assignors.testing.schedules.exhaustive import every
from kafka_assignors.testing.schedules.run import BrokenError, Told, run
from kafka_assignors.testing.schedules.schedule import Schedule, Step, draw
from kafka_assignors.testing.schedules.search import Tally, broken, search, shorten

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
