"""What happens to the members of a group: the types of a timeline's events."""

from kafka_assignors._common.lazy import attach

__all__, __getattr__ = attach(__name__, __file__)
