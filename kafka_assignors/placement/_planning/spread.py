"""Which replicas may be where, as flows from partitions over racks to brokers, and how to spread them evenly.

In all networks here nodes 0..n - 1 are the brokers, and no arc leaves them until `drained` adds a sink.

Any sums of flows into the brokers that a network allows make up a base polyhedron. So among them one is the
least majorised: its sorted loads are the lexicographically least, and every convex measure is least there.
See Frank and Murota, "Decreasing minimization on M-convex sets", 2022. The sum of squares finds it.
"""

from bisect import bisect
from dataclasses import dataclass, replace

import numpy as np

from kafka_assignors._model.arrays import IntArray, sums
from kafka_assignors.placement._planning.flow import PlacementNetwork


def rack_bounds(sizes: IntArray, factor: int) -> tuple[IntArray, IntArray]:
    """The fewest and the most replicas of a partition in each rack, spread as evenly as the racks allow.

    Racks fill like vessels under water: to the least height h at which all replicas have a place. Each rack
    holds `min(size, h)` of them, or one fewer if it could hold more than h - 1.

    For R racks of these sizes: two arrays (R,), which differ by at most 1.
    """
    height = next(h for h in range(1, factor + 1) if np.minimum(sizes, h).sum() >= factor)
    return np.minimum(sizes, height - 1), np.minimum(sizes, height)


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """Partitions over racks to brokers; partitions of one replication factor may be put into one group.

    A flow in which g partitions are one group is a sum of g flows of one partition each. Bounds and
    capacities of the group are g times those of each, and the matrix of a flow is totally unimodular. So
    integral points of g times its polytope are sums of g integral points (Baum and Trotter 1978).

    In the network the arcs of each group stand together: one into each broker, then one into each rack of
    more than one broker.
    """

    network: PlacementNetwork
    brokers: int
    size: IntArray  # (G,) how many partitions each group has

    @classmethod
    def of(cls, racks: IntArray, factor: IntArray, size: IntArray) -> "Layers":
        """The layers of G groups; racks of brokers are (n,), factors and sizes of groups (G,)."""
        brokers, groups = racks.size, size.size
        in_rack = np.bincount(racks)
        factors, which = np.unique(factor, return_inverse=True)
        bounds = [rack_bounds(in_rack, f) for f in factors.tolist()]
        low, high = (np.array(side)[which] * size[:, None] for side in zip(*bounds, strict=True))
        # A rack of one broker needs no node: its bounds are the broker's.
        shared = np.flatnonzero(in_rack > 1)
        node_of = np.zeros(in_rack.size, dtype=np.int64)
        node_of[shared] = np.arange(1, shared.size + 1)
        own = brokers + np.arange(groups)[:, None] * (1 + shared.size)
        alone = node_of[racks] == 0
        supply = np.zeros(brokers + groups * (1 + shared.size), dtype=np.int64)
        supply[own[:, 0]] = factor * size
        network = PlacementNetwork(
            tail=np.hstack([own + node_of[racks], np.broadcast_to(own, (groups, shared.size))]).ravel(),
            head=np.hstack(
                [np.broadcast_to(np.arange(brokers), (groups, brokers)), own + node_of[shared]]
            ).ravel(),
            lower=np.hstack([np.where(alone, low[:, racks], 0), low[:, shared]]).ravel(),
            upper=np.hstack([np.where(alone, high[:, racks], size[:, None]), high[:, shared]]).ravel(),
            supply=supply,
        )
        return cls(network=network, brokers=brokers, size=size)

    def within(self, bounds: PlacementNetwork, size: IntArray, group: IntArray) -> PlacementNetwork:
        """The network of these, single partitions, within the bounds of groups of them.

        Sizes of groups are (H,), the group of each partition here is (G,).
        """
        lower, upper = (
            (side.reshape(size.size, -1) // size[:, None])[group].ravel()
            for side in (bounds.lower, bounds.upper)
        )
        return replace(self.network, lower=lower, upper=upper)

    def into_brokers(self, flow: IntArray) -> IntArray:
        """(G, n) the flow of each group into each broker, as a view; or other values of each arc."""
        arcs = self.network.tail.size
        return flow[:arcs].reshape(self.size.size, -1)[:, : self.brokers]


def drained(
    network: PlacementNetwork, broker: IntArray, lower: IntArray, upper: IntArray
) -> PlacementNetwork:
    """The network with a sink, and B arcs to it behind all others; their brokers and bounds are (B,)."""
    sink = network.supply.size
    return PlacementNetwork(
        tail=np.concatenate([network.tail, broker]),
        head=np.concatenate([network.head, np.full(broker.size, sink)]),
        lower=np.concatenate([network.lower, lower]),
        upper=np.concatenate([network.upper, upper]),
        supply=np.append(network.supply, -network.supply.sum()),
    )


def spread_evenly(network: PlacementNetwork, held: IntArray) -> tuple[PlacementNetwork, IntArray, IntArray]:
    """All flows that load the brokers as evenly as can be.

    The squares are drawn as straight lines between a few loads of each broker. They are drawn finer wherever
    the cheapest flow ends up, until the loads there and one beside are all drawn. Then no change of the flow
    pays by the true squares either, as flows without a cycle that pays are cheapest.

    What brokers hold beside them is (n,). The result is the network of these flows, still without a sink.
    With it come the fewest and the most that each broker gets: arrays (n,), which differ by at most 1.
    """
    brokers, arcs = held.size, network.tail.size
    most = sums(network.head, network.upper, network.supply.size)[:brokers].tolist()
    fair = int(network.supply.sum() + held.sum()) // brokers
    points = [
        sorted({0, top, *(min(max(fair + d - has, 0), top) for d in (-1, 0, 1, 2))})
        for top, has in zip(most, held.tolist(), strict=True)
    ]
    while True:
        broker = np.repeat(np.arange(brokers), [len(drawn) - 1 for drawn in points])
        start = np.array([x for drawn in points for x in drawn[:-1]], dtype=np.int64)
        stop = np.array([x for drawn in points for x in drawn[1:]], dtype=np.int64)
        full = drained(network, broker, np.zeros_like(start), stop - start)
        cost = np.concatenate([np.zeros(arcs, dtype=np.int64), start + stop + 2 * held[broker]])
        flow = full.cheapest(cost)
        finer = [_finer(*of) for of in zip(points, sums(broker, flow[arcs:], brokers).tolist(), strict=True)]
        if finer == points:
            break
        points = finer
    best = full.as_cheap(cost, flow)
    within = replace(network, lower=best.lower[:arcs], upper=best.upper[:arcs])
    return within, sums(broker, best.lower[arcs:], brokers), sums(broker, best.upper[arcs:], brokers)


def _finer(points: list[int], load: int) -> list[int]:
    """The points with the load and those beside it; if any is new, also the middle of the way to others."""
    beside = {x for x in (load - 1, load, load + 1) if 0 <= x <= points[-1]}
    if beside <= set(points):
        return points
    place = bisect(points, load)
    near = points[max(place - 2, 0) : place + 1]
    return sorted({*points, *beside, *((x + load) // 2 for x in near)})


def least_squares(held: IntArray, amount: int) -> int:
    """The least sum of squares of loads (n,) when an amount of units is added that may go anywhere."""
    loads = np.sort(held)
    # Fill up the lowest ones to the height of the next one as long as the units last.
    for count in range(1, loads.size + 1):
        room = None if count == loads.size else int((loads[count] - loads[:count]).sum())
        if room is None or room >= amount:
            height, extra = divmod(int(loads[:count].sum()) + amount, count)
            loads[:count] = height
            loads[:extra] += 1
            break
    return int((loads**2).sum())
