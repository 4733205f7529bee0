"""Replicas on a real cluster of three brokers in three racks: created, described, inferred, moved."""

import contextlib
import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition

from integration_tests.support.commands import run_command
from kafka_assignors._cluster.admin import Admin
from kafka_assignors.placement import PlacementError, Placements
from kafka_assignors.placement._cluster import topics as live
from kafka_assignors.placement._cluster.logs import read_logs
from kafka_assignors.placement._generators import place_rack_aware
from kafka_assignors.placement._inference.infer import infer
from kafka_assignors.placement._striped import place_striped
from kafka_assignors.testing import Cluster, Load
from kafka_assignors.testing._brokers.waiting import wait_until

RACKS = {1: "rack-1", 2: "rack-2", 3: "rack-3"}
PATIENCE = 60.0  # seconds


@pytest.fixture(scope="module")
def admin(three_brokers: Cluster) -> Iterator[Admin]:
    with Admin(three_brokers.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic() -> str:
    """A name."""
    return f"placed-{uuid.uuid4().hex[:8]}"


def command(cluster: Cluster, verb: str, *arguments: str, status: int = 0) -> Any:
    done = run_command(cluster, "placement", verb, *arguments, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if status == 0 else done.stderr


def with_ids(placement: dict[str, list[int]]) -> dict[int, list[int]]:
    return {int(partition): replicas for partition, replicas in placement.items()}


def described(admin: Admin, topic: str, count: int) -> dict[int, list[int]]:
    """A topic of so many partitions, once the broker that is asked has heard of them."""
    found: dict[int, list[int]] = {}

    def wrong() -> list[str]:
        found.clear()
        with contextlib.suppress(PlacementError):
            found.update(live.read_topics(admin, [topic])[topic])
        return [] if [*found] == [*range(count)] else [f"it has {[*found]}"]

    wait_until(wrong, PATIENCE, f"{topic} to have {count} partitions")
    return found


def led_by_others(admin: Admin, topic: str, placement: dict[int, list[int]]) -> list[str]:
    """Partitions that their preferred leader does not lead."""
    (description,) = admin.ask(lambda client: client.describe_topics([topic]))
    return [
        f"{one['partition_index']} is led by {one['leader_id']}"
        for one in description["partitions"]
        if one["leader_id"] != placement[one["partition_index"]][0]
    ]


def test_brokers_and_racks_are_read(admin: Admin) -> None:
    assert live.read_brokers(admin) == (RACKS, {})


def test_a_placement_of_the_broker_is_described_and_inferred(admin: Admin, topic: str) -> None:
    admin.once(lambda client: client.create_topics({topic: {"num_partitions": 9, "replication_factor": 2}}))
    placement = described(admin, topic, 9)
    best = infer(placement, racks=RACKS).best
    assert best is not None
    assert best.generator == "striped"
    assert sum(step.partitions for step in best.steps) == 9
    assert best.chance < 0.05


@pytest.mark.parametrize("generator", ["rack-aware", "rack-unaware", "striped"])
def test_a_created_topic_is_described_as_it_was_generated(
    three_brokers: Cluster, admin: Admin, topic: str, generator: str
) -> None:
    create = (
        *("create", topic, "--partitions", "7", "--replication-factor", "2"),
        *("--generator", generator, "--seed", "5", "--config", "retention.ms=100000"),
    )
    shown = command(three_brokers, *create, "--dry-run")
    with pytest.raises(PlacementError, match=f"no topic '{topic}'"):
        live.read_topics(admin, [topic])
    made = command(three_brokers, *create)
    assert made["placements"] == shown["placements"]
    placement = live.read_topics(admin, [topic])[topic]
    assert with_ids(made["placements"][topic]) == placement
    assert made["created"] is True
    if generator == "striped":
        assert placement == place_striped(7, 2, RACKS, seed=5)
    fits = {fit.generator for fit in infer(placement, racks=RACKS).fits}
    assert generator in fits
    described = command(three_brokers, "describe", topic)
    assert with_ids(described["placements"][topic]) == placement
    assert described["quality"]["racks_per_partition"] == {"2": 7}


def test_an_explicit_placement_is_read_back_equal(three_brokers: Cluster, admin: Admin, topic: str) -> None:
    command(three_brokers, "create", topic, "--replica-assignment", "3:1,1:2,2:1,3:2")
    assert live.read_topics(admin, [topic]) == {topic: {0: [3, 1], 1: [1, 2], 2: [2, 1], 3: [3, 2]}}


def test_a_topic_is_expanded_by_its_pattern(three_brokers: Cluster, admin: Admin, topic: str) -> None:
    live.create_topic(admin, topic, place_rack_aware(6, 2, RACKS, start_index=1, shift=4))
    shown = command(three_brokers, "expand", topic, "--partitions", "10")
    assert len(live.read_topics(admin, [topic])[topic]) == 6
    done = command(three_brokers, "expand", topic, "--partitions", "10", "--execute")
    assert done["added"] == shown["added"]
    assert live.read_topics(admin, [topic])[topic] == place_rack_aware(10, 2, RACKS, start_index=1, shift=4)
    assert "cannot have fewer" in command(three_brokers, "expand", topic, "--partitions", "10", status=2)


def test_replicas_are_moved_as_planned_under_load(three_brokers: Cluster, admin: Admin, topic: str) -> None:
    live.create_topic(admin, topic, {partition: [1, 2] for partition in range(6)})
    with Load(three_brokers, topic, rate=200) as load:
        planned = command(three_brokers, "reassign", topic, "--count-replicas")
        assert live.read_topics(admin, [topic])[topic] == {partition: [1, 2] for partition in range(6)}
        done = command(three_brokers, "reassign", topic, "--count-replicas", "--execute", "--at-once", "2")
        assert done["after"] == planned["after"]
        assert len(done["plan"]["moves"]) == 4
        after = live.read_topics(admin, [topic])[topic]
        assert after == with_ids(done["after"][topic])
        produced = load.stop()
    assert sum(produced.values()) > 0
    sizes = read_logs(admin, {topic: after}, RACKS).largest({topic: after})
    assert all(size > 0 for size in sizes.values())
    wait_until(lambda: led_by_others(admin, topic, after), PATIENCE, "the preferred leaders to lead")
    again = command(three_brokers, "reassign", topic, "--execute")
    assert (again["plan"]["moves"], again["reassigned"]) == ([], 0)


@contextlib.contextmanager
def stopped(cluster: Cluster, node: int) -> Iterator[None]:
    """Without one broker: it copies nothing, so what moves there is under way until it is back."""
    cluster.broker(node).stop()
    try:
        yield
    finally:
        cluster.broker(node).start()
        cluster.wait_complete()  # others go on with all


def test_reassignments_of_other_topics_are_left_alone_by_cancel_and_execute(
    three_brokers: Cluster, admin: Admin, topic: str, tmp_path: Path
) -> None:
    ours, theirs = TopicPartition(topic, 0), TopicPartition(f"{topic}-others", 0)
    moved = f"{topic}-moved"
    for name, replicas in ((topic, [1, 2]), (theirs.topic, [1, 2]), (moved, [1])):
        live.create_topic(admin, name, {0: replicas})
    with stopped(three_brokers, 3):
        admin.ask(lambda client: client.alter_partition_reassignments({ours: [1, 3], theirs: [1, 3]}))
        before = admin.ask(lambda client: client.list_partition_reassignments())
        assert command(three_brokers, "cancel", topic)["cancelled"] == [[topic, 0]]
        for replicas, pace in (([2], "--no-throttle"), ([1], "--throttle=10MiB")):
            (tmp_path / "wanted.json").write_text(Placements({moved: {0: replicas}}).text)
            arguments = ("--file", str(tmp_path / "wanted.json"), "--execute", pace)
            assert command(three_brokers, "reassign", *arguments)["reassigned"] == 1
            assert live.read_topics(admin, [topic, moved]) == {topic: {0: [1, 2]}, moved: {0: replicas}}
        under_way = admin.ask(lambda client: client.list_partition_reassignments())
        assert under_way == {theirs: before[theirs]}
        assert command(three_brokers, "cancel", theirs.topic)["cancelled"] == [[theirs.topic, 0]]
        assert command(three_brokers, "cancel", topic) == {
            "cancelled": [],
            "throttles": {"brokers": {}, "topics": {}, "untold": {}},
        }


def test_a_cluster_that_wants_tls_and_a_password_is_reached_by_a_properties_file(
    sasl_tls_broker: Cluster, topic: str, tmp_path: Path
) -> None:
    guarded = sasl_tls_broker
    lines = "".join(
        f"{name}={value}\n" for name, value in guarded.access.java().items() if "bootstrap" not in name
    )
    (tmp_path / "client.properties").write_text(lines)
    config = ("--command-config", str(tmp_path / "client.properties"))
    command(guarded, "create", topic, "--replica-assignment", "1,1", *config)
    assert with_ids(command(guarded, "describe", topic, *config)["placements"][topic]) == {
        0: [1],
        1: [1],
    }
    (tmp_path / "client.properties").write_text(lines.replace('password="', 'password="no'))
    assert "no broker answers" in command(guarded, "describe", topic, *config, status=1)
