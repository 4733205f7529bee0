"""The command `kafka-assignors demo`, run as a user does."""

import json
import os
import signal
import subprocess
from typing import Any

import psutil
import pytest

from integration_tests.support.commands import COMMAND


def run_demo(*arguments: str) -> tuple[list[dict[str, Any]], str]:
    done = subprocess.run(
        [COMMAND, "demo", "--json", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("client", ["kafka-python", "aiokafka"])
def test_the_demo_tells_each_rebalance_and_loses_nothing(client: str, kafka_cluster: Any) -> None:
    servers = ",".join(kafka_cluster.bootstrap_servers)
    (run,), shown = run_demo("--bootstrap-server", servers, "--client", client)
    assert (run["assignor"], run["ok"], run["lost"], run["owned_twice"]) == ("cooperative-sticky", True, 0, 0)
    assert run["produced"] == run["consumed"] > 500
    assert run["moves"] == run["least_moves"] == 2
    titles = [step["title"] for step in run["steps"]]
    assert titles == [
        "three members join",
        "a fourth member joins",
        "m2 is killed (SIGKILL)",
        "m3 leaves",
        "orders gets 2 more partitions",
    ]
    assert all(title in shown for title in titles)
    members = [sorted(step["assignment"]) for step in run["steps"]]
    assert members == [["m1", "m2", "m3"], ["m1", "m2", "m3", "m4"], ["m1", "m3", "m4"], *[["m1", "m4"]] * 2]
    for step in run["steps"]:
        assert step["generations"], step["title"]
        assert step["generations"][-1]["leader"] in {"m1", "m2", "m3", "m4"}
    partitions = [
        sum(len(ids) for topics in step["assignment"].values() for ids in topics.values())
        for step in run["steps"]
    ]
    assert partitions == [10, 10, 10, 10, 12]
    # A killed member's partitions wait for the end of its session.
    assert run["longest_not_consumed_seconds"] > 2


def test_strategies_are_compared_in_one_table(kafka_cluster: Any) -> None:
    runs, shown = run_demo(
        *("--bootstrap-server", ",".join(kafka_cluster.bootstrap_servers)),
        *("--compare", "--assignor", "roundrobin", "--assignor", "broadcast"),
    )
    assert [run["assignor"] for run in runs] == ["roundrobin", "broadcast"]
    assert runs[0]["moves"] > runs[0]["least_moves"]
    assert "The same story by each strategy" in shown


def test_ctrl_c_leaves_nothing_running(kafka_cluster: Any) -> None:
    demo = subprocess.Popen(
        [COMMAND, "demo", "--bootstrap-server", ",".join(kafka_cluster.bootstrap_servers)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert demo.stdout is not None
    for line in demo.stdout:
        if "three members join" in line:
            break
    else:
        pytest.fail(f"the demo ended early: {demo.communicate()}")
    started = psutil.Process(demo.pid).children(recursive=True)
    assert len(started) >= 3
    os.killpg(demo.pid, signal.SIGINT)
    _, said = demo.communicate(timeout=30)
    assert demo.returncode == 130
    assert "nothing is left running" in said
    assert [one for one in started if one.is_running()] == []
