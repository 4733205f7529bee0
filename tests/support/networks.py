"""Networks for the flow: as random numbers make them, and as any bytes do."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from kafka_assignors.planners._exact import flow
from kafka_assignors.planners._exact.flow import UNLIMITED, FlowNetwork, SentFlow, send

ODD: Final = (-1, 2**31 - 1, 2**31, 2**32, 2**62 - 1, 2**62, 2**62 + 1, 2**63 - 1, -(2**63))
"""Numbers at which something may overflow."""
MOST: Final = 2**62
"""The most units that there may be."""
WIDE: Final = 200
"""The first byte of a network that is wide, and up."""


def array(values: list[int]) -> Any:
    return np.array(values, dtype=np.int64)


def copied(network: FlowNetwork) -> FlowNetwork:
    arrays = {
        field.name: getattr(network, field.name).copy() for field in fields(network) if field.name != "pool"
    }
    return replace(network, **arrays)


def told(network: FlowNetwork, sent: SentFlow) -> dict[str, Any]:
    """All that sending tells and leaves behind."""
    state = {field.name: getattr(network, field.name) for field in fields(network)}
    state |= {field.name: getattr(sent, field.name) for field in fields(sent)}
    state["distance of the pool"], state["pool"] = sent.pool, network.pool
    return {name: each.tolist() if isinstance(each, np.ndarray) else each for name, each in state.items()}


def wide_network(seed: int, cells: int = 60, nodes: int = 150) -> FlowNetwork:
    """More nodes than fit into two words, and more cells than fit into one if there are so many."""
    rng = np.random.default_rng(seed)
    near = rng.random((cells, nodes)) < rng.choice([0.05, 0.3, 1.0])
    tails, heads = np.nonzero(near)
    supply = rng.integers(0, 6, cells)
    mean = int(supply.sum()) // nodes
    base = np.full(nodes, mean)
    return FlowNetwork(
        starts=np.searchsorted(tails, np.arange(cells + 1)),
        heads=heads,
        supply=supply,
        base=base,
        extra=np.ones_like(base),
        pool=int(supply.sum()) - mean * nodes,
        free=np.where(rng.random(heads.size) < 0.2, rng.integers(0, 3, heads.size), 0),
        high=np.where(rng.random(heads.size) < 0.8, UNLIMITED, rng.integers(0, 2, heads.size)),
        flow=np.zeros_like(heads),
        load=np.zeros_like(base),
    )


def network_of(data: bytes) -> FlowNetwork:
    """Any bytes as a network: mostly small numbers and arrays that fit, but not always."""
    left = iter(data)

    def number(most: int) -> int:
        byte = next(left, 0)
        return ODD[byte - 240] if 240 <= byte < 240 + len(ODD) else byte % (most + 1)

    def numbers(size: int, most: int) -> Any:
        more = {254: 1, 255: -1}.get(next(left, 0), 0)
        return array([number(most) for _ in range(max(size + more, 0))])

    cells, nodes = next(left, 0), next(left, 0) % 5
    if cells >= WIDE:
        network = wide_network(nodes, cells=70, nodes=130)
        arrays = [getattr(network, field.name) for field in fields(network) if field.name != "pool"]
        for byte in left:
            chosen = arrays[byte % len(arrays)]
            chosen[(256 * next(left, 0) + next(left, 0)) % chosen.size] = number(200)
        return network
    cells %= 5
    mask = [[next(left, 0) % 3 > 0 for _ in range(nodes)] for _ in range(cells)]
    starts = array([0, *np.cumsum([sum(row) for row in mask]).tolist()])
    heads = array([node for row in mask for node, is_there in enumerate(row) if is_there])
    arcs = heads.size
    if next(left, 0) > 200:
        starts, heads = numbers(cells + 1, arcs), numbers(arcs, nodes)
    return FlowNetwork(
        starts=starts,
        heads=heads,
        supply=numbers(cells, 9),
        base=numbers(nodes, 5),
        extra=numbers(nodes, 3),
        pool=number(9),
        free=numbers(arcs, 4),
        high=numbers(arcs, 9),
        flow=numbers(arcs, 1) if next(left, 0) % 4 == 3 else np.zeros_like(heads),
        load=numbers(nodes, 2),
    )


def using(way: Any) -> AbstractContextManager[object]:
    """With a compiled module; in Python if it is None."""
    return patch.object(flow, "_compiled", way)


def check_numbers(n: FlowNetwork) -> None:
    """What the compiled module has to refuse, so that it reads and writes nothing else."""
    cells, nodes, arcs = n.supply.size, n.base.size, n.heads.size
    sizes = {"starts": cells + 1, "extra": nodes, "load": nodes, "free": arcs, "high": arcs, "flow": arcs}
    for name, size in sizes.items():
        if getattr(n, name).size != size:
            raise ValueError(f"{name} must have {size} entries, not {getattr(n, name).size}")
    in_range = [
        0 <= n.pool <= MOST,
        *(
            ((each >= 0) & (each <= MOST)).all()
            for each in (n.supply, n.base, n.extra, n.load, n.free, n.high)
        ),
        ((n.flow >= 0) & (n.flow <= n.high)).all(),
        sum(n.supply.tolist()) + sum(n.load.tolist()) <= MOST,
        (n.load - n.base <= n.extra).all(),
        (n.starts[0], n.starts[-1]) == (0, arcs),
        (n.starts[1:] >= n.starts[:-1]).all() and (n.starts <= arcs).all(),
    ]
    if not all(in_range):
        raise ValueError(f"out of range: {in_range}")
    before = np.append(0, n.heads[:-1] + 1)[:arcs]
    before[n.starts[:-1][n.starts[:-1] < arcs]] = 0
    if not ((n.heads >= before) & (n.heads < nodes)).all():
        raise ValueError(f"heads must ascend in a cell, below {nodes}, not {n.heads}")


def outcome(
    network: FlowNetwork, check: Callable[[FlowNetwork], None] = lambda _: None
) -> tuple[dict[str, Any], str]:
    """What sending leaves behind and tells, and why it was refused, if so."""
    try:
        check(network)
        return told(network, send(network, lambda: None)), ""
    except ValueError as error:
        left = {field.name: getattr(network, field.name) for field in fields(network)}
        return {name: np.asarray(each).tolist() for name, each in left.items()}, str(error)


def check_network(data: bytes) -> None:
    """A network of any numbers is sent within its limits or refused, compiled or not."""
    network = network_of(data)
    mine, other = copied(network), copied(network)
    result, refusal = outcome(mine)
    with using(None):
        other_result, other_refusal = outcome(other, check_numbers)
    # A flow that is no cheapest one may be noticed by one of them and not by the other.
    if "cheapest" not in refusal + other_refusal and not network.flow.any():
        assert bool(refusal) == bool(other_refusal), (refusal, other_refusal)
        assert result == other_result
    if not refusal:
        assert (mine.supply >= 0).all()
        assert ((mine.flow >= 0) & (mine.flow <= mine.high)).all()
        assert (mine.load - mine.base <= mine.extra).all()
