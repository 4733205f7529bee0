"""What KRaft's striped placer drew, read back from a placement that it made.

See `kafka_assignors.placement._striped` for what it does. In its first round, of as many partitions as there
are brokers, racks and brokers are in order, and only where they began is unknown. In every later round their
order is unknown, too, but fixed. Each place among the racks belongs to one rack, and each place in a rack to
one broker. Brokers are taken to have been unfenced.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

from kafka_assignors._wire.java.orders import string_order
from kafka_assignors.placement._inference.shifts import Row, Run
from kafka_assignors.placement._placement import Racks

Rack = str | None

_PASSED = -1


@dataclass(slots=True)
class _Brokers:
    """The brokers of one rack, as far as their order is known."""

    ids: Sequence[int]  # ascending
    places: dict[int, int] = field(default_factory=dict)  # place in the rack's order of this round -> broker
    epoch: int = 0  # of the last look: the partition's number in its round
    looks: int = 0  # brokers taken in that epoch
    offset: int = 0  # the place of the epoch's first broker

    def copy(self) -> Self:
        return replace(self, places=dict(self.places))

    def turn_to(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch, self.looks, self.offset = epoch, 0, (self.offset + 1) % len(self.ids)

    @property
    def spent(self) -> bool:
        """Whether all were taken in this epoch."""
        return self.looks >= len(self.ids)

    def take(self, broker: int, *, in_order: bool) -> bool:
        """Take the next broker; whether it can be this one."""
        count = len(self.ids)
        place = (self.looks + self.offset) % count
        self.looks += 1
        if in_order and not self.places:
            behind = self.ids.index(broker) - place
            self.places = {at: self.ids[(at + behind) % count] for at in range(count)}
        if place not in self.places and broker not in self.places.values():
            self.places[place] = broker
        return self.places.get(place) == broker


@dataclass(slots=True)
class _Hypothesis:
    """What may have been drawn, as far as it was looked at."""

    racks: dict[Rack, _Brokers]
    at: dict[int, Rack]  # place among the racks in this round -> rack
    offset: int  # the place that the next partition begins with
    epoch: int = 0  # the partition's number in its round
    in_order: bool = True  # in the first round

    def copy(self) -> Self:
        racks = {rack: brokers.copy() for rack, brokers in self.racks.items()}
        return replace(self, racks=racks, at=dict(self.at))

    def shuffle(self) -> None:
        """Begin a round in an order of which nothing is known."""
        self.at, self.epoch, self.in_order = {}, 0, False
        for brokers in self.racks.values():
            brokers.places = {}

    def with_rack(self, place: int, broker_rack: Rack) -> Iterator[Self]:
        """The ways in which a place may be some rack's: the broker's, or one that is spent and is passed."""
        if place in self.at:
            yield self
            return
        known = {*self.at.values()}
        for rack, brokers in self.racks.items():
            if rack in known:
                continue
            spent = brokers.epoch == self.epoch and brokers.spent
            if spent or rack == broker_rack:
                other = self.copy()
                other.at[place] = rack
                yield other

    def take(
        self, replicas: Sequence[tuple[int, Rack]], place: int, led: int | None = None
    ) -> Iterator[Self]:
        """Take the replicas one after the other, rack by rack.

        Followers begin where the leader did, and pass over the place `led` of its rack once.
        """
        if not replicas:
            yield self
            return
        following = (place + 1) % len(self.racks)
        if place == led:
            yield from self.take(replicas, following, _PASSED)
            return
        (broker, rack), *others = replicas
        for one in self.with_rack(place, rack):
            brokers = one.racks[one.at[place]]
            brokers.turn_to(one.epoch)
            if brokers.spent:
                yield from one.take(replicas, following, led)
            elif one.at[place] == rack and brokers.take(broker, in_order=one.in_order):
                yield from one.take(others, *((one.offset, place) if led is None else (following, led)))

    def place(self, replicas: Sequence[tuple[int, Rack]], round_length: int) -> Iterator[Self]:
        """The hypotheses in which the next partition can have these replicas."""
        base = self.copy()
        if base.epoch == round_length and round_length > 1:
            base.shuffle()
        for done in base.take(replicas, base.offset):
            done.epoch += 1
            done.offset = (done.offset + 1) % len(done.racks)
            yield done


def read_stripes(rows: Sequence[Row], begin: int, racks: Racks) -> Run:
    """Follow the rows from `begin` as far as one run of the placer can have made them."""
    names = sorted({*racks.values()}, key=lambda rack: (rack is not None, string_order(rack or "")))
    members: dict[Rack, list[int]] = {rack: [] for rack in names}
    for broker, rack in sorted(racks.items()):
        members[rack].append(broker)
    leader = rows[begin][1][0]
    if leader not in racks:
        return Run(begin, 0)
    start = names.index(racks[leader])
    first = _Hypothesis({rack: _Brokers(ids) for rack, ids in members.items()}, dict(enumerate(names)), start)
    hypotheses = [first]
    offsets: dict[Rack, int] = {}
    for end in range(begin, len(rows)):
        replicas = [(broker, racks[broker]) for broker in rows[end][1] if broker in racks]
        following = (
            [after for hypothesis in hypotheses for after in hypothesis.place(replicas, len(racks))]
            if len(replicas) == len(rows[begin][1])
            else []
        )
        if not following:
            return Run(end, start, offsets=offsets)
        hypotheses = following
        if hypotheses[0].in_order:
            offsets = {
                rack: brokers.ids.index(brokers.places[0])
                for rack, brokers in hypotheses[0].racks.items()
                if brokers.places
            }
    return Run(len(rows), start, offsets=offsets)
