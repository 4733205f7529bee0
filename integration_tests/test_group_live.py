"""`kafka-assignors group explain` on groups that somebody on call looks at: stuck, of KIP-848, and behind."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from integration_tests.support.commands import run_command
from integration_tests.support.records import commit, produce
from integration_tests.support.waiting import wait_for
from kafka_assignors._assignors import RangeAssignor
from kafka_assignors._cluster.groups import describe_classic, describe_consumer
from kafka_assignors.testing import ConsumerGroup, create_topic, grow_topic
from kafka_assignors.testing._brokers.access import Access
from kafka_assignors.testing._topics import admin_client

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from kafka_assignors._cluster.admin import Admin
    from kafka_assignors.testing import Cluster

PATIENCE = 60.0  # seconds

PAGE = Path(__file__).parents[1] / "docs" / "coordinator.md"
JSON_FIELDS = PAGE.read_text(encoding="utf-8").split("### As JSON\n")[1].split("\n### ")[0]
UNSAID = {"claims", "claimed_generation", "layout", "leads", "unreadable", "version"}
"""Fields of members of classic groups that are as in `MemberAccount`."""


def explained(cluster: Cluster, group_id: str, *arguments: str) -> Any:
    done = run_command(cluster, "group", "explain", group_id, "--json", *arguments)
    assert done.stderr == ""
    return json.loads(done.stdout)


def wait_for_state(admin: Admin, group_id: str, state: str) -> None:
    def there() -> bool:
        return getattr(describe_classic(admin, [group_id])[group_id], "state", None) == state

    wait_for(state, there, PATIENCE)


class BlockedAssignor(RangeAssignor):
    """Whose leader hangs until it is let go."""

    let_go = threading.Event()

    def assign(self, cluster: Any, members: Any) -> Any:
        self.let_go.wait(PATIENCE)
        return super().assign(cluster, members)


@contextmanager
def polled(consumers: Sequence[Any]) -> Iterator[None]:
    """Consumers of librdkafka that are polled meanwhile."""
    stop = threading.Event()

    def poll() -> None:
        while not stop.is_set():
            for consumer in consumers:
                consumer.poll(0.05)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def owned_by(consumer: Any) -> int:
    """How many partitions it has, after a poll."""
    consumer.poll(0.05)
    return len(consumer.assignment())


@contextmanager
def consumers_of(
    cluster: Cluster, group_id: str, subscriptions: Mapping[str, str], **settings: object
) -> Iterator[dict[str, Any]]:
    """Consumers of librdkafka by their client ids, with what they subscribe to: if empty, nothing yet."""
    common = {**cluster.access.librdkafka(), "group.id": group_id, "enable.auto.commit": False}
    consumers: dict[str, Any] = {
        name: Consumer({**common, "client.id": name, **settings}) for name in subscriptions
    }
    try:
        for name, topic in subscriptions.items():
            if topic:
                consumers[name].subscribe([topic])
        yield consumers
    finally:
        for consumer in consumers.values():
            consumer.close()


def test_of_a_stuck_group_it_is_said_who_joined_and_until_when_it_waits(
    kafka_cluster: Cluster, admin: Admin, group_id: str
) -> None:
    topic = create_topic(kafka_cluster, 6)
    settings = {"session_timeout_ms": 120_000, "max_poll_interval_ms": 150_000}
    with ConsumerGroup(kafka_cluster, topic, [RangeAssignor], group_id=group_id, timeout=240) as group:
        a = group.join("a", settings=settings)
        group.wait_stable()
        a.freeze()
        before = time.time() * 1000
        group.join("b", settings=settings)
        wait_for_state(admin, group_id, "PreparingRebalance")
        out = run_command(kafka_cluster, "group", "explain", group_id, "--check", "--observe", "1")
        found = explained(kafka_cluster, group_id, "--observe", "1")
        a.thaw()
        group.wait_stable()
        settled = run_command(kafka_cluster, "group", "explain", group_id)
    joining = found["joining"]
    assert (joining["state"], joining["joined"]) == ("PreparingRebalance", ["b"])
    assert (joining["unsure"], joining["missing"], joining["gone"]) == (["a"], "a", [])
    assert joining["seen_seconds"] > 0
    assert joining["patience_ms"] == 150_000
    assert before + 150_000 < joining["until_ms"] < time.time() * 1000 + 150_000
    assert joining["last_generation_ms"] < before
    assert found["problems"][0]["kind"] == "rebalancing"
    assert out.returncode == 1
    waited = "\n  have joined: b\n  has not joined: a, unless a new member has yet to come back with its id\n"
    assert f"{waited}  waited for until " in out.stdout
    assert out.stdout.startswith(f"{group_id}: PreparingRebalance, generation 1\n")
    assert settled.stdout.startswith(f"{group_id}: Stable, generation 2\n")
    assert "a rebalance is on" not in settled.stdout


def test_of_a_group_whose_leader_hangs_the_leader_is_named(
    kafka_cluster: Cluster, admin: Admin, group_id: str
) -> None:
    topic = create_topic(kafka_cluster, 2)
    BlockedAssignor.let_go.set()
    settings = {"session_timeout_ms": 120_000}
    with ConsumerGroup(
        kafka_cluster, topic, [BlockedAssignor], group_id=group_id, place="thread", timeout=240
    ) as group:
        group.join("a", settings=settings)
        group.wait_stable()
        BlockedAssignor.let_go.clear()
        group.join("b", settings=settings)
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


def test_a_rebalance_that_passes_while_it_is_looked_at_is_no_problem(
    kafka_cluster: Cluster, admin: Admin, group_id: str
) -> None:
    topic = create_topic(kafka_cluster, 6)
    with ConsumerGroup(kafka_cluster, topic, [RangeAssignor], group_id=group_id, timeout=240) as group:
        a = group.join("a", settings={"session_timeout_ms": 120_000})
        group.wait_stable()
        a.freeze()
        group.join("b", settings={"session_timeout_ms": 120_000})
        wait_for_state(admin, group_id, "PreparingRebalance")
        thaw = threading.Timer(3.0, a.thaw)
        thaw.start()
        found = explained(kafka_cluster, group_id, "--observe", "60")
        thaw.join()
        group.wait_stable()
    assert (found["state"], found["joining"], found["generation"]) == ("Stable", None, 2)
    assert "rebalancing" not in [problem["kind"] for problem in found["problems"]]


def test_a_group_of_kip_848_is_explained(kafka_cluster: Cluster, admin: Admin, group_id: str) -> None:
    topic = create_topic(kafka_cluster, 4)
    subscriptions = {"a": topic, "b": f"^{topic[:-1]}.*"}
    with (
        consumers_of(kafka_cluster, group_id, subscriptions, **{"group.protocol": "consumer"}) as consumers,
        polled([*consumers.values()]),
    ):

        def stable() -> bool:
            group: Any = describe_consumer(admin, [group_id])[group_id]
            if getattr(group, "state", None) != "Stable" or len(group.members) != len(subscriptions):
                return False  # an expression is resolved after its member has joined
            return [len(member.assignment) for member in group.members] == [2, 2]

        wait_for("a stable group", stable, PATIENCE)
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


def test_of_a_group_of_kip_848_on_its_way_it_is_said_who_holds_it_up(
    kafka_cluster: Cluster, admin: Admin, group_id: str
) -> None:
    topic = create_topic(kafka_cluster, 4)
    with consumers_of(
        kafka_cluster, group_id, {"a": topic, "b": ""}, **{"group.protocol": "consumer"}
    ) as consumers:
        a, b = consumers["a"], consumers["b"]
        wait_for("an owner", lambda: owned_by(a) == 4, PATIENCE)
        b.subscribe([topic])

        def held_up() -> bool:
            group: Any = describe_consumer(admin, [group_id])[group_id]
            return getattr(group, "state", None) == "Reconciling" and len(group.members) == 2

        with polled([b]):  # a does not poll: it lets go of nothing
            wait_for("a group that is held up", held_up, PATIENCE)
            found = explained(kafka_cluster, group_id, "--observe", "1")
            checked = run_command(kafka_cluster, "group", "explain", group_id, "--check", "--observe", "1")
    assert found["state"] == "Reconciling"
    held = {one["member"]: one for one in found["behind"]}
    assert (len(held["a"]["lets_go"]), held["a"]["takes"]) == (2, [])
    assert (held["b"]["takes"], held["b"]["waits_for"]) == (held["a"]["lets_go"], ["a"])
    assert len(found["would_move"]) == 2
    assert found["problems"][0]["kind"] == "behind"
    assert found["problems"][0]["text"].startswith("a has partitions that others are to have, for ")
    assert checked.returncode == 1
    assert "2 partitions are to move:\n" in checked.stdout


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_lag_is_told_by_partition_and_member(kafka_cluster: Cluster, group_id: str, protocol: str) -> None:
    topic = create_topic(kafka_cluster, 4)
    produce(kafka_cluster, topic, {0: 10, 1: 20, 2: 30})
    with consumers_of(kafka_cluster, group_id, {"a": topic}, **{"group.protocol": protocol}) as consumers:
        a = consumers["a"]
        wait_for("an assignment", lambda: owned_by(a) == 4, PATIENCE)
        a.commit(offsets=[TopicPartition(topic, 0, 4), TopicPartition(topic, 1, 20)], asynchronous=False)
        with polled([a]):
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
    kafka_cluster: Cluster, group_id: str
) -> None:
    topic = create_topic(kafka_cluster, 2)
    produce(kafka_cluster, topic, {0: 10, 1: 10})
    commit(kafka_cluster, group_id, topic, 4)
    deleted = [TopicPartition(topic, 0, 10), TopicPartition(topic, 1, 10)]
    admin = admin_client(Access.to(kafka_cluster))  # one that is collected answers nothing
    for one in admin.delete_records(deleted).values():
        one.result()
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


def test_partitions_that_nobody_has_are_said(kafka_cluster: Cluster, group_id: str) -> None:
    topic = create_topic(kafka_cluster, 2)
    settings = {"session_timeout_ms": 120_000, "metadata_max_age_ms": 600_000}
    with ConsumerGroup(kafka_cluster, topic, [RangeAssignor], group_id=group_id, timeout=240) as group:
        leader = group.join("a", settings=settings)
        group.wait_stable()
        leader.freeze()  # the update of its metadata that it asked for as it planned may not be here yet
        grow_topic(kafka_cluster, topic, 4)
        found = explained(kafka_cluster, group_id)
        checked = run_command(kafka_cluster, "group", "explain", group_id, "--check")
        leader.thaw()
    assert [problem["text"] for problem in found["problems"] if problem["kind"] == "no owner"] == [
        f"nobody has {topic}-2, {topic}-3"
    ]
    owners = [one["owner"] for one in found["lag"]["partitions"]]
    assert owners[2:] == [None, None]
    assert checked.returncode == 1


def test_a_group_of_offsets_alone_is_explained(kafka_cluster: Cluster, group_id: str) -> None:
    topic = create_topic(kafka_cluster, 1)
    produce(kafka_cluster, topic, {0: 10})
    commit(kafka_cluster, group_id, topic, 4)
    found = explained(kafka_cluster, group_id)
    assert (found["state"], found["members"], found["rebalances"]) == ("Empty", [], [])
    assert found["lag"]["total"] == 6
    refused = run_command(kafka_cluster, "group", "what-if", group_id)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"kafka-assignors group what-if: of group '{group_id}' no record is left that has its members'"
        " settings\n"
    )
