"""Random: every partition to a subscriber drawn at random."""

import numpy as np

from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan


def plan_random(group: Group, generator: "np.random.Generator") -> Plan:  # text: numpy.random is slow
    """Give each partition to one of its subscribers, each with the same chance, independently."""
    drawn = [
        np.array(subscribers)[generator.integers(len(subscribers), size=len(group.partitions_of(topic)))]
        for topic, subscribers in enumerate(group.subscribers)
    ]
    return Plan.from_owner(group, np.concatenate([np.empty(0, dtype=np.int64), *drawn]))
