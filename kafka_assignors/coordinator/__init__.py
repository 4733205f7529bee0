"""What the group coordinator decides: which broker it is, who leads, by which strategy, when to rebalance.

`Simulation` is a group of the classic protocol without Kafka, in virtual time; `ConsumerGroupSimulation` is
one of KIP-848.
"""

from kafka_assignors._common.lazy import attach

__all__, __getattr__ = attach(__name__, __file__)
