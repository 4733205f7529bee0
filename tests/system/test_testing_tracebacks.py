"""What pytest shows of an error of the test kit: the test's own line and the message, no line of the kit."""

from pathlib import Path

import pytest

from tests.support import plugin

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

FAILING = """
import pytest
from kafka import TopicPartition

import kafka_assignors.testing as kit
from kafka_assignors.testing._brokers.network import Network

NOBODY = ["127.0.0.1:1"]


@pytest.fixture
def no_cluster():
    return kit.Cluster(NOBODY, 1, "given")


@pytest.fixture(scope="module")
def group():
    with kit.ConsumerGroup(NOBODY, "orders", place="thread", timeout=0.1) as group:
        yield group


@pytest.fixture(scope="module")
def member(group):
    return group.join("m1", held=True)


@pytest.fixture
def network():
    with Network([1]) as network:
        yield network


lone_topic = kit.topic_factory_factory(cluster="no_cluster")
lone_group = kit.consumer_group_factory(cluster="no_cluster")
no_kafka = kit.kafka_cluster_factory(2)

def test_cluster(): kit.kafka_cluster(2).__enter__()
def test_cluster_fixture(no_kafka): ...
def test_broker(no_cluster): no_cluster.broker(1)
def test_fault(network): network.delay(-1)
def test_create(): kit.create_topic(NOBODY, 1, timeout=0.1)
def test_topic_factory(lone_topic): lone_topic(timeout=0.1)
def test_group_factory(lone_group): lone_group("orders", poll_ms=0).join()
def test_join_twice(group, member): group.join("m1")
def test_wait_for(group): group.wait_for(lambda: False)
def test_crash(member): member.crash()
def test_balanced(): kit.Timeline(()).assert_balanced()
def test_that(): kit.Timeline(()).assert_that(lambda _: ["wrong"], "a rule")
def test_draw(): kit.Timeline(()).draw("timeline.txt")
"""


def test_no_error_shows_a_line_of_the_kit(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_BOOTSTRAP", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    pytester.makepyfile(FAILING)
    result = pytester.runpytest_subprocess(*plugin.ALONE, *plugin.LOADED)
    count = FAILING.count("def test_")
    outcomes = result.parseoutcomes()
    assert (outcomes.get("passed", 0), outcomes["failed"] + outcomes["errors"]) == (0, count)
    assert [line for line in result.outlines if "kafka_assignors/" in line] == []
    result.stdout.fnmatch_lines(
        [
            ">*def test_balanced(): kit.Timeline(()).assert_balanced()",
            "E *no member was ever assigned anything: wait until the group is stable*",
        ]
    )
