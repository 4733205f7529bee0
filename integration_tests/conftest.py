"""What many tests here begin with: clusters by their shape, each started once in a process that runs tests.

Topics and groups come from the plug-in, and so does `kafka_cluster`, one broker that wants no password. Tests
that use another shape run one after the other in one process (`--dist loadgroup`), see the conftest above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration_tests.support.clusters import own_cluster
from kafka_assignors.testing import kafka_cluster_factory
from kafka_assignors.testing.chaos import BROKER_SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.testing import Cluster
    from kafka_assignors.testing._plugin import TopicFactory

# As many partitions of the groups' topic as brokers have by default, so that each leads some.
three_brokers = kafka_cluster_factory(3, settings={"offsets.topic.num.partitions": 50})


@pytest.fixture(scope="session")
def disturbed_brokers(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Three, behind proxies, that tests kill, freeze and cut off. Who does so puts them in order again."""
    with own_cluster(pytestconfig, 3, proxied=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def chaos_brokers(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """Three that are killed at random, and lose nothing that they acknowledged."""
    with own_cluster(pytestconfig, 3, settings=BROKER_SETTINGS) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def tls_broker(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """One that clients have to trust."""
    with own_cluster(pytestconfig, security="tls", proxied=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def sasl_broker(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """One that wants a user and a password."""
    with own_cluster(pytestconfig, security="sasl", proxied=True) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def sasl_tls_broker(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """One that wants both."""
    with own_cluster(pytestconfig, security="sasl_tls", proxied=True) as cluster:
        yield cluster


@pytest.fixture
def topic(topic_factory: TopicFactory) -> str:
    """A topic of six partitions."""
    return topic_factory(6)
