"""How many partitions topics had, as far as the cluster was asked."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple, Self

_ALWAYS = -(2**63)


class SeenTopic(NamedTuple):
    """A topic, and when the cluster had it so; one that stayed as it was is not noted again.

    The id is as Java prints a Uuid, and empty of brokers before 2.8. A topic that is gone has 0 partitions.
    `seen` is 1970 until it is noted.
    """

    topic: str
    topic_id: str
    partitions: int
    seen: datetime = datetime.fromtimestamp(0, UTC)


class TopicsSeen:
    """The number of partitions of topics over time.

    Each topic has a list of since when, in microseconds since 1970, it has had so many; 0 for none any more.
    The list ascends in time.
    """

    def __init__(self, counts: Mapping[str, Sequence[tuple[int, int]]]) -> None:
        self._counts = {topic: tuple(seen) for topic, seen in counts.items()}

    @classmethod
    def always(cls, counts: Mapping[str, int]) -> Self:
        """Topics that never changed."""
        return cls({topic: [(_ALWAYS, count)] for topic, count in counts.items()})

    @classmethod
    def of(cls, seen: Iterable[tuple[str, int, int]]) -> Self:
        """What captures saw: a topic, since when, and how many partitions; 0 where it was gone."""
        counts: dict[str, list[tuple[int, int]]] = {}
        for topic, since_us, count in sorted(seen, key=lambda one: one[1]):
            counts.setdefault(topic, []).append((since_us, count))
        return cls(counts)

    def count(self, topic: str, time_us: int) -> int:
        """How many partitions a topic had, by what was seen last until then; 0 if it was not seen."""
        seen = self._counts.get(topic, ())
        after = bisect_right(seen, time_us, key=lambda one: one[0])
        return seen[after - 1][1] if after else 0


def seen_and_names(topics: Sequence[SeenTopic]) -> tuple[TopicsSeen, dict[str, str]]:
    """An archive's topics, as `Archive.topics` gives them: their partitions over time, and names by id."""
    seen = ((one.topic, round(one.seen.timestamp() * 1e6), one.partitions) for one in topics)
    return TopicsSeen.of(seen), {one.topic_id: one.topic for one in topics}
