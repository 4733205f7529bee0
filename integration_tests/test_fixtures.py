"""The plug-in's fixtures under other names, on a cluster that wants encryption and a password."""

import pytest

from kafka_assignors.testing import (
    GroupFactory,
    TopicFactory,
    consumer_group_factory,
    kafka_cluster_factory,
    topic_factory_factory,
)
from kafka_assignors.testing._plugin import options

secure_cluster = kafka_cluster_factory(1, security="sasl_tls", scope="module")
secure_topic = topic_factory_factory(cluster="secure_cluster", partitions=4)
secure_group = consumer_group_factory(cluster="secure_cluster", assignors=["range"])


@pytest.fixture(scope="module", autouse=True)
def ours(pytestconfig: pytest.Config) -> None:
    if (given := options(pytestconfig).bootstrap) is not None:
        pytest.skip(f"the cluster at {given} is given: its security is not ours to choose")


def test_topics_and_groups_of_factories_reach_a_secure_cluster(
    secure_topic: TopicFactory, secure_group: GroupFactory
) -> None:
    group = secure_group(secure_topic(), members=2)
    assert group.wait_stable(expect={"m1": 2, "m2": 2}).protocol == "range"
    group.timeline.assert_balanced()


def test_a_group_of_a_factory_has_its_own_topic_there(secure_group: GroupFactory) -> None:
    group = secure_group(partitions=2, members=1)
    assert group.wait_stable(expect={"m1": 2}).generation == 1
