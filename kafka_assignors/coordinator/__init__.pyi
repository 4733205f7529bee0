from kafka_assignors.coordinator._simulator.settings import (
    BrokerSettings as BrokerSettings,
    MemberSettings as MemberSettings,
)
from kafka_assignors.coordinator._simulator.simulation import (
    ConsumerGroupSimulation as ConsumerGroupSimulation,
    Simulation as Simulation,
)
from kafka_assignors.coordinator._simulator.what_if import rolling_restart as rolling_restart
