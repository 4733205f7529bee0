"""`kafka-assignors group` on groups that somebody on call looks at, and what Prometheus reads of them."""

import os
import re
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from prometheus_client.parser import text_string_to_metric_families

from integration_tests.support.commands import begin_command, next_error_line, read_command, run_command
from integration_tests.support.records import commit, produce
from integration_tests.support.waiting import wait_for
from kafka_assignors._assignors import RangeAssignor
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._cluster.groups import describe_classic
from kafka_assignors.groups._status import read_groups
from kafka_assignors.testing import Cluster, ConsumerGroup, create_topic
from kafka_assignors.testing._topics import admin_client

PATIENCE = 60.0  # seconds

PAGE = Path(__file__).parents[1] / "docs" / "coordinator.md"
JSON_FIELDS = PAGE.read_text(encoding="utf-8").split("### As JSON\n")[1].split("\n### ")[0]
UNSAID = {"claims", "claimed_generation", "layout", "leads", "unreadable", "version"}
"""Fields of members of classic groups that are as in `MemberAccount`."""

BY_EPOCHS = {"group_protocol": "consumer"}
LONG = {"session_timeout_ms": 120_000, "max_poll_interval_ms": 150_000}
LEADERS = {
    "confluent-kafka": "librdkafka",
    "kafka-python": "kafka-python",
    "aiokafka": "aiokafka",
    "java": "java",
}


def explained(cluster: Cluster, group_id: str, *arguments: str) -> Any:
    return read_command(cluster, "group", "explain", group_id, *arguments)


def wait_for_state(admin: Admin, group_id: str, state: str) -> None:
    def there() -> bool:
        return getattr(describe_classic(admin, [group_id])[group_id], "state", None) == state

    wait_for(state, there, PATIENCE)


def group_on(
    cluster: Cluster, topic: str, group_id: str, assignors: Any = (RangeAssignor,), **how: Any
) -> ConsumerGroup:
    return ConsumerGroup(cluster, topic, assignors, group_id=group_id, timeout=240, **how)


@contextmanager
def stuck_group(cluster: Cluster, admin: Admin, topic: str, group_id: str) -> Iterator[ConsumerGroup]:
    """A group of two, whose rebalance waits for `a`, which is frozen."""
    with group_on(cluster, topic, group_id, settings=LONG) as group:
        a = group.join("a")
        group.wait_stable()
        a.freeze()
        group.join("b")
        wait_for_state(admin, group_id, "PreparingRebalance")
        yield group


class BlockedAssignor(RangeAssignor):
    """Whose leader hangs until it is let go."""

    let_go = threading.Event()

    def assign(self, cluster: Any, members: Any) -> Any:
        self.let_go.wait(PATIENCE)
        return super().assign(cluster, members)


@pytest.fixture
def topic(kafka_cluster: Cluster) -> str:
    """A topic of two partitions, with ten records in the first."""
    topic = create_topic(kafka_cluster, 2)
    produce(kafka_cluster, topic, {0: 10})
    return topic


def test_of_a_stuck_group_it_is_said_who_joined_and_until_when_it_waits(
    kafka_cluster: Cluster, admin: Admin, group_id: str, topic: str
) -> None:
    begun = time.time() * 1000
    with stuck_group(kafka_cluster, admin, topic, group_id) as group:
        stuck = time.time() * 1000
        out = run_command(kafka_cluster, "group", "explain", group_id, "--check", "--observe", "1")
        found = explained(kafka_cluster, group_id, "--observe", "1")
        thaw = threading.Timer(3.0, group.members["a"].thaw)
        thaw.start()
        passed = explained(kafka_cluster, group_id, "--observe", "60")
        thaw.join()
        group.wait_stable()
    joining = found["joining"]
    assert (joining["state"], joining["joined"]) == ("PreparingRebalance", ["b"])
    assert (joining["unsure"], joining["missing"], joining["gone"]) == (["a"], "a", [])
    assert joining["seen_seconds"] > 0
    assert joining["patience_ms"] == 150_000
    assert begun + 150_000 < joining["until_ms"] < time.time() * 1000 + 150_000
    assert joining["last_generation_ms"] < stuck
    assert found["problems"][0]["kind"] == "rebalancing"
    assert out.returncode == 1
    waited = "\n  have joined: b\n  has not joined: a, unless a new member has yet to come back with its id\n"
    assert f"{waited}  waited for until " in out.stdout
    assert out.stdout.startswith(f"{group_id}: PreparingRebalance, generation 1\n")
    # A rebalance that passes while it is looked at is no problem.
    assert (passed["state"], passed["joining"], passed["generation"]) == ("Stable", None, 2)
    assert "rebalancing" not in [problem["kind"] for problem in passed["problems"]]


def test_of_a_group_whose_leader_hangs_the_leader_is_named(
    kafka_cluster: Cluster, admin: Admin, group_id: str, topic: str
) -> None:
    BlockedAssignor.let_go.set()
    with group_on(kafka_cluster, topic, group_id, [BlockedAssignor], settings=LONG, place="thread") as group:
        group.join("a")
        group.wait_stable()
        BlockedAssignor.let_go.clear()
        group.join("b")
        wait_for_state(admin, group_id, "CompletingRebalance")
        found = explained(kafka_cluster, group_id, "--observe", "1")
        checked = run_command(kafka_cluster, "group", "explain", group_id, "--check", "--observe", "1")
        BlockedAssignor.let_go.set()
        group.wait_stable()
    joining = found["joining"]
    assert (joining["state"], joining["leader"]) == ("CompletingRebalance", "a")
    assert (joining["joined"], joining["unsure"]) == (["a", "b"], [])
    assert checked.returncode == 1
    assert "\n  the leader (a) has yet to send the assignment\n" in checked.stdout


def test_a_group_of_kip_848_is_explained(kafka_cluster: Cluster, group_id: str) -> None:
    topic = create_topic(kafka_cluster, 4)
    with group_on(
        kafka_cluster, topic, group_id, None, client="confluent-kafka", settings=BY_EPOCHS
    ) as group:
        group.join("a")
        group.join("b", topics=re.compile(f"{topic[:-1]}.*"))
        group.wait_stable(expect={"a": 2, "b": 2})
        found = explained(kafka_cluster, group_id)
        out = run_command(kafka_cluster, "group", "explain", group_id, "--check")
    assert (found["type"], found["state"], found["assignor"]) == ("consumer", "Stable", "uniform")
    assert found["epoch"] == found["assignment_epoch"]
    assert [(one["name"], one["epoch"] == found["epoch"]) for one in found["members"]] == [
        ("a", True),
        ("b", True),
    ]
    a, b = found["members"]
    assert (a["topics"], a["expression"], b["topics"]) == ([topic], None, [])
    assert topic[:-1] in b["expression"]
    assert sorted(a["assignment"] + b["assignment"]) == [[topic, number] for number in range(4)]
    assert (a["target"], b["target"]) == (a["assignment"], b["assignment"])
    assert (found["behind"], found["would_move"], found["problems"]) == ([], [], [])
    assert out.returncode == 0
    assert out.stdout.startswith(f"{group_id}: Stable, epoch {found['epoch']} (KIP-848)\n")


def test_lag_is_told_by_partition_and_member(kafka_cluster: Cluster, group_id: str) -> None:
    topic = create_topic(kafka_cluster, 4)
    produce(kafka_cluster, topic, {0: 10, 1: 20, 2: 30})
    commit(kafka_cluster, group_id, topic, 4, 20)
    how: Any = {"client": "confluent-kafka", "settings": BY_EPOCHS, "commit": "never"}
    with group_on(kafka_cluster, topic, group_id, None, **how) as group:
        group.join("a")
        group.wait_stable()
        found = explained(kafka_cluster, group_id)
        out = run_command(kafka_cluster, "group", "explain", group_id)
    (owner,) = found["members"]
    assert [
        (one["partition"], one["committed"], one["end"], one["lag"]) for one in found["lag"]["partitions"]
    ] == [(0, 4, 10, 6), (1, 20, 20, 0), (2, None, 30, None), (3, None, 0, None)]
    assert {one["owner"] for one in found["lag"]["partitions"]} == {owner["member_id"]}
    assert (found["lag"]["total"], found["lag"]["uncommitted"]) == (6, 1)
    assert (owner["lag"], owner["uncommitted"]) == (6, 1)
    assert [problem["text"] for problem in found["problems"] if problem["kind"] == "no commit"] == [
        f"the group has no commit of {topic}-2, where there are records"
    ]
    told = {*found, *owner, *found["lag"], *found["lag"]["partitions"][0]}
    assert [name for name in sorted(told - UNSAID) if f"`{name}`" not in JSON_FIELDS] == []
    lines = out.stdout.splitlines()
    place = lines.index("lag: 6 records in 4 partitions, 1 of which has records and no commit")
    assert [line.split() for line in lines[place + 1 : place + 4]] == [
        ["partition", "owner", "committed", "end", "lag"],
        [f"{topic}-0", "a", "4", "10", "6"],
        [f"{topic}-2", "a", "no", "commit", "30", "-"],
    ]


def test_records_that_were_deleted_before_they_were_read_are_no_lag(
    kafka_cluster: Cluster, group_id: str, topic: str
) -> None:
    commit(kafka_cluster, group_id, topic, 4)
    admin = admin_client(kafka_cluster)  # one that is collected answers nothing
    (deleted,) = admin.delete_records([TopicPartition(topic, 0, 10)]).values()
    deleted.result()
    found = explained(kafka_cluster, group_id)
    checked = run_command(kafka_cluster, "group", "list", group_id, "--max-lag", "0", "--check")
    assert [
        (one["beginning"], one["end"], one["lag"], one["lost"]) for one in found["lag"]["partitions"]
    ] == [(10, 10, 0, 6)]
    assert (found["lag"]["total"], found["lag"]["uncommitted"], found["lag"]["lost"]) == (0, 0, 6)
    assert [problem["text"] for problem in found["problems"]] == [
        f"deleted before the group had read them: 6 offsets of {topic}-0"
    ]
    assert checked.returncode == 0


def test_a_group_of_offsets_alone_is_explained(kafka_cluster: Cluster, group_id: str, topic: str) -> None:
    commit(kafka_cluster, group_id, topic, 4)
    found = explained(kafka_cluster, group_id)
    assert (found["state"], found["members"], found["rebalances"]) == ("Empty", [], [])
    assert found["lag"]["total"] == 6
    refused = run_command(kafka_cluster, "group", "what-if", group_id)
    assert refused.returncode == 2
    assert refused.stderr == (
        "kafka-assignors group what-if: no record with the settings of its members is left of group"
        f" '{group_id}'\n"
    )


def test_the_worst_groups_come_first_and_fail_a_check(
    kafka_cluster: Cluster, admin: Admin, group_id: str, topic: str
) -> None:
    for name, offset in (("ahead", 99), ("far", 1), ("near", 8)):
        commit(kafka_cluster, f"{group_id}-{name}", topic, offset)
    with stuck_group(kafka_cluster, admin, topic, f"{group_id}-stuck"):
        found = read_command(kafka_cluster, "group", "list", f"{group_id}-*", "--observe", "1")
        text = run_command(kafka_cluster, "group", "list", f"{group_id}-*", "--observe", "1", "--check")
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
            lags = {one.group_id: one.lag and one.lag.total for one in found}
            assert lags == {f"{group_id}-{many}-{n}": 10 - n % 10 for n in range(many)}
            counts.append(len(sent))
    finally:
        manager.send = send
    assert counts[0] == counts[1] <= 10


@pytest.mark.parametrize("strategy", ["range", "roundrobin"])
@pytest.mark.parametrize("client", LEADERS)
def test_nothing_is_said_to_move_that_its_leader_would_not_move(
    kafka_cluster: Cluster, group_id: str, client: str, strategy: str
) -> None:
    topic = create_topic(kafka_cluster, 10)
    place = "process" if client == "java" else "thread"
    with group_on(kafka_cluster, topic, group_id, [strategy], client=client, place=place) as group:
        # Ids between those of dynamic members, and in the other order than the members' names.
        for name, instance_id in (("c", None), ("b", "d-z"), ("e", None), ("f", "a-y")):
            group.join(name, instance_id=instance_id)
        group.wait_stable()
        found = explained(kafka_cluster, group_id, "--leader-client", LEADERS[client])
        guessed = explained(kafka_cluster, group_id)
        text = run_command(kafka_cluster, "group", "explain", group_id).stdout
    assert found["predictions"][LEADERS[client]] == []
    assert found["would_move"] == []
    others = {name: moves for name, moves in found["predictions"].items() if name != LEADERS[client]}
    assert any(others.values()), "the members do not tell the clients apart"
    if client in {"confluent-kafka", "java"}:  # what the others send is the same
        assert guessed["leader_client"] == LEADERS[client]
        assert "\nin a rebalance now nothing would move, by " in text
    else:
        assert guessed["leader_client"] is None
        assert "by the client that leads, which is" in " ".join(text.split())


# Metrics


Samples = dict[str, float]


def samples(text: str, group_id: str) -> Samples:
    """Each sample of the group and of the whole, by its name and the values of its other labels."""
    found = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            assert one.labels.pop("group", group_id) == group_id
            found[" ".join([one.name, *(value for _, value in sorted(one.labels.items()))])] = one.value
    assert found.pop("kafka_groups_read_seconds") > 0
    return found


def make(cluster: Cluster, group_id: str) -> str:
    """A group that has read four records of ten; its topic."""
    topic = create_topic(cluster, 1)
    produce(cluster, topic, {0: 10})
    commit(cluster, group_id, topic, 4)
    return topic


def test_metrics_are_printed_or_written_once(kafka_cluster: Cluster, group_id: str, tmp_path: Path) -> None:
    topic = make(kafka_cluster, group_id)
    printed = run_command(kafka_cluster, "group", "export", group_id)
    path = tmp_path / "groups.prom"
    written = run_command(kafka_cluster, "group", "export", group_id, "--output", str(path))
    assert (printed.returncode, written.returncode, written.stdout) == (0, 0, "")
    wanted = {
        "kafka_groups_up": 1.0,
        "kafka_group_state Empty classic": 1.0,
        "kafka_group_described": 1.0,
        "kafka_group_members": 0.0,
        "kafka_group_lag_known": 1.0,
        **dict.fromkeys([f"kafka_group_problems {one}" for one in ("error", "warning", "note")], 0.0),
        "kafka_group_uncommitted_partitions": 0.0,
        f"kafka_group_lag_records 0 {topic}": 6.0,
        f"kafka_group_lost_records 0 {topic}": 0.0,
    }
    assert samples(printed.stdout, group_id) == wanted
    assert samples(path.read_text(encoding="utf-8"), group_id) == wanted
    assert [one.name for one in tmp_path.iterdir()] == ["groups.prom"]


def test_metrics_are_served_anew_at_each_request(kafka_cluster: Cluster, group_id: str) -> None:
    topic = make(kafka_cluster, group_id)
    with begin_command(kafka_cluster, "group", "export", group_id, "--listen", "0") as process:
        try:
            said = next_error_line(process)
            match = re.fullmatch(r"serving (http://127\.0\.0\.1:\d+/metrics); Ctrl-C ends it\n", said)
            assert match is not None, said

            def read() -> Samples:
                with urllib.request.urlopen(match[1], timeout=PATIENCE) as response:  # noqa: S310 - our own
                    return samples(response.read().decode(), group_id)

            assert read()["kafka_group_members"] == 0.0
            with ConsumerGroup(
                kafka_cluster,
                topic,
                client="confluent-kafka",
                group_id=group_id,
                settings={"group_protocol": "consumer"},
            ) as group:
                group.join()
                group.wait_stable()
                found = read()
            assert found["kafka_group_state Stable consumer"] == 1.0
            assert found["kafka_group_members"] == 1.0
            assert found["kafka_group_epoch"] >= 1.0
            assert found["kafka_group_unowned_partitions"] == 0.0
        finally:
            os.kill(process.pid, signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
