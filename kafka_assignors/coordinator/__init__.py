"""What the group coordinator decides: which broker it is, who leads, by which strategy, when to rebalance.

`Simulation` is a group of the classic protocol without Kafka, in virtual time; `ConsumerGroupSimulation` is
one of KIP-848.
"""

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
    from kafka_assignors.coordinator.simulator.classic_group import BrokerSettings, Cause
    from kafka_assignors.coordinator.simulator.consumer_group import ConsumerBrokerSettings
    from kafka_assignors.coordinator.simulator.consumer_simulation import ConsumerGroupSimulation
    from kafka_assignors.coordinator.simulator.life import NotStableError
    from kafka_assignors.coordinator.simulator.member import MemberSettings
    from kafka_assignors.coordinator.simulator.simulation import Simulation
    from kafka_assignors.coordinator.simulator.what_if import Cost, rolling_restart

_HOMES = {
    "BrokerSettings": "simulator.classic_group",
    "Cause": "simulator.classic_group",
    "ConsumerBrokerSettings": "simulator.consumer_group",
    "ConsumerGroupSimulation": "simulator.consumer_simulation",
    "Cost": "simulator.what_if",
    "Election": "election",
    "MemberSettings": "simulator.member",
    "NoCommonStrategyError": "election",
    "NotStableError": "simulator.life",
    "Simulation": "simulator.simulation",
    "elect_leader": "election",
    "elect_strategy": "election",
    "partition_for_group": "finding",
    "rolling_restart": "simulator.what_if",
}

__all__ = [
    "BrokerSettings",
    "Cause",
    "ConsumerBrokerSettings",
    "ConsumerGroupSimulation",
    "Cost",
    "Election",
    "MemberSettings",
    "NoCommonStrategyError",
    "NotStableError",
    "Simulation",
    "elect_leader",
    "elect_strategy",
    "partition_for_group",
    "rolling_restart",
]

if not TYPE_CHECKING:  # to a type checker, a name that is not above is an error
    __getattr__ = getter(__name__, _HOMES)
