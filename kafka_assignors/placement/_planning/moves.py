"""The best places for replicas, and the fewest moves that lead there.

Goals, each among the placements that are best by the ones before:

1. *Valid*: a broker has at most one replica of a partition. The replicas of each partition are spread over
   the racks as evenly as the racks allow (`rack_bounds` in `kafka_assignors.placement._planning.spread`).
2. *Balance*: the sum of squares of the brokers' replicas is least. No other placement has a
   lexicographically lower sequence of loads, highest first.
3. *Moves*: the fewest bytes are copied, if sizes are known. Then the fewest replicas are added on brokers
   that have none of the partition now. Then the fewest preferred leaders lose their replica.
4. *Leaders*: with these replicas, the sum of squares of the brokers' preferred leaders is least; then the
   fewest partitions change their preferred leader.
5. *A fixed choice*: that of the solver, which gets partitions and brokers in order. The same question has the
   same answer, in any order of its mappings. Another release of OR-tools may choose otherwise among
   placements that are equally good.

Moves and leaders do not conflict if all partitions have one replication factor, and nothing is fixed beside
them; docs/design.md has the proof. Otherwise, as with lopsided racks, they may. Then fewer moves win, and
`MovePlan.leaders_best` says whether leaders are as balanced as if every broker could lead any partition.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from kafka_assignors._model.arrays import NOBODY
from kafka_assignors.placement._placement import Placement, Racks
from kafka_assignors.placement._planning.exact import best_leaders, best_replicas
from kafka_assignors.placement._planning.problem import BrokerSet, Wanted, wanted_partitions
from kafka_assignors.placement._planning.spread import least_squares, rack_bounds


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaMove:
    """A replica to be copied to a broker that has none of its partition.

    Attributes:
        topic: Its topic.
        partition: Its id in the topic.
        target: The broker that gets it.
        source: A broker that loses its replica of the partition for it, one of the same rack if there is one.
            None if the partition gets more replicas than it had.
        size: Its bytes, None if sizes are not known.
    """

    topic: str
    partition: int
    target: int
    source: int | None
    size: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Moves:
    """What lies between two placements."""

    before: dict[str, dict[int, list[int]]]
    after: dict[str, dict[int, list[int]]]
    moves: tuple[ReplicaMove, ...]
    replica_loads: dict[int, int]  # after, of the brokers that may hold some
    leader_loads: dict[int, int]  # of preferred leaders
    leaders_changed: int  # partitions

    @property
    def replicas_moved(self) -> int:
        return len(self.moves)

    @property
    def bytes_moved(self) -> int | None:
        """How many bytes are copied; None if sizes are not known."""
        sizes = [move.size for move in self.moves if move.size is not None]
        return sum(sizes) if len(sizes) == len(self.moves) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class MovePlan(Moves):
    """Where replicas go, and what is proved about it.

    Loads are those of the brokers that may hold replicas, with what fixed topics have on them.

    Attributes:
        replicas_forced: How many replicas any valid placement has to copy, balanced or not: for brokers that
            are left, for a higher replication factor and for racks.
        leaders_squares: The sum of squares of the leader loads; with `per_topic` that of each topic,
            summed up.
        leaders_bound: No placement at all has a lower one.
    """

    replicas_forced: int
    leaders_squares: int
    leaders_bound: int

    @property
    def leaders_best(self) -> bool:
        """Whether it is proved that no placement at all has its leaders more balanced."""
        return self.leaders_squares == self.leaders_bound


def plan_moves(
    topics: Mapping[str, Placement],
    racks: Racks,
    *,
    replication_factor: int | None = None,
    sizes: Mapping[tuple[str, int], int] | None = None,
    brokers: Collection[int] | None = None,
    fixed: Collection[str] = (),
    per_topic: bool = False,
    under_way: Mapping[str, Placement] | None = None,
) -> MovePlan:
    """Plan where replicas should be, moving as few as possible.

    The goals are those of this module. The preferred leader stands first in each partition's list; the others
    keep their order, and new ones come behind by id.

    New partitions have no replicas yet. Brokers that are not in `racks` may occur: they are gone or going.
    All racks are None if they do not matter. Sizes are bytes; without them replicas are counted.
    Topics that are `fixed` stay, and count as load; with `per_topic` they do not count. Partitions that are
    under way are planned to be where they go to, and count as load, if that is a valid placement.
    """
    cluster = BrokerSet.of(racks, brokers)
    planned = wanted_partitions(topics, fixed=fixed, replication_factor=replication_factor, sizes=sizes)
    cluster.check(planned)
    after = {topic: {p: list(topics[topic][p]) for p in sorted(topics[topic])} for topic in sorted(topics)}
    together: dict[str, list[Wanted]] = {}
    settled = {"": [topics[topic] for topic in fixed]}  # nothing is planned in "" if each topic is by itself
    for wanted in planned:
        group_name = wanted.topic if per_topic else ""
        target = (under_way or {}).get(wanted.topic, {}).get(wanted.partition)
        if target is not None and cluster.allows(wanted, target):
            after[wanted.topic][wanted.partition] = list(target)
            settled.setdefault(group_name, []).append({wanted.partition: list(target)})
        else:
            together.setdefault(group_name, []).append(wanted)
    squares = bound = 0
    for group_name, group in together.items():
        placed, found, least = _place(group, cluster, settled.get(group_name, ()))
        for wanted, replicas in zip(group, placed, strict=True):
            after[wanted.topic][wanted.partition] = replicas
        squares, bound = squares + found, bound + least
    moved = moves_between(topics, after, racks, brokers=cluster.brokers, sizes=sizes)
    return MovePlan(
        **{one.name: getattr(moved, one.name) for one in fields(moved)},
        replicas_forced=_forced(planned, cluster),
        leaders_squares=squares,
        leaders_bound=bound,
    )


def moves_between(
    before: Mapping[str, Placement],
    after: Mapping[str, Placement],
    racks: Racks,
    *,
    brokers: Collection[int],
    sizes: Mapping[tuple[str, int], int] | None = None,
) -> Moves:
    """What has to move between two placements of the same partitions; loads are counted for `brokers`."""
    moves: list[ReplicaMove] = []
    replicas: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    changed = 0
    for topic, placement in sorted(after.items()):
        for partition, placed in sorted(placement.items()):
            present = before[topic][partition]
            size = None if sizes is None else sizes.get((topic, partition))
            for target, source in _copies(present, placed, racks):
                moves.append(
                    ReplicaMove(topic=topic, partition=partition, target=target, source=source, size=size)
                )
            changed += bool(present) and present[0] != placed[0]
            replicas.update(placed)
            leaders[placed[0]] += 1
    return Moves(
        before={topic: {p: [*one] for p, one in sorted(of.items())} for topic, of in sorted(before.items())},
        after={topic: {p: [*one] for p, one in sorted(of.items())} for topic, of in sorted(after.items())},
        moves=tuple(moves),
        replica_loads={broker: replicas[broker] for broker in brokers},
        leader_loads={broker: leaders[broker] for broker in brokers},
        leaders_changed=changed,
    )


def _place(
    planned: Sequence[Wanted], cluster: BrokerSet, beside: Iterable[Placement]
) -> tuple[list[list[int]], int, int]:
    """The brokers of each partition, its leader first, beside placements that stay.

    With them come the sum of squares of the leader loads, and the least that any placement has.
    """
    held, led = cluster.load(beside)
    number = {broker: at for at, broker in enumerate(cluster.brokers)}
    has = np.zeros((len(planned), len(cluster.brokers)), dtype=np.bool_)
    leader = np.full(len(planned), NOBODY, dtype=np.int64)
    for row, wanted in enumerate(planned):
        has[row, [number[broker] for broker in wanted.present if broker in number]] = True
        if wanted.present:
            leader[row] = number.get(wanted.present[0], NOBODY)
    sizes = [wanted.size for wanted in planned if wanted.size is not None]
    chosen = best_replicas(
        factor=np.array([wanted.factor for wanted in planned], dtype=np.int64),
        rack=cluster.rack,
        held=held,
        has=has,
        leader=leader,
        sizes=np.array(sizes, dtype=np.int64) if sizes else None,
    )
    leaders = best_leaders(chosen, leader, led)
    placed = []
    for wanted, row, first in zip(planned, chosen, leaders.tolist(), strict=True):
        brokers = {cluster.brokers[at] for at in np.flatnonzero(row).tolist()}
        kept = [broker for broker in wanted.present if broker in brokers]
        placed.append(list(dict.fromkeys([cluster.brokers[first], *kept, *sorted(brokers)])))
    leads = led + cluster.count(replicas[0] for replicas in placed)
    return placed, int((leads**2).sum()), least_squares(led, len(planned))


def _copies(present: Sequence[int], placed: Sequence[int], racks: Racks) -> Iterable[tuple[int, int | None]]:
    """The brokers that get a replica, each with one that loses its own."""
    left = sorted({*present} - {*placed})
    for target in sorted({*placed} - {*present}):
        source = min(left, key=lambda broker: (racks.get(broker) != racks.get(target), broker), default=None)
        if source is not None:
            left.remove(source)
        yield target, source


def _forced(planned: Sequence[Wanted], cluster: BrokerSet) -> int:
    """How many replicas any valid placement adds: those that have no place where the partition is."""
    in_rack = np.bincount(cluster.rack)
    rack_of = dict(zip(cluster.brokers, cluster.rack.tolist(), strict=True))
    bounds = {factor: rack_bounds(in_rack, factor) for factor in {wanted.factor for wanted in planned}}
    forced = 0
    for wanted in planned:
        low, high = bounds[wanted.factor]
        found = [rack_of[broker] for broker in wanted.present if broker in rack_of]
        stay = np.bincount(np.array(found, dtype=np.int64), minlength=in_rack.size)
        elsewhere = int(np.maximum(low - stay, 0).sum())
        forced += wanted.factor - min(wanted.factor - elsewhere, int(np.minimum(stay, high).sum()))
    return forced
