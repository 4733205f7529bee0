"""How good a placement is: how evenly brokers are laden, and what is left when a rack is lost."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafka_assignors.placement._placement import Placement, Racks

TopicPartitions = tuple[tuple[str, int], ...]
"""Partitions by topic and id, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerLoad:
    """What one broker has.

    Attributes:
        broker: Its id.
        rack: Its rack, None if it has none.
        replicas: How many replicas it has.
        leaders: Of how many of them it is the preferred leader.
        size: Their bytes, 0 where sizes are not known.
        known: Whether the cluster has it, and it is up; one that is down, or gone for good, may still have
            replicas.
    """

    broker: int
    rack: str | None
    replicas: int
    leaders: int
    size: int
    known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RackLoad:
    """What one rack has, and what goes with it.

    Attributes:
        rack: Its name.
        brokers: How many brokers it has that are up.
        replicas: How many replicas they have.
        leaders: Of how many of them they are the preferred leader.
        offline: The partitions that have no replica elsewhere: lost to all while the rack is away.
        read_only: Those that have some elsewhere, but fewer than `min_insync`: nothing can be produced to
            them with `acks=all`.
    """

    rack: str
    brokers: int
    replicas: int
    leaders: int
    offline: TopicPartitions
    read_only: TopicPartitions


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """How good placements are.

    Attributes:
        partitions: How many partitions there are.
        replicas: How many replicas.
        brokers: Each broker's load, by id; also of those with replicas that the cluster does not have.
        racks: Each rack's, by name; none where brokers have no racks.
        racks_per_partition: Number of racks -> how many partitions have replicas on so many.
        min_insync: The `min.insync.replicas` that was assumed.
    """

    partitions: int
    replicas: int
    brokers: tuple[BrokerLoad, ...]
    racks: tuple[RackLoad, ...]
    racks_per_partition: Mapping[int, int]
    min_insync: int

    @property
    def replica_spread(self) -> int:
        """The most replicas that a broker of the cluster has, less the fewest."""
        return _spread([load.replicas for load in self.brokers if load.known])

    @property
    def leader_spread(self) -> int:
        """The most partitions that a broker of the cluster leads, less the fewest."""
        return _spread([load.leaders for load in self.brokers if load.known])


def measure(
    topics: Mapping[str, Placement],
    racks: Racks,
    *,
    sizes: Mapping[tuple[str, int], int] | None = None,
    min_insync: int = 1,
    down: Collection[int] = (),
) -> Quality:
    """Measure placements; `racks` are those of all brokers, of which some may be `down`, `sizes` bytes."""
    placed = [
        ((topic, partition), brokers)
        for topic, placement in sorted(topics.items())
        for partition, brokers in sorted(placement.items())
    ]
    replicas = Counter(broker for _, brokers in placed for broker in brokers)
    leaders = Counter(broker for _, brokers in placed for broker in brokers[:1])
    size: Counter[int] = Counter()
    for partition, brokers in placed:
        size.update(dict.fromkeys(brokers, (sizes or {}).get(partition, 0)))
    # Each broker without a rack counts as a rack.
    spreads = Counter(
        len({broker if racks.get(broker) is None else racks[broker] for broker in brokers})
        for _, brokers in placed
    )
    loads = tuple(
        BrokerLoad(
            broker=broker,
            rack=racks.get(broker),
            replicas=replicas[broker],
            leaders=leaders[broker],
            size=size[broker],
            known=broker in racks and broker not in down,
        )
        for broker in sorted({*racks, *replicas})
    )
    of_racks = _rack_loads(loads, placed, racks, min_insync)
    return Quality(
        partitions=len(placed),
        replicas=replicas.total(),
        brokers=loads,
        racks=of_racks,
        racks_per_partition=dict(sorted(spreads.items())) if of_racks else {},
        min_insync=min_insync,
    )


def _rack_loads(
    brokers: Sequence[BrokerLoad],
    placed: Iterable[tuple[tuple[str, int], Sequence[int]]],
    racks: Racks,
    min_insync: int,
) -> tuple[RackLoad, ...]:
    # Rack -> its partitions, and how many replicas each has in other racks.
    elsewhere: dict[str | None, list[tuple[tuple[str, int], int]]] = defaultdict(list)
    for partition, replicas in placed:
        for rack, count in Counter(map(racks.get, replicas)).items():
            elsewhere[rack].append((partition, len(replicas) - count))
    loads: dict[str, list[BrokerLoad]] = defaultdict(list)
    for load in brokers:
        if load.rack is not None:
            loads[load.rack].append(load)
    return tuple(
        RackLoad(
            rack=rack,
            brokers=sum(load.known for load in of_rack),
            replicas=sum(load.replicas for load in of_rack),
            leaders=sum(load.leaders for load in of_rack),
            offline=tuple(one for one, left in elsewhere[rack] if not left),
            read_only=tuple(one for one, left in elsewhere[rack] if 0 < left < min_insync),
        )
        for rack, of_rack in sorted(loads.items())
    )


def _spread(loads: list[int]) -> int:
    return max(loads, default=0) - min(loads, default=0)
