from kafka_assignors._assignors import (
    Assignor as Assignor,
    BroadcastAssignor as BroadcastAssignor,
    CooperativeStickyAssignor as CooperativeStickyAssignor,
    CopartitionedAssignor as CopartitionedAssignor,
    LoadAwareAssignor as LoadAwareAssignor,
    RandomAssignor as RandomAssignor,
    RangeAssignor as RangeAssignor,
    RoundRobinAssignor as RoundRobinAssignor,
    StickyAssignor as StickyAssignor,
    enforce_rebalance as enforce_rebalance,
    rebalance_when as rebalance_when,
)
from kafka_assignors._common.errors import KafkaAssignorsError as KafkaAssignorsError
from kafka_assignors._leader import lead as lead
from kafka_assignors._model.group import Group as Group, Member as Member
from kafka_assignors._model.plan import InvalidPlanError as InvalidPlanError, Plan as Plan
