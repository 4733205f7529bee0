"""Strategies for aiokafka's consumer, and a consumer of aiokafka's that rebalances cooperatively.

    from aiokafka import AIOKafkaConsumer
    from kafka_assignors import CooperativeStickyAssignor, StickyAssignor
    from kafka_assignors.aio import CooperativeConsumer, strategies

    eager = AIOKafkaConsumer("orders", group_id="g", partition_assignment_strategy=strategies(StickyAssignor))
    cooperative = CooperativeConsumer("orders", group_id="g")  # CooperativeStickyAssignor

Needs aiokafka, 0.13 or 0.14: `pip install 'kafka-assignors[aiokafka]'`.
"""

from kafka_assignors.aio import _relied_on as _relied_on  # first: it says which aiokafka is needed
from kafka_assignors.aio._consumer import CooperativeConsumer
from kafka_assignors.aio._coordinator import FencedInstanceIdError
from kafka_assignors.aio._strategies import strategies

__all__ = ["CooperativeConsumer", "FencedInstanceIdError", "strategies"]
