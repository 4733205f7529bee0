"""Clusters that want TLS, a user with a password, or both; test_reaching.py has what others are told."""

import contextlib
from typing import Any, get_args

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from kafka_assignors import RangeAssignor
from kafka_assignors.testing import Cluster, ConsumerGroup, Load, create_topic, delete_topic, grow_topic
from kafka_assignors.testing._brokers.credentials import Level
from kafka_assignors.testing._topics import admin_client, existing_partitions

PATIENCE = 60.0  # seconds


@pytest.fixture(scope="module", params=[level for level in get_args(Level) if level != "plaintext"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    running: Cluster = request.getfixturevalue(f"{request.param}_broker")
    return running


def test_a_group_of_every_client_runs_over_it(cluster: Cluster) -> None:
    topic = create_topic(cluster, 7)
    grow_topic(cluster, topic, 8)
    assert existing_partitions(admin_client(cluster))[topic] == [
        TopicPartition(topic, number) for number in range(8)
    ]
    group = ConsumerGroup(cluster, topic, ["range"], place="thread", timeout=PATIENCE)
    with group, Load(cluster, topic) as load:
        group.join("a", assignors=[RangeAssignor])
        group.join("b", client="confluent-kafka")
        group.join("c", client="aiokafka")
        group.join("d", client="java", place="process")
        group.wait_stable(expect=dict.fromkeys("abcd", 2))
        group.members["b"].leave()
        group.members["c"].leave()
        group.wait_stable(expect={"a": 4, "d": 4})
        group.wait_for(lambda: len(load.produced) == 8, what="a record of each partition")
        load.stop()
        group.wait_consumed(load)
    group.timeline.assert_never_owned_twice()
    delete_topic(cluster, topic)


def test_proxies_pass_it_on_and_see_clients_unless_it_is_encrypted(cluster: Cluster) -> None:
    network = cluster.network
    assert network.access.security == cluster.security
    client: Any = KafkaConsumer(**network.access.kafka_python(), client_id="seen")
    with contextlib.closing(client) as consumer:
        consumer.topics()
        assert (network.connections(client="seen") > 0) == (not cluster.security.encrypted)
        assert network.connections(broker=1) > 0


@pytest.mark.parametrize("cluster", ["sasl_tls"], indirect=True)
def test_a_restarted_broker_still_knows_its_user(cluster: Cluster) -> None:
    cluster.broker(1).restart(kill=True)
    cluster.wait_complete()
    KafkaAdminClient(**cluster.access.kafka_python(), bootstrap_timeout_ms=int(PATIENCE * 1000)).close()
    admin_client(cluster.access).list_topics(timeout=PATIENCE)
