"""How many bytes brokers send and get in a reassignment, and how long that takes under a throttle.

A broker that replicates under a quota looks at the average rate before it fetches, and then fetches all that
a request may bring. What was fetched is forgotten after the quota's window. So a fetch passes at once, and
another one after each window, however low the quota is.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, Self

from kafka_assignors.placement._planning.moves import ReplicaMove

_FETCH_OF_PARTITION: Final = 1 << 20  # replica.fetch.max.bytes
_FETCH: Final = 10 << 20  # replica.fetch.response.max.bytes


@dataclass(frozen=True, slots=True)
class Volume:
    """What a reassignment copies."""

    WINDOW_SECONDS: ClassVar = 11
    """After which a quota forgets: ``replica.quota.window.num`` of ``replica.quota.window.size.seconds``."""

    sent: dict[int, int]  # broker -> bytes that it sends as a leader
    got: dict[int, int]  # broker -> bytes that it gets
    sent_at_once: dict[int, int]  # bytes of these that pass with one fetch of each follower, by default
    got_at_once: dict[int, int]  # bytes of these that pass with one fetch from each leader

    @classmethod
    def of(
        cls,
        moves: Iterable[ReplicaMove],
        leaders: Mapping[tuple[str, int], int],
        sizes: Mapping[tuple[str, int], int],
    ) -> Self:
        sent, got, sent_at_once, got_at_once = Counter[int](), Counter[int](), Counter[int](), Counter[int]()
        fetches: Counter[tuple[int | None, int]] = Counter()
        for move in moves:
            partition = move.topic, move.partition
            leader, size = leaders.get(partition), sizes.get(partition, 0)
            got[move.target] += size
            if leader is not None:
                sent[leader] += size
            fetches[leader, move.target] += min(size, _FETCH_OF_PARTITION)
        for (leader, target), size in fetches.items():
            got_at_once[target] += min(size, _FETCH)
            if leader is not None:
                sent_at_once[leader] += min(size, _FETCH)
        return cls(*(dict(sorted(one.items())) for one in (sent, got, sent_at_once, got_at_once)))

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
        """How long it takes at the least, if each broker has a quota of so many bytes per second each way."""
        both = ((self.sent, self.sent_at_once), (self.got, self.got_at_once))
        return max(
            (
                (size - at_once[broker]) / max(rate, at_once[broker] / self.WINDOW_SECONDS)
                for sizes, at_once in both
                for broker, size in sizes.items()
            ),
            default=0.0,
        )

    def passes(self, rate: int) -> int:
        """Bytes that pass in each window for the broker with the most to do; 0 if the rate allows as much."""
        broker, way, _ = self.most
        at_once = (self.sent_at_once if way == "sends" else self.got_at_once).get(broker, 0)
        return at_once if at_once > rate * self.WINDOW_SECONDS else 0
