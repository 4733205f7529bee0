"""Replicas on brokers: where Kafka puts a topic's replicas, how it chose, and how to move few of them.

Everything here is imported when it is first used: planning needs OR-tools, pictures matplotlib.
"""

from kafka_assignors._common.lazy import attach

__all__, __getattr__ = attach(__name__, __file__)
