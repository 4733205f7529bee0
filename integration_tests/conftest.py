"""What many tests here begin with: clusters by their shape, each started once in a run.

Topics and groups come from the plug-in, and so does `kafka_cluster`, one broker that wants no password. A
cluster of another shape stops after the last test that takes it: idle brokers take time from the others.
"""

import asyncio
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from integration_tests.support.aio_members import Members
from integration_tests.support.clusters import own_cluster
from integration_tests.support.scene import Scene
from kafka_assignors._cluster.admin import Admin
from kafka_assignors.testing import Cluster, ConsumerGroup
from kafka_assignors.testing._plugin import TopicFactory
from tests.lab.chaos import BROKER_SETTINGS
from tests.support.kinds import SHAPES, fixtures_of

LEFT: pytest.StashKey[Counter[str]] = pytest.StashKey()
"""By shape, how many tests are still to come."""

RUNNING: pytest.StashKey[dict[str, ExitStack]] = pytest.StashKey()
"""By shape, what stops the cluster."""


def shape(name: str, nodes: int = 1, **more: Any) -> Callable[..., Iterator[Cluster]]:
    """Make the fixture of a cluster that starts once and stops when no test is left that uses it."""

    @pytest.fixture(scope="session", name=name)
    def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
        with ExitStack() as stack:
            pytestconfig.stash.setdefault(RUNNING, {})[name] = stack
            yield stack.enter_context(own_cluster(pytestconfig, nodes, **more))

    return cluster


# As many partitions of the groups' topic as brokers have by default, so that each leads some.
three_brokers = shape("three_brokers", 3, settings={"offsets.topic.num.partitions": 50})
# That tests kill, freeze and cut off. Who does so puts them in order again.
disturbed_brokers = shape("disturbed_brokers", 3, proxied=True)
# One that is never disturbed, behind a network that is.
proxied_broker = shape("proxied_broker", proxied=True)
# That are killed at random, and lose nothing that they acknowledged.
chaos_brokers = shape("chaos_brokers", 3, settings=BROKER_SETTINGS)
# That clients have to trust, that want a user and a password, and both.
tls_broker = shape("tls_broker", security="tls", proxied=True)
sasl_broker = shape("sasl_broker", security="sasl", proxied=True)
sasl_tls_broker = shape("sasl_tls_broker", security="sasl_tls", proxied=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    used = (name for item in session.items for name in fixtures_of(item) if name in SHAPES)
    session.config.stash[LEFT] = Counter(used)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Stop a cluster after the last test that uses it; around the test's second try, if it needs one."""
    result = yield
    for name in fixtures_of(item) & {*SHAPES}:
        left = item.config.stash[LEFT]
        left[name] -= 1
        if not left[name] and name in (running := item.config.stash.get(RUNNING, {})):
            stopped = pytest.CallInfo.from_call(running.pop(name).close, "teardown")
            if stopped.excinfo is not None:
                report = pytest.TestReport.from_item_and_call(item, stopped)
                item.ihook.pytest_runtest_logreport(report=report)
    return result


@pytest.fixture(scope="module")
def admin(kafka_cluster: Cluster) -> Iterator[Admin]:
    """A client of the cluster; modules about another shape have their own."""
    with Admin(kafka_cluster.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def scene(kafka_cluster: Cluster, topic: str, consumer_group: Callable[..., ConsumerGroup]) -> Scene:
    return Scene(kafka_cluster, topic, consumer_group)


@pytest.fixture
def group_id() -> str:
    """What no other group is called, or begins with."""
    return f"group-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def members(kafka_cluster: Cluster, topic: str) -> Members:
    """Makes consumers of aiokafka in one group."""
    return Members.on(kafka_cluster, topic)


@pytest.fixture
async def nothing_left() -> AsyncIterator[None]:
    """A coroutine's test leaves nothing running, and no exception that nobody heard."""
    unheard: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_debug(True)
    loop.set_exception_handler(lambda _, context: unheard.append(context))
    yield
    await asyncio.sleep(0)
    left = asyncio.all_tasks() - {asyncio.current_task()}
    assert not left, left
    assert not unheard, unheard


@pytest.fixture
def topic(topic_factory: TopicFactory) -> str:
    """A topic of six partitions."""
    return topic_factory(6)
