"""Consumer groups: running ones explained, listed and exported, a group planned, a restart simulated."""

from kafka_assignors._common.lazy import attach

__all__, __getattr__ = attach(__name__, __file__)
