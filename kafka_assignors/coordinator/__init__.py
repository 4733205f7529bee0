"""What the group coordinator decides: which broker it is, who leads a group, and by which strategy."""

from typing import TYPE_CHECKING

from kafka_assignors.lazy import getter

if TYPE_CHECKING:
    from kafka_assignors.coordinator.election import (
        Election,
        NoCommonStrategyError,
        elect_leader,
        elect_strategy,
    )
    from kafka_assignors.coordinator.finding import partition_for_group

_HOMES = {
    "Election": "election",
    "NoCommonStrategyError": "election",
    "elect_leader": "election",
    "elect_strategy": "election",
    "partition_for_group": "finding",
}

__all__ = ["Election", "NoCommonStrategyError", "elect_leader", "elect_strategy", "partition_for_group"]

if not TYPE_CHECKING:  # to a type checker, a name that is not above is an error
    __getattr__ = getter(__name__, _HOMES)
