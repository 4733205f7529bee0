"""The best replica sets and leaders, as cheapest flows over numbered partitions and brokers.

The goals are those of `kafka_assignors.placement._planning.moves`. For balance partitions of one replication
factor are alike, so that it is a flow of as many groups as there are factors. What all best balanced
placements have in common bounds the flow of single partitions, on which each later goal is one cheapest flow.
"""

import numpy as np

from kafka_assignors._model.arrays import BoolArray, IntArray
from kafka_assignors.placement._planning.flow import PlacementNetwork
from kafka_assignors.placement._planning.spread import Layers, drained, spread_evenly


def best_replicas(
    *,
    factor: IntArray,
    rack: IntArray,
    held: IntArray,
    has: BoolArray,
    leader: IntArray,
    sizes: IntArray | None,
) -> BoolArray:
    """Which brokers hold each partition: best balanced, then with the fewest moves.

    Arrays of P partitions and n brokers by number: factor, leader (or `NOBODY`) and sizes in bytes are (P,).
    The brokers' racks, and what they hold beside these partitions, are (n,). Where replicas are now and where
    they should be are (P, n). Raises PlacementError for sizes too high to be exact.
    """
    kinds, kind, count = np.unique(factor, return_inverse=True, return_counts=True)
    even, lowest, highest = spread_evenly(Layers.of(rack, kinds, count).network, held)
    single = Layers.of(rack, factor, np.ones_like(factor))
    network = drained(single.within(even, count, kind), np.arange(held.size), lowest, highest)
    added = (~has).astype(np.int64)
    stays = leader[:, None] == np.arange(held.size)
    goals = [added, -stays.astype(np.int64)]
    if sizes is not None:
        goals.insert(0, added * sizes[:, None])
    flow = network.lower
    for place, goal in enumerate(goals):
        cost = np.zeros(network.tail.size, dtype=np.int64)
        single.into_brokers(cost)[:] = goal
        flow = network.cheapest(cost)
        if place + 1 < len(goals):
            network = network.as_cheap(cost, flow)
    return np.equal(single.into_brokers(flow), 1)


def best_leaders(chosen: BoolArray, leader: IntArray, held: IntArray) -> IntArray:
    """Which of its brokers leads each partition: best balanced, then with the fewest changes.

    Where replicas should be is (P, n), leaders (or `NOBODY`) are (P,). What brokers lead beside these
    partitions is (n,).
    """
    partition, broker = np.nonzero(chosen)
    network = PlacementNetwork(
        tail=held.size + partition,
        head=broker,
        lower=np.zeros_like(broker),
        upper=np.ones_like(broker),
        supply=np.concatenate([np.zeros_like(held), np.ones_like(leader)]),
    )
    even, lowest, highest = spread_evenly(network, held)
    full = drained(even, np.arange(held.size), lowest, highest)
    changes = np.concatenate([broker != leader[partition], np.zeros(held.size, dtype=np.bool_)])
    flow = full.cheapest(changes.astype(np.int64))
    leads: IntArray = broker[flow[: broker.size] == 1]
    return leads
