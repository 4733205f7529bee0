"""Replicas moved under a throttle: whichever way a run ends, brokers have the quotas that they had before."""

import os
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from integration_tests.support.commands import begin_command, next_error_line, run_command
from integration_tests.support.records import produce
from kafka_assignors._cluster.admin import Admin
from kafka_assignors.placement import Placements
from kafka_assignors.placement._cluster import reassign as moving, topics as live
from kafka_assignors.placement._cluster.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    Throttles,
    read_throttles,
)
from kafka_assignors.placement._planning.volume import Volume
from kafka_assignors.testing import Cluster
from kafka_assignors.testing._brokers.waiting import wait_until

PATIENCE = 60.0  # seconds
ROUNDS = 4
BATCH = 900_000
SLOW = "1KiB"  # at which one fetch, here a batch, passes every 11 s, so that all take half a minute
OTHERS = {LEADER_RATE: "77000000"}
"""What somebody else has set on broker 1."""
LISTED = {FOLLOWER_REPLICAS: "0:2"}
"""And on the topic."""
BEFORE = Throttles(
    {1: {LEADER_RATE: 77_000_000}, 2: {}, 3: {}}, {1: {LEADER_RATE: 77_000_000}, 2: {}, 3: {}}, {}, {}
)


def alter(admin: Admin, kind: ConfigResourceType, name: str, changes: dict[str, str | None]) -> None:
    wanted = {key: ("DELETE" if value is None else "SET", value) for key, value in changes.items()}
    resource = ConfigResource(kind, name, wanted)
    admin.ask(lambda client: client.alter_configs([resource], raise_on_unknown=False))


@pytest.fixture
def admin(three_brokers: Cluster) -> Iterator[Admin]:
    """A cluster that has no throttles but one, of somebody else."""
    with Admin(three_brokers.bootstrap_servers) as admin:
        alter(admin, ConfigResourceType.BROKER, "1", dict(OTHERS))
        yield admin
        for broker in ("1", "2", "3"):
            alter(admin, ConfigResourceType.BROKER, broker, dict.fromkeys((LEADER_RATE, FOLLOWER_RATE)))


@contextmanager
def topic_of(cluster: Cluster, admin: Admin, batches: int) -> Iterator[str]:
    """One partition of so many batches on brokers 1 and 2."""
    name = f"throttled-{uuid.uuid4().hex[:8]}"
    live.create_topic(admin, name, {0: [1, 2]}, LISTED)
    produce(cluster, name, {0: batches}, os.urandom(BATCH))
    yield name
    moving.cancel(admin, [TopicPartition(name, number) for number in live.read_topics(admin, [name])[name]])
    admin.ask(lambda client: client.delete_topics([name]))


@pytest.fixture
def topic(three_brokers: Cluster, admin: Admin) -> Iterator[str]:
    """Some megabytes."""
    with topic_of(three_brokers, admin, ROUNDS) as name:
        yield name


@pytest.fixture
def wanted(topic: str, tmp_path: Path) -> str:
    """A file that has it on 1 and 3."""
    path = tmp_path / "wanted.json"
    path.write_text(Placements({topic: {0: [1, 3]}}).text, encoding="utf-8")
    return str(path)


def expect_as_before(admin: Admin, topic: str) -> None:
    """Brokers apply what is changed a moment later."""
    expect(admin, topic, BEFORE._replace(replicas={topic: {FOLLOWER_REPLICAS: ["0:2"]}}))


def expect_none(admin: Admin, topic: str, listed: dict[str, list[str]]) -> None:
    """What a killed run replaced is not known; `listed` is what it did not add."""
    none: dict[int, dict[str, int]] = {1: {}, 2: {}, 3: {}}
    expect(admin, topic, Throttles(none, none, {topic: listed}, {}))


def expect(admin: Admin, topic: str, expected: Throttles) -> None:
    def wrong() -> list[str]:
        found = read_throttles(admin, expected.rates, [topic])
        return [] if found == expected else [f"{found} is not {expected}"]

    wait_until(wrong, PATIENCE, "the throttles to be as expected")


def expect_throttled(admin: Admin, topic: str, rate: int) -> None:
    def wrong() -> list[str]:
        found = read_throttles(admin, (1, 2, 3), [topic])
        both = {LEADER_RATE: rate, FOLLOWER_RATE: rate}
        expected = (
            {1: both, 2: both, 3: both},
            {LEADER_REPLICAS: ["0:1", "0:2"], FOLLOWER_REPLICAS: ["0:2", "0:3"]},
        )
        return [] if (found.own, found.replicas[topic]) == expected else [f"{found} is not {expected}"]

    wait_until(wrong, PATIENCE, "the throttles to be set")


def under_way(admin: Admin) -> set[TopicPartition]:
    return {*admin.ask(lambda client: client.list_partition_reassignments())}


def begun(cluster: Cluster, *more: str) -> subprocess.Popen[str]:
    """A run, once its partition is under way."""
    run = begin_command(cluster, "placement", "reassign", *more, "--execute")
    assert next_error_line(run) == "0 of 1 partitions done, 1 under way\n"
    return run


def run(cluster: Cluster, *more: str) -> subprocess.CompletedProcess[str]:
    return run_command(cluster, "placement", *more)


def test_a_throttle_holds_until_the_end_and_what_was_there_comes_back(admin: Admin, topic: str) -> None:
    warned: list[str] = []
    seen: list[moving.Progress] = []

    def watch(progress: moving.Progress) -> None:
        if not seen:
            expect_throttled(admin, topic, 1 << 20)
        seen.append(progress)

    pacing = moving.Pacing(throttle=1 << 20)
    done = moving.reassign(admin, {topic: {0: [1, 3]}}, pacing, watch=watch, warn=warned.append)
    assert done == 1
    assert live.read_topics(admin, [topic]) == {topic: {0: [1, 3]}}
    expect_as_before(admin, topic)
    assert warned == []


def test_a_batch_passes_at_once_and_another_each_window_at_a_rate_for_half_an_hour(
    three_brokers: Cluster, admin: Admin
) -> None:
    rate, batches = 1024, 2
    assert batches * BATCH / rate > 25 * 60
    with topic_of(three_brokers, admin, batches) as name:
        began = time.monotonic()
        assert moving.reassign(admin, {name: {0: [1, 3]}}, moving.Pacing(throttle=rate)) == 1
        seconds = time.monotonic() - began
    # The second batch waits until the first is forgotten, 10 to 11 s after it.
    assert Volume.WINDOW_SECONDS - 1 < seconds < PATIENCE


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_neither_a_throttle_nor_copying(
    three_brokers: Cluster, admin: Admin, topic: str, wanted: str, sent: signal.Signals
) -> None:
    moved = begun(three_brokers, "--file", wanted, "--throttle", SLOW)
    expect_throttled(admin, topic, 1024)
    moved.send_signal(sent)
    _, said = moved.communicate(timeout=PATIENCE)
    assert moved.returncode == 128 + sent, said
    assert "broken off, and the throttle removed" in said
    expect_as_before(admin, topic)
    assert under_way(admin) == set()
    assert live.read_topics(admin, [topic]) == {topic: {0: [1, 2]}}


REMOVED = "removed what an earlier run left: its throttle on brokers 1, 2, 3"
REPLACED = (
    "replaces the throttle that an earlier run left on brokers 1, 2, 3:"
    " it was 1.0 KiB/s and is now 10.0 MiB/s"
)


@pytest.mark.parametrize(
    ("then", "rate", "said"),
    [
        ("cancel", (), REMOVED),
        ("verify", (), REMOVED),
        ("reassign", (), REMOVED),
        ("reassign", ("--throttle", "10MiB"), REPLACED),
    ],
)
def test_what_a_killed_run_leaves_is_removed_by_the_next(
    then: str,
    rate: tuple[str, ...],
    said: str,
    *,
    three_brokers: Cluster,
    admin: Admin,
    topic: str,
    wanted: str,
) -> None:
    killed = begun(three_brokers, "--file", wanted, "--throttle", SLOW)
    killed.kill()
    killed.communicate(timeout=PATIENCE)
    expect_throttled(admin, topic, 1024)
    shown = run(three_brokers, "verify", topic)
    assert shown.returncode == 1, shown.stderr
    assert "1 partition under way, 1 new replica not in sync" in shown.stdout
    assert "throttled to 1.0 KiB/s" in shown.stdout
    expect_throttled(admin, topic, 1024)
    if then == "verify":
        moving.cancel(admin, [TopicPartition(topic, 0)])
    moves = ("--file", wanted, *rate, "--execute")
    ended = run(three_brokers, then, *(moves if then == "reassign" else (topic,)))
    assert ended.returncode == 0, ended.stderr
    assert said in ended.stderr.splitlines()
    expect_none(admin, topic, {FOLLOWER_REPLICAS: ["0:2"]} if rate else {})
    assert under_way(admin) == set()
    assert live.read_topics(admin, [topic]) == {topic: {0: [1, 3] if then == "reassign" else [1, 2]}}


def test_throttles_of_unknown_origin_are_named_and_removed_if_asked(
    three_brokers: Cluster, admin: Admin, topic: str
) -> None:
    alter(admin, ConfigResourceType.TOPIC, topic, {FOLLOWER_REPLICAS: "*"})
    everything = {topic: {FOLLOWER_REPLICAS: ["*"]}}
    expect(admin, topic, BEFORE._replace(replicas=everything))
    shown = run(three_brokers, "verify", topic)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == (
        "nothing is under way\n"
        f"broker 1 has {LEADER_RATE}=77000000\n"
        f"topic {topic} has {FOLLOWER_REPLICAS}=*\n"
    )
    expect(admin, topic, BEFORE._replace(replicas=everything))
    removed = run(three_brokers, "verify", topic, "--remove-throttles")
    assert removed.returncode == 0, removed.stderr
    expect_none(admin, topic, {})


def test_amid_a_move_a_throttle_that_is_too_low_is_named_and_a_rollback_is_what_was_there_before(
    three_brokers: Cluster, admin: Admin, topic: str, wanted: str, tmp_path: Path
) -> None:
    moved = begun(three_brokers, "--file", wanted, "--throttle", SLOW, "--stalled-after", "2")
    said = [next_error_line(moved) for _ in range(3)]
    rollback = tmp_path / "rollback.json"
    shown = run(three_brokers, "reassign", topic, "--rollback", str(rollback), "--json")
    moved.send_signal(signal.SIGINT)
    moved.communicate(timeout=PATIENCE)
    assert shown.returncode == 0, shown.stderr
    assert rollback.read_text(encoding="utf-8") == f"{Placements({topic: {0: [1, 2]}}).text}\n"
    assert said[0] == "no progress for 2 s; 0 of 1 partitions done, 1 under way:\n"
    assert said[1].startswith("  broker 3 is ")
    assert said[1].endswith(f" behind in {topic}-0, throttled to 1.0 KiB/s\n")
    assert said[2] == "    the throttle is too low: begin again with a higher --throttle\n"
    expect_as_before(admin, topic)
