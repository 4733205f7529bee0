"""`kafka-assignors group` on a running cluster: what it finds and says of groups and their rebalances."""

from typing import Any

import pytest
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from integration_tests.support.commands import read_command, run_command
from kafka_assignors._assignors import Assignor, CooperativeStickyAssignor, RangeAssignor, StickyAssignor
from kafka_assignors._cluster.admin import Admin
from kafka_assignors._groups.finding import GROUPS_TOPIC
from kafka_assignors.testing import (
    Cluster,
    ConsumerGroup,
    create_topic,
    grow_topic,
)
from kafka_assignors.testing._brokers.metadata import coordinator_by
from tests.support.pages import listings

PAGE = "docs/coordinator.md"
SETTINGS = {"session_timeout_ms": 9000, "metadata_max_age_ms": 500}


@pytest.fixture(name="kafka")
def _kafka(three_brokers: Cluster) -> Cluster:
    return three_brokers


def explained(cluster: Cluster, group_id: str) -> Any:
    return read_command(cluster, "group", "explain", group_id, status=0)


def reasons(cluster: Cluster, group_id: str) -> list[str]:
    return [change["text"] for change in explained(cluster, group_id)["rebalances"][-1]["changes"]]


def group_of(cluster: Cluster, topic: str, group_id: str, assignor: type[Assignor]) -> ConsumerGroup:
    return ConsumerGroup(cluster, topic, [assignor], group_id=group_id, settings=SETTINGS, timeout=240)


def test_a_groups_members_and_what_they_have_are_told(kafka: Cluster, group_id: str) -> None:
    topic = create_topic(kafka, 6)
    with group_of(kafka, topic, group_id, CooperativeStickyAssignor) as group:
        group.join("a")
        group.join("b", instance_id="inst-b")
        stable = group.wait_stable()
        found = explained(kafka, group_id)
    assert (found["state"], found["generation"]) == ("Stable", stable.generation)
    assert (found["strategy"], found["imbalance"], found["best_imbalance"]) == ("cooperative-sticky", 0, 0)
    assert [(one["name"], one["client_id"], one["instance_id"]) for one in found["members"]] == [
        ("a", "a", None),
        ("inst-b", "b", "inst-b"),
    ]
    assert {one["client_id"]: one["assignment"] for one in found["members"]} == {
        name: sorted([one.topic, one.partition] for one in partitions)
        for name, partitions in stable.assignments.items()
    }
    assert {one["session_timeout_ms"] for one in found["members"]} == {9000}
    assert [one["member_id"] for one in found["members"] if one["leads"]] == [found["leader"]]
    assert found["coordinator"]["broker"] == coordinator_by(kafka.bootstrap_servers[0], group_id)
    assert (found["would_move"], found["record_limit"]) == ([], 1_048_588)
    assert [problem["kind"] for problem in found["problems"]] == ["timeouts"]


def test_reasons_are_told_apart(kafka: Cluster, group_id: str) -> None:
    topic = create_topic(kafka, 6)
    with group_of(kafka, topic, group_id, RangeAssignor) as group:
        a = group.join("a")
        group.wait_stable()
        group.join("b")
        group.wait_stable()
        assert reasons(kafka, group_id) == ["b/127.0.0.1 joined"]
        c = group.join("c", instance_id="inst-c")
        before = group.wait_stable()
        assert reasons(kafka, group_id) == ["inst-c joined"]
        c.restart()
        after = group.wait_stable()
        assert after.generation == before.generation
        assert reasons(kafka, group_id) == ["inst-c came back"]
        grow_topic(kafka, topic, 8)
        group.wait_stable()
        assert reasons(kafka, group_id) == [f"{topic} has 2 more partitions"]
        a.leave()
        group.wait_stable()
        # Soon after the last rebalance it cannot have been lost; on a slow machine it may be later.
        assert reasons(kafka, group_id)[0] in {
            "a/127.0.0.1 left: no timeout was over",
            "a/127.0.0.1 left, or was lost",
        }
        second = create_topic(kafka, 2)
        group.members["b"].subscribe([topic, second])
        group.wait_stable()
        assert reasons(kafka, group_id) == [f"b/127.0.0.1 subscribed to {second}"]


def test_histories_that_members_cannot_read_of_one_another_are_found(kafka: Cluster, group_id: str) -> None:
    topic = create_topic(kafka, 6)
    with group_of(kafka, topic, group_id, StickyAssignor) as group:
        group.join("a")
        group.join("b")
        group.wait_stable()
        group.join("stock", assignors=[StickyPartitionAssignor])
        group.wait_stable()
        # By now all have something to tell: the next rebalance has it told.
        group.join("d")
        group.wait_stable()
        problems = explained(kafka, group_id)["problems"]
    texts = {problem["kind"]: problem["text"] for problem in problems}
    assert texts["foreign user data"] == (
        "members say what they had in different layouts (a, b: Java's; stock: kafka-python's)"
    )


def test_the_limit_of_the_record_is_the_topics(kafka: Cluster, group_id: str) -> None:
    topic = create_topic(kafka, 1)
    with group_of(kafka, topic, group_id, RangeAssignor) as group, Admin(kafka.bootstrap_servers) as admin:
        group.join("a")
        group.wait_stable()

        def limit(size: int) -> None:
            configs = {"max.message.bytes": str(size)}
            changed = ConfigResource(ConfigResourceType.TOPIC, GROUPS_TOPIC, configs=configs)
            admin.once(lambda client: client.alter_configs([changed]))

        limit(400)
        try:
            found = explained(kafka, group_id)
            assert run_command(kafka, "group", "explain", group_id, "--check").returncode == 1
        finally:
            limit(1_048_588)
    assert found["record_limit"] == 400
    assert [problem["kind"] for problem in found["problems"]] == ["record size"]


@pytest.mark.parametrize("code", [code for code in listings(PAGE) if "Cluster(" in code])
def test_a_listing_of_the_page_runs(kafka: Cluster, code: str) -> None:
    topic = create_topic(kafka, 2)
    with group_of(kafka, topic, "billing", RangeAssignor) as group:
        group.join("a")
        group.wait_stable()
        exec(code.replace("kafka-1:9092", ",".join(kafka.bootstrap_servers)), {})  # noqa: S102 - the page is ours


def test_who_does_not_exist_is_refused(kafka: Cluster) -> None:
    done = run_command(kafka, "group", "explain", "nobody")
    assert done.returncode == 2
    assert done.stderr == ("kafka-assignors group explain: the cluster has no group 'nobody'\n")
