"""A real Kafka to test against, and groups of consumers on it.

Everything here is imported when it is first used, as pytest loads the plug-in of this package in every run.
Many runs start no Kafka.
"""

from kafka_assignors._common.lazy import attach

__all__, __getattr__ = attach(__name__, __file__)
