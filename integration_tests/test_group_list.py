"""`kafka-assignors group list`: all groups of a cluster, the worst first, with few requests."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from integration_tests.support.commands import run_command
from integration_tests.support.records import commit, produce
from integration_tests.support.waiting import wait_for
from kafka_assignors._assignors import RangeAssignor
from kafka_assignors._cluster.groups import describe_classic
from kafka_assignors.groups._status import read_groups
from kafka_assignors.testing import ConsumerGroup, create_topic

if TYPE_CHECKING:
    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors.testing import Cluster

PATIENCE = 60.0  # seconds


@pytest.fixture
def topic(kafka_cluster: Cluster) -> str:
    """A topic of two partitions, with ten records in the first."""
    topic = create_topic(kafka_cluster, 2)
    produce(kafka_cluster, topic, {0: 10})
    return topic


def listed(cluster: Cluster, *arguments: str) -> Any:
    done = run_command(cluster, "group", "list", *arguments, "--json")
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_the_worst_groups_come_first_and_fail_a_check(
    kafka_cluster: Cluster, admin: Admin, group_id: str, topic: str
) -> None:
    commit(kafka_cluster, f"{group_id}-ahead", topic, 99)
    commit(kafka_cluster, f"{group_id}-far", topic, 1)
    commit(kafka_cluster, f"{group_id}-near", topic, 8)
    stuck = f"{group_id}-stuck"
    settings = {"session_timeout_ms": 120_000}
    with ConsumerGroup(kafka_cluster, topic, [RangeAssignor], group_id=stuck, timeout=240) as group:
        a = group.join("a", settings=settings)
        group.wait_stable()
        a.freeze()
        group.join("b", settings=settings)
        wait_for(
            "a rebalance",
            lambda: getattr(describe_classic(admin, [stuck])[stuck], "state", "") == "PreparingRebalance",
            PATIENCE,
        )
        found = listed(kafka_cluster, f"{group_id}-*", "--observe", "1")
        text = run_command(kafka_cluster, "group", "list", f"{group_id}-*", "--observe", "1", "--check")
        a.thaw()
        group.wait_stable()
    assert [(one["group"].removeprefix(f"{group_id}-"), one["state"], one["members"]) for one in found] == [
        ("stuck", "PreparingRebalance", 2),
        ("ahead", "Empty", 0),
        ("far", "Empty", 0),
        ("near", "Empty", 0),
    ]
    assert [problem["kind"] for one in found[:2] for problem in one["problems"]] == ["rebalancing", "offsets"]
    assert [one["lag"]["total"] for one in found] == [0, 0, 9, 2]
    lines = text.stdout.splitlines()
    assert lines[0] == "4 groups, 1 with errors, 1 with warnings; lag: 11 records"
    assert [line.split()[0].removeprefix(f"{group_id}-") for line in lines[3:]] == [
        "stuck",
        "ahead",
        "far",
        "near",
    ]
    assert text.returncode == 1


def test_groups_at_rest_pass_a_check_unless_they_lag_too_far(
    kafka_cluster: Cluster, group_id: str, topic: str
) -> None:
    with ConsumerGroup(kafka_cluster, topic, [RangeAssignor], group_id=group_id, timeout=240) as group:
        group.join("a", settings={"session_timeout_ms": 120_000})
        group.wait_stable()
        (found,) = listed(kafka_cluster, group_id, "--check")
        passed = run_command(kafka_cluster, "group", "list", group_id, "--check")
    assert (found["type"], found["strategy"], found["members"]) == ("classic", "range", 1)
    assert [problem["severity"] for problem in found["problems"]] in ([], ["note"])
    assert passed.returncode == 0
    commit(kafka_cluster, f"{group_id}-far", topic, 1)
    lagging = run_command(kafka_cluster, "group", "list", f"{group_id}-far", "--check", "--max-lag", "8")
    assert lagging.returncode == 1
    assert "  error: it is 9" in lagging.stdout
    enough = run_command(kafka_cluster, "group", "list", f"{group_id}-far", "--check", "--max-lag", "9")
    assert enough.returncode == 0


def test_many_groups_take_as_many_requests_as_few(
    kafka_cluster: Cluster, admin: Admin, group_id: str, topic: str
) -> None:
    manager = admin.once(lambda client: client)._manager
    send, sent = manager.send, list[str]()

    def counted(request: Any, *arguments: Any, **more: Any) -> Any:
        sent.append(type(request).__name__)
        return send(request, *arguments, **more)

    manager.send = counted
    try:
        counts = []
        for many in (2, 60):
            for number in range(many):
                commit(kafka_cluster, f"{group_id}-{many}-{number}", topic, number % 10)
            sent.clear()
            found = read_groups(admin, [f"{group_id}-{many}-*"])
            assert sum(one.lag.total for one in found if one.lag) == sum(10 - n % 10 for n in range(many))
            counts.append(len(sent))
    finally:
        manager.send = send
    assert counts[0] == counts[1] <= 10
