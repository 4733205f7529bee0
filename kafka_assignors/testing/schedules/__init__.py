"""Schedules of a simulated group: drawn at random or all there are, run, and shortened if one breaks it."""

from kafka_assignors.testing.schedules._exhaustive import every
from kafka_assignors.testing.schedules._run import BrokenError, Told, run
from kafka_assignors.testing.schedules._schedule import Schedule, Step, draw
from kafka_assignors.testing.schedules._search import Tally, broken, search, shorten

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
