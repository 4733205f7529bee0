"""Partition assignors for kafka-python consumer groups.

Everything is imported when it is first used, as pytest loads the plug-in of this package in every run. Many
of these have nothing to do with Kafka.
"""

from kafka_assignors._common.lazy import attach

__all__, __getattr__ = attach(__name__, __file__)
