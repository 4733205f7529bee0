"""The best places for replicas, and the fewest moves that lead there.

Goals, each among the placements that are best by the ones before:

1. *Valid*: a broker has at most one replica of a partition, and the replicas of each partition are
   spread over the racks as evenly as the racks allow (`kafka_assignors.placement.spread.rack_bounds`).
2. *Balance*: the sum of squares of the brokers' replicas is least. No other placement has a
   lexicographically lower sequence of loads, highest first.
3. *Moves*: the fewest bytes are copied if sizes are known; then the fewest replicas are added on brokers that
   have none of the partition now.
4. *Leaders*: with these replicas the sum of squares of the brokers' (preferred) leaders is least; then the fewest
   partitions change leader.
5. *A fixed choice*: that of the solver, which gets partitions and brokers in order. The same question has the
   same answer, whatever the order of its mappings; another release of OR-tools may choose otherwise among
   placements that are equally good.

Goals 3 and 4 do not conflict if all partitions have one replication factor f and replicas are k or k + 1
on each of n brokers, with nothing fixed beside them: then each broker leads P / n partitions, rounded down or up, whatever the
replica sets are. Proof: let each partition give 1/f of its lead to each of its brokers. Broker b with T_b
replicas then leads T_b / f, and as k is P f / n rounded down, floor(P / n) <= k / f and, if any broker has k + 1,
(k + 1) / f <= ceil(P / n). So a fractional flow within these bounds exists, and with it an integral one.

With several replication factors, with lopsided racks or beside what is fixed they may conflict. Then fewer moves win, and
`MovePlan.leaders_best` tells whether leaders are as balanced as they would be if every broker could lead any
partition.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kafka_assignors.arrays import BoolArray, IntArray
from kafka_assignors.placement.flow import CostRangeError, Network
from kafka_assignors.placement.placement import Placement, PlacementError, Racks
from kafka_assignors.placement.spread import Layers, drained, least_squares, rack_bounds, spread_evenly

_NOWHERE = -1
"""The broker number of a leader that is not among those that may hold replicas."""

_SHOWN = 10
"""How many brokers an error names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A replica to be copied to a broker that has none of its partition.

    Attributes:
        topic: Its topic.
        partition: Its id in the topic.
        target: The broker that gets it.
        source: A broker that loses its replica of the same partition for it, one of the same rack if there is one;
            None where the partition gets more replicas than it had.
        size: Its bytes, None if sizes are not known.
    """

    topic: str
    partition: int
    target: int
    source: int | None
    size: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class MovePlan:
    """Where replicas go, and what is proved about it.

    Loads count the brokers that may hold replicas, with what fixed topics have on them.

    Attributes:
        before: Topic -> partition -> brokers, as they are; fixed topics as well.
        after: The same as it should be.
        moves: The replicas to copy, by topic, partition and target.
        replica_loads: Broker -> replicas after.
        leader_loads: Broker -> partitions after of which it is the preferred leader.
        replicas_forced: How many replicas any valid placement has to copy, balanced or not: those for
            brokers that are left, for a higher replication factor and for racks.
        leaders_changed: Partitions whose preferred leader is another one after.
        leaders_squares: The sum of squares of the leader loads; with `per_topic` that of each topic summed up.
        leaders_bound: No placement at all has a lower one.
    """

    before: dict[str, dict[int, list[int]]]
    after: dict[str, dict[int, list[int]]]
    moves: tuple[Move, ...]
    replica_loads: dict[int, int]
    leader_loads: dict[int, int]
    replicas_forced: int
    leaders_changed: int
    leaders_squares: int
    leaders_bound: int

    @property
    def replicas_moved(self) -> int:
        """How many replicas are copied: the fewest with which replicas are balanced, or with the fewest bytes."""
        return len(self.moves)

    @property
    def bytes_moved(self) -> int | None:
        """How many bytes are copied: the fewest with which replicas are balanced; None if sizes are unknown."""
        sizes = [move.size for move in self.moves if move.size is not None]
        return sum(sizes) if len(sizes) == len(self.moves) else None

    @property
    def leaders_best(self) -> bool:
        """Whether it is proved that no placement at all has its leaders more balanced."""
        return self.leaders_squares == self.leaders_bound


def plan_moves(
    topics: Mapping[str, Placement],
    racks: Racks,
    *,
    replication_factor: int | Mapping[str, int] | None = None,
    sizes: Mapping[tuple[str, int], int] | None = None,
    brokers: Collection[int] | None = None,
    fixed: Collection[str] = (),
    per_topic: bool = False,
) -> MovePlan:
    """Plan where replicas should be, moving as few as possible.

    The goals are those of this module. The preferred leader stands first in each partition's list; the others
    keep their order, new ones come behind by id.

    Args:
        topics: Where the replicas are now. Brokers that are not in `racks` may occur: they are gone or going.
        racks: Each broker of the cluster and its rack; all None if racks do not matter.
        replication_factor: That of all topics, or of some by name; None keeps each partition's own.
        sizes: (topic, partition) -> bytes of the partition's log, 0 or more. None counts replicas.
        brokers: Those that may hold replicas after; None for all of `racks`.
        fixed: Topics that stay as they are, and count as load; with `per_topic` they do not.
        per_topic: Balance each topic by itself instead of all together.

    Raises:
        PlacementError: An argument cannot be, or no placement is allowed; the message says which entry.
        ImportError: OR-tools is not installed.
    """
    cluster = _Cluster.of(racks, brokers)
    _know(fixed, topics, "fixed")
    planned = _Wanted.of(topics, set(fixed), replication_factor, sizes)
    cluster.check(planned)
    after = {t: {p: list(topics[t][p]) for p in sorted(topics[t])} for t in sorted(topics)}
    before = {topic: {p: list(found) for p, found in of.items()} for topic, of in after.items()}
    groups = [[w for w in planned if w.topic == t] for t in topics] if per_topic else [planned]
    load = cluster.nothing if per_topic else cluster.load(after[topic] for topic in fixed)
    squares = bound = 0
    for group in groups:
        chosen = _choose(group, cluster, load)
        for wanted, placed in zip(group, chosen, strict=True):
            after[wanted.topic][wanted.partition] = placed
        leaders = load.leaders + cluster.count(placed[0] for placed in chosen)
        squares += int((leaders**2).sum())
        bound += least_squares(load.leaders, len(group))
    return _report(cluster, planned, before, after, (squares, bound))


def place_balanced(
    partitions: Collection[int],
    replication_factor: int,
    racks: Racks,
    *,
    existing: Mapping[str, Placement] | None = None,
    brokers: Collection[int] | None = None,
) -> dict[int, list[int]]:
    """Place new partitions so that all together are best balanced, beside existing ones that stay.

    The goals are those of this module, without moves: replicas first, then leaders.

    Args:
        partitions: The ids of the new partitions.
        replication_factor: How many replicas each of them gets.
        racks: Each broker of the cluster and its rack; all None if racks do not matter.
        existing: The topics that count as load.
        brokers: Those that may get replicas; None for all of `racks`.

    Raises:
        PlacementError: An argument cannot be, or no placement is allowed; the message says which entry.
        ImportError: OR-tools is not installed.
    """
    cluster = _Cluster.of(racks, brokers)
    planned = [
        _Wanted(topic="", partition=p, present=(), factor=replication_factor, size=None)
        for p in sorted(set(partitions))
    ]
    cluster.check(planned)
    load = cluster.load((existing or {}).values())
    return dict(zip((w.partition for w in planned), _choose(planned, cluster, load), strict=True))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """A partition to be placed."""

    topic: str
    partition: int
    present: tuple[int, ...]
    factor: int
    size: int | None

    @classmethod
    def of(
        cls,
        topics: Mapping[str, Placement],
        fixed: Collection[str],
        replication_factor: int | Mapping[str, int] | None,
        sizes: Mapping[tuple[str, int], int] | None,
    ) -> "list[_Wanted]":
        """All that is to be placed, in order."""
        factors = replication_factor if isinstance(replication_factor, Mapping) else {}
        _know(factors, topics, "replication_factor")
        for topic in sorted(set(factors) & set(fixed)):
            raise PlacementError(
                f"topic {topic!r} is fixed, and replication_factor asks for {factors[topic]}: leave one of them out"
            )
        default = None if isinstance(replication_factor, Mapping) else replication_factor
        planned = []
        for topic in sorted(set(topics) - set(fixed)):
            for partition in sorted(topics[topic]):
                present = tuple(topics[topic][partition])
                twice = [broker for broker, count in Counter(present).items() if count > 1]
                if twice:
                    raise PlacementError(
                        f"{topic}-{partition} has replicas {list(present)}, two of them on broker {twice[0]}: name "
                        "each broker once"
                    )
                own = factors.get(topic, len(present) if default is None else default)
                size = None if sizes is None else _size(sizes, topic, partition)
                planned.append(cls(topic=topic, partition=partition, present=present, factor=own, size=size))
        return planned

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}" if self.topic else f"partition {self.partition}"


def _know(names: Iterable[str], topics: Collection[str], argument: str) -> None:
    unknown = sorted(set(names) - set(topics))
    if unknown:
        raise PlacementError(
            f"{argument} names topic {unknown[0]!r}, which is not among the {len(topics)} topics given: add its "
            "placement, or leave it out"
        )


def _size(sizes: Mapping[tuple[str, int], int], topic: str, partition: int) -> int:
    size = sizes.get((topic, partition))
    if size is None:
        raise PlacementError(
            f"sizes say nothing of {topic}-{partition}: add ({topic!r}, {partition}), or give no sizes to count "
            "replicas"
        )
    if size < 0:
        raise PlacementError(f"sizes give {topic}-{partition} {size} bytes: give 0 or more")
    return size


@dataclass(frozen=True, kw_only=True, slots=True)
class _Load:
    """What brokers have beside the partitions to be placed: two arrays (n,)."""

    replicas: IntArray
    leaders: IntArray


@dataclass(frozen=True, kw_only=True, slots=True)
class _Cluster:
    """The brokers that may hold replicas: ids ascending, and the numbers of their racks."""

    brokers: list[int]
    rack: IntArray
    racks: Racks

    @classmethod
    def of(cls, racks: Racks, brokers: Collection[int] | None) -> "_Cluster":
        without = sorted(broker for broker, rack in racks.items() if rack is None)
        if without and len(without) < len(racks):
            raise PlacementError(
                f"brokers {_listed(without)} have no rack and the others have one: name the racks of all brokers, or "
                "give None for all to place without racks"
            )
        allowed = sorted(racks if brokers is None else set(brokers))
        unknown = [broker for broker in allowed if broker not in racks]
        if unknown:
            raise PlacementError(
                f"brokers names {_listed(unknown)}, of which racks says nothing: add them to racks, with None if "
                "there are none, or leave them out"
            )
        names = sorted({racks[broker] or "" for broker in allowed})
        number = {name: at for at, name in enumerate(names)}
        rack = np.array([number[racks[broker] or ""] for broker in allowed], dtype=np.int64)
        return cls(brokers=allowed, rack=rack, racks=racks)

    def check(self, planned: Iterable[_Wanted]) -> None:
        """Raise a `PlacementError` for a replication factor that cannot be had."""
        for wanted in planned:
            if wanted.factor < 1:
                raise PlacementError(
                    f"{wanted.name} is to have {wanted.factor} replicas: give a replication factor of 1 or more"
                )
            if wanted.factor > len(self.brokers):
                raise PlacementError(
                    f"{wanted.name} is to have {wanted.factor} replicas, and only {len(self.brokers)} brokers may hold "
                    f"them ({_listed(self.brokers) or 'none'}): allow more brokers or lower the replication factor"
                )

    @property
    def nothing(self) -> _Load:
        return self.load(())

    def load(self, placements: Iterable[Placement]) -> _Load:
        """What placements put on the brokers."""
        found = [replicas for placement in placements for replicas in placement.values() if replicas]
        return _Load(
            replicas=self.count(broker for replicas in found for broker in replicas),
            leaders=self.count(replicas[0] for replicas in found),
        )

    def count(self, brokers: Iterable[int]) -> IntArray:
        """(n,) how often each broker comes."""
        times = Counter(brokers)
        return np.array([times[broker] for broker in self.brokers], dtype=np.int64)


def _listed(brokers: Sequence[int]) -> str:
    more = len(brokers) - _SHOWN
    return ", ".join(map(str, brokers[:_SHOWN])) + (f" and {more} more" if more > 0 else "")


def _choose(planned: Sequence[_Wanted], cluster: _Cluster, load: _Load) -> list[list[int]]:
    """The brokers of each partition, its leader first."""
    if not planned:
        return []
    number = {broker: at for at, broker in enumerate(cluster.brokers)}
    has = np.zeros((len(planned), len(cluster.brokers)), dtype=np.bool_)
    for row, wanted in enumerate(planned):
        has[row, [number[broker] for broker in wanted.present if broker in number]] = True
    chosen = _replicas(planned, has, cluster.rack, load.replicas)
    present = [number.get(wanted.present[0], _NOWHERE) if wanted.present else _NOWHERE for wanted in planned]
    leaders = _leaders(chosen, np.array(present, dtype=np.int64), load.leaders)
    placed = []
    for wanted, row, leader in zip(planned, chosen, leaders.tolist(), strict=True):
        of = [cluster.brokers[at] for at in np.flatnonzero(row).tolist()]
        kept = [broker for broker in wanted.present if broker in of]
        first = cluster.brokers[leader]
        placed.append([first, *(b for b in [*kept, *sorted(set(of) - set(kept))] if b != first)])
    return placed


def _replicas(planned: Sequence[_Wanted], has: BoolArray, rack: IntArray, held: IntArray) -> BoolArray:
    """(P, n) which brokers hold each partition: best balanced, then with the fewest moves."""
    factor = np.array([wanted.factor for wanted in planned], dtype=np.int64)
    # For balance all partitions of one replication factor are alike.
    kinds, kind, count = np.unique(factor, return_inverse=True, return_counts=True)
    even, lowest, highest = spread_evenly(Layers.of(rack, kinds, count).network, held)
    single = Layers.of(rack, factor, np.ones_like(factor))
    network = drained(single.within(even, count, kind), np.arange(held.size), lowest, highest)
    for number, weight in enumerate(weights := _weights(planned)):
        cost = np.zeros(network.tail.size, dtype=np.int64)
        single.into_brokers(cost)[:] = ~has * weight[:, None]
        try:
            flow = network.cheapest(cost)
        except CostRangeError as error:
            raise _too_many_bytes(planned, error.largest) from error
        if number + 1 < len(weights):
            network = network.as_cheap(cost, flow)
    return single.into_brokers(flow) == 1


def _weights(planned: Sequence[_Wanted]) -> list[IntArray]:
    """What a move of each partition costs, by one measure after another: arrays (P,)."""
    sizes = [wanted.size for wanted in planned if wanted.size is not None]
    ones = np.ones(len(planned), dtype=np.int64)
    if not sizes:
        return [ones]
    if max(sizes) >= 2**62:
        raise _too_many_bytes(planned, 2**62)
    return [np.array(sizes, dtype=np.int64), ones]


def _too_many_bytes(planned: Sequence[_Wanted], largest: int) -> PlacementError:
    most = max(planned, key=lambda wanted: wanted.size or 0)
    return PlacementError(
        f"{most.name} has {most.size} bytes, more than can be counted exactly with {len(planned)} partitions: at "
        f"most {largest}; give all sizes in a larger unit, as in MiB, or plan per topic"
    )


def _leaders(chosen: BoolArray, present: IntArray, held: IntArray) -> IntArray:
    """(P,) the leader of each partition among its brokers: best balanced, then with the fewest changes."""
    partition, broker = np.nonzero(chosen)
    brokers = held.size
    network = Network(
        tail=brokers + partition,
        head=broker,
        lower=np.zeros_like(broker),
        upper=np.ones_like(broker),
        supply=np.concatenate([np.zeros_like(held), np.ones_like(present)]),
    )
    best, lowest, highest = spread_evenly(network, held)
    best = drained(best, np.arange(brokers), lowest, highest)
    cost = np.concatenate([broker != present[partition], np.zeros(brokers, dtype=np.bool_)])
    flow = best.cheapest(cost.astype(np.int64))
    return broker[flow[: broker.size] == 1]


def _report(
    cluster: _Cluster,
    planned: Sequence[_Wanted],
    before: dict[str, dict[int, list[int]]],
    after: dict[str, dict[int, list[int]]],
    leaders: tuple[int, int],
) -> MovePlan:
    load = cluster.load(after.values())
    final = [after[wanted.topic][wanted.partition] for wanted in planned]
    return MovePlan(
        before=before,
        after=after,
        moves=tuple(
            move
            for wanted, placed in zip(planned, final, strict=True)
            for move in _moves(wanted, placed, cluster.racks)
        ),
        replica_loads=dict(zip(cluster.brokers, load.replicas.tolist(), strict=True)),
        leader_loads=dict(zip(cluster.brokers, load.leaders.tolist(), strict=True)),
        replicas_forced=_forced(planned, cluster),
        leaders_changed=sum(
            wanted.present[:1] != tuple(placed[:1]) for wanted, placed in zip(planned, final, strict=True)
        ),
        leaders_squares=leaders[0],
        leaders_bound=leaders[1],
    )


def _moves(wanted: _Wanted, placed: Sequence[int], racks: Racks) -> Iterable[Move]:
    left = sorted(set(wanted.present) - set(placed))
    for target in sorted(set(placed) - set(wanted.present)):
        source = min(left, key=lambda broker: (racks.get(broker) != racks[target], broker), default=None)
        if source is not None:
            left.remove(source)
        yield Move(
            topic=wanted.topic, partition=wanted.partition, target=target, source=source, size=wanted.size
        )


def _forced(planned: Sequence[_Wanted], cluster: _Cluster) -> int:
    """How many replicas any valid placement adds: all that do not fit into their racks where they are."""
    in_rack = np.bincount(cluster.rack)
    rack_of = dict(zip(cluster.brokers, cluster.rack.tolist(), strict=True))
    bounds = {factor: rack_bounds(in_rack, factor) for factor in {wanted.factor for wanted in planned}}
    forced = 0
    for wanted in planned:
        low, high = bounds[wanted.factor]
        found = [rack_of[broker] for broker in wanted.present if broker in rack_of]
        kept = np.bincount(found, minlength=in_rack.size)
        room = wanted.factor - int(np.maximum(low - kept, 0).sum())
        forced += wanted.factor - min(room, int(np.minimum(kept, high).sum()))
    return forced
