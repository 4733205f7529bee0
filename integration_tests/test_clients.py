"""Members of every client library, and of a user's own making."""

import re
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer
from kafka import ConsumerRebalanceListener, KafkaConsumer, TopicPartition

from integration_tests.support.patience import QUICK, QUICK_MS, QUICK_POLLS
from integration_tests.support.scene import Scene, live_through, more, sizes
from integration_tests.support.services import commits_by_itself, iterates_with_aiokafka
from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors._timelines.events import Closed, CommitFailed, Consumed, Lost
from kafka_assignors.testing import Cluster, ConsumerGroup, Load, Seat, grow_topic
from kafka_assignors.testing._groups.runners import NotInAThreadError
from tests.support.scale import longer

MakeGroup = Callable[..., ConsumerGroup]
MakeTopic = Callable[..., str]

CLIENTS = ["kafka-python", "confluent-kafka", "aiokafka", "java"]


@pytest.mark.parametrize("client", CLIENTS)
def test_members_of_each_client_join_crash_freeze_leave_and_come_back(client: str, scene: Scene) -> None:
    group = scene.group(["range"], client=client)
    with scene.load() as load:
        live_through(group, load, quick=QUICK)
    timeline = group.timeline
    assert timeline.double_assigned() == {}
    assert timeline.overlaps("generation") == ()
    # Only while it was frozen did two applications have a partition.
    assert {overlap.members for overlap in timeline.overlaps()} <= {("a", "c")}
    assert {topics for one in timeline.rebalances for topics in one.subscriptions.values()} == {
        frozenset({scene.topic})
    }
    timeline.assert_balanced()
    timeline.assert_all_consumed(load.produced)
    timeline.assert_paused_at_most(3 * QUICK_MS)
    timeline.assert_paused_at_most(3 * QUICK_MS, by="records")
    missed = r"without an owner for longer than 1000 ms:\n(.*\n)+members +[^x\n]*x"
    with pytest.raises(AssertionError, match=missed):
        timeline.assert_paused_at_most(1000)


def held_up(group: ConsumerGroup, load: Load) -> tuple[float, float]:
    """Have one of two members stand still as a third joins; 200 records take as long as six heartbeats.

    Returns:
        From when the other one has joined again, and until when the group waited at least.
    """
    group.join("a")
    slow = group.join("slow")
    group.wait_stable()
    slow.freeze()
    group.join("late")
    group.wait_for(lambda: group.describe().state == "PreparingRebalance", what="a rebalance")
    instants = []
    for _ in range(2):
        group.wait_for(more(load, 200), what="records")
        instants.append(time.monotonic())
    assert group.describe().state == "PreparingRebalance"
    return instants[0], instants[1]


@pytest.mark.parametrize(
    ("client", "strategy", "flows"),
    [
        pytest.param("kafka-python", "cooperative-sticky", False, id="kafka-python's own"),
        pytest.param("kafka-python", CooperativeStickyAssignor, True, id="kafka-python with ours"),
        pytest.param("aiokafka", CooperativeStickyAssignor, True, id="aiokafka with ours"),
        pytest.param("java", "cooperative-sticky", True, id="java"),
    ],
)
def test_records_flow_or_not_while_a_cooperative_group_waits_for_a_member(
    client: str, strategy: Any, flows: bool, scene: Scene
) -> None:
    group = scene.group([strategy], client=client)
    with scene.load(200) as load:
        began, ended = held_up(group, load)
        group.members["slow"].thaw()
        group.wait_stable()
    read = [event for event in group.timeline.of(Consumed, member="a") if began < event.time < ended]
    assert bool(read) is flows
    if strategy is CooperativeStickyAssignor:
        assert group.timeline.of(CommitFailed, Lost) == ()


@pytest.mark.parametrize("client", CLIENTS)
def test_a_static_member_of_each_client_restarts_without_a_rebalance(client: str, scene: Scene) -> None:
    # Longer than Java takes to start on a laden machine.
    settings = {"session_timeout_ms": 120_000}
    # kafka-python forgets a join that ends between two polls, and a leader's next one begins a rebalance.
    polls = round(longer(2000))
    group = scene.group(["range"], client=client, settings=settings, timeout=120, poll_ms=polls)
    a, b = group.join("a", instance_id="one"), group.join("b", instance_id="two")
    before = group.wait_stable()
    restarted = [b.restart(crash=True)]
    group.wait_stable()
    restarted.append(a.restart())
    after = group.wait_stable()
    assert after.generation == before.generation
    assert [after.assignments[member.name] for member in restarted] == [
        before.assignments[member.name[0]] for member in restarted
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_members_of_each_client_change_their_topics(
    client: str, topic_factory: MakeTopic, consumer_group: MakeGroup
) -> None:
    one, two = topic_factory(4), topic_factory(2)
    group = consumer_group(one, ["range"], client=client)
    a, b = group.join("a"), group.join("b")
    assert sizes(group) == {"a": 2, "b": 2}
    b.unsubscribe()
    assert sizes(group) == {"a": 4}
    b.subscribe([one, two])
    assert sizes(group) == {"a": 2, "b": 4}
    assert b.state().assignment == b.assignment
    a.leave()
    assert sizes(group) == {"b": 6}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_pattern_finds_topics_and_new_partitions_with_each_client(
    client: str, topic_factory: MakeTopic, consumer_group: MakeGroup, kafka_cluster: Cluster
) -> None:
    topic = topic_factory(2)
    group = consumer_group(re.compile(topic[:-1]), ["range"], client=client)
    group.join("a")
    assert sizes(group) == {"a": 2}
    grow_topic(kafka_cluster.bootstrap_servers, topic, 3)
    assert sizes(group) == {"a": 3}


def test_threads_start_at_once_and_neither_crash_nor_freeze(scene: Scene) -> None:
    group = scene.group([CooperativeStickyAssignor], place="thread")
    a, b = group.join("a"), group.join("b")
    group.wait_stable()
    for verb in (a.crash, a.freeze):
        with pytest.raises(
            NotInAThreadError, match=r"a cannot .*: it is a thread; join it with place='process'"
        ):
            verb()
    assert a.pid == b.pid
    b.leave()
    assert sizes(group) == {"a": 6}
    c = group.join("c", place="process")
    assert sizes(group) == {"a": 3, "c": 3}
    c.crash()


# Functions of a user's own


def note(what: str, partitions: Any) -> None:
    print(what, len(partitions), file=sys.stderr)  # noqa: T201 - a member's log is its standard error


class Notes(ConsumerRebalanceListener):
    """What an application's own listener was told, on its standard error."""

    def on_partitions_assigned(self, assigned: Any) -> None:
        note("assigned", assigned)

    def on_partitions_revoked(self, revoked: Any) -> None:
        note("revoked", revoked)


def consumer_with_its_own_settings(seat: Seat) -> Any:
    return KafkaConsumer(*seat.topics, **{**seat.kafka_python(), "max_poll_records": 3})


def application(seat: Seat, *, poll_ms: int) -> None:
    consumer = seat.observe(KafkaConsumer(**seat.kafka_python()))
    consumer.subscribe(seat.topics, listener=Notes())
    while not seat.leaving:
        consumer.poll(timeout_ms=poll_ms)
    consumer.close()


def confluent_application(seat: Seat) -> None:
    consumer = seat.observe(Consumer(seat.librdkafka()))
    consumer.subscribe(list(seat.topics), on_assign=lambda _, given: note("assigned", given))
    while not seat.leaving:
        consumer.poll(0.3)
    consumer.close()


async def asynchronous_consumer(seat: Seat) -> Any:
    consumer = AIOKafkaConsumer(**seat.aiokafka())
    await consumer.start()
    return consumer


def returns_nothing_at_once(seat: Seat) -> None:
    del seat


def returns_no_consumer(seat: Seat) -> str:
    return seat.name


LISTENING: list[Any] = [
    (application, {"poll_ms": 2000}),  # longer than a rebalance, which kafka-python forgets else
    confluent_application,
]
"""Applications with listeners of their own."""


@pytest.mark.parametrize(
    "client",
    [*LISTENING, consumer_with_its_own_settings, iterates_with_aiokafka, asynchronous_consumer],
)
def test_a_function_of_the_users_is_a_member(client: Any, scene: Scene) -> None:
    group = scene.group(["range"], client=client, settings=QUICK, commit="auto")
    with scene.load() as load:
        for name in "ab":
            group.join(name)
        assert sizes(group) == {"a": 3, "b": 3}
        group.members["b"].crash()
        assert sizes(group) == {"a": 6}
        if client in LISTENING:
            group.wait_for(lambda: "assigned 6" in group.members["a"].log(), what="the listener's note")
        assert group.members["a"].state().assignment == {
            TopicPartition(scene.topic, number) for number in range(6)
        }
        load.stop()
        group.wait_consumed(load)
        group.members["a"].leave()
    assert group.timeline.double_assigned() == {}
    (closed,) = group.timeline.of(Closed)
    assert (closed.member, closed.reason) == ("a", "left")


@pytest.mark.parametrize(
    ("client", "application"),
    [
        *((client, "the kit's") for client in CLIENTS),
        (LISTENING[0], "of kafka-python"),
        (commits_by_itself, "of aiokafka"),
    ],
)
def test_a_member_that_does_not_poll_is_replaced_until_it_polls_again(
    client: Any, application: str, scene: Scene
) -> None:
    group = scene.group(["range"], client=client, settings=QUICK_POLLS)
    group.join("a")
    b = group.join("b")
    group.wait_stable()
    b.pause_polling()
    assert sizes(group) == {"a": 6}
    b.resume_polling()
    assert sizes(group) == {"a": 3, "b": 3}
    if application != "the kit's":
        with pytest.raises(RuntimeError, match="decides by itself when to subscribe"):
            b.subscribe("other")


def test_a_function_that_returns_early_or_no_consumer_is_told_of(scene: Scene) -> None:
    group = scene.group(None, client=returns_nothing_at_once)
    group.join("a")
    with pytest.raises(TimeoutError, match="a ended by itself"):
        group.wait_stable()
    other = scene.group(None, client=returns_no_consumer)
    other.join("b")
    with pytest.raises(TimeoutError, match="'b' is no consumer of kafka-python, confluent-kafka or aiokafka"):
        other.wait_stable()
