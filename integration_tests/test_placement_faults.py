"""Placements on a cluster one of whose brokers has died or does not answer."""

import json
import os
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from integration_tests.support.commands import begin_command, next_error_line, run_command
from integration_tests.support.records import produce
from integration_tests.support.waiting import wait_for
from kafka_assignors._cluster.admin import Admin
from kafka_assignors.placement import Placements
from kafka_assignors.placement._cluster import topics
from kafka_assignors.placement._cluster.topics import read_brokers
from kafka_assignors.testing import Cluster, delete_topic
from kafka_assignors.testing._topics import create_topic

pytestmark = pytest.mark.slow

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
        wait_for("it to be missed", lambda: broker in read_brokers(admin).down, PATIENCE)
        yield
    cluster.wait_complete()


def placement(
    cluster: Cluster, verb: str, *arguments: str, servers: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    return run_command(cluster, "placement", verb, *arguments, servers=servers)


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
    wanted.write_text(Placements({topic: {0: [1, 3]}}).text, encoding="utf-8")
    shown = placement(without_3, "reassign", "--file", str(wanted))
    assert shown.returncode == 0, shown.stderr
    assert "broker 3 is fenced and would get 1 replica:\n  start it, or --execute with" in shown.stdout
    refused = placement(without_3, "reassign", "--file", str(wanted), "--execute")
    assert refused.returncode == 2
    assert f"{topic}-0 is to have a replica on broker 3, which is fenced: start it" in refused.stderr
    with Admin(without_3.bootstrap_servers) as admin:
        assert admin.ask(lambda client: client.list_partition_reassignments()) == {}


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


def test_a_partition_without_a_leader_is_offline(disturbed_brokers: Cluster) -> None:
    alone = create_topic(disturbed_brokers, 3, replication=1)
    assert health(disturbed_brokers, alone, status=0)["brokers"] == {"1": "up", "2": "up", "3": "up"}
    with missed(disturbed_brokers, 3):
        ((name, partition),) = health(disturbed_brokers, alone, status=1)["offline"]
        lost = placement(disturbed_brokers, "describe", alone)
    assert name == alone
    # Without --check what is wrong is shown, and no failure of the command.
    assert lost.returncode == 0, lost.stderr
    assert f"offline (no leader)              1  {alone}-{partition}\n" in lost.stdout
    delete_topic(disturbed_brokers, alone)


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
    wanted.write_text(Placements({topic: {0: [1]}}).text, encoding="utf-8")
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


def test_a_throttled_move_to_a_frozen_broker_is_cancelled_and_its_throttle_removed_once_it_is_back(
    disturbed_brokers: Cluster, topic: str, tmp_path: Path
) -> None:
    cluster = disturbed_brokers
    with Admin(cluster.bootstrap_servers) as admin:
        topics.create_topic(admin, topic, {0: [1, 2]})
    produce(cluster, topic, {0: 4}, os.urandom(900_000))
    wanted = tmp_path / "wanted.json"
    wanted.write_text(Placements({topic: {0: [1, 3]}}).text, encoding="utf-8")
    slow = ("--throttle", "1KiB", "--stalled-after", "2")
    moved = begin_command(cluster, "placement", "reassign", "--file", str(wanted), *slow, "--execute")
    assert next_error_line(moved) == "0 of 1 partitions done, 1 under way\n"
    with Admin(cluster.bootstrap_servers) as admin, cluster.broker(3).freeze():
        wait_for("it to be missed", lambda: 3 in read_brokers(admin).down, PATIENCE)
        shown = placement(cluster, "verify", topic)
        assert shown.returncode == 1, shown.stderr
        assert f"broker 3 is fenced: {topic}-0 cannot continue\n" in shown.stdout
        cancelled = placement(cluster, "cancel", topic)
        _, error = moved.communicate(timeout=2 * PATIENCE)
    assert cancelled.returncode == 0, cancelled.stderr
    still = (
        "the throttle is still on broker 3, which does not answer:"
        " `placement verify` removes it once it is up"
    )
    assert still in cancelled.stderr.splitlines()
    # The run was not there when its move was cancelled: it does not say that all is well.
    assert moved.returncode == 1, error
    assert still in error.splitlines()
    assert f"{topic}-0 is on [1, 2] and not on [1, 3], although nothing is under way" in error
    cluster.wait_complete()
    last = placement(cluster, "verify", topic)
    assert (last.returncode, last.stdout) == (0, "nothing is under way\n"), last.stderr
    assert "removed what an earlier run left: its throttle on brokers 3" in last.stderr.splitlines()
