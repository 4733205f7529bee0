"""Broadcast: every member gets every partition of its topics."""

import numpy as np

from kafka_assignors._model.group import Group
from kafka_assignors._model.plan import Plan


def plan_broadcast(group: Group) -> Plan:
    """Give each member all partitions of all the topics that it subscribes to."""
    everything = [
        np.fromiter((p for topic in topics for p in group.partitions_of(topic)), dtype=np.int64)
        for topics in group.subscriptions
    ]
    loads = [mine.size for mine in everything]
    return Plan(
        group,
        np.concatenate([np.empty(0, dtype=np.int64), *everything]),
        np.concatenate(([0], np.cumsum(loads, dtype=np.int64))),
    )
