from kafka_assignors.coordinator._election import (
    Election as Election,
    NoCommonStrategyError as NoCommonStrategyError,
    elect_leader as elect_leader,
    elect_strategy as elect_strategy,
)
from kafka_assignors.coordinator._finding import partition_for_group as partition_for_group
from kafka_assignors.coordinator._simulator.classic_group import RebalanceCause as RebalanceCause
from kafka_assignors.coordinator._simulator.consumer_simulation import (
    ConsumerGroupSimulation as ConsumerGroupSimulation,
)
from kafka_assignors.coordinator._simulator.life import NotStableError as NotStableError
from kafka_assignors.coordinator._simulator.settings import (
    BrokerSettings as BrokerSettings,
    ConsumerBrokerSettings as ConsumerBrokerSettings,
    MemberSettings as MemberSettings,
)
from kafka_assignors.coordinator._simulator.simulation import Simulation as Simulation
from kafka_assignors.coordinator._simulator.what_if import Cost as Cost, rolling_restart as rolling_restart
