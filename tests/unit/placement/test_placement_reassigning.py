"""How a reassignment ends when partitions arrive, move or go by themselves meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from kafka import TopicPartition

from kafka_assignors._cli.main import main
from kafka_assignors.placement._cluster.reassign import Progress, reassign
from kafka_assignors.placement._cluster.throttle import Throttle
from kafka_assignors.placement._cluster.throttle_journal import ThrottleJournal
from tests.support.fake_cluster import Cluster, ClusterAdmin, leave_killed_run, open_as

if TYPE_CHECKING:
    from pathlib import Path

SERVER = ("--bootstrap-server", "h:1")


@pytest.fixture(autouse=True)
def _own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


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
