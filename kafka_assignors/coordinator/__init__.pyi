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
