"""Two topics joined by key in memory, as docs/how-to/join-two-topics.md shows, while members come and go."""

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import TopicPartition

from integration_tests.support.joining import joins, joins_on_asyncio
from integration_tests.support.patience import QUICK
from kafka_assignors.testing import Cluster, ConsumerGroup
from kafka_assignors.testing.events import Assigned, Exited, Lost, Noted, Revoked

PARTITIONS = 5
"""As many as let round robin separate the two topics, for one member or two more."""

Pairs = set[tuple[str, str]]


class Topics:
    """Impressions and clicks, produced in parts; some of each have no partner."""

    def __init__(self, cluster: Cluster, make_topic: Callable[[int], str]) -> None:
        self.names = [make_topic(PARTITIONS), make_topic(PARTITIONS)]
        self.counts: dict[TopicPartition, int] = {}
        self.sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._cluster = cluster

    def produce(self, part: int, keys: int = 60) -> None:
        producer: Any = Producer(self._cluster.access.librdkafka())
        for number in range(part * keys, (part + 1) * keys):
            for side, (topic, values) in enumerate(zip(self.names, self.sides, strict=True)):
                # Clicks come for the impressions of the part before, too.
                each = number - side * keys // 2
                if each < 0 or each % (7 + side) == 0:
                    continue
                values[str(each)] = f"{'ic'[side]}{each}"
                at = TopicPartition(topic, each % PARTITIONS)
                producer.produce(topic, values[str(each)], key=str(each), partition=at.partition)
                self.counts[at] = self.counts.get(at, 0) + 1
        assert producer.flush(60) == 0

    @property
    def joined(self) -> Pairs:
        """The join in one batch."""
        left, right = self.sides
        return {(left[key], right[key]) for key in left.keys() & right.keys()}


def pairs(group: ConsumerGroup) -> Pairs:
    return {(left, right) for event in group.timeline.of(Noted) for left, right in event.value}


def separated(group: ConsumerGroup) -> list[str]:
    """When partitions of one id were with two members."""
    owners: dict[TopicPartition, str] = {}
    found = []
    for event in group.timeline.events:
        match event:
            case Assigned():
                owners |= dict.fromkeys(event.partitions, event.member)
                found += [
                    f"{event.time:.3f} s: {one.partition} with {event.member} and {member}"
                    for one in event.partitions
                    for other, member in owners.items()
                    if other.partition == one.partition and member != event.member
                ]
            case Revoked() | Lost():
                for one in event.partitions:
                    owners.pop(one, None)
            case Exited():
                owners = {one: member for one, member in owners.items() if member != event.member}
            case _:
                pass
    return found


@pytest.fixture
def topics(kafka_cluster: Cluster, topic_factory: Callable[[int], str]) -> Topics:
    return Topics(kafka_cluster, topic_factory)


def live_through(group: ConsumerGroup, topics: Topics) -> None:
    """Members join, one crashes, all restart in turn, static ones as well; records come all the time."""
    topics.produce(0)
    group.join("a")
    group.join("b", settings=QUICK)
    group.wait_stable()
    topics.produce(1)
    group.join("c", instance_id="c")
    topics.produce(2)
    group.wait_stable()
    group.members["b"].crash()
    topics.produce(3)
    group.wait_stable()
    for name in ("a", "c"):
        group.members[name].restart()
        topics.produce(4 + "ac".index(name))
        group.wait_stable()
    group.join("d")
    group.join("e")
    topics.produce(6)
    group.wait_stable()
    group.wait_consumed(topics.counts)


@pytest.mark.parametrize(
    ("client", "strategy"),
    [
        pytest.param(joins, "copartitioned", id="kafka-python"),
        pytest.param(joins, "eager", id="kafka-python eager", marks=pytest.mark.slow),
        pytest.param(joins, "default", id="kafka-python by default", marks=pytest.mark.slow),
        pytest.param(joins_on_asyncio, "copartitioned", id="aiokafka"),
    ],
)
def test_a_join_in_memory_is_the_join_in_one_batch_whatever_happens_to_members(
    client: Any, strategy: str, topics: Topics, consumer_group: Callable[..., ConsumerGroup]
) -> None:
    group = consumer_group(topics.names, client=(client, {"strategy": strategy}))
    live_through(group, topics)
    group.wait_for(lambda: pairs(group) == topics.joined, what="all pairs")
    assert len(topics.joined) > 200
    assert separated(group) == []
    assert not group.timeline.double_assigned()


def test_two_rolling_restarts_from_range_lose_no_pairs(
    topics: Topics, consumer_group: Callable[..., ConsumerGroup]
) -> None:
    group = consumer_group(topics.names, client=(joins, {"strategy": "range"}))
    running = [group.join(name) for name in "ab"]
    protocols = [group.wait_stable().protocol]
    for part, strategy in enumerate(("both", "copartitioned")):
        for number, member in enumerate(running):
            topics.produce(2 * part + number)
            running[number] = member.restart(client=(joins, {"strategy": strategy}))
            protocols.append(group.wait_stable().protocol)
    assert protocols == ["range", "range", "copartitioned", "copartitioned", "copartitioned"]
    group.wait_consumed(topics.counts)
    group.wait_for(lambda: pairs(group) == topics.joined, what="all pairs")
    assert separated(group) == []


def test_round_robin_loses_pairs(topics: Topics, consumer_group: Callable[..., ConsumerGroup]) -> None:
    group = consumer_group(topics.names, client=(joins, {"strategy": "roundrobin"}))
    for name in "ab":
        group.join(name)
    group.wait_stable()
    topics.produce(0)
    group.wait_consumed(topics.counts)
    assert separated(group)
    assert pairs(group) < topics.joined
