"""What most groups under test need."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kafka_assignors.testing import Cluster, ConsumerGroup, Load


@dataclass(frozen=True)
class Scene:
    """A topic of six partitions, and groups that read it."""

    cluster: Cluster
    topic: str
    make_group: Callable[..., ConsumerGroup]

    def group(self, *assignors: Any, **how: Any) -> ConsumerGroup:
        return self.make_group(self.topic, *assignors, **how)

    def load(self, rate: int = 100) -> Load:
        return Load(self.cluster, self.topic, rate=rate)

    def records(self, group: ConsumerGroup, count: int, rate: int = 50) -> Load:
        """A load that has ended, of more records than that."""
        with self.load(rate) as load:
            group.wait_for(lambda: sum(load.produced.values()) > count, what="records")
            load.stop()
        return load


def live_through(group: ConsumerGroup, load: Load, *, quick: Mapping[str, Any] | None = None) -> list[float]:
    """Members join, crash, freeze, thaw, leave and come back, and consume all; when they had got over the
    crash, and when over the freeze. Those that crash and freeze have settings of their own.
    """
    for name in "abc":
        group.join(name, settings=None if name == "c" else quick)
    assert sizes(group) == {"a": 2, "b": 2, "c": 2}
    group.members["b"].crash()
    assert sizes(group) == {"a": 3, "c": 3}
    over = [group.timeline.events[-1].time]
    group.members["a"].freeze()
    assert sizes(group) == {"c": 6}
    over.append(group.timeline.events[-1].time)
    group.members["a"].thaw()
    assert sizes(group) == {"a": 3, "c": 3}
    group.members["c"].leave()
    assert sizes(group) == {"a": 6}
    group.members["a"].restart()
    assert sizes(group) == {"a.2": 6}
    load.stop()
    group.wait_consumed(load)
    return over


def more(load: Load, records: int) -> Callable[[], bool]:
    """Whether so many records are produced beside those that are by now."""
    before = sum(load.produced.values())
    return lambda: sum(load.produced.values()) >= before + records


def sizes(group: ConsumerGroup, **how: Any) -> dict[str, int]:
    """How many partitions members have, once the group is stable."""
    return {name: len(owned) for name, owned in group.wait_stable(**how).assignments.items()}


def moved_for_nothing(before: Mapping[str, frozenset[Any]], after: Mapping[str, frozenset[Any]]) -> int:
    """Partitions that members who stayed gave up while they got others."""
    return sum(
        min(len(before[name] - after[name]), len(after[name] - before[name]))
        for name in before.keys() & after.keys()
    )
