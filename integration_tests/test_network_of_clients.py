"""Members of each client behind a network that is late, cut, or takes what they send and is silent."""

from collections.abc import Callable, Mapping
from typing import Any, Final

import pytest

from integration_tests.support.scene import more, sizes
from kafka_assignors.testing import Cluster, ConsumerGroup, Load
from kafka_assignors.testing.events import CutOff, Reconnected

pytestmark = pytest.mark.slow

CLIENTS: Final = ["aiokafka", "confluent-kafka", "java", "kafka-python"]

PATIENCE: Final = 240.0
"""Seconds. A client that nobody answers gives its connection up when its requests have timed out."""

SESSION_MS: Final = 10_000
"""On any machine: a member of kafka-python that is cut off has an error each 0.2 s, and ends after 100."""

REQUESTS_TIME_OUT: Final[Mapping[str, Mapping[str, Any]]] = {
    "aiokafka": {"request_timeout_ms": 5000},
    "confluent-kafka": {"socket_timeout_ms": 5000},
    "java": {"request_timeout_ms": 5000, "default_api_timeout_ms": 5000},
    "kafka-python": {"request_timeout_ms": 5000},
}


@pytest.fixture
def kafka_cluster(proxied_broker: Cluster) -> Cluster:
    """Topics of this module are on it."""
    return proxied_broker


@pytest.fixture
def group_of(kafka_cluster: Cluster, topic_factory: Callable[..., str]) -> Callable[[str], ConsumerGroup]:
    """Makes a group of a client's members a and b, which reach the broker by the network."""

    def make(client: str) -> ConsumerGroup:
        settings = {"session_timeout_ms": SESSION_MS, **REQUESTS_TIME_OUT[client]}
        access = kafka_cluster.network.access
        return ConsumerGroup(
            access, topic_factory(6), ["range"], client=client, settings=settings, timeout=PATIENCE
        )

    return make


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("fault", ["drop", "half_open"])
def test_a_member_that_is_cut_off_is_expelled_and_comes_back(
    client: str, fault: str, kafka_cluster: Cluster, group_of: Callable[[str], ConsumerGroup]
) -> None:
    network = kafka_cluster.network
    with group_of(client) as group, Load(kafka_cluster, str(group.topics), rate=100) as load:
        a, b = group.join("a"), group.join("b")
        before = group.wait_stable(expect={"a": 3, "b": 3})
        group.wait_for(lambda: len(group.timeline.deliveries) == 6, what="records of each partition")
        with getattr(network, fault)(client="b"):
            alone = group.wait_stable(members=[a], expect={"a": 6})
            assert alone.generation > before.generation
            group.wait_for(more(load, 50), what="the load to go on")
            group.wait_consumed(load)
            assert b.running
        assert sizes(group) == {"a": 3, "b": 3}
        load.stop()
        group.wait_consumed(load)
    group.timeline.assert_all_consumed(load.produced)
    assert [(one.kind, one.member) for one in group.timeline.of(CutOff, Reconnected)] == [
        ("cut off", "b"),
        ("reconnected", "b"),
    ]
    limit = f"session_timeout_ms={SESSION_MS}"
    missed = f"generation {alone.generation}, without it, was there at"
    with pytest.raises(AssertionError, match=f"b was cut off at .* s, longer than {limit}; {missed}"):
        group.timeline.assert_paused_at_most(1500, by="records")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_member_whose_network_is_slow_stays(
    client: str, kafka_cluster: Cluster, group_of: Callable[[str], ConsumerGroup]
) -> None:
    with group_of(client) as group, Load(kafka_cluster, str(group.topics), rate=100) as load:
        for name in "ab":
            group.join(name)
        before = group.wait_stable(expect={"a": 3, "b": 3})
        with kafka_cluster.network.delay(0.2, client="b"):
            group.wait_for(more(load, 200), what="the load to go on")
            load.stop()
            group.wait_consumed(load)
        group.timeline.assert_no_rebalance(after=before.generation)
