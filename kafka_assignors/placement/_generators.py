"""Placements as `AdminUtils.assignReplicasToBrokers` made them (Kafka up to 3.9, on ZooKeeper).

Leaders go round the brokers from a start index. The followers of a partition stand at a distance from its
leader, the *shift*. It grows by one whenever the partition ids pass a multiple of the number of brokers. So
in each round another broker follows a leader first. Rack-awareness changes two things. The list of brokers
alternates over the racks, and a rack with a replica is skipped as long as another has none.
"""

import math

from kafka_assignors._wire.java.orders import string_order
from kafka_assignors._wire.java.random import JavaRandom
from kafka_assignors.placement._placement import Racks, check_racks, check_request


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

    As Kafka's `AdminUtils` does. If no broker has a rack, leaders go round the brokers by id.

    Args:
        partitions: How many there are to be.
        replication_factor: How many replicas each of them gets.
        racks: Broker id -> rack, None for all or for none of them.
        start_index: Where in the list the leader of partition 0 is, modulo the number of brokers.
        shift: How far the first follower of the first partition is from its leader, less one, times the
            number of racks. It is one more already where the first partition is a multiple of the number of
            brokers, but 0. Without one, a start index that is given is the shift, too, as in Kafka.
        first_partition: The id of the first one.
        seed: What is None is drawn as by `java.util.Random(seed)`, the start index first.

    Returns:
        Partition id -> brokers, the preferred leader first.

    Raises:
        PlacementError: There are too few brokers, only some have racks, or a number is out of range.
    """
    numbers = range(first_partition, first_partition + partitions)
    given = {"start_index": start_index, "shift": shift, "first_partition": first_partition}
    check_request(partitions, replication_factor, racks, **given)
    check_racks(racks)
    ring = BrokerRing(racks, replication_factor)
    size = len(racks)
    if start_index is None:
        random = JavaRandom(seed)
        start_index = random.next_int(size)
        shift = random.next_int(size) if shift is None else shift
    elif shift is None:
        shift = start_index
    return {
        partition: ring.replicas(partition, start_index, shift_at(partition, first_partition, shift, size))
        for partition in numbers
    }


def alternate(racks: Racks) -> list[int]:
    """The brokers in turn from each rack: racks in Java's order of strings, brokers of a rack by id.

    A rack that has run out of brokers is left out of the turns that follow. Without racks it is by id.
    """
    brokers_of: dict[str, list[int]] = {}
    for broker, rack in sorted(racks.items()):
        brokers_of.setdefault(rack or "", []).append(broker)
    places = [
        (turn, number, broker)
        for number, rack in enumerate(sorted(brokers_of, key=string_order))
        for turn, broker in enumerate(brokers_of[rack])
    ]
    return [broker for _, _, broker in sorted(places)]


class BrokerRing:
    """The brokers in the order in which leaders go round, and the replicas that Kafka picks from them.

    It walks round from where the shift points. Until all racks have a replica it takes the first broker of
    each rack that has none; then the next broker that has none. Without regard to racks, all are of one rack.
    Shifts that differ by a multiple of `modulus` give the same.
    """

    def __init__(self, racks: Racks, replication_factor: int) -> None:
        self.brokers = alternate(racks)
        self._replication_factor = replication_factor
        self._rack_of = [racks[broker] for broker in self.brokers]
        self._rack_count = len({*self._rack_of})
        others = max(1, len(racks) - 1)
        # What counts is the shift times the number of racks.
        self.modulus = others // math.gcd(self._rack_count, others)

    def replicas(self, partition: int, start: int, shift: int) -> list[int]:
        """One partition's replicas, the preferred leader first; `shift` is `shift_at` it."""
        size = len(self.brokers)
        leader = (partition + start) % size
        taken = {leader: self._rack_of[leader]}
        racks = {*taken.values()}
        place = leader + 1 + shift * self._rack_count % max(1, size - 1)
        while len(taken) < self._replication_factor:
            at = place % size
            rack = self._rack_of[at]
            if at not in taken and (rack not in racks or len(racks) == self._rack_count):
                taken[at] = rack
                racks.add(rack)
            place += 1
        return [self.brokers[at] for at in taken]


def shift_at(partition: int, first_partition: int, shift: int, brokers: int) -> int:
    """The shift at a partition: one more at each multiple of the number of brokers but 0.

    `shift` is that of the first partition of the same call.
    """
    return shift + partition // brokers - (max(first_partition, 1) - 1) // brokers
