"""How a reassignment ends when partitions arrive, move or go by themselves meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pytest
from kafka import TopicPartition
from kafka.errors import (
    ClusterAuthorizationFailedError,
    NoReassignmentInProgressError,
    UnknownTopicOrPartitionError,
)

import kafka_assignors._cli.placement_cluster as opening
from kafka_assignors._cli.main import main
from kafka_assignors._cluster.admin import Admin
from kafka_assignors.placement._cluster.reassign import Progress, reassign
from kafka_assignors.placement._cluster.throttle import FOLLOWER_RATE, Copies, Throttle, _set
from kafka_assignors.placement._cluster.throttle_journal import ThrottleJournal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

SERVER = ("--bootstrap-server", "h:1")


class Cluster:
    """Brokers 1, 2 and 3 as kafka-python's admin client shows them; copies end when a test says."""

    def __init__(self, topics: Mapping[str, Mapping[int, list[int]]]) -> None:
        self.topics = {topic: dict(placed) for topic, placed in topics.items()}
        self.moving: dict[TopicPartition, list[int]] = {}
        self.configs: dict[tuple[str, str], dict[str, str]] = {}
        self.elected: list[dict[str, list[int]]] = []
        self.refused: set[TopicPartition] = set()
        self.before_alter: Callable[[], None] = lambda: None

    def finish(self, *partitions: TopicPartition) -> None:
        for one in partitions or tuple(self.moving):
            self.topics[one.topic][one.partition] = self.moving.pop(one)

    def describe_cluster(self) -> dict[str, Any]:
        brokers = [{"broker_id": broker, "rack": None, "is_fenced": False} for broker in (1, 2, 3)]
        return {"cluster_id": "cluster", "brokers": brokers}

    def describe_topics(self, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "error_code": 0 if name in self.topics else 3,
                "is_internal": False,
                "partitions": [
                    {
                        "partition_index": partition,
                        "replica_nodes": self._replicas(TopicPartition(name, partition)),
                        "isr_nodes": replicas,
                        "leader_id": replicas[0],
                    }
                    for partition, replicas in self.topics.get(name, {}).items()
                ],
            }
            for name in (sorted(self.topics) if names is None else names)
        ]

    def list_partition_reassignments(self) -> dict[TopicPartition, dict[str, list[int]]]:
        found = {}
        for one, target in self.moving.items():
            before = self.topics[one.topic][one.partition]
            found[one] = {
                "replicas": self._replicas(one),
                "adding_replicas": [broker for broker in target if broker not in before],
                "removing_replicas": [broker for broker in before if broker not in target],
            }
        return found

    def alter_partition_reassignments(
        self, wanted: Mapping[TopicPartition, list[int] | None]
    ) -> dict[TopicPartition, Any]:
        self.before_alter()
        return {one: self._alter(one, target) for one, target in wanted.items()}

    def _alter(self, one: TopicPartition, target: list[int] | None) -> Any:
        if one.partition not in self.topics.get(one.topic, {}):
            return UnknownTopicOrPartitionError
        if one in self.refused:
            return ClusterAuthorizationFailedError
        if target is not None:
            self.moving[one] = list(target)
        elif self.moving.pop(one, None) is None:
            return NoReassignmentInProgressError
        return None

    def _replicas(self, one: TopicPartition) -> list[int]:
        before = self.topics[one.topic][one.partition]
        target = self.moving.get(one, before)
        return [*target, *(broker for broker in before if broker not in target)]

    def describe_configs(self, resources: Sequence[Any], **_: object) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        for one in resources:
            kind = one.resource_type.name.lower()
            found.setdefault(kind, {})[one.name] = {
                name: {"value": value, "config_source": f"DYNAMIC_{kind.upper()}_CONFIG"}
                for name, value in self.configs.get((kind, one.name), {}).items()
            }
        return found

    def alter_configs(self, resources: Sequence[Any], **_: object) -> dict[str, dict[str, str]]:
        (one,) = resources
        kind = one.resource_type.name.lower()
        config = self.configs.setdefault((kind, one.name), {})
        for name, (operation, value) in one.configs.items():
            entries = [entry for entry in config.get(name, "").split(",") if entry]
            if operation == "SET":
                config[name] = value
            elif operation == "DELETE":
                config.pop(name, None)
            elif operation == "APPEND":
                config[name] = ",".join([*entries, *value.split(",")])
            else:
                config[name] = ",".join(entry for entry in entries if entry not in value.split(","))
        return {kind: {one.name: "OK"}}

    def describe_log_dirs(self, *_: object, **__: object) -> list[dict[str, Any]]:
        return [{"log_dirs": [{"error_code": 0, "log_dir": "/data", "topics": []}]}]

    def elect_leaders(self, _: object, partitions: dict[str, list[int]]) -> None:
        self.elected.append(partitions)

    def rate(self, broker: int) -> str | None:
        return self.configs.get(("broker", str(broker)), {}).get(FOLLOWER_RATE)


class ClusterAdmin(Admin):
    """An admin client of such a cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._client: Any = cluster
        self.settings = {}

    def __enter__(self) -> Self:
        return self

    def reconnect(self) -> None:
        """Nothing is to be connected."""

    def close(self) -> None:
        """Nothing is to be closed."""


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def open_as(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Admin:
    """Let commands open this cluster."""
    monkeypatch.setattr(opening, "open_admin", lambda _: ClusterAdmin(cluster))
    return ClusterAdmin(cluster)


def leave_killed_run(admin: Admin, cluster: Cluster, partition: TopicPartition) -> None:
    """Leave what a throttled run of this partition to broker 3 leaves that was killed."""
    throttle = Throttle(1024, ThrottleJournal("cluster"), print)
    with throttle.journal.alone():
        _set(admin, throttle, Copies.of({partition: ({1, 2}, {3})}))
    cluster.alter_partition_reassignments({partition: [1, 3]})


def test_what_ends_while_it_is_cancelled_is_no_error_and_its_throttle_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster({"orders": {0: [1, 2], 1: [1, 2]}})
    ended, other = TopicPartition("orders", 0), TopicPartition("orders", 1)
    leave_killed_run(open_as(cluster, monkeypatch), cluster, ended)
    cluster.alter_partition_reassignments({other: [1, 3]})
    cluster.before_alter = lambda: cluster.finish(ended)

    assert main(["placement", "reassign", "orders", "--cancel", *SERVER]) == 0
    assert capsys.readouterr().out.splitlines() == ["orders-1 stays where it was"]
    assert not cluster.moving
    assert cluster.rate(3) is None
    assert not ThrottleJournal("cluster").exists


@pytest.mark.parametrize(("goes_on", "rate"), [(True, "1024"), (False, None)])
def test_after_a_refused_cancel_the_throttle_stays_only_while_something_is_under_way(
    monkeypatch: pytest.MonkeyPatch, *, goes_on: bool, rate: str | None
) -> None:
    cluster = Cluster({"orders": {0: [1, 2]}})
    moved = TopicPartition("orders", 0)
    leave_killed_run(open_as(cluster, monkeypatch), cluster, moved)
    cluster.refused = {moved}
    if not goes_on:
        cluster.before_alter = cluster.finish

    assert main(["placement", "reassign", "orders", "--cancel", *SERVER]) == 1
    assert cluster.rate(3) == rate


def test_a_run_that_is_interrupted_does_not_cancel_what_others_move_in_its_topics() -> None:
    cluster = Cluster({"orders": {0: [1, 2], 1: [1, 2]}})
    theirs = TopicPartition("orders", 1)

    def watch(_: Progress) -> None:
        cluster.moving[theirs] = [2, 3]
        raise KeyboardInterrupt

    throttle = Throttle(1024, ThrottleJournal("cluster"), print)
    with pytest.raises(KeyboardInterrupt):
        reassign(ClusterAdmin(cluster), {"orders": {0: [1, 3], 1: [1, 2]}}, throttle=throttle, watch=watch)
    assert cluster.moving == {theirs: [2, 3]}


def test_topics_that_are_deleted_meanwhile_are_left_out_and_those_that_were_to_move_are_said() -> None:
    cluster = Cluster(
        {"orders": {0: [1, 2]}, "begun": {0: [1, 2]}, "waits": {0: [1, 2]}, "stays": {0: [1, 2]}}
    )

    def watch(_: Progress) -> None:
        for topic in ("begun", "waits", "stays"):
            cluster.topics.pop(topic, None)
            cluster.moving.pop(TopicPartition(topic, 0), None)
        cluster.finish()

    said: list[str] = []
    target = {topic: {0: [1, 3]} for topic in ("orders", "begun", "waits")} | {"stays": {0: [1, 2]}}
    assert reassign(ClusterAdmin(cluster), target, watch=watch, warn=said.append, at_once=2) == 1
    assert said == [f"{topic}-0 was deleted meanwhile: it is left out" for topic in ("waits", "begun")]
    assert cluster.elected == [{"orders": [0]}]


def test_preferred_leaders_are_elected_also_if_an_interrupted_run_has_left_nothing_to_move() -> None:
    cluster = Cluster({"orders": {0: [2, 1]}})
    assert reassign(ClusterAdmin(cluster), {"orders": {0: [2, 1]}}) == 0
    assert cluster.elected == [{"orders": [0]}]


def test_the_throttle_of_a_killed_run_stays_until_its_copies_are_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster({"orders": {0: [1, 2]}, "small": {0: [1, 2]}})
    leave_killed_run(open_as(cluster, monkeypatch), cluster, TopicPartition("orders", 0))

    assert main(["placement", "reassign", "small", "--verify", *SERVER]) == 0
    assert "the throttle stays while orders-0 is copied" in capsys.readouterr().err.replace("\n", " ")
    assert cluster.rate(3) == "1024"
    assert ThrottleJournal("cluster").exists

    cluster.finish()
    assert main(["placement", "reassign", "small", "--verify", *SERVER]) == 0
    assert cluster.rate(3) is None
    assert not ThrottleJournal("cluster").exists
