"""Cheapest flows: compiled, in Python, and by OR-tools; and plans with and without the compiled modules."""

import math
import re
from collections.abc import Callable
from dataclasses import fields, replace
from random import Random
from typing import Any

import numpy as np
import pytest
from ortools.graph.python import min_cost_flow

from kafka_assignors.planners import plan_exact
from kafka_assignors.planners._exact import flow
from kafka_assignors.planners._exact.flow import UNLIMITED, FlowNetwork, SentFlow, send
from tests.support.networks import MOST, array, copied, told, using, wide_network
from tests.support.random_groups import random_case
from tests.support.scale import few, scaled

IN_PYTHON = None
needs_compiler = pytest.mark.skipif(flow._compiled is None, reason="installed without a compiler")
each_way = pytest.mark.parametrize(
    "way",
    [
        pytest.param(flow._compiled, id="compiled", marks=needs_compiler),
        pytest.param(IN_PYTHON, id="python"),
    ],
)


def random_network(seed: int) -> FlowNetwork:
    """A network that may take all of the supply or not; often with a flow already, that costs nothing."""
    rng = Random(seed)
    cells, nodes, density = rng.randint(1, 6), rng.randint(0, 6), rng.choice([0.3, 0.6, 1.0])
    arcs = [(cell, node) for cell in range(cells) for node in range(nodes) if rng.random() < density]
    some = rng.choice([2, 8, 10**12])
    supply = [rng.randint(0, some) for _ in range(cells)]
    base = [rng.randint(0, some) for _ in range(nodes)]
    extra = [rng.choice([0, 0, 1, rng.randint(0, some)]) for _ in range(nodes)]
    pool = rng.choice([0, rng.randint(0, some), sum(supply)])
    free = [rng.choice([0, 1, rng.randint(0, some), UNLIMITED]) for _ in arcs]
    high = [rng.choice([0, rng.randint(0, some), UNLIMITED, UNLIMITED]) for _ in arcs]
    load = [rng.randint(0, each) if rng.random() < 0.3 else 0 for each in base]
    carried = [0] * len(arcs)
    if rng.random() < 0.5:
        for arc in rng.sample(range(len(arcs)), len(arcs)):
            cell, node = arcs[arc]
            room = max(base[node] - load[node], 0) or min(pool, base[node] + extra[node] - load[node])
            amount = rng.randint(0, min(supply[cell], free[arc], high[arc], room))
            carried[arc] += amount
            pool -= max(amount - max(base[node] - load[node], 0), 0)
            load[node] += amount
            supply[cell] -= amount
    return FlowNetwork(
        starts=np.searchsorted([cell for cell, _ in arcs], np.arange(cells + 1)).astype(np.int64),
        heads=array([node for _, node in arcs]),
        supply=array(supply),
        base=array(base),
        extra=array(extra),
        pool=pool,
        free=array(free),
        high=array(high),
        flow=array(carried),
        load=array(load),
    )


def ticking(
    most: float = math.inf, error: BaseException | None = None
) -> tuple[Callable[[], None], list[None]]:
    """What may be called so often, and then raises; and its calls."""
    calls: list[None] = []

    def tick() -> None:
        calls.append(None)
        if error is not None and len(calls) > most:
            raise error

    return tick, calls


def cost_of(network: FlowNetwork) -> int:
    return int(np.maximum(network.flow - network.free, 0).sum())


def best(network: FlowNetwork) -> tuple[int, int]:
    """The most units that can be carried, and what that many cost at least, by OR-tools."""
    solver = min_cost_flow.SimpleMinCostFlow()
    cells, nodes = network.supply.size, network.base.size
    pool, source, sink = cells + nodes, cells + nodes + 1, cells + nodes + 2
    limit = 2**45
    begun = np.bincount(network.tails, weights=network.flow, minlength=cells).astype(np.int64)
    coming = np.bincount(network.heads, weights=network.flow, minlength=nodes).astype(np.int64)
    given = network.load - coming
    for cell in range(cells):
        solver.add_arc_with_capacity_and_unit_cost(source, cell, int(network.supply[cell] + begun[cell]), 0)
    for arc, (cell, node) in enumerate(zip(network.tails.tolist(), network.heads.tolist(), strict=True)):
        high, free = min(int(network.high[arc]), limit), int(network.free[arc])
        solver.add_arc_with_capacity_and_unit_cost(cell, cells + node, min(free, high), 0)
        solver.add_arc_with_capacity_and_unit_cost(cell, cells + node, max(high - free, 0), 1)
    for node in range(nodes):
        solver.add_arc_with_capacity_and_unit_cost(
            cells + node, sink, int(network.base[node] - given[node]), 0
        )
        solver.add_arc_with_capacity_and_unit_cost(cells + node, pool, int(network.extra[node]), 0)
    used = int(np.maximum(network.load - network.base, 0).sum())
    solver.add_arc_with_capacity_and_unit_cost(pool, sink, network.pool + used, 0)
    total = int(network.supply.sum() + begun.sum())
    solver.set_node_supply(source, total)
    solver.set_node_supply(sink, -total)
    assert solver.solve_max_flow_with_min_cost() == solver.OPTIMAL
    return solver.maximum_flow(), solver.optimal_cost()


def check_dual(network: FlowNetwork, sent: SentFlow, seed: int) -> None:
    """Units take no arc that is longer than the difference of its ends, and leave none that is shorter."""
    longer = sent.cells[network.tails] - sent.nodes[network.heads]
    carried, free, high = network.flow, network.free, network.high
    assert (longer[carried < np.minimum(free, high)] >= 0).all(), seed
    assert (longer[(carried >= free) & (carried < high)] >= -1).all(), seed
    assert (longer[(carried > 0) & (carried <= free)] <= 0).all(), seed
    assert (longer[carried > free] <= -1).all(), seed


@needs_compiler
@pytest.mark.parametrize(("make", "count"), [(random_network, scaled(3_000)), (wide_network, 12)])
def test_both_ways_send_the_same(make: Callable[[int], FlowNetwork], count: int) -> None:
    stuck = 0
    for seed in range(count):
        network = make(seed)
        results = []
        for way in (flow._compiled, IN_PYTHON):
            tick, ticks = ticking()
            mine = copied(network)
            with using(way):
                sent = send(mine, tick)
            results.append((told(mine, sent), ticks))
        assert results[0] == results[1], seed
        stuck += results[0][0]["stuck"]
    assert few() or make is wide_network or scaled(500) < stuck < scaled(2_500)


def check_limits(before: FlowNetwork, network: FlowNetwork, seed: int) -> None:
    """What was sent comes from the supply and stays within all limits."""
    change = network.flow - before.flow
    cells, nodes = before.supply.size, before.base.size
    out = np.bincount(before.tails, weights=change, minlength=cells).astype(np.int64)
    coming = np.bincount(before.heads, weights=change, minlength=nodes).astype(np.int64)
    assert (network.supply >= 0).all(), seed
    assert (network.supply == before.supply - out).all(), seed
    assert (network.load == before.load + coming).all(), seed
    assert (network.load <= before.base + before.extra).all(), seed
    assert (network.flow >= 0).all(), seed
    assert (network.flow <= before.high).all(), seed
    used = [np.maximum(each.load - each.base, 0).sum() for each in (before, network)]
    assert network.pool == before.pool - (used[1] - used[0]), seed
    assert network.pool >= 0, seed


def check_stuck(network: FlowNetwork, sent: SentFlow, seed: int) -> None:
    """Stuck supply reaches only what is full."""
    cells, nodes = sent.cells > 0, sent.nodes > 0
    assert set(sent.cells.tolist()) | set(sent.nodes.tolist()) | {sent.pool} <= {0, 1}, seed
    assert cells[network.supply > 0].all(), seed
    assert (network.load[nodes] >= network.base[nodes]).all(), seed
    full = (network.load >= network.base + network.extra) | (network.pool == 0)
    assert full[nodes].all(), seed
    leaving = cells[network.tails] & ~nodes[network.heads]
    assert (network.flow[leaving] == network.high[leaving]).all(), seed
    entering = ~cells[network.tails] & nodes[network.heads]
    assert (network.flow[entering] == 0).all(), seed


@each_way
def test_as_much_is_sent_as_can_be_as_cheaply_and_within_all_limits(way: Any) -> None:
    for seed in range(scaled(1_000)):
        network = random_network(seed)
        most, cost = best(network)
        mine = copied(network)
        tick, ticks = ticking()
        with using(way):
            sent = send(mine, tick)
        assert bool(ticks) == network.supply.any(), seed
        assert (int(mine.flow.sum()), cost_of(mine)) == (most, cost), seed
        assert sent.stuck == (mine.supply.sum() > 0), seed
        check_limits(network, mine, seed)
        (check_stuck if sent.stuck else check_dual)(mine, sent, seed)


def small_network() -> FlowNetwork:
    """Two cells, two nodes, three arcs: one unit of the first cell must leave its free arc."""
    return FlowNetwork(
        starts=array([0, 2, 3]),
        heads=array([0, 1, 0]),
        supply=array([2, 1]),
        base=array([2, 1]),
        extra=array([0, 0]),
        pool=0,
        free=array([2, 0, 1]),
        high=array([5, 5, 5]),
        flow=array([0, 0, 0]),
        load=array([0, 0]),
    )


@each_way
@pytest.mark.parametrize("error", [RuntimeError("enough"), KeyboardInterrupt(), StopIteration(3)])
def test_what_tick_raises_comes_through_as_it_is(way: Any, error: BaseException) -> None:
    for after in range(3):
        tick, calls = ticking(after, error)
        with using(way), pytest.raises(type(error)) as caught:
            send(small_network(), tick)
        assert caught.value is error
        assert len(calls) == after + 1


@each_way
@pytest.mark.parametrize("options", [{}, {"max_skew": 1}, {"max_moves": 2}])
def test_a_plan_can_be_given_up_at_any_step(way: Any, options: Any) -> None:
    group = random_case(10).group
    with using(way):
        tick, steps = ticking()
        expected = plan_exact(group, tick=tick, **options)
        assert len(steps) > 5
        for last in range(len(steps)):
            tick, _ = ticking(last, TimeoutError())
            with pytest.raises(TimeoutError):
                plan_exact(group, tick=tick, **options)
        assert plan_exact(group, **options).owner.tolist() == expected.owner.tolist()


SIZES = "the arrays of the network do not fit each other"
RIGHT: dict[str, list[int]] = {
    field.name: getattr(small_network(), field.name).tolist()
    for field in fields(FlowNetwork)
    if field.name != "pool"
}
WRONG = [
    *((name, values[:-1], SIZES) for name, values in RIGHT.items()),
    *((name, [*values, 0], SIZES) for name, values in RIGHT.items()),
    *(
        (name, [wrong, *RIGHT[name][1:]], f"{name}[0] must be from 0 to {MOST}, not {wrong}")
        for name in ("supply", "base", "extra", "free", "high")
        for wrong in (-1, -(2**63), MOST + 1, 2**63 - 1)
    ),
    ("starts", [], SIZES),
    ("starts", [0, 2, 2], "starts"),
    ("starts", [0, 2, 4], "starts[2] must be from "),
    ("starts", [1, 2, 3], "starts"),
    ("starts", [0, 4, 3], "starts[1] must be from 0 to 3, not 4"),
    ("starts", [0, -1, 3], "starts[1] must be from 0 to 3, not -1"),
    ("starts", [0, 2**63 - 1, 3], "starts[1] must be from 0 to 3, not 9223372036854775807"),
    ("heads", [0, 2, 0], "heads[1] must be from 1 to 1, not 2"),
    ("heads", [0, -1, 0], "heads[1] must be from 1 to 1, not -1"),
    ("heads", [0, 0, 0], "heads[1] must be from 1 to 1, not 0"),
    ("supply", [MOST, 1], f"supply and load must come to no more than {MOST} units in all"),
    ("free", [2, 0, MOST + 1], f"free[2] must be from 0 to {MOST}, not {MOST + 1}"),
    ("flow", [0, 0, -1], "flow[2] must be from 0 to 5, not -1"),
    ("flow", [0, 6, 0], "flow[1] must be from 0 to 5, not 6"),
    ("load", [0, -1], f"load[1] must be from 0 to {MOST}, not -1"),
    ("load", [3, 0], "load[0] must be from 0 to 2, not 3"),
    *(
        ("pool", pool, f"pool must be from 0 to {MOST}, not {pool}")
        for pool in (-1, MOST + 1, 2**63, -(2**64))
    ),
]


@needs_compiler
@pytest.mark.parametrize(("name", "values", "message"), WRONG)
def test_compiled_arguments_out_of_range_are_refused_by_name_and_value(
    name: str, values: list[int] | int, message: str
) -> None:
    given: Any = array(values) if isinstance(values, list) else values
    network = replace(small_network(), **{name: given})
    before = copied(network)
    with pytest.raises(ValueError, match=re.escape(message)):
        send(network, lambda: None)
    for field in fields(network):
        assert np.array_equal(getattr(network, field.name), getattr(before, field.name))


def arguments(network: FlowNetwork) -> list[Any]:
    """What the compiled module takes, but for distances, pool and tick."""
    return [getattr(network, field.name) for field in fields(network) if field.name != "pool"]


@needs_compiler
def test_compiled_other_arguments_that_do_not_fit_are_refused() -> None:
    arrays = arguments(small_network())
    with pytest.raises(ValueError, match="distance must have 5 entries, not 4"):
        flow._compiled.send(*arrays, np.zeros(4, dtype=np.int64), 0, lambda: None, 9)
    distance = np.zeros(5, dtype=np.int64)
    with pytest.raises(TypeError):
        flow._compiled.send(*arrays, distance, "pool", lambda: None, 9)
    with pytest.raises(TypeError):
        flow._compiled.send(*arrays, distance, 0, None, 9)
    with pytest.raises(TypeError):
        flow._compiled.send(*arrays[:-1], None, distance, 0, lambda: None, 9)
    for kind in (np.float64, np.int32, ">i8"):
        with pytest.raises(ValueError, match="load must be of int64, not of format"):
            flow._compiled.send(*arrays[:-1], arrays[-1].astype(kind), distance, 0, lambda: None, 9)
    distance.flags.writeable = False
    with pytest.raises((ValueError, BufferError)):
        flow._compiled.send(*arrays, distance, 0, lambda: None, 9)


@needs_compiler
def test_what_stands_in_the_distances_given_makes_no_difference() -> None:
    for value in (-1, 5, 2**31, 2**62, 2**63 - 1, -(2**63)):
        network, distance = small_network(), np.full(5, value)
        flow._compiled.send(*arguments(network), distance, 0, lambda: None, 9)
        assert network.flow.tolist() == [1, 1, 1]
        assert distance.tolist() == [0, 0, 0, 1, 1]


OUTCOME = ("flow", "load", "supply", "pool", "stuck", "cells", "nodes", "distance of the pool")
"""What sending tells, and leaves behind otherwise than it was."""


@needs_compiler
def test_arrays_that_a_tick_changes_make_no_difference() -> None:
    for seed in range(scaled(300)):
        network = random_network(seed)
        expected, mine = copied(network), copied(network)
        sent = send(expected, lambda: None)

        def tick(mine: FlowNetwork = mine, seed: int = seed) -> None:
            for each in arguments(mine):
                each[:] = Random(seed).choice([-1, 2**31, 2**62, -(2**63)])

        again = send(mine, tick)
        if not network.supply.any():
            continue
        found, wanted = told(mine, again), told(expected, sent)
        assert {**wanted, **{name: found[name] for name in OUTCOME}} == wanted, seed


@each_way
def test_a_network_is_as_it_was_if_tick_raises(way: Any) -> None:
    for seed in range(scaled(300)):
        network = random_network(seed)
        before = copied(network)
        with using(way):
            try:
                send(network, ticking(seed % 5, TimeoutError())[0])
            except TimeoutError:
                for name in ("flow", "load", "supply"):
                    assert np.array_equal(getattr(network, name), getattr(before, name)), seed


@each_way
def test_a_long_search_calls_tick_within_its_steps(way: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    network, counts = wide_network(3), []
    with using(way):
        for breath in (2**40, 50):
            monkeypatch.setattr(flow, "_BREATH", breath)
            monkeypatch.setattr(flow, "_COMPILED_BREATH", breath)
            tick, steps = ticking()
            send(copied(network), tick)
            counts.append(len(steps))
    assert counts[1] > 5 * counts[0] > 0
