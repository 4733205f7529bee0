"""The classes that users pass to `KafkaConsumer`."""

from kafka_assignors.assignors import _client as _client  # first: the others fail on an old client
from kafka_assignors.assignors.adapter import Assignor
from kafka_assignors.assignors.broadcast import BroadcastAssignor
from kafka_assignors.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka_assignors.assignors.random import RandomAssignor
from kafka_assignors.assignors.range import RangeAssignor
from kafka_assignors.assignors.round_robin import RoundRobinAssignor
from kafka_assignors.assignors.sticky import StickyAssignor

__all__ = [
    "Assignor",
    "BroadcastAssignor",
    "CooperativeStickyAssignor",
    "RandomAssignor",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
]
