"""Partition assignors for kafka-python consumer groups."""

from kafka_assignors.assignors import (
    Assignor,
    BroadcastAssignor,
    CooperativeStickyAssignor,
    RandomAssignor,
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
)
from kafka_assignors.group import Group, Member
from kafka_assignors.plan import InvalidPlanError, Plan

__all__ = [
    "Assignor",
    "BroadcastAssignor",
    "CooperativeStickyAssignor",
    "Group",
    "InvalidPlanError",
    "Member",
    "Plan",
    "RandomAssignor",
    "RangeAssignor",
    "RoundRobinAssignor",
    "StickyAssignor",
]
