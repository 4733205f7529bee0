"""What a run with a throttle says and leaves that an error or Ctrl-C ends, and who puts back what it left."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from kafka import TopicPartition

from kafka_assignors._cli.main import main
from kafka_assignors._cluster.admin import ClusterError
from kafka_assignors.placement import PlacementError, Placements
from kafka_assignors.placement._cluster import reassign as moving
from kafka_assignors.placement._cluster.reassign import Pacing, reassign
from kafka_assignors.placement._cluster.throttle import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    remove_left,
)
from tests.support.fake_cluster import HIDDEN, Cluster, ClusterAdmin, leave_killed_run

SERVER = ("--bootstrap-server", "h:1")
ORDERS = TopicPartition("orders", 0)
TARGET = {"orders": {0: [1, 3]}}
SLOW = Pacing(throttle=1024)
OFF = "broken off, and the throttle removed; the same command begins again what was under way"
CANCEL = "`placement cancel orders`"
AGAIN = "`placement verify` tries again to remove the throttle"
ON = f"{CANCEL} breaks it off and removes the throttle, and the same command continues with it"
MAY = "a user who may alter configurations has to do that"


@pytest.fixture
def wanted(tmp_path: Path) -> str:
    """A file that wants the partition on brokers 1 and 3."""
    path = tmp_path / "wanted.json"
    path.write_text(Placements(TARGET).text, encoding="utf-8")
    return str(path)


@pytest.fixture
def said() -> list[str]:
    """What a run says."""
    return []


def interrupted(cluster: Cluster, target: list[int] = [1, 3]) -> list[str]:  # noqa: B006 - only read
    """What is said by a run that Ctrl-C ends when its partition is under way."""
    said: list[str] = []

    def watch(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reassign(ClusterAdmin(cluster), {"orders": {0: target}}, SLOW, watch=watch, warn=said.append)
    return said


def left(cluster: Cluster) -> tuple[bool, str | None, bool]:
    """Whether something is under way, broker 3's throttle, and whether the topic lists replicas of it."""
    listed = cluster.configs.get(("topic", "orders"), {}).get(FOLLOWER_REPLICAS, "")
    return bool(cluster.moving), cluster.rate(3), "0:3" in listed


def set_now(cluster: Cluster) -> dict[tuple[str, str], dict[str, str]]:
    """All settings of brokers and topics."""
    return {key: config for key, config in cluster.configs.items() if config}


def removed(cluster: Cluster) -> list[str]:
    """What is said when what a killed run left is removed."""
    said: list[str] = []
    remove_left(ClusterAdmin(cluster), ["orders"], said.append)
    return said


def test_brokers_that_the_old_client_knows_are_asked_if_nobody_lets_a_new_one_in(cluster: Cluster) -> None:
    cluster.hides = True
    assert interrupted(cluster) == [OFF]
    assert left(cluster) == (False, None, False)


def test_nothing_is_said_to_be_broken_off_or_removed_that_was_not(cluster: Cluster, said: list[str]) -> None:
    # Not by what is done at the start, nor by the begin of the move.
    cluster.before_alter = lambda: setattr(cluster, "mute", True)
    with pytest.raises(ClusterError, match=HIDDEN):
        reassign(ClusterAdmin(cluster), TARGET, SLOW, warn=said.append)
    assert said == [
        f"the throttle stays, as the cluster does not say what is under way: {HIDDEN}: {AGAIN}",
        f"what is under way is not broken off: {HIDDEN}; {ON}",
    ]
    assert left(cluster) == (True, "1024", True)


def test_a_move_that_the_cluster_does_not_break_off_keeps_its_throttle(cluster: Cluster) -> None:
    cluster.before_alter = lambda: setattr(cluster, "before_alter", lambda: cluster.refused.add(ORDERS))
    why = (
        "the cluster refused orders-0 on None: ClusterAuthorizationFailedError; 1 of 1 partitions were"
        " refused and no more begun"
    )
    assert interrupted(cluster) == [
        f"the throttle stays while orders-0 is copied: {AGAIN} after that",
        f"what is under way is not broken off: {why}; {ON}",
    ]
    assert left(cluster) == (True, "1024", True)


def test_a_throttle_that_the_cluster_does_not_remove_is_said_to_stay(cluster: Cluster) -> None:
    cluster.before_alter = lambda: cluster.locked.add("broker 3")
    assert interrupted(cluster) == [
        f"broker 3 does not take {LEADER_RATE}, {FOLLOWER_RATE}: not allowed: {AGAIN}",
        f"broken off, but the throttle is not removed: {CANCEL}, or the same command again, removes it",
    ]
    assert left(cluster) == (False, "1024", True)
    cluster.locked.clear()
    assert removed(cluster) == ["removed what an earlier run left: its throttle on brokers 3"]
    assert left(cluster) == (False, None, False)


def test_what_ended_before_it_was_broken_off_is_not_said_to_be(cluster: Cluster) -> None:
    cluster.before_alter = lambda: setattr(cluster, "before_alter", cluster.finish)
    assert interrupted(cluster) == [
        "nothing was under way, and the throttle is removed; the same command does the rest"
    ]
    assert left(cluster) == (False, None, False)


def test_a_second_ctrl_c_says_what_the_first_did_not_come_to(cluster: Cluster) -> None:
    def again() -> None:
        raise KeyboardInterrupt

    cluster.before_alter = lambda: setattr(cluster, "before_alter", again)
    assert interrupted(cluster) == [
        f"interrupted before all was broken off and the throttle removed: {CANCEL} does both"
    ]
    assert left(cluster) == (True, "1024", True)


def test_ctrl_c_while_the_throttle_is_removed_removes_it(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, said: list[str]
) -> None:
    alter = cluster.alter_configs

    def interrupt(resources: Sequence[Any], **_: object) -> dict[str, dict[str, str]]:
        if any(operation == "DELETE" for one in resources for operation, _ in one.configs.values()):
            monkeypatch.setattr(cluster, "alter_configs", alter)
            raise KeyboardInterrupt
        return alter(resources)

    monkeypatch.setattr(cluster, "alter_configs", interrupt)
    with pytest.raises(KeyboardInterrupt):
        reassign(ClusterAdmin(cluster), TARGET, SLOW, watch=lambda _: cluster.finish(), warn=said.append)
    assert said == ["nothing was under way, and the throttle is removed; the same command does the rest"]
    assert set_now(cluster) == {}


def test_a_run_that_copies_nothing_has_no_throttle_to_remove_and_its_moves_continue(cluster: Cluster) -> None:
    assert interrupted(cluster, [2, 1]) == [
        "what is under way continues in the cluster; the same command does the rest"
    ]
    assert left(cluster) == (True, None, False)


def test_a_broker_that_does_not_say_what_it_has_keeps_the_throttle_of_a_killed_run(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_killed_run(ClusterAdmin(cluster), cluster, ORDERS)
    cluster.finish()
    cluster.untold = {"broker 1", "broker 2", "broker 3"}

    verify = ("placement", "verify", "orders", *SERVER)
    assert main([*verify]) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines() == [
        f"broker {broker} does not say whether the throttle is on it: not allowed: {AGAIN}; {MAY}"
        for broker in (1, 2, 3)
    ]
    assert shown.out.splitlines() == [
        "nothing is under way",
        f"topic orders has {LEADER_REPLICAS}=0:1,0:2",
        f"topic orders has {FOLLOWER_REPLICAS}=0:3",
        *(f"broker {broker} does not say whether it has a throttle: not allowed" for broker in (1, 2, 3)),
    ]
    assert left(cluster) == (False, "1024", True)

    cluster.untold = {"topic orders"}
    assert main([*verify]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "topic orders does not say whether it has a throttle: not allowed\n" in shown.out
    assert left(cluster) == (False, "1024", True)

    cluster.untold = set()
    assert main([*verify]) == 0
    assert capsys.readouterr().err == "removed what an earlier run left: its throttle on brokers 1, 2, 3\n"
    assert left(cluster) == (False, None, False)
    assert cluster.configs[("topic", "orders")] == {}


def test_removing_all_throttles_leaves_what_could_not_be_seen_to_the_next_time(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_killed_run(ClusterAdmin(cluster), cluster, ORDERS)
    cluster.finish()
    cluster.untold = {"broker 3"}
    remove = ("placement", "verify", "orders", "--remove-throttles", *SERVER)
    assert main([*remove]) == 0
    assert "broker 3 does not say whether it has a throttle: not allowed\n" in capsys.readouterr().out
    assert (cluster.rate(1), cluster.rate(2), cluster.rate(3)) == (None, None, "1024")
    cluster.untold = set()
    assert main([*remove]) == 0
    assert left(cluster) == (False, None, False)


def test_rates_of_which_nothing_says_that_a_run_has_set_them_stay(cluster: Cluster) -> None:
    others = {("broker", "1"): {LEADER_RATE: "77"}, ("topic", "orders"): {LEADER_REPLICAS: "*"}}
    cluster.configs = {key: dict(config) for key, config in others.items()}
    assert removed(cluster) == []
    assert interrupted(cluster) == [OFF]
    assert set_now(cluster) == others


def test_a_run_takes_over_what_a_killed_one_left_and_removes_it(cluster: Cluster, said: list[str]) -> None:
    leave_killed_run(ClusterAdmin(cluster), cluster, ORDERS)
    pacing = Pacing(throttle=2048)
    done = reassign(ClusterAdmin(cluster), TARGET, pacing, watch=lambda _: cluster.finish(), warn=said.append)
    assert done == 1
    assert said == [
        (
            "replaces the throttle that an earlier run left on brokers 1, 2, 3:"
            " it was 1.0 KiB/s and is now 2.0 KiB/s"
        )
    ]
    assert not any(cluster.configs.values())


@pytest.mark.parametrize("pace", ["--throttle=2KiB", "--no-throttle"])
@pytest.mark.parametrize("ended", [True, False])
def test_the_same_command_removes_what_a_killed_run_left(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, wanted: str, pace: str, *, ended: bool
) -> None:
    def finish(*_: object) -> dict[TopicPartition, list[int]]:
        cluster.finish()
        return {}

    leave_killed_run(ClusterAdmin(cluster), cluster, ORDERS)
    if ended:
        cluster.finish()
    else:
        monkeypatch.setattr(moving, "under_way", finish)
    assert main(["placement", "reassign", "--file", wanted, pace, "--execute", *SERVER]) == 0
    assert not any(cluster.configs.values())


def test_no_run_begins_while_others_are_copied_under_a_throttle(cluster: Cluster) -> None:
    leave_killed_run(ClusterAdmin(cluster), cluster, ORDERS)
    cluster.topics["other"] = {0: [1, 2]}
    with pytest.raises(
        PlacementError, match=r"^orders-0 is copied under another throttle: wait for its end, or"
    ):
        reassign(ClusterAdmin(cluster), {"other": {0: [1, 3]}}, SLOW)
    assert cluster.moving == {ORDERS: [1, 3]}
    assert left(cluster) == (True, "1024", True)


def test_no_run_begins_beside_a_broker_that_does_not_say_what_throttle_it_has(
    cluster: Cluster, said: list[str]
) -> None:
    cluster.untold = {"broker 2"}
    with pytest.raises(
        ClusterError, match=f"^broker 2 does not say which throttle it has: not allowed; {MAY}$"
    ):
        reassign(
            ClusterAdmin(cluster),
            TARGET,
            SLOW,
            watch=lambda _: pytest.fail("it has begun"),
            warn=said.append,
        )
    assert said == []
    assert left(cluster) == (False, None, False)
    assert cluster.configs == {}


def test_a_throttle_is_removed_also_before_brokers_have_heard_of_it(cluster: Cluster) -> None:
    before = {LEADER_RATE: "77"}
    cluster.configs = {("broker", "1"): dict(before), ("topic", "orders"): {FOLLOWER_REPLICAS: "0:9"}}
    cluster.heard = {key: dict(config) for key, config in cluster.configs.items()}
    assert interrupted(cluster) == [OFF]
    assert set_now(cluster) == cluster.heard
    assert left(cluster) == (False, None, False)


def test_what_others_have_set_meanwhile_stays(cluster: Cluster) -> None:
    theirs = {LEADER_RATE: "5", FOLLOWER_RATE: "6"}

    def others() -> None:
        cluster.configs["broker", "2"] = dict(theirs)
        cluster.configs["topic", "orders"][LEADER_REPLICAS] += ",1:1"
        cluster.before_alter = lambda: None

    cluster.before_alter = others
    assert interrupted(cluster) == [OFF]
    assert set_now(cluster) == {
        ("broker", "2"): theirs,
        ("topic", "orders"): {LEADER_REPLICAS: "1:1"},
    }
