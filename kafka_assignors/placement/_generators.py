"""Placements as `AdminUtils.assignReplicasToBrokers` made them (Kafka up to 3.9, on ZooKeeper).

Leaders go round the brokers from a start index. The followers of a partition stand at a distance from its
leader, the *shift*. It grows by one whenever the partition ids pass a multiple of the number of brokers. So
in each round another broker follows a leader first. Rack-awareness changes two things. The list of brokers
alternates over the racks, and a rack with a replica is skipped as long as another has none.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kafka_assignors._wire.java.orders import string_order
from kafka_assignors._wire.java.random import JavaRandom
from kafka_assignors.placement._checks import check_brokers, check_not_negative, check_topic
from kafka_assignors.placement._placement import PlacementError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kafka_assignors.placement._placement import Racks


def place_rack_unaware(
    partitions: int,
    replication_factor: int,
    brokers: Sequence[int],
    *,
    start_index: int | None = None,
    shift: int | None = None,
    first_partition: int = 0,
    seed: int | None = None,
) -> dict[int, list[int]]:
    """Place partitions on brokers without regard to racks.

    Args:
        partitions: How many partitions to place.
        replication_factor: The replicas of each.
        brokers: Their ids, in the order in which leaders go round; Kafka's own callers sort them.
        start_index: Where in the list the leader of partition 0 is; taken modulo the number of brokers. None
            draws it.
        shift: How far the first follower of the first partition is from its leader, less one; taken modulo
            the number of brokers less one. None is the start index if that is given, as in Kafka, else it is
            drawn. It is one more already where the first partition is a multiple of the number of brokers,
            but 0.
        first_partition: The id of the first partition that is placed, as when a topic is expanded.
        seed: What is drawn is drawn as by `java.util.Random(seed)`, the start index first; None: by chance.

    Returns:
        Partition id -> broker ids, the preferred leader first; ascending partitions.

    Raises:
        PlacementError: The topic or the brokers cannot be, or there are fewer brokers than replicas.
    """
    _check_request(partitions, replication_factor, start_index, shift, first_partition)
    check_brokers(brokers, replication_factor)
    start, first_shift = _start_and_shift(start_index, shift, len(brokers), seed)
    return _place(
        OrderedBrokers(brokers, replication_factor), partitions, first_partition, start, first_shift
    )


def place_rack_aware(
    partitions: int,
    replication_factor: int,
    racks: Racks,
    *,
    start_index: int | None = None,
    shift: int | None = None,
    first_partition: int = 0,
    seed: int | None = None,
) -> dict[int, list[int]]:
    """Place partitions on brokers, the replicas of each on as many racks as there are replicas, or racks.

    Args:
        partitions: How many partitions to place.
        replication_factor: The replicas of each.
        racks: Each broker's rack; its order does not matter. If no broker has a rack, this is
            `place_rack_unaware` on the sorted brokers, as in Kafka.
        start_index: Where in the alternated list (see `alternate`) the leader of partition 0 is.
        shift: As in `place_rack_unaware`; here it is multiplied by the number of racks.
        first_partition: The id of the first partition that is placed, as when a topic is expanded.
        seed: What is drawn is drawn as by `java.util.Random(seed)`, the start index first; None: by chance.

    Returns:
        Partition id -> broker ids, the preferred leader first; ascending partitions.

    Raises:
        PlacementError: As in `place_rack_unaware`, or only some brokers have a rack.
    """
    _check_request(partitions, replication_factor, start_index, shift, first_partition)
    check_brokers(racks, replication_factor)
    if all(rack is None for rack in racks.values()):
        return place_rack_unaware(
            partitions,
            replication_factor,
            sorted(racks),
            start_index=start_index,
            shift=shift,
            first_partition=first_partition,
            seed=seed,
        )
    brokers = AlternatedBrokers(racks, replication_factor)
    start, first_shift = _start_and_shift(start_index, shift, len(racks), seed)
    return _place(brokers, partitions, first_partition, start, first_shift)


def alternate(racks: Racks) -> list[int]:
    """The brokers in turn from each rack: racks in Java's order of strings, brokers of a rack by id.

    Args:
        racks: Each broker's rack.

    Returns:
        All brokers. A rack that has run out of brokers is left out of the turns that follow.

    Raises:
        PlacementError: Some brokers have no rack.
    """
    brokers_of: dict[str, list[int]] = {}
    for broker, rack in sorted(_complete(racks).items()):
        brokers_of.setdefault(rack, []).append(broker)
    places = [
        (turn, number, broker)
        for number, rack in enumerate(sorted(brokers_of, key=string_order))
        for turn, broker in enumerate(brokers_of[rack])
    ]
    return [broker for _, _, broker in sorted(places)]


class OrderedBrokers:
    """The brokers of a cluster in order, and the replicas that `place_rack_unaware` picks from them.

    Shifts that differ by a multiple of `modulus` give the same.
    """

    def __init__(self, brokers: Sequence[int], replication_factor: int) -> None:
        self.brokers = brokers
        self.modulus = max(1, len(brokers) - 1)
        self._replication_factor = replication_factor

    def replicas(self, partition: int, start: int, shift: int) -> list[int]:
        """One partition's replicas, the preferred leader first; `shift` is `shift_at` it."""
        size = len(self.brokers)
        leader = (partition + start) % size
        behind = range(shift, shift + self._replication_factor - 1)
        return [
            self.brokers[leader],
            *(self.brokers[(leader + 1 + place % (size - 1)) % size] for place in behind),
        ]


class AlternatedBrokers:
    """The rack-alternated list of a cluster, and the replicas that `place_rack_aware` picks from it.

    Kafka walks round the list from where the shift points. Until all racks have a replica it takes the first
    broker of each rack that has none; then the next one that has no replica. So that no walk is long, however
    lopsided the racks, the first brokers of the racks after each place are looked up, not walked to.
    """

    def __init__(self, racks: Racks, replication_factor: int) -> None:
        self.brokers = alternate(racks)
        self._rack_of = [racks[broker] for broker in self.brokers]
        self._rack_count = len(set(self._rack_of))
        others = max(1, len(racks) - 1)
        # What counts is the shift times the number of racks.
        self.modulus = others // math.gcd(self._rack_count, others)
        self._replication_factor = replication_factor
        self._first_of_racks = self._find_first_of_racks()

    def _find_first_of_racks(self) -> list[list[int]]:
        """For each place: the places, from it on round the list, where a rack is met that was not met before.

        Of each, only as many as there are replicas: one may be of the leader's rack.
        """
        size = len(self.brokers)
        found: list[list[int]] = [[]] * size
        first: list[int] = []
        for step in reversed(range(2 * size)):  # Twice, for the first time round does not know what follows.
            place = step % size
            others = (other for other in first if self._rack_of[other] != self._rack_of[place])
            first = [place, *others][: self._replication_factor]
            found[place] = first
        return found

    def replicas(self, partition: int, start: int, shift: int) -> list[int]:
        """One partition's replicas, the preferred leader first; `shift` is `shift_at` it."""
        size = len(self.brokers)
        leader = (partition + start) % size
        places = [leader]
        if self._replication_factor > 1:
            place = (leader + 1 + shift * self._rack_count % (size - 1)) % size
            rack = self._rack_of[leader]
            places += (other for other in self._first_of_racks[place] if self._rack_of[other] != rack)
            del places[self._replication_factor :]
            if len(places) > 1:
                place = places[-1]
            taken = set(places)
            while len(places) < self._replication_factor:
                if place not in taken:
                    places.append(place)
                    taken.add(place)
                place = (place + 1) % size
        return [self.brokers[place] for place in places]


def shift_at(partition: int, first_partition: int, shift: int, brokers: int) -> int:
    """The shift at a partition: one more at each multiple of the number of brokers but 0.

    `shift` is that of the first partition of the same call.
    """
    return shift + partition // brokers - (max(first_partition, 1) - 1) // brokers


def _place(
    brokers: OrderedBrokers | AlternatedBrokers, partitions: int, first: int, start: int, shift: int
) -> dict[int, list[int]]:
    return {
        partition: brokers.replicas(partition, start, shift_at(partition, first, shift, len(brokers.brokers)))
        for partition in range(first, first + partitions)
    }


def _start_and_shift(
    start_index: int | None, shift: int | None, brokers: int, seed: int | None
) -> tuple[int, int]:
    if start_index is not None:
        return start_index, start_index if shift is None else shift
    random = JavaRandom(seed)
    start = random.next_int(brokers)
    return start, random.next_int(brokers) if shift is None else shift


def _complete(racks: Racks) -> Mapping[int, str]:
    """The racks, when every broker has one."""
    complete = {broker: rack for broker, rack in racks.items() if rack is not None}
    if len(complete) < len(racks):
        without = ", ".join(str(broker) for broker in sorted(racks.keys() - complete.keys()))
        raise PlacementError(
            f"no rack is known of broker {without}, but of others: rack-aware placement needs all of them; "
            "give the missing racks, or use place_rack_unaware"
        )
    return complete


def _check_request(
    partitions: int, replication_factor: int, start_index: int | None, shift: int | None, first_partition: int
) -> None:
    check_topic(partitions, replication_factor, first_partition)
    check_not_negative("start_index", start_index)
    check_not_negative("shift", shift)
