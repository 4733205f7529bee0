"""The history of consumer groups, from `__consumer_offsets`, on Spark: captured, read, replayed, shown."""

from kafka_assignors._common.lazy import attach

__all__, __getattr__ = attach(__name__, __file__)
