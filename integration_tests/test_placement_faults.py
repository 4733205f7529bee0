"""Placements on a cluster one of whose brokers has died: it gets nothing new, and what it has is shown."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka_assignors._cluster.admin import Admin
from kafka_assignors.placement import format_reassignment
from kafka_assignors.placement._cluster.topics import read_brokers
from kafka_assignors.testing._brokers.waiting import wait_until
from kafka_assignors.testing._topics import create_topic, delete_topic

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kafka_assignors.testing import Cluster

pytestmark = pytest.mark.slow

COMMAND = str(Path(sys.executable).with_name("kafka-assignors"))
PATIENCE = 60.0  # seconds; a killed broker is missed after 6


@pytest.fixture
def without_3(disturbed_brokers: Cluster) -> Iterator[Cluster]:
    """A cluster whose third broker has died, and which knows it."""
    with Admin(disturbed_brokers.bootstrap_servers) as admin, disturbed_brokers.broker(3).kill():
        wait_until(lambda: [] if 3 in read_brokers(admin).down else ["it is up"], PATIENCE, "3 to be missed")
        yield disturbed_brokers
    disturbed_brokers.wait_complete()


def placement(cluster: Cluster, verb: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    servers = ",".join(cluster.bootstrap_servers)
    command = [COMMAND, "placement", verb, *arguments, "--bootstrap-servers", servers]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_dead_broker_gets_no_replicas_and_is_shown_as_not_up(without_3: Cluster, tmp_path: Path) -> None:
    topic = f"placed-{uuid.uuid4().hex[:8]}"
    size = ("--partitions", "6", "--replication-factor", "2")
    created = placement(without_3, "create", topic, *size, "--json")
    assert created.returncode == 0, created.stderr
    replicas = json.loads(created.stdout)["placements"][topic].values()
    assert {broker for brokers in replicas for broker in brokers} == {1, 2}

    wanted = tmp_path / "wanted.json"
    wanted.write_text(format_reassignment({topic: {0: [1, 3]}}), encoding="utf-8")
    for options in ((), ("--execute",)):
        refused = placement(without_3, "reassign", "--file", str(wanted), *options)
        assert refused.returncode == 2
        assert "has broker 3, which does not exist or is not up: take one of 1, 2" in refused.stderr
    delete_topic(without_3, topic)


def test_what_a_dead_broker_has_is_shown(disturbed_brokers: Cluster) -> None:
    topic = create_topic(disturbed_brokers, 3, replication=3)
    with Admin(disturbed_brokers.bootstrap_servers) as admin:
        with disturbed_brokers.broker(3).kill():
            wait_until(
                lambda: [] if read_brokers(admin).down == {3: "rack-3"} else ["it is up"],
                PATIENCE,
                "3 to be missed",
            )
            shown = placement(disturbed_brokers, "describe", topic)
        disturbed_brokers.wait_complete()
    assert shown.returncode == 0, shown.stderr
    assert "broker 3 is not up" in shown.stdout
    assert "on 2 brokers: replicas differ by 0" in shown.stdout
    delete_topic(disturbed_brokers, topic)
