"""Topics and consumer groups on the session's cluster, a new one for each test."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import pytest
from confluent_kafka import KafkaException

from kafka_assignors.testing import AssignorSpec, Cluster, ConsumerGroup, create_topic, delete_topic

_GROUPS: pytest.StashKey[list[ConsumerGroup]] = pytest.StashKey()


@pytest.fixture
def topic_factory(kafka_cluster: Cluster) -> Iterator[Callable[..., str]]:
    """Makes topics: topic_factory(partitions, **create_topic's other arguments) -> the topic's name."""
    made: list[str] = []

    def make(partitions: int = 6, **settings: Any) -> str:
        made.append(create_topic(kafka_cluster.bootstrap_servers, partitions, **settings))
        return made[-1]

    yield make
    for name in made:
        # The test may have deleted it, or have ended the cluster.
        with suppress(KafkaException, TimeoutError):
            delete_topic(kafka_cluster.bootstrap_servers, name, timeout=5)


@pytest.fixture
def topic(topic_factory: Callable[..., str]) -> str:
    """A topic of six partitions."""
    return topic_factory(6)


@pytest.fixture
def consumer_group(
    request: pytest.FixtureRequest, kafka_cluster: Cluster
) -> Iterator[Callable[..., ConsumerGroup]]:
    """Makes groups: consumer_group(topics, assignors, **ConsumerGroup's other arguments).

    Their members are killed when the test ends. If it fails, its report tells what happened in the groups.
    """
    groups = request.node.stash.setdefault(_GROUPS, [])
    with ExitStack() as stack:

        def make(
            topics: str | list[str], assignors: Sequence[AssignorSpec], **settings: Any
        ) -> ConsumerGroup:
            group = ConsumerGroup(kafka_cluster.bootstrap_servers, topics, assignors, **settings)
            groups.append(stack.enter_context(group))
            return group

        yield make


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the timelines of a failed test's groups, and what their members logged, to its report."""
    report = yield
    if report.when == "call" and report.failed:
        for group in item.stash.get(_GROUPS, []):
            report.sections.append((f"timeline of {group.group_id}", group.timeline.describe()))
            report.sections += [
                (f"log of {member.name} in {group.group_id}", log)
                for member in group.members.values()
                if (log := member.log_tail())
            ]
    return report
