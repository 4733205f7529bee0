"""Placements on a cluster one of whose brokers has died or does not answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafka_assignors._cluster.admin import Admin
from kafka_assignors.placement import format_reassignment
from kafka_assignors.placement._cluster import topics
from kafka_assignors.placement._cluster.topics import read_brokers
from kafka_assignors.testing import delete_topic
from kafka_assignors.testing._brokers.waiting import wait_until
from kafka_assignors.testing._topics import create_topic

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kafka_assignors.testing import Cluster

pytestmark = pytest.mark.slow

COMMAND = str(Path(sys.executable).with_name("kafka-assignors"))
PATIENCE = 60.0  # seconds; a killed broker is missed after 6


@pytest.fixture
def without_3(disturbed_brokers: Cluster) -> Iterator[Cluster]:
    """A cluster whose third broker has died, and which knows it."""
    with missed(disturbed_brokers, 3):
        yield disturbed_brokers


@pytest.fixture
def topic(disturbed_brokers: Cluster) -> Iterator[str]:
    """The name of a topic that a test creates."""
    name = f"placed-{uuid.uuid4().hex[:8]}"
    yield name
    delete_topic(disturbed_brokers, name)


@contextmanager
def missed(cluster: Cluster, broker: int) -> Iterator[None]:
    """A broker is dead, and the cluster knows it."""
    with Admin(cluster.bootstrap_servers) as admin, cluster.broker(broker).kill():
        wait_until(
            lambda: [] if broker in read_brokers(admin).down else ["it is up"], PATIENCE, "it to be missed"
        )
        yield
    cluster.wait_complete()


def placement(
    cluster: Cluster, verb: str, *arguments: str, servers: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    bootstrap = ",".join(servers or cluster.bootstrap_servers)
    command = [COMMAND, "placement", verb, *arguments, "--bootstrap-server", bootstrap]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def health(cluster: Cluster, topic: str, *, status: int, servers: Sequence[str] = ()) -> Any:
    shown = placement(cluster, "describe", topic, "--check", "--json", servers=servers)
    assert shown.returncode == status, shown.stdout + shown.stderr
    return json.loads(shown.stdout)["health"]


def test_a_dead_broker_gets_no_replicas_without_consent(
    without_3: Cluster, topic: str, tmp_path: Path
) -> None:
    size = ("--partitions", "6", "--replication-factor", "2")
    # Fenced brokers are not taken while the others suffice, allowed or not.
    created = placement(without_3, "create", topic, *size, "--allow-fenced", "--json")
    assert created.returncode == 0, created.stderr
    replicas = json.loads(created.stdout)["placements"][topic].values()
    assert {broker for brokers in replicas for broker in brokers} == {1, 2}

    wanted = tmp_path / "wanted.json"
    wanted.write_text(format_reassignment({topic: {0: [1, 3]}}), encoding="utf-8")
    shown = placement(without_3, "reassign", "--file", str(wanted))
    assert shown.returncode == 0, shown.stderr
    assert "broker 3 is fenced and would get 1 replica:\n  start it, or --execute with" in shown.stdout
    refused = placement(without_3, "reassign", "--file", str(wanted), "--execute")
    assert refused.returncode == 2
    assert f"{topic}-0 is to have a replica on broker 3, which is fenced: start it" in refused.stderr
    with Admin(without_3.bootstrap_servers) as admin:
        assert admin.ask(lambda client: client.list_partition_reassignments()) == {}


def test_a_move_that_waits_for_a_fenced_broker_says_so_and_goes_on_with_it(
    disturbed_brokers: Cluster, topic: str, tmp_path: Path
) -> None:
    wanted = tmp_path / "wanted.json"
    wanted.write_text(format_reassignment({topic: {0: [1, 3], 1: [2, 3]}}), encoding="utf-8")
    servers = ",".join(disturbed_brokers.bootstrap_servers)
    options = ("--file", str(wanted), "--execute", "--allow-fenced", "--stalled-after", "2")
    with Admin(disturbed_brokers.bootstrap_servers) as admin:
        topics.create_topic(admin, topic, {0: [1, 2], 1: [2, 1]})
    with missed(disturbed_brokers, 3):
        moved = subprocess.Popen(
            [COMMAND, "placement", "reassign", *options, "--bootstrap-server", servers],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        assert moved.stderr is not None
        left_out, *said = [moved.stderr.readline() for _ in range(5)]
        verified = placement(disturbed_brokers, "verify", topic, "--json")
    _, more = moved.communicate(timeout=PATIENCE)
    assert moved.returncode == 0, more
    why, way_out = f"broker 3 is fenced: {topic}-0, {topic}-1 cannot continue", "start it, or break off with"
    dead = disturbed_brokers.broker(3).bootstrap
    assert left_out == f"left out: {dead}: nothing listens there (a wrong port, or no broker is up)\n"
    assert said == [
        "0 of 2 partitions done, 2 under way\n",
        "no progress for 2 s; 0 of 2 partitions done, 2 under way:\n",
        f"  {why}\n",
        f"    {way_out} `placement cancel`\n",
    ]
    assert verified.returncode == 1, verified.stderr
    found = json.loads(verified.stdout)
    assert found["under_way"] == [[topic, 0], [topic, 1]]
    assert found["waits_for"] == [{"why": why, "way_out": f"{way_out} `placement cancel`"}]


def test_fenced_brokers_are_taken_if_the_others_are_too_few(without_3: Cluster, topic: str) -> None:
    size = ("--partitions", "2", "--replication-factor", "3", "--generator", "striped")
    refused = placement(without_3, "create", topic, *size)
    assert refused.returncode == 2
    assert "only 2 brokers of 3 can take them: broker 3 is fenced" in refused.stderr
    created = placement(without_3, "create", topic, *size, "--allow-fenced", "--json")
    assert created.returncode == 0, created.stderr
    replicas = json.loads(created.stdout)["placements"][topic].values()
    assert [brokers[0] == 3 for brokers in replicas] == [False, False]
    assert [sorted(brokers) for brokers in replicas] == [[1, 2, 3], [1, 2, 3]]


def test_what_is_not_in_order_is_shown_and_is_a_status(disturbed_brokers: Cluster, topic: str) -> None:
    cluster = disturbed_brokers
    with Admin(cluster.bootstrap_servers) as admin:
        placed = {0: [1, 2], 1: [3, 1], 2: [2, 3], 3: [3, 2]}
        topics.create_topic(admin, topic, placed, {"min.insync.replicas": "2"})
    alone = create_topic(cluster, 3, replication=1)
    assert health(cluster, topic, status=0)["brokers"] == {"1": "up", "2": "up", "3": "up"}
    with missed(cluster, 3):
        found = health(cluster, topic, status=1)
        shown = placement(cluster, "describe", topic)
        lost = placement(cluster, "describe", alone)
        offline = health(cluster, alone, status=1)["offline"]
    assert found["brokers"] == {"1": "up", "2": "up", "3": "fenced"}
    assert found["under_replicated"] == [[topic, 1], [topic, 2], [topic, 3]]
    assert found["under_min_isr"] == [[topic, 1], [topic, 2], [topic, 3]]
    assert found["led_by_others"] == [[topic, 1], [topic, 3]]
    assert found["offline"] == []
    assert found["counts"]["under_replicated"] == 3
    ((name, partition),) = offline
    assert name == alone
    # Without --check what is wrong is shown, and no failure of the command.
    assert shown.returncode == 0, shown.stderr
    assert "broker 3 is not up: it has died, has been stopped, or is still starting\n" in shown.stdout
    assert f"offline (no leader)              1  {alone}-{partition}\n" in lost.stdout
    assert f"under min.insync.replicas        3  {topic}-1, {topic}-2, {topic}-3\n" in shown.stdout
    delete_topic(cluster, alone)


def test_a_client_that_was_given_one_server_continues_without_it(disturbed_brokers: Cluster) -> None:
    given = disturbed_brokers.broker(1)
    with Admin([given.bootstrap]) as admin, given.kill():
        admin.reconnect()
        brokers = read_brokers(admin)
    assert {*brokers.up, *brokers.down} == {1, 2, 3}
    disturbed_brokers.wait_complete()


def test_a_broker_that_clients_do_not_reach_hides_none_of_the_others(
    disturbed_brokers: Cluster, topic: str, tmp_path: Path
) -> None:
    cluster = disturbed_brokers
    whole = create_topic(cluster, 3, replication=3)
    with Admin(cluster.bootstrap_servers) as admin:
        topics.create_topic(admin, topic, {0: [3]})
    wanted = tmp_path / "wanted.json"
    wanted.write_text(format_reassignment({topic: {0: [1]}}), encoding="utf-8")
    servers = cluster.network.access.servers
    with cluster.network.drop(broker=3):
        found = health(cluster, whole, status=1, servers=servers)
        moved = placement(cluster, "reassign", "--file", str(wanted), "--execute", servers=servers)
    # What may be large is not copied silently, either.
    assert moved.returncode == 2, moved.stderr
    assert f"{topic}-0, of unknown size, would be copied as fast as brokers can" in moved.stderr
    with Admin(cluster.bootstrap_servers) as admin:
        assert topics.read_topics(admin, [topic]) == {topic: {0: [3]}}
    assert found["brokers"] == {"1": "up", "2": "up", "3": "no answer"}
    assert [*found["silent"]] == ["3"]
    assert found["counts"]["under_replicated"] == 0
    delete_topic(cluster, whole)
