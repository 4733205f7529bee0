"""Bugs that people write into their services: the kit's assertions find each, and name the fault."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from kafka import TopicPartition

from integration_tests.support import services
from integration_tests.support.says import SAYS, says
from kafka_assignors.testing import GroupNotStableError
from kafka_assignors.testing._topics import admin_client
from kafka_assignors.testing.events import (
    Assigned,
    Closed,
    CommitFailed,
    Committed,
    Consumed,
    Exited,
    Noted,
    PolledLate,
    Processed,
    Subscribed,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from integration_tests.support.scene import Scene
    from kafka_assignors.testing import ConsumerGroup, Load, Seat, Timeline

    Service = Callable[[Seat], Any]

QUICK = {"session_timeout_ms": 3000}


def ends(records: Mapping[TopicPartition, Any]) -> dict[TopicPartition, int]:
    """The offsets behind the last reported records."""
    return {partition: max(one.last for one in reports) + 1 for partition, reports in records.items()}


def count(timeline: Timeline, kind: type[Consumed | Processed], member: str) -> int:
    """Number of records that a member polled, or processed."""
    return sum(last + 1 - first for one in timeline.of(kind, member=member) for _, first, last in one.records)


def is_amid_a_batch(timeline: Timeline) -> bool:
    """Whether m1 has processed some of the records that its last poll returned, and not the most."""
    polls = timeline.of(Consumed)
    if not polls:
        return False
    batch = sum(last + 1 - first for _, first, last in polls[-1].records)
    return 20 < count(timeline, Consumed, "m1") - count(timeline, Processed, "m1") < batch


def committed(timeline: Timeline) -> dict[TopicPartition, int]:
    """Where each partition was committed last."""
    return {one: at for event in timeline.of(Committed) for one, at in event.positions.items()}


def has_committed_ahead(timeline: Timeline) -> bool:
    """Whether more than 20 records are committed, and not processed."""
    return sum(committed(timeline).values()) - sum(ends(timeline.handled).values()) > 20


def is_through(timeline: Timeline, member: str, produced: Mapping[TopicPartition, int]) -> bool:
    """Whether all is committed, and a member has processed what it polled."""
    return committed(timeline) == produced and count(timeline, Consumed, member) == count(
        timeline, Processed, member
    )


def message(assertion: Callable[..., None], *arguments: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assertion(*arguments)
    return str(caught.value)


def crashed(
    service: Service, scene: Scene, *, when: Callable[[Timeline], bool] = is_amid_a_batch
) -> tuple[ConsumerGroup, Load]:
    """A group whose member crashed at such a moment, with another in its place."""
    group = scene.group(client=service, members=1, settings=QUICK)
    with scene.load(200) as load:
        group.wait_for(lambda: when(group.timeline), what="the moment to crash")
        group.members["m1"].crash()
        load.stop()
    group.join("m2")
    return group, load


@pytest.mark.parametrize("service", [services.commits_first, services.commits_by_timer])
def test_what_is_committed_before_it_is_processed_is_lost(service: Service, scene: Scene) -> None:
    group, load = crashed(service, scene, when=has_committed_ahead)
    # The wait ends when nobody is at work.
    with pytest.raises(GroupNotStableError) as gave_up:
        group.wait_consumed(load, timeout=600)
    waited = str(gave_up.value)
    assert "gave up waiting for all records to be processed (what counts is what applications say):" in waited
    assert re.search(
        r"-\d: \d+ of \d+ missing, offsets [\d., …]+: m1 polled offsets? [\d., …]+ and committed ", waited
    )
    said = message(group.timeline.assert_all_consumed, load.produced)
    assert re.match(
        r"\d+ of \d+ records were not processed \(what counts is what applications say\):\n", said
    )
    assert says(service.__name__, said)
    # What polls returned is all there: this is what was counted before, and passed.
    assert {one: [*runs] for one, runs in group.timeline.consumed().items()} == {
        one: [(0, count - 1)] for one, count in load.produced.items()
    }


@pytest.mark.parametrize("service", [services.commits_last, services.commits_by_itself])
def test_what_is_committed_when_it_is_processed_is_not_lost(service: Service, scene: Scene) -> None:
    group, load = crashed(service, scene)
    group.wait_consumed(load)
    group.timeline.assert_all_consumed(load.produced)


def test_what_was_there_before_a_consumer_that_begins_at_the_end_is_lost(scene: Scene) -> None:
    group = scene.group(client=services.begins_at_the_end)
    before = scene.records(group, 50).produced
    group.join("m1")
    group.wait_stable()
    with scene.load(50) as more:
        group.wait_for(lambda: len(group.timeline.handled) == len(before), what="records of each partition")
        after = more.stop()
    produced = {one: before[one] + after.get(one, 0) for one in before}
    group.wait_for(lambda: ends(group.timeline.handled) == produced, what="the end of the log")
    assert says("begins_at_the_end", message(group.timeline.assert_all_consumed, produced))


def put_poison(scene: Scene) -> int:
    """Append a record that no service can read, to partition 0; its offset."""
    producer = confluent_kafka.Producer(scene.cluster.access.librdkafka())
    offsets: list[Any] = []
    producer.produce(
        scene.topic,
        services.POISON,
        partition=0,
        on_delivery=lambda _, record: offsets.append(record.offset()),
    )
    assert producer.flush(60) == 0
    return int(offsets[0])


def ended_by_poison(scene: Scene, members: int) -> tuple[str, int]:
    """What is said when a group waits for a record that its members cannot read; and the record's offset."""
    group = scene.group(client=services.trusts_each_record, members=members, settings=QUICK)
    some_records(group, scene)
    offset = put_poison(scene)
    with pytest.raises(GroupNotStableError) as caught:
        group.wait_for(lambda: ends(group.timeline.handled)[TopicPartition(scene.topic, 0)] > offset)
    said = str(caught.value)
    assert said.count("first exception:") == members
    return said, offset


def test_a_record_that_ends_one_member_after_the_other_is_named_with_all_of_them(scene: Scene) -> None:
    said, offset = ended_by_poison(scene, 3)
    assert says("trusts_each_record", said)
    # What one of them left undone and another processed is no poison, and is not named.
    assert re.findall(r"(\S+) offset (\d+) ended m", said) == [(f"{scene.topic}-0", f"{offset}")]
    assert said.count("ValueError: invalid literal for int() with base 10: b'not a number'") >= 3


def test_a_record_that_ends_the_only_member_is_named(scene: Scene) -> None:
    said, offset = ended_by_poison(scene, 1)
    assert (
        f"m1 ended by itself; the first that it had polled and not processed: {scene.topic}-0 offset {offset}"
        in said
    )


def some_records(group: ConsumerGroup, scene: Scene) -> None:
    """Produce some, and wait until they are processed."""
    load = scene.records(group, 20)
    group.wait_consumed(load)


def handed_over(service: Service, scene: Scene) -> tuple[ConsumerGroup, Mapping[TopicPartition, int]]:
    """A service of one member that had processed all when a second one came, and how much there was."""
    group = scene.group(client=service, members=1)
    with scene.load(50) as load:
        group.wait_for(lambda: len(group.timeline.of(Processed)) > 20, what="records to be processed")
        produced = load.stop()
    group.wait_consumed(load)
    group.join("m2")
    group.wait_stable(expect={"m2": 3})
    return group, produced


def test_a_cache_that_is_kept_beyond_its_partition_is_named(scene: Scene) -> None:
    group, _ = handed_over(services.keeps_its_cache, scene)
    said = message(group.timeline.assert_released_on_revoke)
    assert said.startswith("members held on to what they had for partitions that were taken from them:\n")
    assert len(re.findall(SAYS["keeps_its_cache"], said)) >= 3


def test_a_cache_that_goes_with_its_partition_is_not(scene: Scene) -> None:
    group, _ = handed_over(partial(services.keeps_its_cache, forgets=True), scene)
    group.timeline.assert_released_on_revoke()


def again(service: Service, scene: Scene) -> Timeline:
    """What came of it when the second member has read all that it reads."""
    group, before = handed_over(service, scene)
    # Behind these, wherever it began, the newcomer has read all that was there.
    after = scene.records(group, 20).produced
    total = {one: before[one] + after[one] for one in before}
    group.wait_for(lambda: ends(group.timeline.handled) == total, what="the end of the log")
    return group.timeline


def test_who_hands_over_without_a_commit_is_named(scene: Scene) -> None:
    timeline = again(services.hands_over_uncommitted, scene)
    said = message(timeline.assert_no_duplicates)
    assert re.match(r"\d+ records were processed more than once", said)
    assert says("hands_over_uncommitted", said)


def test_a_commit_in_a_listener_that_the_client_cannot_do_is_told(scene: Scene) -> None:
    timeline = again(services.commits_where_it_cannot, scene)
    said = message(timeline.assert_no_duplicates)
    assert says("commits_where_it_cannot", said)
    assert {one.member for one in timeline.of(CommitFailed)} >= {"m1"}


def test_a_commit_in_a_listener_that_can_do_it_leaves_nothing_to_come_again(scene: Scene) -> None:
    again(services.commits_at_hand_over, scene).assert_no_duplicates()


# Members ----------------------------------------------------------------------------------------------


def test_a_listener_that_raises_is_named(scene: Scene) -> None:
    group = scene.group(client=services.loads_what_is_not_there, members=1)
    # aiokafka logs what the listener raised, and goes on.
    group.wait_stable()
    said = message(group.timeline.assert_no_errors)
    assert says("loads_what_is_not_there", said)


def test_who_keeps_a_group_rebalancing_is_named(scene: Scene) -> None:
    group = scene.group(client=services.commits_last, members=1)
    first = group.wait_stable()
    group.join("stormy", client=services.makes_a_consumer_for_each_batch)
    group.wait_for(
        lambda: len(group.timeline.of(Subscribed, member="stormy")) > 5, what="six consumers, one by one"
    )
    said = message(partial(group.timeline.assert_no_rebalance, after=first.generation))
    assert says("makes_a_consumer_for_each_batch", said)


def test_two_members_of_one_instance_id_are_named(scene: Scene) -> None:
    group = scene.group(client=services.has_its_instance_id_from_a_file, members=1)
    group.wait_stable()
    group.join("m2")
    with pytest.raises(GroupNotStableError) as caught:
        group.wait_stable(timeout=20)
    assert says("has_its_instance_id_from_a_file", str(caught.value))


# Pauses -----------------------------------------------------------------------------------------------

ALLOWED_MS = 1000 * services.LONG - 500


def test_who_works_for_longer_than_it_may_is_named_with_the_setting(scene: Scene) -> None:
    settings = {"max_poll_interval_ms": 2000}
    group = scene.group(client=services.works_too_long, members=2, settings=settings)
    with scene.load(50):
        group.wait_for(lambda: group.timeline.of(PolledLate, member="m1"), what="m1 to poll late")
    # Others get its partitions when the 2 s are over, so the pause may be shorter than its work.
    said = message(partial(group.timeline.assert_paused_at_most, 1500, by="records"))
    assert says("works_too_long", said)


def test_a_listener_that_takes_long_is_named(scene: Scene) -> None:
    group = scene.group(client=services.listens_too_long, members=1)
    with scene.load(50) as load:
        group.wait_for(lambda: sum(load.produced.values()) > 20, what="records")
        group.join("m2")
        group.wait_stable()
        load.stop()
    group.wait_consumed(load)
    said = message(partial(group.timeline.assert_paused_at_most, ALLOWED_MS, by="records"))
    assert says("listens_too_long", said)


def test_a_leader_that_plans_for_long_is_named(scene: Scene) -> None:
    group = scene.group([services.SlowAssignor], members=1)
    group.join("m2")
    group.wait_stable()
    said = message(partial(group.timeline.assert_paused_at_most, ALLOWED_MS))
    assert re.search(r" m\d planned generation \d+ for 5\.\d s, as its leader", said)


def test_a_wait_in_vain_says_what_took_the_time(scene: Scene) -> None:
    group = scene.group(client=services.works_too_long, members=1)
    with scene.load(50):
        group.wait_for(lambda: group.timeline.of(Consumed, member="m1"), what="records")
        group.join("m2")
        with pytest.raises(GroupNotStableError) as caught:
            group.wait_stable(timeout=services.LONG / 2)
    assert re.search(
        r"what took the time:\n  m1 did not poll for \d\.\d s, to [\d.]+ s \(it may for max_poll_interval_ms",
        str(caught.value),
    )


# Commits that are refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "client",
    [
        services.commits_last,
        services.commits_last_with_librdkafka,
        partial(services.commits_last_with_aiokafka, ours=False),
        partial(services.commits_last_with_aiokafka, ours=True),
    ],
    ids=["kafka-python", "librdkafka", "aiokafka", "our aiokafka"],
)
def test_a_commit_that_the_coordinator_refuses_is_named_with_its_generation(
    client: Service, scene: Scene
) -> None:
    group = scene.group(client=client, members=1, settings=QUICK)
    with scene.load(200) as load:
        group.wait_for(lambda: is_amid_a_batch(group.timeline), what="m1 amid a batch")
        group.members["m1"].freeze()
        # Not always the first: a client whose metadata came late joins twice.
        before = group.timeline.of(Assigned, member="m1")[-1].generation
        produced = load.stop()
    m2 = group.join("m2")
    stable = group.wait_stable(members=[m2])
    group.wait_for(lambda: is_through(group.timeline, "m2", produced), what="m2 to have read all")
    group.members["m1"].thaw()
    group.wait_for(lambda: group.timeline.of(CommitFailed, member="m1"), what="m1 to commit")
    said = message(group.timeline.assert_no_duplicates)
    assert re.search(
        r"\S+-\d: \d+: m1 had processed offsets? [\d., ]+ and had (committed nothing|not committed them .*)"
        rf" when m2 got them at [\d.]+ s; its commit at [\d.]+ s, as of generation {before}, failed: .*;"
        rf" the group was in generation {stable.generation} by then",
        said,
    )
    assert re.search(
        r"m1, which had polled offsets? [\d., ]+ at [\d.]+ s, processed them at [\d.]+ s, when m2 had"
        r" processed them",
        said,
    )


# Commits ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka", "aiokafka", "java"])
def test_the_commits_of_each_client_are_those_that_the_coordinator_has(client: str, scene: Scene) -> None:
    group = scene.group(["range"], client=client, members=2)
    load = scene.records(group, 50, rate=200)
    group.wait_consumed(load)
    for member in group.members.values():
        member.commit()
    assert committed(group.timeline) == load.produced == committed_of(group)


@pytest.mark.parametrize("client", ["kafka-python", "confluent-kafka", "aiokafka"])
def test_commits_by_a_client_s_timer_are_seen(client: str, scene: Scene) -> None:
    timer = {"auto_commit_interval_ms": 200}
    group = scene.group(["range"], client=client, members=1, settings=timer, commit="auto")
    produced = scene.records(group, 50, rate=200).produced

    group.wait_for(lambda: committed(group.timeline) == produced, what="the timer's commits")
    assert committed_of(group) == produced


def committed_of(group: ConsumerGroup) -> dict[TopicPartition, int]:
    """What the coordinator has."""
    admin: Any = admin_client(group.access)
    request = confluent_kafka.ConsumerGroupTopicPartitions(group.group_id)
    found = admin.list_consumer_group_offsets([request])[group.group_id].result()
    return {TopicPartition(one.topic, one.partition): one.offset for one in found.topic_partitions}


@pytest.mark.parametrize(
    "client",
    [
        services.iterates,
        services.iterates_and_does_not_close,
        services.iterates_with_aiokafka,
        services.ends_by_its_own_handler,
    ],
)
def test_a_loop_that_never_looks_whether_it_is_to_leave_leaves_by_sigterm(
    client: Service, scene: Scene
) -> None:
    group = scene.group(client=client, members=2)
    group.members["m1"].leave()
    group.wait_stable(expect={"m2": 6})
    assert [one.reason for one in group.timeline.of(Closed, member="m1")] == ["left"]
    assert [one.status for one in group.timeline.of(Exited, member="m1")] == [0]
    handled = client is services.ends_by_its_own_handler
    assert [one.value for one in group.timeline.of(Noted)] == ["by its own handler"] * handled


def test_a_leave_keeps_the_groups_time_and_says_how_a_function_leaves(scene: Scene) -> None:
    group = scene.group(client=services.polls_until_it_is_over, members=1, place="thread")
    group.timeout = 1.0
    try:
        with pytest.raises(GroupNotStableError) as caught:
            group.members["m1"].leave()
    finally:
        services.OVER.set()
    assert (
        "timed out after 1 s waiting for m1 to leave (it sees seat.leaving, or gets SIGTERM in a process)"
        in str(caught.value)
    )
