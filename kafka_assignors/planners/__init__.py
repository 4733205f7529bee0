"""Pure functions from a `Group` to a `Plan`: no client, no clock, no I/O."""

from kafka_assignors._common.lazy import attach

__all__, __getattr__ = attach(__name__, __file__)
