"""The classes that users pass to `KafkaConsumer`."""

from kafka_assignors._assignors import _relied_on as _relied_on  # first: it says which client is needed
from kafka_assignors._assignors._adapter import Assignor
from kafka_assignors._assignors._cooperative_sticky import CooperativeStickyAssignor
from kafka_assignors._assignors._copartitioned import CopartitionedAssignor
from kafka_assignors._assignors._load_aware import LoadAwareAssignor
from kafka_assignors._assignors._rebalances import enforce_rebalance, rebalance_when
from kafka_assignors._assignors._stateless import (
    BroadcastAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
)
from kafka_assignors._assignors._sticky import StickyAssignor

__all__ = [
    "Assignor",
    "BroadcastAssignor",
    "CooperativeStickyAssignor",
    "CopartitionedAssignor",
    "LoadAwareAssignor",
    "RandomAssignor",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
    "enforce_rebalance",
    "rebalance_when",
]
