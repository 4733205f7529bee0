"""More bugs of services: the kit finds what became of the records, and names the cause."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from kafka import TopicPartition

from integration_tests.support import services
from integration_tests.support.says import says
from integration_tests.test_bugs_of_services import (
    QUICK,
    committed,
    count,
    crashed,
    ends,
    message,
    put_poison,
    some_records,
)
from kafka_assignors.testing import GroupNotStableError
from kafka_assignors.testing.events import Committed, Consumed, Exited, Failed, Processed, Raised, Sought

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from integration_tests.support.scene import Scene
    from kafka_assignors.testing import Seat, Timeline

    Service = Callable[[Seat], Any]


def is_behind(timeline: Timeline) -> bool:
    """Whether m1 has many records that it polled and has not processed."""
    return count(timeline, Consumed, "m1") - count(timeline, Processed, "m1") > 300


def has_begun(timeline: Timeline) -> bool:
    return count(timeline, Processed, "m1") > 50


def joined_at_work(
    service: Service, scene: Scene, *, rate: int = 250, when: Callable[[Timeline], bool] = is_behind
) -> Timeline:
    """What came of a member and of a second one that got partitions of it at such a moment, under load."""
    group = scene.group(client=service, members=1)
    with scene.load(rate) as load:
        group.wait_for(lambda: when(group.timeline), what="the moment to join")
        group.join("m2")
        group.wait_for(lambda: count(group.timeline, Processed, "m2") > 20, what="m2 to be at work")
        load.stop()
    group.wait_consumed(load)
    group.members["m1"].leave()  # when it has processed all that it polled
    return group.timeline


def test_records_that_a_pool_has_when_their_partition_is_gone_are_named(scene: Scene) -> None:
    said = message(joined_at_work(services.works_in_a_pool, scene).assert_no_duplicates)
    assert says("works_in_a_pool", said)


def test_records_that_a_task_processes_behind_the_next_owner_are_named(scene: Scene) -> None:
    said = message(joined_at_work(services.hands_over_what_it_has_in_a_queue, scene).assert_in_order)
    assert says("hands_over_what_it_has_in_a_queue", said)


def test_a_service_that_waits_for_its_task_keeps_the_order(scene: Scene) -> None:
    service = partial(services.hands_over_what_it_has_in_a_queue, waits=True)
    joined_at_work(service, scene, rate=50, when=has_begun).assert_in_order()


def taken_over(service: Service, scene: Scene) -> tuple[Timeline, Mapping[TopicPartition, int]]:
    """What came of a member that was behind when another got partitions of it, and how many records came."""
    group = scene.group(client=service, members=1)
    with scene.load(150) as load:
        group.wait_processed(50)
        group.join("m2")
        group.wait_for(lambda: count(group.timeline, Processed, "m2") > 20, what="m2 to be at work")
        produced = load.stop()
    group.wait_for(lambda: ends(group.timeline.handled) == produced, what="the end of the log")
    return group.timeline, produced


def test_a_record_that_a_listener_sought_past_is_named(scene: Scene) -> None:
    timeline, produced = taken_over(services.seeks_past_a_record, scene)
    said = message(timeline.assert_all_consumed, produced)
    assert says("seeks_past_a_record", said)


def test_a_listener_that_seeks_where_it_is_skips_nothing(scene: Scene) -> None:
    timeline, produced = taken_over(partial(services.seeks_past_a_record, by=0), scene)
    assert timeline.of(Sought, member="m2")
    timeline.assert_all_consumed(produced)


@pytest.mark.parametrize(
    ("client", "callback"),
    [
        (services.begins_anew_with_each_partition, "on_partitions_assigned"),
        (services.begins_anew_with_kafka_python, "on_partitions_assigned"),
        (services.begins_anew_with_librdkafka, "on_assign"),
    ],
    ids=["aiokafka", "kafka-python", "confluent-kafka"],
)
def test_records_that_come_again_as_a_listener_sought_back_are_named(
    client: Service, callback: str, scene: Scene
) -> None:
    timeline, _ = taken_over(client, scene)
    said = message(timeline.assert_no_duplicates)
    assert says("begins_anew_with_each_partition", said.replace(callback, "on_partitions_assigned"))
    assert {one.callback for one in timeline.of(Sought)} == {callback}


def test_two_threads_in_one_consumer_are_named(scene: Scene) -> None:
    group = scene.group(client=services.polls_in_two_threads, members=1)
    load = scene.records(group, 200, rate=200)
    group.wait_consumed(load)
    said = message(group.timeline.assert_in_order)
    assert says("polls_in_two_threads", said)


def poisoned(service: Service, scene: Scene) -> tuple[Timeline, Mapping[TopicPartition, int], int]:
    """What came of a service amid whose records in partition 0 is one that it cannot read; and its offset."""
    group = scene.group(client=service)
    before = scene.records(group, 20).produced
    offset = put_poison(scene)
    after = scene.records(group, 20).produced
    produced = {one: at + after[one] + (one.partition == 0) for one, at in before.items()}
    group.join("m1")
    group.wait_for(lambda: committed(group.timeline) == produced, what="all to be committed")
    return group.timeline, produced, offset


@pytest.mark.parametrize("service", [services.logs_what_it_cannot_read, services.forgets_its_tasks])
def test_an_exception_that_was_logged_and_passed_over_is_named(service: Service, scene: Scene) -> None:
    timeline, produced, offset = poisoned(service, scene)
    assert {one.where for one in timeline.of(Raised)} == {"log"}
    assert timeline.missing(produced) == {TopicPartition(scene.topic, 0): (offset,)}
    said = message(timeline.assert_all_consumed, produced)
    assert says("logs_what_it_cannot_read", said)


def test_a_position_that_is_committed_behind_a_batch_that_failed_is_named(scene: Scene) -> None:
    timeline, produced, _ = poisoned(services.commits_its_position, scene)
    said = message(timeline.assert_all_consumed, produced)
    assert says("commits_its_position", said)


def test_a_batch_that_a_service_tries_again_is_named(scene: Scene) -> None:
    timeline, _, _ = poisoned(services.tries_again, scene)
    said = message(timeline.assert_no_duplicates)
    assert says("tries_again", said)


@pytest.mark.parametrize(
    "client",
    [
        services.deserializes_each_record,
        services.deserializes_each_record_with_aiokafka,
        services.deserializes_each_record_with_librdkafka,
    ],
    ids=["kafka-python", "aiokafka", "confluent-kafka"],
)
def test_a_record_at_which_a_deserializer_raised_is_named(client: Service, scene: Scene) -> None:
    group = scene.group(client=client, members=2, settings=QUICK)
    some_records(group, scene)
    offset = put_poison(scene)
    with pytest.raises(GroupNotStableError) as caught:
        group.wait_consumed({TopicPartition(scene.topic, 0): offset + 1})
    said = str(caught.value)
    assert says("deserializes_each_record", said)
    assert f"  - {scene.topic}-0 offset {offset} ended m" in said
    failed = group.timeline.of(Failed)
    assert {one.records for one in failed} == {((TopicPartition(scene.topic, 0), offset, offset),)}
    # The first to fail may be the last to end.
    ended = [one.member for one in group.timeline.of(Exited)]
    assert ended == [*re.findall(r"ended (m\d) at \S+ s, then (m\d) at", said)[0]]
    assert {one.member for one in failed} == {*ended}
    message(group.timeline.assert_no_errors)


def test_what_is_processed_again_is_named_with_the_commit_from_which_it_came(scene: Scene) -> None:
    def has_some_uncommitted(timeline: Timeline) -> bool:
        done, sure = count(timeline, Processed, "m1"), sum(committed(timeline).values())
        return sure > 0 and done - sure > 20

    group, load = crashed(services.commits_now_and_then, scene, when=has_some_uncommitted)
    group.wait_consumed(load)
    timeline = group.timeline
    said = message(timeline.assert_no_duplicates)
    assert says("commits_now_and_then", said)
    last = {
        one: (at, event.time)
        for event in timeline.of(Committed, member="m1")
        for one, at in event.positions.items()
    }
    for partition in timeline.duplicates():
        at, time = last[partition]
        assert f"(the last commit was {at}, by m1 at {time - timeline.begin:.3f} s) when m2 got them" in said


def test_what_a_handler_raises_is_named_with_its_record(scene: Scene) -> None:
    timeline, produced, offset = poisoned(services.handles_and_goes_on, scene)
    said = message(timeline.assert_all_consumed, produced)
    assert re.search(
        rf"; m1 had from its handler ValueError: invalid literal for int\(\) with base 10: b'not a number' at"
        rf" offset {offset}, at [\d.]+ s",
        said,
    )
