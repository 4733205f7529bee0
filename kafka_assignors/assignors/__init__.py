"""The classes that users pass to `KafkaConsumer`."""

from kafka_assignors.assignors import _relied_on as _relied_on  # first: it says which client is needed
from kafka_assignors.assignors._adapter import Assignor
from kafka_assignors.assignors._broadcast import BroadcastAssignor
from kafka_assignors.assignors._cooperative_sticky import CooperativeStickyAssignor
from kafka_assignors.assignors._random import RandomAssignor
from kafka_assignors.assignors._range import RangeAssignor
from kafka_assignors.assignors._round_robin import RoundRobinAssignor
from kafka_assignors.assignors._sticky import StickyAssignor

__all__ = [
    "Assignor",
    "BroadcastAssignor",
    "CooperativeStickyAssignor",
    "RandomAssignor",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
]
