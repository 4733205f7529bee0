"""What Java's consumer and librdkafka do where they differ from kafka-python, held once on a real broker.

The simulated members of `tests.lab.clients.other_clients` rest on it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from kafka.coordinator.assignors.range import RangePartitionAssignor

from integration_tests.support.driven_consumer import (
    SECONDS,
    SHORT,
    DrivenConsumer,
    Hesitant,
    bring_in,
    driven_group,
    hear,
    logged_requests,
    settle,
)
from integration_tests.support.membership import expel
from integration_tests.support.waiting import wait_for
from kafka_assignors._timelines.events import Assigned, Lost, Revoked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from kafka_assignors.testing import Cluster, ConsumerGroup, Member
    from kafka_assignors.testing._groups.runners import Place

    Beside = Callable[..., AbstractContextManager[tuple[ConsumerGroup, Callable[..., DrivenConsumer]]]]

PLACES: dict[str, Place] = {"java": "process", "confluent-kafka": "thread"}


@pytest.fixture
def beside(
    topic_factory: Callable[..., str], consumer_group: Callable[..., ConsumerGroup], kafka_cluster: Cluster
) -> Beside:
    """Makes a group of a client's members, and what makes driven consumers in it."""

    @contextmanager
    def make(
        client: str, strategy: str = "cooperative-sticky", assignor: Any = Hesitant, **how: Any
    ) -> Iterator[tuple[ConsumerGroup, Callable[..., DrivenConsumer]]]:
        topic = topic_factory(6)
        group = consumer_group(topic, [strategy], client=client, place=PLACES[client], **how)
        with driven_group(kafka_cluster.access, [topic], assignor, group.group_id) as drive:
            yield group, drive

    return make


def sharing(group: ConsumerGroup, drive: Callable[..., DrivenConsumer]) -> tuple[DrivenConsumer, Member]:
    """A leader of kafka-python and a member of the group's client, each with half of the partitions."""
    leader = drive("leader")
    settle(leader)
    alone, other = len(leader.held), group.join("other")

    def shared() -> bool:
        leader.poll(50)
        return leader.is_at_rest and 2 * len(leader.held) == 2 * len(other.state().assignment) == alone

    wait_for("both to have half of the partitions", shared, SECONDS)
    return leader, other


@pytest.mark.parametrize(("client", "ahead"), [("java", 1), ("confluent-kafka", 0)])
def test_after_a_refused_sync_java_says_the_generation_it_joined_librdkafka_the_one_it_took(
    client: str, ahead: int, beside: Beside
) -> None:
    """`ConsumerCoordinator.metadata`, `rd_kafka_cgrp_assignor_run`; both claim what they hold."""
    with beside(client) as (group, drive):
        leader, other = sharing(group, drive)
        generation, held = leader.generation, other.state().assignment
        leader.assignor.gate.clear()  # so SyncGroup waits
        leader.assignor.asked.clear()
        first, second = drive("first"), drive("second")
        bring_in(first, leader)
        leader.begin_join()
        wait_for("the leader to be asked for a plan", leader.assignor.asked.is_set, SECONDS)

        def refused() -> bool:
            second.poll(1)
            return first.exchange_is_over

        wait_for("SyncGroup to be refused", refused, SECONDS)
        first.begin_join()
        leader.assignor.gate.set()

        def asked_again() -> bool:
            leader.poll(50)
            return len(leader.assignor.said) == 4

        wait_for("the leader to be asked again", asked_again, SECONDS)
        driven = {leader.member_id, first.member_id, second.member_id}
        ((_, said),) = [one for one in leader.assignor.said.items() if one[0] not in driven]
        assert said.generation_id == generation + ahead
        owned = {(entry.topic, number) for entry in said.owned_partitions for number in entry.partitions}
        assert owned == {*held}


@pytest.mark.parametrize("client", ["java", "confluent-kafka"])
def test_a_join_that_completes_between_two_polls_counts(
    client: str, beside: Beside, kafka_cluster: Cluster
) -> None:
    """`AbstractCoordinator.joinFuture`, `rd_kafka_cgrp_handle_SyncGroup`: two rounds, however slow it is."""
    with (
        beside(client, commit="never") as (group, drive),
        ThreadPoolExecutor(2) as pool,
        logged_requests(kafka_cluster) as sent,
    ):
        leader, other = sharing(group, drive)
        generation = leader.generation
        leader.assignor.gate.clear()  # so SyncGroup waits
        newcomer = drive("newcomer")
        bring_in(newcomer, leader)
        # All the time: they would join again after a join that completes between two polls.
        taken = [pool.submit(one.take_assignment) for one in (newcomer, leader)]
        sync = f"groupId='{group.group_id}', generationId={generation + 1},"
        wait_for("its SyncGroup", lambda: sent("apiKey=SYNC_GROUP,", "clientId=other,", sync), SECONDS)
        with other.pause_polling():
            leader.assignor.gate.set()
            assert [one.result().generation for one in taken] == [generation + 1] * 2
            again = pool.submit(leader.take_assignment)  # it has revoked, and joins again
            hear(newcomer)
        newcomer.take_assignment()
        again.result()
        group.wait_for(lambda: len(other.state().assignment) == 2, what="it to give up one")
        assert (len(leader.held), len(newcomer.held)) == (2, 2)
        assert leader.generation == newcomer.generation == generation + 2


@pytest.mark.parametrize(
    ("client", "timeout"), [("java", "request_timeout_ms"), ("confluent-kafka", "socket_timeout_ms")]
)
def test_a_member_that_is_expelled_amid_a_join_is_told_that_it_lost(
    client: str, timeout: str, beside: Beside, kafka_cluster: Cluster
) -> None:
    """`ConsumerCoordinator.onJoinPrepare`, `rd_kafka_cgrp_revoke_all_rejoin`; kafka-python's is not told."""
    # The coordinator never answers the SyncGroup of a member that it has removed: so long the client waits.
    with beside(client, settings={timeout: 3000}) as (group, drive):
        leader, other = sharing(group, drive)
        held, mark = other.state().assignment, group.timeline.end
        leader.assignor.gate.clear()
        leader.assignor.asked.clear()
        newcomer = drive("newcomer")
        bring_in(newcomer, leader)
        leader.begin_join()
        wait_for("the leader to be asked for a plan", leader.assignor.asked.is_set, SECONDS)
        (member_id,) = {*leader.assignor.said} - {leader.member_id, newcomer.member_id}
        expel(kafka_cluster.access, group.group_id, member_id)

        def heard() -> list[Assigned | Lost | Revoked]:
            calls: tuple[Assigned | Lost | Revoked, ...] = group.timeline.of(Assigned, Lost, Revoked)
            # The round before may have yet to end.
            return [one for one in calls if one.partitions and one.time > mark]

        group.wait_for(heard, what="the application to be told")
        leader.assignor.gate.set()
        first = heard()[0]
        assert isinstance(first, Lost)
        assert {*first.partitions} == {*held}


@pytest.mark.parametrize(("client", "stays"), [("java", False), ("confluent-kafka", True)])
def test_amid_a_join_only_librdkafka_sends_heartbeats_without_a_poll(
    client: str, stays: bool, beside: Beside, kafka_cluster: Cluster
) -> None:
    """Java's end with `AbstractCoordinator.sendJoinGroupRequest`, until a poll reads the answer."""
    with beside(client, "range", RangePartitionAssignor, settings=SHORT) as (group, drive):
        leader, other = sharing(group, drive)
        (member_id,) = leader.listed - {leader.member_id}
        newcomer = drive("newcomer", **SHORT)
        with logged_requests(kafka_cluster) as sent:
            bring_in(newcomer, leader)
            join = f"groupId='{group.group_id}'"
            wait_for("its JoinGroup", lambda: sent("apiKey=JOIN_GROUP,", "clientId=other,", join), SECONDS)
        with other.pause_polling():
            leader.take_assignment()  # so JoinGroup is answered
            # kafka-python's does as Java's: once it is expelled, a session is over.
            wait_for("a session to be over", lambda: newcomer.member_id not in leader.listed, SECONDS)
            if stays:
                assert member_id in leader.listed
            else:
                wait_for("it to be expelled", lambda: member_id not in leader.listed, SECONDS)
