"""KIP-848's range: what Kafka's group coordinator does with `group.remote.assignor` "range"."""

from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan
from kafka_assignors.planners._range import owners_by_range


def plan_kip848_range(group: Group) -> Plan:
    """Divide every topic by itself among its subscribers, the first ones getting one more if need be.

    The result is exactly that of Apache Kafka 4.3's RangeAssignor of the server: static members by instance
    id, then the others by member id. It is the client's RangeAssignor without racks. In spite of KIP-848's
    text it keeps nothing that members had: who comes or goes shifts the ranges of all that follow.
    """
    return Plan.from_owner(group, owners_by_range(group))
