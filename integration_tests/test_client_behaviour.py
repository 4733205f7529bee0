"""What kafka-python 3.0 does between JoinGroup and an assignment, held once on a real broker.

Our assignors rest on it. All here is kafka-python's own: its consumer, driven poll by poll, and its
cooperative sticky assignor. Beside that stands what our assignors make of joins where records do not flow on.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from kafka import TopicPartition
from kafka.errors import KafkaConnectionError, RebalanceInProgressError

from integration_tests.support.driven_consumer import (
    SECONDS,
    SHORT,
    DrivenConsumer,
    Hesitant,
    Trio,
    bring_in,
    complete_between_polls,
    driven_group,
    hear,
    settle,
    settled_trio,
    start_rebalance,
    topic_to_give_up,
)
from integration_tests.support.waiting import wait_for
from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors._timelines.events import AssignmentReceived, Event, Joining, Led, Lost, Revoked
from kafka_assignors.testing import Cluster, create_topic

WAITS = partial(CooperativeStickyAssignor, records_in_rebalances=False)


@pytest.fixture
def topics(topic_factory: Callable[..., str]) -> list[str]:
    return [topic_factory(3), topic_factory(3)]


@pytest.fixture
def drive(kafka_cluster: Cluster, topics: list[str]) -> Iterator[Callable[..., DrivenConsumer]]:
    """Makes consumers of one group: drive("a", **settings)."""
    with driven_group(kafka_cluster.access, topics, Hesitant) as make:
        yield make


@pytest.fixture
def completing(kafka_cluster: Cluster, topics: list[str]) -> Iterator[Callable[..., DrivenConsumer]]:
    """Makes consumers of one group with an assignor of ours by which records do not flow on."""
    with driven_group(kafka_cluster.access, topics, WAITS) as make:
        yield make


@pytest.fixture
def trio(drive: Callable[..., DrivenConsumer]) -> Trio:
    """The leader, a follower that a test is about, and another; each has two partitions and is at rest."""
    return settled_trio(drive)


def planned(leader: DrivenConsumer, member_id: str) -> frozenset[tuple[str, int]]:
    """What the leader gave a member at last."""
    plan = leader.since(0, Led)[-1].plan
    assert plan is not None
    return frozenset(tuple(pair) for pair in plan[member_id]["partitions"])


def owned_in(event: Event) -> frozenset[tuple[str, int]]:
    """What a member claimed when it asked to join."""
    assert isinstance(event, Joining)
    return frozenset(event.owned)


# A join that completes in the background ----------------------------------------------------------------


def newcomer_beside_two(
    drive: Callable[..., DrivenConsumer],
) -> tuple[DrivenConsumer, DrivenConsumer, int, int]:
    """A leader and a follower whose join for a third member completed while it did not poll.

    Also the generation before, and how many events the follower had had by then.
    """
    leader, follower = drive("leader"), drive("follower")
    settle(leader)
    settle(leader, follower)
    generation = follower.generation
    bring_in(drive("newcomer"), leader, follower)
    mark = len(follower.events)
    follower.begin_join()
    leader.begin_join()
    wait_for("the follower's exchange to be over", lambda: follower.exchange_is_over, SECONDS)
    return leader, follower, generation, mark


def joins_again_with(follower: DrivenConsumer, mark: int, generation: int) -> frozenset[tuple[str, int]]:
    """Let it join again in this generation, after one join since the mark; returns what it claims to own."""
    follower.begin_join()
    wait_for("the second join", lambda: len(follower.since(mark, Joining)) == 2, SECONDS)
    assert follower.kinds_since(mark) == ["metadata", "metadata"]
    again = follower.since(mark)[1]
    assert again.generation == generation
    return owned_in(again)


def test_a_join_that_completes_between_two_polls_is_thrown_away(
    drive: Callable[..., DrivenConsumer],
) -> None:
    """`BaseCoordinator.join_group_async`: a `_join_task` that is done is replaced, whatever came of it.

    The member is in the new generation, which took partitions from it, and joins again with all it had.
    """
    leader, follower, generation, mark = newcomer_beside_two(drive)
    held = follower.held
    assert follower.coordinator._join_task.succeeded()
    assert planned(leader, follower.member_id) < held
    assert follower.generation == generation + 1
    assert joins_again_with(follower, mark, generation + 1) == held == follower.held


def test_a_join_of_ours_that_completes_between_two_polls_is_taken_by_the_next(
    completing: Callable[..., DrivenConsumer],
) -> None:
    _, follower, generation, mark = newcomer_beside_two(completing)
    assert follower.take_assignment().generation == generation + 1
    assert follower.kinds_since(mark)[:3] == ["metadata", "assignment", "revoked"]
    assert not follower.since(mark, Revoked)[0].partitions & follower.held


def test_a_member_whose_sync_is_refused_joins_again_with_what_it_holds(
    trio: Trio, drive: Callable[..., DrivenConsumer]
) -> None:
    """`BaseCoordinator._process_sync_group_response`: REBALANCE_IN_PROGRESS leaves the join's generation."""
    leader, follower, other = trio
    held, generation = follower.held, follower.generation
    leader.assignor.gate.clear()  # so the others' SyncGroup waits
    leader.assignor.asked.clear()
    start_rebalance(leader, follower, other)
    mark = len(follower.events)
    follower.begin_join()
    other.begin_join()
    wait_for("the leader to be asked for a plan", leader.assignor.asked.is_set, SECONDS)
    wait_for("the join's answer", lambda: follower.generation == generation + 1, SECONDS)
    newcomer = drive("newcomer")

    def refused() -> bool:
        newcomer.poll(1)
        return follower.exchange_is_over

    wait_for("the follower's SyncGroup to be refused", refused, SECONDS)
    assert isinstance(follower.coordinator._join_task.exception, RebalanceInProgressError)
    assert joins_again_with(follower, mark, generation + 1) == held == follower.held


def test_poll_without_time_never_takes_an_assignment(drive: Callable[..., DrivenConsumer]) -> None:
    """`BaseCoordinator.join_group_async`: `wait_for` with no time left never sees the task done."""
    alone = drive("alone")
    task: Any = None
    for _ in range(5):

        def begun(before: Any = task) -> bool:
            alone.poll(0)
            return alone.coordinator._join_task not in (None, before)

        wait_for("a join", begun, SECONDS)
        task = alone.coordinator._join_task
        wait_for("the exchange to be over", lambda: alone.exchange_is_over, SECONDS)
    # The first was answered with a member id; each of the others made a generation of its own.
    assert alone.generation == 4
    assert set(alone.kinds_since(0)) == {"subscribed", "metadata", "assign"}
    assert alone.held == frozenset()
    assert len(alone.take_assignment().partitions) == 6


def test_polls_of_ours_without_time_take_assignments(completing: Callable[..., DrivenConsumer]) -> None:
    alone = completing("alone")

    def polled() -> bool:
        alone.poll(0)
        return len(alone.held) == 6

    wait_for("all partitions", polled, SECONDS)
    assert alone.generation == 1
    assert [event.kind for event in alone.since(0, AssignmentReceived)] == ["assignment"]


# Changed subscriptions ----------------------------------------------------------------------------------


def test_topics_given_up_amid_a_rejoin_are_held_until_the_assignment_comes(
    trio: Trio, topics: list[str]
) -> None:
    """`BaseCoordinator.join_group_async`: while `rejoining`, `_on_join_prepare_async` is not called again."""
    leader, follower, other = trio
    complete_between_polls(leader, follower, other)
    assert follower.coordinator.rejoining
    held = follower.held
    gone, lost = topic_to_give_up(follower, topics)
    mark = len(follower.events)
    follower.subscribe([topic for topic in topics if topic != gone])
    follower.begin_join()
    hear(other)  # the coordinator has its JoinGroup, and waits for the others
    assert follower.kinds_since(mark) == ["subscribed", "metadata"]
    asked = follower.since(mark, Joining)[0]
    assert gone not in (asked.topics or ())
    assert owned_in(asked) == held == follower.held
    settle(leader, follower, other)
    kinds = follower.kinds_since(mark)
    assert kinds.index("assignment") < kinds.index("revoked")
    assert lost <= follower.since(mark, Revoked)[0].partitions


def test_a_member_whose_join_for_other_topics_outlasts_its_poll_never_comes_back(
    drive: Callable[..., DrivenConsumer], topics: list[str]
) -> None:
    """`ConsumerCoordinator.need_rejoin`: `group_protocols` forgets that the topics are others.

    So no poll looks at it. Nothing else tells it to join, as its heartbeats are off, and it goes on owning.
    """
    leader, follower, other = settled_trio(drive, **SHORT)
    gone, _ = topic_to_give_up(follower, topics)
    follower.subscribe([topic for topic in topics if topic != gone])
    follower.begin_join()
    hear(leader, other)
    held, mark = follower.held, len(follower.events)
    leader.begin_join()
    other.take_assignment()
    wait_for("the follower's exchange to be over", lambda: follower.exchange_is_over, SECONDS)
    assert not follower.must_rejoin

    def expelled() -> bool:
        follower.poll(100)
        return not follower.is_listed

    wait_for("the follower to be expelled", expelled, SECONDS)
    assert (follower.kinds_since(mark), follower.held, follower.must_rejoin) == ([], held, False)


# Membership lost ----------------------------------------------------------------------------------------


def test_a_member_whose_join_was_not_looked_at_sends_no_heartbeat_and_is_expelled(
    drive: Callable[..., DrivenConsumer],
) -> None:
    """`BaseCoordinator._heartbeat_loop` is disabled from the join until a poll takes the assignment."""
    leader, follower, other = settled_trio(drive, **SHORT)
    quick = drive("quick", **SHORT)
    settle(leader, follower, other, quick)
    start_rebalance(leader, follower, other, quick)
    follower.begin_join()
    last = follower.coordinator.heartbeat.last_send
    other.begin_join()
    quick.take_assignment()
    wait_for("the follower's exchange to be over", lambda: follower.exchange_is_over, SECONDS)
    assert follower.is_listed
    wait_for("the follower to be expelled", lambda: not follower.is_listed, SECONDS)
    assert follower.coordinator.heartbeat.last_send == last
    # It has polled as little in that time, and has the same session; but it took its assignment.
    assert quick.is_listed
    assert quick.coordinator.heartbeat.last_send > last


def expelled_while_rejoining(
    drive: Callable[..., DrivenConsumer], poll_ms: int
) -> tuple[DrivenConsumer, int, frozenset[TopicPartition], list[Event]]:
    """A member that was expelled amid a join: its generation and partitions before, and what it then did."""
    leader, follower, other = settled_trio(drive, **SHORT)
    complete_between_polls(leader, follower, other)
    held, generation = follower.held, follower.generation
    wait_for("the follower to be expelled", lambda: not follower.is_listed, SECONDS)
    mark = len(follower.events)

    def joins_as_a_new_member() -> bool:
        follower.poll(poll_ms)
        return any(one.generation == -1 for one in follower.since(mark, Joining))

    wait_for("the follower to hear of it", joins_as_a_new_member, SECONDS)
    return follower, generation, held, follower.since(mark)


def test_a_member_that_is_expelled_while_rejoining_is_not_told_that_it_lost(
    drive: Callable[..., DrivenConsumer],
) -> None:
    """`BaseCoordinator.join_group_async` skips `_on_join_prepare_async`, and with it on_partitions_lost."""
    follower, generation, held, asked = expelled_while_rejoining(drive, 1)
    assert {one.kind for one in asked} == {"metadata"}
    assert [one.generation for one in asked][:2] == [generation, -1]
    assert follower.held == held


def test_a_member_of_ours_that_is_expelled_while_rejoining_is_told_that_it_lost(
    completing: Callable[..., DrivenConsumer],
) -> None:
    _, _, held, heard = expelled_while_rejoining(completing, 50)
    assert [one.kind for one in heard][:2] == ["lost", "metadata"]
    assert [one.partitions for one in heard if isinstance(one, Lost)] == [held]
    assert not any(isinstance(one, AssignmentReceived) for one in heard)


# The network --------------------------------------------------------------------------------------------


def test_a_member_whose_sync_is_lost_with_its_connection_joins_again(proxied_broker: Cluster) -> None:
    """`BaseCoordinator.join_group_async`: a retriable error; the join's generation stays."""
    network = proxied_broker.network
    with driven_group(network.access, [create_topic(proxied_broker, 6)], Hesitant) as make:
        leader, follower, other = trio = make("leader"), make("follower"), make("other")
        settle(leader)
        settle(*trio)
        held, generation = follower.held, follower.generation
        leader.assignor.gate.clear()
        start_rebalance(leader, follower, other)
        mark = len(follower.events)
        follower.begin_join()
        other.begin_join()
        wait_for("the join's answer", lambda: follower.generation == generation + 1, SECONDS)
        with network.drop(client="follower"):
            wait_for("the SyncGroup to be lost", lambda: follower.exchange_is_over, SECONDS)
        assert isinstance(follower.coordinator._join_task.exception, KafkaConnectionError)

        def joined_again() -> bool:
            follower.poll(1)  # until it is connected
            return len(follower.since(mark, Joining)) > 1

        wait_for("the second join", joined_again, SECONDS)
        assert set(follower.kinds_since(mark)) == {"metadata"}
        again = follower.since(mark)[-1]
        assert again.generation == generation + 1
        assert owned_in(again) == held == follower.held
        leader.assignor.gate.set()
        settle(*trio)
        assert follower.held == held
