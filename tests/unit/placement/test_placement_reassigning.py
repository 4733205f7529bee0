"""How a reassignment ends when partitions arrive, move or go by themselves meanwhile."""

from collections import Counter
from random import Random

import pytest
from kafka import TopicPartition

from kafka_assignors._cli.main import main
from kafka_assignors.placement import PlacementError
from kafka_assignors.placement._cluster.reassign import Pacing, Progress, read_situation, reassign
from tests.support.fake_cluster import Cluster, ClusterAdmin, leave_killed_run, open_as

SERVER = ("--bootstrap-server", "h:1")


def test_what_ends_while_it_is_cancelled_is_no_error_and_its_throttle_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster({"orders": {0: [1, 2], 1: [1, 2]}})
    ended, other = TopicPartition("orders", 0), TopicPartition("orders", 1)
    leave_killed_run(open_as(cluster, monkeypatch), cluster, ended)
    cluster.alter_partition_reassignments({other: [1, 3]})
    cluster.before_alter = lambda: cluster.finish(ended)

    assert main(["placement", "cancel", "orders", *SERVER]) == 0
    assert capsys.readouterr().out.splitlines() == ["orders-1 stays where it was"]
    assert not cluster.moving
    assert cluster.rate(3) is None
    assert not any(cluster.configs.values())


@pytest.mark.parametrize(("goes_on", "rate"), [(True, "1024"), (False, None)])
def test_after_a_refused_cancel_the_throttle_stays_only_while_something_is_under_way(
    cluster: Cluster, *, goes_on: bool, rate: str | None
) -> None:
    moved = TopicPartition("orders", 0)
    leave_killed_run(ClusterAdmin(cluster), cluster, moved)
    cluster.refused = {moved}
    if not goes_on:
        cluster.before_alter = cluster.finish

    assert main(["placement", "cancel", "orders", *SERVER]) == 1
    assert cluster.rate(3) == rate


def test_a_run_that_is_interrupted_does_not_cancel_what_others_move_in_its_topics() -> None:
    cluster = Cluster({"orders": {0: [1, 2], 1: [1, 2]}})
    theirs = TopicPartition("orders", 1)

    def watch(_: Progress) -> None:
        cluster.moving[theirs] = [2, 3]
        raise KeyboardInterrupt

    target = {"orders": {0: [1, 3], 1: [1, 2]}}
    with pytest.raises(KeyboardInterrupt):
        reassign(ClusterAdmin(cluster), target, Pacing(throttle=1024), watch=watch)
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
    pacing = Pacing(at_once=2)
    assert reassign(ClusterAdmin(cluster), target, pacing, watch=watch, warn=said.append) == 1
    assert said == [f"{topic}-0 was deleted meanwhile: it is left out" for topic in ("waits", "begun")]
    assert cluster.elected == [{"orders": [0]}]


def test_a_topic_that_is_deleted_while_it_is_looked_at_waits_for_nothing(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = TopicPartition("orders", 0)
    cluster.moving[moved] = [1, 3]
    under_way = cluster.list_partition_reassignments

    def delete() -> dict[TopicPartition, dict[str, list[int]]]:
        found = under_way()
        cluster.moving.clear()
        cluster.topics.clear()
        return found

    monkeypatch.setattr(cluster, "list_partition_reassignments", delete)
    assert read_situation(ClusterAdmin(cluster), [moved]).behind() == {}


@pytest.mark.parametrize("wrong", [{"at_once": 0}, {"throttle": 0}, {"throttle": -1}])
def test_a_pace_at_which_nothing_would_ever_move_is_refused(wrong: dict[str, int]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(PlacementError, match=f"^{name} is {value}: give 1 or more, or leave it out$"):
        Pacing(**wrong)  # type: ignore[arg-type]  # as mypy takes all values for that of `unthrottled`


def test_preferred_leaders_are_elected_also_if_an_interrupted_run_has_left_nothing_to_move() -> None:
    cluster = Cluster({"orders": {0: [2, 1]}})
    assert reassign(ClusterAdmin(cluster), {"orders": {0: [2, 1]}}) == 0
    assert cluster.elected == [{"orders": [0]}]


def test_the_throttle_of_a_killed_run_stays_until_copies_under_it_are_done(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster({"orders": {0: [1, 2]}, "small": {0: [1, 2]}})
    admin = open_as(cluster, monkeypatch)
    for topic in ("small", "orders"):
        leave_killed_run(admin, cluster, TopicPartition(topic, 0))
    cluster.finish(TopicPartition("small", 0))

    assert main(["placement", "verify", "small", *SERVER]) == 0
    assert "the throttle stays while orders-0 is copied" in capsys.readouterr().err.replace("\n", " ")
    assert cluster.rate(3) == "1024"

    cluster.finish()
    assert main(["placement", "verify", "small", *SERVER]) == 0
    assert cluster.rate(3) is None
    assert main(["placement", "verify", *SERVER]) == 0
    assert not any(cluster.configs.values())


PLANNED = ("placement", "reassign", "orders", "--no-throttle", "--at-once", "2", *SERVER)


def begin_planned(cluster: Cluster) -> TopicPartition:
    """Leave what a planned run leaves that Ctrl-C ends: one partition done, one under way."""

    def interrupt() -> None:
        cluster.after_alter = cluster.finish
        cluster.finish(min(cluster.moving))
        raise KeyboardInterrupt

    cluster.after_alter = interrupt
    assert main([*PLANNED, "--execute"]) == 130
    (left,) = cluster.moving
    return left


def replicas_by_broker(cluster: Cluster) -> Counter[int]:
    return Counter(broker for replicas in cluster.topics["orders"].values() for broker in replicas)


def test_a_planned_run_that_ctrl_c_ended_is_continued_by_the_same_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed in range(5):
        draw = Random(seed)
        cluster = Cluster({"orders": {p: draw.sample([1, 2, 3], 2) for p in range(12)}}, brokers=(1, 2, 3, 4))
        open_as(cluster, monkeypatch)
        left = begin_planned(cluster)
        target = cluster.moving[left]
        capsys.readouterr()

        assert main([*PLANNED, "--execute"]) == 0
        said = capsys.readouterr().out
        assert f"1 partition of it under way already: orders-{left.partition}\n" in said
        assert "replicas on a broker: 6 to 6, the best possible beside what is under way\n" in said
        assert cluster.topics["orders"][left.partition] == target
        assert replicas_by_broker(cluster) == {1: 6, 2: 6, 3: 6, 4: 6}


def test_a_partition_on_its_way_to_where_no_plan_has_it_is_named_with_the_ways_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster({"orders": {p: [1, 2] for p in range(4)}}, brokers=(1, 2, 3, 4))
    open_as(cluster, monkeypatch)
    moved = TopicPartition("orders", 0)
    cluster.moving[moved] = [1, 4]
    cluster.fenced = {4}

    assert main([*PLANNED]) == 0
    assert (
        "1 partition under way to other brokers than planned: orders-0\n"
        "  before --execute wait until that is done, or break it off: `placement cancel orders`\n"
    ) in capsys.readouterr().out
    assert main([*PLANNED, "--execute"]) == 2
    after = cluster.moving.copy()
    said = capsys.readouterr().err
    assert "orders-0 is being moved to [1, 4], and should be on [" in said
    assert (
        "]: wait until that is done, or break it off with `placement cancel orders`. If --output kept the"
        " plan that began it, --file continues that plan\n"
    ) in said
    assert after == {moved: [1, 4]}


def test_fenced_brokers_that_are_allowed_are_not_asked_for_their_logs(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.fenced = {3}
    assert main([*PLANNED, "--allow-fenced"]) == 0
    assert capsys.readouterr().err == ""


def test_internal_topics_that_stay_on_a_broker_that_is_left_are_named_with_the_way_out(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    internal = {"__consumer_offsets": {0: [1, 2], 1: [3, 1]}, "__transaction_state": {0: [1, 2]}}
    cluster = Cluster({"orders": {0: [1, 2]}, **internal})
    open_as(cluster, monkeypatch)
    plan = ["placement", "reassign", "--to-brokers", "1,2", *SERVER]
    assert main(plan) == 0
    assert capsys.readouterr().err == (
        "internal topics have replicas on brokers that --to-brokers leaves out: __consumer_offsets (3). They"
        " move only if named: placement reassign __consumer_offsets --to-brokers 1,2\n"
    )
    assert main(["placement", "reassign", "orders", "--to-brokers", "1,2", *SERVER]) == 0
    assert main(["placement", "reassign", *SERVER]) == 0
    assert capsys.readouterr().err == ""
    # On its way, it is as good as moved.
    cluster.moving[TopicPartition("__consumer_offsets", 1)] = [2, 1]
    assert main(plan) == 0
    assert capsys.readouterr().err == ""


def test_what_arrives_while_a_plan_is_made_does_not_count_as_more_replicas(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.moving[TopicPartition("orders", 0)] = [1, 3]
    under_way = cluster.list_partition_reassignments

    def arrive() -> dict[TopicPartition, dict[str, list[int]]]:
        cluster.finish()
        return under_way()

    monkeypatch.setattr(cluster, "list_partition_reassignments", arrive)
    assert main([*PLANNED]) == 0
    assert "replicas on a broker: 0 to 1, the best possible\n" in capsys.readouterr().out
