"""How good a placement is: how evenly brokers are laden, and what is left when a rack is lost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
    """Measure how good the placements of some topics are.

    Args:
        topics: The topics' placements.
        racks: Every broker of the cluster and its rack.
        sizes: Bytes of a partition's log, by topic and id.
        min_insync: What `min.insync.replicas` is.
        down: Those of the brokers that are not up.
    """
    replicas: Counter[int] = Counter()
    leaders: Counter[int] = Counter()
    size: Counter[int] = Counter()
    spreads: Counter[int] = Counter()
    named = sorted({rack for rack in racks.values() if rack is not None})
    offline: dict[str, list[tuple[str, int]]] = {rack: [] for rack in named}
    read_only: dict[str, list[tuple[str, int]]] = {rack: [] for rack in named}
    for topic, placement in sorted(topics.items()):
        for partition, brokers in sorted(placement.items()):
            for broker in brokers:
                size[broker] += (sizes or {}).get((topic, partition), 0)
            replicas.update(brokers)
            leaders.update(brokers[:1])
            by_rack = Counter(racks.get(broker) for broker in brokers)
            spreads[sum(1 if rack is not None else count for rack, count in by_rack.items())] += 1
            for rack, count in by_rack.items():
                if rack is None:
                    continue
                left = len(brokers) - count
                if left == 0:
                    offline[rack].append((topic, partition))
                elif left < min_insync:
                    read_only[rack].append((topic, partition))
    return Quality(
        partitions=sum(map(len, topics.values())),
        replicas=replicas.total(),
        brokers=tuple(
            BrokerLoad(
                broker=broker,
                rack=racks.get(broker),
                replicas=replicas[broker],
                leaders=leaders[broker],
                size=size[broker],
                known=broker in racks and broker not in down,
            )
            for broker in sorted({*racks, *replicas})
        ),
        racks=tuple(
            RackLoad(
                rack=rack,
                brokers=sum(rack == other for broker, other in racks.items() if broker not in down),
                replicas=sum(count for broker, count in replicas.items() if racks.get(broker) == rack),
                leaders=sum(count for broker, count in leaders.items() if racks.get(broker) == rack),
                offline=tuple(offline[rack]),
                read_only=tuple(read_only[rack]),
            )
            for rack in named
        ),
        racks_per_partition=dict(sorted(spreads.items())) if named else {},
        min_insync=min_insync,
    )


def _spread(loads: list[int]) -> int:
    return max(loads, default=0) - min(loads, default=0)
