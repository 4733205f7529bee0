"""`--max-lag-seconds`: for how long records wait that a group has not committed."""

import json
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from kafka import KafkaProducer
from prometheus_client.parser import text_string_to_metric_families

from integration_tests.support.commands import run_command
from integration_tests.support.records import commit
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._cluster.groups import read_topics
from kafka_assignors.groups._lag_seconds import read_ages
from kafka_assignors.testing import Cluster, create_topic

PATIENCE = 60.0  # seconds
AGO = 5000  # seconds
SLACK = 300  # seconds that a slow machine may take


def produce_aged(cluster: Cluster, topic: str, partition: int, **settings: Any) -> None:
    """Ten records in one batch, the first written so long ago, each 100 s after the one before."""
    producer: Any = Producer({**cluster.access.librdkafka(), "linger.ms": 5000, **settings})
    transactional = "transactional.id" in settings
    if transactional:
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
    for number in range(10):
        written = round(1000 * (time.time() - AGO + 100 * number))
        producer.produce(topic, b"x", partition=partition, timestamp=written)
    if transactional:
        producer.commit_transaction(PATIENCE)
    assert producer.flush(PATIENCE) == 0


def test_the_age_is_that_of_the_first_record_from_the_commit_on(
    kafka_cluster: Cluster, admin: Admin, group_id: str
) -> None:
    topic = create_topic(kafka_cluster, 4)
    produce_aged(kafka_cluster, topic, 0)
    produce_aged(kafka_cluster, topic, 1, **{"compression.type": "gzip"})
    produce_aged(kafka_cluster, topic, 2, **{"transactional.id": group_id})
    producer = KafkaProducer(bootstrap_servers=kafka_cluster.bootstrap_servers)
    producer.send(topic, b"x", partition=3, timestamp_ms=-1)
    producer.flush(PATIENCE)
    producer.close()
    positions = {
        (topic, 0, 0): AGO,
        (topic, 0, 7): AGO - 700,
        (topic, 1, 7): AGO - 700,
        (topic, 2, 9): AGO - 900,
        (topic, 2, 10): 0,  # the transaction's end alone
        (topic, 3, 0): "the record has no time",
    }
    found = read_ages(admin, read_topics(admin), {*positions, (topic, 0, 10_000)})
    refused = found.pop((topic, 0, 10_000))
    assert "offset is outside the range" in str(refused)
    assert found == {
        position: age if isinstance(age, str) else pytest.approx(age, abs=SLACK) if age else 0.0
        for position, age in positions.items()
    }


def test_each_command_shows_seconds_when_asked_and_fails_beyond_what_is_allowed(
    kafka_cluster: Cluster, group_id: str
) -> None:
    topic = create_topic(kafka_cluster, 1)
    produce_aged(kafka_cluster, topic, 0)
    commit(kafka_cluster, group_id, topic, 4)

    def ran(command: str, *arguments: str) -> tuple[int, str]:
        done = run_command(kafka_cluster, "group", command, group_id, *arguments)
        assert done.stderr == ""
        return done.returncode, done.stdout

    for command in ("explain", "list"):
        assert "lag s" not in ran(command)[1]
        status, late = ran(command, "--check", "--max-lag-seconds", "60")
        assert (status, "lag s" in late, "s behind, more than 60 s" in late) == (1, True, True)
        status, enough = ran(command, "--json", "--check", "--max-lag-seconds", str(AGO))
        assert status == 0
        found = json.loads(enough)
        (found,) = found if command == "list" else [found]
        assert found["lag"]["seconds"] == pytest.approx(AGO - 400, abs=SLACK)
    for arguments, ages in ((["--max-lag-seconds", "inf"], [pytest.approx(AGO - 400, abs=SLACK)]), ([], [])):
        families = text_string_to_metric_families(ran("export", *arguments)[1])
        samples = [one for each in families for one in each.samples if one.name == "kafka_group_lag_seconds"]
        assert [one.value for one in samples] == ages
        assert all(one.labels == {"group": group_id, "topic": topic, "partition": "0"} for one in samples)
