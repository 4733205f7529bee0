"""The broker that coordinates a group, worked out from its id, and by the brokers' own word."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from kafka_assignors._groups.finding import GROUPS_TOPIC
from kafka_assignors.groups import partition_for_group
from kafka_assignors.testing._brokers.metadata import cluster_state, coordinator_by
from kafka_assignors.testing._brokers.waiting import wait_until

if TYPE_CHECKING:
    from kafka_assignors.testing import Cluster

GROUPS = 3000
SEED = 848
ALPHABET = [*"abcXYZ019-_. ", "é", "日", "\ue000", "\uff5e", "\N{GRINNING FACE}", "\U0001d4b3"]


def test_the_coordinator_leads_the_partition_of_the_group(three_brokers: Cluster) -> None:
    server = three_brokers.bootstrap_servers[0]
    # The first question has the topic made.
    wait_until(
        lambda: [] if coordinator_by(server, "first") is not None else ["no coordinator yet"],
        60,
        "the groups' topic",
    )
    leaders = {
        state.number: state.leader
        for state in cluster_state(server).partitions
        if state.topic == GROUPS_TOPIC
    }
    assert (len(leaders), {*leaders.values()}) == (50, {1, 2, 3})
    rng = Random(SEED)
    for number in range(GROUPS):
        group_id = "".join(rng.choices(ALPHABET, k=rng.randint(1, 12)))
        expected = leaders[partition_for_group(group_id, len(leaders))]
        assert coordinator_by(server, group_id) == expected, f"seed {SEED}, {number}: {group_id!r}"
