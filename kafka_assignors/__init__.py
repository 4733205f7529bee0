"""Partition assignors for kafka-python consumer groups.

Everything is imported when it is first used: pytest loads the plug-in of this package in every run, also in
those that have nothing to do with Kafka.
"""

from typing import TYPE_CHECKING

from kafka_assignors.lazy import getter

if TYPE_CHECKING:
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

_HOMES = {
    "Assignor": "assignors",
    "BroadcastAssignor": "assignors",
    "CooperativeStickyAssignor": "assignors",
    "Group": "group",
    "InvalidPlanError": "plan",
    "Member": "group",
    "Plan": "plan",
    "RandomAssignor": "assignors",
    "RangeAssignor": "assignors",
    "RoundRobinAssignor": "assignors",
    "StickyAssignor": "assignors",
}

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

if not TYPE_CHECKING:  # to a type checker, a name that is not above is an error
    __getattr__ = getter(__name__, _HOMES)
