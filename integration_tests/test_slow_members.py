"""Members that poll briefly and work for long, in a cooperative group that others join one after the other.

kafka-python throws away a join that completes between two of their polls
(`BaseCoordinator.join_group_async`), so they hold what they had before through several generations.
"""

from kafka import TopicPartition

from benchmarks.lab.slow_members import Scenario, live
from kafka_assignors import RangeAssignor
from kafka_assignors.testing import Cluster, ConsumerGroup
from kafka_assignors.testing._plugin import TopicFactory
from tests.support.scale import longer


def test_no_partition_has_two_owners_while_others_join_beside_slow_members(kafka_cluster: Cluster) -> None:
    run, timeline = live(kafka_cluster, Scenario(), seed=1)
    assert run.failure == ""
    assert run.twice == 0, timeline.chart()
    assert [*timeline.double_assigned()] == []
    timeline.assert_balanced()


def test_a_group_rests_whose_leader_wants_fewer_topics_than_its_slow_members(
    kafka_cluster: Cluster, topic_factory: TopicFactory
) -> None:
    # ConsumerCoordinator._perform_assignment. Each rebalance waits for a slow member, and outlasts the age of
    # the leader's metadata. By itself the leader would join again after each.
    one, other = topic_factory(6), topic_factory(6)
    settings = {"metadata_max_age_ms": 500}
    with ConsumerGroup(kafka_cluster, [one, other], [RangeAssignor], settings=settings) as group:
        group.join("leader", topics=[one])
        group.wait_stable(partitions=[TopicPartition(one, number) for number in range(6)])
        slow = group.join("slow", poll_ms=75, work_ms=2000)
        group.wait_stable(timeout=longer(60))
        group.join("quick")
        before = group.wait_stable(timeout=longer(60)).generation

        def polls() -> int:
            return sum(
                event.member == slow.name and event.kind == "polled late" for event in group.timeline.events
            )

        polled = polls()
        group.wait_for(lambda: polls() >= polled + 4, what="the slow member to poll four times")
        assert group.wait_stable(timeout=longer(60)).generation <= before + 1
