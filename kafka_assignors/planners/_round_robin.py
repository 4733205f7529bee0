"""Round robin: all partitions in order, to the members in turn (Kafka's RoundRobinAssignor)."""

from bisect import bisect_left

import numpy as np

from kafka_assignors._model.arrays import NOBODY
from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan


def plan_round_robin(group: Group) -> Plan:
    """Deal out the partitions in the order of (topic, id), skipping members that do not subscribe.

    Kafka walks a circular iterator over the members. Within one topic that walk visits the topic's
    subscribers in turn, from the first at or after the iterator's place. So a topic is assigned at once.
    """
    owner = np.full(group.size, NOBODY, dtype=np.int64)
    place = 0  # the member whose turn it is
    for topic, subscribers in enumerate(group.subscribers):
        partitions = group.partitions_of(topic)
        turns = bisect_left(subscribers, place) + np.arange(len(partitions))
        dealt = np.array(subscribers)[turns % len(subscribers)]
        owner[partitions.start : partitions.stop] = dealt
        place = (int(dealt[-1]) + 1) % len(group.members)
    return Plan.from_owner(group, owner)
