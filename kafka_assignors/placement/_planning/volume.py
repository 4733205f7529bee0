"""How many bytes brokers send and get in a reassignment, and how long that takes under a throttle."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kafka_assignors.placement._planning.moves import ReplicaMove


class Volume(NamedTuple):
    """What a reassignment copies.

    Attributes:
        sent: Broker -> bytes that it sends, as the leader of what is copied.
        got: Broker -> bytes that it gets.
    """

    sent: dict[int, int]
    got: dict[int, int]

    @classmethod
    def of(
        cls,
        moves: Iterable[ReplicaMove],
        leaders: Mapping[tuple[str, int], int],
        sizes: Mapping[tuple[str, int], int],
    ) -> Volume:
        """The volume of these moves.

        Args:
            moves: The replicas to copy.
            leaders: (topic, partition) -> its leader, from which it is copied.
            sizes: (topic, partition) -> bytes of its log.
        """
        sent: Counter[int] = Counter()
        got: Counter[int] = Counter()
        for move in moves:
            partition = move.topic, move.partition
            got[move.target] += sizes.get(partition, 0)
            if partition in leaders:
                sent[leaders[partition]] += sizes.get(partition, 0)
        return cls(dict(sorted(sent.items())), dict(sorted(got.items())))

    @property
    def total(self) -> int:
        """Bytes to copy in all."""
        return sum(self.got.values())

    @property
    def most(self) -> tuple[int, str, int]:
        """The broker with the most to do: its id, "sends" or "gets", and the bytes; -1 if there is none."""
        both = [
            (size, -broker, way)
            for way, one in (("gets", self.got), ("sends", self.sent))
            for broker, size in one.items()
        ]
        size, broker, way = max(both, default=(0, 1, "gets"))
        return -broker, way, size

    def seconds(self, rate: int) -> float:
        """How long it takes at the least, if each broker sends and gets so many bytes per second."""
        return self.most[2] / rate
