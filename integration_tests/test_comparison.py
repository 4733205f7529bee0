"""The README's comparison, continued: what kafka-python's own classes do in groups of real consumers.

Ours in the same cases: `test_assignors.py` and tests/unit/assignors/test_configuration.py.
"""

from collections.abc import Callable

from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor as StockCooperativeSticky
from kafka.coordinator.assignors.range import RangePartitionAssignor

from integration_tests.support.scenarios import all_members_lost_at_once
from kafka_assignors._timelines.events import AssignmentReceived
from kafka_assignors.testing import ConsumerGroup


def test_stock_leaders_hand_out_nothing_of_topics_that_only_followers_subscribe_to(
    topic_factory: Callable[..., str], consumer_group: Callable[..., ConsumerGroup]
) -> None:
    topics = [topic_factory(3), topic_factory(2)]
    group = consumer_group(topics[:1], [RangePartitionAssignor])
    group.join("leader")
    group.wait_stable()
    group.join("follower", topics=topics[1:])
    stable = group.wait_stable()
    received = [event.partitions for event in group.timeline.of(AssignmentReceived, member="follower")]
    assert {*received[:-1]} == {frozenset()}  # on a laden machine in two generations
    assert received[-1] == stable.assignments["follower"]


def test_stock_cooperative_sticky_leaves_partitions_without_an_owner_when_all_members_are_lost_at_once(
    topic_factory: Callable[..., str], consumer_group: Callable[..., ConsumerGroup]
) -> None:
    """They go on claiming what they had, so it is kept from the new one until the group's next change."""
    _, given = all_members_lost_at_once(StockCooperativeSticky, topic_factory, consumer_group)
    assert given == 4
