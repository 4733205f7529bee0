"""Placements as KRaft's controller makes them: Kafka's `StripedReplicaPlacer` (of kafka-metadata 4.3.1).

Replicas go round the racks, and in each rack round its brokers, unfenced ones first; a leader is always
unfenced. At which rack this begins, and at which broker of each, are *offsets* drawn at random for each call.
One partition's placement is an *epoch*: with it the racks begin one further on, and so do the brokers of a
rack. After as many epochs as there are unfenced brokers all orders are shuffled, for the stripes not to
repeat.
"""

from collections.abc import Collection

from kafka_assignors._wire.java.orders import hash_order, string_hash, string_order
from kafka_assignors._wire.java.random import JavaRandom
from kafka_assignors.placement._placement import PlacementError, Racks, check_request


def place_striped(
    partitions: int,
    replication_factor: int,
    racks: Racks,
    *,
    fenced: Collection[int] = (),
    seed: int | None = None,
) -> dict[int, list[int]]:
    """Place partitions in stripes over racks and brokers.

    Racks are in the order in which the controller lists the brokers: which racks begin where depends on it.
    Brokers without a rack share one that has no name. Fenced ones never lead, and come last in their rack.
    All is drawn as by `java.util.Random(seed)`; by chance if that is None.
    """
    check_request(partitions, replication_factor, racks)
    if len({*fenced}) == len(racks):
        raise PlacementError(
            f"all {len(racks)} brokers are fenced, and a leader must not be: leave at least one out of fenced"
        )
    rack_list = RackList(racks, fenced, JavaRandom(seed))
    return {partition: rack_list.place(replication_factor) for partition in range(partitions)}


class BrokerList:
    """Brokers of one rack that are handed out in turn, each at most once in an epoch.

    Its offset is drawn; nothing is drawn for an empty one.
    """

    def __init__(self, brokers: list[int], random: JavaRandom) -> None:
        self._brokers = brokers
        self._offset = random.next_int(len(brokers)) if brokers else 0
        self._given = 0  # in this epoch
        self._epoch = 0

    def next(self, epoch: int) -> int | None:
        """The next broker, or None if all were handed out in this epoch."""
        size = len(self._brokers)
        if epoch != self._epoch and size:
            self._epoch = epoch
            self._given = 0
            self._offset = (self._offset + 1) % size
        if self._given == size:
            return None
        broker = self._brokers[(self._offset + self._given) % size]
        self._given += 1
        return broker

    def shuffle(self, random: JavaRandom) -> None:
        """Change the order; offset, epoch and how many were handed out stay as they are."""
        random.shuffle(self._brokers)


class RackList:
    """The racks of a cluster, from which one partition after another takes its replicas."""

    def __init__(self, racks: Racks, fenced: Collection[int], random: JavaRandom) -> None:
        fenced = frozenset(fenced)
        brokers_of: dict[str | None, list[int]] = {}
        for broker, rack in racks.items():
            brokers_of.setdefault(rack, []).append(broker)
        self._random = random
        self._fenced: dict[str | None, BrokerList] = {}
        self._unfenced: dict[str | None, BrokerList] = {}
        # Java draws for the racks in the order of its hash map; they take turns in that of their names.
        for name in hash_order(brokers_of, string_hash):
            by_id = sorted(brokers_of[name])
            self._fenced[name] = BrokerList([one for one in by_id if one in fenced], random)
            self._unfenced[name] = BrokerList([one for one in by_id if one not in fenced], random)
        self._turns = sorted(
            brokers_of, key=lambda name: (name is not None, b"" if name is None else string_order(name))
        )
        self._offset = random.next_int(len(self._turns))
        self._leaders = len(racks) - len(fenced)
        self._epoch = 0

    def place(self, replication_factor: int) -> list[int]:
        # With a single unfenced broker an epoch of 0 again would find it handed out already.
        if self._epoch == self._leaders > 1:
            self._shuffle()
            self._epoch = 0
        self._offset %= len(self._turns)
        leaders_turn, leader = self._lead()
        replicas = [leader]
        turn = self._offset
        skip_leaders_rack = True
        while len(replicas) < replication_factor:
            if turn == leaders_turn and skip_leaders_rack:
                skip_leaders_rack = False
            elif (broker := self._next(self._turns[turn])) is not None:
                replicas.append(broker)
            turn = (turn + 1) % len(self._turns)
        self._epoch += 1
        self._offset += 1
        return replicas

    def _lead(self) -> tuple[int, int]:
        """The turn and the broker of the first rack, from the offset on, with an unfenced broker to give."""
        turn = self._offset
        while (broker := self._unfenced[self._turns[turn]].next(self._epoch)) is None:
            turn = (turn + 1) % len(self._turns)
        return turn, broker

    def _next(self, rack: str | None) -> int | None:
        """The rack's next broker, a fenced one if need be."""
        broker = self._unfenced[rack].next(self._epoch)
        return self._fenced[rack].next(self._epoch) if broker is None else broker

    def _shuffle(self) -> None:
        self._random.shuffle(self._turns)
        for rack, unfenced in self._unfenced.items():
            self._fenced[rack].shuffle(self._random)
            unfenced.shuffle(self._random)
