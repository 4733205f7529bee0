"""The group runner itself, on kafka-python's own assignors, and the topics that the kit makes."""

import re
import subprocess
import sys
import uuid
from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException
from kafka.coordinator.assignors.range import RangePartitionAssignor

from integration_tests.support.scene import Scene, sizes
from integration_tests.support.waiting import has_ended, wait_for
from kafka_assignors._timelines.events import Event
from kafka_assignors.testing import Cluster, ConsumerGroup, GroupNotStableError, create_topic

MakeGroup = Callable[..., ConsumerGroup]
MakeTopic = Callable[..., str]


def kinds(events: tuple[Event, ...]) -> list[str]:
    return [event.kind for event in events]


def test_a_member_has_begun_once_its_consumer_has_subscribed(scene: Scene) -> None:
    group = scene.group([RangePartitionAssignor])
    member = group.join("a", held=True)
    group.wait_for(lambda: member.last_event is not None, what="its process to run")
    assert not member.begun
    member.release()
    group.wait_for(lambda: member.begun, what="a to subscribe")
    assert kinds(group.timeline.events)[:3] == ["started", "configured", "subscribed"]


def test_what_is_not_consumed_is_said_to_be_in_the_log(scene: Scene) -> None:
    group = scene.group([RangePartitionAssignor])
    member = group.join("a")
    group.wait_stable()
    member.pause_polling()
    with scene.load(200) as load:
        group.wait_for(lambda: len(load.produced) == 6, what="a record of each partition")
        produced = load.stop()
    with pytest.raises(GroupNotStableError) as refused:
        group.wait_consumed(load, timeout=0.5)
    said = str(refused.value)
    assert "waiting for all records to be consumed (what counts is what polls returned):" in said
    for partition, count in produced.items():
        name = f"{partition.topic}-{partition.partition}"
        assert f"\n  - the log of {name} ends at {count}\n" in said


def test_members_beyond_the_partitions_have_none(topic_factory: MakeTopic, consumer_group: MakeGroup) -> None:
    group = consumer_group(topic_factory(1), [RangePartitionAssignor])
    group.join("static", instance_id="first by name")
    group.join("idle")
    assert sizes(group, expect={"static": 1, "idle": 0}) == {"static": 1, "idle": 0}


def test_a_wait_in_vain_tells_who_holds_the_group_up(scene: Scene) -> None:
    group = scene.group([RangePartitionAssignor])
    group.join("a")
    b = group.join("b")
    group.wait_stable()
    b.freeze()
    with pytest.raises(GroupNotStableError) as caught:
        group.wait_stable(timeout=0.5)
    message = str(caught.value)
    assert "timed out after 0.5 s waiting for the group to be stable" in message
    assert "- the coordinator still lists b" in message
    (held,) = re.findall(r"^  b: frozen, generation \d+, topic-\w+:([\d,]+);", message, re.MULTILINE)
    for number in held.split(","):
        assert f"- {scene.topic}-{number} is owned by nobody" in message
    assert re.search(r"coordinator: Stable range\n  a: topic-\w+:[\d,]+\n  b: topic-\w+:", message)
    assert re.search(r"\d+\.\d{3} b +frozen$", message, re.MULTILINE)


ORPHANS = """
import sys, time
from kafka_assignors.testing import ConsumerGroup
group = ConsumerGroup(sys.argv[1], sys.argv[2], ["kafka.coordinator.assignors.range:RangePartitionAssignor"])
awake, frozen, silent = group.join(), group.join(), group.join()
group.wait_stable()
silent.pause_polling()
frozen.freeze()
print(awake.pid, frozen.pid, silent.pid, flush=True)
time.sleep(60)
"""


def test_members_die_with_their_parent(topic: str, kafka_cluster: Cluster) -> None:
    servers = ",".join(kafka_cluster.bootstrap_servers)
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANS, servers, topic], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert [has_ended(pid) for pid in pids] == [False, False, False]
        parent.kill()
    wait_for("the end of all", lambda: all(has_ended(pid) for pid in pids), 10)


def test_a_member_with_short_polls_that_recalls_its_joins_comes_back_with_other_topics(
    topic_factory: MakeTopic, consumer_group: MakeGroup
) -> None:
    one, two = topic_factory(2), topic_factory(2)
    group = consumer_group([one, two], [RangePartitionAssignor], recalls_joins=True)
    group.join("a", poll_ms=1000, work_ms=1000)  # the join of b waits for it, for longer than a poll of b
    b = group.join("b", poll_ms=50)
    group.wait_stable()
    b.subscribe([two], wait=False)
    stable = group.wait_stable()
    assert {partition.topic for partition in stable.assignments["b"]} == {two}
    assert b.state().subscription == {two}
    assert b.state().coordinator == "stable"
    assert sum(map(len, stable.assignments.values())) == 4


# Topics


def test_a_drawn_name_that_is_taken_is_the_topic_of_a_request_whose_answer_was_lost(
    kafka_cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = uuid.uuid4()
    monkeypatch.setattr(uuid, "uuid4", lambda: drawn)
    name = create_topic(kafka_cluster, 3)
    assert create_topic(kafka_cluster, 3) == name


def test_a_given_name_that_is_taken_is_refused(kafka_cluster: Cluster, topic: str) -> None:
    with pytest.raises(KafkaException, match="already exists"):
        create_topic(kafka_cluster, 6, name=topic)
