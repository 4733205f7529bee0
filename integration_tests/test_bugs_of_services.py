"""Bugs that people write into their services: the kit's assertions find each, and name the fault."""

from __future__ import annotations

import re
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from kafka import TopicPartition

from integration_tests.support import services
from kafka_assignors.testing import (
    CommitFailed,
    Committed,
    Consumed,
    GroupNotStableError,
    Load,
    PolledLate,
    Processed,
)
from kafka_assignors.testing._topics import admin_client

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kafka_assignors.testing import Cluster, ConsumerGroup, Seat, Timeline

    MakeGroup = Callable[..., ConsumerGroup]
    Service = Callable[[Seat], Any]

QUICK = {"session_timeout_ms": 3000}


def ends(records: Mapping[TopicPartition, Any]) -> dict[TopicPartition, int]:
    """The offsets behind the last reported records."""
    return {partition: max(one.last for one in reports) + 1 for partition, reports in records.items()}


def is_amid_a_batch(timeline: Timeline) -> bool:
    """Whether a member has processed some of the records that its last poll returned, and not the most."""

    def count(kind: type[Consumed | Processed]) -> int:
        return sum(last + 1 - first for one in timeline.of(kind) for _, first, last in one.records)

    polls = timeline.of(Consumed)
    if not polls:
        return False
    batch = sum(last + 1 - first for _, first, last in polls[-1].records)
    left = count(Consumed) - count(Processed)
    return 20 < left < batch


def message(assertion: Callable[..., None], *arguments: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assertion(*arguments)
    return str(caught.value)


def crashed_amid_a_batch(
    service: Service, kafka: Cluster, topic: str, consumer_group: MakeGroup
) -> tuple[Timeline, Mapping[TopicPartition, int]]:
    """What came of a member that crashed in the midst of a batch, and of another in its place."""
    group = consumer_group(topic, client=service, members=1, settings=QUICK)
    with Load(kafka, topic, rate=200) as load:
        group.wait_for(lambda: is_amid_a_batch(group.timeline), what="the member to be amid a batch")
        group.members["m1"].crash()
        produced = load.stop()
    group.join("m2")
    group.wait_for(lambda: ends(group.timeline.handled) == produced, what="the end of the log")
    return group.timeline, produced


def test_what_is_committed_before_it_is_processed_is_lost(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    timeline, produced = crashed_amid_a_batch(services.commits_first, kafka_cluster, topic, consumer_group)
    said = message(timeline.assert_all_consumed, produced)
    assert re.match(
        r"\d+ of \d+ records were not processed \(what counts is what applications say\):\n", said
    )
    assert re.search(
        rf"{topic}-\d: \d+ of \d+, offsets [\d., ]+: m1 polled offsets? [\d., ]+ and committed \d+ before"
        r" it had processed them; it crashed at \d",
        said,
    )
    # What polls returned is all there: this is what was counted before, and passed.
    assert {one: [*runs] for one, runs in timeline.consumed().items()} == {
        one: [(0, count - 1)] for one, count in produced.items()
    }


def test_what_is_committed_when_it_is_processed_is_not_lost(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    timeline, produced = crashed_amid_a_batch(services.commits_last, kafka_cluster, topic, consumer_group)
    timeline.assert_all_consumed(produced)


def handed_over(
    service: Service, kafka: Cluster, topic: str, consumer_group: MakeGroup
) -> tuple[ConsumerGroup, Mapping[TopicPartition, int]]:
    """A service of one member that had processed all when a second one came, and how much there was."""
    group = consumer_group(topic, client=service, members=1)
    with Load(kafka, topic, rate=200) as load:
        group.wait_for(lambda: len(group.timeline.of(Processed)) > 20, what="records to be processed")
        produced = load.stop()
    group.wait_consumed(load)
    group.join("m2")
    group.wait_stable(expect={"m2": 3})
    return group, produced


def test_a_cache_that_is_kept_beyond_its_partition_is_named(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    group, _ = handed_over(services.keeps_its_cache, kafka_cluster, topic, consumer_group)
    said = message(group.timeline.assert_released_on_revoke)
    assert said.startswith("members held on to what they had for partitions that were taken from them:\n")
    found = re.findall(
        r"m1 held its cache when the partition was revoked at [\d.]+ s, and never let go", said
    )
    assert len(found) >= 3


def test_a_cache_that_goes_with_its_partition_is_not(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    group, _ = handed_over(services.forgets_its_cache, kafka_cluster, topic, consumer_group)
    group.timeline.assert_released_on_revoke()


def again(service: Service, kafka: Cluster, topic: str, consumer_group: MakeGroup) -> Timeline:
    """What came of it when the second member has read all that it reads."""
    group, before = handed_over(service, kafka, topic, consumer_group)
    # Behind these, wherever it began, the newcomer has read all that was there.
    with Load(kafka, topic, rate=200) as more:
        group.wait_for(lambda: sum(more.produced.values()) > 20, what="more records")
        after = more.stop()
    total = {one: before[one] + after[one] for one in before}
    group.wait_for(lambda: ends(group.timeline.handled) == total, what="the end of the log")
    return group.timeline


def test_who_hands_over_without_a_commit_is_named(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    timeline = again(services.hands_over_uncommitted, kafka_cluster, topic, consumer_group)
    said = message(timeline.assert_no_duplicates)
    assert re.match(r"\d+ records were processed more than once", said)
    assert re.search(
        r"m1 had processed offsets 0\.\.\d+ and had committed nothing when m2 got them at \d", said
    )


def test_a_commit_in_a_listener_that_the_client_cannot_do_is_told(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    timeline = again(services.commits_where_it_cannot, kafka_cluster, topic, consumer_group)
    said = message(timeline.assert_no_duplicates)
    assert re.search(r"; its commit at [\d.]+ s failed: RuntimeError: Cannot block on net\.run\(\)", said)
    assert {one.member for one in timeline.of(CommitFailed)} >= {"m1"}


def test_a_commit_in_a_listener_that_can_do_it_leaves_nothing_to_come_again(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    again(services.commits_at_hand_over, kafka_cluster, topic, consumer_group).assert_no_duplicates()


# Pauses -----------------------------------------------------------------------------------------------

ALLOWED_MS = 1000 * services.LONG - 500


def test_who_works_for_longer_than_it_may_is_named_with_the_setting(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    settings = {"max_poll_interval_ms": 2000}
    group = consumer_group(topic, client=services.works_too_long, members=2, settings=settings)
    with Load(kafka_cluster, topic, rate=50):
        group.wait_for(lambda: group.timeline.of(PolledLate, member="m1"), what="m1 to poll late")
    said = message(partial(group.timeline.assert_paused_at_most, ALLOWED_MS, by="records"))
    assert re.search(
        r" m1 did not poll for \d+\.\d s, until [\d.]+ s, more than max_poll_interval_ms=2000", said
    )


def test_a_frozen_member_is_named_with_its_session_timeout(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    group = consumer_group(topic, ["range"], members=2, settings=QUICK)
    before = group.wait_stable()
    began = time.monotonic()
    with Load(kafka_cluster, topic, rate=50) as load:
        group.wait_for(lambda: sum(load.produced.values()) > 20, what="records")
        group.members["m1"].freeze()
        group.wait_stable(members=[group.members["m2"]])
        load.stop()
        group.members["m1"].thaw()
    assert before.protocol == "range"
    said = message(partial(group.timeline.assert_paused_at_most, 1500, by="records", since=began))
    assert re.search(
        r" m1 was frozen at [\d.]+ s, longer than session_timeout_ms=3000; generation \d+, without it, was",
        said,
    )


def test_a_listener_that_takes_long_is_named(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    group = consumer_group(topic, client=services.listens_too_long, members=1)
    with Load(kafka_cluster, topic, rate=50) as load:
        group.wait_for(lambda: sum(load.produced.values()) > 20, what="records")
        group.join("m2")
        group.wait_stable()
        load.stop()
    group.wait_consumed(load)
    said = message(partial(group.timeline.assert_paused_at_most, ALLOWED_MS, by="records"))
    assert re.search(r" m1 spent 5\.\d s in its on_partitions_revoked, until \d", said)


def test_a_leader_that_plans_for_long_is_named(topic: str, consumer_group: MakeGroup) -> None:
    group = consumer_group(topic, [services.SlowAssignor], members=1)
    group.join("m2")
    group.wait_stable()
    said = message(partial(group.timeline.assert_paused_at_most, ALLOWED_MS))
    assert re.search(r" m\d planned generation \d+ for 5\.\d s, as its leader", said)


def test_a_wait_in_vain_says_what_took_the_time(
    kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    group = consumer_group(topic, client=services.works_too_long, members=1)
    with Load(kafka_cluster, topic, rate=50):
        group.wait_for(lambda: group.timeline.of(Consumed, member="m1"), what="records")
        group.join("m2")
        with pytest.raises(GroupNotStableError) as caught:
            group.wait_stable(timeout=services.LONG / 2)
    assert re.search(
        r"what took the time:\n  m1 did not poll for \d\.\d s, to [\d.]+ s \(it may for max_poll_interval_ms",
        str(caught.value),
    )


# Commits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka", "aiokafka", "java"])
def test_the_commits_of_each_client_are_those_that_the_coordinator_has(
    client: str, kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    group = consumer_group(topic, ["range"], client=client, members=2)
    with Load(kafka_cluster, topic, rate=200) as load:
        group.wait_for(lambda: sum(load.produced.values()) > 50, what="records")
        produced = load.stop()
    group.wait_consumed(load)
    for member in group.members.values():
        member.commit()
    told = {one: at for event in group.timeline.of(Committed) for one, at in event.positions.items()}
    assert told == produced == committed_of(group)


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka", "aiokafka"])
def test_commits_by_a_client_s_timer_are_seen(
    client: str, kafka_cluster: Cluster, topic: str, consumer_group: MakeGroup
) -> None:
    timer = {"auto_commit_interval_ms": 200}
    group = consumer_group(topic, ["range"], client=client, members=1, settings=timer, commit="auto")
    with Load(kafka_cluster, topic, rate=200) as load:
        group.wait_for(lambda: sum(load.produced.values()) > 50, what="records")
        produced = load.stop()

    def told() -> dict[TopicPartition, int]:
        commits = group.timeline.of(Committed)
        return {one: at for event in commits for one, at in event.positions.items()}

    group.wait_for(lambda: told() == produced, what="the timer's commits")
    assert committed_of(group) == produced


def committed_of(group: ConsumerGroup) -> dict[TopicPartition, int]:
    """What the coordinator has."""
    admin: Any = admin_client(group.access)
    request = confluent_kafka.ConsumerGroupTopicPartitions(group.group_id)
    found = admin.list_consumer_group_offsets([request])[group.group_id].result()
    return {TopicPartition(one.topic, one.partition): one.offset for one in found.topic_partitions}
