"""What our assignors make of kafka-python's joins where records do not flow on, on a real broker.

See test_client_behaviour.py for what the client does by itself.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from integration_tests.support.driven_consumer import (
    SECONDS,
    SHORT,
    DrivenConsumer,
    bring_in,
    complete_between_polls,
    driven_group,
    settle,
    settled_trio,
)
from integration_tests.support.waiting import wait_for
from kafka_assignors import CooperativeStickyAssignor
from kafka_assignors._timelines.events import AssignmentReceived, Joining, Lost, Revoked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka_assignors.testing import Cluster

    Drive = Callable[..., DrivenConsumer]


WAITS = partial(CooperativeStickyAssignor, records_in_rebalances=False)


@pytest.fixture
def topics(topic_factory: Callable[..., str]) -> list[str]:
    return [topic_factory(3), topic_factory(3)]


@pytest.fixture
def drive(kafka_cluster: Cluster, topics: list[str]) -> Iterator[Drive]:
    with driven_group(kafka_cluster.access, topics, WAITS) as make:
        yield make


def test_a_join_that_completes_between_two_polls_is_taken_by_the_next(drive: Drive) -> None:
    leader, follower = drive("leader"), drive("follower")
    settle(leader)
    settle(leader, follower)
    generation = follower.generation
    bring_in(drive("newcomer"), leader, follower)
    mark = len(follower.events)
    follower.begin_join()
    leader.begin_join()
    wait_for("the follower's exchange to be over", lambda: follower.exchange_is_over, SECONDS)
    assert follower.take_assignment().generation == generation + 1
    assert follower.kinds_since(mark)[:3] == ["metadata", "assignment", "revoked"]
    assert not follower.since(mark, Revoked)[0].partitions & follower.held


def test_polls_without_time_take_assignments(drive: Drive) -> None:
    alone = drive("alone")

    def polled() -> bool:
        alone.poll(0)
        return len(alone.held) == 6

    wait_for("all partitions", polled, SECONDS)
    assert alone.generation == 1
    assert [event.kind for event in alone.since(0, AssignmentReceived)] == ["assignment"]


def test_a_member_that_is_expelled_while_rejoining_is_told_that_it_lost(drive: Drive) -> None:
    leader, follower, other = settled_trio(drive, **SHORT)
    complete_between_polls(leader, follower, other)
    held = follower.held
    wait_for("the follower to be expelled", lambda: not follower.is_listed, SECONDS)
    mark = len(follower.events)

    def joins_as_a_new_member() -> bool:
        follower.poll(50)
        return any(one.generation == -1 for one in follower.since(mark, Joining))

    wait_for("the follower to hear of it", joins_as_a_new_member, SECONDS)
    assert follower.kinds_since(mark)[:2] == ["lost", "metadata"]
    assert follower.since(mark, Lost)[0].partitions == held
    assert follower.since(mark, AssignmentReceived) == []
